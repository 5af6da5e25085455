package luanum

import (
	"cmp"
	"math"
	"strconv"
)

const (
	// headDigits is how many decimal digits fit 64 bits.
	headDigits = 19
	// wholeDigits is how many of a number's digits can decide how it is rounded:
	// halfway between two doubles are numbers of up to 767. Of those behind them
	// it only matters whether one is not 0.
	wholeDigits = 770
	// Numbers from 10^infiniteFrom on are infinite, and those below 10^zeroBelow 0.
	// Those between 10^-plainPower and 10^plainPower are far from either.
	infiniteFrom = 310
	zeroBelow    = -330
	plainPower   = 290
	// exponentMost is how large an exponent can be written: more than the digits
	// of any text make up for.
	exponentMost = 1 << 40
)

// What reading a number costs, in steps of limits.Budget.
const (
	shortSteps     = 1  // a few digits
	exactBaseSteps = 16 // what only long whole numbers tell how to round, and
	digitsPerStep  = 8  // digits of it that make one more
)

// decimal is a number as it is written: its first digits times a power of ten.
type decimal struct {
	head     uint64 // the first headDigits digits from the first that is not 0 on
	count    int    // how many they are
	exponent int    // of the power
	more     bool   // whether a digit behind them is not 0
	text     string // from the first digit that is not 0 to the last
}

// scanDecimal reads the decimal number at s[start:] and returns where it ends:
// start when there is none. An exponent without digits does not belong to it.
func scanDecimal(s string, start int) (d decimal, end int) {
	i, digits, first, point := start, 0, start, false
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if !isDigit(c) {
			break
		}
		digits++
		switch {
		case d.count == headDigits:
			end := d.skipDigits(s, i)
			if !point {
				d.exponent += end - i
			}
			i = end - 1
			continue
		case d.count == 0 && c == '0':
		case d.count == 0:
			first = i
			fallthrough
		default:
			d.head = d.head*10 + uint64(c-'0')
			d.count++
		}
		if point {
			d.exponent--
		}
	}
	if digits == 0 {
		return decimal{}, start
	}
	d.text = s[first:i]
	if end = scanExponent(s, i, 'e'); end > i {
		d.exponent += exponentOf(s[i+1 : end])
	}
	return d, end
}

// skipDigits passes by the digits behind the first ones, of which there may be
// millions, and returns where they end.
func (d *decimal) skipDigits(s string, i int) (end int) {
	all := byte(0)
	for ; i < len(s) && isDigit(s[i]); i++ {
		all |= s[i] - '0'
	}
	d.more = d.more || all != 0
	return i
}

// exponentOf reads a whole number with a sign, up to exponentMost.
func exponentOf(text string) int {
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		text = text[1:]
	}
	n := 0
	for _, c := range []byte(text) {
		n = min(n*10+int(c-'0'), exponentMost)
	}
	if negative {
		return -n
	}
	return n
}

// value returns the double that is nearest, the even one of two, and how many
// steps it takes to find it. strconv would take a hundred times as long for
// numbers near 0 and for those close to halfway between two doubles.
func (d *decimal) value() (f float64, steps int) {
	power := d.exponent + d.count // the number is below 10^power
	switch {
	case d.head == 0 || power < zeroBelow:
		return 0, shortSteps
	case power > infiniteFrom:
		return math.Inf(1), shortSteps
	case power < -plainPower:
		f = nearest(d.head, d.exponent+farPower) / farTens
	case power > plainPower:
		f = nearest(d.head, d.exponent-farPower) * farTens
	default:
		f = nearest(d.head, d.exponent)
		if !d.more || f == nearest(d.head+1, d.exponent) {
			return f, shortSteps
		}
	}
	return d.nearestTo(f)
}

const (
	farPower = 100
	farTens  = 1e100
)

// nearest returns the double that is nearest to head times a power of ten.
func nearest(head uint64, exponent int) float64 {
	const (
		exactWhole = 1 << 53
		exactPower = 22
	)
	if head <= exactWhole { // one operation on exact numbers is rounded once
		switch {
		case exponent == 0:
			return float64(head)
		case exponent > 0 && exponent <= exactPower:
			return float64(head) * tens[exponent]
		case exponent < 0 && exponent >= -exactPower:
			return float64(head) / tens[-exponent]
		}
	}
	var room [32]byte
	text := strconv.AppendUint(room[:0], head, 10)
	text = strconv.AppendInt(append(text, 'e'), int64(exponent), 10)
	f, _ := strconv.ParseFloat(string(text), 64)
	return f
}

// tens are the powers of ten that are doubles.
var tens = [...]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// nearestTo is value where the nearest double is f or one of those beside it: it
// compares the number with what is halfway between them.
func (d *decimal) nearestTo(f float64) (nearest float64, steps int) {
	var c comparison
	digits := c.set(d)
	// The doubles are in the order of their bits, and 2^1024 would have those of
	// the infinity.
	infinity := math.Float64bits(math.Inf(1))
	at := math.Float64bits(f)
	for at < infinity {
		if above := c.withMiddleAbove(at); above < 0 || above == 0 && at&1 == 0 {
			break
		}
		at++
	}
	for at > 0 {
		if below := c.withMiddleAbove(at - 1); below > 0 || below == 0 && at&1 == 0 {
			break
		}
		at--
	}
	return math.Float64frombits(at), exactBaseSteps + digits/digitsPerStep
}

// comparison compares a number with others: it is number × 2^power for their
// whole parts times scale.
type comparison struct {
	number, scale wide
	power         int
}

// set takes the number to compare, and returns how many digits of it count: those
// that are cut off leave a 1 behind.
func (c *comparison) set(d *decimal) (digits int) {
	exponent := d.exponent
	if digits = d.count; !d.more {
		c.number.mulAdd(1, d.head)
	} else {
		digits = c.number.read(d.text)
		exponent += d.count - digits
	}
	c.scale.mulAdd(1, 1)
	if exponent >= 0 {
		c.number.mulPowerOf5(exponent)
	} else {
		c.scale.mulPowerOf5(-exponent)
	}
	c.power = exponent
	return digits
}

// withMiddleAbove compares the number with what is halfway between a double and
// the next one. The result is negative, 0 or positive as that of cmp.Compare is.
func (c *comparison) withMiddleAbove(bits uint64) int {
	const fractionBits, least = 52, -1074
	fraction, power := bits&(1<<fractionBits-1), int(bits>>fractionBits)
	if power > 0 {
		fraction |= 1 << fractionBits
		power--
	}
	middle := c.scale
	middle.mulAdd(2*fraction+1, 0)
	shift := power + least - 1 - c.power // of the middle
	if lengths := cmp.Compare(c.number.bits(), middle.bits()+shift); lengths != 0 {
		return lengths
	}
	number := c.number
	if shift > 0 {
		middle.shift(shift)
	} else {
		number.shift(-shift)
	}
	return number.compare(&middle)
}
