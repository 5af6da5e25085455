package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/persistence/crashfs"
	"headgate/server/config"
)

// TestGate: each reason holds by itself, with its own error, and that of snapshots comes before that of the log.
func TestGate(t *testing.T) {
	var g gate
	for reason := gateReason(1); reason < 1<<gateReasons; reason <<= 1 {
		require.False(t, g.has(reason))
		g.set(reason, true)
		g.set(reason, true)
		require.True(t, g.has(reason))
	}
	require.True(t, g.has(gateRefuses))
	for reason := gateReason(1); reason < 1<<gateReasons; reason <<= 1 {
		g.set(reason, false)
		g.set(reason, false)
		require.False(t, g.has(reason))
	}
	require.Empty(t, g.unwritable())
	g.refuse(gateDisk, "MISCONF disk")
	require.Equal(t, "MISCONF disk", g.unwritable())
	g.refuse(gateUnsaved, "MISCONF snapshots")
	require.Equal(t, "MISCONF snapshots", g.unwritable())
	require.False(t, g.has(gateFrozen))
	g.refuse(gateBusy, "BUSY")
	require.True(t, g.has(gateFrozen))
	require.Equal(t, "BUSY", g.refusal(gateBusy))
	g.refuse(gateBusy, "")
	g.refuse(gateUnsaved, "")
	require.Equal(t, "MISCONF disk", g.unwritable())
	g.refuse(gateDisk, "")
	require.False(t, g.has(gateRefuses))
}

// TestKeysExpireWhileTheDiskIsFull: keys past their time go although nothing can be logged, as in redis-server; it is in the log once
// something can be. Active expiry stood still as long as the disk was full.
func TestKeysExpireWhileTheDiskIsFull(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	w.words("SET", "short", "v", "PX", "1000")
	there := func() bool {
		_, there := w.srv.keys.DB(0).Peek(w.srv.keys.Key([]byte("short")))
		return there
	}
	w.fill(disk)
	require.Equal(t, refusedFull, w.words("SET", "k", "v"))
	w.pass(2 * time.Second)
	w.srv.cronAt.expire = 0
	require.False(t, w.tick())
	require.False(t, there())
	disk.Fault = nil
	require.False(t, w.tick())
	w.kill()
	now = wallAtStart // so that a start does not find by itself that the key is past its time
	w, err = startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.kill()
	require.False(t, there())
}

// TestStopWritesTakesEffectAtOnce: whether writes are refused while snapshots fail is what CONFIG SET says now, and not what it said before.
func TestStopWritesTakesEffectAtOnce(t *testing.T) {
	w := newSaver(t, t.TempDir(), &failingFS{})
	w.srv.Lock()
	w.srv.saving.failed = true
	w.srv.checkSaving(w.srv.config.Get())
	w.srv.Unlock()
	set := func() string { return string(w.run(encodeCommand("SET", "k", "v"))) }
	require.Equal(t, "-"+errSaveFailed+"\r\n", set())
	for range 2 {
		require.Equal(t, "+OK\r\n", string(w.run(encodeCommand("CONFIG", "SET", "stop-writes-on-bgsave-error", "no"))))
		require.Equal(t, "+OK\r\n", set())
		require.Equal(t, "+OK\r\n", string(w.run(encodeCommand("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes"))))
		require.Equal(t, "-"+errSaveFailed+"\r\n", set())
	}
}
