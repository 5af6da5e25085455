package store

import (
	"encoding/binary"
	"math/bits"
)

// Bits are numbered from 0, the most significant bit of the first byte, as SETBIT numbers them.

// wordBytes is how many bytes the loops below take at a time.
const wordBytes = 8

// GrowString makes the string at k at least n bytes long (n > 0), new bytes being zero, and returns its Entry. A missing key is
// created without a TTL; an existing one keeps its TTL. A string that is long enough stays as it is, without passing the
// gate. It fails with ErrWrongType.
func (db *DB) GrowString(k Key, now int64, n int) (Entry, error) {
	e, ok := db.Find(k, now)
	switch {
	case !ok:
		e = db.create(k, encBytes)
	case e.Kind() != KindString:
		return Entry{}, ErrWrongType
	case e.StrLen() >= n:
		return e, nil
	}
	e.growString(n, e.StrLen())
	return e, nil
}

// WritableBytes is the string's text, to be written to until the key next changes in another way. An integer becomes its
// digits, kept as bytes. It passes the gate, so it is for callers that do write. Only for strings.
func (e *Entry) WritableBytes() []byte { return e.growString(0, 0) }

// SetBytes makes the key a string with the bytes of v and no TTL, whatever it was before. Unlike SetString it keeps the text of
// an integer as bytes. v becomes the store's own: the caller must not use it afterwards.
func (db *DB) SetBytes(k Key, v []byte) { db.setBytes(k, v, 0) }

// setBytes is SetBytes with an expiry (Unix milliseconds, 0 for none).
func (db *DB) setBytes(k Key, v []byte, expireAt int64) {
	if recordSize(len(k.Name), len(v)) > maxBlock {
		db.put(k, encBigString, 0, expireAt).word = db.addObject(&bigString{data: v, grown: true})
		return
	}
	rec := db.put(k, encBytes, len(v), expireAt)
	rec.word = uint64(len(v)) | wordGrown
	copy(rec.payload(len(v)), v)
}

// CountBits counts the bits that are set among those from first to last, both included. They must lie within b; there are none
// if first > last.
func CountBits(b []byte, first, last int) int {
	if first > last {
		return 0
	}
	from, to := first/8, last/8
	before := b[from] &^ (0xff >> (first % 8))
	after := b[to] & (0x7f >> (last % 8))
	return countSet(b[from:to+1]) - bits.OnesCount8(before) - bits.OnesCount8(after)
}

// countSet counts the bits that are set in b.
func countSet(b []byte) int {
	n := 0
	// Four counts that do not wait for each other keep the processor's ports busy.
	const stride = 4 * wordBytes
	for ; len(b) >= stride; b = b[stride:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b)) +
			bits.OnesCount64(binary.LittleEndian.Uint64(b[8:])) +
			bits.OnesCount64(binary.LittleEndian.Uint64(b[16:])) +
			bits.OnesCount64(binary.LittleEndian.Uint64(b[24:]))
	}
	for _, x := range b {
		n += bits.OnesCount8(x)
	}
	return n
}

// FindBit returns the number of the first bit that is set, or clear if set is false, among those from first to last, both
// included, and -1 if there is none. They must lie within b; there are none if first > last.
func FindBit(b []byte, set bool, first, last int) int {
	if first > last {
		return -1
	}
	var flip uint64 // makes the bits that are looked for ones
	if !set {
		flip = ^uint64(0)
	}
	at, end := first/8, last/8+1
	pos := -1
	if x := (b[at] ^ byte(flip)) & (0xff >> (first % 8)); x != 0 {
		pos = at*8 + bits.LeadingZeros8(x)
	}
	for at++; pos < 0 && at+wordBytes <= end; at += wordBytes {
		if x := binary.BigEndian.Uint64(b[at:]) ^ flip; x != 0 {
			pos = at*8 + bits.LeadingZeros64(x)
		}
	}
	for ; pos < 0 && at < end; at++ {
		if x := b[at] ^ byte(flip); x != 0 {
			pos = at*8 + bits.LeadingZeros8(x)
		}
	}
	if pos > last {
		return -1
	}
	return pos
}

// AndBits keeps of dst the bits that are set in src too. src must not be longer; what it lacks counts as zero.
func AndBits(dst, src []byte) {
	clear(dst[len(src):])
	i := 0
	for ; i+wordBytes <= len(src); i += wordBytes {
		binary.NativeEndian.PutUint64(dst[i:], binary.NativeEndian.Uint64(dst[i:])&binary.NativeEndian.Uint64(src[i:]))
	}
	for ; i < len(src); i++ {
		dst[i] &= src[i]
	}
}

// OrBits sets in dst the bits that are set in src. src must not be longer; what it lacks counts as zero.
func OrBits(dst, src []byte) {
	i := 0
	for ; i+wordBytes <= len(src); i += wordBytes {
		binary.NativeEndian.PutUint64(dst[i:], binary.NativeEndian.Uint64(dst[i:])|binary.NativeEndian.Uint64(src[i:]))
	}
	for ; i < len(src); i++ {
		dst[i] |= src[i]
	}
}

// XorBits flips in dst the bits that are set in src. src must not be longer; what it lacks counts as zero.
func XorBits(dst, src []byte) {
	i := 0
	for ; i+wordBytes <= len(src); i += wordBytes {
		binary.NativeEndian.PutUint64(dst[i:], binary.NativeEndian.Uint64(dst[i:])^binary.NativeEndian.Uint64(src[i:]))
	}
	for ; i < len(src); i++ {
		dst[i] ^= src[i]
	}
}

// FlipBits flips every bit of b.
func FlipBits(b []byte) {
	i := 0
	for ; i+wordBytes <= len(b); i += wordBytes {
		binary.NativeEndian.PutUint64(b[i:], ^binary.NativeEndian.Uint64(b[i:]))
	}
	for ; i < len(b); i++ {
		b[i] = ^b[i]
	}
}
