package store

import (
	"hash/maphash"
	"math"
	"math/bits"
	"unsafe"
)

// The index of a database is an extendible hash table (Fagin, Nievergelt, Pippenger, Strong, 1979): a directory over
// the top bits of the hash, of tables of fixed size. A table that is full splits in two, so no growth ever moves more
// than splitAt keys at once. Inside a table the low bits of the hash name a home bucket, a cache line of tags and refs;
// a key whose home is full lives in a later bucket, and each bucket counts the keys that passed it by (as Folly's F14
// does), so that a search knows where to stop and a removal leaves nothing behind.
const (
	bucketSlots  = 12
	tableBuckets = 128
	tableSlots   = bucketSlots * tableBuckets
	tableBytes   = tableBuckets * 64
	splitAt      = tableSlots * 85 / 100 // keys at which a table splits
	mergeAt      = tableSlots * 25 / 100 // keys that two buddies may have together to become one
	dirBits      = 24                    // top bits of the hash that the directory can use
	touchBuckets = 3                     // buckets that TouchRecord looks into
	never        = math.MaxInt64         // the expiry of what has none
)

// bucket is one cache line: a tag of 8 hash bits for each slot, 0 where the slot is free, and the records' refs.
type bucket struct {
	tagsLow  uint64  // slots 0 to 7
	tagsHigh uint32  // slots 8 to 11
	overflow uint16  // keys that live in a later bucket and whose home is this one or an earlier one
	visited  visited // which keys here the last snapshot need not visit
	refs     [bucketSlots]ref
}

type buckets [tableBuckets]bucket

// table is what is known of one table beside its buckets, which are in the arena.
type table struct {
	buckets   *buckets
	ref       ref    // of the buckets; 0 for the table of a database without keys
	prefix    uint32 // top dirBits of the lowest hash that belongs here
	depth     uint8  // how many of them all the hashes here share
	grace     uint16 // how much of minExpire may be what sweeps leave to integers, in ms
	count     int    // keys
	timed     int    // those of them with a TTL
	minExpire int64  // when the next key here is due: none expires earlier by more than grace
	minSince  int64  // no expiry that was set here since the sweep of the table began is earlier
	round     uint64 // of the snapshots that the buckets know of
}

// dirEntry is one entry of the directory. The address of the buckets is repeated here to save a search one load.
type dirEntry struct {
	buckets *buckets
	table   *table
}

// tagOf is the tag of a hash: 8 of the bits that choose neither table nor bucket, 0 excepted.
func tagOf(hash uint64) uint8 { return max(uint8(hash>>8), 1) }

// homeOf is the bucket where the search for a hash begins.
func homeOf(hash uint64) int { return int(hash % tableBuckets) }

// prefixOf is the part of a hash that the directory may look at.
func prefixOf(hash uint64) uint32 { return uint32(hash >> (64 - dirBits)) }

const (
	lowBytes  = 0x0101010101010101
	highBits  = 0x8080808080808080
	slot8High = 0x80808080 // highBits of the four tags in tagsHigh
)

// zeroBytes has the high bit set of exactly the bytes of x that are 0.
func zeroBytes(x uint64) uint64 {
	return ^((x&^highBits + ^uint64(highBits)) | x) & highBits
}

// gatherHighBits packs the high bits of the eight bytes of x into the low byte.
func gatherHighBits(x uint64) uint32 { return uint32(x & highBits * 0x0002040810204081 >> 56) }

// occupied has a bit set for each slot in use.
func (b *bucket) occupied() uint32 {
	low := gatherHighBits(^zeroBytes(b.tagsLow))
	high := gatherHighBits(^zeroBytes(uint64(b.tagsHigh)))
	return low | high<<8&(1<<bucketSlots-1)
}

// free is the first slot that is not in use, bucketSlots if there is none.
func (b *bucket) free() int { return bits.TrailingZeros32(^b.occupied()) }

// tag is the tag of slot i.
func (b *bucket) tag(i int) uint8 {
	if i < 8 {
		return uint8(b.tagsLow >> (8 * i))
	}
	return uint8(b.tagsHigh >> (8 * (i - 8)))
}

// put fills the free slot i.
func (b *bucket) put(i int, tag uint8, r ref) {
	if i < 8 {
		b.tagsLow |= uint64(tag) << (8 * i)
	} else {
		b.tagsHigh |= uint32(tag) << (8 * (i - 8))
	}
	b.refs[i] = r
}

// clear frees slot i.
func (b *bucket) clear(i int) {
	if i < 8 {
		b.tagsLow &^= 0xff << (8 * i)
	} else {
		b.tagsHigh &^= 0xff << (8 * (i - 8))
	}
	b.refs[i] = 0
}

// entryAt is the directory's entry for a hash.
func (db *DB) entryAt(hash uint64) *dirEntry {
	return &db.dir[prefixOf(hash)>>(db.dirShift%32)]
}

