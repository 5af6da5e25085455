package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// TestReplayedCommandsAreNotAttendedTo: a log that is replayed runs commands for a client that has no connection and no number.
func TestReplayedCommandsAreNotAttendedTo(t *testing.T) {
	w := newWorkerClient(t)
	w.run(encodeCommand("CONFIG", "SET", "slowlog-log-slower-than", "0"))
	w.run(encodeCommand("CLIENT", "TRACKING", "ON", "BCAST"))
	w.run(encodeCommand("SLOWLOG", "RESET"))
	before := w.run(encodeCommand("SLOWLOG", "LEN"))
	reply := &resp.Writer{}
	c := &Ctx{
		core: w.srv.Core, turn: &turn{}, client: &Client{db: w.srv.keys.DB(0), reply: reply}, reply: reply, db: w.srv.keys.DB(0), cfg: w.srv.config.Get(),
		cmd: w.srv.commands.lookup([]byte("incr")), args: [][]byte{[]byte("INCR"), []byte("k")},
	}
	w.srv.call(c, true)
	require.Equal(t, ":1\r\n", string(reply.Bytes()))
	require.Equal(t, ":1\r\n", string(before), "of RESET itself")
	require.Equal(t, ":2\r\n", string(w.run(encodeCommand("SLOWLOG", "LEN"))), "of the LEN before")
}

// TestNoTouch has a client whose commands are no uses of keys, and ends that in each way there is.
func TestNoTouch(t *testing.T) {
	w := newClockClient(t)
	w.call("SET k v")
	rest := func(seconds int64) string {
		w.now += seconds * 1e9
		return w.call("OBJECT IDLETIME k")
	}
	require.Equal(t, "5", rest(5))
	require.Equal(t, "OK", w.call("CLIENT NO-TOUCH ON"))
	w.call("GET k")
	w.call("EVAL return~redis.call('get',KEYS[1]) 1 k")
	require.Equal(t, "10", rest(5))
	w.call("TOUCH k")
	require.Equal(t, "0", rest(0), "TOUCH is there for that")
	require.Equal(t, "5", rest(5))
	w.call("CLIENT NO-TOUCH OFF")
	require.False(t, w.srv.gate.has(gateAttended))
	w.call("GET k")
	require.Equal(t, "0", rest(0))
	w.call("CLIENT NO-TOUCH ON")
	w.call("RESET")
	require.False(t, w.srv.gate.has(gateAttended))
}
