package store

import "math/bits"

// Rename moves the value and TTL of from to the name to, replacing what was there, and reports whether from was there
// at now (Unix milliseconds). Both names being the same changes nothing.
func (db *DB) Rename(from, to Key, now int64) bool {
	source, ok := db.Find(from, now)
	if !ok {
		return false
	}
	if string(from.Name) == string(to.Name) {
		return true
	}
	source.mutate()
	db.mutate(to.Name, changeMoveIn)
	if target, ok := db.Peek(to); ok {
		target.mutated = true
		target.Delete()
	}
	db.insertLike(to, source.rec).access = source.rec.access
	db.remove(from.Hash, source.ref, source.rec)
	db.mergeAround(from.Hash)
	return true
}

const (
	randomDraws   = 64    // attempts at an evenly random key before a nearly random one is taken
	randomExpired = 16384 // keys past their time that one call of Random may meet and remove
)

// Random is a key that is there at now (Unix milliseconds), each with nearly the same chance; ok is false when there is
// none. rnd(n) is a random number in [0, n). Keys past their time that it meets are removed; should it meet
// randomExpired of those, it gives up. The name aliases the store's memory.
func (db *DB) Random(now int64, rnd func(n int) int) (name []byte, ok bool) {
	for range randomExpired {
		if db.keys == 0 {
			break
		}
		rec := db.draw(rnd)
		if !rec.expired(now) {
			return rec.name(), true
		}
		k := db.ks.Key(rec.name())
		db.Look(k, now)
	}
	return nil, false
}

// draw is a random record; there must be one. Tables are drawn by rejection, so that each weighs as many keys as it has.
func (db *DB) draw(rnd func(n int) int) *record {
	for range randomDraws {
		i := rnd(len(db.dir))
		t := db.dir[i].table
		if int(t.prefix>>db.dirShift) != i {
			continue
		}
		room := splitAt + 1
		if len(db.dir) == 1 {
			room = t.count
		}
		if n := rnd(room); n < t.count {
			return db.nth(t, n)
		}
	}
	first := rnd(len(db.dir))
	for i := range db.dir {
		if t := db.dir[(first+i)%len(db.dir)].table; t.count > 0 {
			return db.nth(t, rnd(t.count))
		}
	}
	panic("store: keys are counted that no table has")
}

// nth is the record n of the table, 0 <= n < t.count, in the order of the slots.
func (db *DB) nth(t *table, n int) *record {
	for i := range t.buckets {
		b := &t.buckets[i]
		occupied := b.occupied()
		if have := bits.OnesCount32(occupied); n >= have {
			n -= have
			continue
		}
		for ; n > 0; n-- {
			occupied &= occupied - 1
		}
		return db.record(b.refs[bits.TrailingZeros32(occupied)])
	}
	panic("store: a table counts more keys than it has")
}
