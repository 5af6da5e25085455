package throttle

import (
	"math"
	"math/big"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRateIsNotCut: rates that no whole number of nanoseconds makes, of which an interval cut to nanoseconds made 333,333,333 and
// 1,000,000,000 a second, or an error.
func TestRateIsNotCut(t *testing.T) {
	for _, test := range []struct {
		name            string
		capacity, count int64
		full            int64 // ns that the whole capacity is charged
		half            int64 // what has come back half a second after all was taken
	}{
		{"300 MB", 300_000_000, 300_000_000, nsPerSecond, 150_000_000},
		{"600 MB", 600_000_000, 600_000_000, nsPerSecond, 300_000_000},
		{"three", 3, 3, nsPerSecond, 1},
		{"one of three", 1, 3, 333_333_334, 1},
		{"seven", 7, 7, nsPerSecond, 3},
		{"a billion and one", 1_000_000_001, 1_000_000_001, nsPerSecond, 500_000_000},
		{"10^15", 1e15, 1e15, nsPerSecond, 5e14},
		{"a capacity below what a nanosecond brings", 1_000, 1e15, 1, 1_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := NewRate(test.capacity, test.count, nsPerSecond)
			require.NoError(t, err)
			d := ask(t, r, epoch, 0, false, Call{Cost: test.capacity})
			require.Equal(t, Decision{Write: Set, Limit: test.capacity, RetryAfter: NoRetry, ResetAfter: test.full, TAT: epoch + test.full}, d)
			tat := d.TAT
			d = ask(t, r, epoch, tat, true, Call{Cost: 1})
			require.True(t, d.Limited, "one more")
			passes := epoch + d.RetryAfter
			require.True(t, ask(t, r, passes-1, tat, true, Call{Cost: 1}).Limited, "1 ns before its retry")
			require.False(t, ask(t, r, passes, tat, true, Call{Cost: 1}).Limited, "at its retry")
			require.Equal(t, test.half, ask(t, r, epoch+nsPerSecond/2, tat, true, Call{Peek: true}).Remaining)
		})
	}
}

func TestNewRate(t *testing.T) {
	for _, test := range []struct {
		capacity, count, period int64
		want                    error
	}{
		{math.MaxInt64, 1, 2, ErrOverflow},
		{math.MaxInt64, 1, 1, nil},
		{math.MaxInt64, 2, 1, nil},
		{math.MaxInt64, 2, 3, ErrOverflow},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64 - 1, nil},
		{2, 1, math.MaxInt64, ErrOverflow},
		{1, 1, math.MaxInt64, nil},
		{2, 2, math.MaxInt64, ErrOverflow}, // by 1: twice half of it, rounded up
		{1, math.MaxInt64, 1, nil},
		{0, 3, 10, nil},
	} {
		r, err := NewRate(test.capacity, test.count, test.period)
		require.ErrorIs(t, err, test.want, "%+v", test)
		if err == nil {
			d := ask(t, r, 0, 0, false, Call{})
			require.Equal(t, Decision{Limit: test.capacity, Remaining: test.capacity, RetryAfter: NoRetry}, d, "%+v", test)
		} else {
			require.Zero(t, r)
		}
	}
}

func TestRateErrors(t *testing.T) {
	r, err := NewRate(15, 30, 60*nsPerSecond)
	require.NoError(t, err)
	for _, test := range []struct {
		rate      Rate
		now, cost int64
	}{
		{r, math.MaxInt64 - 2*nsPerSecond + 1, 1}, // by a nanosecond
		{Rate{}, epoch, 0},
	} {
		d := Decision{Limit: 1}
		require.ErrorIs(t, test.rate.ChargeTo(&d, test.now, 0, false, Call{Cost: test.cost}), ErrOverflow, "%+v", test)
		require.Zero(t, d)
	}
	require.False(t, ask(t, r, math.MaxInt64-2*nsPerSecond, 0, false, Call{Cost: 1}).Limited)
}

