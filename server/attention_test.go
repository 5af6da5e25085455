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
		srv: w.srv, core: w.srv.Core, turn: &turn{}, client: &Client{db: w.srv.keys.DB(0), reply: reply}, reply: reply, db: w.srv.keys.DB(0), cfg: w.srv.config.Get(),
		cmd: w.srv.commands.lookup([]byte("incr")), args: [][]byte{[]byte("INCR"), []byte("k")},
	}
	w.srv.call(c, true)
	require.Equal(t, ":1\r\n", string(reply.Bytes()))
	require.Equal(t, ":1\r\n", string(before), "of RESET itself")
	require.Equal(t, ":2\r\n", string(w.run(encodeCommand("SLOWLOG", "LEN"))), "of the LEN before")
}
