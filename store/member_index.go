package store

import (
	"hash/maphash"
	"slices"
	"unsafe"
)

// Sizes of the parts of an index and of pages. A part is the most that one insertion or removal
// ever copies, so none of them stalls however large the table is.
const (
	segmentSlots    = 512 // slots of a full-grown segment: 4 KiB
	firstSlots      = 16  // slots of a new table's only segment
	maxSegmentDepth = 20  // hash bits that the directory may use; the rest spread a segment's slots
)

// memberIndex finds members by their names: it holds each one's position, from 0 to
// len-1, by its name's hash.
//
// It is extendible hashing: the top bits of the hash pick a segment, the others
// a home slot in it, with linear probing and no tombstones. A slot keeps the
// hash beside the position, so that a lookup rarely reads a name in vain and a
// segment splits without reading any. Growing splits one segment at a time.
//
// The zero value is not usable; see newMemberIndex. It is not safe for concurrent
// use.
type memberIndex struct {
	seed     maphash.Seed
	dir      []*memberSegment // by the top depth bits of the hash
	depth    uint8
	deepest  int // segments whose depth is the directory's
	segments int // bytes of the segments
}

// memberSlot is an index slot. The zero value is a free one.
type memberSlot struct {
	hash uint32
	next uint32 // the position plus one, so that 0 is free
}

// memberSegment indexes all members whose hash starts with the same depth bits.
type memberSegment struct {
	slots []memberSlot // never full
	used  int
	depth uint8
}

func newMemberIndex() memberIndex {
	first := &memberSegment{slots: make([]memberSlot, firstSlots)}
	return memberIndex{seed: maphash.MakeSeed(), dir: []*memberSegment{first}, deepest: 1, segments: first.memory()}
}

func (x *memberIndex) hash(name []byte) uint32 {
	return uint32(maphash.Bytes(x.seed, name))
}

func (x *memberIndex) segment(hash uint32) *memberSegment {
	return x.dir[hash>>(32-x.depth)]
}

// enter adds the member at position p.
func (x *memberIndex) enter(hash uint32, p int) {
	s := x.segment(hash)
	for s.crowded(s.used + 1) {
		x.grow(s, hash)
		s = x.segment(hash)
	}
	s.put(memberSlot{hash: hash, next: uint32(p) + 1})
}

// leave takes out the member at position p.
func (x *memberIndex) leave(hash uint32, p int) {
	s := x.segment(hash)
	s.drop(s.slotOf(hash, p))
	x.shrink(s, hash)
}

// move tells that a member has another position.
func (x *memberIndex) move(hash uint32, from, to int) {
	s := x.segment(hash)
	s.slots[s.slotOf(hash, from)].next = uint32(to) + 1
}

// clone is a copy that shares nothing with the index.
func (x *memberIndex) clone() memberIndex {
	own := *x
	own.dir = make([]*memberSegment, len(x.dir))
	for i := 0; i < len(x.dir); {
		s := *x.dir[i]
		s.slots = slices.Clone(s.slots)
		for end := i + 1<<(x.depth-s.depth); i < end; i++ {
			own.dir[i] = &s
		}
	}
	return own
}

// memory is what the index takes up.
func (x *memberIndex) memory() int { return x.segments + len(x.dir)*int(unsafe.Sizeof(x.dir[0])) }

// grow makes room in the segment of hash: it takes the next size up, and past the
// last it splits.
func (x *memberIndex) grow(s *memberSegment, hash uint32) {
	x.segments -= s.memory()
	defer func() { x.segments += s.memory() }()
	if len(s.slots) < segmentSlots || s.depth == maxSegmentDepth {
		s.resize(s.used + 1)
		return
	}
	if s.depth == x.depth {
		x.doubleDir()
	}
	s.depth++
	if s.depth == x.depth {
		x.deepest += 2
	}
	sibling := &memberSegment{depth: s.depth}
	sibling.resize(s.used / 2)
	for i, slot := range s.slots {
		if slot.next != 0 && slot.hash>>(32-s.depth)&1 == 1 {
			if sibling.crowded(sibling.used + 1) {
				sibling.resize(sibling.used + 1)
			}
			sibling.put(slot)
			s.slots[i] = memberSlot{}
		}
	}
	s.resize(s.used - sibling.used)
	x.segments += sibling.memory()
	half := 1 << (x.depth - s.depth)
	first := int(hash>>(32-x.depth)) &^ (2*half - 1)
	for i := first + half; i < first+2*half; i++ {
		x.dir[i] = sibling
	}
}

