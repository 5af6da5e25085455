package store

import (
	"slices"
	"strconv"

	"headgate/internal/number"
)

// spareString bounds the room, in bytes, that a string which becomes a bigString by growing has behind it: a quarter of its length, and this much.
const spareString = 1 << 20

// bigString is a string too long for a block of the arena beside its key.
type bigString struct {
	data   []byte
	grown  bool        // as wordGrown
	frozen *stringView // what a snapshot has still to see; nil if none has
}

// clone implements cloner.
func (s *bigString) clone() any { return &bigString{data: slices.Clone(s.data), grown: s.grown} }

// SetString makes the key a string with the bytes of v and the given expiry (Unix milliseconds, 0 for none), whatever
// it was before. The canonical text of an int64 is kept as the integer. v is copied; it must not be part of the key's own
// value. An existing key whose block has the right size is changed in place, without allocation.
func (db *DB) SetString(k Key, v []byte, expireAt int64) {
	if n, ok := number.ParseInt(v); ok {
		db.SetInt(k, n, expireAt)
		return
	}
	db.SetText(k, v, expireAt)
}

// KeepText is SetText for a long value whose memory belongs to the key from now on, which spares a copy.
func (db *DB) KeepText(k Key, v []byte, expireAt int64) {
	if recordSize(len(k.Name), len(v)) <= maxBlock {
		db.SetText(k, v, expireAt)
		return
	}
	db.put(k, encBigString, 0, expireAt).word = db.addObject(&bigString{data: v})
}

// SetText is SetString for a value that stays text even if it is that of an integer.
func (db *DB) SetText(k Key, v []byte, expireAt int64) {
	if recordSize(len(k.Name), len(v)) > maxBlock {
		rec := db.put(k, encBigString, 0, expireAt)
		rec.word = db.addObject(&bigString{data: slices.Clone(v)})
		return
	}
	rec := db.put(k, encBytes, len(v), expireAt)
	rec.word = uint64(len(v))
	copy(rec.payload(len(v)), v)
}

// SetInt makes the key a string that holds the integer v, with the given expiry (Unix milliseconds, 0 for none),
// whatever it was before. It does not allocate when the key is there.
func (db *DB) SetInt(k Key, v int64, expireAt int64) {
	db.put(k, encInt, 0, expireAt).word = uint64(v)
}

// put makes room for a value that replaces whatever the key held. It passes the gate, and leaves the record's word and
// payload to the caller.
func (db *DB) put(k Key, enc encoding, payload int, expireAt int64) *record {
	db.mutate(k.Name, changeWrite)
	b, slot, rec := db.lookup(k)
	if rec == nil {
		rec, _ = db.insert(k, enc, payload)
	} else {
		if rec.access != db.ks.access.stamp {
			db.ks.touch(rec)
		}
		db.releaseObject(rec)
		if class := classFor(recordSize(len(k.Name), payload)); class != rec.class {
			e := Entry{db: db, rec: rec, hash: k.Hash, position: position{ref: b.refs[slot]}}
			e.move(class, 0)
			rec = e.rec
		}
		rec.enc = enc
	}
	db.setExpire(rec, k.Hash, expireAt)
	return rec
}

// Int is the value of a string that is kept as an integer. A string that holds digits without being kept so, as after
// APPEND, is not one: ParseInt of its Bytes tells.
func (e *Entry) Int() (int64, bool) {
	return int64(e.rec.word), e.rec.enc == encInt
}

// SetInt replaces the value by the integer v and keeps the TTL.
func (e *Entry) SetInt(v int64) {
	e.mutate()
	if e.rec.enc != encInt {
		e.db.releaseObject(e.rec)
		if class := classFor(recordSize(int(e.rec.keyLen), 0)); class != e.rec.class {
			e.move(class, 0)
		}
		e.rec.enc = encInt
	}
	e.rec.word = uint64(v)
}

// AppendString appends the string's text to dst. Only for strings.
func (e *Entry) AppendString(dst []byte) []byte {
	if e.rec.enc == encInt {
		return strconv.AppendInt(dst, int64(e.rec.word), 10)
	}
	return append(dst, e.Bytes(nil)...)
}

// Bytes is the string's text: memory of the store, to be read only and until the key next changes, or for an integer
// its digits in scratch, which has room for them if its capacity is 20. Only for strings.
func (e *Entry) Bytes(scratch []byte) []byte {
	switch e.rec.enc {
	case encInt:
		return strconv.AppendInt(scratch[:0], int64(e.rec.word), 10)
	case encBytes:
		return e.packed()
	default:
		return e.object().(*bigString).data
	}
}

// StrLen is the length of the string's text in bytes. Only for strings.
func (e *Entry) StrLen() int {
	var digits [number.IntMax]byte
	return len(e.Bytes(digits[:]))
}

// AppendTo appends tail to the string and returns its new length in bytes. A missing key is created without a TTL; an
// existing one keeps its TTL. It fails with ErrWrongType. Repeated appends to a long string cost amortised O(len(tail)).
func (db *DB) AppendTo(k Key, now int64, tail []byte) (int, error) {
	e, ok := db.Find(k, now)
	if !ok {
		db.SetString(k, tail, 0)
		return len(tail), nil
	}
	if e.Kind() != KindString {
		return 0, ErrWrongType
	}
	length := e.StrLen()
	text := e.growString(length+len(tail), length)
	copy(text[length:], tail)
	return len(text), nil
}

// SetRange writes v over the string from offset on (offset >= 0), filling a gap with zero bytes, and returns the
// string's length in bytes. A missing key is created without a TTL; an existing one keeps its TTL; an empty v changes
// nothing. It fails with ErrWrongType.
func (db *DB) SetRange(k Key, now int64, offset int, v []byte) (int, error) {
	e, ok := db.Find(k, now)
	if ok && e.Kind() != KindString {
		return 0, ErrWrongType
	}
	if len(v) == 0 {
		if !ok {
			return 0, nil
		}
		return e.StrLen(), nil
	}
	if !ok {
		e = db.create(k, encBytes)
	}
	text := e.growString(offset+len(v), offset)
	copy(text[offset:], v)
	return len(text), nil
}

// growString makes the value a byte string of at least n bytes that can be written to at offset from and behind it, new bytes
// being zero, and returns it.
func (e *Entry) growString(n, from int) []byte {
	e.mutate()
	var digits [number.IntMax]byte
	old := e.Bytes(digits[:])
	length := len(old)
	n = max(n, length)
	switch {
	case e.rec.enc == encBigString:
		big := e.object().(*bigString)
		if from < length {
			big.ownBytes()
		}
		big.data = slices.Grow(big.data, n-length)[:n]
		clear(big.data[length:])
		big.grown = true
		return big.data
	case n > e.maxPacked():
		data := make([]byte, n, n+min(n/4, spareString)) // whoever writes in the middle of a string often appends to it next
		copy(data, old)
		e.toObject(encBigString, &bigString{data: data, grown: true})
		return data
	case e.rec.enc == encInt:
		e.rec.enc, e.rec.word = encBytes, 0
		copy(e.resizePacked(n), old)
	default:
		e.resizePacked(n)
	}
	text := e.packed()
	clear(text[length:])
	e.rec.word |= wordGrown
	return text
}
