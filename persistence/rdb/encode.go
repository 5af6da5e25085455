package rdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"headgate/internal/listpack"
	"headgate/internal/number"
)

// compressMin and compressMax bound the strings that are worth compressing, in bytes. Longer ones would keep whoever waits for the
// Encoder waiting.
const (
	compressMin = 21
	compressMax = 64 << 10
)

// Encoder turns keys and values into bytes. It appends to a buffer of its own, which the caller takes from time to time with
// Take, so it never waits for anything.
//
// A value is told by Key, then by the one method that names its type, then by what that asks for, then by End; strings and
// integers are one call. Byte slices are copied before a method returns, but for a key's name, which must stay as it is
// until the value's type is named. The Encoder is not safe for concurrent use.
type Encoder struct {
	buf      []byte
	compress bool
	payload  bool // a DUMP payload: no key, no expiry
	err      error

	name     []byte
	expireAt int64

	value   byte // the type of the value being told
	nodes   int  // of a list: listpacks to come
	pack    listpack.Writer
	ints    []int64
	packed  []byte // an intset
	squeeze []byte
	lzf     *lzf
	stream  streamEncoder
}

// NewEncoder returns an Encoder. With compress, it compresses strings where that makes them shorter.
func NewEncoder(compress bool) *Encoder {
	return &Encoder{compress: compress, lzf: &lzf{}}
}

// Len is the number of bytes that wait to be taken.
func (e *Encoder) Len() int { return len(e.buf) }

// Take returns the bytes so far, and goes on in the memory of next from its beginning. The caller owns what it is given.
func (e *Encoder) Take(next []byte) []byte {
	b := e.buf
	e.buf = next[:0]
	return b
}

// Err is what made a value impossible to encode. What has been encoded since is not to be used.
func (e *Encoder) Err() error { return e.err }

// Begin writes the start of a file.
func (e *Encoder) Begin() { e.buf = fmt.Appendf(e.buf, "%s%04d", magic, Version) }

// Aux writes an auxiliary field.
func (e *Encoder) Aux(name, value string) {
	e.buf = append(e.buf, opAux)
	e.string([]byte(name))
	e.string([]byte(value))
}

// Function writes the text of a library of functions.
func (e *Encoder) Function(code []byte) {
	e.buf = append(e.buf, opFunction)
	e.string(code)
}

// Database says which database the keys that follow belong to. It may be called between any two keys.
func (e *Encoder) Database(n int) {
	e.buf = append(e.buf, opSelect)
	e.length(uint64(n))
}

// Sizes tells how many keys the database has, and how many with a TTL. It helps readers and binds nobody.
func (e *Encoder) Sizes(keys, expires int) {
	e.buf = append(e.buf, opResize)
	e.length(uint64(keys))
	e.length(uint64(expires))
}

// EndFile writes the end of a file but for the checksum, which is the caller's to compute and to append with AppendTrailer.
func (e *Encoder) EndFile() { e.buf = append(e.buf, opEnd) }

// AppendTrailer appends the checksum of a file, or of a payload without it; 0 stands for none.
func AppendTrailer(dst []byte, crc uint64) []byte { return binary.LittleEndian.AppendUint64(dst, crc) }

// BeginPayload starts a payload for DUMP or FUNCTION DUMP. For DUMP one value follows, without Key.
func (e *Encoder) BeginPayload() { e.payload = true }

// EndPayload ends it. The payload is what Take returns.
func (e *Encoder) EndPayload() {
	e.payload = false
	e.buf = binary.LittleEndian.AppendUint16(e.buf, Version)
	e.buf = AppendTrailer(e.buf, UpdateCRC(0, e.buf))
}

// Key begins a key. expireAt is in Unix milliseconds, 0 for no TTL.
func (e *Encoder) Key(name []byte, expireAt int64) { e.name, e.expireAt = name, expireAt }

// begin writes what stands before a value.
func (e *Encoder) begin(kind byte) {
	e.value = kind
	if e.payload {
		e.buf = append(e.buf, kind)
		return
	}
	if e.expireAt != 0 {
		e.buf = binary.LittleEndian.AppendUint64(append(e.buf, opExpireMs), uint64(e.expireAt))
	}
	e.buf = append(e.buf, kind)
	e.string(e.name)
	e.name = nil
}

// Int tells a string that is an integer's text.
func (e *Encoder) Int(n int64) {
	e.begin(typeString)
	e.integer(n)
}

// Text tells a string.
func (e *Encoder) Text(v []byte) {
	e.begin(typeString)
	e.string(v)
}

// LongText begins a string of n bytes that comes in parts; they are not compressed. End ends it.
func (e *Encoder) LongText(n int) {
	e.begin(typeString)
	e.length(uint64(n))
}

// TextPart tells the next bytes of a long string.
func (e *Encoder) TextPart(p []byte) { e.buf = append(e.buf, p...) }

// Hash begins a hash of n fields. With packed it becomes one listpack.
func (e *Encoder) Hash(n int, packed bool) { e.collection(typeHash, typeHashListpack, n, packed) }

// Pair tells a field of a hash.
func (e *Encoder) Pair(field, value []byte) {
	if e.value == typeHashListpack {
		e.pack.Text(field)
		e.pack.Text(value)
		return
	}
	e.string(field)
	e.string(value)
}

