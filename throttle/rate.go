package throttle

import (
	"math"
	"math/bits"
)

// Rate decides by GCRA for a rate of count units in a period, whatever their quotient: where a GCRA cuts the emission interval to whole
// nanoseconds, and so refills 300,000,000 a second at 333,333,333, a Rate rounds each charge by itself. The state is the same TAT.
//
// The rule, with P for the period in ns, C for the count and products of 128 bits:
//
//	a charge of n units   ceil(n·P/C) ns
//	a refund of n units   floor(n·P/C) ns
//	tolerance             min(capacity·ceil(P/C), ceil(capacity·P/C) + max(0, floor(P/C) - 1)) ns
//	remaining             floor((tolerance - ahead)·C/P) units, from 0 to capacity
//
// A cost above the capacity never passes. That is decided by comparing the two: where C > P several units may cost the same nanosecond.
//
// What it guarantees, without refunds. Between any two instants t apart, both included, less than capacity + t·C/P + 1 units pass: so a
// fresh bucket admits its capacity, and never one more, in whatever pieces. Above one unit a nanosecond (C > P) the last term is C/P, what passes in
// one nanosecond: one call still gets the capacity and never one more, but several calls may. The rate is missed by less than 1 ns a call, so
// by less than a billionth where a call costs 1 s or more. As many calls for one unit as the capacity has pass at once up to a capacity of P/C;
// beyond, their roundings add up to more than a unit. Where C divides P nothing is rounded, and all is as with GCRA.
//
// Why. Whatever passes from s to s+t moves the TAT from s or later to s + t + tolerance at most, and n units move it by n·P/C ns at least: so at
// most (t + tolerance)·C/P units pass. ceil(x) is below x + 1, so the tolerance is below capacity·P/C + max(1, floor(P/C)), which makes the
// bound. The tolerance is at least ceil(capacity·P/C), since capacity·ceil(P/C) is a whole number that is not below capacity·P/C; so the
// capacity passes at once. A charge is below n·P/C + 1 ns, which is all that a call can lose. And the roundings of capacity calls for one unit
// are below capacity ns, hence at most floor(P/C) - 1 up to a capacity of floor(P/C), which is why the tolerance has that much to spare.
//
// It is an immutable value of four words. The zero Rate lets nothing pass: it answers with ErrOverflow or limits.
type Rate struct {
	capacity  int64
	tolerance int64

	// period / count is what a unit costs in ns. The count is 1 where it divides the period, which spares charges the division.
	period, count uint64
}

// NewRate returns the Rate of a capacity of at least 0, and of a count and a period in nanoseconds of at least 1. It returns ErrOverflow
// when the tolerance leaves int64.
func NewRate(capacity, count, periodNs int64) (Rate, error) {
	r := Rate{capacity: capacity, period: uint64(periodNs), count: uint64(count)}
	floor := r.period / r.count
	if r.period%r.count == 0 {
		r.period, r.count = floor, 1
	}
	unit, _ := r.charge(1) // fits, as the period does
	whole, ok := r.charge(capacity)
	if !ok {
		return Rate{}, ErrOverflow
	}
	tolerance := uint64(whole)
	if floor > 1 {
		tolerance += floor - 1 // fits: both are in the range of int64
	}
	if hi, apart := bits.Mul64(uint64(capacity), uint64(unit)); hi == 0 {
		tolerance = min(tolerance, apart)
	}
	if tolerance > math.MaxInt64 {
		return Rate{}, ErrOverflow
	}
	r.tolerance = int64(tolerance)
	return r, nil
}

