package store

import "encoding/binary"

// Marked is told of a marked key.
type Marked interface {
	// Changing is called just before the key is changed, comes or goes, by whatever operation: its old value can still be seen. It must leave the
	// keyspace alone. A flush changes no single key; neither does what replaces all keys of a database, see OnReplaced.
	Changing()
}

// marks are the names of a database whose changes somebody wants to hear of first. There are none but while that is so: a write then costs
// a look at a pointer, and one of another key a look at a counter more.
type marks struct {
	cells  [markCells]uint32 // how many names fall into each
	byName map[string]Marked
}

// markCells is how many counters tell apart the names that are marked for certain not.
const markCells = 1 << 10

// markCell is where a name is counted: by its length and its end, in which the names of a limiter's keys differ.
func markCell(name []byte) uint32 {
	h := uint32(len(name))
	if n := len(name); n >= 4 {
		h ^= binary.LittleEndian.Uint32(name[n-4:])
	}
	return h * 0x9E3779B1 >> 22 // 2^32 by the golden ratio: the upper bits depend on all
}

// Mark has m hear of each change of a name, before it, until Unmark. A name has one mark at most.
func (db *DB) Mark(name string, m Marked) {
	if db.marks == nil {
		db.marks = &marks{byName: make(map[string]Marked)}
	}
	if _, found := db.marks.byName[name]; !found {
		db.marks.cells[markCell([]byte(name))]++
	}
	db.marks.byName[name] = m
}

// Unmark ends Mark.
func (db *DB) Unmark(name string) {
	m := db.marks
	if m == nil || m.byName[name] == nil {
		return
	}
	delete(m.byName, name)
	m.cells[markCell([]byte(name))]--
	if len(m.byName) == 0 {
		db.marks = nil
	}
}

// UnmarkAll is Unmark for all names of the database.
func (db *DB) UnmarkAll() { db.marks = nil }

// changing tells of a change of a name that may be marked.
func (m *marks) changing(name []byte) {
	if m.cells[markCell(name)] == 0 {
		return
	}
	if marked := m.byName[string(name)]; marked != nil {
		marked.Changing()
	}
}

// OnReplaced has fn called when all keys of a database have gone at once, or have been replaced by others. It may be called with the marks of
// that database, which stay, ended. There is one such function; nil takes it away.
func (ks *Keyspace) OnReplaced(fn func(db *DB)) { ks.onReplaced = fn }

// replaced tells that a database has other keys than it had.
func (db *DB) replaced() {
	if db.ks.onReplaced != nil {
		db.ks.onReplaced(db)
	}
}
