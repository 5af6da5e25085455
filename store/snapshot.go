package store

import (
	"math/bits"
	"slices"
	"unsafe"
)

// Snapshot gives a Sink all keys as they were at one moment, while the keyspace goes on changing. Every bucket of the index
// knows which of its keys the last snapshot has visited. The snapshot walks the buckets in steps; a write to a key
// that it has not come to yet has that key visited first (see DB.mutate). Values that are long, or come while another is emitted
// in parts, wait in a queue: a copy of the record, or for values on the Go heap a frozen view, which costs as much as
// changes afterwards. When what waits grows past a limit, each write pays with a step of the work.
//
// Keys past their time that have not been removed are visited, with that time. A Snapshot is used like its Keyspace: by one goroutine
// at a time.
type Snapshot struct {
	ks    *Keyspace
	sink  Sink
	limit int     // of extra, in bytes
	epoch visited // its number, in its place in visited
	round uint64  // of the numbers

	sizes    []databaseSize
	origin   int // the database that is being walked, by its number at the beginning
	prefix   uint32
	table    *table
	bucket   int
	lost     []*contents // of databases that have been flushed since and are still to be walked
	selected int         // the database that the sink was visited last

	queue   []waiting
	current view   // of queue[0], when emitting it has begun
	extra   int    // bytes kept for the snapshot alone, about
	touched uint64 // keeps the loads whose cache misses are to overlap
	keys    int    // visited so far
	total   int
}

type databaseSize struct{ keys, expires int }

// waiting is a key that is still to be visited.
type waiting struct {
	origin   int
	name     []byte
	expireAt int64
	value    view
}

const (
	keyWork      = 32      // work of visiting a key beyond its bytes
	bucketWork   = 16      // work of passing a bucket
	waitingBytes = 96      // bytes of a key that waits, beyond its name and value
	writeWork    = 8 << 10 // what a write does of it when too much waits, beside payRatio times what it adds
	payRatio     = 4       // so that what waits behind a long value stays below a quarter of that
)

// Snapshot begins a snapshot; there must be none under way. maxExtra bounds roughly the bytes that are kept for it alone. It
// visits nothing yet: see Step.
func (ks *Keyspace) Snapshot(sink Sink, maxExtra int) *Snapshot {
	if ks.snapshot != nil {
		panic("store: two snapshots at a time")
	}
	ks.snapshots++
	s := &Snapshot{ks: ks, sink: sink, limit: maxExtra, epoch: visited(1+ks.snapshots%epochs) << bucketSlots, round: ks.round(), selected: -1}
	for i, db := range ks.dbs {
		db.origin = i
		s.sizes = append(s.sizes, databaseSize{db.keys, db.expires})
		s.total += db.keys
	}
	ks.snapshot = s
	return s
}

// visited is what a bucket knows of the last snapshot that has concerned it: its number, and for each slot a bit that says that it need
// not visit the key there, because it has or because the key is younger. 0 is no snapshot's. The numbers are few, and are
// given out in rounds: what buckets knew in an earlier round is forgotten one table at a time, when the snapshot comes to it.
type visited uint16

// epochs is how many numbers there are.
const epochs = 1<<(16-bucketSlots) - 1

const (
	visitedAll   visited = 1<<bucketSlots - 1
	visitedEpoch         = ^visitedAll // where the snapshot's number is
)

// slots are those that the snapshot need not visit.
func (t visited) slots(epoch visited) uint32 {
	if t&visitedEpoch != epoch {
		return 0
	}
	return uint32(t & visitedAll)
}

// with is t with one slot more that the snapshot need not visit.
func (t visited) with(epoch visited, slot int) visited {
	return epoch | visited(t.slots(epoch)) | 1<<slot
}

// round says how often the numbers of snapshots have all been given out.
func (ks *Keyspace) round() uint64 { return ks.snapshots / epochs }

// concerns has a table's buckets know nothing of snapshots that had the same number as s.
func (s *Snapshot) concerns(t *table) {
	if t.round != s.round {
		t.buckets.mark(0)
		t.round = s.round
	}
}

// mark sets what all buckets know.
func (b *buckets) mark(to visited) {
	for i := range b {
		b[i].visited = to
	}
}

