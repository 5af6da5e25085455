package store

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// logBlockMax is the most stamps that a block holds. With the padding, records of one to eight bytes each nearly fill one of the
// sizes in which Go allocates.
const logBlockMax = 508

// logBlock is a run of stamps in order. Each is kept as the distance of its score from the block's base and as its suffix,
// in as many bytes as the largest of the block takes: some three bytes in all for a busy limiter. Any stamp is therefore found
// without reading those before it.
//
// data is n records of scoreBytes and then suffixBytes, little-endian, and room to read a whole word at the last of them.
type logBlock struct {
	owner       *logOwner
	data        []byte
	base        int64 // of the scores, at most the first
	first       stamp
	n           int32
	scoreBytes  uint8 // 0 to 8
	suffixBytes uint8 // 0 to 3
}

// logPad is how many bytes beyond the records a read of the last one may touch.
const logPad = 8

// bytesFor is the number of bytes that v takes.
func bytesFor(v uint64) uint8 { return uint8((bits.Len64(v) + 7) / 8) }

// newLogBlock is a block without stamps, for stamps from first on, with room for n of them of the sizes given.
func newLogBlock(owner *logOwner, first stamp, n int, scoreBytes, suffixBytes uint8) logBlock {
	size := int(scoreBytes + suffixBytes)
	return logBlock{
		owner: owner, base: first.score, first: first, scoreBytes: scoreBytes, suffixBytes: suffixBytes,
		data: make([]byte, logPad, n*size+logPad),
	}
}

func (b *logBlock) len() int { return int(b.n) }

func (b *logBlock) recordBytes() int { return int(b.scoreBytes + b.suffixBytes) }

// at returns stamp i.
func (b *logBlock) at(i int) stamp {
	p := b.data[i*b.recordBytes():]
	score := binary.LittleEndian.Uint64(p) & (1<<(8*b.scoreBytes) - 1)
	suffix := binary.LittleEndian.Uint32(p[b.scoreBytes:]) & (1<<(8*b.suffixBytes) - 1)
	return stamp{b.base + int64(score), suffix}
}

// put writes stamp i, for which there must be room.
func (b *logBlock) put(i int, s stamp) {
	p := b.data[i*b.recordBytes():]
	score := uint64(s.score - b.base)
	for j := range b.scoreBytes {
		p[j] = byte(score >> (8 * j))
	}
	for j := range b.suffixBytes {
		p[b.scoreBytes+j] = byte(s.suffix >> (8 * j))
	}
}

// insert adds a stamp as number i of a block that is the caller's own and not full.
func (b *logBlock) insert(i int, s stamp) {
	b.fit(s)
	size, end := b.recordBytes(), int(b.n)*b.recordBytes()
	b.data = slices.Grow(b.data, size)[:end+size+logPad]
	copy(b.data[(i+1)*size:], b.data[i*size:end])
	b.put(i, s)
	b.n++
	if i == 0 {
		b.first = s
	}
}

// fit makes the records wide enough for a stamp, and the base low enough. A base that has to be lowered goes as low as the records'
// width allows, so that stamps which come in descending order seldom move it.
func (b *logBlock) fit(s stamp) {
	if b.n == 0 {
		b.base = s.score
	}
	suffixBytes := max(b.suffixBytes, bytesFor(uint64(s.suffix)))
	if s.score >= b.base && bytesFor(uint64(s.score-b.base)) <= b.scoreBytes && suffixBytes == b.suffixBytes {
		return
	}
	lowest, highest := s.score, s.score
	if b.n > 0 {
		lowest, highest = min(lowest, b.first.score), max(highest, b.at(b.len()-1).score)
	}
	scoreBytes := max(b.scoreBytes, bytesFor(uint64(highest-lowest)))
	base := lowest
	if s.score < b.base {
		reach := min(1<<(8*scoreBytes)-1, uint64(highest))
		base = highest - int64(reach)
	}
	b.rewrite(base, scoreBytes, suffixBytes)
}

// rewrite changes the base and the sizes of all records.
func (b *logBlock) rewrite(base int64, scoreBytes, suffixBytes uint8) {
	old := *b
	b.base, b.scoreBytes, b.suffixBytes = base, scoreBytes, suffixBytes
	room := old.len() + 1
	if size := old.recordBytes(); size > 0 {
		room = max(room, min((cap(old.data)-logPad)/size, logBlockMax))
	}
	b.data = make([]byte, old.len()*b.recordBytes()+logPad, room*b.recordBytes()+logPad)
	for i := range old.len() {
		b.put(i, old.at(i))
	}
}

// cut takes out n stamps from number i on, but not all, of a block that is the caller's own.
func (b *logBlock) cut(i, n int) {
	size, end := b.recordBytes(), int(b.n)*b.recordBytes()
	copy(b.data[i*size:], b.data[(i+n)*size:end])
	b.n -= int32(n)
	b.data = b.data[:int(b.n)*size+logPad]
	if i == 0 {
		b.first = b.at(0)
	}
}

// tail makes a block of the stamps from number i on, with room for as many as a block holds. It has at least one.
func (b *logBlock) tail(owner *logOwner, i int) logBlock {
	first, last := b.at(i), b.at(b.len()-1)
	own := newLogBlock(owner, first, logBlockMax, bytesFor(uint64(last.score-first.score)), b.suffixBytes)
	own.join(b, i)
	return own
}

// join adds the stamps of another block from number i on, which all come after the block's own.
func (b *logBlock) join(o *logBlock, i int) {
	for ; i < o.len(); i++ {
		b.insert(b.len(), o.at(i))
	}
}

// copyData gives the block data of its own.
func (b *logBlock) copyData(owner *logOwner) {
	data := make([]byte, len(b.data), cap(b.data))
	copy(data, b.data)
	b.data, b.owner = data, owner
}
