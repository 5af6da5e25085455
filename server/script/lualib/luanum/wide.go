package luanum

import (
	"cmp"
	"math/bits"
	"strings"
)

// wide is a whole number of up to wideBits bits. The longest that is needed is
// that of a decimal's digits, or the power of ten that makes them whole.
type wide struct {
	words [wideBits / wordBits]uint64 // the lowest first
	used  int                         // of words
}

const (
	wordBits = 64
	wideBits = 44 * wordBits
)

// mulAdd multiplies w, and adds to it.
func (w *wide) mulAdd(by, add uint64) {
	for i := range w.words[:w.used] {
		high, low := bits.Mul64(w.words[i], by)
		var carry uint64
		w.words[i], carry = bits.Add64(low, add, 0)
		add = high + carry
	}
	if add != 0 {
		w.words[w.used] = add
		w.used++
	}
}

// read sets w, which is 0, to the digits in a text with or without a point, and
// returns how many it has taken: up to wholeDigits, and a 1 for those behind if
// they are not 0.
func (w *wide) read(text string) (digits int) {
	part, scale := uint64(0), uint64(1)
	for i := 0; i < len(text) && digits <= wholeDigits; i++ {
		c := text[i]
		if c == '.' {
			continue
		}
		if digits++; digits > wholeDigits && strings.Trim(text[i:], "0.") != "" {
			c = '1'
		}
		part, scale = part*10+uint64(c-'0'), scale*10
		if scale == 1e19 {
			w.mulAdd(scale, part)
			part, scale = 0, 1
		}
	}
	w.mulAdd(scale, part)
	return digits
}

// mulPowerOf5 multiplies w by 5^n.
func (w *wide) mulPowerOf5(n int) {
	const (
		most        = 27 // that fits a word
		powerOfMost = 7450580596923828125
	)
	for ; n >= most; n -= most {
		w.mulAdd(powerOfMost, 0)
	}
	rest := uint64(1)
	for range n {
		rest *= 5
	}
	w.mulAdd(rest, 0)
}

// bits returns how long w is.
func (w *wide) bits() int {
	if w.used == 0 {
		return 0
	}
	return w.used*wordBits - bits.LeadingZeros64(w.words[w.used-1])
}

// shift multiplies w by 2^n.
func (w *wide) shift(n int) {
	whole, part := n/wordBits, uint(n%wordBits)
	copy(w.words[whole:], w.words[:w.used])
	clear(w.words[:whole])
	w.used += whole
	w.mulAdd(1<<part, 0)
}

func (w *wide) compare(other *wide) int {
	for i := max(w.used, other.used) - 1; i >= 0; i-- {
		if c := cmp.Compare(w.words[i], other.words[i]); c != 0 {
			return c
		}
	}
	return 0
}
