package stringlib

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/luacall"
	"headgate/server/script/lualib/luanum"
)

// itemMax is the longest text that one conversion of a number writes, in bytes:
// the largest double with 99 digits behind the point, and some room.
const itemMax = 512

// longString is the length from which on %s without a precision writes a string
// as it is, with no regard to width and NUL bytes.
const longString = 100

func (b *buffer) writeNumber(f float64) {
	b.grow(luanum.TextMax + 3)
	b.bytes = luanum.AppendNumber(b.bytes, f)
}

func (lib *library) format(L *lua.LState) int {
	format := luacall.String(L, 1)
	b := lib.takeBuffer(L)
	for n := 1; ; {
		lib.budget.Spend(1)
		i := strings.IndexByte(format, '%')
		if i < 0 {
			b.writeString(format)
			break
		}
		b.writeString(format[:i])
		format = format[i+1:]
		if format != "" && format[0] == '%' {
			b.writeByte('%')
			format = format[1:]
			continue
		}
		n++
		if n > L.GetTop() {
			luacall.ArgError(L, n, "no value")
		}
		c, length := parseConversion(L, format)
		b.convert(c, n)
		format = format[length:]
	}
	L.Push(lib.give(b))
	return 1
}

// parseConversion reads a conversion behind its % and returns how long it is.
func parseConversion(L *lua.LState, s string) (c conversion, length int) {
	const flags = "-+ #0"
	i := 0
	at := func() byte {
		if i < len(s) {
			return s[i]
		}
		return 0
	}
	for ; at() != 0 && strings.IndexByte(flags, at()) >= 0; i++ {
		c.setFlag(at())
	}
	if i > len(flags) {
		luacall.Error(L, "invalid format (repeated flags)")
	}
	number := func() (n int) {
		for digits := 0; digits < 2 && isDigit(at()); digits++ {
			n = n*10 + int(at()-'0')
			i++
		}
		return n
	}
	c.width = number()
	if at() == '.' {
		i++
		c.hasPrecision = true
		c.precision = number()
	}
	if isDigit(at()) {
		luacall.Error(L, "invalid format (width or precision too long)")
	}
	c.verb = at()
	return c, min(i+1, len(s))
}

// convert writes argument n.
func (b *buffer) convert(c conversion, n int) {
	L := b.L
	switch c.verb {
	case 'd', 'i':
		f := luacall.Number(L, n)
		b.grow(itemMax)
		b.bytes = c.appendSigned(b.bytes, luanum.TruncateInt(f))
	case 'o', 'u', 'x', 'X':
		f := luacall.Number(L, n)
		b.grow(itemMax)
		b.bytes = c.appendUnsigned(b.bytes, truncateUint(f))
	case 'e', 'E', 'f', 'g', 'G':
		f := luacall.Number(L, n)
		b.budget.Spend(c.floatSteps(f))
		b.grow(itemMax)
		b.bytes = c.appendFloat(b.bytes, f)
	case 'c':
		f := luacall.Number(L, n)
		b.grow(itemMax)
		start := len(b.bytes)
		b.bytes = c.pad(b.bytes, []byte{truncateByte(f)})
		b.bytes = b.bytes[:start+len(untilNUL(b.bytes[start:]))]
	case 'q':
		b.writeQuoted(luacall.String(L, n))
	case 's':
		b.writeText(c, luacall.String(L, n))
	case 0:
		luacall.Error(L, "invalid option '%' to 'format'")
	default:
		luacall.Error(L, "invalid option '%"+string([]byte{c.verb})+"' to 'format'")
	}
}

// writeText is %s.
func (b *buffer) writeText(c conversion, s string) {
	if !c.hasPrecision && (len(s) >= longString || c.width == 0 && strings.IndexByte(s, 0) < 0) {
		b.writeString(s)
		return
	}
	if c.hasPrecision && len(s) > c.precision {
		s = s[:c.precision]
	}
	b.grow(itemMax)
	b.bytes = c.pad(b.bytes, untilNUL([]byte(s)))
}

// writeQuoted is %q: s as Lua can read it back.
func (b *buffer) writeQuoted(s string) {
	b.writeByte('"')
	for {
		b.budget.Spend(1)
		i := strings.IndexAny(s, "\"\\\n\r\x00")
		if i < 0 {
			break
		}
		b.writeString(s[:i])
		switch s[i] {
		case '\r':
			b.writeString(`\r`)
		case 0:
			b.writeString(`\000`)
		default:
			b.writeByte('\\')
			b.writeByte(s[i])
		}
		s = s[i+1:]
	}
	b.writeString(s)
	b.writeByte('"')
}

// truncateUint converts as x86-64 compilers cast a double to an unsigned long:
// negative numbers are taken modulo 2^64.
func truncateUint(f float64) uint64 {
	if f >= 1<<63 {
		return uint64(luanum.TruncateInt(f-(1<<63))) ^ (1 << 63)
	}
	return uint64(luanum.TruncateInt(f))
}

// truncateByte converts as x86-64 compilers cast a double to an int, and that to
// a char: what does not fit an int has no bits there.
func truncateByte(f float64) byte {
	if f >= math.MinInt32 && f <= math.MaxInt32 {
		return byte(int32(f))
	}
	return 0
}

// isFinite reports whether f is neither an infinity nor NaN.
func isFinite(f float64) bool { return f-f == 0 }
