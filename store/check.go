package store

import (
	"fmt"
	"math/bits"
)

// Check looks at every key and returns an error if what the keyspace keeps count of is not what is there: keys, TTLs, where each key is,
// memory. It is for tests, and takes as long as a walk over everything.
func (ks *Keyspace) Check() error {
	ks.measureAll()
	arena, objects := uint64(0), 0
	for i, db := range ks.dbs {
		if err := db.check(); err != nil {
			return fmt.Errorf("database %d: %w", i, err)
		}
		arena += db.arena.used
		objects += db.objects.bytes
	}
	if arena != ks.arenas.used || objects != ks.objectBytes {
		return fmt.Errorf("%d and %d bytes are in use, counted as %d and %d", arena, objects, ks.arenas.used, ks.objectBytes)
	}
	return nil
}

// found is what a walk over a database has come upon.
type found struct {
	keys, expires, objects int
	arena                  uint64 // bytes of blocks
}

func (db *DB) check() error {
	var sum found
	for i := 0; i < len(db.dir); {
		t := db.dir[i].table
		if db.dir[i].buckets != t.buckets || int(t.prefix>>db.dirShift) != i {
			return fmt.Errorf("entry %d of the directory is another table's", i)
		}
		i += 1 << (db.depth - t.depth)
		if t.ref != 0 {
			sum.arena += uint64(classSize(classFor(tableBytes)))
		}
		before := sum.keys
		if err := db.checkTable(t, &sum); err != nil {
			return err
		}
		if sum.keys-before != t.count {
			return fmt.Errorf("a table has %d keys and counts %d", sum.keys-before, t.count)
		}
	}
	if counted := (found{db.keys, db.expires, db.objects.len(), db.arena.used}); sum != counted {
		return fmt.Errorf("there are %+v, counted as %+v", sum, counted)
	}
	bytes := 0
	for i := range db.objects.slots {
		slot := &db.objects.slots[i]
		if slot.object == nil {
			continue
		}
		if n := slot.object.memory(); n != slot.bytes {
			return fmt.Errorf("a value takes up %d bytes, measured as %d", n, slot.bytes)
		}
		bytes += slot.bytes
	}
	if bytes != db.objects.bytes {
		return fmt.Errorf("values take up %d bytes, counted as %d", bytes, db.objects.bytes)
	}
	return nil
}

func (db *DB) checkTable(t *table, sum *found) error {
	timed := 0
	for i := range t.buckets {
		b := &t.buckets[i]
		for m := b.occupied(); m != 0; m &= m - 1 {
			r := b.refs[bits.TrailingZeros32(m)]
			rec := db.record(r)
			k := db.ks.Key(rec.name())
			if _, _, same := db.lookup(k); same != rec {
				return fmt.Errorf("the key %.100q is not found where it is", rec.name())
			}
			if err := db.checkRecord(rec, r, sum); err != nil {
				return fmt.Errorf("the key %.100q: %w", rec.name(), err)
			}
			if rec.expireAt == 0 {
				continue
			}
			if timed++; rec.expireAt < t.minExpire-int64(t.grace) {
				return fmt.Errorf("the key %.100q expires before the first of its table", rec.name())
			}
		}
	}
	if timed != t.timed {
		return fmt.Errorf("a table has %d keys with a TTL, counted as %d", timed, t.timed)
	}
	return nil
}

func (db *DB) checkRecord(rec *record, r ref, sum *found) error {
	sum.keys++
	if rec.expireAt != 0 {
		sum.expires++
	}
	switch {
	case rec.enc.kind() == KindNone:
		return fmt.Errorf("encoding %d", rec.enc)
	case rec.enc.isObject():
		sum.objects++
		if rec.word >= uint64(len(db.objects.slots)) || db.objects.at(rec.word) == nil {
			return fmt.Errorf("no value %d", rec.word)
		}
	}
	size := recordSize(int(rec.keyLen), rec.payloadLen())
	if rec.class == hugeClass {
		sum.arena += uint64(db.arena.huge[uint32(r>>chunkShift)])
		return nil
	}
	if int(classSize(rec.class)) < size {
		return fmt.Errorf("%d bytes in a block of %d", size, classSize(rec.class))
	}
	sum.arena += uint64(classSize(rec.class))
	return nil
}
