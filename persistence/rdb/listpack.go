package rdb

import (
	"encoding/binary"
	"errors"
	"math"

	"headgate/internal/number"
)

// A listpack is its size in bytes (uint32) and its number of elements (uint16, 65535 for more than it can say), both
// little-endian, the elements, and a byte 255. An element is an integer or a string, in one of these forms, and the length of
// that form, in 7-bit groups to be read backwards:
//
//	0xxxxxxx                  0 to 127
//	10xxxxxx …                a string of up to 63 bytes
//	110xxxxx xxxxxxxx         -4096 to 4095
//	1110xxxx xxxxxxxx …       a string of up to 4095 bytes
//	F0 length(4) …            any string
//	F1 F2 F3 F4 …             an integer of 2, 3, 4 or 8 bytes, little-endian
const (
	listpackHead    = 6
	listpackEnd     = 0xff
	listpackUncount = math.MaxUint16

	lpInt13 = 0xc0
	lpStr12 = 0xe0
	lpStr6  = 0x80
	lpStr32 = 0xf0
	lpInt16 = 0xf1
	lpInt24 = 0xf2
	lpInt32 = 0xf3
	lpInt64 = 0xf4
)

// listpackWriter builds a listpack.
type listpackWriter struct {
	b     []byte
	count int
}

func (w *listpackWriter) reset() {
	w.b, w.count = append(w.b[:0], 0, 0, 0, 0, 0, 0), 0
}

// bytes ends the listpack and returns it; it is valid until the next reset.
func (w *listpackWriter) bytes() []byte {
	w.b = append(w.b, listpackEnd)
	binary.LittleEndian.PutUint32(w.b, uint32(len(w.b)))
	binary.LittleEndian.PutUint16(w.b[4:], uint16(min(w.count, listpackUncount)))
	return w.b
}

// text appends a string, as an integer if it is the canonical text of one.
func (w *listpackWriter) text(s []byte) {
	if n, ok := number.ParseInt(s); ok {
		w.integer(n)
		return
	}
	from := len(w.b)
	switch n := len(s); {
	case n < 64:
		w.b = append(w.b, lpStr6|byte(n))
	case n < 4096:
		w.b = append(w.b, lpStr12|byte(n>>8), byte(n))
	default:
		w.b = append(w.b, lpStr32)
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(n))
	}
	w.b = append(w.b, s...)
	w.end(from)
}

func (w *listpackWriter) integer(n int64) {
	from := len(w.b)
	switch {
	case n >= 0 && n <= 127:
		w.b = append(w.b, byte(n))
	case n >= -4096 && n <= 4095:
		w.b = append(w.b, lpInt13|byte(n>>8)&31, byte(n))
	case n >= math.MinInt16 && n <= math.MaxInt16:
		w.b = binary.LittleEndian.AppendUint16(append(w.b, lpInt16), uint16(n))
	case n >= -1<<23 && n <= 1<<23-1:
		w.b = append(w.b, lpInt24, byte(n), byte(n>>8), byte(n>>16))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		w.b = binary.LittleEndian.AppendUint32(append(w.b, lpInt32), uint32(n))
	default:
		w.b = binary.LittleEndian.AppendUint64(append(w.b, lpInt64), uint64(n))
	}
	w.end(from)
}

// end appends the length of the element that began at from.
func (w *listpackWriter) end(from int) {
	n := len(w.b) - from
	size := backLength(n)
	for i := size - 1; i >= 0; i-- {
		group := byte(n>>(7*i)) & 127
		if i < size-1 {
			group |= 128
		}
		w.b = append(w.b, group)
	}
	w.count++
}

// backLength is how many bytes the length of an element of n bytes takes up. The bounds are Redis's, which leave out the last
// number that a size could hold.
func backLength(n int) int {
	switch {
	case n <= 127:
		return 1
	case n < 1<<14-1:
		return 2
	case n < 1<<21-1:
		return 3
	case n < 1<<28-1:
		return 4
	}
	return 5
}

var errListpack = errors.New("a listpack that makes no sense")

// listpackReader goes through the elements of a listpack.
type listpackReader struct {
	b     []byte
	at    int
	count int // elements by the head; -1: not said
	seen  int
}

// openListpack checks what frames a listpack.
func openListpack(b []byte) (listpackReader, error) {
	if len(b) < listpackHead+1 || uint64(binary.LittleEndian.Uint32(b)) != uint64(len(b)) || b[len(b)-1] != listpackEnd {
		return listpackReader{}, errListpack
	}
	count := int(binary.LittleEndian.Uint16(b[4:]))
	if count == listpackUncount {
		count = -1
	}
	return listpackReader{b: b, at: listpackHead, count: count}, nil
}

// more reports whether there is another element.
func (r *listpackReader) more() bool { return r.at < len(r.b)-1 }

// close checks that all elements have been read, and as many as the head has said.
func (r *listpackReader) close() error {
	if r.more() || r.count >= 0 && r.seen != r.count {
		return errListpack
	}
	return nil
}

// element is one element of a packed value: text, or an integer if isInt is set.
type element struct {
	text  []byte
	n     int64
	isInt bool
}

// bytes is the element as text; digits has room for an integer's.
func (e *element) bytes(digits *[number.IntMax]byte) []byte {
	if e.isInt {
		return number.AppendInt(digits[:0], e.n)
	}
	return e.text
}

// next reads an element. Text aliases the listpack.
func (r *listpackReader) next() (e element, err error) {
	rest := r.b[r.at : len(r.b)-1]
	if len(rest) == 0 {
		return e, errListpack
	}
	head, size := 1, 0 // of the encoding, and of the text after it
	e.isInt = true
	switch b := rest[0]; {
	case b < 0x80:
		e.n = int64(b)
	case b < lpInt13:
		e.isInt, size = false, int(b&63)
	case b < lpStr12:
		if head = 2; len(rest) >= head {
			e.n = int64(int16(uint16(b)<<11|uint16(rest[1])<<3) >> 3)
		}
	case b < lpStr32:
		e.isInt = false
		if head = 2; len(rest) >= head {
			size = int(b&15)<<8 | int(rest[1])
		}
	case b == lpStr32:
		e.isInt = false
		if head = 5; len(rest) >= head {
			size = int(binary.LittleEndian.Uint32(rest[1:]))
		}
	case b <= lpInt64:
		width := [...]int{2, 3, 4, 8}[b-lpInt16]
		if head = 1 + width; len(rest) >= head {
			e.n = littleInt(rest[1:head])
		}
	default:
		return e, errListpack
	}
	if head > len(rest) || size > len(rest)-head {
		return e, errListpack
	}
	e.text = rest[head : head+size]
	n := head + size
	back := backLength(n)
	if n+back > len(rest) || !isBackLength(rest[n:n+back], n) {
		return e, errListpack
	}
	r.at += n + back
	r.seen++
	return e, nil
}

// isBackLength checks the length that follows an element of n bytes.
func isBackLength(b []byte, n int) bool {
	got := 0
	for i, group := range b {
		if (group&128 != 0) != (i > 0) {
			return false
		}
		got = got<<7 | int(group&127)
	}
	return got == n
}
