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
	own, grown := &hashTable{}, 0
	own.fields = t.fields.clone(func(value []byte) []byte {
		copied := slices.Clone(value)
		grown += cap(copied) - cap(value)
		return copied
	})
	own.fields.bytes += grown
	return own
}

// set gives a field a value, copied, and says whether the field is new.
func (t *hashTable) set(field, value []byte) (created bool) {
	p, ok := t.fields.find(field)
	if !ok {
		held := append([]byte(nil), value...)
		t.fields.insert(field, held)
		t.fields.bytes += cap(held)
		return true
	}
	t.fields.save(p)
	// A counter's text mostly keeps its length, so its memory is used again, unless a snapshot may have it: under this position, or
	// under the one from which the field was moved here.
	held := &t.fields.at(p).value
	t.fields.bytes -= cap(*held)
	if n := len(value); t.fields.frozen != nil || cap(*held) < n || cap(*held) > 2*n+spareValue {
		*held = nil
	}
	*held = append((*held)[:0], value...)
	t.fields.bytes += cap(*held)
	return false
}

// remove takes out the field at position p.
func (t *hashTable) remove(p int) {
	t.fields.bytes -= cap(t.fields.at(p).value)
	t.fields.remove(p)
}