// lookup finds the key's bucket, slot and record; the record is nil when the key is not there. It is where the time of
// a command goes: one load from the directory, one cache line of the bucket, and the record.
func (db *DB) lookup(k Key) (b *bucket, slot int, rec *record) {
	table := db.entryAt(k.Hash).buckets
	pattern := uint64(tagOf(k.Hash)) * lowBytes
	home := homeOf(k.Hash)
	for n := range tableBuckets {
		b = &table[(home+n)%tableBuckets]
		for m := zeroBytes(b.tagsLow ^ pattern); m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m) / 8
			if rec = db.record(b.refs[i]); rec.hasName(k.Name) {
				return b, i, rec
			}
		}
		for m := uint32(zeroBytes(uint64(b.tagsHigh)^pattern)) & slot8High; m != 0; m &= m - 1 {
			i := 8 + bits.TrailingZeros32(m)/8%4
			if rec = db.record(b.refs[i]); rec.hasName(k.Name) {
				return b, i, rec
			}
		}
		if b.overflow == 0 {
			break
		}
	}
	return nil, 0, nil
}

// TouchBucket loads what a search for the hash reads first. Called for the keys of many commands in a row, before the
// first is executed, it lets the processor wait for all the cache misses at once. The result means nothing; it is
// there so that the load stays.
func (db *DB) TouchBucket(hash uint64) uint64 {
	return db.entryAt(hash).buckets[homeOf(hash)].tagsLow
}

// TouchRecord does the same for the record, both ends of it where it is of the commonest size, which a cache line may
// part; call it after TouchBucket has been called for the same batch.
func (db *DB) TouchRecord(hash uint64) uint64 {
	table := db.entryAt(hash).buckets
	pattern := uint64(tagOf(hash)) * lowBytes
	home := homeOf(hash)
	for n := range touchBuckets {
		b := &table[(home+n)%tableBuckets]
		if m := zeroBytes(b.tagsLow ^ pattern); m != 0 {
			return db.arena.touch(b.refs[bits.TrailingZeros64(m)/8])
		}
		if m := uint32(zeroBytes(uint64(b.tagsHigh)^pattern)) & slot8High; m != 0 {
			return db.arena.touch(b.refs[8+bits.TrailingZeros32(m)/8%4])
		}
		if b.overflow == 0 {
			break
		}
	}
	return 0
}

// place puts a key's ref into the first free slot from its home on. The table must have one.
func (t *table) place(hash uint64, r ref) {
	for p := homeOf(hash); ; p = (p + 1) % tableBuckets {
		b := &t.buckets[p]
		if slot := b.free(); slot < bucketSlots {
			b.put(slot, tagOf(hash), r)
			return
		}
		b.overflow++
	}
}

// vacancy is where place would put a key.
func (t *table) vacancy(hash uint64) (b *bucket, slot int) {
	for p := homeOf(hash); ; p = (p + 1) % tableBuckets {
		b = &t.buckets[p]
		if slot = b.free(); slot < bucketSlots {
			return b, slot
		}
	}
}

// find is the bucket number and slot of a ref that is in the table.
func (t *table) find(hash uint64, r ref) (bucket, slot int) {
	home, tag := homeOf(hash), tagOf(hash)
	for n := range tableBuckets {
		p := (home + n) % tableBuckets
		b := &t.buckets[p]
		for i := range b.refs {
			if b.refs[i] == r && b.tag(i) == tag {
				return p, i
			}
		}
		if b.overflow == 0 {
			break
		}
	}
	panic("store: a key is not where its hash says")
}

// unplace takes a ref out.
func (t *table) unplace(hash uint64, r ref) {
	bucket, slot := t.find(hash, r)
	t.buckets[bucket].clear(slot)
	for p := homeOf(hash); p != bucket; p = (p + 1) % tableBuckets {
		t.buckets[p].overflow--
	}
}

// relocate notes that a record has moved.
func (db *DB) relocate(hash uint64, from, to ref) {
	t := db.entryAt(hash).table
	bucket, slot := t.find(hash, from)
	t.buckets[bucket].refs[slot] = to
}

// resetTables makes the index that of a database without keys. Its buckets in the arena are gone already.
func (db *DB) resetTables() {
	db.dir = []dirEntry{{&db.ks.empty, &table{buckets: &db.ks.empty, minExpire: never, minSince: never}}}
	db.dirShift, db.depth = dirBits, 0
	db.atDepth = [dirBits + 1]int{}
	db.keys, db.expires = 0, 0
	db.sweep = sweep{}
	db.tally = tally{}
}

// giveBuckets gives a table empty buckets from the arena.
func (db *DB) giveBuckets(t *table) {
	t.ref = db.arena.alloc(classFor(tableBytes))
	t.buckets, t.round = (*buckets)(db.arena.at(t.ref)), db.ks.round()
	*t.buckets = buckets{}
	if s := db.ks.snapshot; s != nil {
		t.buckets.mark(s.epoch | visitedAll)
	}
}

// tableWithRoom is the table that a new key with this hash goes to.
func (db *DB) tableWithRoom(hash uint64) *table {
	t := db.entryAt(hash).table
	if t.ref == 0 {
		db.giveBuckets(t)
		db.dir[0].buckets = t.buckets
		db.atDepth[0]++
	}
	for t.count >= splitAt {
		db.split(t)
		t = db.entryAt(hash).table
	}
	return t
}

