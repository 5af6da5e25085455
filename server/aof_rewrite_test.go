package server

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/persistence/crashfs"
	"headgate/server/config"
)

// rewriting reports whether a rewrite is under way or asked for.
func (w *aofServer) rewriting() bool {
	w.srv.Lock()
	defer w.srv.Unlock()
	k := &w.srv.aof.rewriter
	if !k.running || k.err != nil {
		return false
	}
	select {
	case <-k.over: // the process has ended, as far as the rewriter knows
		return false
	default:
		return k.asked || k.rewriting
	}
}

// settle does background work until the log is as the configuration asks for, and no rewrite is under way or asked for.
func (w *aofServer) settle(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(waitLong); ; time.Sleep(waitStep / 10) {
		w.pass(time.Duration(samplePeriod))
		require.False(t, w.tick())
		w.srv.Lock()
		k := &w.srv.aof.rewriter
		settled := !k.asked && !k.rewriting && w.srv.aof.open == w.srv.config.Get().AppendOnly
		w.srv.Unlock()
		if settled {
			return
		}
		require.True(t, time.Now().Before(deadline), "the log is not as it should be after %v", waitLong)
	}
}

// scenario is what a server does in the tests that fail each operation: it starts, writes, has its log rewritten while it writes,
// and ends in good order. It returns what was acknowledged; ended tells that the process ended before.
func scenario(rnd *rand.Rand, disk *crashfs.FS, now *int64, past *history) (kept int, ended bool) {
	w, err := startUnlessEnded(disk, config.FsyncAlways, now)
	if err != nil {
		return 0, true
	}
	defer w.kill()
	write := func(n int) bool {
		for range n {
			w.pass(time.Millisecond)
			reply, ended := w.ask(randomUnit(rnd))
			past.add(digest(w.srv))
			if ended {
				return false
			}
			if !strings.HasPrefix(string(reply), "-MISCONF") && !strings.Contains(string(reply), "-EXECABORT") {
				kept = past.n
			}
		}
		return true
	}
	if !write(10) {
		return kept, true
	}
	w.words("BGREWRITEAOF")
	deadline := time.Now().Add(waitLong)
	for i := 0; w.rewriting() && time.Now().Before(deadline); i++ {
		if i < 10 && !write(1) || w.tick() {
			return kept, true
		}
		time.Sleep(waitStep / 20) // the rewriter's turn
	}
	if !write(5) || w.tick() {
		return kept, true
	}
	return kept, endsProcess(func() {
		w.srv.endRewriter()
		w.srv.closeLog()
	})
}

// restart loads what a server has left, and requires the acknowledged writes to be there.
func restart(t *testing.T, disk *crashfs.FS, now int64, past *history, kept int, what string) {
	t.Helper()
	w, err := startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err, what)
	defer w.kill()
	past.require(t, digest(w.srv), kept, what)
	names, err := disk.List("/data/appendonlydir")
	require.NoError(t, err, what)
	want := []string{"appendonly.aof.manifest"}
	for _, e := range w.srv.aof.set.Files() {
		want = append(want, e.Name)
	}
	require.ElementsMatch(t, want, names, what)
}

// TestEachOperationFails: whatever file operation fails, once or from then on, nothing that was acknowledged is lost.
func TestEachOperationFails(t *testing.T) {
	seed := seedOf(t)
	for _, failure := range []error{syscall.ENOSPC, syscall.EIO} {
		for _, forEver := range []bool{false, true} {
			for n := 1; ; n++ {
				what := fmt.Sprintf("operation %d, %v, for ever: %v", n, failure, forEver)
				rnd := rand.New(rand.NewPCG(seed, 7))
				disk, now, past := crashfs.New("/data"), int64(wallAtStart), newHistory("")
				failed := ""
				disk.Fault = func(op crashfs.Op) error {
					if op.Number == n || forEver && op.Number > n {
						failed += " " + op.Name + " " + op.Path
						return failure
					}
					return nil
				}
				kept, _ := scenario(rnd, disk, &now, past)
				if failed == "" {
					require.Greater(t, n, 50)
					break
				}
				disk.Fault = nil
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
	seed := seedOf(t)
	for n := 1; ; n++ {
		rnd := rand.New(rand.NewPCG(seed, 8))
		disk, now, past := crashfs.New("/data"), int64(wallAtStart), newHistory("")
		killed := false
		disk.Fault = func(op crashfs.Op) error {
			if op.Number >= n {
				killed = true
				return errors.New("the process is gone")
			}
			return nil
		}
		kept, _ := scenario(rnd, disk, &now, past)
		if !killed {
			require.Greater(t, n, 50)
			return
		}
		disk.Fault = nil
		restart(t, disk.Clone(), now, past, kept, fmt.Sprintf("killed at operation %d", n))
	}
}

// TestRewriteAndConfigSet: the log is rewritten, ended and begun while commands go on, and holds everything in the end.
func TestRewriteAndConfigSet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seedOf(t), 9))
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncEverysec, &now, func(cfg *config.Config) { cfg.AutoAOFRewriteMinSize = 20 << 10 })
	require.NoError(t, err)
	for i := range 2000 {
		w.pass(time.Millisecond)
		_, ended := w.ask(randomUnit(rnd))
		require.False(t, ended)
		if i%10 == 0 {
			require.False(t, w.tick())
		}
		switch i {
		case 1000:
			require.Equal(t, "+OK\r\n", w.words("CONFIG", "SET", "appendonly", "no"))
			w.settle(t)
		case 1500:
			require.Equal(t, "+OK\r\n", w.words("CONFIG", "SET", "appendonly", "yes"))
			w.settle(t)
		}
	}
	w.settle(t)
	require.GreaterOrEqual(t, w.srv.aof.rewriter.rewrites, 2, "at least one by itself, and the one for CONFIG SET")
	state := digest(w.srv)
	w.kill()
	again, err := startAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	defer again.kill()
	require.Equal(t, state, digest(again.srv))
}

