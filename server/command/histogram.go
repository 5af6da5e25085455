package command

import (
	"math/bits"
	"time"
)

// Histogram counts times in ns by their size: 16 steps for each power of two, so within 6 %. Times above its largest count as that.
type Histogram struct {
	counts [histogramSteps]uint64
	Total  uint64
}

const (
	histogramBits  = 4                                         // of a number behind its first one, which choose the step
	histogramMax   = int64(time.Second)                        // longer times count as this one
	histogramSteps = (30 - histogramBits + 1) << histogramBits // enough for histogramMax
)

// stepOf is where a time is counted.
func stepOf(ns int64) int {
	ns = min(max(ns, 0), histogramMax)
	if ns < 1<<histogramBits {
		return int(ns)
	}
	shift := bits.Len64(uint64(ns)) - histogramBits - 1
	return (shift+1)<<histogramBits + int(ns>>shift)&(1<<histogramBits-1)
}

// below is the least time that a step and those before it do not count.
func below(step int) int64 {
	if step < 1<<histogramBits {
		return int64(step) + 1
	}
	shift := step>>histogramBits - 1
	return int64(step&(1<<histogramBits-1)+1<<histogramBits+1) << shift
}

// Record counts a time so many times.
func (h *Histogram) Record(ns int64, times uint64) {
	h.counts[stepOf(ns)] += times
	h.Total += times
}

// Percentile returns the time in ns that so many percent of all times are not above; 0 asks for the least one.
func (h *Histogram) Percentile(percent float64) int64 {
	need := max(uint64(percent/100*float64(h.Total)+0.5), 1)
	seen := uint64(0)
	for step, n := range h.counts {
		if seen += n; seen >= need {
			return below(step) - 1
		}
	}
	return histogramMax
}

// firstBound is the first bound of LATENCY HISTOGRAM, in ns; each further one is twice the one before.
const firstBound = 1024

// EachBound hands the bounds at which the number of times below grows, in µs and with that number, to fn.
func (h *Histogram) EachBound(fn func(usec int64, times uint64)) {
	seen, shown, step := uint64(0), uint64(0), 0
	for bound := int64(firstBound); shown < h.Total; bound *= 2 {
		for step < histogramSteps && below(step) <= bound {
			seen += h.counts[step]
			step++
		}
		if bound > histogramMax {
			seen = h.Total
		}
		if seen > shown {
			shown = seen
			const finest = 128 // parts of a bound that Redis distinguishes: it names the last time that it takes for the bound
			fn((bound+bound/finest-1)/int64(time.Microsecond), seen)
		}
	}
}

// The bounds of the histograms in /metrics are powers of two, from 64 ns to 537 ms, of which each is also a bound of ours.
const (
	firstBucketBits  = 6
	HistogramBuckets = 24
)

// BucketBound is the upper bound of a bucket, in ns.
func BucketBound(i int) int64 { return 1 << (firstBucketBits + i) }

// Buckets fills in how many times lie below each bound.
func (h *Histogram) Buckets(out *[HistogramBuckets]uint64) {
	seen, step := uint64(0), 0
	for i := range out {
		for ; step < histogramSteps && below(step) <= BucketBound(i); step++ {
			seen += h.counts[step]
		}
		out[i] = seen
	}
}

// AddAll adds all times of another.
func (h *Histogram) AddAll(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.Total += other.Total
}

// Subtract takes the times of an earlier state away. If that has counted more, all began anew since, and all are new.
func (h *Histogram) Subtract(earlier *Histogram) {
	if earlier.Total > h.Total {
		return
	}
	h.Total = 0
	for i := range h.counts {
		h.counts[i] -= min(earlier.counts[i], h.counts[i])
		h.Total += h.counts[i]
	}
}
