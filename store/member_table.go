package store

import "unsafe"

// memberTable holds the members of a big sorted set by name and by position, each
// with its score: see memberIndex and memberPages. The zero value is not usable; see
// newMemberTable. It is not safe for concurrent use.
type memberTable struct {
	memberIndex
	memberPages[member]
	names int // bytes of the names
}

// member is one name with its score. The name is kept as long as the member is there.
type member struct {
	name  string
	score float64
}

func newMemberTable() memberTable { return memberTable{memberIndex: newMemberIndex()} }

// find returns the position of a member.
func (t *memberTable) find(name []byte) (int, bool) {
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
func (t *memberTable) insert(name []byte, score float64) *member {
	t.names += allocated(len(name))
	t.push(member{string(name), score})
	t.enter(t.hash(name), t.count-1)
	return t.at(t.count - 1)
}

// remove takes out the member at position p and moves the last one there.
func (t *memberTable) remove(p int) {
	m := t.at(p)
	t.names -= allocated(len(m.name))
	t.leave(t.hash(nameBytes(m.name)), p)
	if last := t.count - 1; p != last {
		*m = *t.at(last)
		t.move(t.hash(nameBytes(m.name)), last, p)
	}
	t.pop()
}

// clone is a copy of the table. Both share the names, which never change.
func (t *memberTable) clone() memberTable {
	return memberTable{t.memberIndex.clone(), t.memberPages.clone(), t.names}
}

// memory is what the table takes up.
func (t *memberTable) memory() int { return t.memberIndex.memory() + t.memberPages.memory() + t.names }

// nameBytes shows a held name as bytes without copying. They must not be changed.
func nameBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
