package limits

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// FormatNumber returns n as Lua 5.1 prints it, which is C's %.14g.
func FormatNumber(n lua.LNumber) string {
	var digits [32]byte
	return string(AppendNumber(digits[:0], n))
}

// AppendNumber appends n as Lua 5.1 prints it, which is C's %.14g.
func AppendNumber(out []byte, n lua.LNumber) []byte {
	f := float64(n)
	switch {
	case f == math.Trunc(f) && math.Abs(f) < 1e14:
		if f == 0 && math.Signbit(f) {
			return append(out, "-0"...)
		}
		return strconv.AppendInt(out, int64(f), 10)
	case math.IsNaN(f):
		if math.Signbit(f) {
			return append(out, "-nan"...)
		}
		return append(out, "nan"...)
	case math.IsInf(f, 1):
		return append(out, "inf"...)
	case math.IsInf(f, -1):
		return append(out, "-inf"...)
	}
	return appendG14(out, f)
}

// appendG14 is %.14g for finite numbers other than 0.
func appendG14(out []byte, f float64) []byte {
	const digits = 14
	var room [40]byte
	text := strconv.AppendFloat(room[:0], f, 'e', digits-1, 64)
	e := strings.IndexByte(string(text), 'e')
	exponent, _ := strconv.Atoi(string(text[e+1:]))
	if exponent >= -4 && exponent < digits {
		start := len(out)
		out = strconv.AppendFloat(out, f, 'f', digits-1-exponent, 64)
		return trimZeros(out, start)
	}
	out = trimZeros(append(out, text[:e]...), len(out))
	return append(out, text[e:]...)
}

// trimZeros removes the zeros, and the point, that the fraction at the end of b ends with. The number begins at start; a whole one
// stays as it is.
func trimZeros(b []byte, start int) []byte {
	point := bytes.IndexByte(b[start:], '.')
	if point < 0 {
		return b
	}
	end := len(b)
	for b[end-1] == '0' {
		end--
	}
	if end == start+point+1 {
		end--
	}
	return b[:end]
}

// ParseNumber reads a number as Lua 5.1 converts strings, by C's strtod and
// with white space around it: decimal, hexadecimal, inf and nan.
func ParseNumber(s string) (lua.LNumber, bool) {
	if len(s) == 1 && s[0]-'0' < 10 {
		return lua.LNumber(s[0] - '0'), true
	}
	s = trimSpace(s)
	digits := s
	negative := false
	if digits != "" && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	if digits == "" || strings.IndexByte(digits, '_') >= 0 || digits[0] == '-' || digits[0] == '+' {
		return 0, false
	}
	if n, ok := smallWhole(digits); ok {
		if negative {
			return -n, true
		}
		return n, true
	}
	if len(digits) > 1 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		n, ok := parseHex(digits[2:])
		if negative {
			n = -n
		}
		return n, ok
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	if negative {
		f = math.Copysign(f, -1)
	}
	return lua.LNumber(f), true
}

// smallWhole reads up to 15 decimal digits, which is most of what scripts see.
func smallWhole(s string) (lua.LNumber, bool) {
	if len(s) > 15 {
		return 0, false
	}
	n := int64(0)
	for i := 0; i < len(s); i++ {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return lua.LNumber(n), true
}

// parseHex reads what follows 0x: digits with an optional fraction and an
// optional binary exponent.
func parseHex(s string) (lua.LNumber, bool) {
	if !strings.ContainsAny(s, "pP") {
		s += "p0"
	}
	f, err := strconv.ParseFloat("0x"+s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return lua.LNumber(f), true
}

// trimSpace removes what C's isspace holds for from both ends.
func trimSpace(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// ToNumber converts numbers, and strings that are one, as Lua's arithmetic and
// the C function lua_tonumber do.
func ToNumber(v lua.LValue) (lua.LNumber, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return v, true
	case lua.LString:
		return ParseNumber(string(v))
	}
	return 0, false
}

// ToString converts strings and numbers, as the C function lua_tostring does.
func ToString(v lua.LValue) (string, bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), true
	case lua.LNumber:
		return FormatNumber(v), true
	}
	return "", false
}
