package throttle

import (
	"flag"
	"math/big"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// histories is how many random histories each algorithm is compared on; package rapid's -rapid.seed repeats a run.
var histories = flag.Int("histories", 2000, "random histories for each algorithm; make limits takes a million")

// checkHistories runs a property on as many random histories as the flag says.
func checkHistories(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(*histories)))
	rapid.Check(t, property)
}

// usage is all that the models have to know: how much is used at an instant if nobody calls, and what a call changes.
type usage interface {
	used(at int64) *big.Int
	charge(at, units int64)
	refund(at, units int64) // at most what is used
	horizon() int64         // ms after which nothing is used, whatever it was
}

// expect answers a call by trying: the retry and the reset are the first instants at which the model lets the call pass, or has
// nothing in use.
func expect(u usage, limit, now int64, call Call) Verdict {
	passes := func(at int64) bool {
		return plus(u.used(at), big.NewInt(call.Cost)).Cmp(big.NewInt(limit)) <= 0
	}
	v := Verdict{Limit: limit, RetryAfter: NoRetry}
	if call.Cost >= 0 && !passes(now) {
		v.Limited = true
		for d := int64(1); d <= u.horizon(); d++ {
			if passes(now + d) {
				v.RetryAfter = d
				break
			}
		}
	} else if !call.Peek {
		used := u.used(now).Int64()
		switch {
		case call.Cost > 0:
			u.charge(now, call.Cost)
		case call.Cost < 0:
			u.refund(now, min(used, -call.Cost))
		}
	}
	if remaining := limit - u.used(now).Int64(); remaining > 0 {
		v.Remaining = remaining
	}
	for u.used(now+v.ResetAfter).Sign() > 0 {
		v.ResetAfter++
	}
	return v
}

// same compares two verdicts in all but what is to be written, which the next calls of the history show. A call that only looks writes
// nothing.
func same(t *rapid.T, want, got Verdict, what any) {
	if call, ok := what.(Call); ok && got.Write != Keep && (call.Cost == 0 || call.Peek) {
		t.Fatalf("%+v writes: %+v", call, got)
	}
	got.Write = Keep
	if want != got {
		t.Fatalf("%+v\nmodel: %+v\ngot:   %+v", what, want, got)
	}
}

// drawCall draws a call around the limit, and drawStep the time until it.
func drawCall(t *rapid.T, limit int64) Call {
	costs := rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(-4, 6), rapid.Int64Range(limit-2, limit+2))
	return Call{Cost: costs.Draw(t, "cost"), Peek: rapid.IntRange(0, 5).Draw(t, "peek") == 0}
}

func drawStep(t *rapid.T, window int64) int64 {
	return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 3), rapid.Int64Range(0, window+window/4+1)).Draw(t, "step")
}

// drawLimit draws the limit of one call: limits change while keys keep their state.
func drawLimit(t *rapid.T) int64 { return rapid.Int64Range(0, 8).Draw(t, "limit") }

// calls draws how long a history is.
func calls(t *rapid.T) int { return rapid.IntRange(1, 25).Draw(t, "calls") }

// startMs is when histories begin, so that windows aligned with the epoch are cut anywhere.
func startMs(t *rapid.T) int64 {
	return rapid.Int64Range(0, 100_000).Draw(t, "start") + 1_760_000_000_000
}

// fixedUsage is the list of all units of one window.
type fixedUsage struct {
	end   int64
	ends  func(at int64) int64
	units []int64
}

func (f *fixedUsage) used(at int64) *big.Int {
	total := new(big.Int)
	if at < f.end {
		for _, n := range f.units {
			total.Add(total, big.NewInt(n))
		}
	}
	return total
}

func (f *fixedUsage) charge(at, units int64) {
	if at >= f.end {
		f.end, f.units = f.ends(at), nil
	}
	f.units = append(f.units, units)
}

func (f *fixedUsage) horizon() int64 { return 64 }

func (f *fixedUsage) refund(_, units int64) { f.units = append(f.units, -units) }

func TestFixedHistories(t *testing.T) {
	checkHistories(t, func(t *rapid.T) {
		window := rapid.Int64Range(1, 60).Draw(t, "window")
		aligned := rapid.Bool().Draw(t, "aligned")
		ends := func(at int64) int64 {
			if !aligned {
				return at + window
			}
			for end := at + 1; ; end++ {
				if end%window == 0 {
					return end
				}
			}
		}
		model := &fixedUsage{ends: ends}
		var key FixedState
		now := startMs(t)
		for range calls(t) {
			now += drawStep(t, window)
			limit := drawLimit(t)
			call := drawCall(t, limit)
			end := now + window
			if aligned {
				end = AlignedEnd(now, window)
			}
			key.Exists = key.Exists && now <= key.ExpireAtMs // the store lets a key live through its last millisecond
			if call.Cost > 0 && key.Exists && now < key.ExpireAtMs && !call.Peek && rapid.IntRange(0, 7).Draw(t, "lose the TTL") == 0 {
				key.ExpireAtMs = rapid.SampledFrom([]int64{0, end + 1, end + 1000}).Draw(t, "TTL")
				model.end = end // the call is to mend it
			}
			got := Fixed{Limit: limit, EndMs: end}.Decide(now, key, call)
			same(t, expect(model, limit, now, call), got.Verdict, call)
			if got.Write == Set {
				key = FixedState{Count: got.Count, ExpireAtMs: got.ExpireAtMs, Exists: true}
			}
		}
	})
}

