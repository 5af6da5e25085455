package store

import (
	"errors"
	"hash/maphash"
	"math"
	"math/rand/v2"

	"headgate/internal/number"
	"headgate/internal/shrinkmap"
)

// ErrWrongType is returned when a command meets a key that holds a value of another kind. Its text is the wire error.
var ErrWrongType = errors.New("WRONGTYPE Operation against a key holding the wrong kind of value")

// DefaultDatabases is how many databases a Keyspace has when Options does not say.
const DefaultDatabases = 16

// Limits bound the packed encodings: a value beyond them is turned into its big encoding, for good.
type Limits struct {
	HashMaxListpackEntries int // fields of a packed hash
	HashMaxListpackValue   int // bytes of a field or value of a packed hash
	ZSetMaxListpackEntries int // members of a packed sorted set
	ZSetMaxListpackValue   int // bytes of a member of a packed sorted set
	HLLSparseMaxBytes      int // bytes of a HyperLogLog whose registers are kept as runs
	ListMaxListpackSize    int // elements of a packed list or of a chunk of a big one; -1 to -5 bound it to 4, 8, 16, 32 or 64 KiB
	SetMaxIntsetEntries    int // members of a set of whole numbers in one block
	StreamNodeMaxBytes     int // bytes of a run of a stream's entries; 0: no limit
	StreamNodeMaxEntries   int // entries of such a run; 0: no limit
}

// DefaultLimits are those of redis.conf.
func DefaultLimits() Limits {
	return Limits{
		HashMaxListpackEntries: 512,
		HashMaxListpackValue:   64,
		ZSetMaxListpackEntries: 128,
		ZSetMaxListpackValue:   64,
		HLLSparseMaxBytes:      3000,
		ListMaxListpackSize:    -2,
		SetMaxIntsetEntries:    512,
		StreamNodeMaxBytes:     4096,
		StreamNodeMaxEntries:   100,
	}
}

// Options configure a Keyspace. The zero value stands for DefaultDatabases and DefaultLimits, and for chance.
type Options struct {
	Databases int
	Limits    Limits
	Hash      maphash.Seed // of the hashes of keys, and so of the order in which they come
	Random    *rand.Rand   // what the store draws itself
}

// Key is a key's name with its hash, which Keyspace.Key computes once per command. Name is not copied: a Key is valid
// as long as its bytes are.
type Key struct {
	Name []byte
	Hash uint64
}

// Keyspace is a set of numbered databases. It is not safe for concurrent use.
type Keyspace struct {
	seed         maphash.Seed
	dbs          []*DB
	limits       Limits
	dirty        uint64
	discounted   uint64
	expired      uint64
	keepsExpired bool   // see KeepExpired
	arenas       arenas // all databases' ones
	objectBytes  int    // bytes of the values on the Go heap, as last measured
	overhead     uint64 // bytes on the Go heap beside values and tables, as of the last Stats
	hand         int    // the database that ExpireSlice is at
	sweeps       uint64 // how often it has passed the last one
	retired      retired
	evicted      uint64 // keys removed because memory was short
	evictDB      int    // the database that Evict looks into first
	pool         evictionPool
	onExpired    func(db *DB, name []byte)
	onReplaced   func(db *DB)
	spared       []string // see Spare
	observer     Observer // of changes, or nil
	reserved     reserved
	access       access
	snapshot     *Snapshot // the one that is under way, or nil
	snapshots    uint64    // how many have been begun
	changing     [maxChanging]changingObject
	nextChanging uint
	ready        []*Awaited          // awaited keys that have been added, in that order
	heeded       []*Heed             // of keys that have changed, in that order
	digits       [number.IntMax]byte // the text of a number that a view of a set hands out
	stamps       stampTexts          // the members of logs that have been handed out
	stampName    [maxStampName]byte  // of AppendStamps, which hands it out
	empty        buckets             // what a database without keys points to; never written
	scratch      buckets             // a table's old buckets while it is being split
}

// DB is one database of a Keyspace. It owns its memory, so that a flush costs nothing per key.
type DB struct {
	contents
	index   int
	ks      *Keyspace
	watched shrinkmap.Map[string, *watchedKey]
	follow  follow
	marks   *marks // nil while no name is marked
	awaited shrinkmap.Map[string, *Awaited]
}

// contents are what a database holds, as opposed to what belongs to its number. Keyspace.Swap exchanges them whole.
type contents struct {
	dir      []dirEntry
	dirShift uint32 // dirBits minus the directory's depth
	depth    uint8  // the directory has 1<<depth entries
	origin   int    // the database's number when the present snapshot began, -1 if it was not there then
	arena    arena
	keys     int
	expires  int
	atDepth  [dirBits + 1]int // number of tables of each depth
	objects  objectSlab
	sweep    sweep
	tally    tally
}

