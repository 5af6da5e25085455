package store

import "unsafe"

// encoding is how a record holds its value. The zero value is no encoding.
type encoding uint8

const (
	encInt        encoding = iota + 1 // string: the record's word is the int64
	encBytes                          // string: payload bytes
	encBigString                      // string: *bigString on the Go heap
	encPackedHash                     // hash: payload of packed fields and values
	encHash                           // hash: object on the Go heap
	encPackedZSet                     // sorted set: payload of packed members and scores
	encZSet                           // sorted set: object on the Go heap
	encZSetLog                        // sorted set: *zsetLog on the Go heap
	encPackedList                     // list: payload of elements
	encList                           // list: *chunkedList on the Go heap
	encIntSet                         // set: payload of whole numbers in order
	encPackedSet                      // set: payload of packed members
	encSet                            // set: *setTable on the Go heap
	encStream                         // stream: *streamValue on the Go heap
)

// Kind is the type of a value as the TYPE command names it. The zero value means no key.
type Kind uint8

// The kinds of value. KindNone is what a missing key has.
const (
	KindNone Kind = iota
	KindString
	KindHash
	KindZSet
	KindList
	KindSet
	KindStream
)

// String is the word TYPE answers with.
func (k Kind) String() string {
	switch k {
	case KindString:
		return "string"
	case KindHash:
		return "hash"
	case KindZSet:
		return "zset"
	case KindList:
		return "list"
	case KindSet:
		return "set"
	case KindStream:
		return "stream"
	default:
		return "none"
	}
}

// kind is the type an encoding stands for.
func (enc encoding) kind() Kind {
	switch enc {
	case encInt, encBytes, encBigString:
		return KindString
	case encPackedHash, encHash:
		return KindHash
	case encPackedZSet, encZSet, encZSetLog:
		return KindZSet
	case encPackedList, encList:
		return KindList
	case encIntSet, encPackedSet, encSet:
		return KindSet
	case encStream:
		return KindStream
	default:
		return KindNone
	}
}

// isObject reports whether the record's word is an index into the object slab.
func (enc encoding) isObject() bool {
	return objectEncodings>>enc&1 != 0
}

const objectEncodings = 1<<encBigString | 1<<encHash | 1<<encZSet | 1<<encZSetLog | 1<<encList | 1<<encSet | 1<<encStream

// hasPayload reports whether the low half of the word counts payload bytes.
func (enc encoding) hasPayload() bool {
	switch enc {
	case encBytes, encPackedHash, encPackedZSet, encPackedList, encIntSet, encPackedSet:
		return true
	}
	return false
}

// record is the head of one key in the arena. The key's bytes follow it, and the payload follows them.
//
//	offset  bytes
//	     0      1  enc
//	     1      1  class    arena size class of the block, hugeClass for a mapping of its own
//	     2      2  access   when or how often the key was used, see access.go
//	     4      4  keyLen
//	     8      8  expireAt Unix milliseconds, 0 for none
//	    16      8  word     by encoding: the integer; payload length (low half) and element count or flags (high half);
//	                        index into the object slab
//	    24      …  key, payload
type record struct {
	enc      encoding
	class    uint8
	access   uint16
	keyLen   uint32
	expireAt int64
	word     uint64
}

const recordHeader = int(unsafe.Sizeof(record{}))

// wordGrown marks, in the high half of an encBytes word, a string that APPEND or SETRANGE has changed in place.
const wordGrown = 1 << 32

// recordSize is the block a key needs, in bytes.
func recordSize(keyLen, payload int) int { return recordHeader + keyLen + payload }

// name is the key; it aliases the arena.
func (r *record) name() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), recordHeader)), int(r.keyLen))
}

// hasName compares the key with name.
func (r *record) hasName(name []byte) bool {
	if int(r.keyLen) != len(name) {
		return false
	}
	key := unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(r), recordHeader)), len(name))
	return key == unsafe.String(unsafe.SliceData(name), len(name))
}

// payload is the n bytes after the key; it aliases the arena.
func (r *record) payload(n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), recordHeader+int(r.keyLen))), n)
}

// used is the number of payload bytes in use. Only for encodings that have a payload.
func (r *record) used() int { return int(uint32(r.word)) }

// setUsed changes the low half of the word and keeps the high half.
func (r *record) setUsed(n int) { r.word = r.word&^0xffffffff | uint64(uint32(n)) }

// payloadLen is used for any encoding: 0 where there is no payload.
func (r *record) payloadLen() int {
	if r.enc.hasPayload() {
		return r.used()
	}
	return 0
}

// expired reports whether the record's time has passed: it lives through its last millisecond.
func (r *record) expired(now int64) bool {
	return r.expireAt != 0 && now > r.expireAt
}
