package rdb

import (
	"math"
	"strconv"
)

// maxIntText is the length of the longest text of an int64.
const maxIntText = 20

// parseInt reads the canonical text of an int64: the one that printing the number gives.
func parseInt(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > maxIntText {
		return 0, false
	}
	digits := b
	if b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	n := uint64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n > (math.MaxUint64-9)/10 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	if b[0] == '-' {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n <= math.MaxInt64
}

// scoreInt is the integer that a packed sorted set keeps instead of the score's text, if it does.
func scoreInt(score float64) (int64, bool) {
	const bound = float64(math.MaxInt64 / 2)
	if score < -bound || score > bound {
		return 0, false
	}
	n := int64(score)
	return n, float64(n) == score
}

// appendScore appends the text of a score that is no integer: 17 significant digits, which no two scores share.
func appendScore(dst []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(dst, "inf"...)
	case math.IsInf(score, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, score, 'g', 17, 64)
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }
