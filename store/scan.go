package store

import (
	"math"
	"math/bits"
)

// A cursor of Scan is a place in the order of hashes: the table's prefix, how deep the table was, and the home bucket
// that comes next. Keys are reported by home bucket, not by where they live, because a home is a property of the hash
// alone. A table that has split since is gone on with in its first half, at the same bucket, and then in its second, from
// the start; one that has been merged with its buddy begins again.
//
//	bit 36           12        7         0
//	     prefix (24) | depth (5) | bucket (7)
//
// A cursor is below 1<<36, so that it is exact where numbers are floating point. It is 0 only for the start and the
// end: after the start either the bucket or the prefix has moved on.
type cursor struct {
	prefix uint32
	depth  uint8
	bucket int
}

const (
	cursorDepthShift  = 7
	cursorPrefixShift = 12
	scanBucketsPerKey = 10 // buckets that a call of Scan may pass for each key that it is to report
)

// unpackCursor accepts any number, since clients send what they like.
func unpackCursor(c uint64) cursor {
	return cursor{
		prefix: uint32(c>>cursorPrefixShift) % (1 << dirBits),
		depth:  uint8(c>>cursorDepthShift) % 32,
		bucket: int(c % tableBuckets),
	}
}

func (c cursor) pack() uint64 {
	return uint64(c.prefix)<<cursorPrefixShift | uint64(c.depth)<<cursorDepthShift | uint64(c.bucket)
}

// Scan goes on from a cursor, 0 for the start, and returns the one to go on from, 0 at the end. It calls fn for about
// count keys (at least 1): more when many share a bucket, fewer where the tables are sparse; a database of fewer than count
// keys in one table is shown in one call. Keys past their time at now (Unix milliseconds) are passed over. A key that is
// there from the first call to the last is shown at least once, whatever else changes between calls, and may be shown
// again. fn may not change the keyspace nor keep the Entry.
func (db *DB) Scan(from uint64, now int64, count int, fn func(e *Entry)) (next uint64) {
	c := unpackCursor(from)
	count = min(max(count, 1), math.MaxInt/scanBucketsPerKey)
	reported := 0
	for passed := 0; reported < count && passed < max(count*scanBucketsPerKey, tableBuckets); passed++ {
		t := db.dir[c.prefix>>db.dirShift].table
		if c.depth > t.depth {
			c.bucket = 0
		}
		c.prefix, c.depth = t.prefix, t.depth
		reported += db.eachAtHome(t, c.bucket, now, fn)
		c.bucket++
		if c.bucket < tableBuckets {
			continue
		}
		c.bucket = 0
		c.prefix += 1 << (dirBits - t.depth)
		if c.prefix == 1<<dirBits {
			return 0
		}
	}
	return c.pack()
}

// eachAtHome calls fn for the table's live keys whose home is the given bucket, and returns how many keys have it.
func (db *DB) eachAtHome(t *table, home int, now int64, fn func(e *Entry)) (found int) {
	for n := range tableBuckets {
		b := &t.buckets[(home+n)%tableBuckets]
		for m := b.occupied(); m != 0; m &= m - 1 {
			r := b.refs[bits.TrailingZeros32(m)]
			rec := db.record(r)
			hash := db.ks.Key(rec.name()).Hash
			if homeOf(hash) != home {
				continue
			}
			found++
			if !rec.expired(now) {
				fn(&Entry{db: db, rec: rec, hash: hash, position: position{ref: r}})
			}
		}
		if b.overflow == 0 {
			break
		}
	}
	return found
}

// Each calls fn for every key that is alive at now (Unix milliseconds), in no order, until fn returns false. fn may not
// change the keyspace nor keep the Entry, which is the same one each time, without its hash.
func (db *DB) Each(now int64, fn func(e *Entry) bool) {
	e := &Entry{db: db}
	var alive [bucketSlots]*record
	for i := 0; i < len(db.dir); {
		t := db.dir[i].table
		i += 1 << (db.depth - t.depth)
		for j := range t.buckets {
			b := &t.buckets[j]
			var found uint32
			for rest := b.occupied(); rest != 0; rest &= rest - 1 { // all records of a bucket are looked at together, so that their cache misses overlap
				slot := bits.TrailingZeros32(rest)
				if alive[slot] = db.record(b.refs[slot]); !alive[slot].expired(now) {
					found |= 1 << slot
				}
			}
			for ; found != 0; found &= found - 1 {
				slot := bits.TrailingZeros32(found)
				e.rec, e.ref = alive[slot], b.refs[slot]
				if !fn(e) {
					return
				}
			}
		}
	}
}
