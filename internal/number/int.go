package number

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

// IntMax is the longest text of an int64, in bytes: "-9223372036854775808".
const IntMax = 20

// maxIntDigits is how many digits an int64 has at most. So many always fit 64 bits without a sign.
const maxIntDigits = 19

// ParseInt reads a decimal int64 in its canonical form only, the one that formatting the number gives back: no plus
// sign, no leading zero, no "-0", no space. This is what makes a string integer-encoded, and what INCR accepts.
func ParseInt(b []byte) (int64, bool) {
	digits, limit := b, uint64(math.MaxInt64)
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
		limit++
	}
	if len(digits) == 0 || len(digits) > maxIntDigits {
		return 0, false
	}
	if digits[0] == '0' {
		return 0, len(b) == 1
	}
	n := uint64(0)
	for ; len(digits) >= 8; digits = digits[8:] {
		eight, ok := parseEight(binary.LittleEndian.Uint64(digits))
		if !ok {
			return 0, false
		}
		n = n*1e8 + eight
	}
	for _, c := range digits {
		digit := c - '0'
		if digit > 9 {
			return 0, false
		}
		n = n*10 + uint64(digit)
	}
	if n > limit {
		return 0, false
	}
	if b[0] == '-' {
		return int64(-n), true
	}
	return int64(n), true
}

// parseEight is the number that eight digits are the text of, the first in the lowest byte. All are looked at at once, and neighbours then put
// together by multiplying: digits, then pairs, then fours (Lemire, "Quickly parsing eight digits", 2018).
func parseEight(text uint64) (n uint64, ok bool) {
	const zeros, high = 0x3030303030303030, 0xf0f0f0f0f0f0f0f0
	if text&high != zeros || (text+0x0606060606060606)&high != zeros {
		return 0, false
	}
	text -= zeros
	text = text*10 + text>>8
	const pairs = 0x000000ff000000ff
	return (text&pairs*(100+1_000_000<<32) + text>>16&pairs*(1+10_000<<32)) >> 32, true
}

// AppendInt appends the text of an int64. Numbers of three digits and more, such as times in ms and ns, are written eight digits at a time.
func AppendInt(dst []byte, n int64) []byte {
	const eight = 1e8
	if n < 100 {
		return strconv.AppendInt(dst, n, 10)
	}
	first := uint64(n) / eight // which is faster than signed
	last := uint64(n) - first*eight
	switch {
	case first == 0:
		return appendFirst(dst, last)
	case first < eight:
		dst = appendFirst(dst, first)
	default:
		middle := first
		first /= eight
		dst = appendFirst(dst, first)
		dst = binary.LittleEndian.AppendUint64(dst, eightDigits(middle-first*eight))
	}
	return binary.LittleEndian.AppendUint64(dst, eightDigits(last))
}

// appendFirst appends the text of n, which is above 0 and below 1e8. It writes eight bytes and takes back those that are none of it.
func appendFirst(dst []byte, n uint64) []byte {
	text := eightDigits(n)
	zeros := bits.TrailingZeros64(text^eightZeros) / 8
	end := len(dst) + 8 - zeros
	return binary.LittleEndian.AppendUint64(dst, text>>(8*zeros))[:end]
}

// eightZeros is the text of eight zeros.
const eightZeros = 0x3030303030303030

// eightDigits is the text of n, which is below 1e8, with zeros before it: the first digit in the lowest byte. All its parts are divided at
// once, first by 100 and then by 10, each by multiplying and shifting, without a look at a table (Khuong, "How to print integers really
// fast", 2017).
func eightDigits(n uint64) uint64 {
	const each16 = 1<<48 | 1<<32 | 1<<16 | 1
	fours := n/1e4 | n%1e4<<32
	hundreds := fours * 10486 >> 20 & (127<<32 | 127)
	twos := hundreds | (fours-100*hundreds)<<16
	tens := twos * 103 >> 10 & (each16 * 15)
	return tens | (twos-10*tens)<<8 | eightZeros
}
