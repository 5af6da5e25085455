package journal_test

import (
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/persistence"
	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/journal"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// startUnlogged starts a server that has data and no append-only file.
func startUnlogged(t *testing.T) (*servertest.AOFServer, *crashfs.FS) {
	t.Helper()
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "appendonly", "no"))
	w.Settle(t)
	require.Equal(t, "+OK\r\n", w.Words("SET", "before", "1"))
	return w, disk
}

// beginFile has the append-only file be begun, with a base that is not written yet.
func beginFile(t *testing.T, w *servertest.AOFServer) {
	t.Helper()
	require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "appendonly", "yes"))
	require.Eventually(t, w.Logging, servertest.WaitLong, servertest.WaitStep)
	require.Equal(t, "+OK\r\n", w.Words("SET", "after", "1"))
}

// requireRestart requires a start to find what a server has left that has ended.
func requireRestart(t *testing.T, w *servertest.AOFServer, disk *crashfs.FS) {
	t.Helper()
	state, now := servertest.Digest(w.Srv), int64(servertest.WallAtStart)
	w.Srv.Journal.Finish()
	again, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	defer again.Kill()
	require.Equal(t, state, servertest.Digest(again.Srv))
}

// TestEndWhileTheFileIsBegun: a server that ended while the base of its first append-only file was being written gave that up, and the next start had no keys.
func TestEndWhileTheFileIsBegun(t *testing.T) {
	for name, end := range map[string]func(w *servertest.AOFServer){
		"SIGTERM":          func(w *servertest.AOFServer) { require.NoError(t, w.Srv.Shutdown(0)) },
		"SHUTDOWN NOSAVE":  func(w *servertest.AOFServer) { require.Empty(t, w.Words("SHUTDOWN", "NOSAVE")) },
		"a script cut off": func(w *servertest.AOFServer) { w.Srv.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			w, disk := startUnlogged(t)
			beginFile(t, w)
			end(w)
			require.True(t, w.Srv.IsStopping())
			requireRestart(t, w, disk)
		})
	}
}

// TestEndBeforeTheFileIsBegun: what has not been begun is waited for, except by a command, which is refused.
func TestEndBeforeTheFileIsBegun(t *testing.T) {
	w, disk := startUnlogged(t)
	w.Srv.Lock()
	require.NoError(t, w.Srv.Config.Set([]config.Pair{{Name: "appendonly", Value: "yes"}}, true))
	require.ErrorContains(t, w.Srv.End(0), "in memory only") // while the lock is held nothing is begun
	w.Srv.Unlock()
	require.False(t, w.Srv.IsStopping())
	require.NoError(t, w.Srv.Shutdown(0))
	requireRestart(t, w, disk)
}

// TestEndWhileTheFileCannotBeWritten: the server goes on, unless it is forced to end.
func TestEndWhileTheFileCannotBeWritten(t *testing.T) {
	for _, begun := range []bool{true, false} {
		w, disk := startUnlogged(t)
		fail := func() {
			disk.SetFault(func(op crashfs.Op) error {
				if strings.HasSuffix(op.Path, ".base.rdb") {
					return syscall.ENOSPC
				}
				return nil
			})
		}
		if begun {
			beginFile(t, w)
			fail()
		} else {
			fail()
			w.Words("CONFIG", "SET", "appendonly", "yes")
		}
		started := time.Now()
		require.Error(t, w.Srv.Shutdown(0))
		require.Less(t, time.Since(started), journal.RewriteRetry, "an error is not waited out")
		require.False(t, w.Srv.IsStopping())
		require.Equal(t, "$1\r\n1\r\n", w.Words("GET", "before"))
		require.Contains(t, w.Words("SHUTDOWN"), "-ERR Errors trying to SHUTDOWN")
		disk.SetFault(nil)
		require.Eventually(t, func() bool { return w.Srv.Shutdown(0) == nil }, servertest.WaitLong, servertest.WaitStep, "one that had failed may be told of once more")
		requireRestart(t, w, disk)
	}

	w, disk := startUnlogged(t)
	beginFile(t, w)
	disk.SetFault(servertest.NoSpace)
	require.NoError(t, w.Srv.Shutdown(config.ShutdownForce))
	require.True(t, w.Srv.IsStopping())
	w.Srv.Journal.Finish()
}