// TestHugeCosts: what is above the capacity never passes, and a refund gives back what is in use, also where int64 does not hold the charge.
func TestHugeCosts(t *testing.T) {
	for _, test := range []struct{ count, period int64 }{{1, 1}, {2, 3}, {30, 60 * nsPerSecond}} {
		r, err := NewRate(15, test.count, test.period)
		require.NoError(t, err)
		unit := ask(t, r, epoch, 0, false, Call{Cost: 1}).ResetAfter
		for _, cost := range []int64{16, 4_611_686_018, math.MaxInt64 / 2, math.MaxInt64} {
			d := ask(t, r, epoch, epoch+unit, true, Call{Cost: cost})
			require.Equal(t, Decision{Limited: true, Limit: 15, Remaining: 14, RetryAfter: NoRetry, ResetAfter: unit}, d, "%+v, %d", test, cost)
			terms, certain := r.Terms(cost)
			require.Equal(t, Terms{Tolerance: never}, terms)
			require.True(t, certain)
		}
		for _, cost := range []int64{-15, -4_611_686_018, math.MinInt64 / 2, math.MinInt64} {
			d := ask(t, r, epoch, epoch+unit, true, Call{Cost: cost})
			require.Equal(t, Decision{Write: Delete, Limit: 15, Remaining: 15, RetryAfter: NoRetry}, d, "%+v, %d", test, cost)
			_, certain := r.Terms(cost)
			require.True(t, certain)
		}
	}
}

// TestRefundBelowANanosecond: what is worth less than the state can tell is not given back, and nothing is written.
func TestRefundBelowANanosecond(t *testing.T) {
	r, err := NewRate(1_000, 10, 3)
	require.NoError(t, err)
	d := ask(t, r, epoch, epoch+100, true, Call{Cost: -3})
	require.Equal(t, Decision{Limit: 1_000, Remaining: 666, RetryAfter: NoRetry, ResetAfter: 100}, d)
	d = ask(t, r, epoch, epoch+100, true, Call{Cost: -4})
	require.Equal(t, Decision{Write: Set, Limit: 1_000, Remaining: 670, RetryAfter: NoRetry, ResetAfter: 99, TAT: epoch + 99}, d)
}

func TestRateAllocatesNothing(t *testing.T) {
	for _, count := range []int64{1, 3, 1e15} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			r, _ := NewRate(1_000, count, nsPerSecond)
			var d Decision
			_ = r.ChargeTo(&d, epoch, epoch+1, true, oneUnit)
			_ = r.ChargeTo(&d, epoch, epoch+1, true, Call{Cost: -1, Peek: true})
		}), "count %d", count)
	}
}

// TestRateNeverAdmitsMoreThanItsCapacity draws capacities, counts up to 10^15 and periods, and holds all that a Rate answers to integers that have
// no end: its charges, its tolerance, what remains. A fresh bucket admits its capacity and never one more, at once or in pieces.
func TestRateNeverAdmitsMoreThanItsCapacity(t *testing.T) {
	draw := drawer{newRand(t)}
	tried := 0
	for range *histories {
		exact := draw.rate()
		tolerance := exact.tolerance()
		r, err := NewRate(exact.capacity, exact.count, exact.period)
		if !tolerance.IsInt64() {
			require.ErrorIs(t, err, ErrOverflow, "%+v", exact)
			continue
		}
		if err != nil || r.tolerance != tolerance.Int64() {
			require.Failf(t, "wrong", "%+v: tolerance %d, %v; want %v", exact, r.tolerance, err, tolerance)
		}
		tried++
		for range 3 {
			exact.compareCharge(t, r, draw.upTo(math.MaxInt64))
			exact.compareCharge(t, r, -draw.upTo(math.MaxInt64))
			exact.compareRemaining(t, r, draw.upTo(r.tolerance))
			exact.compareRemaining(t, r, max(r.tolerance-draw.Int64N(100), 0))
		}
		exact.fill(t, r)
		exact.fillInPieces(t, r, draw)
	}
	require.Greater(t, tried, *histories/4)
	t.Logf("%d of %d triples have a tolerance that int64 holds", tried, *histories)
}

// TestRateNeverBeyondItsBound has a greedy caller take the same cost again and again, each time as soon as it passes: what has passed is
// below capacity + rate·t + max(1, what a nanosecond brings), and was late by less than 1 ns a call.
func TestRateNeverBeyondItsBound(t *testing.T) {
	const calls = 12
	draw := drawer{newRand(t)}
	for range *histories {
		exact := draw.rate()
		r, err := NewRate(exact.capacity, exact.count, exact.period)
		if err != nil || exact.capacity == 0 {
			continue
		}
		cost := 1 + draw.upTo(exact.capacity-1)
		now, tat, units := int64(0), int64(0), new(big.Int)
		for range calls {
			call := Call{Cost: cost}
			var d Decision
			if err = r.ChargeTo(&d, now, tat, true, call); err == nil && d.Limited {
				now += d.RetryAfter
				err = r.ChargeTo(&d, now, tat, true, call)
			}
			if err != nil {
				break // at the end of int64's time
			}
			if d.Limited {
				require.Failf(t, "limited at its retry", "%+v, cost %d", exact, cost)
			}
			tat = d.TAT
			plusTo(units, cost)
			exact.bound(t, now, units, cost)
		}
	}
}

