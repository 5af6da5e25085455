package rdb

import (
	"encoding/binary"
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

// appendInt appends the text of an int64. Numbers as long as the times in ns that most keys of a limiter hold are worth a way of their own.
func appendInt(dst []byte, n int64) []byte {
	const low = 1e16
	if n < low {
		return strconv.AppendInt(dst, n, 10)
	}
	dst = strconv.AppendInt(dst, n/low, 10)
	n %= low
	dst = binary.LittleEndian.AppendUint64(dst, eightDigits(uint64(n/1e8)))
	return binary.LittleEndian.AppendUint64(dst, eightDigits(uint64(n%1e8)))
}

// eightDigits is the text of n, which is below 1e8, with zeros before it: the first digit in the lowest byte. All its parts are divided at
// once, first by 100 and then by 10, each by multiplying and shifting, without a look at a table (Khuong, "How to print integers really
// fast", 2017).
func eightDigits(n uint64) uint64 {
	const each16 = 1<<48 | 1<<32 | 1<<16 | 1
	fours := n/1e4 | n%1e4<<32
	hundreds := fours * 10486 >> 20 & (127<<32 | 127)
	twos := hundreds | (fours-100*hundreds)<<16
	tens := twos * 103 >> 10 & (each16 * 15)
	return tens | (twos-10*tens)<<8 | 0x3030303030303030
}
