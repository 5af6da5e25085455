package throttle

import "math/bits"

// MaxSlices is how many slices a sliding window may be cut into.
const MaxSlices = 1000

// Sliding counts in slices of time and forgets them one by one, the last of them gradually. Its state is one count for each slice,
// which the caller hands in as an array: index 0 is the slice that now lies in, index i the i-th before it, and index Slices the
// one that is being forgotten. It is a value of three words.
type Sliding struct {
	limit  int64
	slice  int64 // ms
	slices int64
}

// NewSliding returns the limiter for a window in milliseconds, cut into 1 to MaxSlices slices. Slices are whole milliseconds, rounded
// up, so the window may come out longer by less than a millisecond for each.
func NewSliding(limit, window int64, slices int) Sliding {
	n := int64(slices)
	return Sliding{limit: limit, slice: (window-1)/n + 1, slices: n}
}

// Counts is the length of the array of counts.
func (s Sliding) Counts() int { return int(s.slices) + 1 }

// Length is how long a slice is, in milliseconds.
func (s Sliding) Length() int64 { return s.slice }

// Start returns when the slice of now began, in Unix milliseconds, which is a multiple of the slice.
func (s Sliding) Start(now int64) int64 { return now - floorMod(now, s.slice) }

// Index returns where the count of a slice belongs that began at start. It is false for a slice that counts no longer, and for one that
// begins after now. Slices of another length, from before a change of the limit, count where their beginning lies.
func (s Sliding) Index(now, start int64) (int, bool) {
	current := s.Start(now)
	switch {
	case start > now, start < current-s.slices*s.slice:
		return 0, false
	case start >= current:
		return 0, true
	}
	return int((current - s.Start(start)) / s.slice), true
}

// StartOf returns when the slice at an index began.
func (s Sliding) StartOf(now int64, index int) int64 { return s.Start(now) - int64(index)*s.slice }

// SlidingDecision is a Verdict with what to store when Write is Set: the counts up to LastChanged, which Decide has changed in
// place. Write is Delete when no count is left.
type SlidingDecision struct {
	Verdict

	// LastChanged is the highest index whose count Decide has changed, and each of those below may have changed.
	LastChanged int

	// ExpireAtMs is when the newest count is forgotten, in Unix milliseconds, when Write is Set.
	ExpireAtMs int64
}

// Decide answers a call at now (Unix milliseconds). counts has Counts elements, none of them negative. A sum beyond int64 counts as
// the largest int64.
func (s Sliding) Decide(now int64, counts []int64, call Call) SlidingDecision {
	full := int64(0)
	for _, count := range counts[:s.slices] {
		full = saturatingAdd(full, count)
	}
	elapsed := floorMod(now, s.slice)
	used := saturatingAdd(full, s.fading(counts[s.slices], elapsed))
	d := SlidingDecision{Verdict: Verdict{Limit: s.limit, RetryAfter: NoRetry}}
	switch {
	case call.Cost < 0:
		if back := call.refund(used); back > 0 && !call.Peek {
			d.LastChanged = s.giveBack(counts, elapsed, back)
			d.Write = Set
			used -= back
		}
	case exceeds(s.limit, used, call.Cost):
		d.Limited = true
		if call.Cost <= s.limit {
			d.RetryAfter = s.retryAfter(elapsed, counts, call.Cost)
		}
	case call.Cost > 0 && !call.Peek:
		counts[0] += call.Cost // fits: used + cost is at most the limit
		used += call.Cost
		d.Write = Set
	}
	d.Remaining = max(s.limit-used, 0)
	for i, count := range counts {
		if count > 0 {
			d.ResetAfter = (s.slices+1-int64(i))*s.slice - elapsed
			break
		}
	}
	d.ExpireAtMs = now + d.ResetAfter
	if d.Write == Set && d.ResetAfter == 0 {
		d.Write = Delete
	}
	return d
}

// fading returns what is left of the count in the slice that is being forgotten: its share of the slice's time that is still
// inside the window, rounded up.
func (s Sliding) fading(count, elapsed int64) int64 {
	hi, lo := bits.Mul64(uint64(count), uint64(s.slice-elapsed))
	quotient, rest := bits.Div64(hi, lo, uint64(s.slice)) // at most count
	if rest > 0 {
		quotient++
	}
	return int64(quotient)
}

// retryAfter returns the first time at which the call fits. As time goes on, the i-th slice is forgotten while only the newer ones still
// count in full; the call fits from some moment on, so the oldest slice in whose turn it fits is the one to wait for. The cost is
// at most the limit, so it fits at the latest when everything is forgotten.
func (s Sliding) retryAfter(elapsed int64, counts []int64, cost int64) int64 {
	room := s.limit - cost
	full, retry := int64(0), (s.slices+1)*s.slice
	for i, count := range counts {
		if full > room {
			break
		}
		first := s.slice - s.affordable(count, room-full) // the first millisecond of the turn at which it fits
		if first == s.slice {
			break
		}
		retry = (s.slices-int64(i))*s.slice + first
		full = saturatingAdd(full, count)
	}
	return retry - elapsed
}

// affordable returns for how many milliseconds of its slice a count may still be remembered without exceeding the room.
func (s Sliding) affordable(count, room int64) int64 {
	if count <= room {
		return s.slice
	}
	hi, lo := bits.Mul64(uint64(room), uint64(s.slice))
	quotient, _ := bits.Div64(hi, lo, uint64(count)) // below the slice, as room is below count
	return int64(quotient)
}

// giveBack takes units out of the counts, the newest first, and returns the last index that it changed. back is at most what is
// used. Of the count that is being forgotten it takes as many as are needed for the rest to be worth so much less.
func (s Sliding) giveBack(counts []int64, elapsed, back int64) (last int) {
	for i := range counts[:s.slices] {
		taken := min(counts[i], back)
		counts[i] -= taken
		if back -= taken; back == 0 {
			return i
		}
	}
	last = int(s.slices)
	left := s.fading(counts[last], elapsed) - back
	hi, lo := bits.Mul64(uint64(left), uint64(s.slice))
	kept, _ := bits.Div64(hi, lo, uint64(s.slice-elapsed)) // below the count, as left is below its share
	counts[last] = int64(kept)
	return last
}