// slidingUsage is the list of all units, the oldest first.
type slidingUsage struct {
	slice, slices int64
	at, units     []int64
}

func (s *slidingUsage) used(at int64) *big.Int {
	full, last := int64(0), int64(0)
	for i, charged := range s.at {
		switch back := at/s.slice - charged/s.slice; {
		case back < s.slices:
			full += s.units[i]
		case back == s.slices:
			last += s.units[i]
		}
	}
	fading := new(big.Rat).SetFrac64(last*(s.slice-at%s.slice), s.slice)
	up := new(big.Int).Neg(new(big.Int).Div(new(big.Int).Neg(fading.Num()), fading.Denom()))
	return up.Add(up, big.NewInt(full))
}

func (s *slidingUsage) horizon() int64 { return (s.slices + 1) * s.slice }

func (s *slidingUsage) charge(at, units int64) {
	s.at, s.units = append(s.at, at), append(s.units, units)
}

// refund takes one unit after another from the newest until so much less is used.
func (s *slidingUsage) refund(at, units int64) {
	target := s.used(at).Int64() - units
	for i := len(s.at) - 1; s.used(at).Int64() > target; {
		if s.units[i] == 0 {
			i--
			continue
		}
		s.units[i]--
	}
}

func TestSlidingHistories(t *testing.T) {
	checkHistories(t, func(t *rapid.T) {
		window := rapid.Int64Range(1, 60).Draw(t, "window")
		slices := rapid.IntRange(1, 12).Draw(t, "slices")
		model := &slidingUsage{slices: int64(slices), slice: window / int64(slices)}
		if window%int64(slices) > 0 {
			model.slice++
		}
		stored := map[int64]int64{}
		now := startMs(t)
		for range calls(t) {
			now += drawStep(t, window)
			limit := drawLimit(t)
			s := NewSliding(limit, window, slices)
			counts := make([]int64, s.Counts())
			call := drawCall(t, limit)
			for start, count := range stored {
				if i, ok := s.Index(now, start); ok {
					counts[i] += count
				}
			}
			got := s.Decide(now, counts, call)
			same(t, expect(model, limit, now, call), got.Verdict, call)
			switch got.Write {
			case Set:
				for i := range got.LastChanged + 1 {
					stored[s.StartOf(now, i)] = counts[i]
				}
			case Delete:
				clear(stored)
			case Keep:
			}
		}
	})
}

// logUsage is the list of all units, one entry each.
type logUsage struct {
	window  int64
	entries []int64
}

func (l *logUsage) used(at int64) *big.Int {
	n := int64(0)
	for _, entry := range l.entries {
		if entry > at-l.window && entry <= at {
			n++
		}
	}
	return big.NewInt(n)
}

func (l *logUsage) charge(at, units int64) {
	for range units {
		l.entries = append(l.entries, at)
	}
}

func (l *logUsage) horizon() int64 { return l.window }

func (l *logUsage) refund(_, units int64) { l.entries = l.entries[:len(l.entries)-int(units)] }

func TestLogHistories(t *testing.T) {
	checkHistories(t, func(t *rapid.T) {
		window := rapid.Int64Range(1, 60).Draw(t, "window")
		model := &logUsage{window: window}
		var list []int64
		now := startMs(t)
		for range calls(t) {
			now += drawStep(t, window)
			l := Log{Limit: drawLimit(t), Window: window}
			call := drawCall(t, l.Limit)
			for len(list) > 0 && list[0] <= l.Since(now) {
				list = list[1:]
			}
			got := l.Decide(now, int64(len(list)), func(i int64) int64 { return list[i] }, call)
			same(t, expect(model, l.Limit, now, call), got.Verdict, call)
			switch got.Write {
			case Set:
				list = list[:len(list)-int(got.Remove)]
				for range got.Add {
					list = append(list, now)
				}
			case Delete:
				list = nil
			case Keep:
			}
			if got.Write == Set && got.ExpireAtMs != list[len(list)-1]+l.Window {
				t.Fatalf("%+v expires otherwise than its newest entry, %d", got, list[len(list)-1])
			}
		}
	})
}