// exactRate is a rate by the words of the rule.
type exactRate struct{ capacity, count, period int64 }

// rate draws numbers of every length, and quotients near 1 and near whole numbers.
func (r drawer) rate() exactRate {
	const maxCount, maxPeriod = int64(1e15), int64(36525 * 86_400 * nsPerSecond)
	e := exactRate{capacity: r.upTo(math.MaxInt64), count: 1 + r.upTo(maxCount-1), period: 1 + r.upTo(maxPeriod-1)}
	switch r.IntN(6) {
	case 0:
		e.count = min(max(e.period+r.Int64N(7)-3, 1), maxCount)
	case 1:
		e.period = max(e.count*(1+r.upTo(maxPeriod/maxCount-1))+r.Int64N(3)-1, 1)
	case 2:
		e.period = []int64{nsPerUs, nsPerMs, nsPerSecond, 60 * nsPerSecond, 86_400 * nsPerSecond}[r.IntN(5)]
	}
	switch r.IntN(4) {
	case 0:
		e.capacity = r.Int64N(20)
	case 1:
		e.capacity = e.count
	}
	return e
}

// upTo is a number from 0 to n, of any length that n has or less.
func (r drawer) upTo(n int64) int64 {
	if n == 0 {
		return 0
	}
	return int64(r.Uint64N(uint64(n>>r.IntN(bits.Len64(uint64(n)))) + 1))
}

// above reports whether more than one unit passes per nanosecond.
func (e exactRate) above() bool { return e.count > e.period }

// cost is what units cost in nanoseconds, rounded up.
func (e exactRate) cost(units *big.Int) *big.Int {
	return divideUp(times(units, big.NewInt(e.period)), e.count)
}

// back is what units are worth that are given back, rounded down.
func (e exactRate) back(units *big.Int) *big.Int {
	return new(big.Int).Div(times(units, big.NewInt(e.period)), big.NewInt(e.count))
}

// charge is by how much a cost moves the TAT.
func (e exactRate) charge(cost int64) *big.Int {
	if cost < 0 {
		back := e.back(new(big.Int).Neg(big.NewInt(cost)))
		return back.Neg(back)
	}
	return e.cost(big.NewInt(cost))
}

func (e exactRate) tolerance() *big.Int {
	capacity, one := big.NewInt(e.capacity), big.NewInt(1)
	apart := times(capacity, e.cost(one))
	whole := e.cost(capacity)
	if spare := minus(e.back(one), one); spare.Sign() > 0 {
		whole = plus(whole, spare)
	}
	if apart.Cmp(whole) < 0 {
		return apart
	}
	return whole
}

// remaining is what still passes when the TAT is so far ahead.
func (e exactRate) remaining(ahead int64) *big.Int {
	units := new(big.Int).Div(times(minus(e.tolerance(), big.NewInt(ahead)), big.NewInt(e.count)), big.NewInt(e.period))
	switch capacity := big.NewInt(e.capacity); {
	case units.Sign() < 0:
		return new(big.Int)
	case units.Cmp(capacity) > 0:
		return capacity
	}
	return units
}

func (e exactRate) compareCharge(t *testing.T, r Rate, cost int64) {
	want := e.charge(cost)
	if got, ok := r.charge(cost); ok != want.IsInt64() || ok && got != want.Int64() {
		require.Failf(t, "wrong charge", "%+v, cost %d: %d, %t; want %v", e, cost, got, ok, want)
	}
}

// compareRemaining also takes what remains, and one more.
func (e exactRate) compareRemaining(t *testing.T, r Rate, ahead int64) {
	want := e.remaining(ahead).Int64()
	d := ask(t, r, 0, ahead, true, Call{Peek: true})
	if d.Remaining != want || d.ResetAfter != ahead {
		require.Failf(t, "wrong", "%+v, %d ahead: %+v; want %d remaining", e, ahead, d, want)
	}
	if want > 0 && passes(r, ahead, want) != nil {
		require.Failf(t, "what remains does not pass", "%+v, %d ahead, %d remaining: %v", e, ahead, want, passes(r, ahead, want))
	}
	if want < math.MaxInt64 && passes(r, ahead, want+1) == nil {
		require.Failf(t, "more than what remains passes", "%+v, %d ahead, %d remaining", e, ahead, want)
	}
}

