package store

// follow counts the changes of one name in a database, for somebody who keeps what is derived from its value. It costs those who
// write other keys one comparison of lengths. The zero value follows no name.
type follow struct {
	name    []byte
	changes uint64
}

// Follow begins to count the changes of one name, in place of the one before. There is one for each database.
func (db *DB) Follow(name []byte) {
	db.follow = follow{name: append([]byte(nil), name...), changes: db.follow.changes + 1}
}

// FollowedChanges counts the changes so far of the name that is followed: it goes up whenever the key was or may have been changed,
// came, went or expired.
func (db *DB) FollowedChanges() uint64 { return db.follow.changes }

// changed notes a change of a name.
func (f *follow) changed(name []byte) {
	if string(name) == string(f.name) {
		f.changes++
	}
}
