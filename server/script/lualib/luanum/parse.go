package luanum

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// exactDigits is how many decimal digits always fit a double.
const exactDigits = 15

// ParseNumber reads a number as Lua 5.1 converts a string: the text up to its
// end, or up to a NUL byte, is one number in a form that C's strtod knows
// (decimal, hexadecimal, inf, infinity or nan, in letters of either case) with
// white space around it. Numbers too large are infinite, those too small 0.
func ParseNumber(s string) (f float64, ok bool) {
	f, _, ok = Convert(s)
	return f, ok
}

// Convert is ParseNumber, and returns how many steps it takes: 0 for a few
// digits, which take no longer than whatever has use for them.
func Convert(s string) (f float64, steps int, ok bool) {
	if f, ok := parseDigits(s); ok {
		return f, 0, true
	}
	start := skipSpace(s, 0)
	f, end, steps := ParsePrefix(s[start:])
	steps += len(s) / bytesPerStep
	if end == 0 {
		return 0, steps, false
	}
	if end = skipSpace(s, start+end); end < len(s) && s[end] != 0 {
		return 0, steps, false
	}
	return f, steps, true
}

// bytesPerStep is how many bytes are read in a step.
const bytesPerStep = 8

// parseDigits reads nothing but decimal digits behind an optional minus, which
// is most of what scripts meet.
func parseDigits(s string) (f float64, ok bool) {
	i := 0
	if len(s) > 1 && s[0] == '-' {
		i = 1
	}
	if len(s) == i || len(s)-i > exactDigits {
		return 0, false
	}
	n := int64(0)
	for _, c := range []byte(s[i:]) {
		d := c - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	if i == 1 {
		return -float64(n), true
	}
	return float64(n), true
}

// ParsePrefix reads the number that s starts with as C's strtod does, but for
// white space. It returns where that ends, 0 when there is none, and how many
// steps it takes beside those of reading the text.
func ParsePrefix(s string) (f float64, end, steps int) {
	i := 0
	if s != "" && (s[0] == '-' || s[0] == '+') {
		i++
	}
	switch word := wordAt(s, i); {
	case word > 0 && lower(s[i]) == 'i':
		f, end = math.Inf(1), i+word
	case word > 0:
		f, end = notANumber(s[i:i+word]), i+word
	case i+1 < len(s) && s[i] == '0' && lower(s[i+1]) == 'x' && hexDigitFollows(s, i+2):
		f, end = parseHex(s, i)
	default:
		var d decimal
		if d, end = scanDecimal(s, i); end == i {
			return 0, 0, 0
		}
		f, steps = d.value()
	}
	if s[0] == '-' {
		f = math.Copysign(f, -1)
	}
	return f, end, max(steps, shortSteps)
}

// notANumber returns the NaN that word, nan or nan(…), stands for in the C library: its lower 51 bits are the whole number in the parentheses.
func notANumber(word string) float64 {
	const quiet, mantissa = 0x7ff8 << 48, 1<<51 - 1
	digits, base := strings.TrimSuffix(word[min(len("nan("), len(word)):], ")"), 10
	switch {
	case len(digits) > 1 && digits[0] == '0' && lower(digits[1]) == 'x':
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		base = 8
	}
	payload, err := strconv.ParseUint(digits, base, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		payload = 0
	}
	return math.Float64frombits(quiet | payload&mantissa)
}

// wordAt returns the length of inf, infinity, nan or nan(…) at s[i:], or 0.
func wordAt(s string, i int) int {
	switch {
	case hasWord(s, i, "infinity"):
		return len("infinity")
	case hasWord(s, i, "inf"):
		return len("inf")
	case !hasWord(s, i, "nan"):
		return 0
	}
	const plain = len("nan")
	if i+plain < len(s) && s[i+plain] == '(' {
		for j := i + plain + 1; j < len(s); j++ {
			c := s[j]
			if c == ')' {
				return j + 1 - i
			}
			if digitValue(c) < 0 && c != '_' {
				break
			}
		}
	}
	return plain
}

func hasWord(s string, i int, word string) bool {
	if len(s)-i < len(word) {
		return false
	}
	for j := range len(word) {
		if lower(s[i+j]) != word[j] {
			return false
		}
	}
	return true
}

// scanExponent returns the end of the exponent at s[i:], i when there is none.
func scanExponent(s string, i int, letter byte) int {
	if i >= len(s) || lower(s[i]) != letter {
		return i
	}
	j := i + 1
	if j < len(s) && (s[j] == '-' || s[j] == '+') {
		j++
	}
	if j >= len(s) || !isDigit(s[j]) {
		return i
	}
	for j < len(s) && isDigit(s[j]) {
		j++
	}
	return j
}

func hexDigitFollows(s string, i int) bool {
	if i < len(s) && s[i] == '.' {
		i++
	}
	return i < len(s) && isHex(s[i])
}

// parseHex reads the hexadecimal number whose 0x stands at s[start:].
func parseHex(s string, start int) (f float64, end int) {
	const (
		exactHexDigits = 13 // 52 bits
		headHexDigits  = 16
		bitsPerDigit   = 4
		infiniteBits   = 1024
		leastPower     = -9999 // that strconv reads, far below what is 0
	)
	head, count, exponent, point := uint64(0), 0, 0, false
	i := start + len("0x")
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if !isHex(c) {
			break
		}
		digit := uint64(digitValue(c))
		if count == headHexDigits { // what follows only matters if it is not 0
			if digit != 0 {
				head |= 1
			}
			if !point {
				exponent += bitsPerDigit
			}
			continue
		}
		if head = head<<bitsPerDigit | digit; head != 0 {
			count++
		}
		if point {
			exponent -= bitsPerDigit
		}
	}
	if end = scanExponent(s, i, 'p'); end > i {
		exponent += exponentOf(s[i+1 : end])
	}
	if count <= exactHexDigits && exponent == 0 || head == 0 {
		return float64(head), end
	}
	if exponent+bits.Len64(head) > infiniteBits {
		return math.Inf(1), end
	}
	var room [32]byte
	text := strconv.AppendUint(append(room[:0], "0x"...), head, 16)
	text = strconv.AppendInt(append(text, 'p'), int64(max(exponent, leastPower)), 10)
	f, _ = strconv.ParseFloat(string(text), 64)
	return f, end
}

