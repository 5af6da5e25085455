//go:build amd64 || arm64

package resp

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestLargeBuffersAreThereAtOnce: who writes to a large buffer for the first time does not wait for the system at each page of it, and not
// for more of it than is asked for.
func TestLargeBuffersAreThereAtOnce(t *testing.T) {
	probe := mapBuffer(coarseStep)
	if unix.Madvise(probe, unix.MADV_POPULATE_WRITE) != nil {
		t.Skip("this kernel is older than Linux 5.14, which can do it first: pages come at their first use there")
	}
	unmapBuffer(probe)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	faults := func(write []byte) int64 {
		var before, after unix.Rusage
		require.NoError(t, unix.Getrusage(unix.RUSAGE_THREAD, &before))
		for i := 0; i < len(write); i += unix.Getpagesize() {
			write[i] = 1
		}
		require.NoError(t, unix.Getrusage(unix.RUSAGE_THREAD, &after))
		return after.Minflt - before.Minflt
	}
	const few = 16 // of the runtime's own
	var b Buffers
	buf := b.Get(largestKept + 1)
	require.Len(t, buf, largestKept+coarseStep)
	require.Less(t, faults(buf), int64(few))
	_ = unix.Madvise(buf, unix.MADV_NOHUGEPAGE) // one of those may go beyond what is asked for, depending on where the buffer lies
	for range 20 {
		have := len(buf)
		buf = b.Grow(buf, have+1)
		require.Len(t, buf, have+coarseStep, "a step at a time")
		require.Less(t, faults(buf[have:]), int64(few), "%d bytes", len(buf))
	}
	room := b.mapped[unsafe.SliceData(buf)]
	require.Greater(t, room, len(buf), "it grows where it is for a while")
	beyond := unsafe.Slice(unsafe.SliceData(buf), room)[len(buf):]
	require.Greater(t, faults(beyond), int64(few), "what nobody has asked for is not there")
	b.Put(buf)
	require.Zero(t, b.Used())
	require.Empty(t, b.mapped)
}

// TestLargeBuffersAreGivenBackInSteps: who puts large ones back does not wait until the system has them; they count until then for who asks for more.
func TestLargeBuffersAreGivenBackInSteps(t *testing.T) {
	var b Buffers
	const size, count = 64<<20 + unmapStep/2, 4
	b.SetLimit(size)
	var all [][]byte
	for range count {
		buf := b.Get(size)
		buf[0], buf[size-1] = 1, 1
		all = append(all, buf)
	}
	b.leaving = [][]byte{nil} // as if a goroutine were at work on one
	for _, buf := range all {
		b.Put(buf)
	}
	require.Zero(t, b.Used())
	require.EqualValues(t, count*len(all[0]), b.going.Load())
	require.True(t, b.refuses(2<<20))
	b.unmapLeaving([]byte{})
	require.Zero(t, b.going.Load())
	require.Nil(t, b.leaving)
	require.Empty(t, b.mapped)
	require.False(t, b.refuses(2<<20))

	b.Put(b.Get(size))
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.leaving == nil
	}, time.Minute, time.Millisecond)
}
