package structlib

import (
	"math"
	"slices"

	"headgate/server/script/lualib/luanum"
)

// integerOf converts a double to the integer whose bytes are packed: negative
// numbers as a signed, all others as an unsigned one.
func integerOf(n float64) uint64 {
	const half = 1 << 63
	if n < half || math.IsNaN(n) {
		return uint64(luanum.TruncateInt(n))
	}
	return uint64(luanum.TruncateInt(n-half)) ^ half
}

// appendInteger appends the size lowest bytes of value. Bytes beyond its own
// eight are 0, also for negative numbers.
func appendInteger(out []byte, value uint64, size int, bigEndian bool) []byte {
	start := len(out)
	for range size {
		out = append(out, byte(value))
		value >>= 8
	}
	if bigEndian {
		slices.Reverse(out[start:])
	}
	return out
}

// readInteger returns the number that data holds; of more than eight bytes the
// lowest count.
func readInteger(data string, signed, bigEndian bool) float64 {
	value := readBits(data, bigEndian)
	if !signed {
		return float64(value)
	}
	// The shift count wraps as the processor's does, which decides what becomes
	// of sizes above eight.
	sign := ^uint64(0) << (uint(len(data)*8-1) % pointerBits)
	if value&sign != 0 {
		value |= sign
	}
	return float64(int64(value))
}

// readBits returns the bytes of data as an integer, the last eight that matter
// when there are more.
func readBits(data string, bigEndian bool) uint64 {
	value := uint64(0)
	for i := range len(data) {
		if bigEndian {
			value = value<<8 | uint64(data[i])
		} else {
			value = value<<8 | uint64(data[len(data)-1-i])
		}
	}
	return value
}
