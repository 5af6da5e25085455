package listpack

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// Pack is a whole listpack, which its methods have made or a [Reader] has read to its end: they trust what they find, and an offset that
// is none of an element's panics or finds nonsense. Methods that change it return what it has become, in its own memory if there is room.
// It is not safe for concurrent use while it changes.
type Pack []byte

// New returns a listpack without elements.
func New() Pack { return Pack{headSize + 1, 0, 0, 0, 0, 0, endMark} }

// AppendText appends an element; the text of an integer becomes one.
func (p Pack) AppendText(text []byte) Pack { return finish(appendText(p[:len(p)-1], text), 1) }

// AppendInt appends an element.
func (p Pack) AppendInt(n int64) Pack { return finish(appendInt(p[:len(p)-1], n), 1) }

// ReplaceInt makes the element at an offset the integer n.
func (p Pack) ReplaceInt(at int, n int64) Pack {
	var room [16]byte
	element := appendInt(room[:0], n)
	end := p.Next(at)
	if len(element) == end-at {
		copy(p[at:], element)
		return p
	}
	p = slices.Replace(p, at, end, element...)
	return finish(p[:len(p)-1], 0)
}

// finish closes a listpack that has got more elements.
func finish(b []byte, more int) Pack {
	b = append(b, endMark)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	if n := binary.LittleEndian.Uint16(b[countAt:]); n != countMany {
		binary.LittleEndian.PutUint16(b[countAt:], n+uint16(more))
	}
	return b
}

// First is the offset of the first element.
func (p Pack) First() int { return headSize }

// End is the offset behind the last element.
func (p Pack) End() int { return len(p) - 1 }

// Next is the offset of the element after the one at an offset.
func (p Pack) Next(at int) int {
	_, end := bounds(p, at)
	return end + backGroups(end-at)
}

// Skip is the offset n elements after an offset.
func (p Pack) Skip(at, n int) int {
	for ; n > 0; n-- {
		at = p.Next(at)
	}
	return at
}

// Previous is the offset of the element before an offset.
func (p Pack) Previous(at int) int {
	size, shift := 0, 0
	for {
		at--
		b := p[at]
		size |= int(b&0x7f) << shift
		if b&0x80 == 0 {
			break
		}
		shift += 7
	}
	return at - size
}

// Int reads the element at an offset, which must be an integer.
func (p Pack) Int(at int) int64 {
	n, _ := integer(p, at)
	return n
}

// Text reads the element at an offset: memory of the listpack or, for an integer, its digits in scratch, which needs room for
// number.IntMax bytes if nothing is to be allocated.
func (p Pack) Text(at int, scratch []byte) []byte {
	if n, ok := integer(p, at); ok {
		return strconv.AppendInt(scratch[:0], n, 10)
	}
	start, end := bounds(p, at)
	return p[start:end:end]
}