// TestFileThatIsWantedAgain: a rewriter that had seen appendonly no ended the file when it had been set to yes again, and INFO told that all was done.
func TestFileThatIsWantedAgain(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	set := func(value string) {
		w.Srv.Lock()
		defer w.Srv.Unlock()
		require.NoError(t, w.Srv.Config.Set([]config.Pair{{Name: "appendonly", Value: value}}, true))
	}
	goOn := w.Srv.Journal.HoldCommits()
	set("no")
	time.Sleep(20 * time.Millisecond) // the rewriter looks
	set("yes")
	goOn()
	w.Srv.Journal.EndRewriter()
	require.True(t, w.Logging())
	require.Equal(t, "+OK\r\n", w.Words("SET", "k", "v"))
	requireRestart(t, w, disk)
}

// TestFileThatIsWantedElsewhere: appendonly no, another dir and appendonly yes, before the rewriter looks, left the file where it was.
func TestFileThatIsWantedElsewhere(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	now := int64(servertest.WallAtStart)
	start := func(dir string) *servertest.AOFServer {
		w, err := servertest.StartAOF(persistence.OS{}, config.FsyncEverysec, &now, func(cfg *config.Config) {
			cfg.Dir, cfg.EnableProtectedConfigs = dir, config.AccessYes
		})
		require.NoError(t, err)
		return w
	}
	w := start(first)
	require.Equal(t, "+OK\r\n", w.Words("SET", "k", "v"))
	goOn := w.Srv.Journal.HoldCommits()
	for _, pair := range []config.Pair{{Name: "appendonly", Value: "no"}, {Name: "dir", Value: second}, {Name: "appendonly", Value: "yes"}} {
		w.Srv.Lock()
		require.NoError(t, w.Srv.Config.Set([]config.Pair{pair}, true))
		w.Srv.Unlock()
	}
	goOn()
	done := func() bool {
		w.Tick()
		w.Srv.Lock()
		defer w.Srv.Unlock()
		w.Srv.RetryRewrite()
		return !w.Srv.Begins(w.Srv.Config.Get()) && !w.Srv.AOF.Rewriter.Rewriting
	}
	require.Eventually(t, done, 20*time.Second, time.Millisecond)
	w.Srv.EndRewriter()
	w.Srv.CloseLog()
	w.Kill()
	w = start(second)
	defer w.Kill()
	require.Equal(t, "$1\r\nv\r\n", w.Words("GET", "k"))
}

// TestFileThatIsLeftBehind: who changes dir alone is told that the file stays.
func TestFileThatIsLeftBehind(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	now := int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(persistence.OS{}, config.FsyncEverysec, &now, func(cfg *config.Config) {
		cfg.Dir, cfg.EnableProtectedConfigs = first, config.AccessYes
	})
	require.NoError(t, err)
	defer w.Kill()
	var text strings.Builder
	w.Srv.Logger = slog.New(slog.NewTextHandler(&text, nil))
	move := func(dir string) string {
		text.Reset()
		w.Srv.Lock()
		defer w.Srv.Unlock()
		require.NoError(t, w.Srv.Config.Set([]config.Pair{{Name: "dir", Value: dir}}, true))
		return text.String()
	}
	require.Contains(t, move(second), "the append-only file stays where it is")
	require.Empty(t, move(first), "where the file is")
}

// TestCheckOfAFullDisk says what a start would end with: where there is an append-only file already, that is nothing.
func TestCheckOfAFullDisk(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	cfg := config.Default()
	cfg.Dir, cfg.AppendOnly = "/data", true
	_, err := journal.CheckData(disk, cfg)
	require.NoError(t, err)
	disk.Limit(disk.Used()+1<<20, syscall.ENOSPC)
	_, err = journal.CheckData(disk, cfg)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "the append-only file cannot be begun, which takes ")

	disk.Limit(0, nil)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	w.Kill()
	disk.Limit(disk.Used()+1<<20, syscall.ENOSPC)
	_, err = journal.CheckData(disk, cfg)
	require.NoError(t, err)
}
