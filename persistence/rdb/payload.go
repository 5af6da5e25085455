package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// payloadTail is what follows the value of a payload: version and checksum.
const payloadTail = 2 + 8

// ErrPayload says that a payload is not one, is damaged, or is of a version that cannot be read.
var ErrPayload = errors.New("DUMP payload version or checksum are wrong")

// CheckPayload returns what is in a payload of DUMP or FUNCTION DUMP, without its version and checksum, or ErrPayload.
func CheckPayload(p []byte) ([]byte, error) {
	if len(p) < payloadTail {
		return nil, ErrPayload
	}
	body := p[:len(p)-payloadTail]
	version := binary.LittleEndian.Uint16(p[len(body):])
	crc := binary.LittleEndian.Uint64(p[len(body)+2:])
	if version > newestVersion || crc != UpdateCRC(0, p[:len(body)+2]) {
		return nil, ErrPayload
	}
	return body, nil
}

// ReadValue tells the sink the one value of a payload, as CheckPayload returns it.
func ReadValue(body []byte, sink ValueSink) error { return readPayload(body, sink, false) }

// CheckValue is ReadValue for a sink that does not look at the bytes of a string value: one that is compressed stays so, and the sink is
// told of an empty one. What a few bytes become when they are unpacked is then made only once, by ReadValue.
func CheckValue(body []byte, sink ValueSink) error { return readPayload(body, sink, true) }

func readPayload(body []byte, sink ValueSink, check bool) error {
	r := newPayloadReader(body)
	r.sink = valueOnly{ValueSink: sink}
	kind, err := r.in.byte()
	if err != nil {
		return err
	}
	r.in.noBytes = check && kind == typeString
	if err := r.readValue(kind); err != nil {
		return r.located(err, 0)
	}
	if int(r.in.position()) != len(body) {
		return r.in.fail("bytes after the value")
	}
	return nil
}

// ReadFunctions hands the texts of the libraries in a payload of FUNCTION DUMP to fn.
func ReadFunctions(body []byte, fn func(code []byte) error) error {
	r := newPayloadReader(body)
	for int(r.in.position()) < len(body) {
		op, err := r.in.byte()
		if err != nil {
			return err
		}
		if op != opFunction {
			return r.in.fail("what is no function")
		}
		code, err := r.in.bytes()
		if err != nil {
			return err
		}
		if err := fn(code); err != nil {
			return err
		}
	}
	return nil
}

// newPayloadReader reads from memory: the input's buffer is only as long as needed.
func newPayloadReader(body []byte) *Reader {
	return &Reader{
		options: Options{SkipChecksum: true},
		in:      input{r: bytes.NewReader(body), buf: make([]byte, min(len(body), inputBuffer)+16)},
	}
}

// valueOnly makes a Sink of a ValueSink. Payloads have nothing but a value, so the rest is never called.
type valueOnly struct {
	ValueSink
	fileOnly
}

// OwnText implements TextOwner.
func (v valueOnly) OwnText(b []byte) error {
	if owner, ok := v.ValueSink.(TextOwner); ok {
		return owner.OwnText(b)
	}
	return v.Text(b)
}

type fileOnly interface {
	Aux(name, value []byte) error
	Function(code []byte) error
	Database(n int) error
	Sizes(keys, expires uint64) error
	Key(name []byte, expireAt int64) error
}
