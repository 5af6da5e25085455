package command

import (
	"sync"
	"sync/atomic"
)

// lifecycle is how far the server has come between its start and its end. It is safe for concurrent use.
type lifecycle struct {
	Ended  chan struct{} // closed by Stop
	once   sync.Once
	Ending atomic.Bool   // the last snapshot is being saved; cleared if that fails
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

// Stopping is closed when the server begins to close its connections.
func (l *lifecycle) Stopping() <-chan struct{} { return l.Ended }

// Stop has Server.Run finish what was read, answer it, close everything and return. Safe to call more than once, from anywhere.
func (l *lifecycle) Stop() { l.once.Do(func() { close(l.Ended) }) }

// IsStopping reports whether Stop was called.
func (l *lifecycle) IsStopping() bool {
	select {
	case <-l.Ended:
		return true
	default:
		return false
	}
}

// notReady is why the server is not ready, as /readyz answers.
type notReady string

// Why the server may not be ready.
const (
	notReadyLoading notReady = "loading: the data are not in memory yet"
	notReadyMisconf notReady = "MISCONF: data cannot be written to the disk, so writes are refused"
	notReadyEnding  notReady = "shutting down"
)

// Unready returns why the server cannot do all of its work now, or nothing. It takes no lock: it answers while a command takes long.
func (s *Core) Unready() notReady {
	switch {
	case s.IsStopping() || s.Ending.Load():
		return notReadyEnding
	case s.Gate.Has(GateLoading):
		return notReadyLoading
	case s.Gate.Has(GateUnwritable):
		return notReadyMisconf
	}
	return ""
}
