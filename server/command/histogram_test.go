package command

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHistogramSteps: every time is counted by one step, whose bounds it lies within, and which is narrow.
func TestHistogramSteps(t *testing.T) {
	for ns := int64(0); ns <= histogramMax; ns += 1 + ns/1000 {
		step := stepOf(ns)
		require.Less(t, ns, below(step), ns)
		if step > 0 {
			require.GreaterOrEqual(t, ns, below(step-1), ns)
			require.LessOrEqual(t, below(step)-below(step-1), 1+ns/16, ns)
		}
	}
	require.Less(t, stepOf(histogramMax), histogramSteps)
	require.Equal(t, stepOf(histogramMax), stepOf(int64(time.Hour)))
	require.Zero(t, stepOf(-1))
}

// TestHistogramPercentiles compares percentiles with those of the sorted times, and the bounds with their numbers.
func TestHistogramPercentiles(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var h Histogram
	var times []int64
	for range 10_000 {
		ns := rnd.Int64N(1 << (1 + rnd.IntN(29)))
		h.Record(ns, 1)
		times = append(times, ns)
	}
	slices.Sort(times)
	for _, percent := range []float64{1, 50, 99, 99.9, 100} {
		want := times[int(percent/100*float64(len(times))+0.5)-1]
		got := h.Percentile(percent)
		require.GreaterOrEqual(t, got, want, percent)
		require.LessOrEqual(t, got, want+want/16+1, percent)
	}
	bound, last := int64(firstBound), uint64(0)
	h.EachBound(func(_ int64, n uint64) {
		require.Greater(t, n, last)
		last = n
		for uint64(countBelow(times, bound)) < n {
			bound *= 2
		}
		require.EqualValues(t, countBelow(times, bound), n)
	})
	require.EqualValues(t, len(times), last)
}

func countBelow(sorted []int64, bound int64) int {
	n, _ := slices.BinarySearch(sorted, bound)
	return n
}