// Step visits about budget bytes' worth of keys, and reports whether there are more. When there is not, the snapshot is over.
// How long it takes depends on budget, not on the number of keys: it goes past it by less than a bucket's worth of small values, or one piece
// of a long one. Only a long list or stream that it comes to takes a moment for each of its chunks, nodes and consumers, to hold them fast.
func (s *Snapshot) Step(budget int) (more bool) {
	for work := 0; work < budget; {
		if len(s.queue) > 0 {
			work += s.emitWaiting(budget - work)
			continue
		}
		done, ok := s.walk(budget - work)
		if !ok {
			s.Abort()
			return false
		}
		work += done
	}
	return true
}

// Abort ends the snapshot before its time. After its end it does nothing.
func (s *Snapshot) Abort() {
	if s.ks.snapshot != s {
		return
	}
	s.ks.snapshot = nil
	for _, w := range s.queue {
		w.value.thaw()
	}
	s.queue, s.current = nil, nil
	for _, c := range s.lost {
		s.release(c)
	}
	s.lost = nil
}

// Progress is how many keys have been visited, and how many there were when the snapshot began.
func (s *Snapshot) Progress() (visited, total int) { return s.keys, s.total }

// Extra is about how many bytes are kept for the snapshot alone.
func (s *Snapshot) Extra() int { return s.extra }

// contents are those of a database by its number when the snapshot began; nil if it was empty, or has been walked.
func (s *Snapshot) contents(origin int) *contents {
	for _, c := range s.lost {
		if c.origin == origin {
			return c
		}
	}
	for _, db := range s.ks.dbs {
		if db.origin == origin {
			return &db.contents
		}
	}
	return nil
}

// walk visits the next buckets, and reports whether there were any. It stops when a key has been put in the queue.
func (s *Snapshot) walk(budget int) (work int, ok bool) {
	for ; s.origin < len(s.sizes); s.nextDatabase() {
		c := s.contents(s.origin)
		if c == nil || s.sizes[s.origin].keys == 0 {
			continue
		}
		if s.prefix == 0 && s.bucket == 0 {
			s.selectDB(s.origin)
			s.sink.Sizes(s.sizes[s.origin].keys, s.sizes[s.origin].expires)
		}
		for s.prefix < 1<<dirBits {
			t := c.dir[s.prefix>>c.dirShift].table
			if t != s.table {
				s.table, s.bucket, s.prefix = t, 0, t.prefix
				s.touched += c.touchAll(t.buckets)
			}
			for ; t.ref != 0 && s.bucket < tableBuckets; s.bucket++ {
				if work >= budget || len(s.queue) > 0 {
					return work, true
				}
				work += bucketWork + s.visitBucket(c, t, s.bucket)
			}
			s.table, s.prefix, s.bucket = nil, t.prefix+1<<(dirBits-t.depth), 0
		}
	}
	return work, work > 0 || len(s.queue) > 0
}

// nextDatabase goes on with the next database, and lets go of one that only the snapshot still had.
func (s *Snapshot) nextDatabase() {
	s.lost = slices.DeleteFunc(s.lost, func(c *contents) bool {
		if c.origin == s.origin {
			s.release(c)
		}
		return c.origin == s.origin
	})
	s.origin++
	s.table, s.prefix, s.bucket = nil, 0, 0
}

// before visits a key that is about to be changed.
func (s *Snapshot) before(db *DB, name []byte) {
	had := s.extra
	k := db.ks.Key(name)
	if b, slot, rec := db.lookup(k); rec != nil {
		s.concerns(db.entryAt(k.Hash).table)
		if b.visited.slots(s.epoch)>>slot&1 == 0 {
			b.visited = b.visited.with(s.epoch, slot)
			s.visitKey(&db.contents, rec)
		}
	}
	if s.extra > s.limit {
		s.pay(writeWork + payRatio*(s.extra-had))
	}
}

// beforePlace notes that the key which table.place is about to find a slot for is not the snapshot's business.
func (s *Snapshot) beforePlace(t *table, hash uint64) {
	s.concerns(t)
	b, slot := t.vacancy(hash)
	b.visited = b.visited.with(s.epoch, slot)
}

