package store

// Swap exchanges the keys of databases i and j at now (Unix milliseconds), whatever their number. Watches stay with the
// database's number: a watched key is changed if one of the two has it, and an awaited one is ready if the other had it, or
// if it was a stream. A database swapped with itself is not changed.
func (ks *Keyspace) Swap(i, j int, now int64) {
	if i == j {
		return
	}
	a, b := ks.dbs[i], ks.dbs[j]
	a.expireWatched(a, b, now)
	b.expireWatched(a, b, now)
	ks.mutateSwap(a, b)
	a.signalStreams()
	b.signalStreams()
	ks.measureAll()
	a.contents, b.contents = b.contents, a.contents
	a.signalPresent()
	b.signalPresent()
	a.replaced()
	b.replaced()
}

// expireWatched removes from a and b the keys past their time that are watched in db, so that their removal after a swap is
// no change for those who never saw them alive.
func (db *DB) expireWatched(a, b *DB, now int64) {
	for name := range db.watched.Entries() {
		k := db.ks.Key([]byte(name))
		a.Look(k, now)
		b.Look(k, now)
	}
}
