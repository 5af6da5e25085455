package server

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/persistence"
	"headgate/persistence/crashfs"
	"headgate/server/config"
)

// slowFS is a file system in memory whose syncs take time, and perhaps its writes.
type slowFS struct {
	*crashfs.FS
	takes  func() time.Duration
	writes time.Duration

	mu     sync.Mutex
	size   int64     // bytes appended
	begun  int64     // of those, how many a sync has begun for
	oldest time.Time // when the first was acknowledged of those for which none has
	late   time.Duration
	syncs  int
}

// slowFile is a file of a slowFS.
type slowFile struct {
	persistence.AppendFile
	fs *slowFS
}

func (f *slowFS) Append(name string, perm fs.FileMode) (persistence.AppendFile, int64, error) {
	file, size, err := f.FS.Append(name, perm)
	return &slowFile{file, f}, size, err
}

func (f *slowFile) Write(p []byte) (int, error) {
	f.fs.mu.Lock()
	f.fs.size += int64(len(p))
	f.fs.mu.Unlock()
	time.Sleep(f.fs.writes)
	return f.AppendFile.Write(p)
}

// Sync takes note of how long what it is for has been acknowledged.
func (f *slowFile) Sync() error {
	s := f.fs
	s.mu.Lock()
	if !s.oldest.IsZero() {
		s.late = max(s.late, time.Since(s.oldest))
	}
	s.begun, s.oldest = s.size, time.Time{}
	s.syncs++
	s.mu.Unlock()
	time.Sleep(s.takes())
	return f.AppendFile.Sync()
}

// acknowledged tells that all that was written has been acknowledged.
func (f *slowFS) acknowledged() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size > f.begun && f.oldest.IsZero() {
		f.oldest = time.Now()
	}
}

// takeLate returns the longest that acknowledged bytes have waited for their sync to begin since it was called last.
func (f *slowFS) takeLate() (late time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	late, f.late = f.late, 0
	return late
}

func (f *slowFS) begunSyncs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs
}

// inBubble runs a test with a clock of its own, and servers of its own: those of a bubble are of no use outside of it.
func inBubble(t *testing.T, test func(t *testing.T)) {
	spare := spareServers
	defer func() { spareServers = spare }()
	synctest.Test(t, func(t *testing.T) {
		spareServers = nil
		test(t)
	})
}

// TestEverysec: a sync begins within a second of each acknowledgement, so that a power cut takes nothing that is older than a second and
// the time of one sync. Writers wait for that if they must, and only then.
func TestEverysec(t *testing.T) {
	seed := seedOf(t)
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
			inBubble(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 11))
				times := rand.New(rand.NewPCG(seed, 12)) // drawn from by one goroutine at a time: under the lock of takes
				var mu sync.Mutex
				disk := &slowFS{FS: crashfs.New("/data"), takes: func() time.Duration {
					mu.Lock()
					defer mu.Unlock()
					return tc.least + time.Duration(times.Int64N(int64(tc.most-tc.least)+1))
				}}
				now := time.Now().UnixNano()
				w, err := startAOF(disk, config.FsyncEverysec, &now, nil)
				require.NoError(t, err)
				disk.takeLate()
				past := newHistory(digest(w.srv))
				var acks []time.Time
				cutAt := time.Duration(rnd.Int64N(int64(2 * tc.most))) // after the last write
				for end := time.Now().Add(20*time.Second + 3*tc.most); time.Now().Before(end); {
					time.Sleep(time.Duration(rnd.Int64N(int64(100 * time.Millisecond))))
					if rnd.IntN(50) == 0 {
						time.Sleep(time.Duration(rnd.Int64N(int64(3 * time.Second))))
					}
					now = time.Now().UnixNano()
					_, ended := w.ask(randomUnit(rnd))
					require.False(t, ended)
					disk.acknowledged()
					past.add(digest(w.srv))
					acks = append(acks, time.Now())
				}
				time.Sleep(cutAt)
				kept := 0
				for kept < len(acks) && time.Since(acks[kept]) > syncPeriod+tc.most {
					kept++
				}
				after := disk.Crash(rnd)
				require.LessOrEqual(t, disk.takeLate(), syncPeriod, "the longest that acknowledged writes waited for their sync to begin")
				require.Greater(t, disk.begunSyncs(), 3)
				require.Equal(t, tc.waits, w.srv.aof.syncer.delays() > 0, "writers wait")
				w.kill()
				w, err = startAOF(after, config.FsyncNo, &now, nil)
				require.NoError(t, err)
				defer w.kill()
				past.require(t, digest(w.srv), kept, "after a power cut")
			})
		})
	}
}

// TestEverysecSyncsOnce: what has been synced is not synced again, and an idle server does not sync.
func TestEverysecSyncsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		disk := &slowFS{FS: crashfs.New("/data"), takes: func() time.Duration { return 2 * time.Millisecond }}
		now := time.Now().UnixNano()
		w, err := startAOF(disk, config.FsyncEverysec, &now, nil)
		require.NoError(t, err)
		defer w.kill()
		before := disk.begunSyncs()
		for range 1200 {
			w.words("INCR", "k")
			time.Sleep(2 * time.Millisecond)
		}
		require.Equal(t, before+2, disk.begunSyncs())
		time.Sleep(time.Hour)
		require.Equal(t, before+3, disk.begunSyncs())
	})
}
