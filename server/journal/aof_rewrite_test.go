package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"headgate/persistence/crashfs"
	"headgate/server/admin"
	"headgate/server/config"
	"headgate/server/exec"
	"headgate/server/journal"
	"headgate/server/limiter"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// rewriteTicks is for how many ticks a rewrite is waited for. Where the disk has failed for ever since it was asked for, it does not come.
const rewriteTicks = 4000

// scenario is what a server does in the tests that fail each operation: it starts, writes, has its log rewritten while it writes,
// and ends in good order. It returns what was acknowledged; ended tells that the process ended before.
func scenario(rnd *rand.Rand, disk *crashfs.FS, now *int64, past *servertest.History) (kept int, ended bool) {
	w, err := servertest.StartUnlessEnded(disk, config.FsyncAlways, now)
	if err != nil {
		return 0, true
	}
	defer w.Kill()
	write := func(n int) bool {
		for range n {
			w.Pass(time.Millisecond)
			reply, ended := w.Ask(servertest.RandomUnit(rnd))
			past.Add(servertest.Digest(w.Srv))
			if ended {
				return false
			}
			if !strings.HasPrefix(string(reply), "-MISCONF") && !strings.Contains(string(reply), "-EXECABORT") {
				kept = past.N
			}
		}
		return true
	}
	if !write(10) {
		return kept, true
	}
	w.Words("BGREWRITEAOF")
	for i := 0; w.Rewriting() && i < rewriteTicks; i++ {
		if i < 10 && !write(1) || w.Tick() {
			return kept, true
		}
		time.Sleep(servertest.WaitStep / 20) // the rewriter's turn
	}
	if !write(5) || w.Tick() {
		return kept, true
	}
	return kept, servertest.EndsProcess(func() {
		w.Srv.EndRewriter()
		w.Srv.CloseLog()
	})
}

// restart loads what a server has left, and requires the acknowledged writes to be there.
func restart(t *testing.T, disk *crashfs.FS, now int64, past *servertest.History, kept int, what string) {
	t.Helper()
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err, what)
	defer w.Kill()
	past.Require(t, servertest.Digest(w.Srv), kept, what)
	names, err := disk.List("/data/appendonlydir")
	require.NoError(t, err, what)
	names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, ".cut-at-") }) // of sectors that were not synced
	want := []string{"appendonly.aof.manifest"}
	for _, e := range w.Srv.AOF.Set.Files() {
		want = append(want, e.Name)
	}
	require.ElementsMatch(t, want, names, what)
}

// TestEachOperationFails: whatever file operation fails, once or from then on, nothing that was acknowledged is lost.
func TestEachOperationFails(t *testing.T) {
	seed := servertest.SeedOf(t)
	servertest.InBubble(t, func(t *testing.T) { eachOperationFails(t, seed) }) // a rewrite waits for a disk that has failed
}

func eachOperationFails(t *testing.T, seed uint64) {
	for _, failure := range []error{syscall.ENOSPC, syscall.EIO} {
		for _, forEver := range []bool{false, true} {
			for n := 1; ; n++ {
				what := fmt.Sprintf("operation %d, %v, for ever: %v", n, failure, forEver)
				rnd := rand.New(rand.NewPCG(seed, 7))
				disk, now, past := crashfs.New("/data"), int64(servertest.WallAtStart), servertest.NewHistory("")
				failed := ""
				disk.SetFault(func(op crashfs.Op) error {
					if op.Number == n || forEver && op.Number > n {
						failed += " " + op.Name + " " + op.Path
						return failure
					}
					return nil
				})
				kept, _ := scenario(rnd, disk, &now, past)
				if failed == "" {
					require.Greater(t, n, 50)
					break
				}
				disk.SetFault(nil)
				what += failed[:min(len(failed), 200)]
				restart(t, disk.Clone(), now, past, kept, what)
				restart(t, disk.Crash(rnd), now, past, kept, what+", and the power fails")
			}
		}
	}
}

// TestKillAtEachStep: a process that is killed between any two file operations of a start, a rewrite and an end has lost nothing, and
// its leftovers are cleaned up.
func TestKillAtEachStep(t *testing.T) {
	seed := servertest.SeedOf(t)
	for n := 1; ; n++ {
		rnd := rand.New(rand.NewPCG(seed, 8))
		disk, now, past := crashfs.New("/data"), int64(servertest.WallAtStart), servertest.NewHistory("")
		killed := false
		disk.SetFault(func(op crashfs.Op) error {
			if op.Number >= n {
				killed = true
				return errors.New("the process is gone")
			}
			return nil
		})
		kept, _ := scenario(rnd, disk, &now, past)
		if !killed {
			require.Greater(t, n, 50)
			return
		}
		disk.SetFault(nil)
		restart(t, disk.Clone(), now, past, kept, fmt.Sprintf("killed at operation %d", n))
	}
}

