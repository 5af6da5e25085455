package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Options configure a Reader.
type Options struct {
	// SkipChecksum leaves out the comparison with the file's checksum.
	SkipChecksum bool
	// Progress, if not nil, is called now and then with the number of bytes that have been read. Its error ends the reading.
	Progress func(offset int64) error
}

// Reader tells a Sink what a file holds. It is not safe for concurrent use.
type Reader struct {
	in      input
	options Options
	sink    Sink
	version int
	owned   pendingSet
}

// NewReader returns a Reader of r. It reads ahead of what it has told.
func NewReader(r io.Reader, o Options) *Reader {
	return &Reader{options: o, in: input{r: r, buf: make([]byte, inputBuffer), checksum: !o.SkipChecksum, progress: o.Progress}}
}

// Offset is the number of bytes that have been consumed: after Read without an error, the length of the snapshot.
func (r *Reader) Offset() int64 { return r.in.position() }

// Rest is what comes after the snapshot, once Read has returned without an error: bytes that have been read ahead, and what the
// reader still has.
func (r *Reader) Rest() io.Reader {
	return io.MultiReader(bytes.NewReader(r.in.buf[r.in.at:r.in.end]), r.in.r)
}

// Read reads a whole file, to its end mark and checksum. After an error the sink may have been told a part of it. The error
// is an [*Error] unless the reading itself or Options.Progress failed.
func (r *Reader) Read(sink Sink) error {
	r.sink = sink
	if err := r.readHead(); err != nil {
		return err
	}
	for {
		at := r.in.position()
		op, err := r.in.byte()
		if err != nil {
			return err
		}
		if op == opEnd {
			return r.readTrailer()
		}
		if op >= firstOpcode {
			err = r.readOpcode(op)
		} else {
			err = r.readKey(op, 0)
		}
		if err != nil {
			return r.located(err, at)
		}
	}
}

// located gives an error of the sink a place.
func (r *Reader) located(err error, at int64) error {
	var known *Error
	switch {
	case errors.As(err, &known), r.in.err != nil && errors.Is(err, r.in.err):
		return err
	case errors.Is(err, ErrDuplicate):
		return &Error{Offset: at, What: err.Error(), Hint: hintDamaged, Err: err}
	}
	return &Error{Offset: at, What: err.Error(), Err: err}
}

func (r *Reader) readHead() error {
	none := &Error{What: "this is no snapshot of Redis", Hint: "one begins with REDIS and four digits"}
	head, err := r.in.take(len(magic) + 4)
	if err != nil {
		if errors.Is(err, ErrTruncated) && !r.in.startsLike(magic) { // no copy of it would be whole
			return none
		}
		return err
	}
	version, err := strconv.Atoi(string(head[len(magic):]))
	if string(head[:len(magic)]) != magic || err != nil || version < 1 {
		return none
	}
	r.version = version
	if version < oldestVersion || version > newestVersion {
		return &Error{
			What: fmt.Sprintf("the snapshot's version is %d", version),
			Hint: fmt.Sprintf("versions %d to %d can be read: have the server that wrote it write its keys in another way", oldestVersion, newestVersion),
		}
	}
	return nil
}

func (r *Reader) readTrailer() error {
	r.in.sum()
	want := r.in.crc
	at := r.in.position()
	got, err := r.in.uint64LE()
	if err != nil {
		return err
	}
	if got != 0 && got != want && !r.options.SkipChecksum {
		return &Error{Offset: at, What: "the checksum does not match", Hint: hintDamaged, Err: ErrChecksum}
	}
	return nil
}

// readOpcode reads what is no key, and the key that comes after a mark.
func (r *Reader) readOpcode(op byte) error {
	switch op {
	case opAux:
		name, err := r.in.kept()
		if err != nil {
			return err
		}
		value, err := r.in.bytes()
		if err != nil {
			return err
		}
		return r.sink.Aux(name, value)
	case opSelect:
		n, err := r.in.count()
		if err != nil {
			return err
		}
		return r.sink.Database(n)
	case opResize:
		keys, err := r.in.number()
		if err != nil {
			return err
		}
		expires, err := r.in.number()
		if err != nil {
			return err
		}
		return r.sink.Sizes(keys, expires)
	case opFunction:
		code, err := r.in.bytes()
		if err != nil {
			return err
		}
		return r.sink.Function(code)
	case opSlotInfo:
		for range 3 {
			if _, err := r.in.number(); err != nil {
				return err
			}
		}
		return nil
	case opModuleAux:
		id, err := r.in.number()
		if err != nil {
			return err
		}
		return r.refuse("data of the module " + moduleName(id))
	case opFunctionRC:
		return r.refuse("functions in the form of a release candidate of Redis 7")
	}
	return r.readMarked(op)
}

// readMarked reads the marks before a key, of which op is the first, and the key.
func (r *Reader) readMarked(op byte) error {
	var expireAt int64
	for {
		switch op {
		case opExpireMs:
			ms, err := r.in.uint64LE()
			if err != nil {
				return err
			}
			expireAt = orPast(int64(ms))
		case opExpire:
			b, err := r.in.take(4)
			if err != nil {
				return err
			}
			expireAt = orPast(int64(int32(binary.LittleEndian.Uint32(b))) * 1000)
		case opIdle:
			if _, err := r.in.number(); err != nil {
				return err
			}
		case opFreq:
			if _, err := r.in.byte(); err != nil {
				return err
			}
		default:
			return r.in.fail(fmt.Sprintf("an unknown mark %d", op))
		}
		var err error
		if op, err = r.in.byte(); err != nil {
			return err
		}
		if op < firstOpcode {
			if expireAt < 0 {
				return r.in.fail("an expiry before 1970")
			}
			return r.readKey(op, expireAt)
		}
	}
}

