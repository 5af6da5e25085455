package limits

import "time"

// waitEnd is how the wait of a call has ended.
type waitEnd uint8

const (
	waitGivenUp waitEnd = iota // by its client, or by an operator, or with an error
	waitPassed
	waitLimited // it could not pass in time
)

// WaitBuckets are the upper bounds of the histogram of waits.
var WaitBuckets = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, time.Hour,
}

// WaitCounts counts the calls that have waited, by how that has ended.
type WaitCounts struct {
	Passed  uint64
	Limited uint64 // could not pass in time
	GivenUp uint64 // the client has gone, or was told to go on, or the call could not be answered any more

	Ns    int64                    // that all who have passed have waited
	Times [len(WaitBuckets)]uint64 // how many of them have waited for no longer than each bound and longer than the one before
}

// add counts a wait that has ended; took is how long it was if the call has passed, in ns.
func (w *WaitCounts) add(end waitEnd, took int64) {
	switch end {
	case waitGivenUp:
		w.GivenUp++
	case waitLimited:
		w.Limited++
	case waitPassed:
		w.Passed++
		w.Ns += took
		for i, bound := range WaitBuckets {
			if took <= int64(bound) {
				w.Times[i]++
				return
			}
		}
	}
}

// Sum adds the waits that another has counted.
func (w *WaitCounts) Sum(other *WaitCounts) {
	w.Passed, w.Limited, w.GivenUp, w.Ns = w.Passed+other.Passed, w.Limited+other.Limited, w.GivenUp+other.GivenUp, w.Ns+other.Ns
	for i, n := range other.Times {
		w.Times[i] += n
	}
}

// Total are the waits for limits of all algorithms.
func (w *Waits) Total() (all WaitCounts) {
	for i := range w.Counts {
		all.Sum(&w.Counts[i])
	}
	return all
}
