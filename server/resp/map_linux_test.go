//go:build amd64 || arm64

package resp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
