package store

// Awaited is a name that somebody waits for, for BLPOP and its like: when a key of the name is added, a stream of the name is
// gone, or Signal tells of it, the Keyspace has it ready. Whoever waits stands in its queue.
type Awaited struct {
	db          *DB
	name        string
	first, last *Wait
	waits       int  // in the queue
	ready       bool // is in Keyspace.ready
}

// Wait is one place in the queue for a name. Await puts it there and Leave takes it out; it must not be moved in between. The zero
// value stands in no queue.
type Wait struct {
	By            any // who waits; for the caller
	awaited       *Awaited
	before, after *Wait
}

// Await puts w at the end of the queue for the key, whether the key is there or not. If the last in that queue has the same By already,
// w is left out of it, and Await returns false.
func (db *DB) Await(k Key, w *Wait) bool {
	a := db.awaited.Entries()[string(k.Name)]
	if a == nil {
		a = &Awaited{db: db, name: string(k.Name)}
		db.awaited.Set(a.name, a)
	} else if a.last.By == w.By {
		return false
	}
	w.awaited = a
	w.link()
	a.waits++
	return true
}

// AwaitedNames is how many names of all databases somebody waits for.
func (ks *Keyspace) AwaitedNames() (n int) {
	for _, db := range ks.dbs {
		n += db.awaited.Len()
	}
	return n
}

// Awaited is the name that w waits for, or nil if it stands in no queue.
func (w *Wait) Awaited() *Awaited { return w.awaited }

// Leave takes w out of its queue.
func (w *Wait) Leave() {
	a := w.awaited
	w.unlink()
	*w = Wait{}
	if a.waits--; a.waits == 0 {
		a.db.awaited.Delete(a.name)
	}
}

// ToBack has w stand behind all others in its queue.
func (w *Wait) ToBack() {
	w.unlink()
	w.link()
}

// Return has the n that stand at the end of the queue stand before all others, in their order: it undoes as many ToBack.
func (a *Awaited) Return(n int) {
	for ; n > 0 && a.last != a.first; n-- {
		w := a.last
		w.unlink()
		w.before, w.after = nil, a.first
		a.first.before, a.first = w, w
	}
}

// link puts w at the end of its queue.
func (w *Wait) link() {
	a := w.awaited
	w.before, w.after = a.last, nil
	if a.last == nil {
		a.first = w
	} else {
		a.last.after = w
	}
	a.last = w
}

// unlink has those before and behind w stand next to each other.
func (w *Wait) unlink() {
	a := w.awaited
	if w.before == nil {
		a.first = w.after
	} else {
		w.before.after = w.after
	}
	if w.after == nil {
		a.last = w.before
	} else {
		w.after.before = w.before
	}
}

// Waits is how long the queue for the name is.
func (a *Awaited) Waits() int { return a.waits }

// First is whoever has stood in the queue for the longest.
func (a *Awaited) First() *Wait { return a.first }

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
		if a.waits > 0 {
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
