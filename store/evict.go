package store

import "math/bits"

// EvictBy says which key goes first when memory is short.
type EvictBy uint8

// The orders in which keys go.
const (
	EvictIdle   EvictBy = iota // the one that has not been used for longest
	EvictRare                  // the one that is used least
	EvictSoon                  // the one that expires first
	EvictRandom                // any
)

// Eviction is how keys are chosen that go when memory is short.
type Eviction struct {
	By       EvictBy
	Volatile bool // only keys with a TTL go
	Samples  int  // keys that are compared for each one that goes
}

const (
	poolSize    = 16      // keys that are remembered as the best to go
	evictVisits = 4096    // steps that looking for samples may take: a step is a bucket, or a table passed over
	evictTables = 1 << 16 // tables after which it ends though there are keys with a TTL and none has been found
)

// evictionPool holds the keys that were found to be the best to go, the best one last. They may be gone or have changed since.
type evictionPool struct {
	how   Eviction
	count int
	keys  [poolSize]pooled
}

type pooled struct {
	db    *DB
	hash  uint64
	ref   ref
	score uint64 // the higher, the sooner it goes
}

// Evict removes a key so that memory becomes free, and reports whether it found one; evicted is called with its name just before, unless
// its time had passed, which removes it as always. The key whose changes are followed (see Follow) is never chosen, and what Spare names neither.
func (ks *Keyspace) Evict(how Eviction, nowMs int64, evicted func(db *DB, name []byte)) bool {
	ks.evictDB = (ks.evictDB + 1) % len(ks.dbs)
	if how.By == EvictRandom {
		return ks.evictRandom(how, nowMs, evicted)
	}
	p := &ks.pool
	if p.how.By != how.By || p.how.Volatile != how.Volatile {
		p.count = 0
	}
	p.how = how
	removed := false
	for i := range ks.dbs {
		db := ks.dbs[(ks.evictDB+i)%len(ks.dbs)]
		removed = db.sampleInto(p, nowMs) || removed
	}
	for p.count > 0 && !removed {
		p.count--
		best := &p.keys[p.count]
		if e, ok := best.entry(); ok && best.db.mayGo(e.rec, &how) {
			e.evict(nowMs, evicted)
			removed = true
		}
	}
	return removed
}

// evict removes the key.
func (e *Entry) evict(nowMs int64, evicted func(db *DB, name []byte)) {
	db, hash := e.db, e.hash
	if e.rec.expired(nowMs) {
		db.expire(hash, e.ref, e.rec)
	} else {
		evicted(db, e.rec.name())
		db.mutate(e.rec.name(), changeEvict)
		db.ks.evicted++
		db.releaseObject(e.rec)
		db.remove(hash, e.ref, e.rec)
	}
	db.mergeAround(hash)
	*e = Entry{}
}

// Spare has no key be chosen by Evict whose name begins with the prefix.
func (ks *Keyspace) Spare(prefix string) { ks.spared = append(ks.spared, prefix) }

// mayGo reports whether a key may be chosen.
func (db *DB) mayGo(rec *record, how *Eviction) bool {
	if how.Volatile && rec.expireAt == 0 || db.follow.name != nil && string(rec.name()) == string(db.follow.name) {
		return false
	}
	for _, prefix := range db.ks.spared {
		if name := rec.name(); len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix {
			return false
		}
	}
	return true
}

// evictionScore says how soon a key goes: the higher, the sooner.
func (a *access) evictionScore(rec *record, by EvictBy) uint64 {
	switch by {
	case EvictIdle:
		return uint64(a.idle(rec.access))
	case EvictRare:
		return uint64(maxCount - a.decayed(rec.access)&0xff)
	default:
		return ^uint64(rec.expireAt)
	}
}

// sampleInto compares some keys of the database with those in the pool. A key past its time is removed instead, which it reports.
func (db *DB) sampleInto(p *evictionPool, nowMs int64) (removed bool) {
	if db.keys == 0 || p.how.Volatile && db.expires == 0 {
		return false
	}
	found := 0
	db.eachFrom(db.randomPlace(), p.how.Volatile, &found, func(r ref, rec *record) bool {
		if rec.expired(nowMs) {
			e := Entry{db: db, rec: rec, hash: db.ks.Key(rec.name()).Hash, position: position{ref: r}}
			e.evict(nowMs, nil)
			removed = true
			return false
		}
		if !db.mayGo(rec, &p.how) {
			return true
		}
		found++
		p.offer(pooled{db, db.ks.Key(rec.name()).Hash, r, db.ks.access.evictionScore(rec, p.how.By)})
		return found < p.how.Samples
	})
	return removed
}

