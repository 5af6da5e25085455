package store

import (
	"hash/maphash"
	"slices"
	"unsafe"
)

// Sizes of a memberTable's parts. A part is the most that one insertion or removal
// ever copies, so none of them stalls however large the table is.
const (
	segmentSlots    = 512 // slots of a full-grown segment: 4 KiB
	firstSlots      = 16  // slots of a new table's only segment
	maxSegmentDepth = 20  // hash bits that the directory may use; the rest spread a segment's slots
	pageMembers     = 512 // members of a page
)

// memberTable holds the members of a big hash, set or sorted set, each a name with a
// value, by name and by position.
//
// Positions run from 0 to len-1 without a gap. A new member takes the next one,
// and a removal moves the last member into the hole. This makes a random pick one
// index, and gives a scan from the highest position downward its guarantee: what
// moves into a hole comes from the end, which such a scan has passed already, so
// nothing that is there all along is ever skipped.
//
// The index is extendible hashing: the top bits of the hash pick a segment, the others
// a home slot in it, with linear probing and no tombstones. A slot keeps the
// hash beside the position, so that a lookup rarely reads a name in vain and a
// segment splits without reading any. Growing splits one segment and adds one page
// at a time.
//
// The zero value is not usable; see newMemberTable. It is not safe for concurrent
// use.
type memberTable[V any] struct {
	seed    maphash.Seed
	dir     []*memberSegment // by the top depth bits of the hash
	depth   uint8
	deepest int // segments whose depth is the directory's
	pages   [][]member[V]
	count   int
	bytes   int            // of the segments, the names, and what the owner has added for the values
	frozen  *memberView[V] // what a snapshot has still to see; nil if none has
}

