package store

// Observer hears of what becomes of keys. Its methods are called from within operations, so they must leave the keyspace alone; a
// name is valid until they return.
type Observer interface {
	// Changed is called when a key is about to be changed, added or removed, once for each operation. A flush and a swap of
	// databases change no single key.
	Changed(db *DB, name []byte)
	// Created is called when a key is being added that was not there, by whatever operation.
	Created(db *DB, name []byte)
	// Expired is called instead of Changed when a key is removed because its time has passed.
	Expired(db *DB, name []byte)
	// Evicted is called instead of Changed when a key is removed because memory is short.
	Evicted(db *DB, name []byte)
}

// SetObserver has o hear of changes from now on; nil ends that.
func (ks *Keyspace) SetObserver(o Observer) { ks.observer = o }

// tell has the observer hear of a change.
func (db *DB) tell(name []byte, why change) {
	switch why {
	case changeFlush:
	case changeExpire:
		db.ks.observer.Expired(db, name)
	case changeEvict:
		db.ks.observer.Evicted(db, name)
	default:
		db.ks.observer.Changed(db, name)
	}
}
