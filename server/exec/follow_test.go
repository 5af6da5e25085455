package exec_test

import (
	"slices"
	"testing"

	"headgate/server/exec"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestFollowerRunsWhatIsWhole: commands are run as they come whole, in the database that the stream began in, and a transaction when its EXEC
// has come. Others of the server's replicas are given what has been run, and nothing else.
func TestFollowerRunsWhatIsWhole(t *testing.T) {
	const begin = 1000
	w := servertest.NewClockClient(t)
	w.Call("SELECT 2")
	w.Srv.Lock()
	f := w.Srv.NewFollower("127.0.0.1:3", "127.0.0.1:4", begin, 2)
	w.Srv.Unlock()
	var sent, relayed []byte
	f.Relay = func(p []byte) { relayed = append(relayed, p...) }
	send := func(text []byte) exec.Hold {
		t.Helper()
		sent = append(sent, text...)
		require.Len(t, text, copy(f.Space(), text))
		f.Take(len(text))
		why, err := f.Run()
		require.NoError(t, err)
		require.Equal(t, sent[:f.Applied()-begin], relayed)
		return why
	}

	require.Equal(t, exec.HoldNone, send(servertest.EncodeCommand("SET", "a", "1")))
	require.Equal(t, "1", w.Call("GET a"))
	require.EqualValues(t, begin+len(sent), f.Applied())

	set := servertest.EncodeCommand("SET", "a", "2")
	send(set[:len(set)-1])
	require.Equal(t, "1", w.Call("GET a"), "a command that has not come whole")
	send(set[len(set)-1:])
	require.Equal(t, "2", w.Call("GET a"))

	whole := f.Applied()
	send(slices.Concat(servertest.EncodeCommand("MULTI"), servertest.EncodeCommand("INCR", "a"), servertest.EncodeCommand("INCR", "a")))
	require.Equal(t, "2", w.Call("GET a"))
	require.Equal(t, whole, f.Applied())
	send(servertest.EncodeCommand("EXEC"))
	require.Equal(t, "4", w.Call("GET a"))
	require.EqualValues(t, begin+len(sent), f.Applied())

	w.Srv.Lock()
	f.Close()
	w.Srv.Unlock()
	require.Equal(t, exec.HoldEnded, send(servertest.EncodeCommand("INCR", "a")))
	require.Equal(t, "4", w.Call("GET a"))
	f.Release()
}