// TestRewriteAndConfigSet: the log is rewritten, ended and begun while commands go on, and holds everything in the end.
func TestRewriteAndConfigSet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(servertest.SeedOf(t), 9))
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, func(cfg *config.Config) { cfg.AutoAOFRewriteMinSize = 20 << 10 })
	require.NoError(t, err)
	for i := range 2000 {
		w.Pass(time.Millisecond)
		_, ended := w.Ask(servertest.RandomUnit(rnd))
		require.False(t, ended)
		if i%10 == 0 {
			require.False(t, w.Tick())
		}
		switch i {
		case 1000:
			require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "appendonly", "no"))
			w.Settle(t)
		case 1500:
			require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "appendonly", "yes"))
			w.Settle(t)
		}
	}
	w.Settle(t)
	require.GreaterOrEqual(t, w.Srv.AOF.Rewriter.Rewrites, 2, "at least one by itself, and the one for CONFIG SET")
	state := servertest.Digest(w.Srv)
	w.Kill()
	again, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	defer again.Kill()
	require.Equal(t, state, servertest.Digest(again.Srv))
}

// TestConfigSetWhileLoading: the append-only file is begun or ended after loading if that has been asked for meanwhile.
func TestConfigSetWhileLoading(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	for _, value := range []string{"no", "yes"} {
		w.Srv.Lock()
		w.Srv.BeginLoading()
		w.Srv.Unlock()
		require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "appendonly", value))
		require.False(t, w.Tick())
		w.Srv.Lock()
		w.Srv.EndLoading()
		w.Srv.Unlock()
		w.Settle(t)
	}
}

// TestAppendOnlyDuringSnapshot: the append-only file is begun after a snapshot that is in the way.
func TestAppendOnlyDuringSnapshot(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "appendonly", "no"))
	w.Settle(t)
	require.Equal(t, "+Background saving started\r\n", w.Words("BGSAVE"))
	require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "appendonly", "yes"))
	time.Sleep(10 * servertest.WaitStep) // the rewriter's turn, which finds the snapshot
	w.Settle(t)
}

// TestReloadDuringRewrites: DEBUG LOADAOF finds the files whole in whatever step of a rewrite it comes, and no rewrite begins while only a
// part of the data is there.
func TestReloadDuringRewrites(t *testing.T) {
	rnd := rand.New(rand.NewPCG(servertest.SeedOf(t), 10))
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, func(cfg *config.Config) { cfg.EnableDebugCommand = config.AccessYes })
	require.NoError(t, err)
	defer w.Kill()
	for i := range 100 {
		_, ended := w.Ask(servertest.RandomUnit(rnd))
		require.False(t, ended)
		require.Contains(t, w.Words("BGREWRITEAOF"), "+Background append only file rewriting")
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Microsecond) // the rewriter's turn
		if rnd.IntN(2) == 0 {
			require.False(t, w.Tick())
		}
		_, ended = w.Ask(servertest.RandomUnit(rnd))
		require.False(t, ended)
		before := servertest.Digest(w.Srv)
		require.Equal(t, "+OK\r\n", w.Words("DEBUG", "LOADAOF"), "round %d", i)
		require.Equal(t, before, servertest.Digest(w.Srv), "round %d", i)
		w.Settle(t)
	}
	require.Equal(t, 100, w.Srv.AOF.Rewriter.Rewrites)
}

