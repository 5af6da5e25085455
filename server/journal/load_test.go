package journal_test

import (
	"bytes"
	"log/slog"
	"runtime"
	"strconv"
	"testing"
	"time"

	"headgate/persistence/crashfs"
	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// newSnapshotServer returns a server that keeps snapshots, and no append-only file, on a disk, and a client of it.
func newSnapshotServer(t *testing.T, disk *crashfs.FS, o server.Options) *servertest.WorkerClient {
	cfg := servertest.Unsaved()
	cfg.Dir, o.FS = "/data", disk
	return servertest.NewWorkerClientOf(t, server.New(config.NewLive(cfg), o))
}

// TestLoad: a server is ready when its data are loaded, and ends with the cause if they cannot be.
func TestLoad(t *testing.T) {
	disk := crashfs.New("/data")
	w := newSnapshotServer(t, disk, server.Options{})
	w.Ask("SET", "k", "v")
	require.Equal(t, "+OK\r\n", w.Ask("SAVE"))
	for _, whole := range []bool{true, false} {
		if !whole {
			require.NoError(t, disk.Truncate("/data/dump.rdb", 20))
		}
		var text bytes.Buffer
		over := make(chan string, 1)
		w := newSnapshotServer(t, disk, server.Options{
			Log:   slog.New(slog.NewTextHandler(&text, nil)),
			Ready: func() { over <- "ready" },
			Exit: func(code int) {
				over <- "ended with " + strconv.Itoa(code)
				runtime.Goexit()
			},
		})
		w.Srv.Load()
		got := <-over
		if whole {
			require.Equal(t, "ready", got)
			require.Equal(t, "$1\r\nv\r\n", w.Ask("GET", "k"))
			continue
		}
		require.Equal(t, "ended with 1", got)
		require.Contains(t, text.String(), "the data cannot be loaded")
		require.Contains(t, text.String(), "/data/dump.rdb")
		require.Contains(t, w.Ask("GET", "k"), "-LOADING")
	}
}

// TestKeysPastTheirTimeAreNotLoaded: they are counted, as redis-server does.
func TestKeysPastTheirTimeAreNotLoaded(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	o := server.Options{Clock: command.NewClock(func() (wall, mono int64) { return now, now })}
	w := newSnapshotServer(t, disk, o)
	for key, ms := range map[string]string{"first": "10", "second": "1000", "third": "60000"} {
		require.Equal(t, "+OK\r\n", w.Ask("SET", key, "v", "PX", ms))
	}
	require.Equal(t, "+OK\r\n", w.Ask("SET", "lasting", "v"))
	require.Equal(t, "+OK\r\n", w.Ask("SAVE"))
	now += int64(2 * time.Second)
	w = newSnapshotServer(t, disk, o)
	require.NoError(t, w.Srv.LoadSnapshot())
	require.Equal(t, ":2\r\n", w.Ask("DBSIZE"))
	info := w.Ask("INFO", "persistence")
	require.Contains(t, info, "\r\nrdb_last_load_keys_expired:2\r\n")
	require.Contains(t, info, "\r\nrdb_last_load_keys_loaded:2\r\n")
}
