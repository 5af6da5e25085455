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
	core := &Core{many: make(chan struct{}, loops)}
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
	before := make(chan int64)
	go func() {
		core.Lock()
		defer core.Unlock()
		before <- had.Load()
	}()
	time.Sleep(hold)
	core.Unlock()
	require.LessOrEqual(t, <-before, int64(loops+3), "of the crowd before it")
	gone.Wait()
	require.EqualValues(t, crowd, had.Load())
}
