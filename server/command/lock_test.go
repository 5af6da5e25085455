package command

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestManyLeaveTheLockToOthers: somebody who takes the lock does not wait until all of a crowd have had it that came before.
func TestManyLeaveTheLockToOthers(t *testing.T) {
	const crowd, loops = 50, 2
	const hold = 3 * time.Millisecond // long enough for sync.Mutex to go by who came first
	core := newExecutorLock(loops)
	var had atomic.Int64
	var gone sync.WaitGroup
	core.Lock()
	for range crowd {
		gone.Go(func() {
			core.LockAsOneOfMany()
			defer core.Unlock()
			had.Add(1)
			time.Sleep(hold)
		})
	}
	time.Sleep(10 * hold) // all of them wait
	begun, before := make(chan struct{}), make(chan int64)
	go func() {
		close(begun)
		core.Lock()
		defer core.Unlock()
		before <- had.Load()
	}()
	<-begun
	time.Sleep(10 * hold) // it waits, too
	core.Unlock()
	require.Less(t, <-before, int64(crowd/2), "of the crowd before it, who are a few if all goes well")
	gone.Wait()
	require.EqualValues(t, crowd, had.Load())
}

// TestOneOfManyTakesAFreeLock: one of a crowd takes the lock without a place if it is free and no other one waits for it.
func TestOneOfManyTakesAFreeLock(t *testing.T) {
	core := executorLock{many: make(chan struct{})} // in which there are no places
	taken := make(chan struct{})
	go func() {
		core.LockAsOneOfMany()
		close(taken)
	}()
	select {
	case <-taken:
	case <-time.After(time.Minute):
		require.Fail(t, "it waits")
	}
	core.Unlock()
}