// member is one name with its value. The name is kept as long as the member is there.
type member[V any] struct {
	value V // first, since a value without size would take up space at the end
	name  string
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

func newMemberTable[V any]() memberTable[V] {
	first := &memberSegment{slots: make([]memberSlot, firstSlots)}
	return memberTable[V]{seed: maphash.MakeSeed(), dir: []*memberSegment{first}, deepest: 1, bytes: first.memory()}
}

func (t *memberTable[V]) len() int { return t.count }

// at returns the member at position i, in [0, len).
func (t *memberTable[V]) at(i int) *member[V] {
	return &t.pages[uint(i)/pageMembers][uint(i)%pageMembers]
}

// find returns the position of a member.
func (t *memberTable[V]) find(name []byte) (int, bool) {
	hash := t.hash(name)
	s := t.segment(hash)
	for i := s.home(hash); s.slots[i].next != 0; i = s.after(i) {
		if s.slots[i].hash != hash {
			continue
		}
		if p := int(s.slots[i].next - 1); t.at(p).name == string(name) {
			return p, true
		}
	}
	return 0, false
}

// insert adds a member that is not there and returns it. It copies name.
func (t *memberTable[V]) insert(name []byte, value V) *member[V] {
	hash := t.hash(name)
	s := t.segment(hash)
	for s.crowded(s.used + 1) {
		t.grow(s, hash)
		s = t.segment(hash)
	}
	t.push(member[V]{name: string(name), value: value})
	t.bytes += allocated(len(name))
	s.put(memberSlot{hash: hash, next: uint32(t.count)})
	return t.at(t.count - 1)
}

// remove takes out the member at position p and moves the last one there.
func (t *memberTable[V]) remove(p int) {
	if t.frozen != nil {
		t.save(p)
		t.save(t.count - 1)
	}
	t.bytes -= allocated(len(t.at(p).name))
	hash := t.hash(nameBytes(t.at(p).name))
	s := t.segment(hash)
	s.drop(s.slotOf(hash, p))
	if last := t.count - 1; p != last {
		moved := t.hash(nameBytes(t.at(last).name))
		home := t.segment(moved)
		home.slots[home.slotOf(moved, last)].next = uint32(p) + 1
		*t.at(p) = *t.at(last)
	}
	t.pop()
	t.shrink(s, hash)
}

// clone is a copy of the table with each value copied by the function. It shares the names, which never change.
func (t *memberTable[V]) clone(value func(V) V) memberTable[V] {
	own := *t
	own.frozen = nil
	own.dir = make([]*memberSegment, len(t.dir))
	for i := 0; i < len(t.dir); {
		s := *t.dir[i]
		s.slots = slices.Clone(s.slots)
		for end := i + 1<<(t.depth-s.depth); i < end; i++ {
			own.dir[i] = &s
		}
	}
	own.pages = make([][]member[V], len(t.pages))
	for i, page := range t.pages {
		copied := make([]member[V], len(page), cap(page))
		for j, m := range page {
			copied[j] = member[V]{name: m.name, value: value(m.value)}
		}
		own.pages[i] = copied
	}
	return own
}

// scan hands at most count members to fn, from the highest position below cursor
// downward, and returns the cursor to go on with, 0 when all have been shown. A
// cursor of 0 starts.
func (t *memberTable[V]) scan(cursor uint64, count int, fn func(*member[V])) uint64 {
	i := t.count
	if cursor != 0 && cursor < uint64(i) {
		i = int(cursor)
	}
	for count = max(count, 1); i > 0 && count > 0; count-- {
		i--
		fn(t.at(i))
	}
	return uint64(i)
}

func (t *memberTable[V]) hash(name []byte) uint32 {
	return uint32(maphash.Bytes(t.seed, name))
}

func (t *memberTable[V]) segment(hash uint32) *memberSegment {
	return t.dir[hash>>(32-t.depth)]
}

// push appends a member, on a new page when the last one is full. The first page
// grows with its members, so that a table of 200 does not pay for 512.
func (t *memberTable[V]) push(m member[V]) {
	page := t.count / pageMembers
	if page == len(t.pages) {
		var p []member[V]
		if page > 0 {
			p = make([]member[V], 0, pageMembers)
		}
		t.pages = append(t.pages, p)
	}
	t.pages[page] = append(t.pages[page], m)
	t.count++
}

// pop drops the last member. One empty page is kept, so that a table that hovers
// around a page's end does not allocate each time.
func (t *memberTable[V]) pop() {
	t.count--
	p := &t.pages[t.count/pageMembers]
	last := len(*p) - 1
	(*p)[last] = member[V]{}
	*p = (*p)[:last]
	if keep := (t.count-1)/pageMembers + 2; len(t.pages) > keep {
		t.pages[keep] = nil
		t.pages = t.pages[:keep]
	}
}

// grow makes room in the segment of hash: it takes the next size up, and past the
// last it splits.
func (t *memberTable[V]) grow(s *memberSegment, hash uint32) {
	t.bytes -= s.memory()
	defer func() { t.bytes += s.memory() }()
	if len(s.slots) < segmentSlots || s.depth == maxSegmentDepth {
		s.resize(s.used + 1)
		return
	}
	if s.depth == t.depth {
		t.doubleDir()
	}
	s.depth++
	if s.depth == t.depth {
		t.deepest += 2
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
	t.bytes += sibling.memory()
	half := 1 << (t.depth - s.depth)
	first := int(hash>>(32-t.depth)) &^ (2*half - 1)
	for i := first + half; i < first+2*half; i++ {
		t.dir[i] = sibling
	}
}

func (t *memberTable[V]) doubleDir() {
	dir := make([]*memberSegment, 2*len(t.dir))
	for i := range dir {
		dir[i] = t.dir[i/2]
	}
	t.dir = dir
	t.depth++
	t.deepest = 0
}

// shrink merges the segment of hash with its buddy once they would fill a quarter
// of one, and halves the directory when no segment needs its last bit any more.
func (t *memberTable[V]) shrink(s *memberSegment, hash uint32) {
	if s.depth == 0 || s.used > segmentSlots/8 {
		return
	}
	half := 1 << (t.depth - s.depth)
	first := int(hash>>(32-t.depth)) &^ (2*half - 1)
	low, high := t.dir[first], t.dir[first+half]
	if low.depth != high.depth || low.used+high.used > segmentSlots/4 {
		return
	}
	if low.depth == t.depth {
		t.deepest -= 2
	}
	low.depth--
	t.bytes -= low.memory() + high.memory()
	for i := first + half; i < first+2*half; i++ {
		t.dir[i] = low
	}
	low.resize(low.used + high.used)
	for _, slot := range high.slots {
		if slot.next != 0 {
			low.put(slot)
		}
	}
	t.bytes += low.memory()
	for t.depth > 0 && t.deepest == 0 {
		t.halveDir()
	}
}

func (t *memberTable[V]) halveDir() {
	dir := make([]*memberSegment, len(t.dir)/2)
	t.depth--
	for i := range dir {
		dir[i] = t.dir[2*i]
		if dir[i].depth == t.depth {
			t.deepest++
		}
	}
	t.dir = dir
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

// nameBytes shows a held name as bytes without copying. They must not be changed.
func nameBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
