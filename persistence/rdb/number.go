package rdb

import (
	"math"
	"strconv"
)

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

// littleInt is the signed integer of 1 to 8 little-endian bytes.
func littleInt(b []byte) int64 {
	var n uint64
	for i, x := range b {
		n |= uint64(x) << (8 * i)
	}
	shift := 64 - 8*len(b)
	return int64(n<<shift) >> shift
}
