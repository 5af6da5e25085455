package types_test

import (
	"strconv"
	"testing"

	"headgate/server/exec"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// WITHSCORE is of Redis 7.2, so that the comparison with 7.0.15 does not cover it.
func TestRankWithScore(t *testing.T) {
	tests := []struct {
		name         string
		command      []string
		resp2, resp3 string
	}{
		{"rank", []string{"ZRANK", "z", "b", "WITHSCORE"}, "*2\r\n:1\r\n$3\r\n2.5\r\n", "*2\r\n:1\r\n,2.5\r\n"},
		{"reverse rank", []string{"ZREVRANK", "z", "b", "withscore"}, "*2\r\n:0\r\n$3\r\n2.5\r\n", "*2\r\n:0\r\n,2.5\r\n"},
		{"missing member", []string{"ZRANK", "z", "x", "WITHSCORE"}, "*-1\r\n", "_\r\n"},
		{"missing key", []string{"ZREVRANK", "none", "x", "WITHSCORE"}, "*-1\r\n", "_\r\n"},
		{"another word", []string{"ZRANK", "z", "b", "WITHSCORES"}, "-ERR syntax error\r\n", "-ERR syntax error\r\n"},
		{
			"too many words", []string{"ZREVRANK", "z", "b", "WITHSCORE", "x"},
			"-ERR wrong number of arguments for 'zrevrank' command\r\n", "-ERR wrong number of arguments for 'zrevrank' command\r\n",
		},
	}
	w := servertest.NewWorkerClient(t)
	w.Ask("ZADD", "z", "1", "a", "2.5", "b")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w.Ask("HELLO", "2")
			require.Equal(t, test.resp2, w.Ask(test.command...))
			w.Ask("HELLO", "3")
			require.Equal(t, test.resp3, w.Ask(test.command...))
		})
	}
}

// A command that fails has changed nothing, whatever stands before the argument that is wrong.
func TestFailedZSetCommandsChangeNothing(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Ask("ZADD", "z", "1", "a", "inf", "top")
	w.Ask("SET", "s", "text")
	const all = "*4\r\n$1\r\na\r\n$1\r\n1\r\n$3\r\ntop\r\n$3\r\ninf\r\n"
	tests := [][]string{
		{"ZADD", "z", "5", "a", "6", "b", "x", "c"},
		{"ZADD", "z", "5", "a", "nan", "b"},
		{"ZADD", "z", "INCR", "-inf", "top"},
		{"ZINCRBY", "z", "-inf", "top"},
		{"ZREMRANGEBYRANK", "z", "0", "x"},
		{"ZREMRANGEBYSCORE", "z", "0", "x"},
		{"ZREMRANGEBYLEX", "z", "-", "x"},
		{"ZPOPMIN", "z", "-1"},
		{"ZRANGESTORE", "z", "s", "0", "-1"},
		{"ZRANGESTORE", "z", "z", "0", "x"},
	}
	keys := w.Worker.(*exec.Worker).Exec.Keys
	before := keys.Dirty()
	for _, command := range tests {
		reply := w.Ask(command...)
		require.Equal(t, "-", reply[:1], "%q", command)
		require.Equal(t, all, w.Ask("ZRANGE", "z", "0", "-1", "WITHSCORES"), "%q", command)
	}
	require.Equal(t, before, keys.Dirty())
}

// TestZAddMoreScoresThanAtHand: more scores than ZADD has room for without an allocation, which is for sixteen.
func TestZAddMoreScoresThanAtHand(t *testing.T) {
	const scores = 48
	w := servertest.NewWorkerClient(t)
	command := []string{"ZADD", "z"}
	for i := range scores {
		command = append(command, strconv.Itoa(i), "m"+strconv.Itoa(i))
	}
	require.Equal(t, ":48\r\n", w.Ask(command...))
	require.Equal(t, "$2\r\n47\r\n", w.Ask("ZSCORE", "z", "m47"))
}

func TestZRangeStoreOntoItsSource(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	for _, members := range []int{8, 1000} {
		w.Ask("DEL", "z")
		for i := range members {
			w.Ask("ZADD", "z", strconv.Itoa(i), "m"+strconv.Itoa(i))
		}
		w.Ask("EXPIRE", "z", "100")
		require.Equal(t, ":3\r\n", w.Ask("ZRANGESTORE", "z", "z", "2", "4"))
		require.Equal(t, "*3\r\n$2\r\nm2\r\n$2\r\nm3\r\n$2\r\nm4\r\n", w.Ask("ZRANGE", "z", "0", "-1"))
		require.Equal(t, ":-1\r\n", w.Ask("TTL", "z"), "the TTL goes with the old value")
		require.Equal(t, ":0\r\n", w.Ask("ZRANGESTORE", "z", "z", "5", "9"))
		require.Equal(t, ":0\r\n", w.Ask("EXISTS", "z"))
	}
}

func TestZSetKeyspaceHits(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	s := w.Worker.(*exec.Worker).Exec
	w.Ask("ZADD", "z", "1", "a")
	w.Ask("ZSCORE", "z", "a")
	w.Ask("ZCARD", "none")
	w.Ask("HGET", "z", "f")
	require.Equal(t, uint64(2), s.Stats.KeyspaceHits, "a key of another type is a hit")
	require.Equal(t, uint64(1), s.Stats.KeyspaceMisses)
}
