package rdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"headgate/internal/number"
)

const (
	inputBuffer   = 64 << 10
	progressBytes = 256 << 10 // between two calls of Options.Progress
	maxKept       = 1 << 20   // bytes of a scratch buffer that is kept for the next string
)

// Error is what is wrong with a file or payload, and where.
type Error struct {
	Offset int64  // of the part that could not be read, from the start of the input
	What   string // in words
	Hint   string // what to do about it
	Err    error  // the cause, if there is one beyond What
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("rdb: at offset %d: %s", e.Offset, e.What)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errors that Error wraps.
var (
	// ErrDuplicate is a Sink's refusal of what is in a collection or a database already.
	ErrDuplicate = errors.New("the same element twice")
	// ErrTruncated says that the input ends too early.
	ErrTruncated = errors.New("the input ends in the middle")
	// ErrChecksum says that the bytes are not those that were written.
	ErrChecksum = errors.New("the checksum does not match")
	// ErrNoSuchType is a Sink's refusal of a type that it has not.
	ErrNoSuchType = errors.New("headgate has no such type")
)

// input reads bytes with their offset and checksum. It never allocates by a length that was read alone.
type input struct {
	r        io.Reader
	buf      []byte
	at, end  int   // of what is in buf and not yet consumed
	offset   int64 // of buf[0]
	crc      uint64
	summed   int // bytes of buf that are in crc
	checksum bool
	progress func(offset int64) error
	told     int64 // offset of the last call of progress
	err      error // of the reader or of progress
	expanded int   // bytes that compressed strings have become

	digits  [number.IntMax]byte
	scratch scratch // strings that are not whole in buf
	own     bool    // the last text is all of scratch, which whoever is told it may have
	noBytes bool    // a text is wanted for its form alone
	keep    scratch // a string that must outlive the next
	packed  scratch // a listpack or the like, whose elements are being read
	squeeze scratch // a compressed string
}

// scratch is memory for one string.
type scratch []byte

func (s *scratch) reset() []byte {
	if cap(*s) > maxKept {
		*s = nil
	}
	return (*s)[:0]
}

func (in *input) position() int64 { return in.offset + int64(in.at) }

// fail makes an error at the place where the input is now.
func (in *input) fail(what string) error {
	return &Error{Offset: in.position(), What: what, Hint: hintDamaged}
}

const hintDamaged = "the file is damaged: restore a copy of it"

// fill reads more, and reports whether there was any. It keeps what has not been consumed.
func (in *input) fill() bool {
	if in.err != nil {
		return false
	}
	in.sum()
	copy(in.buf, in.buf[in.at:in.end])
	in.offset += int64(in.at)
	in.end -= in.at
	in.at, in.summed = 0, 0
	if in.progress != nil && in.offset-in.told >= progressBytes {
		in.told = in.offset
		if in.err = in.progress(in.offset); in.err != nil {
			return false
		}
	}
	n, err := in.r.Read(in.buf[in.end:])
	in.end += n
	if err != nil && n == 0 {
		in.err = err
		return false
	}
	return n > 0 || in.fill()
}

// sum adds what has been consumed to the checksum.
func (in *input) sum() {
	if in.checksum {
		in.crc = UpdateCRC(in.crc, in.buf[in.summed:in.at])
	}
	in.summed = in.at
}

// ended is the error for an input that has no more bytes.
func (in *input) ended() error {
	if in.err != nil && !errors.Is(in.err, io.EOF) {
		return in.err
	}
	return &Error{Offset: in.position(), What: "the input ends in the middle", Hint: "the file was not written to its end, or was cut: restore a copy of it", Err: ErrTruncated}
}

// startsLike reports whether what has been read and not yet consumed is the beginning of a text, as far as both go.
func (in *input) startsLike(text string) bool {
	got := in.buf[in.at:in.end]
	n := min(len(got), len(text))
	return string(got[:n]) == text[:n]
}

// take returns the next n bytes, at most a few; they are valid until the next read.
func (in *input) take(n int) ([]byte, error) {
	for in.end-in.at < n {
		if !in.fill() {
			return nil, in.ended()
		}
	}
	b := in.buf[in.at : in.at+n : in.at+n]
	in.at += n
	return b, nil
}

func (in *input) byte() (byte, error) {
	if in.at == in.end && !in.fill() {
		return 0, in.ended()
	}
	b := in.buf[in.at]
	in.at++
	return b, nil
}

func (in *input) uint64LE() (uint64, error) {
	b, err := in.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// header reads a length, or says that a special string follows and which.
func (in *input) header() (n uint64, isSpecial bool, err error) {
	b, err := in.byte()
	if err != nil {
		return 0, false, err
	}
	switch {
	case b>>6 == 0:
		return uint64(b), false, nil
	case b>>6 == 1:
		low, err := in.byte()
		return uint64(b&63)<<8 | uint64(low), false, err
	case b == len32:
		p, err := in.take(4)
		if err != nil {
			return 0, false, err
		}
		return uint64(binary.BigEndian.Uint32(p)), false, nil
	case b == len64:
		p, err := in.take(8)
		if err != nil {
			return 0, false, err
		}
		return binary.BigEndian.Uint64(p), false, nil
	case b>>6 == 3:
		return uint64(b & 63), true, nil
	}
	return 0, false, in.fail("a length that does not exist")
}

// number reads a length, or any other unsigned number.
func (in *input) number() (uint64, error) {
	n, isSpecial, err := in.header()
	if err == nil && isSpecial {
		err = in.fail("a number was to come, not a string")
	}
	return n, err
}

// count reads a number of elements as an int.
func (in *input) count() (int, error) {
	n, err := in.number()
	if err == nil && n > math.MaxInt32<<8 {
		err = in.fail("a number of elements that cannot be")
	}
	return int(n), err
}

// text reads a string. isInt says that it is an integer's text, and n which. The bytes are valid until the next read.
func (in *input) text() (b []byte, n int64, isInt bool, err error) {
	in.own = false
	size, isSpecial, err := in.header()
	if err != nil {
		return nil, 0, false, err
	}
	if !isSpecial {
		if size <= uint64(in.end-in.at) {
			b, err = in.take(int(size))
			return b, 0, false, err
		}
		in.scratch, err = in.read(in.scratch.reset(), size)
		return in.scratch, 0, false, err
	}
	switch size {
	case specialInt8, specialInt16, specialInt32:
		p, err := in.take(1 << size)
		if err != nil {
			return nil, 0, false, err
		}
		return nil, littleInt(p), true, nil
	case specialLZF:
		in.scratch, err = in.decompress(in.scratch.reset())
		in.own = len(in.scratch) > maxKept
		return in.scratch, 0, false, err
	}
	return nil, 0, false, in.fail("a form of string that does not exist")
}

// bytes is text for strings whose form does not matter.
func (in *input) bytes() ([]byte, error) {
	b, n, isInt, err := in.text()
	if isInt {
		b = number.AppendInt(in.digits[:0], n)
	}
	return b, err
}

// kept reads a string that outlives the next one.
func (in *input) kept() ([]byte, error) {
	b, err := in.bytes()
	in.keep = append(in.keep.reset(), b...)
	return in.keep, err
}

// blob reads a string that holds a packed value.
func (in *input) blob() ([]byte, error) {
	b, err := in.bytes()
	if err != nil {
		return nil, err
	}
	if len(in.scratch) > 0 && len(b) > 0 && &b[0] == &in.scratch[0] {
		in.scratch, in.packed = in.packed, in.scratch
	} else {
		in.packed = append(in.packed.reset(), b...)
	}
	return in.packed, nil
}

// read appends n bytes of the input to dst, taking memory as they arrive.
func (in *input) read(dst []byte, n uint64) ([]byte, error) {
	for n > 0 {
		if in.at == in.end && !in.fill() {
			return dst, in.ended()
		}
		part := in.buf[in.at : in.at+int(min(n, uint64(in.end-in.at)))]
		dst = append(dst, part...)
		in.at += len(part)
		n -= uint64(len(part))
	}
	return dst, nil
}

// decompress appends a compressed string to dst.
func (in *input) decompress(dst []byte) ([]byte, error) {
	squeezed, err := in.number()
	if err != nil {
		return dst, err
	}
	n, err := in.number()
	if err != nil {
		return dst, err
	}
	if n > squeezed*lzfMaxExpand || squeezed > math.MaxInt64/lzfMaxExpand {
		return dst, in.fail("a compressed string longer than its bytes can tell")
	}
	at := in.position()
	in.squeeze, err = in.read(in.squeeze.reset(), squeezed)
	if err != nil {
		return dst, err
	}
	if in.noBytes {
		err = lzfCheck(in.squeeze, int(n))
	} else {
		dst, err = lzfDecompress(dst, in.squeeze, int(n))
	}
	if err != nil {
		return dst, &Error{Offset: at, What: err.Error(), Hint: hintDamaged}
	}
	in.expanded += int(n)
	return dst, nil
}
