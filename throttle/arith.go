package throttle

import (
	"math"
	"math/bits"
)

// add returns a + b, and whether int64 holds it. A sum overflows just when its sign differs from that of both operands.
func add(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum^a)&(sum^b) >= 0
}

// sub returns a - b, and whether int64 holds it. A difference overflows just when the operands differ in sign and it
// has not got the first one's.
func sub(a, b int64) (int64, bool) {
	difference := a - b
	return difference, (a^b)&(a^difference) >= 0
}

// mul returns a * b, and whether int64 holds it: the upper half of the 128-bit product must be nothing but copies of
// the lower half's sign bit. An unsigned product read as a signed one is too large by each operand in the upper half
// where the other one is negative.
func mul(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	upper := int64(hi) - (a >> 63 & b) - (b >> 63 & a)
	return int64(lo), upper == int64(lo)>>63
}

// saturatingAdd returns a + b for operands that are not negative, or the largest int64 where it is more than that.
func saturatingAdd(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// floorMod returns what is left of n after whole multiples of a positive unit: 0 or more for negative n too.
func floorMod(n, unit int64) int64 {
	rest := n % unit
	if rest < 0 {
		rest += unit
	}
	return rest
}
