package number

import (
	"math"
	"strconv"
)

// DoubleMax is the longest text that AppendDouble writes, in bytes:
// "-2.2250738585072014e-308".
const DoubleMax = 24

// ParseFloat reads a double as Redis reads one from an argument or a value:
// the whole of s is a number in a form that C's strtod knows, decimal or
// hexadecimal, or an infinity. It reports false for anything else: an empty
// text, spaces, NaN, and numbers too large for a double or too small to be
// anything but 0.
func ParseFloat(s []byte) (value float64, ok bool) {
	value, length, inRange := strtod(s)
	return value, inRange && length > 0 && length == len(s)
}

// ParseScore reads a sorted set's score. A score is read like any other
// double.
func ParseScore(s []byte) (score float64, ok bool) { return ParseFloat(s) }

// ParseScoreBound reads one end of a range of scores: a double, behind an
// opening parenthesis when the range excludes it. This is laxer than
// ParseScore, as in Redis: spaces may come first, nothing at all is 0, numbers
// too large are infinite and those too small are 0, and whatever stands behind
// a NUL byte is ignored.
func ParseScoreBound(s []byte) (score float64, exclusive, ok bool) {
	if len(s) > 0 && s[0] == '(' {
		exclusive = true
		s = s[1:]
	}
	start := 0
	for start < len(s) && isSpace(s[start]) {
		start++
	}
	score, length, _ := strtod(s[start:])
	behind := start + length
	if length == 0 {
		behind = 0 // strtod gives the spaces back
	}
	return score, exclusive, behind == len(s) || s[behind] == 0
}

// ParseWeight reads what SORT compares elements by. It is as lax as ParseScoreBound, but has no parenthesis, and refuses
// numbers too large for a double or too small to be anything but 0.
func ParseWeight(s []byte) (weight float64, ok bool) {
	start := 0
	for start < len(s) && isSpace(s[start]) {
		start++
	}
	weight, length, inRange := strtod(s[start:])
	behind := start + length
	if length == 0 {
		behind = 0 // strtod gives the spaces back
	}
	return weight, inRange && (behind == len(s) || s[behind] == 0)
}

// strtod reads the double at the start of s and returns how many bytes it
// takes, 0 when there is none. inRange is false for a number whose magnitude
// is above the largest double, or so small that it becomes 0.
func strtod(s []byte) (value float64, length int, inRange bool) {
	f := scanFloat(s)
	if f.length == 0 {
		return 0, 0, true
	}
	if f.infinite {
		if f.negative {
			return math.Inf(-1), f.length, true
		}
		return math.Inf(1), f.length, true
	}
	if f.hex && !f.hasExponent {
		// C can do without the exponent, Go cannot.
		var room [64]byte
		text := append(append(room[:0], s[:f.length]...), "p0"...)
		value, _ = strconv.ParseFloat(string(text), 64)
	} else {
		value, _ = strconv.ParseFloat(string(s[:f.length]), 64)
	}
	return value, f.length, !math.IsInf(value, 0) && (value != 0 || f.zero)
}

// AppendDouble appends f as C's "%.17g" prints it: up to 17 significant
// digits, the infinities as inf and -inf, and a NaN with its sign.
func AppendDouble(dst []byte, f float64) []byte {
	// Whole numbers of up to 15 digits need no rounding.
	const wholeMax = 1e15
	if n := int64(f); f > -wholeMax && f < wholeMax && float64(n) == f && (n != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(dst, n, 10)
	}
	switch {
	case math.IsNaN(f) && math.Signbit(f):
		return append(dst, "-nan"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, f, 'g', 17, 64)
}
