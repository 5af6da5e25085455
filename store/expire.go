package store

import "math/bits"

// MaxGrace is for how long ExpireSlice leaves integers in their places at most, in milliseconds.
const MaxGrace = 250

// sweep is how far the removal of expired keys has come in a database.
type sweep struct {
	prefix uint32 // of the table that comes next, or that is being swept
	table  *table // being swept; nil between tables
	bucket int    // next bucket of that table
	min    int64  // when the first of the keys that stayed is due
	grace  int64  // the longest that is a part of that
}

// forget makes the sweep begin the table anew, because its keys are about to move.
func (s *sweep) forget(t *table) {
	if s.table == t {
		s.table = nil
	}
}

// expire removes a key whose time has passed. The caller calls mergeAround when it holds no table any more.
func (db *DB) expire(hash uint64, r ref, rec *record) {
	db.mutate(rec.name(), changeExpire)
	db.ks.expired++
	if db.ks.onExpired != nil {
		db.ks.onExpired(db, rec.name())
	}
	db.releaseObject(rec)
	db.remove(hash, r, rec)
}

// found removes a key that was looked for and whose time has passed, unless such keys are to stay.
func (db *DB) found(hash uint64, r ref, rec *record) {
	if !db.ks.keepsExpired {
		db.expire(hash, r, rec)
		db.mergeAround(hash)
	}
}

// KeepExpired has keys past their time that are looked for stay where they are, until it is called with false; they count as absent all the
// same. It returns what held before. No key may be added to the keyspace meanwhile, since the name may be one that has stayed, unless whoever adds
// it has looked for it at a time at which none had expired; and ExpireSlice and Evict, which remove keys all the same, may not be called.
func (ks *Keyspace) KeepExpired(keep bool) (before bool) {
	before, ks.keepsExpired = ks.keepsExpired, keep
	return before
}

// ExpireSlice removes keys past their time (nowMs, Unix milliseconds), as a hand that goes round all databases and
// stops after about maxVisits steps: a step is a key looked at, an empty bucket, or a table passed over because none of its
// keys is due. It ends earlier when it has been all the way round. It returns the steps taken and the keys removed. An integer stays for grace
// milliseconds more, MaxGrace at most: a limiter's is mostly called again soon, and FindToSet then finds its place. Where it finds none, there is no
// grace either.
func (ks *Keyspace) ExpireSlice(nowMs, grace int64, maxVisits int) (visited, expired int) {
	grace = min(grace, MaxGrace)
	ks.retired.unmap(sliceUnmapBytes)
	for turns := 0; visited < maxVisits && turns <= len(ks.dbs); turns++ {
		v, x, done := ks.dbs[ks.hand].sweepTables(nowMs, grace, maxVisits-visited)
		visited += v
		expired += x
		if !done {
			break
		}
		if ks.hand = (ks.hand + 1) % len(ks.dbs); ks.hand == 0 {
			ks.sweeps++
		}
	}
	return visited, expired
}

// Sweeps counts how often ExpireSlice has been through all databases.
func (ks *Keyspace) Sweeps() uint64 { return ks.sweeps }

// Retired returns the bytes of memory that nothing uses any more and that ExpireSlice has still to give back.
func (ks *Keyspace) Retired() uint64 { return ks.retired.bytes }

// sweepTables goes on with the database's sweep. done means that its last table has been passed.
func (db *DB) sweepTables(now, grace int64, maxVisits int) (visited, expired int, done bool) {
	s := &db.sweep
	if !db.renews() {
		grace = 0
	}
	for visited < maxVisits {
		if db.expires == 0 {
			*s = sweep{}
			return visited, expired, true
		}
		t := db.dir[s.prefix>>db.dirShift].table
		if s.table == nil {
			s.prefix = t.prefix
			if t.minExpire-max(int64(t.grace)-grace, 0) >= now {
				visited++
				if s.advance(t) {
					return visited, expired, true
				}
				continue
			}
			s.table, s.bucket, s.min, s.grace = t, 0, never, 0
			t.minSince = never
		}
		s.grace = max(s.grace, grace)
		for s.bucket < tableBuckets && visited < maxVisits {
			v, x := db.sweepBucket(&t.buckets[s.bucket], now, grace)
			visited += max(v, 1)
			expired += x
			s.bucket++
		}
		if s.bucket < tableBuckets {
			break
		}
		t.minExpire, t.grace = min(s.min, t.minSince), uint16(s.grace)
		last := s.advance(t)
		db.mergeAround(uint64(t.prefix) << (64 - dirBits))
		if last {
			return visited, expired, true
		}
	}
	return visited, expired, false
}

// advance goes on behind a table, and reports whether it was the last.
func (s *sweep) advance(t *table) bool {
	s.table = nil
	s.prefix = (t.prefix + 1<<(dirBits-t.depth)) % (1 << dirBits)
	return s.prefix == 0
}

// sweepBucket removes the bucket's keys that are past their time. It loads all of its records before it removes the
// first, so that the cache misses overlap.
func (db *DB) sweepBucket(b *bucket, now, grace int64) (visited, expired int) {
	var due uint32
	for m := b.occupied(); m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		rec := db.record(b.refs[i])
		visited++
		at := rec.expireAt
		if at == 0 {
			continue
		}
		if rec.enc == encInt {
			at += min(grace, never-at)
		}
		if at < now {
			due |= 1 << i
		} else {
			db.sweep.min = min(db.sweep.min, at)
		}
	}
	for ; due != 0; due &= due - 1 {
		r := b.refs[bits.TrailingZeros32(due)]
		rec := db.record(r)
		db.expire(db.ks.Key(rec.name()).Hash, r, rec)
		expired++
	}
	return visited, expired
}
