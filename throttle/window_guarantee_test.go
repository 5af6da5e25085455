package throttle

import (
	"testing"

	"pgregory.net/rapid"
)

// admitted is one call that passed.
type admitted struct{ at, units int64 }

// within adds up what passed at from < at <= to.
func within(passed []admitted, from, to int64) int64 {
	total := int64(0)
	for _, p := range passed {
		if p.at > from && p.at <= to {
			total += p.units
		}
	}
	return total
}

// traffic draws charges and their times and returns those that passed.
func traffic(t *rapid.T, window, limit int64, decide func(now, cost int64) bool) []admitted {
	var passed []admitted
	now := startMs(t)
	for range rapid.IntRange(1, 60).Draw(t, "calls") {
		now += drawStep(t, window/3+1)
		cost := rapid.Int64Range(1, limit+1).Draw(t, "cost")
		if decide(now, cost) {
			passed = append(passed, admitted{now, cost})
		}
	}
	return passed
}

// TestLogNeverAboveLimit: in no half-open interval (t - window, t] pass more than the limit.
func TestLogNeverAboveLimit(t *testing.T) {
	checkHistories(t, func(t *rapid.T) {
		l := Log{Limit: rapid.Int64Range(1, 8).Draw(t, "limit"), Window: rapid.Int64Range(1, 60).Draw(t, "window")}
		var list []int64
		passed := traffic(t, l.Window, l.Limit, func(now, cost int64) bool {
			for len(list) > 0 && list[0] <= l.Since(now) {
				list = list[1:]
			}
			d := l.Decide(now, int64(len(list)), func(i int64) int64 { return list[i] }, Call{Cost: cost})
			for range d.Add {
				list = append(list, now)
			}
			return !d.Limited
		})
		for _, p := range passed {
			if n := within(passed, p.at-l.Window, p.at); n > l.Limit {
				t.Fatalf("%d in the window before %d, limit %d: %v", n, p.at, l.Limit, passed)
			}
		}
	})
}

// TestFixedNeverAboveLimit: from the first call of each window to its end no more than the limit pass.
func TestFixedNeverAboveLimit(t *testing.T) {
	checkHistories(t, func(t *rapid.T) {
		limit, window := rapid.Int64Range(1, 8).Draw(t, "limit"), rapid.Int64Range(1, 60).Draw(t, "window")
		aligned := rapid.Bool().Draw(t, "aligned")
		var key FixedState
		passed := traffic(t, window, limit, func(now, cost int64) bool {
			end := now + window
			if aligned {
				end = AlignedEnd(now, window)
			}
			d := Fixed{Limit: limit, EndMs: end}.Decide(now, key, Call{Cost: cost})
			if d.Write == Set {
				key = FixedState{Count: d.Count, ExpireAtMs: d.ExpireAtMs, Exists: true}
			}
			return !d.Limited
		})
		for i := 0; i < len(passed); {
			begin, end := passed[i].at, passed[i].at+window
			if aligned {
				end = AlignedEnd(begin, window)
			}
			if n := within(passed, begin-1, end-1); n > limit {
				t.Fatalf("%d from %d to %d, limit %d: %v", n, begin, end, limit, passed)
			}
			for i < len(passed) && passed[i].at < end {
				i++
			}
		}
	})
}

// TestSlidingError: what counts as used is off from what passed within the window by less than what passed in the slice that is
// being forgotten; and no more than the limit pass within any whole slices that make up a window.
func TestSlidingError(t *testing.T) {
	checkHistories(t, func(t *rapid.T) {
		limit, window := rapid.Int64Range(1, 8).Draw(t, "limit"), rapid.Int64Range(1, 60).Draw(t, "window")
		s := NewSliding(limit, window, rapid.IntRange(1, 12).Draw(t, "slices"))
		length := s.slice * s.slices
		stored := map[int64]int64{}
		load := func(now int64) []int64 {
			counts := make([]int64, s.Counts())
			for start, count := range stored {
				if i, ok := s.Index(now, start); ok {
					counts[i] += count
				}
			}
			return counts
		}
		passed := traffic(t, window, limit, func(now, cost int64) bool {
			d := s.Decide(now, load(now), Call{Cost: cost})
			if d.Write == Set {
				stored[s.Start(now)] += cost
			}
			return !d.Limited
		})
		for _, p := range passed {
			counts := load(p.at)
			used := s.fading(counts[s.slices], floorMod(p.at, s.slice))
			for _, count := range counts[:s.slices] {
				used += count
			}
			used -= within(passed, p.at, s.Start(p.at)+s.slice-1) // which came later in the same slice
			if n := within(passed, p.at-length, p.at); n > limit+counts[s.slices] || max(n-used, used-n) > counts[s.slices] {
				t.Fatalf("%d in the window before %d, taken for %d, %d in the last slice, limit %d", n, p.at, used, counts[s.slices], limit)
			}
			end := s.Start(p.at) + s.slice
			if n := within(passed, end-length-1, end-1); n > limit {
				t.Fatalf("%d in the whole slices before %d, limit %d", n, end, limit)
			}
		}
	})
}