func (x *memberIndex) doubleDir() {
	dir := make([]*memberSegment, 2*len(x.dir))
	for i := range dir {
		dir[i] = x.dir[i/2]
	}
	x.dir = dir
	x.depth++
	x.deepest = 0
}

// shrink merges the segment of hash with its buddy once they would fill a quarter
// of one, and halves the directory when no segment needs its last bit any more.
func (x *memberIndex) shrink(s *memberSegment, hash uint32) {
	if s.depth == 0 || s.used > segmentSlots/8 {
		return
	}
	half := 1 << (x.depth - s.depth)
	first := int(hash>>(32-x.depth)) &^ (2*half - 1)
	low, high := x.dir[first], x.dir[first+half]
	if low.depth != high.depth || low.used+high.used > segmentSlots/4 {
		return
	}
	if low.depth == x.depth {
		x.deepest -= 2
	}
	low.depth--
	x.segments -= low.memory() + high.memory()
	for i := first + half; i < first+2*half; i++ {
		x.dir[i] = low
	}
	low.resize(low.used + high.used)
	for _, slot := range high.slots {
		if slot.next != 0 {
			low.put(slot)
		}
	}
	x.segments += low.memory()
	for x.depth > 0 && x.deepest == 0 {
		x.halveDir()
	}
}

func (x *memberIndex) halveDir() {
	dir := make([]*memberSegment, len(x.dir)/2)
	x.depth--
	for i := range dir {
		dir[i] = x.dir[2*i]
		if dir[i].depth == x.depth {
			x.deepest++
		}
	}
	x.dir = dir
}

// home is the slot at which a probe for hash starts. The multiplication spreads the
// bits that the directory has not used; the sizes need not be powers of two.
func (s *memberSegment) home(hash uint32) int {
	const golden = 0x9e3779b1 // 2^32 divided by the golden ratio
	return int(uint64(hash*golden) * uint64(len(s.slots)) >> 32)
}

// after is the slot that a probe tries after slot i.
func (s *memberSegment) after(i int) int {
	if i++; i < len(s.slots) {
		return i
	}
	return 0
}

// crowded says whether n members are too many for the segment's slots: over 7/8.
func (s *memberSegment) crowded(n int) bool { return n > len(s.slots)/8*7 }

// put stores a slot at the first free place from its home.
func (s *memberSegment) put(slot memberSlot) {
	i := s.home(slot.hash)
	for s.slots[i].next != 0 {
		i = s.after(i)
	}
	s.slots[i] = slot
	s.used++
}

// resize gives the segment slots enough for n members and keeps those it has. Between
// the last two powers of two there is another size, which keeps a table's load over 58 %.
func (s *memberSegment) resize(n int) {
	size := firstSlots
	for n > size/8*7 {
		switch size {
		case segmentSlots / 2, segmentSlots / 4 * 3:
			size += segmentSlots / 4
		default:
			size *= 2
		}
	}
	held := s.slots
	s.slots = make([]memberSlot, size)
	s.used = 0
	for _, slot := range held {
		if slot.next != 0 {
			s.put(slot)
		}
	}
}

// slotOf finds the slot of the member at position p, which must be there.
func (s *memberSegment) slotOf(hash uint32, p int) int {
	i := s.home(hash)
	for s.slots[i].next != uint32(p)+1 {
		i = s.after(i)
	}
	return i
}

// drop frees slot i and moves back those after it that a probe would no longer reach.
func (s *memberSegment) drop(i int) {
	for j := s.after(i); s.slots[j].next != 0; j = s.after(j) {
		if s.distance(s.home(s.slots[j].hash), j) >= s.distance(i, j) {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = memberSlot{}
	s.used--
}

// distance is the number of steps of a probe from slot i to slot j.
func (s *memberSegment) distance(i, j int) int {
	if d := j - i; d >= 0 {
		return d
	}
	return j - i + len(s.slots)
}
