package store

import (
	"bytes"
	"encoding/binary"
	"math"
)

// packedZSet is a small sorted set: entries in order of score, then member. An entry
// is the score as 8 little-endian bytes of float64 and the member as an element.
type packedZSet []byte

// packedMember is an entry of a packedZSet: p[at:end], with the member at start.
type packedMember struct {
	at, start, end int
	score          float64
}

const scoreSize = 8

func (p packedZSet) entry(at int) packedMember {
	start, end := elementBounds(p, at+scoreSize)
	return packedMember{at, start, end, p.score(at)}
}

func (p packedZSet) score(at int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(p[at:]))
}

func (p packedZSet) member(m packedMember) []byte { return p[m.start:m.end:m.end] }

// find looks a member up and counts the entries before it.
func (p packedZSet) find(member []byte) (m packedMember, rank int, ok bool) {
	for at := 0; at < len(p); rank++ {
		start, end := elementBounds(p, at+scoreSize)
		if string(p[start:end]) == string(member) {
			return packedMember{at, start, end, p.score(at)}, rank, true
		}
		at = end
	}
	return packedMember{}, 0, false
}

// locate finds the entry that holds member, or else the offset at which an entry of
// this score and member belongs. It reads the set once.
func (p packedZSet) locate(score float64, member []byte) (m packedMember, held bool, place int) {
	place = len(p)
	for at := 0; at < len(p); {
		start, end := elementBounds(p, at+scoreSize)
		if string(p[start:end]) == string(member) {
			return packedMember{at, start, end, p.score(at)}, true, 0
		}
		if held := p.score(at); held >= score && place == len(p) && (held > score || bytes.Compare(p[start:end], member) > 0) {
			place = at
		}
		at = end
	}
	return packedMember{}, false, place
}

// place returns the offset at which an entry of this score and member belongs.
func (p packedZSet) place(score float64, member []byte) int {
	at := 0
	for at < len(p) {
		start, end := elementBounds(p, at+scoreSize)
		if held := p.score(at); held >= score && (held > score || bytes.Compare(p[start:end], member) >= 0) {
			break
		}
		at = end
	}
	return at
}

// write puts an entry at offset at, where there must be room.
func (p packedZSet) write(at int, score float64, member []byte) {
	// Adding 0 turns -0 into 0: Redis's packed form has no -0 either.
	binary.LittleEndian.PutUint64(p[at:], math.Float64bits(score+0))
	putElement(p[at+scoreSize:], member)
}

// move gives the entry m, which holds member, a new score and its new place.
func (p packedZSet) move(m packedMember, score float64, member []byte) {
	size := m.end - m.at
	to := p.place(score, member)
	if to > m.at {
		to -= size
		copy(p[m.at:], p[m.end:to+size])
	} else {
		copy(p[to+size:], p[to:m.at])
	}
	p.write(to, score, member)
}

// skip returns the offset n entries after offset at.
func (p packedZSet) skip(at, n int) int {
	for ; n > 0; n-- {
		_, at = elementBounds(p, at+scoreSize)
	}
	return at
}

// before returns the offset, and the number of entries, up to a bound. It goes on
// from an offset and rank that are known to lie before it.
func (p packedZSet) before(bound zsetBound, at, rank int) (int, int) {
	for at < len(p) {
		m := p.entry(at)
		if !bound.after(m.score, p.member(m)) {
			break
		}
		at = m.end
		rank++
	}
	return at, rank
}

// walk hands n entries from rank on upward to fn until fn says false.
func (p packedZSet) walk(rank, n int, fn func(member []byte, score float64) bool) {
	at := p.skip(0, rank)
	for ; n > 0; n-- {
		m := p.entry(at)
		if !fn(p.member(m), m.score) {
			return
		}
		at = m.end
	}
}

// reverseBlock is the number of entries whose offsets walkBack holds at a time.
const reverseBlock = 128

// walkBack hands n entries from rank on downward to fn until fn says false. Entries
// can only be stepped over upward, so their offsets are gathered a block at a time.
func (p packedZSet) walkBack(rank, n int, fn func(member []byte, score float64) bool) {
	var offsets [reverseBlock]int
	for n > 0 {
		block := min(n, reverseBlock)
		at := p.skip(0, rank-block+1)
		for i := range block {
			offsets[i] = at
			at = p.skip(at, 1)
		}
		for i := block - 1; i >= 0; i-- {
			m := p.entry(offsets[i])
			if !fn(p.member(m), m.score) {
				return
			}
		}
		rank -= block
		n -= block
	}
}