// split divides a table between itself, for the lower half of its hashes, and a new one.
func (db *DB) split(t *table) {
	if s := db.ks.snapshot; s != nil {
		s.visitTable(&db.contents, t)
	}
	if t.depth == db.depth {
		db.growDir()
	}
	old := &db.ks.scratch
	*old = *t.buckets
	for i := range t.buckets {
		t.buckets[i] = bucket{visited: old[i].visited}
	}
	db.atDepth[t.depth]--
	t.depth++
	db.atDepth[t.depth] += 2
	upper := &table{prefix: t.prefix | 1<<(dirBits-t.depth), depth: t.depth}
	db.giveBuckets(upper)
	db.pointTo(upper)
	db.sweep.forget(t)

	t.count, t.timed, t.minExpire, t.minSince, t.grace = 0, 0, never, never, 0
	upper.minExpire, upper.minSince = never, never
	db.touchAll(old)
	for i := range old {
		b := &old[i]
		for m := b.occupied(); m != 0; m &= m - 1 {
			r := b.refs[bits.TrailingZeros32(m)]
			rec := db.record(r)
			hash := maphash.Bytes(db.ks.seed, rec.name())
			half := t
			if prefixOf(hash) >= upper.prefix {
				half = upper
			}
			half.place(hash, r)
			half.count++
			if rec.expireAt != 0 {
				half.timed++
				half.minExpire = min(half.minExpire, rec.expireAt)
			}
		}
	}
}

// touchAll loads the records of all keys, so that the cache misses overlap instead of following one another.
func (c *contents) touchAll(t *buckets) (sum uint64) {
	for i := range t {
		sum += c.touchSlots(&t[i], t[i].occupied())
	}
	return sum
}

// touchSlots does the same for some slots of one bucket.
func (c *contents) touchSlots(b *bucket, slots uint32) (sum uint64) {
	for m := slots; m != 0; m &= m - 1 {
		sum += c.arena.touch(b.refs[bits.TrailingZeros32(m)])
	}
	return sum
}

// mergeAround merges the table of a hash with its buddy, the table that shares all but the last bit of its prefix, as
// long as the two have few keys together. It is called after removals, when no table is in anybody's hands.
func (db *DB) mergeAround(hash uint64) {
	for {
		t := db.entryAt(hash).table
		if t.count > mergeAt || t.depth == 0 {
			return
		}
		buddy := db.dir[(t.prefix^1<<(dirBits-t.depth))>>db.dirShift].table
		if buddy.depth != t.depth || t.count+buddy.count > mergeAt {
			return
		}
		if buddy.prefix < t.prefix {
			t, buddy = buddy, t
		}
		db.merge(t, buddy)
	}
}

// merge moves the keys of the upper of two buddies into the lower and frees the upper.
func (db *DB) merge(lower, upper *table) {
	if s := db.ks.snapshot; s != nil {
		s.visitTable(&db.contents, lower)
		s.visitTable(&db.contents, upper)
	}
	db.sweep.forget(lower)
	db.sweep.forget(upper)
	db.touchAll(upper.buckets)
	for i := range upper.buckets {
		b := &upper.buckets[i]
		for m := b.occupied(); m != 0; m &= m - 1 {
			r := b.refs[bits.TrailingZeros32(m)]
			lower.place(maphash.Bytes(db.ks.seed, db.record(r).name()), r)
		}
	}
	lower.count += upper.count
	lower.timed += upper.timed
	lower.minExpire, lower.grace = min(lower.minExpire, upper.minExpire), max(lower.grace, upper.grace)
	db.atDepth[lower.depth] -= 2
	lower.depth--
	db.atDepth[lower.depth]++
	db.pointTo(lower)
	db.arena.free(upper.ref, classFor(tableBytes))
	for db.depth > 0 && db.atDepth[db.depth] == 0 {
		db.shrinkDir()
	}
}

// pointTo makes the directory's entries for the table's hashes point to it.
func (db *DB) pointTo(t *table) {
	first := t.prefix >> db.dirShift
	for i := range uint32(1) << (db.depth - t.depth) {
		db.dir[first+i] = dirEntry{t.buckets, t}
	}
}

// growDir doubles the directory.
func (db *DB) growDir() {
	if db.depth == dirBits {
		panic("store: the key index has reached its largest size")
	}
	dir := make([]dirEntry, 2*len(db.dir))
	for i, e := range db.dir {
		dir[2*i], dir[2*i+1] = e, e
	}
	db.dir = dir
	db.depth++
	db.dirShift--
}

// shrinkDir halves the directory. No table may need the last bit.
func (db *DB) shrinkDir() {
	dir := make([]dirEntry, len(db.dir)/2)
	for i := range dir {
		dir[i] = db.dir[2*i]
	}
	db.dir = dir
	db.depth--
	db.dirShift++
}

var _ [tableBytes - unsafe.Sizeof(buckets{})]byte
var _ [unsafe.Sizeof(buckets{}) - tableBytes]byte
