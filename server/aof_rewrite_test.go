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
	k := &w.srv.aof.keeper
	if !k.running || k.err != nil {
		return false
	}
	select {
	case <-k.over: // the process has ended, as far as the keeper knows
		return false
	default:
		return k.asked || k.rewriting
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
		time.Sleep(waitStep / 20) // the keeper's turn
	}
	if !write(5) || w.tick() {
		return kept, true
	}
	return kept, endsProcess(func() {
		w.srv.endKeeper()
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
	settle := func() {
		require.Eventually(t, func() bool {
			w.pass(time.Duration(samplePeriod))
			require.False(t, w.tick())
			w.srv.Lock()
			defer w.srv.Unlock()
			k := &w.srv.aof.keeper
			return !k.asked && !k.rewriting && w.srv.aof.open == w.srv.config.Get().AppendOnly
		}, waitLong, waitStep)
	}
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
			settle()
		case 1500:
			require.Equal(t, "+OK\r\n", w.words("CONFIG", "SET", "appendonly", "yes"))
			settle()
		}
	}
	settle()
	require.GreaterOrEqual(t, w.srv.aof.keeper.rewrites, 2, "at least one by itself, and the one for CONFIG SET")
	state := digest(w.srv)
	w.kill()
	again, err := startAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	defer again.kill()
	require.Equal(t, state, digest(again.srv))
}
