package rdb

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestListpackNumbersTakeTheFewestBytes: each integer has the form that Redis gives it, and the byte behind it tells of its length.
func TestListpackNumbersTakeTheFewestBytes(t *testing.T) {
	for n, bytes := range map[int64]int{
		0: 1, 127: 1, 128: 2, -1: 2, 4095: 2, -4096: 2, 4096: 3, -4097: 3, math.MaxInt16: 3, math.MinInt16: 3, math.MaxInt16 + 1: 4, math.MinInt16 - 1: 4,
		1<<23 - 1: 4, -1 << 23: 4, 1 << 23: 5, -1<<23 - 1: 5, math.MaxInt32: 5, math.MinInt32: 5, math.MaxInt32 + 1: 9, math.MinInt32 - 1: 9,
	} {
		var w listpackWriter
		w.reset()
		w.integer(n)
		require.Len(t, w.b, listpackHead+bytes+1, "%d", n)
	}
}

// TestLengthBehindAnElement: as many bytes tell of it as in Redis.
func TestLengthBehindAnElement(t *testing.T) {
	for n, bytes := range map[int]int{
		1: 1, 127: 1, 128: 2, 1<<14 - 2: 2, 1<<14 - 1: 3, 1<<21 - 2: 3, 1<<21 - 1: 4, 1<<28 - 2: 4, 1<<28 - 1: 5,
	} {
		require.Equal(t, bytes, backLength(n), "%d", n)
	}
}