// New returns a Keyspace without keys. It maps no memory until the first key is set; Close gives back what it mapped.
func New(o Options) *Keyspace {
	if o.Databases <= 0 {
		o.Databases = DefaultDatabases
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Hash == (maphash.Seed{}) {
		o.Hash = maphash.MakeSeed()
	}
	if o.Random == nil {
		o.Random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	ks := &Keyspace{seed: o.Hash, limits: o.Limits, access: access{random: o.Random}}
	for i := range o.Databases {
		db := &DB{ks: ks, index: i}
		db.arena.check, db.arena.all = invariants, &ks.arenas
		db.resetTables()
		ks.dbs = append(ks.dbs, db)
	}
	return ks
}

// Close unmaps all memory. The Keyspace must not be used afterwards.
func (ks *Keyspace) Close() {
	for _, db := range ks.dbs {
		ks.retired.add(db.arena.release())
		db.dir = nil
	}
	ks.retired.unmap(math.MaxInt)
}

// Key hashes name. The hash differs from one Keyspace to the next.
func (ks *Keyspace) Key(name []byte) Key {
	return Key{Name: name, Hash: maphash.Bytes(ks.seed, name)}
}

// DB is database i, 0 <= i < Databases.
func (ks *Keyspace) DB(i int) *DB { return ks.dbs[i] }

// Databases is the number of databases.
func (ks *Keyspace) Databases() int { return len(ks.dbs) }

// SetLimits changes the bounds of the packed encodings. Values that are there keep their encoding until they next grow.
func (ks *Keyspace) SetLimits(l Limits) { ks.limits = l }

// Limits are the bounds of the packed encodings.
func (ks *Keyspace) Limits() Limits { return ks.limits }

// Dirty counts the operations that changed a key since the start, expiry left out. It never goes down.
func (ks *Keyspace) Dirty() uint64 { return ks.dirty }

// Changes is Dirty without the operations that Discount has taken back. A save point asks for so many of them.
func (ks *Keyspace) Changes() uint64 { return ks.dirty - ks.discounted }

// Discount has n of the operations counted so far be no changes of their own, but parts of another.
func (ks *Keyspace) Discount(n uint64) { ks.discounted += n }

// OnExpired has fn called for every key that is removed because its time has passed, just before it goes. The name is the
// store's memory, and fn must not change the keyspace. There is one such function; nil takes it away.
func (ks *Keyspace) OnExpired(fn func(db *DB, name []byte)) { ks.onExpired = fn }

// Stats are a Keyspace's counters at one moment.
type Stats struct {
	Keys          int    // keys in all databases, those past their time but not yet removed among them
	Expires       int    // keys with a TTL
	Expired       uint64 // keys removed because their time had passed, since the start
	Evicted       uint64 // keys removed because memory was short, since the start
	Objects       int    // values on the Go heap
	Tables        int    // sub-tables of the key index
	ArenaUsed     uint64 // bytes of the blocks in use, outside the Go heap
	ArenaResident uint64 // bytes mapped and not given back to the operating system
	ObjectBytes   uint64 // bytes of the values on the Go heap, about
	Overhead      uint64 // bytes on the Go heap beside them: directories, the arenas' books
}

// Stats are the current counters.
func (ks *Keyspace) Stats() Stats {
	ks.measureAll()
	s := Stats{Expired: ks.expired, Evicted: ks.evicted, ArenaUsed: ks.arenas.used, ArenaResident: ks.retired.bytes, ObjectBytes: uint64(ks.objectBytes)}
	ks.overhead = 0
	for _, db := range ks.dbs {
		s.Keys += db.keys
		s.Expires += db.expires
		s.Objects += db.objects.len()
		ks.overhead += uint64(db.indexOverhead())
		s.ArenaResident += db.arena.resident
		for _, n := range db.atDepth {
			s.Tables += n
		}
	}
	s.Overhead = ks.overhead
	return s
}

// Full reports whether a database has not as many chunks of its arena's addresses (32 GiB) left as something may need, see Demand, beside
// some that are always kept back. What adds data must be refused then, before it changes anything: to run out of addresses ends the
// process. What is kept back is for what adds little, and cannot tell how much.
func (ks *Keyspace) Full(need int) bool { return ks.haveLess(need + fullMargin) }

// Crowded reports whether a database has so few chunks left that Full should be asked before each command. As long as it says no, only a
// command with very many arguments can need more than there are.
func (ks *Keyspace) Crowded() bool { return ks.haveLess(crowdedChunks) }

func (ks *Keyspace) haveLess(chunks int) bool {
	for _, db := range ks.dbs {
		if db.arena.left() < chunks {
			return true
		}
	}
	return false
}

// OnCrowded has fn called, from within any operation, when the keyspace becomes crowded, and again and again while more is added.
func (ks *Keyspace) OnCrowded(fn func()) { ks.arenas.crowded = fn }

// TakeAddresses has so many chunks be left of the database's arena, without any memory. It is for tests.
func (db *DB) TakeAddresses(left int) {
	a := &db.arena
	a.spare = append(a.spare, a.takeChunkNumber())
	a.spare = a.spare[:min(len(a.spare), left)]
	a.next = uint32(maxChunks - left + len(a.spare))
}

// Demand adds up what texts may need that become names of keys and small values.
type Demand struct {
	chunks int // for texts that need one each
	bytes  int // of the others
}

const (
	demandText  = 64 // bytes that a text may need beside its own, in its record and in the index
	demandWaste = 2  // how many times its bytes a text may take up, since blocks have fixed sizes
)

// Add adds texts.
func (d *Demand) Add(texts [][]byte) {
	for _, t := range texts {
		if len(t) > maxBlock-recordHeader {
			d.chunks++
		} else {
			d.bytes += len(t) + demandText
		}
	}
}

// Chunks is how many chunks the texts may need, for Full.
func (d *Demand) Chunks() int { return d.chunks + demandWaste*d.bytes/chunkSize }

// FlushAll removes every key of every database.
func (ks *Keyspace) FlushAll() {
	for _, db := range ks.dbs {
		db.Flush()
	}
}

// keepingDatabases is how many databases, the first ones, keep a little memory when they are flushed: where there are thousands, it would be
// gigabytes together.
const keepingDatabases = DefaultDatabases

// Flush removes every key of the database, in a time that hardly depends on how many there are. Memory that would take
// long to give back goes back during the following calls of ExpireSlice. On an empty database it is no change.
func (db *DB) Flush() {
	if db.dir[0].table.ref == 0 {
		return // it has had no key since the last time
	}
	if db.keys > 0 {
		db.mutate(nil, changeFlush)
		db.signalStreams()
	}
	db.ks.measureAll()
	if s := db.ks.snapshot; s == nil || !s.adopt(db) {
		if db.index < keepingDatabases {
			db.ks.retired.add(db.arena.clear())
		} else {
			db.ks.retired.add(db.arena.release())
		}
		db.ks.retired.unmap(flushUnmapBytes)
	}
	db.ks.objectBytes -= db.objects.bytes
	db.objects = objectSlab{}
	db.resetTables()
	db.replaced()
}

// Index is the database's number.
func (db *DB) Index() int { return db.index }

// Len is the number of keys, those past their time but not yet removed among them.
func (db *DB) Len() int { return db.keys }

// Expires is the number of keys with a TTL.
func (db *DB) Expires() int { return db.expires }

// record is the record at r.
func (c *contents) record(r ref) *record { return (*record)(c.arena.at(r)) }

// newRecord takes a block for a key and a payload, and writes the record's head and the key. The word is 0, so a
// payload is to be announced with setUsed.
func (db *DB) newRecord(name []byte, enc encoding, payload int) (*record, ref) {
	size := recordSize(len(name), payload)
	class := classFor(size)
	var r ref
	if class == hugeClass {
		r = db.arena.allocHuge(size)
	} else {
		r = db.arena.alloc(class)
	}
	rec := db.record(r)
	*rec = record{enc: enc, class: class, access: db.ks.access.fresh, keyLen: uint32(len(name))}
	copy(rec.name(), name)
	return rec, r
}

// insert adds a key that must not exist, with room for a payload. The caller has passed the gate.
func (db *DB) insert(k Key, enc encoding, payload int) (*record, ref) {
	t := db.tableWithRoom(k.Hash)
	if db.ks.observer != nil {
		db.ks.observer.Created(db, k.Name)
	}
	if s := db.ks.snapshot; s != nil {
		s.beforePlace(t, k.Hash)
	}
	rec, r := db.newRecord(k.Name, enc, payload)
	t.place(k.Hash, r)
	t.count++
	db.keys++
	if db.ks.reserved.may(k.Name) {
		db.tallyName(k.Name, 1)
	}
	if db.awaited.Len() != 0 {
		db.signal(k.Name)
	}
	return rec, r
}

// remove takes the key out of its table and frees its record. The value's object stays: see releaseObject. The caller
// has passed the gate, and calls mergeAround when it holds no table any more.
func (db *DB) remove(hash uint64, r ref, rec *record) {
	t := db.entryAt(hash).table
	t.unplace(hash, r)
	t.count--
	db.keys--
	if rec.expireAt != 0 {
		db.expires--
		t.timed--
	}
	if db.ks.reserved.may(rec.name()) {
		db.tallyName(rec.name(), -1)
	}
	if rec.enc == encStream && db.awaited.Len() != 0 {
		db.signal(rec.name())
	}
	db.arena.free(r, rec.class)
}

// releaseObject forgets the record's value on the Go heap, if it has one.
func (db *DB) releaseObject(rec *record) {
	if rec.enc.isObject() {
		db.removeObject(rec.word)
		rec.word = 0
		if rec.enc == encStream && db.awaited.Len() != 0 {
			db.signal(rec.name())
		}
	}
}

// setExpire changes the record's time and keeps the counters and the table's lower bounds right.
func (db *DB) setExpire(rec *record, hash uint64, at int64) {
	if rec.expireAt == at {
		return
	}
	t := db.entryAt(hash).table
	if rec.expireAt == 0 {
		db.expires++
		t.timed++
	} else if at == 0 {
		db.expires--
		t.timed--
	}
	rec.expireAt = at
	if at != 0 {
		t.minExpire = min(t.minExpire, at)
		t.minSince = min(t.minSince, at)
	}
}