// offer puts a key into the pool if it is better than the worst one there, or there is room.
func (p *evictionPool) offer(k pooled) {
	at := p.count
	for ; at > 0 && p.keys[at-1].score >= k.score; at-- {
		if p.keys[at-1] == k {
			return
		}
	}
	switch {
	case p.count < poolSize:
		copy(p.keys[at+1:p.count+1], p.keys[at:p.count])
		p.count++
	case at == 0:
		return
	default:
		at--
		copy(p.keys[:at], p.keys[1:at+1])
	}
	p.keys[at] = k
}

// entry is the key, if it is still there.
func (k *pooled) entry() (e Entry, ok bool) {
	table, home := k.db.entryAt(k.hash).buckets, homeOf(k.hash)
	for n := range tableBuckets {
		b := &table[(home+n)%tableBuckets]
		for i, r := range b.refs {
			if r != k.ref || b.tag(i) != tagOf(k.hash) {
				continue
			}
			rec := k.db.record(r)
			return Entry{db: k.db, rec: rec, hash: k.hash, position: position{ref: r}}, k.db.ks.Key(rec.name()).Hash == k.hash
		}
		if b.overflow == 0 {
			break
		}
	}
	return Entry{}, false
}

// place is a key of a bucket of a database.
type place struct {
	prefix uint32
	bucket int
	turn   int // modulo the number of keys there
}

func (db *DB) randomPlace() place {
	bits := db.ks.access.random.Uint64()
	return place{prefix: uint32(bits) % (1 << dirBits), bucket: int(bits >> 32 % tableBuckets), turn: int(bits >> 48)}
}

// in leaves out the slots before the place, the first time that it is asked.
func (at *place) in(occupied uint32) uint32 {
	if occupied != 0 {
		for skip := at.turn % bits.OnesCount32(occupied); skip > 0; skip-- {
			occupied &= occupied - 1
		}
		at.turn = 0
	}
	return occupied
}

// eachFrom hands the keys from a place on to fn until fn says false, after which the keyspace may have changed, or evictVisits are used up,
// or all keys have been seen. With volatile it passes over tables that have no key with a TTL; where those keys are so few that there is none
// among the first, as found says, it passes over up to evictTables. Buckets it looks into are evictVisits at most in any case, since each of their
// keys costs more than a table that is passed over.
func (db *DB) eachFrom(at place, volatile bool, found *int, fn func(r ref, rec *record) bool) {
	for looked, tables := 0, 0; tables <= len(db.dir); tables++ {
		few := volatile && *found == 0 && tables < evictTables
		if looked >= evictVisits || looked+tables >= evictVisits && !few {
			return
		}
		t := db.dir[at.prefix>>db.dirShift].table
		if t.timed > 0 || !volatile && t.count > 0 {
			for ; at.bucket < tableBuckets; at.bucket++ {
				looked++
				b := &t.buckets[at.bucket]
				for m := at.in(b.occupied()); m != 0; m &= m - 1 {
					r := b.refs[bits.TrailingZeros32(m)]
					if !fn(r, db.record(r)) {
						return
					}
				}
			}
		}
		at = place{prefix: (t.prefix + 1<<(dirBits-t.depth)) % (1 << dirBits)}
	}
}

// evictRandom is Evict by EvictRandom, which takes databases in turn.
func (ks *Keyspace) evictRandom(how Eviction, nowMs int64, evicted func(db *DB, name []byte)) (removed bool) {
	for i := range ks.dbs {
		db := ks.dbs[(ks.evictDB+i)%len(ks.dbs)]
		if db.keys == 0 || how.Volatile && db.expires == 0 {
			continue
		}
		var chosen ref
		found, skip := 0, ks.access.random.IntN(bucketSlots)
		db.eachFrom(db.randomPlace(), how.Volatile, &found, func(r ref, rec *record) bool {
			if !db.mayGo(rec, &how) {
				return true
			}
			chosen = r
			found++
			return found <= skip
		})
		if chosen != 0 {
			rec := db.record(chosen)
			e := Entry{db: db, rec: rec, hash: ks.Key(rec.name()).Hash, position: position{ref: chosen}}
			e.evict(nowMs, evicted)
			return true
		}
	}
	return false
}
