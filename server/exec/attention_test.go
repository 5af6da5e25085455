package exec_test

import (
	"testing"

	"headgate/server/command"
	"headgate/server/resp"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestReplayedCommandsAreNotAttendedTo: a log that is replayed runs commands for a client that has no connection and no number.
func TestReplayedCommandsAreNotAttendedTo(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Run(servertest.EncodeCommand("CONFIG", "SET", "slowlog-log-slower-than", "0"))
	w.Run(servertest.EncodeCommand("CLIENT", "TRACKING", "ON", "BCAST"))
	w.Run(servertest.EncodeCommand("SLOWLOG", "RESET"))
	before := w.Run(servertest.EncodeCommand("SLOWLOG", "LEN"))
	reply := &resp.Writer{}
	c := &command.Ctx{
		Core: w.Srv.Core, Turn: &command.Turn{}, Client: &command.Client{DB: w.Srv.Keys.DB(0), Reply: reply}, Reply: reply, DB: w.Srv.Keys.DB(0), Cfg: w.Srv.Config.Get(),
		Cmd: w.Srv.Commands.Lookup([]byte("incr")), Args: [][]byte{[]byte("INCR"), []byte("k")},
	}
	w.Srv.Call(c, true)
	require.Equal(t, ":1\r\n", string(reply.Bytes()))
	require.Equal(t, ":1\r\n", string(before), "of RESET itself")
	require.Equal(t, ":2\r\n", string(w.Run(servertest.EncodeCommand("SLOWLOG", "LEN"))), "of the LEN before")
}

// TestNoTouch has a client whose commands are no uses of keys, and ends that in each way there is.
func TestNoTouch(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("SET k v")
	rest := func(seconds int64) string {
		w.Now += seconds * 1e9
		return w.Call("OBJECT IDLETIME k")
	}
	require.Equal(t, "5", rest(5))
	require.Equal(t, "OK", w.Call("CLIENT NO-TOUCH ON"))
	w.Call("GET k")
	w.Call("EVAL return~redis.call('get',KEYS[1]) 1 k")
	require.Equal(t, "10", rest(5))
	w.Call("TOUCH k")
	require.Equal(t, "0", rest(0), "TOUCH is there for that")
	require.Equal(t, "5", rest(5))
	w.Call("CLIENT NO-TOUCH OFF")
	require.False(t, w.Srv.Gate.Has(command.GateAttended))
	w.Call("GET k")
	require.Equal(t, "0", rest(0))
	w.Call("CLIENT NO-TOUCH ON")
	w.Call("RESET")
	require.False(t, w.Srv.Gate.Has(command.GateAttended))
}

// TestMonitorsSeeAScriptBeforeItsCommands, each line once; everything else is shown when it has been run.
func TestMonitorsSeeAScriptBeforeItsCommands(t *testing.T) {
	w := servertest.NewClockClient(t)
	monitor := servertest.NewWorkerClientOf(t, w.Srv)
	require.Equal(t, "+OK\r\n", monitor.Ask("MONITOR"))
	monitor.Conn.Out.Reset()
	require.Equal(t, "OK", w.Call("EVAL return~redis.call('SET',KEYS[1],'v') 1 k"))
	require.Equal(t, "v", w.Call("GET k"))
	require.Equal(t, `+1795268710.000000 [0 127.0.0.1:1] "EVAL" "return redis.call('SET',KEYS[1],'v')" "1" "k"`+"\r\n"+
		`+1795268710.000000 [0 lua] "SET" "k" "v"`+"\r\n"+
		`+1795268710.000000 [0 127.0.0.1:1] "GET" "k"`+"\r\n", string(monitor.Conn.Out.Bytes()))
}
