package luanum

import (
	"math"
	"strconv"
)

// TextMax is the longest text that AppendNumber writes, in bytes:
// "-1.2345678901234e-308".
const TextMax = 21

// digits is how many significant digits are printed.
const digits = 14

// wholeMax is the first whole number that is printed with an exponent.
const wholeMax = 1e14

// AppendNumber appends f as tostring and the operator .. write it. The
// infinities are inf and -inf, and a NaN shows its sign.
func AppendNumber(dst []byte, f float64) []byte {
	if f > -wholeMax && f < wholeMax {
		if n := int64(f); float64(n) == f && (n != 0 || !math.Signbit(f)) {
			return appendWhole(dst, n)
		}
	}
	switch {
	case f != f && math.Signbit(f):
		return append(dst, "-nan"...)
	case f != f:
		return append(dst, "nan"...)
	case f > math.MaxFloat64:
		return append(dst, "inf"...)
	case f < -math.MaxFloat64:
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, f, 'g', digits, 64)
}

// appendWhole is strconv.AppendInt, faster for one digit.
func appendWhole(dst []byte, n int64) []byte {
	if uint64(n) < 10 {
		return append(dst, byte('0'+n))
	}
	return strconv.AppendInt(dst, n, 10)
}

// FormatNumber returns what AppendNumber appends.
func FormatNumber(f float64) string {
	if n := int64(f); f >= 0 && f < 100 && float64(n) == f && !math.Signbit(f) {
		return strconv.Itoa(int(n)) // shares its text, and allocates nothing
	}
	var room [TextMax + 3]byte
	return string(AppendNumber(room[:0], f))
}
