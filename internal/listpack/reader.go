package listpack

import (
	"encoding/binary"
	"errors"

	"headgate/internal/number"
)

// ErrInvalid says that bytes are no listpack.
var ErrInvalid = errors.New("a listpack that makes no sense")

// Reader goes through the elements of bytes that may be anything, and checks each before it hands it out. It is not safe for concurrent use.
type Reader struct {
	b     []byte
	at    int
	count int // elements by the head; -1: not said
	seen  int
}

// Open checks what frames a listpack.
func Open(b []byte) (Reader, error) {
	if len(b) < headSize+1 || uint64(binary.LittleEndian.Uint32(b)) != uint64(len(b)) || b[len(b)-1] != endMark {
		return Reader{}, ErrInvalid
	}
	count := int(binary.LittleEndian.Uint16(b[countAt:]))
	if count == countMany {
		count = -1
	}
	return Reader{b: b, at: headSize, count: count}, nil
}

// Announced is how many elements there are by the head, or -1 if it does not say. Nobody has counted them.
func (r *Reader) Announced() int { return r.count }

// Seen is how many elements have been read.
func (r *Reader) Seen() int { return r.seen }

// More reports whether there is another element.
func (r *Reader) More() bool { return r.at < len(r.b)-1 }

// Close checks that all elements have been read, and as many as the head has said.
func (r *Reader) Close() error {
	if r.More() || r.count >= 0 && r.seen != r.count {
		return ErrInvalid
	}
	return nil
}

// Element is one element: Text, or the integer N if IsInt is set.
type Element struct {
	Text  []byte
	N     int64
	IsInt bool
}

// Bytes is the element as text; digits has room for an integer's.
func (e *Element) Bytes(digits *[number.IntMax]byte) []byte {
	if e.IsInt {
		return number.AppendInt(digits[:0], e.N)
	}
	return e.Text
}

// Next reads an element. Its text aliases the listpack.
func (r *Reader) Next() (e Element, err error) {
	all := r.b[:len(r.b)-1]
	if r.at == len(all) {
		return e, ErrInvalid
	}
	if n := needed(all[r.at]); n == 0 || n > len(all)-r.at {
		return e, ErrInvalid
	}
	start, end := bounds(all, r.at)
	if end > len(all) {
		return e, ErrInvalid
	}
	next := end + backGroups(end-r.at)
	if next > len(all) || !isBackSize(all[end:next], end-r.at) {
		return e, ErrInvalid
	}
	if e.N, e.IsInt = integer(all, r.at); !e.IsInt {
		e.Text = all[start:end:end]
	}
	r.at = next
	r.seen++
	return e, nil
}

// Skip passes n elements.
func (r *Reader) Skip(n int) error {
	for range n {
		if _, err := r.Next(); err != nil {
			return err
		}
	}
	return nil
}

// NextShort is NextCount, for an integer in the shortest form.
func (r *Reader) NextShort() (int, error) {
	from := r.at
	n, err := r.NextCount()
	var room [16]byte
	if err == nil && len(appendInt(room[:0], int64(n))) != r.at-from {
		err = ErrInvalid
	}
	return n, err
}

// NextCount reads an element that counts others: an integer, and not above what the listpack could hold.
func (r *Reader) NextCount() (int, error) {
	e, err := r.Next()
	if err == nil && (!e.IsInt || e.N < 0 || e.N > int64(len(r.b))) {
		err = ErrInvalid
	}
	return int(e.N), err
}
