package store

// Awaited is a name that somebody waits for, for BLPOP and its like: when a key of the name is added, a stream of the name is
// gone, or Signal tells of it, the Keyspace has it ready. Whoever waits calls Release in the end.
type Awaited struct {
	db    *DB
	name  string
	refs  int
	ready bool // is in Keyspace.ready
}

// Await begins to wait for the key, whether it is there or not. All who wait for one key share one Awaited.
func (db *DB) Await(k Key) *Awaited {
	a := db.awaited.Entries()[string(k.Name)]
	if a == nil {
		a = &Awaited{db: db, name: string(k.Name)}
		db.awaited.Set(a.name, a)
	}
	a.refs++
	return a
}

// Release ends one wait.
func (a *Awaited) Release() {
	a.refs--
	if a.refs == 0 {
		a.db.awaited.Delete(a.name)
	}
}

// DB is the database that the name is of.
func (a *Awaited) DB() *DB { return a.db }

// NameBytes is the length of the name, of which it has a copy.
func (a *Awaited) NameBytes() int { return len(a.name) }

// Key is the key waited for.
func (a *Awaited) Key() Key { return a.db.ks.Key([]byte(a.name)) }

// NextReady takes the key that has been ready for the longest, or is nil when none is. The key need not be there any more.
func (ks *Keyspace) NextReady() *Awaited {
	for len(ks.ready) > 0 {
		a := ks.ready[0]
		ks.ready[0] = nil
		ks.ready = ks.ready[1:]
		a.ready = false
		if a.refs > 0 {
			return a
		}
	}
	ks.ready = nil
	return nil
}

// Signal notes that those who wait for the key should look at it. Adding a key does this by itself; it is for values that
// somebody may wait for while they are there.
func (db *DB) Signal(k Key) {
	if db.awaited.Len() != 0 {
		db.signal(k.Name)
	}
}

func (db *DB) signal(name []byte) {
	if a := db.awaited.Entries()[string(name)]; a != nil && !a.ready {
		a.ready = true
		db.ks.ready = append(db.ks.ready, a)
	}
}

// signalPresent notes all awaited names that the database has.
func (db *DB) signalPresent() {
	for name := range db.awaited.Entries() {
		if _, ok := db.Peek(db.ks.Key([]byte(name))); ok {
			db.signal([]byte(name))
		}
	}
}

// signalStreams notes all awaited names of streams, which are about to go.
func (db *DB) signalStreams() {
	for name := range db.awaited.Entries() {
		if e, ok := db.Peek(db.ks.Key([]byte(name))); ok && e.rec.enc == encStream {
			db.signal([]byte(name))
		}
	}
}