// pay has a write do a part of the work.
func (s *Snapshot) pay(work int) {
	for work > 0 && len(s.queue) > 0 {
		work -= max(s.emitWaiting(work), 1)
	}
}

// adopt takes over what a database holds that is about to be flushed, if it is still needed, and reports whether it did.
func (s *Snapshot) adopt(db *DB) bool {
	taken := db.contents
	db.origin = -1
	if taken.origin < s.origin || s.sizes[taken.origin].keys == 0 {
		return false
	}
	s.lost = append(s.lost, &taken)
	db.arena = arena{check: taken.arena.check, all: taken.arena.all}
	taken.arena.all.used -= taken.arena.used // what only a snapshot has is counted with what that keeps
	taken.arena.all = nil
	s.extra += int(taken.arena.used)
	return true
}

// release frees the memory of adopted contents.
func (s *Snapshot) release(c *contents) {
	s.extra -= int(c.arena.used)
	s.ks.retired.add(c.arena.release())
}

// visitTable visits all keys of a table that have not been.
func (s *Snapshot) visitTable(c *contents, t *table) {
	for i := range t.buckets {
		s.visitBucket(c, t, i)
	}
}

// visitBucket visits all keys of a bucket that have not been, and returns the work.
func (s *Snapshot) visitBucket(c *contents, t *table, i int) (work int) {
	s.concerns(t)
	b := &t.buckets[i]
	rest := b.occupied() &^ b.visited.slots(s.epoch)
	b.visited = s.epoch | visitedAll
	s.touched += c.touchSlots(b, rest)
	for m := rest; m != 0; m &= m - 1 {
		work += s.visitKey(c, c.record(b.refs[bits.TrailingZeros32(m)]))
	}
	return work
}

// visitKey emits a key, or puts it in the queue if its value is long or another one is being emitted.
func (s *Snapshot) visitKey(c *contents, rec *record) (work int) {
	size := recordSize(int(rec.keyLen), rec.payloadLen())
	if rec.enc.isObject() || size > longValue || s.current != nil {
		w := waiting{origin: c.origin, name: slices.Clone(rec.name()), expireAt: rec.expireAt}
		if rec.enc.isObject() {
			w.value = c.view(rec)
		} else {
			w.value = copyRecord(rec, size)
		}
		w.value.freeze(&s.extra)
		s.extra += waitingBytes + len(w.name)
		s.queue = append(s.queue, w)
		return keyWork + size
	}
	s.selectDB(c.origin)
	s.sink.Key(rec.name(), rec.expireAt)
	emitInline(rec, s.sink)
	s.keys++
	return keyWork + size
}

func (s *Snapshot) selectDB(origin int) {
	if s.selected != origin {
		s.selected = origin
		s.sink.Database(origin)
	}
}

// emitWaiting goes on with the first value in the queue.
func (s *Snapshot) emitWaiting(budget int) (work int) {
	w := &s.queue[0]
	if s.current == nil {
		s.selectDB(w.origin)
		s.sink.Key(w.name, w.expireAt)
		w.value.begin(s.sink)
		s.current = w.value
	}
	work, done := s.current.emit(s.sink, budget)
	if !done {
		return work
	}
	s.current.thaw()
	s.current = nil
	s.extra -= waitingBytes + len(w.name)
	*w = waiting{}
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
	s.keys++
	return keyWork + work
}

// recordView is a copy of a record that holds its value itself.
type recordView struct {
	words []uint64 // so that it is aligned
	size  int
	extra *int
}

func copyRecord(rec *record, size int) *recordView {
	v := &recordView{words: make([]uint64, (size+7)/8), size: size}
	copy(bytesAt(v.record(), size), bytesAt(rec, size))
	return v
}

func (v *recordView) record() *record { return (*record)(unsafe.Pointer(&v.words[0])) }

func (v *recordView) freeze(extra *int) {
	v.extra = extra
	*extra += v.size
}

func (v *recordView) begin(ValueSink) {}

// emit emits the whole value: it is as long as a block of the arena at most.
func (v *recordView) emit(sink ValueSink, _ int) (work int, done bool) {
	emitInline(v.record(), sink)
	return v.size, true
}

func (v *recordView) thaw() { *v.extra -= v.size }