// ZSet begins a sorted set of n members. With packed it becomes one listpack, and the members are told from the lowest score
// up; without, from the highest down.
func (e *Encoder) ZSet(n int, packed bool) { e.collection(typeZSet, typeZSetListpack, n, packed) }

// Scored tells a member of a sorted set.
func (e *Encoder) Scored(member []byte, score float64) {
	if e.value == typeZSet {
		e.string(member)
		e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(score))
		return
	}
	e.pack.Text(member)
	if n, ok := scoreInt(score); ok {
		e.pack.Int(n)
		return
	}
	var text [32]byte
	e.pack.Text(appendScore(text[:0], score))
}

// Set begins a set of n members.
func (e *Encoder) Set(n int) { e.collection(typeSet, typeSet, n, false) }

// Member tells a member of a set.
func (e *Encoder) Member(m []byte) { e.string(m) }

// IntSet begins a set of integers that becomes one block.
func (e *Encoder) IntSet() {
	e.begin(typeSetIntset)
	e.ints = e.ints[:0]
}

// IntMember tells a member of a set of integers, in ascending order.
func (e *Encoder) IntMember(n int64) { e.ints = append(e.ints, n) }

// List begins a list of n elements in so many nodes, which become a listpack each. EndNode ends a node.
func (e *Encoder) List(_, nodes int) {
	e.begin(typeListQuick2)
	e.length(uint64(nodes))
	e.nodes = nodes
	e.pack.Reset()
}

// Element tells an element of a list, from its head on.
func (e *Encoder) Element(v []byte) { e.pack.Text(v) }

// EndNode ends one of a list's listpacks.
func (e *Encoder) EndNode() {
	e.nodes--
	e.length(containerPacked)
	e.listpack()
	e.pack.Reset()
}

// collection begins a value of n parts: one listpack, or one by one.
func (e *Encoder) collection(kind, packedKind byte, n int, packed bool) {
	if packed {
		e.begin(packedKind)
		e.pack.Reset()
		return
	}
	e.begin(kind)
	e.length(uint64(n))
}

// End ends a value of several parts.
func (e *Encoder) End() {
	switch e.value {
	case typeHashListpack, typeZSetListpack:
		e.listpack()
	case typeSetIntset:
		e.packed = appendIntset(e.packed[:0], e.ints)
		e.string(e.packed)
	case typeListQuick2:
		if e.nodes != 0 {
			panic("rdb: a list ended without all of its nodes")
		}
	}
}

// errTooLong is what a listpack beyond the format's limit makes of a file. The limits of a value's compact form keep far below it.
var errTooLong = errors.New("rdb: a listpack of 4 GiB or more")

// listpack writes the listpack that has been built.
func (e *Encoder) listpack() {
	b := e.pack.Bytes()
	if len(b) > math.MaxUint32 {
		e.err = errTooLong
	}
	e.string(b)
}

// length writes a length, or any other unsigned number.
func (e *Encoder) length(n uint64) {
	switch {
	case n < 1<<6:
		e.buf = append(e.buf, byte(n))
	case n < 1<<14:
		e.buf = append(e.buf, 1<<6|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		e.buf = binary.BigEndian.AppendUint32(append(e.buf, len32), uint32(n))
	default:
		e.buf = binary.BigEndian.AppendUint64(append(e.buf, len64), n)
	}
}

// First bytes of lengths that follow in full, and of special strings.
const (
	len32   = 0x80
	len64   = 0x81
	special = 0xc0
)

// integer writes an integer as a string.
func (e *Encoder) integer(n int64) {
	switch {
	case n >= math.MinInt8 && n <= math.MaxInt8:
		e.buf = append(e.buf, special+specialInt8, byte(n))
	case n >= math.MinInt16 && n <= math.MaxInt16:
		e.buf = binary.LittleEndian.AppendUint16(append(e.buf, special+specialInt16), uint16(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		e.buf = binary.LittleEndian.AppendUint32(append(e.buf, special+specialInt32), uint32(n))
	default:
		at := len(e.buf)
		e.buf = number.AppendInt(append(e.buf, 0), n)
		e.buf[at] = byte(len(e.buf) - at - 1) // the length: it is below 64
	}
}

// maxInt32Text is the length of the longest text that becomes a special integer.
const maxInt32Text = 11

// string writes a string in its shortest form.
func (e *Encoder) string(s []byte) {
	if len(s) <= maxInt32Text {
		if n, ok := number.ParseInt(s); ok && n >= math.MinInt32 && n <= math.MaxInt32 {
			e.integer(n)
			return
		}
	}
	if e.compress && len(s) >= compressMin && len(s) <= compressMax {
		squeezed, ok := e.lzf.compress(e.squeeze[:0], s)
		e.squeeze = squeezed
		if ok {
			e.buf = append(e.buf, special+specialLZF)
			e.length(uint64(len(squeezed)))
			e.length(uint64(len(s)))
			e.buf = append(e.buf, squeezed...)
			return
		}
	}
	e.length(uint64(len(s)))
	e.buf = append(e.buf, s...)
}
