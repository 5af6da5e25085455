package journal

import (
	"sync"
	"sync/atomic"
	"time"

	"headgate/persistence/aof"
	"headgate/server/config"
)

// syncer syncs the append-only file in the background. For what is written under everysec a sync begins within a second, even while an earlier one has
// not ended: so what a power cut takes is never older than a second and the time of one sync. Since no more than maxSyncs may be under
// way, writers wait when the disk is slower than that. What was written while nothing was to be synced, because appendfsync was no or a rewrite was not to
// be disturbed, is synced within a second of its end.
type syncer struct {
	mu      sync.Mutex
	ended   sync.Cond // a sync has ended
	oldest  time.Time // when the first bytes were written for which no sync has begun; zero: there are none
	running int       // syncs that are under way
	closing bool
	yields  atomic.Bool   // a rewrite is under way, which no-appendfsync-on-rewrite is about
	delayed uint64        // how often writers have waited
	wake    chan struct{} // of capacity 1
	done    chan struct{}
}

const (
	syncPeriod = time.Second // how long written bytes may wait for their sync to begin
	maxSyncs   = 2
)

func (y *syncer) start(j *Journal, log *aof.Log) {
	y.ended.L = &y.mu
	y.wake, y.done, y.closing, y.oldest = make(chan struct{}, 1), make(chan struct{}), false, time.Time{}
	go y.run(j, log)
}

// End has the goroutine end and waits for that, and for the syncs under way.
func (y *syncer) End() {
	y.mu.Lock()
	y.closing = true
	y.mu.Unlock()
	y.poke()
	<-y.done
}

func (y *syncer) poke() {
	select {
	case y.wake <- struct{}{}:
	default:
	}
}

// written tells of a write. It returns when its sync can begin in time, and only then may the write be acknowledged.
func (y *syncer) written() {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.running == maxSyncs {
		y.delayed++
		for y.running == maxSyncs {
			y.ended.Wait()
		}
	}
	if y.oldest.IsZero() {
		y.oldest = time.Now()
		y.poke()
	}
}

func (y *syncer) run(j *Journal, log *aof.Log) {
	defer close(y.done)
	for {
		wait, closing := y.next()
		switch {
		case closing:
			y.drain()
			return
		case wait == 0:
			go y.sync(j, log)
		default:
			timer := time.NewTimer(wait)
			select {
			case <-y.wake:
			case <-timer.C:
				y.catchUp(j.Config.Get(), log)
			}
			timer.Stop()
		}
	}
}

// next returns in what time to look again, 0 if a sync begins now.
func (y *syncer) next() (wait time.Duration, closing bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.closing {
		return 0, true
	}
	if y.oldest.IsZero() || y.running == maxSyncs {
		return syncPeriod, false // or when there is something new
	}
	if wait = time.Until(y.oldest.Add(syncPeriod)); wait > 0 {
		return wait, false
	}
	y.running++
	y.oldest = time.Time{}
	return 0, false
}

// catchUp has a sync begin now if there is something to be synced of which no writer has told.
func (y *syncer) catchUp(cfg *config.Config, log *aof.Log) {
	if cfg.AppendFsync == config.FsyncNo || cfg.NoAppendFsyncOnRewrite && y.yields.Load() {
		return
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.oldest.IsZero() && y.running == 0 && log.Unsynced() {
		y.oldest = time.Now().Add(-syncPeriod)
	}
}

// drain returns when no sync is under way.
func (y *syncer) drain() {
	y.mu.Lock()
	defer y.mu.Unlock()
	for y.running > 0 {
		y.ended.Wait()
	}
}

// sync is a goroutine for each sync.
func (y *syncer) sync(j *Journal, log *aof.Log) {
	defer func() {
		y.mu.Lock()
		defer y.mu.Unlock()
		y.running--
		y.ended.Broadcast()
		y.poke()
	}()
	if err := log.Sync(); err != nil {
		j.die("the append-only file could not be synced; nothing is certain about the last writes", "file", log.Name(), "err", err)
	}
}

// Delays returns how often writers have waited for a sync.
func (y *syncer) Delays() uint64 {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.delayed
}

// PendingSync is 1 while a sync is under way.
func (y *syncer) PendingSync() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return min(y.running, 1)
}

// Lag is the age of the oldest write for which no sync has begun.
func (y *syncer) Lag() time.Duration {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.oldest.IsZero() {
		return 0
	}
	return time.Since(y.oldest)
}
