package store

// Entry is a key that is there. It is a small value to keep on the stack: the methods that change the key go
// through it, and it follows the key when that moves in memory. It is valid until the keyspace changes by any other
// way than through this Entry; after Delete only the zero Entry is left.
type Entry struct {
	db   *DB
	rec  *record
	hash uint64
	position
}

// position is a part of an Entry: with no more than four fields the compiler moves an Entry in registers. Otherwise it goes through memory,
// written by the word and read by the pair of words, for which the processor has to wait.
type position struct {
	ref     ref
	mutated bool // the gate has been passed for the operation this Entry belongs to
}

// Find is the key k if it is there at now (Unix milliseconds). A key past its time is removed, counted as expired, and
// not there; see KeepExpired. Finding a key is a use of it. The search allocates nothing.
func (db *DB) Find(k Key, now int64) (Entry, bool) {
	b, i, rec := db.lookup(k)
	if rec == nil {
		return Entry{}, false
	}
	if rec.expired(now) {
		db.found(k.Hash, b.refs[i], rec)
		return Entry{}, false
	}
	if rec.access != db.ks.access.stamp {
		db.ks.touch(rec)
	}
	return Entry{db: db, rec: rec, hash: k.Hash, position: position{ref: b.refs[i]}}, true
}

// FindToSet is Find for one who may be about to make the key an integer. A key past its time that is one is not there either, but the Entry is
// that of the old key, for Lapse and Renew, where nobody could tell that from a new key. IsZero tells.
func (db *DB) FindToSet(k Key, now int64) (Entry, bool) {
	b, i, rec := db.lookup(k)
	if rec == nil {
		return Entry{}, false
	}
	alive := !rec.expired(now)
	if !alive && (rec.enc != encInt || !db.renews() || db.ks.reserved.may(k.Name)) {
		db.found(k.Hash, b.refs[i], rec)
		return Entry{}, false
	}
	if alive && rec.access != db.ks.access.stamp {
		db.ks.touch(rec)
	}
	return Entry{db: db, rec: rec, hash: k.Hash, position: position{ref: b.refs[i]}}, alive
}

// renews reports whether nobody could tell writing over an expired key from its removal and the creation of a new one.
func (db *DB) renews() bool {
	ks := db.ks
	return !ks.keepsExpired && ks.observer == nil && ks.snapshot == nil && db.awaited.Len() == 0
}

// Lapse counts a key past its time, as FindToSet has left it, as expired. Renew is to follow. [Keyspace.OnExpired] is not told, since the caller says
// what the key is then.
func (e *Entry) Lapse() {
	e.db.mutate(e.rec.name(), changeExpire)
	e.db.ks.expired++
}

// Renew makes a key that has lapsed a new one that holds v until a time (Unix milliseconds).
func (e *Entry) Renew(v, expireAt int64) {
	e.mutate()
	e.rec.access, e.rec.word = e.db.ks.access.fresh, uint64(v)
	e.db.setExpire(e.rec, e.hash, expireAt)
}

// IsZero reports whether there is no key.
func (e *Entry) IsZero() bool { return e.rec == nil }

// Look is Find, but no use of the key: for those who ask about a key and not for its value.
func (db *DB) Look(k Key, now int64) (Entry, bool) {
	e, ok := db.Peek(k)
	if ok && e.rec.expired(now) {
		db.found(k.Hash, e.ref, e.rec)
		return Entry{}, false
	}
	return e, ok
}

// Peek is Find without a clock: it also finds a key past its time, and changes nothing.
func (db *DB) Peek(k Key) (Entry, bool) {
	b, i, rec := db.lookup(k)
	if rec == nil {
		return Entry{}, false
	}
	return Entry{db: db, rec: rec, hash: k.Hash, position: position{ref: b.refs[i]}}, true
}

// Kind is the type of the value.
func (e *Entry) Kind() Kind { return e.rec.enc.kind() }

// Name is the key. It aliases the arena and is valid as long as the Entry.
func (e *Entry) Name() []byte { return e.rec.name() }

// ExpireAt is the last millisecond (Unix) at which the key is alive, or 0 when it has no TTL.
func (e *Entry) ExpireAt() int64 { return e.rec.expireAt }

// SetExpireAt sets the last millisecond (Unix) at which the key is alive; 0 takes the TTL away. A time that has passed
// is accepted: the key is then removed when it is next found.
func (e *Entry) SetExpireAt(at int64) {
	e.mutate()
	e.db.setExpire(e.rec, e.hash, at)
}