// TestFailedReload: after a DEBUG LOADAOF that has failed no file is made of the part that is there, and the next one brings back all.
func TestFailedReload(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, func(cfg *config.Config) { cfg.EnableDebugCommand = config.AccessYes })
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, "+OK\r\n", w.Words("SET", "k", "v"))
	before := servertest.Digest(w.Srv)
	fail := func() {
		disk.SetFault(func(op crashfs.Op) error {
			if strings.HasSuffix(op.Path, ".incr.aof") {
				return syscall.EIO
			}
			return nil
		})
		require.Equal(t, "-"+admin.ErrLoadAOF+"\r\n", w.Words("DEBUG", "LOADAOF"))
		disk.SetFault(nil)
		require.Empty(t, servertest.Digest(w.Srv))
	}
	fail()
	files, err := disk.List("/data")
	require.NoError(t, err)
	for _, words := range [][]string{{"SAVE"}, {"BGSAVE"}, {"BGSAVE", "SCHEDULE"}, {"BGREWRITEAOF"}} {
		require.Equal(t, "-"+journal.ErrNotWhole+"\r\n", w.Words(words...), words)
	}
	w.Srv.Lock()
	w.Srv.AskRewrite() // as a file that has grown does
	w.Srv.Unlock()
	for range 20 {
		w.Pass(time.Duration(exec.SamplePeriod))
		require.False(t, w.Tick())
	}
	require.Equal(t, "+OK\r\n", w.Words("DEBUG", "LOADAOF"))
	require.Equal(t, before, servertest.Digest(w.Srv))
	after, err := disk.List("/data")
	require.NoError(t, err)
	require.Equal(t, files, after)
	require.Zero(t, w.Srv.AOF.Rewriter.Rewrites)

	fail()
	require.Equal(t, "+OK\r\n", w.Words("FLUSHALL"))
	require.Contains(t, w.Words("BGREWRITEAOF"), "+Background")
	require.Equal(t, "+OK\r\n", w.Words("SAVE"))
}

// TestGrowthThatAsksForARewrite: a rewrite is asked for when the file has grown by auto-aof-rewrite-percentage, and not a byte before.
func TestGrowthThatAsksForARewrite(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, func(cfg *config.Config) {
		cfg.AutoAOFRewritePercentage, cfg.AutoAOFRewriteMinSize = 50, 1000
	})
	require.NoError(t, err)
	defer w.Kill()
	for _, tc := range []struct {
		start, size int64
		asks        bool
	}{
		{2000, 2999, false},
		{2000, 3000, true},
		{2000, 2000, false},
		{0, 999, false},
		{0, 1000, true},
	} {
		w.Srv.Lock()
		w.Srv.AOF.StartSize, w.Srv.AOF.Size = tc.start, tc.size
		w.Srv.RewriteIfGrown()
		asked := w.Srv.AOF.Rewriter.Asked
		w.Srv.AOF.Rewriter.Asked = false // before the rewriter sees it
		w.Srv.Unlock()
		require.Equal(t, tc.asks, asked, "%+v", tc)
	}
}

// TestGrowthIsCountedFromTheBase after a start, as by redis-server: from all that was loaded, a server that is started often would have its file rewritten ever
// more seldom. INFO tells of the base's keys, too.
func TestGrowthIsCountedFromTheBase(t *testing.T) {
	servertest.InBubble(t, func(t *testing.T) {
		disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
		w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
		require.NoError(t, err)
		require.Equal(t, "+OK\r\n", w.Words("SET", "in-base", "v"))
		w.Words("BGREWRITEAOF")
		for w.Rewriting() {
			w.Tick()
			time.Sleep(servertest.WaitStep)
		}
		base := w.Srv.AOF.Size // and an increment with nothing in it
		require.Equal(t, "+OK\r\n", w.Words("SET", "behind", "v"))
		require.False(t, w.Tick())
		w.Srv.EndRewriter()
		w.Srv.CloseLog()
		w.Kill()

		w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
		require.NoError(t, err)
		defer w.Kill()
		info := w.Words("INFO", "persistence")
		require.Contains(t, info, fmt.Sprintf("\r\naof_base_size:%d\r\n", base))
		require.Contains(t, info, "\r\nrdb_last_load_keys_loaded:1\r\n")
		require.Greater(t, w.Srv.AOF.Size, base)

		// A new configuration counts at once, even if nothing is written any more.
		require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "auto-aof-rewrite-min-size", "1", "auto-aof-rewrite-percentage", "1"))
		w.Srv.Lock()
		w.Srv.RetryRewrite()
		w.Srv.Unlock()
		for w.Rewriting() {
			w.Tick()
			time.Sleep(servertest.WaitStep)
		}
		require.Contains(t, w.Words("INFO", "persistence"), "\r\naof_rewrites:1\r\n")
	})
}

