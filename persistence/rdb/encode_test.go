package rdb

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNumbersTakeTheFewestBytes: lengths, and integers in the place of strings, have the form that Redis gives them.
func TestNumbersTakeTheFewestBytes(t *testing.T) {
	for n, bytes := range map[uint64]int{
		0: 1, 63: 1, 64: 2, 1<<14 - 1: 2, 1 << 14: 5, math.MaxUint32: 5, math.MaxUint32 + 1: 9, math.MaxUint64: 9,
	} {
		e := NewEncoder(false)
		e.length(n)
		require.Len(t, e.Take(nil), bytes, "the length %d", n)
	}
	for n, bytes := range map[int64]int{
		0: 2, math.MaxInt8: 2, math.MinInt8: 2, math.MaxInt8 + 1: 3, math.MinInt8 - 1: 3, math.MaxInt16: 3, math.MinInt16: 3,
		math.MaxInt16 + 1: 5, math.MinInt16 - 1: 5, math.MaxInt32: 5, math.MinInt32: 5,
		math.MaxInt32 + 1: 1 + len("2147483648"), math.MinInt32 - 1: 1 + len("-2147483649"), math.MinInt64: 1 + len("-9223372036854775808"),
	} {
		e := NewEncoder(false)
		e.integer(n)
		require.Len(t, e.Take(nil), bytes, "the integer %d", n)
	}
}

// TestStringsAreCompressedIfAsked: those that are long enough, and that get shorter by it.
func TestStringsAreCompressedIfAsked(t *testing.T) {
	size := func(compress bool, text string) int {
		e := NewEncoder(compress)
		e.string([]byte(text))
		return len(e.Take(nil))
	}
	long, short := strings.Repeat("x", compressMin), strings.Repeat("x", compressMin-1)
	require.Equal(t, 1+compressMin, size(false, long))
	require.Less(t, size(true, long), compressMin)
	require.Equal(t, compressMin, size(true, short))
	require.Equal(t, 2+len(alphabet), size(true, alphabet), "no byte of it comes twice")
}

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
