package store

// Heed has its owner learn of every change of one key, by whatever operation: the Keyspace notes that the key has, or may have, changed,
// and NextHeeded tells. There is one for each key at most. It must not be moved while it heeds; the zero value heeds nothing.
type Heed struct {
	By      any // whose it is; for the caller
	key     *watchedKey
	changed bool // is in Keyspace.heeded
}

// Heed begins to heed the key, whether it is there or not. The key must have no Heeder. The owner calls [Heed.End] in the end.
func (db *DB) Heed(k Key, h *Heed) {
	h.key = db.watchKey(k)
	if h.key.heed != nil {
		panic("store: a key is heeded twice")
	}
	h.key.refs++
	h.key.heed = h
}

// Heeder is what heeds the key, or nil.
func (db *DB) Heeder(k Key) *Heed {
	if key := db.watched.Entries()[string(k.Name)]; key != nil {
		return key.heed
	}
	return nil
}

// Changed reports whether the key has changed and NextHeeded has not told of it yet.
func (h *Heed) Changed() bool { return h.changed }

// Name is the key's name.
func (h *Heed) Name() string { return h.key.name }

// Key is the key.
func (h *Heed) Key() Key { return h.key.db.ks.Key([]byte(h.key.name)) }

// DB is the database that the key is of. It stays the same when databases are swapped: then the key has changed.
func (h *Heed) DB() *DB { return h.key.db }

// End has the key heeded no longer.
func (h *Heed) End() {
	h.key.heed = nil
	h.key.release()
	h.key = nil
}

// NextHeeded takes what heeds the key that has changed first among those whose changes nobody was told of, or is nil when there is none.
// Changes that follow are told of again.
func (ks *Keyspace) NextHeeded() *Heed {
	for len(ks.heeded) > 0 {
		h := ks.heeded[0]
		ks.heeded[0] = nil
		ks.heeded = ks.heeded[1:]
		h.changed = false
		if h.key != nil {
			return h
		}
	}
	ks.heeded = nil
	return nil
}

// note counts a change of the key for those who watch it, and for who heeds it.
func (key *watchedKey) note() {
	key.version++
	if h := key.heed; h != nil && !h.changed {
		h.changed = true
		ks := key.db.ks
		ks.heeded = append(ks.heeded, h)
	}
}

// release lets go of a reference to the key.
func (key *watchedKey) release() {
	if key.refs--; key.refs == 0 {
		key.db.watched.Delete(key.name)
	}
}
