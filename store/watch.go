package store

import "slices"

// watchedKey counts the changes of a name that is being watched, for all that watch it.
type watchedKey struct {
	db      *DB
	name    string
	version uint64
	refs    int   // of watches, and of heed
	heed    *Heed // nil: none
}

// Watches are the keys that one client watches, each as the client saw it first, for WATCH. The zero value is none. The client that
// holds them calls Release in the end.
type Watches struct {
	list  []watch
	known map[*watchedKey]struct{} // the keys in list, once there are more than fewWatches
	bytes int
}

type watch struct {
	key      *watchedKey
	version  uint64
	expireAt int64 // of the key when the watch began
}

const (
	fewWatches = 16  // keys among which one is found by looking at each
	watchBytes = 160 // what a watch takes up beside the key's name, about
)

// Len is how many keys are watched.
func (w *Watches) Len() int { return len(w.list) }

// Bytes is about how much memory the watches take up.
func (w *Watches) Bytes() int { return w.bytes }

// Watch begins to watch the key at now (Unix milliseconds), whether it is there or not. A key already past its time is
// removed first, so that its removal later is no change. A key that is watched already stays as it was seen first.
func (w *Watches) Watch(db *DB, k Key, now int64) {
	var expireAt int64
	if e, ok := db.Look(k, now); ok {
		expireAt = e.ExpireAt()
	}
	key := db.watchKey(k)
	if w.has(key) {
		return
	}
	key.refs++
	w.list = append(w.list, watch{key: key, version: key.version, expireAt: expireAt})
	w.bytes += watchBytes + len(key.name)
	if len(w.list) > fewWatches {
		w.learn()
	}
}

// watchKey returns what counts the key's changes, which has no references yet if it is new.
func (db *DB) watchKey(k Key) *watchedKey {
	key := db.watched.Entries()[string(k.Name)]
	if key == nil {
		key = &watchedKey{db: db, name: string(k.Name)}
		db.watched.Set(key.name, key)
	}
	return key
}

func (w *Watches) has(key *watchedKey) bool {
	if len(w.list) > fewWatches {
		_, known := w.known[key]
		return known
	}
	return slices.ContainsFunc(w.list, func(o watch) bool { return o.key == key })
}

// learn has known be what list is, after that has grown by one.
func (w *Watches) learn() {
	from := len(w.list) - 1
	if w.known == nil {
		w.known, from = map[*watchedKey]struct{}{}, 0
	}
	for _, o := range w.list[from:] {
		w.known[o.key] = struct{}{}
	}
}

// Changed reports whether one of the keys has been changed since Watch, or was there then and is past its time at now.
func (w *Watches) Changed(now int64) bool {
	return slices.ContainsFunc(w.list, func(o watch) bool {
		return o.key.version != o.version || o.expireAt != 0 && now > o.expireAt
	})
}

// Release ends up to n watches and returns how many. Watches that are partly released may only be released further.
func (w *Watches) Release(n int) int {
	n = min(n, len(w.list))
	left := len(w.list) - n
	for i := range w.list[left:] {
		key := w.list[left+i].key
		w.list[left+i] = watch{}
		w.bytes -= watchBytes + len(key.name)
		key.release()
	}
	w.list, w.known = w.list[:left], nil
	return n
}

// markWatched notes a change for those who watch the name; a flush changes every watched key that is there.
func (db *DB) markWatched(name []byte, why change) {
	if why != changeFlush {
		if key := db.watched.Entries()[string(name)]; key != nil {
			key.note()
		}
		return
	}
	db.markPresent(db)
}

// markPresent notes a change for those who watch a name in db that one of the databases has.
func (db *DB) markPresent(in ...*DB) {
	for name, key := range db.watched.Entries() {
		k := db.ks.Key([]byte(name))
		if slices.ContainsFunc(in, func(d *DB) bool { _, ok := d.Peek(k); return ok }) {
			key.note()
		}
	}
}
