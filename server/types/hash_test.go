package types_test

import (
	"testing"

	"headgate/server/exec"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// A command that fails has changed nothing, and created nothing.
func TestFailedHashCommandsChangeNothing(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Ask("HSET", "h", "n", "9223372036854775807", "text", "abc", "inf", "inf")
	all := w.Ask("HGETALL", "h")
	keys := w.Worker.(*exec.Worker).Exec.Keys
	before := keys.Dirty()
	tests := []struct {
		command []string
		want    string
	}{
		{[]string{"HSET", "h", "a", "1", "b"}, "-ERR wrong number of arguments for 'hset' command\r\n"},
		{[]string{"HMSET", "h", "a", "1", "b"}, "-ERR wrong number of arguments for 'hmset' command\r\n"},
		{[]string{"HINCRBY", "h", "n", "1"}, "-ERR increment or decrement would overflow\r\n"},
		{[]string{"HINCRBY", "h", "text", "1"}, "-ERR hash value is not an integer\r\n"},
		{[]string{"HINCRBY", "none", "n", "x"}, "-ERR value is not an integer or out of range\r\n"},
		{[]string{"HINCRBYFLOAT", "h", "text", "1"}, "-ERR hash value is not a float\r\n"},
		{[]string{"HINCRBYFLOAT", "h", "inf", "1"}, "-ERR increment would produce NaN or Infinity\r\n"},
		{[]string{"HINCRBYFLOAT", "none", "n", "inf"}, "-ERR value is NaN or Infinity\r\n"},
		{[]string{"HINCRBYFLOAT", "none", "n", "nan"}, "-ERR value is not a valid float\r\n"},
	}
	for _, test := range tests {
		require.Equal(t, test.want, w.Ask(test.command...), "%q", test.command)
		require.Equal(t, all, w.Ask("HGETALL", "h"), "%q", test.command)
		require.Equal(t, ":0\r\n", w.Ask("EXISTS", "none"), "%q", test.command)
	}
	require.Equal(t, before, keys.Dirty())
}

// The shape that a hash has in RESP3 is a map, and pairs drawn at random are arrays.
func TestHashInRESP3(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Ask("HELLO", "3")
	w.Ask("HSET", "h", "f", "v")
	require.Equal(t, "%1\r\n$1\r\nf\r\n$1\r\nv\r\n", w.Ask("HGETALL", "h"))
	require.Equal(t, "%0\r\n", w.Ask("HGETALL", "none"))
	require.Equal(t, "*1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n", w.Ask("HRANDFIELD", "h", "5", "WITHVALUES"))
	require.Equal(t, "_\r\n", w.Ask("HRANDFIELD", "none"))
}
