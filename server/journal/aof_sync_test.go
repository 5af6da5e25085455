package journal_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/journal"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestEverysec: a sync begins within a second of each acknowledgement, so that a power cut takes nothing that is older than a second and
// the time of one sync. Writers wait for that if they must, and only then.
func TestEverysec(t *testing.T) {
	seed := servertest.SeedOf(t)
	for _, tc := range []struct {
		least, most time.Duration // that a sync takes
		waits       bool
	}{
		{time.Millisecond, 20 * time.Millisecond, false},
		{900 * time.Millisecond, 999 * time.Millisecond, false},
		{time.Millisecond, 4 * time.Second, true},
		{3 * time.Second, 3 * time.Second, true},
		{30 * time.Second, 60 * time.Second, true},
	} {
		t.Run(fmt.Sprint(tc.least, " to ", tc.most), func(t *testing.T) {
			servertest.InBubble(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 11))
				times := rand.New(rand.NewPCG(seed, 12)) // drawn from by one goroutine at a time: under the lock of takes
				var mu sync.Mutex
				disk := &servertest.SlowFS{FS: crashfs.New("/data"), Takes: func() time.Duration {
					mu.Lock()
					defer mu.Unlock()
					return tc.least + time.Duration(times.Int64N(int64(tc.most-tc.least)+1))
				}}
				now := time.Now().UnixNano()
				w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
				require.NoError(t, err)
				disk.TakeLate()
				past := servertest.NewHistory(servertest.Digest(w.Srv))
				var acks []time.Time
				cutAt := time.Duration(rnd.Int64N(int64(2 * tc.most))) // after the last write
				for end := time.Now().Add(20*time.Second + 3*tc.most); time.Now().Before(end); {
					time.Sleep(time.Duration(rnd.Int64N(int64(100 * time.Millisecond))))
					if rnd.IntN(50) == 0 {
						time.Sleep(time.Duration(rnd.Int64N(int64(3 * time.Second))))
					}
					now = time.Now().UnixNano()
					_, ended := w.Ask(servertest.RandomUnit(rnd))
					require.False(t, ended)
					disk.Acknowledged()
					past.Add(servertest.Digest(w.Srv))
					acks = append(acks, time.Now())
				}
				time.Sleep(cutAt)
				kept := 0
				for kept < len(acks) && time.Since(acks[kept]) > journal.SyncPeriod+tc.most {
					kept++
				}
				after := disk.Crash(rnd)
				require.LessOrEqual(t, disk.TakeLate(), journal.SyncPeriod, "the longest that acknowledged writes waited for their sync to begin")
				require.Greater(t, disk.BegunSyncs(), 3)
				require.Equal(t, tc.waits, w.Srv.AOF.Syncer.Delays() > 0, "writers wait")
				w.Kill()
				w, err = servertest.StartAOF(after, config.FsyncNo, &now, nil)
				require.NoError(t, err)
				defer w.Kill()
				past.Require(t, servertest.Digest(w.Srv), kept, "after a power cut")
			})
		})
	}
}

// TestEverysecSyncsOnce: what has been synced is not synced again, and an idle server does not sync.
func TestEverysecSyncsOnce(t *testing.T) {
	servertest.InBubble(t, func(t *testing.T) {
		disk := &servertest.SlowFS{FS: crashfs.New("/data"), Takes: func() time.Duration { return 2 * time.Millisecond }}
		now := time.Now().UnixNano()
		w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
		require.NoError(t, err)
		defer w.Kill()
		before := disk.BegunSyncs()
		for range 1200 {
			w.Words("INCR", "k")
			time.Sleep(2 * time.Millisecond)
		}
		require.Equal(t, before+2, disk.BegunSyncs())
		time.Sleep(time.Hour)
		require.Equal(t, before+3, disk.BegunSyncs())
	})
}

// TestUnsyncedWritesAreCaughtUp: what was written while nothing was to be synced stayed so when that was over, until something else was written.
func TestUnsyncedWritesAreCaughtUp(t *testing.T) {
	servertest.InBubble(t, func(t *testing.T) {
		disk := &servertest.SlowFS{FS: crashfs.New("/data"), Takes: func() time.Duration { return 2 * time.Millisecond }}
		now := time.Now().UnixNano()
		w, err := servertest.StartAOF(disk, config.FsyncNo, &now, func(cfg *config.Config) { cfg.NoAppendFsyncOnRewrite = true })
		require.NoError(t, err)
		defer w.Kill()
		write := func() {
			t.Helper()
			before := disk.BegunSyncs()
			w.Words("INCR", "k")
			time.Sleep(10 * time.Second)
			require.Equal(t, before, disk.BegunSyncs())
		}
		caughtUp := func() {
			t.Helper()
			before := disk.BegunSyncs()
			time.Sleep(journal.SyncPeriod + time.Millisecond)
			require.Equal(t, before+1, disk.BegunSyncs())
			time.Sleep(time.Minute)
			require.Equal(t, before+1, disk.BegunSyncs())
		}
		write()
		require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "appendfsync", "everysec"))
		caughtUp()

		require.Contains(t, w.Words("BGREWRITEAOF"), "+Background")
		time.Sleep(time.Second) // the snapshot has begun, and goes on when there is background work
		write()
		w.Settle(t)
		require.Equal(t, 1, w.Srv.AOF.Rewriter.Rewrites)
		caughtUp()
	})
}
