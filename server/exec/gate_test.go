package exec_test

import (
	"testing"
	"time"

	"headgate/persistence/crashfs"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/journal"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestGate: each reason holds by itself, with its own error, and that of snapshots comes before that of the log.
func TestGate(t *testing.T) {
	var g command.Gate
	for reason := command.GateReason(1); reason < 1<<command.GateReasons; reason <<= 1 {
		require.False(t, g.Has(reason))
		g.Set(reason, true)
		g.Set(reason, true)
		require.True(t, g.Has(reason))
	}
	require.True(t, g.Has(command.GateRefuses))
	for reason := command.GateReason(1); reason < 1<<command.GateReasons; reason <<= 1 {
		g.Set(reason, false)
		g.Set(reason, false)
		require.False(t, g.Has(reason))
	}
	require.Empty(t, g.Unwritable())
	g.Refuse(command.GateDisk, "MISCONF disk")
	require.Equal(t, "MISCONF disk", g.Unwritable())
	g.Refuse(command.GateUnsaved, "MISCONF snapshots")
	require.Equal(t, "MISCONF snapshots", g.Unwritable())
	require.False(t, g.Has(command.GateFrozen))
	g.Refuse(command.GateBusy, "BUSY")
	require.True(t, g.Has(command.GateFrozen))
	require.Equal(t, "BUSY", g.Refusal(command.GateBusy))
	g.Refuse(command.GateBusy, "")
	g.Refuse(command.GateUnsaved, "")
	require.Equal(t, "MISCONF disk", g.Unwritable())
	g.Refuse(command.GateDisk, "")
	require.False(t, g.Has(command.GateRefuses))
}

// TestKeysExpireWhileTheDiskIsFull: keys past their time go although nothing can be logged, as in redis-server; it is in the log once
// something can be. Active expiry stood still as long as the disk was full.
func TestKeysExpireWhileTheDiskIsFull(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	w.Words("SET", "short", "v", "PX", "1000")
	there := func() bool {
		_, there := w.Srv.Keys.DB(0).Peek(w.Srv.Keys.Key([]byte("short")))
		return there
	}
	w.Fill(disk)
	require.Equal(t, servertest.RefusedFull, w.Words("SET", "k", "v"))
	w.Pass(2 * time.Second)
	w.Srv.CronAt.Expire = 0
	require.False(t, w.Tick())
	require.False(t, there())
	disk.SetFault(nil)
	require.False(t, w.Tick())
	w.Kill()
	now = servertest.WallAtStart // so that a start does not find by itself that the key is past its time
	w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.False(t, there())
}

// TestStopWritesTakesEffectAtOnce: whether writes are refused while snapshots fail is what CONFIG SET says now, and not what it said before.
func TestStopWritesTakesEffectAtOnce(t *testing.T) {
	w := servertest.NewSaver(t, t.TempDir(), &servertest.FailingFS{})
	w.Srv.Lock()
	w.Srv.Saving.Failed = true
	w.Srv.CheckSaving(w.Srv.Config.Get())
	w.Srv.Unlock()
	set := func() string { return string(w.Run(servertest.EncodeCommand("SET", "k", "v"))) }
	require.Equal(t, "-"+journal.ErrSaveFailed+"\r\n", set())
	for range 2 {
		require.Equal(t, "+OK\r\n", string(w.Run(servertest.EncodeCommand("CONFIG", "SET", "stop-writes-on-bgsave-error", "no"))))
		require.Equal(t, "+OK\r\n", set())
		require.Equal(t, "+OK\r\n", string(w.Run(servertest.EncodeCommand("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes"))))
		require.Equal(t, "-"+journal.ErrSaveFailed+"\r\n", set())
	}
}
