package store

import "slices"

// spareValue bounds what a value of a big hash may leave unused of the memory that
// it took over from a longer one: as much as it uses, and this many bytes.
const spareValue = 32

// hashTable is a big hash: see memberTable for how it is kept.
type hashTable struct {
	fields memberTable[[]byte]
}

func newHashTable() *hashTable {
	return &hashTable{fields: newMemberTable[[]byte]()}
}

// clone implements cloner. The copy shares nothing with the table but the fields' names, which never change.
func (t *hashTable) clone() any {
	return &hashTable{fields: t.fields.clone(slices.Clone[[]byte])}
}

// set gives a field a value, copied, and says whether the field is new.
func (t *hashTable) set(field, value []byte) (created bool) {
	p, ok := t.fields.find(field)
	if !ok {
		t.fields.insert(field, append([]byte(nil), value...))
		return true
	}
	// A counter's text mostly keeps its length, so its memory is used again.
	held := &t.fields.at(p).value
	if n := len(value); t.fields.save(p) || cap(*held) < n || cap(*held) > 2*n+spareValue {
		*held = nil
	}
	*held = append((*held)[:0], value...)
	return false
}
