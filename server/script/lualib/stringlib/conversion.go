package stringlib

import (
	"bytes"
	"math"
	"strconv"
)

// conversion is one conversion of C's printf.
type conversion struct {
	left, plus, space, alternate, zero bool // the flags - + space # 0
	hasPrecision                       bool
	width, precision                   int // 0 to 99
	verb                               byte
}

func (c *conversion) setFlag(flag byte) {
	switch flag {
	case '-':
		c.left = true
	case '+':
		c.plus = true
	case ' ':
		c.space = true
	case '#':
		c.alternate = true
	case '0':
		c.zero = true
	}
}

// sign returns what stands before a number.
func (c *conversion) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case c.plus:
		return "+"
	case c.space:
		return " "
	}
	return ""
}

// pad appends text with blanks up to the width.
func (c *conversion) pad(dst, text []byte) []byte {
	return c.padNumber(dst, "", text, false)
}

// padNumber appends prefix and text, with blanks around both or zeros between
// them up to the width.
func (c *conversion) padNumber(dst []byte, prefix string, text []byte, zeros bool) []byte {
	missing := c.width - len(prefix) - len(text)
	if !c.left && !zeros {
		dst = appendRepeated(dst, ' ', missing)
	}
	dst = append(dst, prefix...)
	if !c.left && zeros {
		dst = appendRepeated(dst, '0', missing)
	}
	dst = append(dst, text...)
	if c.left {
		dst = appendRepeated(dst, ' ', missing)
	}
	return dst
}

func appendRepeated(dst []byte, c byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, c)
	}
	return dst
}

// appendSigned is %d and %i.
func (c *conversion) appendSigned(dst []byte, n int64) []byte {
	magnitude := uint64(n)
	if n < 0 {
		magnitude = -magnitude
	}
	return c.appendDigits(dst, c.sign(n < 0), magnitude, 10)
}

// appendUnsigned is %u, %o, %x and %X.
func (c *conversion) appendUnsigned(dst []byte, n uint64) []byte {
	switch c.verb {
	case 'o':
		return c.appendDigits(dst, "", n, 8)
	case 'x', 'X':
		prefix := ""
		if c.alternate && n != 0 {
			prefix = "0" + string(rune(c.verb))
		}
		return c.appendDigits(dst, prefix, n, 16)
	}
	return c.appendDigits(dst, "", n, 10)
}

// appendDigits appends a whole number with its prefix. A precision is the least
// number of digits and turns the flag 0 off.
func (c *conversion) appendDigits(dst []byte, prefix string, n uint64, base int) []byte {
	const precisionMax, digitsMax = 99, 22
	var room [precisionMax + digitsMax]byte
	var digitRoom [digitsMax]byte
	digits := strconv.AppendUint(digitRoom[:0], n, base)
	if c.hasPrecision && c.precision == 0 && n == 0 {
		digits = digits[:0]
	}
	text := appendRepeated(room[:0], '0', c.precision-len(digits))
	if base == 8 && c.alternate && len(text) == 0 && (len(digits) == 0 || digits[0] != '0') {
		text = append(text, '0')
	}
	text = append(text, digits...)
	if c.verb == 'X' {
		text = bytes.ToUpper(text)
	}
	return c.padNumber(dst, prefix, text, c.zero && !c.hasPrecision)
}

// floatSteps returns how many steps appendFloat takes: many for more digits than
// a double has, of which some have to be worked out by long numbers.
func (c *conversion) floatSteps(f float64) int64 {
	const fewDigits, fewSteps, manySteps, digitsPerBit = 17, 2, 250, 0.302
	digits := c.precision
	if _, bits := math.Frexp(f); c.verb == 'f' && bits > 0 {
		digits += int(float64(bits) * digitsPerBit)
	}
	if digits > fewDigits {
		return manySteps
	}
	return fewSteps
}

// appendFloat is %e, %f, %g, %E and %G.
func (c *conversion) appendFloat(dst []byte, f float64) []byte {
	var room [itemMax]byte
	magnitude := math.Abs(f)
	precision := 6
	if c.hasPrecision {
		precision = c.precision
	}
	text := room[:0]
	switch {
	case math.IsNaN(f):
		text = append(text, "nan"...)
	case !isFinite(f):
		text = append(text, "inf"...)
	case c.verb|0x20 == 'g':
		text = c.appendShort(text, magnitude, max(precision, 1))
	default:
		text = strconv.AppendFloat(text, magnitude, c.verb|0x20, precision, 64)
		if c.alternate {
			text = withPoint(text)
		}
	}
	if c.verb < 'a' {
		text = bytes.ToUpper(text)
	}
	return c.padNumber(dst, c.sign(math.Signbit(f)), text, c.zero && isFinite(f))
}

// appendShort is %g: %e or %f, whichever the exponent asks for, without zeros
// at the end unless the flag # is set.
func (c *conversion) appendShort(dst []byte, f float64, precision int) []byte {
	if !c.alternate {
		return strconv.AppendFloat(dst, f, 'g', precision, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', precision-1, 64)
	e := bytes.LastIndexByte(dst, 'e')
	exponent, _ := strconv.Atoi(string(dst[e+1:]))
	switch {
	case exponent >= -4 && exponent < precision:
		dst = strconv.AppendFloat(dst[:start], f, 'f', precision-1-exponent, 64)
	case exponent == precision && f < math.Pow10(precision):
		// Only rounding made it too long for %f. The GNU C library forgets the
		// zeros then.
		dst = append(dst[:start+1], dst[e:]...)
	}
	return withPoint(dst)
}

// withPoint puts a decimal point behind the digits if there is none.
func withPoint(text []byte) []byte {
	if bytes.IndexByte(text, '.') >= 0 {
		return text
	}
	e := bytes.IndexByte(text, 'e')
	if e < 0 {
		return append(text, '.')
	}
	text = append(text, 0)
	copy(text[e+1:], text[e:])
	text[e] = '.'
	return text
}
