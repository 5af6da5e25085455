package aof

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/persistence/crashfs"
)

// openLog opens the log of a set in /data of a file system.
func openLog(t *testing.T, disk *crashfs.FS) (*Set, *Log) {
	set, err := Open(Options{FS: disk, Dir: "/data/aof", Name: "log"})
	require.NoError(t, err)
	log, err := set.Append()
	require.NoError(t, err)
	return set, log
}

// TestReservedBatchesAreWritten: what the disk keeps room for is written though the disk is full, in the increment of a rewrite too; what it
// has no room for is refused before. Files that are closed keep nothing.
func TestReservedBatchesAreWritten(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		disk := crashfs.New("/data")
		set, log := openLog(t, disk)
		require.NoError(t, log.Reserve(Headroom))
		require.GreaterOrEqual(t, log.Room(), int64(Headroom))
		disk.Limit(disk.Used(), full)
		batch := make([]byte, log.Room())
		require.NoError(t, log.Write(batch, 1))
		require.ErrorIs(t, log.Reserve(1), full)
		_, err := set.Rewrite(true)
		require.ErrorIs(t, err, full)
		require.NoError(t, log.Close())
		used := disk.Used()
		disk.Limit(0, nil)

		set, log = openLog(t, disk)
		disk.Limit(used+Headroom+2*batchLines+4096, full)
		require.NoError(t, log.Reserve(100), "though there is no room for a whole step")
		r, err := set.Rewrite(true)
		require.NoError(t, err)
		finish := log.Switch(r)
		require.GreaterOrEqual(t, log.Room(), int64(Headroom))
		require.NoError(t, finish())
		require.NoError(t, log.Write(make([]byte, Headroom), 1))
		require.NoError(t, log.Close())
		r.Discard()
	}
}

// TestNothingIsReserved: a file system that keeps no room for anybody is written as ever.
func TestNothingIsReserved(t *testing.T) {
	disk := crashfs.New("/data")
	disk.SetFault(func(op crashfs.Op) error {
		if op.Name == "reserve" {
			return errors.ErrUnsupported
		}
		return nil
	})
	_, log := openLog(t, disk)
	require.NoError(t, log.Reserve(Headroom))
	require.False(t, log.Reserves())
	require.NoError(t, log.Write([]byte("*1\r\n$4\r\nPING\r\n"), 1))
	disk.Limit(disk.Used(), syscall.ENOSPC)
	require.ErrorIs(t, log.Write([]byte("*1\r\n$4\r\nPING\r\n"), 1), syscall.ENOSPC)
	require.NoError(t, log.Close())
}

// TestReservedRoomIsNoData: neither a kill nor a power cut makes what was reserved a part of the file.
func TestReservedRoomIsNoData(t *testing.T) {
	disk := crashfs.New("/data")
	_, log := openLog(t, disk)
	require.NoError(t, log.Reserve(Headroom))
	require.NoError(t, log.Write([]byte("*1\r\n$4\r\nPING\r\n"), 1))
	require.NoError(t, log.Sync())
	want, err := disk.ReadFile(log.Name())
	require.NoError(t, err)
	for _, after := range []*crashfs.FS{disk.Clone(), disk.Crash(rand.New(rand.NewPCG(1, 2)))} {
		_, again := openLog(t, after)
		require.EqualValues(t, len(want), again.Size())
		require.NoError(t, again.Close())
		require.EqualValues(t, int64(len(want)), after.Used()-manifestLength(t, after))
	}
}

// manifestLength is what the manifest takes up.
func manifestLength(t *testing.T, disk *crashfs.FS) int64 {
	text, err := disk.ReadFile("/data/aof/log.manifest")
	require.NoError(t, err)
	return int64(len(text))
}

// unsynced returns how many bytes are written and not on stable storage.
func (l *Log) unsynced() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size - l.synced
}

// TestUnsynced: what has been written is not on stable storage before it has been synced, or the file has been closed.
func TestUnsynced(t *testing.T) {
	disk := crashfs.New("/data")
	_, log := openLog(t, disk)
	require.Zero(t, log.unsynced())
	for range 2 {
		before := log.Size()
		require.NoError(t, log.Write([]byte("*1\r\n$4\r\nPING\r\n"), 1))
		require.Equal(t, log.Size()-before, log.unsynced())
		require.Positive(t, log.unsynced())
		require.NoError(t, log.Sync())
		require.Zero(t, log.unsynced())
	}
	disk.SetFault(func(op crashfs.Op) error {
		if op.Name == "sync" {
			return syscall.EIO
		}
		return nil
	})
	require.NoError(t, log.Write([]byte("*1\r\n$4\r\nPING\r\n"), 1))
	require.ErrorIs(t, log.Sync(), syscall.EIO)
	require.Positive(t, log.unsynced())
}

// TestSyncedIsUncached: the system need not keep in memory what has been synced, and is told so for a good deal at a time, of each file from its beginning.
func TestSyncedIsUncached(t *testing.T) {
	disk := crashfs.New("/data")
	set, log := openLog(t, disk)
	var uncached []int
	disk.SetFault(func(op crashfs.Op) error {
		if op.Name == "uncache" {
			uncached = append(uncached, op.Size)
		}
		return nil
	})
	var want []int
	for range 2 {
		since := log.size
		for range 2 {
			require.NoError(t, log.Write(make([]byte, uncacheStep/2), 1))
			require.NoError(t, log.Sync())
			if log.size-since < uncacheStep {
				require.Equal(t, want, uncached, "so little is not worth it")
			}
		}
		want = append(want, int(log.size-since))
		require.Equal(t, want, uncached)
		require.NoError(t, log.Sync())
		require.Equal(t, want, uncached, "it has been told once")
	}
	r, err := set.Rewrite(true)
	require.NoError(t, err)
	require.NoError(t, log.Write(make([]byte, uncacheStep), 1))
	finish := log.Switch(r)
	require.NoError(t, finish())
	require.NoError(t, log.Write(make([]byte, uncacheStep), 1))
	require.NoError(t, log.Sync())
	require.Equal(t, append(want, int(log.size)), uncached)
	require.NoError(t, log.Close())
	r.Discard()
}
