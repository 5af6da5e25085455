package number

import (
	"math"
	"math/big"
)

// The x87 extended format, which is C's long double on x86-64.
const (
	longDoubleBits   = 64     // bits of the mantissa
	longDoubleExpMax = 16384  // every finite value is below 2^16384
	longDoubleExpMin = -16445 // the least positive value is 2^-16445

	// longDoubleTextMax is the longest text that Redis reads one from.
	longDoubleTextMax = 5*1024 - 1
	// longDoubleDigits is how many digits stand behind the point when one is
	// printed for people.
	longDoubleDigits = 17
)

// LongDouble is a number with the range and precision of C's long double on
// x86-64, in which INCRBYFLOAT and HINCRBYFLOAT calculate. It is a finite
// number or an infinity, never NaN. The zero value is 0. A LongDouble does not
// change; copies may be used concurrently.
type LongDouble struct{ f big.Float }

// ParseLongDouble reads a long double as Redis reads one from an argument or a
// value: the whole of s is a number in a form that C's strtold knows, decimal
// or hexadecimal, or an infinity. It reports false for anything else: an empty
// text, one of 5 KiB and more, spaces, NaN, and numbers too large for a long
// double or too small to be anything but 0.
func ParseLongDouble(s []byte) (value LongDouble, ok bool) {
	if len(s) > longDoubleTextMax {
		return LongDouble{}, false
	}
	t := scanFloat(s)
	if t.length == 0 || t.length != len(s) {
		return LongDouble{}, false
	}
	value.f.SetPrec(longDoubleBits)
	switch {
	case t.infinite:
		value.f.SetInf(t.negative)
		return value, true
	case t.zero:
		return value, true
	}
	if !value.setDigits(s, &t) {
		return LongDouble{}, false
	}
	if t.negative {
		value.f.Neg(&value.f)
	}
	return value, true
}

// LongDoubleOf returns n, which a long double holds exactly. It is for tests, of other packages too: what clients send is read by
// ParseLongDouble.
func LongDoubleOf(n int64) (value LongDouble) {
	value.f.SetPrec(longDoubleBits).SetInt64(n)
	return value
}

// setDigits sets x to the magnitude of the number that t describes, rounded
// once to the nearest long double. It reports false when that is outside of
// the range.
func (x *LongDouble) setDigits(s []byte, t *floatText) bool {
	// Far outside of the range there is no need to calculate, and no memory
	// for the powers. A text has at most longDoubleTextMax digits to make up
	// for its exponent.
	base, perDigit, farOutside := 10, 1, 1<<14
	if t.hex {
		base, perDigit, farOutside = 16, 4, 1<<16
	}
	digits := append([]byte(nil), s[t.first:t.point]...)
	fraction := 0
	if t.point < t.last {
		fraction = t.last - t.point - 1
		digits = append(digits, s[t.point+1:t.last]...)
	}
	exponent := t.exponent - fraction*perDigit
	if exponent > farOutside || exponent < -farOutside {
		return false
	}
	mantissa, ok := new(big.Int).SetString(string(digits), base)
	if !ok {
		panic("number: scanFloat let through what is no digit")
	}
	switch {
	case t.hex:
		x.f.SetInt(mantissa)
		x.f.SetMantExp(&x.f, exponent)
	case exponent >= 0:
		x.f.SetInt(mantissa.Mul(mantissa, powerOfTen(exponent)))
	default:
		// Both operands are exact, so that the quotient is rounded once.
		x.f.Quo(new(big.Float).SetInt(mantissa), new(big.Float).SetInt(powerOfTen(-exponent)))
	}
	return x.inRange()
}

// powerOfTen returns 10 to the power of n >= 0.
func powerOfTen(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// inRange reports whether x, which is not 0, is finite and not too small for a
// long double.
func (x *LongDouble) inRange() bool {
	exponent := x.f.MantExp(nil) // x is in [2^(exponent-1), 2^exponent)
	return !x.f.IsInf() && exponent <= longDoubleExpMax && exponent > longDoubleExpMin
}

// IsInf reports whether x is an infinity.
func (x LongDouble) IsInf() bool { return x.f.IsInf() }

// Add returns x + y rounded to the nearest long double. It reports false when
// that is infinite or NaN.
func (x LongDouble) Add(y LongDouble) (sum LongDouble, finite bool) {
	if x.f.IsInf() || y.f.IsInf() {
		return LongDouble{}, false
	}
	sum.f.SetPrec(longDoubleBits).Add(&x.f, &y.f)
	if sum.f.MantExp(nil) > longDoubleExpMax {
		return LongDouble{}, false
	}
	return sum, true
}

// TimesRoundedUp returns x * n, rounded to a long double and then up to a whole number. What does not fit is the smallest int64, as
// where a processor converts it.
func (x LongDouble) TimesRoundedUp(n int64) int64 {
	if x.f.IsInf() {
		return math.MinInt64
	}
	var f big.Float
	f.SetPrec(longDoubleBits).Mul(&x.f, new(big.Float).SetInt64(n))
	product, accuracy := f.Int64()
	if accuracy != big.Below { // it is whole, or negative and cut towards 0
		return product
	}
	if product == math.MaxInt64 {
		return math.MinInt64
	}
	return product + 1
}

// Append appends x in the form that Redis shows to people and stores: 17
// digits behind the point without trailing zeros, no exponent, no minus sign
// before 0.
func (x LongDouble) Append(dst []byte) []byte {
	switch {
	case x.f.IsInf() && x.f.Signbit():
		return append(dst, "-inf"...)
	case x.f.IsInf():
		return append(dst, "inf"...)
	}
	start := len(dst)
	dst = x.f.Append(dst, 'f', longDoubleDigits)
	end := len(dst)
	for dst[end-1] == '0' {
		end--
	}
	if dst[end-1] == '.' {
		end--
	}
	dst = dst[:end]
	if string(dst[start:]) == "-0" {
		return append(dst[:start], '0')
	}
	return dst
}

// String returns what Append appends.
func (x LongDouble) String() string { return string(x.Append(nil)) }

// MaxLongDouble returns the largest finite number.
func MaxLongDouble() (value LongDouble) {
	mantissa := new(big.Float).SetPrec(longDoubleBits).SetUint64(math.MaxUint64)
	value.f.SetMantExp(mantissa, longDoubleExpMax-longDoubleBits)
	return value
}

// Neg returns -x.
func (x LongDouble) Neg() (negated LongDouble) {
	negated.f.SetPrec(longDoubleBits).Neg(&x.f)
	return negated
}

// Cmp returns -1, 0 or 1 as x is below, equal to or above y. 0 and -0 are equal.
func (x LongDouble) Cmp(y LongDouble) int { return x.f.Cmp(&y.f) }