// ParseBase reads a whole number in base, 2 to 36, as tonumber(s, base) does
// through C's strtoul: white space, a sign, 0x for base 16, digits, white
// space, up to the end or a NUL byte. A negative number is taken modulo 2^64,
// one too large is the largest of 64 bits.
func ParseBase(s string, base int) (f float64, ok bool) {
	i := skipSpace(s, 0)
	negative := false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		negative = s[i] == '-'
		i++
	}
	if base == 16 && i+2 < len(s) && s[i] == '0' && lower(s[i+1]) == 'x' && isHex(s[i+2]) {
		i += len("0x")
	}
	first := i
	n, overflow := uint64(0), false
	for ; i < len(s); i++ {
		d := digitValue(s[i])
		if d < 0 || d >= base {
			break
		}
		if n > (math.MaxUint64-uint64(d))/uint64(base) {
			overflow = true
		}
		n = n*uint64(base) + uint64(d)
	}
	if i == first {
		return 0, false
	}
	switch {
	case overflow:
		n = math.MaxUint64
	case negative:
		n = -n
	}
	i = skipSpace(s, i)
	return float64(n), i == len(s) || s[i] == 0
}

// TruncateInt converts as x86-64's cvttsd2si does, which is what C compilers
// make of the cast to 64 bits: cut towards zero, and the least int64 for what
// does not fit.
func TruncateInt(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] >= '\t' && s[i] <= '\r') {
		i++
	}
	return i
}

// lower is for comparing with letters only: it changes other bytes too.
func lower(c byte) byte { return c | 0x20 }

func isDigit(c byte) bool { return c-'0' < 10 }

func isHex(c byte) bool { return isDigit(c) || lower(c)-'a' < 6 }

// digitValue returns what c stands for in base 36, or -1.
func digitValue(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case lower(c)-'a' < 26:
		return int(lower(c)-'a') + 10
	}
	return -1
}