// TestConfigSetWhileLoading: the append-only file is begun or ended after loading if that has been asked for meanwhile.
func TestConfigSetWhileLoading(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	defer w.kill()
	for _, value := range []string{"no", "yes"} {
		w.srv.Lock()
		w.srv.beginLoading()
		w.srv.Unlock()
		require.Equal(t, "+OK\r\n", w.words("CONFIG", "SET", "appendonly", value))
		require.False(t, w.tick())
		w.srv.Lock()
		w.srv.endLoading()
		w.srv.Unlock()
		w.settle(t)
	}
}

// TestAppendOnlyDuringSnapshot: the append-only file is begun after a snapshot that is in the way.
func TestAppendOnlyDuringSnapshot(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	defer w.kill()
	require.Equal(t, "+OK\r\n", w.words("CONFIG", "SET", "appendonly", "no"))
	w.settle(t)
	require.Equal(t, "+Background saving started\r\n", w.words("BGSAVE"))
	require.Equal(t, "+OK\r\n", w.words("CONFIG", "SET", "appendonly", "yes"))
	time.Sleep(10 * waitStep) // the rewriter's turn, which finds the snapshot
	w.settle(t)
}

// TestReloadDuringRewrites: DEBUG LOADAOF finds the files whole in whatever step of a rewrite it comes, and no rewrite begins while only a
// part of the data is there.
func TestReloadDuringRewrites(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seedOf(t), 10))
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncEverysec, &now, func(cfg *config.Config) { cfg.EnableDebugCommand = config.AccessYes })
	require.NoError(t, err)
	defer w.kill()
	for i := range 100 {
		_, ended := w.ask(randomUnit(rnd))
		require.False(t, ended)
		require.Contains(t, w.words("BGREWRITEAOF"), "+Background append only file rewriting")
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Microsecond) // the rewriter's turn
		if rnd.IntN(2) == 0 {
			require.False(t, w.tick())
		}
		_, ended = w.ask(randomUnit(rnd))
		require.False(t, ended)
		before := digest(w.srv)
		require.Equal(t, "+OK\r\n", w.words("DEBUG", "LOADAOF"), "round %d", i)
		require.Equal(t, before, digest(w.srv), "round %d", i)
		w.settle(t)
	}
	require.Equal(t, 100, w.srv.aof.rewriter.rewrites)
}

// TestFailedReload: after a DEBUG LOADAOF that has failed no file is made of the part that is there, and the next one brings back all.
func TestFailedReload(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncEverysec, &now, func(cfg *config.Config) { cfg.EnableDebugCommand = config.AccessYes })
	require.NoError(t, err)
	defer w.kill()
	require.Equal(t, "+OK\r\n", w.words("SET", "k", "v"))
	before := digest(w.srv)
	fail := func() {
		disk.Fault = func(op crashfs.Op) error {
			if strings.HasSuffix(op.Path, ".incr.aof") {
				return syscall.EIO
			}
			return nil
		}
		require.Equal(t, "-"+errLoadAOF+"\r\n", w.words("DEBUG", "LOADAOF"))
		disk.Fault = nil
		require.Empty(t, digest(w.srv))
	}
	fail()
	files, err := disk.List("/data")
	require.NoError(t, err)
	for _, words := range [][]string{{"SAVE"}, {"BGSAVE"}, {"BGSAVE", "SCHEDULE"}, {"BGREWRITEAOF"}} {
		require.Equal(t, "-"+errNotWhole+"\r\n", w.words(words...), words)
	}
	w.srv.Lock()
	w.srv.askRewrite() // as a file that has grown does
	w.srv.Unlock()
	for range 20 {
		w.pass(time.Duration(samplePeriod))
		require.False(t, w.tick())
	}
	require.Equal(t, "+OK\r\n", w.words("DEBUG", "LOADAOF"))
	require.Equal(t, before, digest(w.srv))
	after, err := disk.List("/data")
	require.NoError(t, err)
	require.Equal(t, files, after)
	require.Zero(t, w.srv.aof.rewriter.rewrites)

	fail()
	require.Equal(t, "+OK\r\n", w.words("FLUSHALL"))
	require.Contains(t, w.words("BGREWRITEAOF"), "+Background")
	require.Equal(t, "+OK\r\n", w.words("SAVE"))
}
