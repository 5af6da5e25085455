package rdb

import (
	"encoding/binary"
	"errors"
	"math"
)

const intsetHead = 8

var errIntset = errors.New("a set of integers that makes no sense")

// intsetWidth is the number of bytes with which an intset keeps n.
func intsetWidth(n int64) int {
	switch {
	case n >= math.MinInt16 && n <= math.MaxInt16:
		return 2
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return 4
	}
	return 8
}

// appendIntset appends the intset of the numbers, which must be sorted.
func appendIntset(dst []byte, sorted []int64) []byte {
	width := 2
	if len(sorted) > 0 {
		width = max(intsetWidth(sorted[0]), intsetWidth(sorted[len(sorted)-1]))
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(width))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(sorted)))
	for _, n := range sorted {
		for i := range width {
			dst = append(dst, byte(n>>(8*i)))
		}
	}
	return dst
}

// eachInIntset hands the numbers of an intset to fn. They must be in ascending order.
func eachInIntset(b []byte, begin func(n int) error, fn func(n int64) error) error {
	if len(b) < intsetHead {
		return errIntset
	}
	width := int(binary.LittleEndian.Uint32(b))
	count := int(binary.LittleEndian.Uint32(b[4:]))
	if width != 2 && width != 4 && width != 8 || count != (len(b)-intsetHead)/width || (len(b)-intsetHead)%width != 0 || count == 0 {
		return errIntset
	}
	if err := begin(count); err != nil {
		return err
	}
	previous := int64(math.MinInt64)
	for i := range count {
		at := intsetHead + i*width
		n := littleInt(b[at : at+width])
		if i > 0 && n <= previous {
			return errIntset
		}
		if err := fn(n); err != nil {
			return err
		}
		previous = n
	}
	return nil
}