// fill asks a fresh bucket for its capacity, and for one more than that in all ways.
func (e exactRate) fill(t *testing.T, r Rate) {
	full := e.cost(big.NewInt(e.capacity)).Int64()
	d := ask(t, r, 0, 0, false, Call{Cost: e.capacity})
	if d.Limited || d.Remaining != 0 || d.ResetAfter != full || d.TAT != full {
		require.Failf(t, "wrong", "%+v: COST capacity: %+v; want %d ns", e, d, full)
	}
	if passes(r, full, 1) == nil {
		require.Failf(t, "one more than the capacity passes", "%+v", e)
	}
	if e.capacity == math.MaxInt64 {
		return
	}
	var more Decision
	if err := r.ChargeTo(&more, 0, 0, false, Call{Cost: e.capacity + 1}); err == nil && (!more.Limited || more.RetryAfter != NoRetry) {
		require.Failf(t, "COST capacity + 1 is not limited for ever", "%+v: %+v", e, more)
	}
}

// fillInPieces asks a fresh bucket for some at a time, and at last for single units.
func (e exactRate) fillInPieces(t *testing.T, r Rate, draw drawer) {
	ahead, taken := int64(0), new(big.Int)
	take := func(cost int64) bool {
		var d Decision
		if r.ChargeTo(&d, 0, ahead, true, Call{Cost: cost}) != nil || d.Limited {
			return false
		}
		ahead = d.ResetAfter
		plusTo(taken, cost)
		return true
	}
	for range 6 {
		take(draw.upTo(e.capacity))
	}
	const most = 20
	for range most {
		if !take(1) {
			break
		}
	}
	e.bound(t, 0, taken, 0)
	if !e.above() && e.capacity <= min(most, e.period/e.count) && taken.Cmp(big.NewInt(e.capacity)) != 0 {
		require.Failf(t, "single units do not fill the bucket", "%+v: %v", e, taken)
	}
}

// bound holds what has passed from the instant 0, when nothing was used, to t to the bounds that Rate is documented with. Of a caller that takes the same
// cost as soon as it passes, it also holds the lower one.
func (e exactRate) bound(t *testing.T, at int64, units *big.Int, cost int64) {
	// Both sides are multiplied by the period: units·P < capacity·P + t·C + max(P, C).
	count, period := big.NewInt(e.count), big.NewInt(e.period)
	most := plus(times(big.NewInt(e.capacity), period), times(big.NewInt(at), count))
	most = plus(most, big.NewInt(max(e.period, e.count)))
	if times(units, period).Cmp(most) >= 0 {
		require.Failf(t, "too much", "%+v: %v have passed after %d ns", e, units, at)
	}
	if !e.above() && at == 0 && units.Cmp(big.NewInt(e.capacity)) > 0 {
		require.Failf(t, "more than the capacity at once", "%+v: %v", e, units)
	}
	if cost == 0 {
		return
	}
	// t < (units - capacity)·P/C + calls, once it has had to wait.
	calls := new(big.Int).Quo(units, big.NewInt(cost))
	latest := plus(times(minus(units, big.NewInt(e.capacity)), period), times(calls, count))
	if at > 0 && times(big.NewInt(at), count).Cmp(latest) >= 0 {
		require.Failf(t, "too slow", "%+v, cost %d: %v have passed after %d ns", e, cost, units, at)
	}
}

// ask answers a call that is no error.
func ask(t *testing.T, r Rate, now, tat int64, exists bool, call Call) Decision {
	var d Decision
	if err := r.ChargeTo(&d, now, tat, exists, call); err != nil {
		require.NoError(t, err, "%+v %d %d %+v", r, now, tat, call)
	}
	return d
}

// passes is nil if a cost passes at the instant 0 with the TAT so far ahead, or says what comes of it.
func passes(r Rate, ahead, cost int64) any {
	var d Decision
	if err := r.ChargeTo(&d, 0, ahead, true, Call{Cost: cost}); err != nil {
		return err
	}
	if d.Limited {
		return d
	}
	return nil
}

// plusTo adds to a sum.
func plusTo(sum *big.Int, n int64) { sum.Add(sum, big.NewInt(n)) }
