package store

// Beside returns an empty Keyspace of the same shape as ks, whose contents ks may [Keyspace.Adopt] later. It shares nothing with ks that
// changes, so that it may be filled while ks is used. Its keys count as used now, by the time that ks knows.
func (ks *Keyspace) Beside() *Keyspace {
	beside := New(Options{Databases: len(ks.dbs), Limits: ks.limits, Hash: ks.seed})
	beside.reserved = reserved{prefix: ks.reserved.prefix, next: ks.reserved.next, label: ks.reserved.label}
	a := &beside.access
	a.counting, a.counts, a.now = ks.access.counting, ks.access.counts, ks.access.now
	a.restamp()
	return beside
}

// Adopt replaces all keys by those of other, which Beside has returned, and leaves other empty: whatever their number, it takes no longer
// than a flush. To those who watch or await a key it is a flush and then the arrival of the new ones; each new key counts as a change. There
// must be no snapshot of either under way. It panics on a Keyspace that is not from Beside.
func (ks *Keyspace) Adopt(other *Keyspace) {
	if other.seed != ks.seed || len(other.dbs) != len(ks.dbs) || ks.snapshot != nil || other.snapshot != nil {
		panic("store: a keyspace is adopted that is not from Beside, or during a snapshot")
	}
	ks.FlushAll()
	ks.measureAll()
	other.measureAll()
	for i, db := range ks.dbs {
		from := other.dbs[i]
		ks.dirty += uint64(from.keys)
		db.follow.changes++
		db.contents, from.contents = from.contents, db.contents
		ks.renew(&db.tally) // its version is other's
		ks.arenas.used += db.arena.used
		other.arenas.used -= db.arena.used
		ks.objectBytes += db.objects.bytes
		other.objectBytes -= db.objects.bytes
		db.arena.all, from.arena.all = &ks.arenas, &other.arenas
		if db.dir[0].table.ref == 0 {
			db.resetTables() // it has had no key, and points to what is other's
		}
		from.resetTables()
		db.markPresent(db)
		db.signalPresent()
		db.replaced()
	}
	if ks.Crowded() && ks.arenas.crowded != nil {
		ks.arenas.crowded()
	}
}
