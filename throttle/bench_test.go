package throttle

import (
	"testing"
	"time"
)

const (
	msPerBench = 1_760_000_000_123 // Unix ms
	benchStep  = 7                 // ms between two calls
)

var oneUnit = Call{Cost: 1}

// BenchmarkAlgorithms measures a call of each algorithm on one key whose limit is reached now and then.
func BenchmarkAlgorithms(b *testing.B) {
	b.Run("GCRA", func(b *testing.B) { benchmarkRate(b, 10) })
	b.Run("GCRAWithAFraction", func(b *testing.B) { benchmarkRate(b, 11) })
	b.Run("Fixed", func(b *testing.B) {
		state, now := FixedState{}, int64(msPerBench)
		b.ReportAllocs()
		for b.Loop() {
			now += benchStep
			d := Fixed{Limit: 10, EndMs: AlignedEnd(now, 100)}.Decide(now, state, oneUnit)
			if d.Write == Set {
				state = FixedState{Count: d.Count, ExpireAtMs: d.ExpireAtMs, Exists: true}
			}
			if now > state.ExpireAtMs {
				state = FixedState{}
			}
		}
	})
	b.Run("Calendar", func(b *testing.B) {
		now, sum := int64(msPerBench), int64(0)
		b.ReportAllocs()
		for b.Loop() {
			now += benchStep
			sum += Day.End(now, time.UTC)
		}
	})
	b.Run("Sliding", func(b *testing.B) {
		s := NewSliding(10, 100, 10)
		counts, now := make([]int64, s.Counts()), int64(msPerBench)
		b.ReportAllocs()
		for b.Loop() {
			now += benchStep
			copy(counts[1:], counts)
			counts[0] = 0
			s.Decide(now, counts, oneUnit)
		}
	})
	b.Run("Log", func(b *testing.B) {
		l, now := Log{Limit: 10, Window: 100}, int64(msPerBench)
		used := int64(0)
		at := func(i int64) int64 { return now - 100 + i }
		b.ReportAllocs()
		for b.Loop() {
			now += benchStep
			d := l.Decide(now, used, at, oneUnit)
			used = (used + d.Add) % 11
		}
	})
	b.Run("Leases", func(b *testing.B) {
		l, now := Leases{Limit: 10, TTL: 100}, int64(msPerBench)
		held := int64(0)
		at := func(i int64) int64 { return now + i }
		b.ReportAllocs()
		for b.Loop() {
			now += benchStep
			if v := l.Acquire(now, LeasesState{Held: held, Last: now + held}, at, Call{Cost: 1}); v.Limited {
				held = 0
			} else {
				held++
			}
		}
	})
}

// benchmarkRate measures a Rate of so many units in 100 ms.
func benchmarkRate(b *testing.B, count int64) {
	r, err := NewRate(10, count, 100*nsPerMs)
	if err != nil {
		b.Fatal(err)
	}
	tat, exists, now := int64(0), false, epoch
	b.ReportAllocs()
	for b.Loop() {
		now += benchStep * nsPerMs
		var d Decision
		err := r.ChargeTo(&d, now, tat, exists, oneUnit)
		if err != nil {
			b.Fatal(err)
		}
		if d.Write == Set {
			tat, exists = d.TAT, true
		}
	}
}
