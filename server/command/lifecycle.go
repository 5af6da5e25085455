package command

import (
	"sync"
	"sync/atomic"
)

// Lifecycle is how far the server has come between its start and its end. It is safe for concurrent use.
type Lifecycle struct {
	ended  chan struct{} // closed by Stop
	once   sync.Once
	Asked  atomic.Bool   // a signal has asked for the end; cleared if that fails
	Ending atomic.Bool   // the last snapshot is being saved; cleared if that fails
	Hurry  atomic.Bool   // the server ends without waiting for replicas
	Rounds atomic.Uint64 // of background work, and of scripts that let others go on
}

// Responds reports whether the server is alive, for who asks once in a while and passes what the last call has returned: it has come round
// since, or could at once. A server whose executor is held for ever is not. It does not wait for the executor.
func (s *Core) Responds(last uint64) (now uint64, alive bool) {
	if now = s.Rounds.Load(); now != last {
		return now, true
	}
	if alive = s.mu.TryLock(); alive {
		s.mu.Unlock() // it has nothing to do, or waits for the disk
	}
	return now, alive
}

// Stopping returns a channel that is closed when the server begins to close its connections.
func (l *Lifecycle) Stopping() <-chan struct{} { return l.ended }

// Stop has the server finish what was read, answer it, close everything and return. Safe to call more than once, from anywhere.
func (l *Lifecycle) Stop() { l.once.Do(func() { close(l.ended) }) }

// IsStopping reports whether Stop was called.
func (l *Lifecycle) IsStopping() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// NotReady is why the server is not ready, as /readyz answers.
type NotReady string

// Why the server may not be ready.
const (
	notReadyLoading NotReady = "loading: the data are not in memory yet"
	notReadyMisconf NotReady = "MISCONF: data cannot be written to the disk, so writes are refused"
	notReadyEnding  NotReady = "shutting down"
	notReadyCopying NotReady = "replica: the primary's data have not come yet"
	notReadyStale   NotReady = "MASTERDOWN: the primary is not followed, and replica-serve-stale-data is no"
	notReadyBusy    NotReady = "BUSY: a script has been running for longer than busy-reply-threshold"
)

// Unready returns why the server cannot do all of its work now, or nothing. It takes no lock: it answers while a command takes long.
func (s *Core) Unready() NotReady {
	switch {
	case s.IsStopping() || s.Ending.Load() || s.Asked.Load():
		return notReadyEnding
	case s.Gate.Has(GateLoading):
		return notReadyLoading
	case s.Gate.Has(GateDisk | GateUnsaved):
		return notReadyMisconf
	case s.Gate.Has(GateUnsynced):
		return notReadyCopying
	case s.Gate.Has(GateStale):
		return notReadyStale
	case s.Gate.Has(GateBusy):
		return notReadyBusy
	}
	return ""
}