// Delete removes the key and leaves the zero Entry.
func (e *Entry) Delete() {
	e.mutate()
	db, hash := e.db, e.hash
	db.releaseObject(e.rec)
	db.remove(hash, e.ref, e.rec)
	db.mergeAround(hash)
	*e = Entry{}
}

// embstrMax is the longest string that OBJECT ENCODING calls embstr.
const embstrMax = 44

// Encoding is the word OBJECT ENCODING answers with.
func (e *Entry) Encoding() string {
	switch e.rec.enc {
	case encInt:
		return "int"
	case encBytes:
		if e.rec.used() <= embstrMax && e.rec.word&wordGrown == 0 {
			return "embstr"
		}
		return "raw"
	case encBigString:
		if big := e.object().(*bigString); len(big.data) <= embstrMax && !big.grown {
			return "embstr"
		}
		return "raw"
	case encPackedHash, encPackedZSet:
		return "listpack"
	case encHash, encPackedSet, encSet:
		return "hashtable"
	case encIntSet:
		return "intset"
	case encPackedList, encList:
		return "quicklist"
	case encStream:
		return "stream"
	default:
		return "skiplist"
	}
}

// mutate passes the gate for writes (see DB.mutate) the first time it is called on this Entry. Every method that
// changes the key calls it just before the first change.
func (e *Entry) mutate() {
	if !e.mutated {
		e.mutated = true
		e.db.mutate(e.rec.name(), changeWrite)
		if e.rec.enc.isObject() {
			e.db.noteChange(e.rec.word)
		}
	}
}

// create adds a key that must not exist, with an empty payload and no TTL. It passes the gate.
func (db *DB) create(k Key, enc encoding) Entry {
	db.mutate(k.Name, changeWrite)
	rec, r := db.insert(k, enc, 0)
	return Entry{db: db, rec: rec, hash: k.Hash, position: position{ref: r, mutated: true}}
}

// packed is the payload in use. It aliases the arena.
func (e *Entry) packed() []byte { return e.rec.payload(e.rec.used()) }

// count is the number of elements that setCount has noted for a packed value.
func (e *Entry) count() int { return int(e.rec.word >> 32) }

// setCount notes the number of elements of a packed value.
func (e *Entry) setCount(n int) { e.rec.word = e.rec.word&0xffffffff | uint64(n)<<32 }

// resizePacked makes the payload n bytes long, keeps what fits of its prefix, and returns it; bytes beyond the prefix
// are undefined. The record may move, which invalidates earlier slices of the payload and the name.
// n must not be above maxPacked unless it shrinks the payload.
func (e *Entry) resizePacked(n int) []byte {
	rec := e.rec
	used := rec.used()
	class := classFor(recordSize(int(rec.keyLen), n))
	if class == hugeClass && n > used {
		panic("store: packed value grows past the largest block")
	}
	if class != rec.class && (n > used || e.db.arena.spares(class)) {
		e.move(class, min(used, n))
		rec = e.rec
	}
	rec.setUsed(n)
	return rec.payload(n)
}

// maxPacked is the largest payload that the arena's classes can hold beside this key's name, in bytes; it is 0 for a
// name that fills a block by itself.
func (e *Entry) maxPacked() int {
	return max(0, maxBlock-recordSize(int(e.rec.keyLen), 0))
}

// object is the value on the Go heap. Only for encodings that have one.
func (e *Entry) object() object { return e.db.objects.at(e.rec.word) }

// toObject replaces the payload by obj, which enc says how to read; the record shrinks to its head and key.
// A value that is an object already is replaced.
func (e *Entry) toObject(enc encoding, obj object) {
	e.db.releaseObject(e.rec)
	class := classFor(recordSize(int(e.rec.keyLen), 0))
	if class != e.rec.class {
		e.move(class, 0)
	}
	e.rec.enc = enc
	e.rec.word = e.db.addObject(obj)
}

// move puts the record into a block of another class, with its head, key and the first keep bytes of its payload.
// Only a shrinking record ever leaves or keeps a mapping of its own; see resizePacked.
func (e *Entry) move(class uint8, keep int) {
	db, old, from := e.db, e.rec, e.ref
	to := db.arena.alloc(class)
	rec := db.record(to)
	size := recordSize(int(old.keyLen), keep)
	copy(bytesAt(rec, size), bytesAt(old, size))
	rec.class = class
	db.relocate(e.hash, from, to)
	e.rec, e.ref = rec, to
	db.arena.free(from, old.class)
}
