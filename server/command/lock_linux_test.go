package command

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestLoopsDoNotQueueBehindManyForAProcessor: a loop that comes back from the system has its turn before all of a crowd that is ready to run has had
// one, also on a single processor.
func TestLoopsDoNotQueueBehindManyForAProcessor(t *testing.T) {
	const crowd, rounds = 100, 21
	const script = manyTime / 4
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var input [2]int
	require.NoError(t, unix.Pipe(input[:]))
	defer unix.Close(input[0])
	defer unix.Close(input[1])
	lock := newExecutorLock(1)
	var turns, arrived atomic.Int64
	var waits, ended atomic.Bool
	var gone sync.WaitGroup
	for range crowd {
		gone.Go(func() {
			for !ended.Load() {
				lock.LockAsOneOfMany()
				if turns.Add(1); waits.CompareAndSwap(true, false) {
					arrived.Store(turns.Load())
					_, _ = unix.Write(input[1], []byte{1})
				}
				for begun := time.Now(); time.Since(begun) < script; {
				}
				lock.Unlock()
				time.Sleep(time.Microsecond) // until the next command
			}
		})
	}
	var before []int64 // the loop, so many of the crowd had their turn
	for range rounds {
		waits.Store(true)
		_, err := unix.Read(input[0], make([]byte, 1))
		lock.Lock()
		before = append(before, turns.Load()-arrived.Load())
		lock.Unlock()
		require.NoError(t, err)
	}
	ended.Store(true)
	gone.Wait()
	slices.Sort(before)
	t.Log(before)
	require.Less(t, before[rounds/2], int64(30), "half of the 61 after which the scheduler looks at what comes back, and usually far fewer")
}
