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
	room := b.mapped[unsafe.SliceData(buf)].room
	require.Greater(t, room, len(buf), "it grows where it is for a while")
	beyond := unsafe.Slice(unsafe.SliceData(buf), room)[len(buf):]
	require.Greater(t, faults(beyond), int64(few), "what nobody has asked for is not there")
	b.Put(buf)
	require.Zero(t, b.Used())
	require.Empty(t, b.mapped)
}

// TestLargeBuffersAreUsedAgain: who asks for large replies again gets the pages of the last ones, for which the system is not asked; the next but one
// Trim gives back what nobody has used.
func TestLargeBuffersAreUsedAgain(t *testing.T) {
	var b Buffers
	const size = 5 << 20
	first := b.Get(size)
	begin := unsafe.SliceData(first)
	b.Put(first)
	require.Equal(t, capacity(size), b.largeBytes)
	require.Empty(t, b.mapped)
	require.Zero(t, b.going.Load())

	small := b.Get(2 * BufferSize)
	small[7] = 7
	grown := b.Grow(small, 2<<20)
	require.Same(t, begin, unsafe.SliceData(grown))
	require.Len(t, grown, 2<<20)
	require.EqualValues(t, 7, grown[7])
	require.EqualValues(t, len(grown), b.Used())
	require.Equal(t, capacity(size)-len(grown), b.largeBytes)
	grown = b.Grow(grown, 4<<20)
	require.Same(t, begin, unsafe.SliceData(grown), "it has the room")
	require.Equal(t, capacity(size)-len(grown), b.largeBytes)
	b.Put(grown)
	require.Equal(t, capacity(size), b.largeBytes, "what it did not need is kept too")

	other := b.Get(6 << 20)
	require.NotSame(t, begin, unsafe.SliceData(other), "it is too small")
	b.Trim()
	require.Equal(t, capacity(size), b.largeBytes, "it was in use since the last Trim")
	b.Trim()
	require.Zero(t, b.largeBytes)
	require.Empty(t, b.large)
	b.Put(other)
	require.Zero(t, b.Used())
}

// TestFewLargeBuffersAreKept: what is kept of large ones has a bound, as has each of them, and less where all together have one.
func TestFewLargeBuffersAreKept(t *testing.T) {
	for _, tc := range []struct{ limit, most int }{{0, largeKept}, {64 << 20, 8 << 20}} {
		var b Buffers
		b.SetLimit(int64(tc.limit))
		var all [][]byte
		for range 5 {
			all = append(all, b.Get(3*largeEach/2))
		}
		b.leaving = [][]byte{nil} // as if a goroutine were at work on one
		for _, buf := range all {
			b.Put(buf)
		}
		require.Equal(t, tc.most, b.largeBytes)
		for _, buf := range b.large {
			require.LessOrEqual(t, len(buf), largeEach)
		}
		require.Zero(t, b.Used())
		require.EqualValues(t, len(all)*3*largeEach/2-tc.most, b.going.Load())
		b.unmapLeaving([]byte{})
		b.Trim()
		b.Trim()
		require.Zero(t, b.largeBytes)
	}
}

// TestKeptPagesOfOthersAreKeptOnes: who asks for less than a kept buffer holds, and does not give it back, is not one more way to hold memory that
// counts for no client.
func TestKeptPagesOfOthersAreKeptOnes(t *testing.T) {
	var b Buffers
	var held [][]byte
	for range 3 * largeKept / largeEach {
		b.Put(b.Get(largeEach))
		held = append(held, b.Get(largestKept+1))
	}
	there := 0
	for _, m := range b.mapped {
		there += m.there
	}
	require.LessOrEqual(t, there, int(b.Used())+largeKept)
	for i, buf := range held {
		if i%2 == 0 {
			buf = b.Grow(buf, largeEach+1)
		}
		b.Put(buf)
	}
	require.Empty(t, b.mapped)
	require.LessOrEqual(t, b.largeBytes, largeKept)
	b.Trim()
	b.Trim()
	require.Zero(t, b.largeBytes)
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
	kept := b.largeBytes
	require.Equal(t, size/overdraft/coarseStep*coarseStep, kept)
	require.EqualValues(t, count*len(all[0])-kept, b.going.Load())
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

// TestTheMapOfBuffersShrinks: what a crowd of buffers has had as room in the map goes, and the buffers that are left are known as before.
func TestTheMapOfBuffersShrinks(t *testing.T) {
	var b Buffers
	const many, left = 2 * shrinkFrom, 8
	bufs := make([][]byte, many)
	for i := range bufs {
		bufs[i] = b.Get(2 * BufferSize)
	}
	require.Equal(t, many, b.most)
	b.Trim()
	require.Equal(t, many, b.most, "all of them are there")
	for _, buf := range bufs[left:] {
		b.Put(buf)
	}
	for range 3 {
		b.Trim()
	}
	require.Len(t, b.mapped, left)
	require.Equal(t, left, b.most)
	for _, buf := range bufs[:left] {
		b.Put(b.Grow(buf, 4*BufferSize))
	}
	for range 2 {
		b.Trim()
	}
	require.Empty(t, b.mapped)
	require.Zero(t, b.Used())
}
