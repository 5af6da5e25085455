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

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func isDecimal(c byte) bool { return c >= '0' && c <= '9' }

func isHexadecimal(c byte) bool { return isDecimal(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
