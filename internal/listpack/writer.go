package listpack

import "encoding/binary"

// Writer makes one listpack after the other in the same memory. Reset begins one. It is not safe for concurrent use.
type Writer struct {
	b     []byte
	count int
}

// Reset begins a listpack.
func (w *Writer) Reset() { w.b, w.count = append(w.b[:0], 0, 0, 0, 0, 0, 0), 0 }

// Text appends an element; the text of an integer becomes one.
func (w *Writer) Text(s []byte) {
	w.b = appendText(w.b, s)
	w.count++
}

// Int appends an element.
func (w *Writer) Int(n int64) {
	w.b = appendInt(w.b, n)
	w.count++
}

// Len is how many elements there are.
func (w *Writer) Len() int { return w.count }

// Bytes ends the listpack and returns it; it is valid until the next Reset. One of 4 GiB or more cannot say its size and is not to be used.
func (w *Writer) Bytes() []byte {
	w.b = append(w.b, endMark)
	binary.LittleEndian.PutUint32(w.b, uint32(len(w.b)))
	binary.LittleEndian.PutUint16(w.b[countAt:], uint16(min(w.count, countMany)))
	return w.b
}
