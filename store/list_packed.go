package store

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// packedList is a run of a list's elements that can be read from either end: an element is its length as a varint, its bytes, and
// the length again with the varint's bytes in reverse. It is the payload of a small list and the contents of a big one's chunks.
type packedList []byte

// lengthSize is the number of bytes of a length's varint.
func lengthSize(n int) int { return max(1, (bits.Len(uint(n))+6)/7) }

// listElementSize is the number of bytes that an element of n bytes occupies.
func listElementSize(n int) int { return 2*lengthSize(n) + n }

// putListElement writes v as an element to the front of dst.
func putListElement(dst, v []byte) {
	head := binary.PutUvarint(dst, uint64(len(v)))
	copy(dst[head:], v)
	tail := dst[head+len(v) : head+len(v)+head]
	binary.PutUvarint(tail, uint64(len(v)))
	slices.Reverse(tail)
}

// next reads the element that begins at offset at. The one after it begins at end.
func (p packedList) next(at int) (v []byte, end int) {
	n, head := int(p[at]), 1
	if n >= 0x80 {
		long, size := binary.Uvarint(p[at:])
		n, head = int(long), size
	}
	start := at + head
	return p[start : start+n : start+n], start + n + head
}

// previous reads the element that ends at offset end. The one before it ends at at.
func (p packedList) previous(end int) (v []byte, at int) {
	n, tail := 0, 0
	for shift := 0; ; shift += 7 {
		tail++
		b := p[end-tail]
		n |= int(b&0x7f) << shift
		if b < 0x80 {
			break
		}
	}
	stop := end - tail
	return p[stop-n : stop : stop], stop - n - tail
}

// seek is the offset at which element i of count begins; i may be count, for the end. It starts from the nearer end.
func (p packedList) seek(i, count int) int {
	if i <= count/2 {
		at := 0
		for ; i > 0; i-- {
			_, at = p.next(at)
		}
		return at
	}
	at := len(p)
	for ; i < count; i++ {
		_, at = p.previous(at)
	}
	return at
}

// end is the first or the last element; there must be one.
func (p packedList) end(front bool) []byte {
	var v []byte
	if front {
		v, _ = p.next(0)
	} else {
		v, _ = p.previous(len(p))
	}
	return v
}

// walk hands n elements from offset at on to fn until fn says false. index is the number of the first.
func (p packedList) walk(at, index, n int, fn func(i int, v []byte) bool) bool {
	for ; n > 0; n-- {
		var v []byte
		v, at = p.next(at)
		if !fn(index, v) {
			return false
		}
		index++
	}
	return true
}

// walkBack hands n elements, the first of which ends at offset end, downward to fn until fn says false. index is the number of the
// first.
func (p packedList) walkBack(end, index, n int, fn func(i int, v []byte) bool) bool {
	for ; n > 0; n-- {
		var v []byte
		v, end = p.previous(end)
		if !fn(index, v) {
			return false
		}
		index--
	}
	return true
}

// removal says which of the elements that equal value are to go: n of them, after the first skip.
type removal struct {
	value   []byte
	skip, n int
}

// without moves what stays to the front and returns it, with how many elements went. r counts on from one run to the next.
func (p packedList) without(r *removal) (rest packedList, removed int) {
	to, kept := 0, 0 // kept is where what has been looked at and not yet moved begins
	for at := 0; at < len(p) && r.n > 0; {
		v, end := p.next(at)
		switch {
		case string(v) != string(r.value):
		case r.skip > 0:
			r.skip--
		default:
			to += copy(p[to:], p[kept:at])
			kept = end
			removed++
			r.n--
		}
		at = end
	}
	to += copy(p[to:], p[kept:])
	return p[:to], removed
}