// TestPostponedFileIsTold: that the append-only file which CONFIG SET has asked for is not begun yet stands in the log. A rewrite of a file that
// goes on meanwhile is not told of so: nothing is missing.
func TestPostponedFileIsTold(t *testing.T) {
	servertest.InBubble(t, func(t *testing.T) {
		const postponed = "the append-only file cannot be created yet"
		disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
		w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
		require.NoError(t, err)
		defer w.Kill()
		var text bytes.Buffer
		w.Srv.Logger = slog.New(slog.NewTextHandler(&text, nil))
		// during has the rewriter look at what there is to do while an effect is not whole, as when a script yields.
		during := func(ask func()) {
			w.Srv.Lock()
			w.Srv.Effects.Depth++
			ask()
			w.Srv.Unlock()
			synctest.Wait()
			w.Srv.Lock()
			w.Srv.Effects.Depth--
			w.Srv.Unlock()
			time.Sleep(journal.RewriteRetry)
			w.Settle(t)
		}
		during(w.Srv.AskRewrite)
		require.Equal(t, 1, w.Srv.AOF.Rewriter.Rewrites)
		require.NotContains(t, text.String(), postponed)
		require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "appendonly", "no"))
		w.Settle(t)
		during(func() { require.NoError(t, w.Srv.Config.Set([]config.Pair{{Name: "appendonly", Value: "yes"}}, true)) })
		require.Contains(t, text.String(), postponed)
		require.True(t, w.Logging())
	})
}

// TestRewritesThatFailAreTriedLessOften: in three hours, and the manifest does not grow by them.
func TestRewritesThatFailAreTriedLessOften(t *testing.T) {
	servertest.InBubble(t, func(t *testing.T) {
		disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
		w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, func(cfg *config.Config) {
			cfg.AutoAOFRewritePercentage, cfg.AutoAOFRewriteMinSize = 1, 1
		})
		require.NoError(t, err)
		defer w.Kill()
		attempts := 0
		disk.SetFault(func(op crashfs.Op) error {
			if strings.HasSuffix(op.Path, ".base.rdb") {
				if op.Name != "remove" {
					attempts++
				}
				return syscall.EIO
			}
			return nil
		})
		for range 3 * 3600 / 5 {
			w.Words("INCR", "n")
			time.Sleep(5 * time.Second)
			synctest.Wait()
			require.False(t, w.Tick())
		}
		require.Greater(t, attempts, 8)
		require.Less(t, attempts, 16)
		require.LessOrEqual(t, len(w.Srv.AOF.Set.Files()), 2)
		disk.SetFault(nil)
		w.Words("BGREWRITEAOF") // whoever asks does not wait
		w.Settle(t)
		require.Equal(t, 1, w.Srv.AOF.Rewriter.Rewrites)
	})
}

// TestRewritesForWhatIsInMemoryOnly are tried again within minutes, however often they have failed.
func TestRewritesForWhatIsInMemoryOnly(t *testing.T) {
	servertest.InBubble(t, func(t *testing.T) {
		disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
		w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, func(cfg *config.Config) { cfg.Unwritable = limiter.KeepInMemory })
		require.NoError(t, err)
		defer w.Kill()
		w.Fill(disk)
		w.Words("RL.FIXED", "k", "9", "100h")
		attempts := 0
		disk.SetFault(func(op crashfs.Op) error {
			if strings.HasSuffix(op.Path, ".base.rdb") {
				if op.Name != "remove" {
					attempts++
				}
				return syscall.EIO
			}
			return nil
		})
		pass := func(d time.Duration) {
			for ; d > 0; d -= 5 * time.Second {
				time.Sleep(5 * time.Second)
				w.Pass(5 * time.Second)
				require.False(t, w.Tick())
				synctest.Wait()
			}
		}
		pass(3 * time.Hour)
		require.Greater(t, attempts, 3*60/5)
		require.Less(t, attempts, 3*60/5+12)
		disk.SetFault(nil)
		pass(5 * time.Minute)
		w.Settle(t)
		require.Equal(t, 1, w.Srv.AOF.Rewriter.Rewrites)
	})
}

// TestScriptInTheWayOfARewrite: while one keeps a rewrite from beginning, nothing is created for it again and again.
func TestScriptInTheWayOfARewrite(t *testing.T) {
	servertest.InBubble(t, func(t *testing.T) {
		disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
		w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
		require.NoError(t, err)
		defer w.Kill()
		w.Srv.Lock()
		w.Srv.Effects.Depth++
		w.Srv.AskRewrite()
		w.Srv.Unlock()
		for range 20 {
			synctest.Wait()
			w.Srv.Lock()
			w.Srv.RetryRewrite()
			w.Srv.Unlock()
		}
		require.Len(t, w.Srv.AOF.Set.Files(), 1)
		w.Srv.Lock()
		w.Srv.Effects.Depth--
		w.Srv.Unlock()
		w.Settle(t)
		require.Equal(t, 1, w.Srv.AOF.Rewriter.Rewrites)
	})
}
