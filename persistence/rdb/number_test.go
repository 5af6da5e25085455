package rdb

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAppendInt(t *testing.T) {
	check := func(n int64) {
		t.Helper()
		require.Equal(t, strconv.FormatInt(n, 10), string(appendInt(nil, n)))
	}
	for _, n := range []int64{0, 1e16 - 1, 1e16, 1e16 + 1, 1e17 + 99_999_999, 9e18, math.MaxInt64, math.MinInt64, -1e16} {
		check(n)
	}
	rnd := newRand(t)
	for range 100_000 {
		check(int64(rnd.Uint64()) >> rnd.IntN(64))
	}
	for digits := range uint64(10_000) { // all that a part can be
		check(int64(1e18 + digits*1e12 + digits*1e8 + digits*1e4 + digits))
	}
}
