package store

import (
	"encoding/binary"
	"math"
)

// intSet is a set of whole numbers in order, each in as many little-endian bytes as the widest of them needs: 2, 4 or 8.
type intSet struct {
	bytes []byte
	width int
}

// intWidth is how many bytes a number needs in an intSet.
func intWidth(n int64) int {
	switch {
	case n >= math.MinInt16 && n <= math.MaxInt16:
		return 2
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return 4
	}
	return 8
}

func (s intSet) len() int { return len(s.bytes) / s.width }

// at is number i in order.
func (s intSet) at(i int) int64 {
	p := s.bytes[i*s.width:]
	switch s.width {
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(p)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(p)))
	}
	return int64(binary.LittleEndian.Uint64(p))
}

// put writes number i.
func (s intSet) put(i int, n int64) {
	p := s.bytes[i*s.width:]
	switch s.width {
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(n))
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(n))
	default:
		binary.LittleEndian.PutUint64(p, uint64(n))
	}
}

// find is the place of a number, or where it belongs.
func (s intSet) find(n int64) (i int, ok bool) {
	low, high := 0, s.len()
	for low < high {
		middle := (low + high) / 2
		switch held := s.at(middle); {
		case held == n:
			return middle, true
		case held < n:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, false
}

// widen rewrites the first count numbers, which have the given width, with the set's own. The bytes have room for it.
func (s intSet) widen(count, from int) {
	narrow := intSet{s.bytes, from}
	for i := count - 1; i >= 0; i-- {
		s.put(i, narrow.at(i))
	}
}
