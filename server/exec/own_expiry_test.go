package exec_test

import (
	"testing"

	"headgate/server/command"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestOwnKeysOfAWritableReplicaGo when their time has come, though it removes no key of its primary's; and what it remembers of them goes with them.
func TestOwnKeysOfAWritableReplicaGo(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("SET theirs v PX 100")
	w.Srv.Gate.Set(command.GateFollows, true)
	w.Srv.Gate.Set(command.GateOwnWrites, true)
	w.Call("SET own v PX 100")
	w.Call("SET later v PX 100000")
	w.Call("SET stays v")
	remembered := func() int {
		count, _ := w.Srv.OwnExpiries()
		return count
	}
	w.Srv.Cron()
	require.Equal(t, "4", w.Call("DBSIZE"))
	require.Equal(t, 2, remembered())
	w.Now += 1e9
	w.Srv.Cron()
	require.Equal(t, "3", w.Call("DBSIZE"))
	require.Equal(t, "[nil v v]", w.Call("MGET own later stays"))
	require.Equal(t, 1, remembered())
	w.Now += 100e9
	w.Srv.Cron()
	require.Equal(t, "2", w.Call("DBSIZE"))
	require.Zero(t, remembered())

	w.Call("SET stays v PX 100000")
	w.Call("SET another v PX 100000")
	require.Equal(t, 2, remembered())
	w.Call("FLUSHDB")
	_, bytes := w.Srv.OwnExpiries()
	require.Zero(t, remembered()+bytes)

	w.Call("SET stays v PX 100000")
	require.Equal(t, 1, remembered())
	w.Srv.Gate.Set(command.GateFollows, false)
	w.Srv.Gate.Set(command.GateOwnWrites, false)
	w.Now += 1e9
	w.Srv.Cron()
	require.Zero(t, remembered(), "a primary removes every key")
	require.Equal(t, "1", w.Call("DBSIZE"))
}
