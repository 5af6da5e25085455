package store

// change says why the gate for writes is passed.
type change uint8

const (
	changeWrite  change = iota // a command changes, adds or removes the key
	changeMoveIn               // the second name of an operation that was counted for its first
	changeExpire               // the key's time has passed
	changeEvict                // the key goes because memory is short
	changeFlush                // every key of the database goes
)

// mutate is the one gate for writes: every change of the keyspace passes here once per key, just before the first
// change of the operation, while the old value can still be seen. An operation that changes nothing stays out. It counts
// changes and marks watched keys. Whatever else must know of every write (before-images for snapshots, client
// tracking, key-space events) belongs here and nowhere else. name is nil for changeFlush.
func (db *DB) mutate(name []byte, why change) {
	switch why {
	case changeWrite:
		db.ks.dirty++
	case changeFlush:
		db.ks.dirty++
		db.follow.changes++
	}
	if db.watched.Len() != 0 {
		db.markWatched(name, why)
	}
	if len(name) == len(db.follow.name) {
		db.follow.changed(name)
	}
	if db.marks != nil && why != changeFlush {
		db.marks.changing(name)
	}
	if db.ks.observer != nil {
		db.tell(name, why)
	}
	if s := db.ks.snapshot; s != nil && why != changeFlush {
		s.before(db, name)
	}
}

// mutateSwap is the gate for two databases that are about to exchange all of their keys.
func (ks *Keyspace) mutateSwap(a, b *DB) {
	ks.dirty++
	a.follow.changes++
	b.follow.changes++
	a.markPresent(a, b)
	b.markPresent(a, b)
}
