package store

import "encoding/binary"

// Packed values are runs of elements. An element is its length, a little-endian uint16,
// followed by its bytes: no packed value outgrows a block of the arena, so longer ones
// do not occur. Only this package writes them, so readers trust what they find: a length
// that points past the end is a broken invariant and panics as a slice out of range.
const elementHead = 2

// elementSize is the number of bytes that an element of n bytes occupies.
func elementSize(n int) int { return elementHead + n }

// putElement writes v as an element to the front of dst and returns its size.
func putElement(dst, v []byte) int {
	binary.LittleEndian.PutUint16(dst, uint16(len(v)))
	return elementHead + copy(dst[elementHead:], v)
}

// elementBounds finds the bytes of the element at offset at: p[start:end]. The next
// element begins at end.
func elementBounds(p []byte, at int) (start, end int) {
	start = at + elementHead
	return start, start + int(binary.LittleEndian.Uint16(p[at:]))
}

// splice makes the old bytes at offset at of a packed payload into n bytes, moves
// what follows them, and returns the payload for the caller to fill in. Passing
// the gate and keeping the count are the caller's business.
func (e *Entry) splice(at, old, n int) []byte {
	p := e.packed()
	size := len(p)
	switch grow := n - old; {
	case grow > 0:
		p = e.resizePacked(size + grow)
		copy(p[at+n:], p[at+old:size])
	case grow < 0:
		copy(p[at+n:], p[at+old:])
		p = e.resizePacked(size + grow)
	}
	return p
}
