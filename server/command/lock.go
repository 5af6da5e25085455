package command

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// executorLock is the executor's lock, which is taken by a few loops, each for all of its connections, and by a crowd, each for one of its own.
type executorLock struct {
	mu      sync.Mutex
	many    chan struct{} // has a place for as many of those of LockAsOneOfMany as may wait for mu
	begun   time.Time
	yielded atomic.Int64 // ns since begun: when one of many has let the loops run last
	back    atomic.Int64 // how many of many stand back at the moment
}

// newExecutorLock returns the lock of so many loops.
func newExecutorLock(loops int) executorLock {
	return executorLock{many: make(chan struct{}, max(1, loops)), begun: time.Now()}
}

// Lock takes the executor's lock: it guards the keyspace, the clients and the statistics. Only operators' commands do I/O under it, such as SAVE and
// CONFIG REWRITE; and a change of the configuration reads files and opens listeners there.
func (l *executorLock) Lock() { l.mu.Lock() }

// Unlock releases the executor's lock.
func (l *executorLock) Unlock() { l.mu.Unlock() }

// LockAsOneOfMany is Lock for those of whom there may be thousands. Only so many of them wait for the lock at a time as there are loops: a loop takes
// it for all of its connections, and is not to stand behind each of the others, nor are these to stand behind all loops, one by one. They wait for a
// place in a channel, since whoever unlocks a sync.Mutex gives the processor away if others wait, and here would do so with the lock held. Who finds
// the lock free and nobody waiting for it takes it without a place.
func (l *executorLock) LockAsOneOfMany() {
	l.letLoopsRun()
	if len(l.many) == 0 && l.mu.TryLock() {
		return
	}
	l.many <- struct{}{}
	l.mu.Lock()
	<-l.many
}

const (
	manyTime = time.Millisecond     // for which the crowd goes on before it lets the loops run,
	backTime = 5 * time.Microsecond // and so much longer for each that stands back: to do so takes a twentieth of it
)

// letLoopsRun gives the processor away if the crowd has gone on for long enough. Where all processors are busy, a loop that comes back from waiting for
// input stands in the scheduler's global queue. The scheduler looks there at every 61st turn only, as long as others are ready, so that a loop
// would wait for 61 short scripts. Whoever calls Gosched stands behind the loop: all do who come to their turn once the time is over. The first of
// them to come again has the time begin anew, and the others may have to stand back once more.
func (l *executorLock) letLoopsRun() {
	for {
		yielded := l.yielded.Load()
		if time.Since(l.begun)-time.Duration(yielded) <= manyTime+backTime*time.Duration(l.back.Load()) {
			return
		}
		l.back.Add(1)
		runtime.Gosched()
		l.back.Add(-1)
		if l.yielded.CompareAndSwap(yielded, int64(time.Since(l.begun))) {
			return
		}
	}
}
