package store

import "unsafe"

const (
	// spareValue bounds what a value may leave unused of the memory that
	// it took over from a longer one: as much as it uses, and this many bytes.
	spareValue = 32
	// movesPerChange is how many members are looked at with each change while texts
	// are moved together. Each change leaves one unused at most, so that a round is over
	// before there is reason for the next one.
	movesPerChange = 8
)

// textTable holds the members of a big hash or set, each a name with a value, by name and by
// position: see memberIndex and memberPages. Names and values are in chunks. Where
// removals have left more than half of those unused, texts are moved together, a few with
// each change.
//
// The zero value is not usable; see newTextTable. It is not safe for concurrent use.
type textTable struct {
	memberIndex
	memberPages[heldText]
	texts  textChunks
	moving bool
	moved  int       // while texts are moved together: positions below it have been looked at
	frozen *textView // what a snapshot has still to see; nil if none has
}

func newTextTable() textTable { return textTable{memberIndex: newMemberIndex()} }

// clone is a copy that shares nothing with the table.
func (t *textTable) clone() textTable {
	return textTable{memberIndex: t.memberIndex.clone(), memberPages: t.memberPages.clone(), texts: t.texts.clone(), moving: t.moving, moved: t.moved}
}

// memory implements object.
func (t *textTable) memory() int {
	return int(unsafe.Sizeof(*t)) + t.memberIndex.memory() + t.memberPages.memory() + t.texts.memory()
}

// find returns the position of a member.
func (t *textTable) find(name []byte) (int, bool) {
	hash := t.hash(name)
	s := t.segment(hash)
	for i := s.home(hash); s.slots[i].next != 0; i = s.after(i) {
		if s.slots[i].hash != hash {
			continue
		}
		if p := int(s.slots[i].next - 1); string(t.name(p)) == string(name) {
			return p, true
		}
	}
	return 0, false
}

// name shows the name of the member at position p.
func (t *textTable) name(p int) []byte { return t.texts.name(t.at(p)) }

// both shows the name and the value of the member at position p.
func (t *textTable) both(p int) (name, value []byte) { return t.texts.both(t.at(p)) }

// insert adds a member that is not there.
func (t *textTable) insert(name, value []byte) {
	t.moveTogether()
	t.push(t.texts.hold(name, value))
	t.enter(t.hash(name), t.count-1)
}

// change gives the member at position p another value. A counter's text mostly keeps its length, so its memory is used again.
func (t *textTable) change(p int, value []byte) {
	t.save(p)
	m := t.at(p)
	if t.texts.overwrite(m, value, spareValue) {
		return
	}
	old := *m
	*m = t.texts.hold(t.texts.name(&old), value)
	t.texts.release(old)
	t.moveTogether()
}

// remove takes out the member at position p and moves the last one there.
func (t *textTable) remove(p int) {
	last := t.count - 1
	t.save(p)
	t.save(last)
	m := t.at(p)
	t.leave(t.hash(t.texts.name(m)), p)
	t.texts.release(*m)
	if p != last {
		*m = *t.at(last)
		t.memberIndex.move(t.hash(t.texts.name(m)), last, p)
	}
	t.pop()
	t.moveTogether()
}

// moveTogether moves texts out of chunks of which more than half is unused, if that is so of all chunks together.
func (t *textTable) moveTogether() {
	if !t.moving {
		if !t.texts.wasteful() {
			return
		}
		t.moving, t.moved = true, 0
	}
	for end := min(t.moved+movesPerChange, t.count); t.moved < end; t.moved++ {
		m := t.at(t.moved)
		if !t.texts.sparse(*m) {
			continue
		}
		old := *m
		*m = t.texts.hold(t.texts.both(&old))
		t.texts.release(old)
	}
	t.moving = t.moved < t.count
}

// each hands every member to fn until fn says false.
func (t *textTable) each(fn func(name, value []byte) bool) {
	for _, page := range t.pages {
		for i := range page {
			if !fn(t.texts.both(&page[i])) {
				return
			}
		}
	}
}
