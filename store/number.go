package store

import "math"

// maxIntText is the longest text of an int64, in bytes.
const maxIntText = 20

// ParseInt reads a decimal int64 in its canonical form only, the one that formatting the number gives back: no plus
// sign, no leading zero, no "-0", no space. This is what makes a string integer-encoded, and what INCR accepts.
func ParseInt(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > maxIntText {
		return 0, false
	}
	negative := b[0] == '-'
	if negative {
		b = b[1:]
	}
	if len(b) == 0 || b[0] < '0' || b[0] > '9' {
		return 0, false
	}
	if b[0] == '0' {
		return 0, len(b) == 1 && !negative
	}
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	var n uint64
	for _, c := range b {
		digit := uint64(c - '0')
		if digit > 9 || n > (limit-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
	}
	if negative {
		return int64(-n), true
	}
	return int64(n), true
}