// orPast makes an expiry of 0, which for a Sink means none, the first millisecond after it.
func orPast(ms int64) int64 {
	if ms == 0 {
		return 1
	}
	return ms
}

// readKey reads a key and its value.
func (r *Reader) readKey(kind byte, expireAt int64) error {
	name, err := r.in.kept()
	if err != nil {
		return err
	}
	if err := r.sink.Key(name, expireAt); err != nil {
		return err
	}
	return r.readValue(kind)
}

// refuse is the error for what headgate has no use for.
func (r *Reader) refuse(what string) error {
	return &Error{
		Offset: r.in.position(), What: what + ": headgate has no such type", Err: ErrNoSuchType,
		Hint: "delete it in the server that wrote the snapshot, and have it write another",
	}
}

// refused are the types that have no equal here, by name.
var refused = map[byte]string{
	typeModuleRC:        "a value of a module",
	typeModule:          "a value of a module",
	typeHashZipmap:      "a hash as a zipmap, which Redis wrote before 2.6",
	typeHashTTLRC:       "a hash with fields that expire",
	typeHashTTLPackedRC: "a hash with fields that expire",
	typeHashTTL:         "a hash with fields that expire",
	typeHashTTLPacked:   "a hash with fields that expire",
}

// moduleNameChars are what the names of modules are made of, by the six bits that stand for each.
const moduleNameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// moduleName is the name in a module type's ID: nine characters of six bits, before ten bits of version.
func moduleName(id uint64) string {
	var name [9]byte
	for i := range name {
		name[i] = moduleNameChars[id>>(58-6*i)&63]
	}
	return string(name[:])
}

// readValue reads the value of a key, or of a payload.
func (r *Reader) readValue(kind byte) error {
	switch kind {
	case typeString:
		b, n, isInt, err := r.in.text()
		switch {
		case err != nil:
			return err
		case isInt:
			return r.sink.Int(n)
		}
		if owner, ok := r.sink.(TextOwner); ok && r.in.own {
			r.in.scratch = nil
			return owner.OwnText(b)
		}
		return r.sink.Text(b)
	case typeHash:
		return r.readEach(r.sink.Hash, r.readPair)
	case typeSet:
		return r.readEach(r.sink.Set, func() error {
			m, err := r.in.bytes()
			if err != nil {
				return err
			}
			return r.sink.Member(m)
		})
	case typeZSet, typeZSetText:
		return r.readEach(r.sink.ZSet, func() error { return r.readScored(kind) })
	case typeList:
		return r.readEach(r.sink.List, func() error {
			v, err := r.in.bytes()
			if err != nil {
				return err
			}
			return r.sink.Element(v)
		})
	case typeSetIntset, typeSetListpack, typeHashListpack, typeHashZiplist, typeZSetListpack, typeZSetZiplist, typeListZiplist:
		return r.readPacked(kind)
	case typeListQuick, typeListQuick2:
		return r.readQuicklist(kind)
	case typeStream1, typeStream2, typeStream3:
		return r.readStream(kind)
	case typeModule:
		if id, err := r.in.number(); err == nil {
			return r.refuse("a value of the module " + moduleName(id))
		}
	}
	if what := refused[kind]; what != "" {
		return r.refuse(what)
	}
	return r.in.fail(fmt.Sprintf("a type of value that does not exist, %d", kind))
}

// readEach reads a number and so many elements.
func (r *Reader) readEach(begin func(n int) error, element func() error) error {
	n, err := r.in.count()
	if err != nil {
		return err
	}
	if n == 0 {
		return r.in.fail("a collection without elements")
	}
	if err := begin(n); err != nil {
		return err
	}
	for range n {
		if err := element(); err != nil {
			return err
		}
	}
	return r.sink.End()
}

func (r *Reader) readPair() error {
	field, err := r.in.kept()
	if err != nil {
		return err
	}
	value, err := r.in.bytes()
	if err != nil {
		return err
	}
	return r.sink.Pair(field, value)
}

// readScored reads a member and its score, which older servers wrote as text.
func (r *Reader) readScored(kind byte) error {
	member, err := r.in.kept()
	if err != nil {
		return err
	}
	var score float64
	if kind == typeZSet {
		bits, err := r.in.uint64LE()
		if err != nil {
			return err
		}
		score = math.Float64frombits(bits)
	} else if score, err = r.readScoreText(); err != nil {
		return err
	}
	return r.scored(member, score)
}

// Lengths of a score's text that stand for what is no number.
const (
	scoreNaN    = 253
	scoreInf    = 254
	scoreNegInf = 255
)

func (r *Reader) readScoreText() (float64, error) {
	n, err := r.in.byte()
	if err != nil {
		return 0, err
	}
	switch n {
	case scoreNaN:
		return math.NaN(), nil
	case scoreInf:
		return math.Inf(1), nil
	case scoreNegInf:
		return math.Inf(-1), nil
	}
	text, err := r.in.take(int(n))
	if err != nil {
		return 0, err
	}
	return r.parseScore(text)
}

func (r *Reader) parseScore(text []byte) (float64, error) {
	score, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, r.in.fail("a score that is no number")
	}
	return score, nil
}

func (r *Reader) scored(member []byte, score float64) error {
	if math.IsNaN(score) {
		return r.in.fail("a score that is not a number")
	}
	return r.sink.Scored(member, score)
}
