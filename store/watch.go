package store

import "slices"

// watchedKey counts the changes of a name that is being watched, for all that watch it.
type watchedKey struct {
	version uint64
	refs    int
}

// Watch remembers one key as one client saw it, for WATCH. The client that holds it calls Release in the end.
type Watch struct {
	db       *DB
	name     string
	key      *watchedKey
	version  uint64
	expireAt int64 // of the key when the watch began
}

// Watch begins to watch the key at now (Unix milliseconds), whether it is there or not. A key already past its time is
// removed first, so that its removal later is no change.
func (db *DB) Watch(k Key, now int64) *Watch {
	var expireAt int64
	if e, ok := db.Look(k, now); ok {
		expireAt = e.ExpireAt()
	}
	key := db.watched[string(k.Name)]
	if key == nil {
		key = &watchedKey{}
		db.watched[string(k.Name)] = key
	}
	key.refs++
	return &Watch{db: db, name: string(k.Name), key: key, version: key.version, expireAt: expireAt}
}

// Changed reports whether the key has been changed since Watch, or was there then and is past its time at now.
func (w *Watch) Changed(now int64) bool {
	return w.key.version != w.version || w.expireAt != 0 && now > w.expireAt
}

// Release ends the watch. Calling it again does nothing.
func (w *Watch) Release() {
	if w.db == nil {
		return
	}
	w.key.refs--
	if w.key.refs == 0 {
		delete(w.db.watched, w.name)
	}
	w.db = nil
}

// markWatched notes a change for those who watch the name; a flush changes every watched key that is there.
func (db *DB) markWatched(name []byte, why change) {
	if why != changeFlush {
		if key := db.watched[string(name)]; key != nil {
			key.version++
		}
		return
	}
	db.markPresent(db)
}

// markPresent notes a change for those who watch a name in db that one of the databases has.
func (db *DB) markPresent(in ...*DB) {
	for name, key := range db.watched {
		k := db.ks.Key([]byte(name))
		if slices.ContainsFunc(in, func(d *DB) bool { _, ok := d.Peek(k); return ok }) {
			key.version++
		}
	}
}