// ChargeTo answers a call at the instant now, which is not negative, and writes the answer to d, which is all zero after an error: a Decision
// is too long to be returned in registers. The stored state is tat when exists is true, and tat is ignored otherwise; every tat is valid,
// because users can write the key themselves. A call that gives back stops at "nothing is used" and is never limited; one that is worth less
// than a nanosecond changes nothing, like a cost of 0. A Peek tells of the state as it is.
//
// It returns ErrOverflow when the new TAT leaves int64. A cost above the capacity is limited and one below 0 gives all back, however far from 0
// either is.
func (r *Rate) ChargeTo(d *Decision, now, tat int64, exists bool, call Call) error {
	*d = Decision{}
	if !exists {
		tat = now
	}
	tat = max(now, tat)
	charge, newTAT := int64(0), tat
	if call.Cost <= r.capacity {
		var ok bool
		if charge, ok = r.bounded(call.Cost); ok {
			newTAT, ok = add(tat, charge)
		}
		if !ok {
			return ErrOverflow
		}
		newTAT = max(now, newTAT)
	}

	d.Limit, d.RetryAfter = r.capacity, NoRetry
	ahead := newTAT - now // fits, as now is not negative
	switch {
	case call.Cost > r.capacity:
		d.Limited = true
	case call.Cost >= 0 && ahead > r.tolerance:
		d.Limited, d.RetryAfter = true, ahead-r.tolerance
	case call.Peek, charge == 0:
	case newTAT > now:
		d.Write, d.TAT = Set, newTAT
	case exists:
		d.Write = Delete
	}
	if d.Limited || call.Peek {
		ahead = tat - now
	}
	d.Remaining, d.ResetAfter = r.remaining(ahead), ahead
	return nil
}

// Boundless returns the Rate that charges the same and limits nothing.
func (r Rate) Boundless() Rate {
	r.capacity, r.tolerance = math.MaxInt64, math.MaxInt64
	return r
}

// Wait returns how long a leaky bucket that is a queue holds a request back that it lets in now: until everything charged before
// is paid off, 0 or more nanoseconds.
func (r *Rate) Wait(now, tat int64, exists bool) int64 {
	if !exists || tat <= now {
		return 0
	}
	return tat - now
}

// charge returns the nanoseconds by which a cost moves the TAT, rounded up, which for a refund is back and by less than it is worth; and
// whether int64 holds them.
func (r *Rate) charge(cost int64) (ns int64, ok bool) {
	if cost < 0 {
		back, _, ok := scale(-uint64(cost), r.period, r.count)
		return -int64(back), ok && back <= 1<<63
	}
	whole, rest, ok := scale(uint64(cost), r.period, r.count)
	up := uint64(0)
	if rest > 0 {
		up = 1
	}
	return int64(whole + up), ok && whole <= math.MaxInt64-up
}

// bounded is charge, but for a refund of more than int64 holds, which is all that can ever have been charged.
func (r *Rate) bounded(cost int64) (ns int64, ok bool) {
	ns, ok = r.charge(cost)
	if !ok && cost < 0 {
		return -math.MaxInt64, true
	}
	return ns, ok
}

// FillTime is how long an empty bucket takes until it is full, in nanoseconds, rounded up.
func (r *Rate) FillTime() int64 {
	ns, _ := r.charge(r.capacity) // fits, or NewRate would have refused the capacity
	return ns
}

// remaining returns the whole units that fit between a TAT this far ahead of now and the tolerance.
func (r *Rate) remaining(ahead int64) int64 {
	if ahead >= r.tolerance {
		return 0
	}
	units, _, ok := scale(uint64(r.tolerance-ahead), r.count, r.period)
	if !ok || units > uint64(r.capacity) {
		return r.capacity
	}
	return int64(units)
}

// scale returns n times a numerator over a denominator, with what is left over, and whether there is such a number and 64 bits hold it.
func scale(n, numerator, denominator uint64) (quotient, rest uint64, ok bool) {
	hi, lo := bits.Mul64(n, numerator)
	if hi >= denominator {
		return 0, 0, false
	}
	if denominator == 1 {
		return lo, 0, true
	}
	quotient, rest = bits.Div64(hi, lo, denominator)
	return quotient, rest, true
}
