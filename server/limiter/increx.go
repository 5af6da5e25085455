package limiter

import (
	"math"

	"headgate/internal/number"
)

// Increx is a call of INCREX, as Redis 8.8 has it: a number is added to the one that a key holds, if the sum stays within bounds.
type Increx struct {
	Delta, Low, High int64

	Float                           bool // the numbers are those that follow, and the key's may be a fraction
	FloatDelta, FloatLow, FloatHigh number.LongDouble

	Saturate bool // a sum beyond a bound becomes the bound
	Persist  bool // the key does not expire any more

	Expires  bool  // it does, and this is when:
	Relative bool  // TimeMs is from now on, and not Unix time
	TimeMs   int64 // above 0
	Absent   bool  // only if it has not expired before (ENX)
}

// Add returns what becomes of an integer, and by how much that is more: cut to 64 bits, though with Saturate it may have moved further. write is false if it
// stays as it is, out of bounds.
func (x *Increx) Add(current int64) (sum, applied int64, write bool) {
	sum, within := addWithin(current, x.Delta, x.Low, x.High)
	switch {
	case within:
		return sum, sum - current, true
	case x.Saturate:
		return sum, clampedDifference(sum, current), true
	}
	return current, 0, false
}

// addWithin returns a + b, or the bound that it is beyond.
func addWithin(a, b, low, high int64) (sum int64, within bool) {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return high, false
	case b < 0 && a < math.MinInt64-b:
		return low, false
	}
	sum = a + b
	return min(max(sum, low), high), low <= sum && sum <= high
}

func clampedDifference(a, b int64) int64 {
	switch {
	case b < 0 && a > math.MaxInt64+b:
		return math.MaxInt64
	case b > 0 && a < math.MinInt64+b:
		return math.MinInt64
	}
	return a - b
}

// AddFloat is Add for fractions.
func (x *Increx) AddFloat(current number.LongDouble) (sum, applied number.LongDouble, write bool) {
	sum, finite := current.Add(x.FloatDelta)
	within := finite && sum.Cmp(x.FloatLow) >= 0 && sum.Cmp(x.FloatHigh) <= 0
	if !within {
		switch {
		case !x.Saturate:
			sum = current
		case finite && sum.Cmp(x.FloatLow) < 0, !finite && x.FloatDelta.Cmp(number.LongDouble{}) < 0:
			sum = x.FloatLow
		default:
			sum = x.FloatHigh
		}
		if sum.IsInf() {
			sum = current // saturated at a bound that is none
		}
	}
	applied, _ = sum.Add(current.Neg())
	return sum, applied, within || x.Saturate
}

// Expiry returns when the key is to expire, in Unix ms and 0 for never, and whether that is as before. presentMs is when it does now; nowMs is the
// time from which TimeMs counts.
func (x *Increx) Expiry(presentMs, nowMs int64) (atMs int64, kept bool) {
	switch {
	case x.Persist:
		return 0, false
	case !x.Expires || x.Absent && presentMs != 0:
		return presentMs, true
	case x.Relative:
		return nowMs + x.TimeMs, false
	}
	return x.TimeMs, false
}
