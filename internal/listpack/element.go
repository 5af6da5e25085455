package listpack

import (
	"encoding/binary"
	"math"

	"headgate/internal/number"
)

const (
	headSize  = 6
	countAt   = 4 // offset of the number of elements
	countMany = math.MaxUint16
	endMark   = 0xff
)

// First bytes of elements, and the most that some of them say. What lies below encText6 is an integer itself.
const (
	encText6  = 0x80
	encInt13  = 0xc0
	encText12 = 0xe0
	encText32 = 0xf0
	encInt16  = 0xf1
	encInt24  = 0xf2
	encInt32  = 0xf3
	encInt64  = 0xf4

	int7Max   = 1<<7 - 1
	text6Max  = 1<<6 - 1
	text12Max = 1<<12 - 1
)

// appendText appends the element of a text; the canonical text of an integer becomes one.
func appendText(dst, text []byte) []byte {
	if n, ok := number.ParseInt(text); ok {
		return appendInt(dst, n)
	}
	start := len(dst)
	switch n := len(text); {
	case n <= text6Max:
		dst = append(dst, encText6|byte(n))
	case n <= text12Max:
		dst = append(dst, encText12|byte(n>>8), byte(n))
	default:
		dst = binary.LittleEndian.AppendUint32(append(dst, encText32), uint32(n))
	}
	dst = append(dst, text...)
	return appendBackSize(dst, len(dst)-start)
}

// appendInt appends the element of an integer, in the shortest form.
func appendInt(dst []byte, n int64) []byte {
	start := len(dst)
	switch {
	case n >= 0 && n <= int7Max:
		dst = append(dst, byte(n))
	case n >= -1<<12 && n < 1<<12:
		dst = append(dst, encInt13|byte(n>>8)&0x1f, byte(n))
	case n >= math.MinInt16 && n <= math.MaxInt16:
		dst = binary.LittleEndian.AppendUint16(append(dst, encInt16), uint16(n))
	case n >= -1<<23 && n < 1<<23:
		dst = append(dst, encInt24, byte(n), byte(n>>8), byte(n>>16))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		dst = binary.LittleEndian.AppendUint32(append(dst, encInt32), uint32(n))
	default:
		dst = binary.LittleEndian.AppendUint64(append(dst, encInt64), uint64(n))
	}
	return appendBackSize(dst, len(dst)-start)
}

// appendBackSize appends the size of the element before it.
func appendBackSize(dst []byte, size int) []byte {
	groups := backGroups(size)
	for i := groups - 1; i >= 0; i-- {
		group := byte(size>>(7*i)) & 0x7f
		if i < groups-1 {
			group |= 0x80
		}
		dst = append(dst, group)
	}
	return dst
}

// backGroups is the number of bytes that an element's size takes behind it. The bounds are Redis's, which leave out the last size that so
// many bytes could say.
func backGroups(size int) int {
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

// isBackSize reports whether b is the size that belongs behind an element of so many bytes.
func isBackSize(b []byte, size int) bool {
	got := 0
	for i, group := range b {
		if (group&0x80 != 0) != (i > 0) {
			return false
		}
		got = got<<7 | int(group&0x7f)
	}
	return got == size
}

// needed is how many bytes of an element must be there to tell where it ends, from its first byte: for a text what stands before it, for
// an integer all of it. It is 0 for what no element begins with.
func needed(first byte) int {
	switch {
	case first < encInt13:
		return 1
	case first < encText32:
		return 2
	case first == encText32:
		return 1 + 4
	case first < encInt64:
		return 2 + int(first-encText32)
	case first == encInt64:
		return 1 + 8
	}
	return 0
}

// bounds finds the text or the integer's bytes of the element at an offset: p[start:end]. needed bytes of it must be there.
func bounds(p []byte, at int) (start, end int) {
	switch b := p[at]; {
	case b < encText6:
		return at, at + 1
	case b < encInt13:
		return at + 1, at + 1 + int(b&text6Max)
	case b < encText12:
		return at, at + 2
	case b < encText32:
		return at + 2, at + 2 + (int(b&0x0f)<<8 | int(p[at+1]))
	case b == encText32:
		return at + 5, at + 5 + int(binary.LittleEndian.Uint32(p[at+1:]))
	case b == encInt64:
		return at + 1, at + 9
	default: // 16, 24 or 32 bits
		return at + 1, at + 2 + int(b-encText32)
	}
}

// integer reads the element at an offset if it is an integer. needed bytes of it must be there.
func integer(p []byte, at int) (n int64, ok bool) {
	switch b := p[at]; {
	case b < encText6:
		return int64(b), true
	case b >= encInt13 && b < encText12:
		const unused = 64 - 13
		return int64(uint64(b&0x1f)<<8|uint64(p[at+1])) << unused >> unused, true
	case b == encInt16:
		return int64(int16(binary.LittleEndian.Uint16(p[at+1:]))), true
	case b == encInt24:
		return int64(int32(uint32(p[at+1])<<8|uint32(p[at+2])<<16|uint32(p[at+3])<<24) >> 8), true
	case b == encInt32:
		return int64(int32(binary.LittleEndian.Uint32(p[at+1:]))), true
	case b == encInt64:
		return int64(binary.LittleEndian.Uint64(p[at+1:])), true
	}
	return 0, false
}
