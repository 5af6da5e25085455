package store

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"headgate/internal/number"
)

// A listpack is Redis's run of elements, each a text or an integer. Streams are kept in them, in Redis's own bytes, because
// what their size is decides where a stream can be cut.
//
//	offset  bytes
//	     0      4  the size of all, little-endian
//	     4      2  the number of elements, 65535 for more
//	     6      …  the elements
//	  last      1  0xff
//
// An element is its encoding with its text or integer, and the size of that in groups of 7 bits, readable from its end:
//
//	0nnnnnnn                 an integer from 0 to 127
//	110nnnnn nnnnnnnn        one of 13 bits
//	11110001 … 11110100      one of 16, 24, 32 and 64 bits, which follows, little-endian
//	10nnnnnn                 a text of n bytes, which follow
//	1110nnnn nnnnnnnn        the same
//	11110000 n (4 bytes)     the same, little-endian
//
// Only this package writes them, so readers trust what they find.
type listpack []byte

const (
	listpackHead   = 6
	listpackEnd    = 0xff
	listpackMany   = math.MaxUint16 // as the number of elements: not known
	listpackCount  = 4              // offset of that number
	listpackInt7   = 1<<7 - 1
	listpackText6  = 1<<6 - 1
	listpackText12 = 1<<12 - 1
)

func newListpack() listpack {
	return listpack{listpackHead + 1, 0, 0, 0, 0, 0, listpackEnd}
}

// appendText appends an element; the text of an integer becomes one.
func (l listpack) appendText(text []byte) listpack {
	if n, ok := number.ParseInt(text); ok {
		return l.appendInt(n)
	}
	l = l[:len(l)-1]
	start := len(l)
	switch n := len(text); {
	case n <= listpackText6:
		l = append(l, 0x80|byte(n))
	case n <= listpackText12:
		l = append(l, 0xe0|byte(n>>8), byte(n))
	default:
		l = binary.LittleEndian.AppendUint32(append(l, 0xf0), uint32(n))
	}
	l = append(l, text...)
	return appendSize(l, len(l)-start).finish(1)
}

// appendInt appends an element.
func (l listpack) appendInt(n int64) listpack {
	return encodeInt(l[:len(l)-1], n).finish(1)
}

// replaceInt makes the element at an offset the integer n.
func (l listpack) replaceInt(at int, n int64) listpack {
	var room [16]byte
	element := encodeInt(room[:0], n)
	end := l.next(at)
	if len(element) == end-at {
		copy(l[at:], element)
		return l
	}
	l = slices.Replace(l, at, end, element...)
	return l[:len(l)-1].finish(0)
}

// finish closes a listpack that has got more elements.
func (l listpack) finish(more int) listpack {
	l = append(l, listpackEnd)
	binary.LittleEndian.PutUint32(l, uint32(len(l)))
	if n := binary.LittleEndian.Uint16(l[listpackCount:]); n != listpackMany {
		binary.LittleEndian.PutUint16(l[listpackCount:], n+uint16(more))
	}
	return l
}

// encodeInt appends an integer's element to dst, in the shortest form.
func encodeInt(dst listpack, n int64) listpack {
	start := len(dst)
	switch {
	case n >= 0 && n <= listpackInt7:
		dst = append(dst, byte(n))
	case n >= -1<<12 && n < 1<<12:
		dst = append(dst, 0xc0|byte(n>>8)&0x1f, byte(n))
	case n >= math.MinInt16 && n <= math.MaxInt16:
		dst = binary.LittleEndian.AppendUint16(append(dst, 0xf1), uint16(n))
	case n >= -1<<23 && n < 1<<23:
		dst = append(dst, 0xf2, byte(n), byte(n>>8), byte(n>>16))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		dst = binary.LittleEndian.AppendUint32(append(dst, 0xf3), uint32(n))
	default:
		dst = binary.LittleEndian.AppendUint64(append(dst, 0xf4), uint64(n))
	}
	return appendSize(dst, len(dst)-start)
}

// appendSize appends the size of the element before it.
func appendSize(dst listpack, size int) listpack {
	groups := sizeGroups(size)
	for i := groups - 1; i >= 0; i-- {
		group := byte(size>>(7*i)) & 0x7f
		if i < groups-1 {
			group |= 0x80
		}
		dst = append(dst, group)
	}
	return dst
}

// sizeGroups is the number of bytes that an element's size takes.
func sizeGroups(size int) int {
	switch {
	case size <= 127:
		return 1
	case size < 1<<14-1:
		return 2
	case size < 1<<21-1:
		return 3
	case size < 1<<28-1:
		return 4
	}
	return 5
}

// first is the offset of the first element.
func (l listpack) first() int { return listpackHead }

// end is the offset behind the last element.
func (l listpack) end() int { return len(l) - 1 }

// bounds finds the text or the integer's bytes of the element at an offset: l[start:end].
func (l listpack) bounds(at int) (start, end int) {
	switch b := l[at]; {
	case b < 0x80:
		return at, at + 1
	case b < 0xc0:
		return at + 1, at + 1 + int(b&0x3f)
	case b < 0xe0:
		return at, at + 2
	case b < 0xf0:
		return at + 2, at + 2 + (int(b&0x0f)<<8 | int(l[at+1]))
	case b == 0xf0:
		return at + 5, at + 5 + int(binary.LittleEndian.Uint32(l[at+1:]))
	case b == 0xf4:
		return at + 1, at + 9
	default: // 0xf1, 0xf2, 0xf3
		return at + 1, at + 2 + int(b-0xf0)
	}
}

// next is the offset of the element after the one at an offset.
func (l listpack) next(at int) int {
	_, end := l.bounds(at)
	return end + sizeGroups(end-at)
}

// skip is the offset n elements after an offset.
func (l listpack) skip(at, n int) int {
	for ; n > 0; n-- {
		at = l.next(at)
	}
	return at
}

// previous is the offset of the element before an offset.
func (l listpack) previous(at int) int {
	size, shift := 0, 0
	for {
		at--
		b := l[at]
		size |= int(b&0x7f) << shift
		if b&0x80 == 0 {
			break
		}
		shift += 7
	}
	return at - size
}

// integer reads the element at an offset, which must be an integer.
func (l listpack) integer(at int) int64 {
	n, _ := l.number(at)
	return n
}

// number reads the element at an offset if it is an integer.
func (l listpack) number(at int) (n int64, ok bool) {
	switch b := l[at]; {
	case b < 0x80:
		return int64(b), true
	case b >= 0xc0 && b < 0xe0:
		const unused = 64 - 13
		return int64(uint64(b&0x1f)<<8|uint64(l[at+1])) << unused >> unused, true
	case b == 0xf1:
		return int64(int16(binary.LittleEndian.Uint16(l[at+1:]))), true
	case b == 0xf2:
		return int64(int32(uint32(l[at+1])<<8|uint32(l[at+2])<<16|uint32(l[at+3])<<24) >> 8), true
	case b == 0xf3:
		return int64(int32(binary.LittleEndian.Uint32(l[at+1:]))), true
	case b == 0xf4:
		return int64(binary.LittleEndian.Uint64(l[at+1:])), true
	}
	return 0, false
}

// text reads the element at an offset: memory of the listpack or, for an integer, its digits in scratch.
func (l listpack) text(at int, scratch []byte) []byte {
	if n, ok := l.number(at); ok {
		return strconv.AppendInt(scratch[:0], n, 10)
	}
	start, end := l.bounds(at)
	return l[start:end:end]
}
