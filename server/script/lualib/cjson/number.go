package cjson

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// appendName appends NaN or an infinity.
func appendName(out []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(out, "nan"...)
	case f < 0:
		return append(out, "-inf"...)
	}
	return append(out, "inf"...)
}

// powers are the powers of ten that a double holds exactly and a precision of
// up to 14 digits prints in full.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14}

// appendNumber appends a finite number as C's %.*g prints it.
func appendNumber(out []byte, f float64, precision int) []byte {
	if f == math.Trunc(f) && math.Abs(f) < powers[precision] {
		if f == 0 && math.Signbit(f) {
			out = append(out, '-')
		}
		return strconv.AppendInt(out, int64(f), 10)
	}
	start := len(out)
	out = strconv.AppendFloat(out, f, 'e', precision-1, 64)
	mark := start + bytes.IndexByte(out[start:], 'e')
	var room [8]byte
	exponent := append(room[:0], out[mark:]...)
	power, _ := strconv.Atoi(string(exponent[1:]))
	if power >= -4 && power < precision {
		return trimFraction(strconv.AppendFloat(out[:start], f, 'f', precision-1-power, 64), start)
	}
	return append(trimFraction(out[:mark], start), exponent...)
}

// trimFraction removes the zeros, and the point, that a fraction in out[start:]
// ends with.
func trimFraction(out []byte, start int) []byte {
	if bytes.IndexByte(out[start:], '.') < 0 {
		return out
	}
	for out[len(out)-1] == '0' {
		out = out[:len(out)-1]
	}
	if out[len(out)-1] == '.' {
		out = out[:len(out)-1]
	}
	return out
}

// scanNumber reads a number at the beginning of s as C's strtod does, which
// takes the longest prefix that is one: decimal, hexadecimal, inf, infinity,
// nan or nan(...), in any case. The size is 0 when there is none.
func scanNumber(s string) (value float64, size int) {
	sign := 0
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign = 1
	}
	digits := s[sign:]
	negative := sign == 1 && s[0] == '-'
	switch {
	case digits == "":
		return 0, 0
	case digits[0]|0x20 == 'i' || digits[0]|0x20 == 'n':
		value, size = scanName(digits)
	case len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x':
		value, size = scanHex(digits)
	default:
		value, size = scanDecimal(digits)
	}
	if size == 0 {
		return 0, 0
	}
	if negative {
		value = math.Copysign(value, -1)
	}
	return value, sign + size
}

// scanName reads the name of an infinity or of NaN.
func scanName(s string) (value float64, size int) {
	for _, name := range []string{"infinity", "inf"} {
		if hasPrefixFold(s, name) {
			return math.Inf(1), len(name)
		}
	}
	const nan = "nan"
	if !hasPrefixFold(s, nan) {
		return 0, 0
	}
	size = len(nan)
	if rest := s[size:]; rest != "" && rest[0] == '(' {
		i := 1
		for i < len(rest) && isWord(rest[i]) {
			i++
		}
		if i < len(rest) && rest[i] == ')' {
			size += i + 1
		}
	}
	return math.NaN(), size
}

// scanDecimal reads digits with an optional fraction and an optional exponent.
func scanDecimal(s string) (value float64, size int) {
	size = scanMantissa(s, isDecimal)
	if size == 0 {
		return 0, 0
	}
	size += scanExponent(s[size:], 'e')
	value, _ = strconv.ParseFloat(s[:size], 64)
	return value, size
}

// scanHex reads 0x with digits, an optional fraction and an optional binary
// exponent. Without a digit it is just the 0.
func scanHex(s string) (value float64, size int) {
	const prefix = 2
	size = scanMantissa(s[prefix:], isHexadecimal)
	if size == 0 {
		return 0, 1
	}
	size += prefix
	exponent := scanExponent(s[size:], 'p')
	text := s[:size+exponent]
	if exponent == 0 {
		text += "p0"
	}
	value, _ = strconv.ParseFloat(text, 64)
	return value, size + exponent
}

// scanMantissa returns the size of digits with an optional fraction: 0 unless
// there is a digit.
func scanMantissa(s string, isDigit func(byte) bool) int {
	i, digits := 0, 0
	for point := false; i < len(s); i++ {
		switch {
		case isDigit(s[i]):
			digits++
		case s[i] == '.' && !point:
			point = true
		default:
			if digits == 0 {
				return 0
			}
			return i
		}
	}
	if digits == 0 {
		return 0
	}
	return i
}

// scanExponent returns the size of an exponent that mark introduces.
func scanExponent(s string, mark byte) int {
	if s == "" || s[0]|0x20 != mark {
		return 0
	}
	i := 1
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	if i == len(s) || !isDecimal(s[i]) {
		return 0
	}
	for i < len(s) && isDecimal(s[i]) {
		i++
	}
	return i
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func isDecimal(c byte) bool { return c >= '0' && c <= '9' }

func isHexadecimal(c byte) bool { return isDecimal(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isWord(c byte) bool { return isDecimal(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
