package store

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/number"
)

// chooser draws a number in [0, n). The property test draws from a seeded generator, the fuzz target from its input.
type chooser func(n int) int

// modelValue is what a key should hold.
type modelValue struct {
	kind     Kind
	text     string // of a string, or the payload of a packed value, or the object of another
	count    int    // of a packed value
	object   bool   // a value turned into an object through toObject
	grown    bool   // changed in place by AppendTo or SetRange, so no longer int or embstr
	expireAt int64
}

func (v *modelValue) alive(now int64) bool { return v != nil && (v.expireAt == 0 || now <= v.expireAt) }

// modelWatch is a Watch with what it should report.
type modelWatch struct {
	watch    Watches
	db       int
	name     string
	touched  bool
	expireAt int64
}

// modelScan is a SCAN that is under way while everything changes.
type modelScan struct {
	running bool
	db      int
	cursor  uint64
	owed    map[string]bool // keys that have been there at every call and were not yet returned
}

// model runs operations on a Keyspace and on Go maps, and compares.
type model struct {
	t       testing.TB
	choose  chooser
	ks      *Keyspace
	dbs     []map[string]*modelValue
	watches []*modelWatch
	scan    modelScan
	scans   int // that have come to their end
	renewed int // numbers past their time that were written over
	now     int64
	dirty   uint64
	names   int // how many different names of ordinary length are drawn from
	grow    int // chance in percent that an operation adds rather than removes
}

const modelDatabases = 2

func newModel(t testing.TB, names int, choose chooser) *model {
	m := &model{t: t, choose: choose, ks: New(Options{Databases: modelDatabases}), now: 1_000_000, names: names, grow: 50}
	t.Cleanup(m.ks.Close)
	for i := range modelDatabases {
		m.ks.DB(i).arena.check = true
		m.dbs = append(m.dbs, map[string]*modelValue{})
	}
	return m
}

// name draws a key's name: most are short, some are long, very few do not fit a block of the arena.
func (m *model) name() []byte {
	i := m.choose(m.names)
	name := "key:" + strconv.Itoa(i)
	switch {
	case i%1009 == 7:
		return append([]byte(name), bytes.Repeat([]byte{'n'}, maxBlock+i%3)...)
	case i%503 == 7:
		return append([]byte(name), bytes.Repeat([]byte{'n'}, maxBlock-60)...)
	case i%37 == 7:
		return append([]byte(name), bytes.Repeat([]byte{'n'}, i%300)...)
	}
	return []byte(name)
}

// bytes draws a value of any size.
func (m *model) bytes() []byte {
	size := 0
	switch c := m.choose(200); {
	case c == 0:
		size = maxBlock - 100 + m.choose(200)
	case c == 1:
		size = maxBlock + m.choose(100_000)
	case c < 20:
		size = m.choose(5000)
	default:
		size = m.choose(80)
	}
	b := make([]byte, size)
	fill := byte('a' + m.choose(26))
	for i := range b {
		b[i] = fill + byte(i%7)
	}
	return b
}

func (m *model) number() int64 {
	switch m.choose(8) {
	case 0:
		return math.MinInt64
	case 1:
		return math.MaxInt64
	default:
		return int64(m.choose(2_000_000)) - 1_000_000
	}
}

// expiry draws a time: none, near, or past.
func (m *model) expiry() int64 {
	switch m.choose(4) {
	case 0:
		return m.now + int64(m.choose(2000))
	case 1:
		return m.now + int64(m.choose(50))
	case 2:
		return m.now - 1 - int64(m.choose(10))
	default:
		return 0
	}
}

func (m *model) touch(db int, name []byte) {
	for _, w := range m.watches {
		if w.db == db && w.name == string(name) {
			w.touched = true
		}
	}
}

// wrote notes a write that the gate should have seen.
func (m *model) wrote(db int, name []byte) {
	m.dirty++
	m.touch(db, name)
}

// step runs one operation.
func (m *model) step() {
	i := m.choose(modelDatabases * 2)
	if i >= modelDatabases {
		i = 0 // most of the load goes to one database
	}
	db, want := m.ks.DB(i), m.dbs[i]
	name := m.name()
	k := m.ks.Key(name)
	if m.choose(100) < 40 {
		if m.choose(100) < m.grow {
			m.add(i, db, want, name, k)
		} else {
			m.remove(i, db, want, name, k)
		}
	} else {
		m.other(i, db, want, name, k)
	}
	require.Equal(m.t, m.dirty, m.ks.Dirty(), "dirty")
}

// add sets the key to a new value.
func (m *model) add(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	at := m.expiry()
	switch m.choose(3) {
	case 0:
		n := m.number()
		db.SetInt(k, n, at)
		want[string(name)] = &modelValue{kind: KindString, text: strconv.FormatInt(n, 10), expireAt: at}
	case 1:
		n := m.number()
		text := strconv.AppendInt(nil, n, 10)
		db.SetString(k, text, at)
		want[string(name)] = &modelValue{kind: KindString, text: string(text), expireAt: at}
	default:
		v := m.bytes()
		db.SetString(k, v, at)
		want[string(name)] = &modelValue{kind: KindString, text: string(v), expireAt: at}
	}
	m.wrote(i, name)
}

// remove deletes the key if it is there.
func (m *model) remove(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	e, ok := db.Find(k, m.now)
	require.Equal(m.t, want[string(name)].alive(m.now), ok, "there: %.40q", name)
	if ok {
		e.Delete()
		m.wrote(i, name)
	}
	delete(want, string(name))
}

// other runs an operation that changes a key, looks at it, or works on the whole.
func (m *model) other(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	switch m.choose(20) {
	case 19:
		m.renew(i, db, want, name, k)
	case 18:
		if m.choose(8) == 0 {
			m.scanOn(i, db, want)
		}
	case 0:
		m.setExpire(i, db, want, name, k)
	case 1:
		m.setInt(i, db, want, name, k)
	case 2:
		m.appendTo(i, db, want, name, k)
	case 3:
		m.setRange(i, db, want, name, k)
	case 4:
		m.rename(i, db, want, name, k)
	case 5:
		m.random(db, want)
	case 6:
		m.ks.ExpireSlice(m.now, int64(m.choose(20)), m.choose(300))
	case 7:
		m.now += int64(m.choose(20))
	case 8, 9:
		m.packed(i, db, want, name, k)
	case 10:
		m.watch(i, db, name, k)
	case 11:
		if m.choose(2000) == 0 {
			m.flush(i, db)
		}
	case 12, 13:
		m.copy(i, db, want, name, k)
	case 14:
		m.move(i, db, want, name, k)
	case 15:
		if m.choose(50) == 0 {
			m.swap(i)
		}
	default:
		m.verify(db, want[string(name)], k)
	}
}

func (m *model) setExpire(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	if e, ok := db.Find(k, m.now); ok {
		at := m.expiry()
		e.SetExpireAt(at)
		require.Equal(m.t, at, e.ExpireAt())
		want[string(name)].expireAt = at
		m.wrote(i, name)
	}
}

func (m *model) setInt(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	e, ok := db.Find(k, m.now)
	if !ok {
		return
	}
	n := m.number()
	e.SetInt(n)
	got, isInt := e.Int()
	require.True(m.t, isInt)
	require.Equal(m.t, n, got)
	want[string(name)] = &modelValue{kind: KindString, text: strconv.FormatInt(n, 10), expireAt: e.ExpireAt()}
	m.wrote(i, name)
}

// renew sets a number as a limiter does, or only looks for one.
func (m *model) renew(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	e, ok := db.FindToSet(k, m.now)
	require.Equal(m.t, want[string(name)].alive(m.now), ok)
	if m.choose(4) == 0 {
		return
	}
	n, at := m.number(), m.expiry()
	switch {
	case ok:
		e.SetInt(n)
		e.SetExpireAt(at)
	case !e.IsZero():
		m.renewed++
		e.Lapse()
		e.Renew(n, at)
	default:
		db.SetInt(k, n, at)
	}
	want[string(name)] = &modelValue{kind: KindString, text: strconv.FormatInt(n, 10), expireAt: at}
	m.wrote(i, name)
}

func (m *model) appendTo(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	tail := m.bytes()
	v := want[string(name)]
	length, err := db.AppendTo(k, m.now, tail)
	switch {
	case !v.alive(m.now):
		require.NoError(m.t, err)
		want[string(name)] = &modelValue{kind: KindString, text: string(tail)}
	case v.kind != KindString:
		require.ErrorIs(m.t, err, ErrWrongType)
		return
	default:
		require.NoError(m.t, err)
		v.text += string(tail)
		v.grown = true
	}
	require.Equal(m.t, len(want[string(name)].text), length)
	m.wrote(i, name)
}

func (m *model) setRange(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	part, offset := m.bytes(), m.choose(200)
	if m.choose(100) == 0 {
		offset = maxBlock - 40 + m.choose(80)
	}
	v := want[string(name)]
	length, err := db.SetRange(k, m.now, offset, part)
	if v.alive(m.now) && v.kind != KindString {
		require.ErrorIs(m.t, err, ErrWrongType)
		return
	}
	require.NoError(m.t, err)
	if len(part) == 0 {
		if v.alive(m.now) {
			require.Equal(m.t, len(v.text), length)
		} else {
			require.Zero(m.t, length)
			delete(want, string(name))
		}
		return
	}
	if !v.alive(m.now) {
		v = &modelValue{kind: KindString}
		want[string(name)] = v
	}
	text := []byte(v.text)
	text = append(text, make([]byte, max(0, offset+len(part)-len(text)))...)
	copy(text[offset:], part)
	v.text, v.grown = string(text), true
	require.Equal(m.t, len(v.text), length)
	m.wrote(i, name)
}

func (m *model) rename(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	to := m.name()
	v := want[string(name)]
	ok := db.Rename(k, m.ks.Key(to), m.now)
	require.Equal(m.t, v.alive(m.now), ok)
	if !ok || string(to) == string(name) {
		return
	}
	delete(want, string(name))
	want[string(to)] = v
	m.wrote(i, name)
	m.touch(i, to)
}

func (m *model) copy(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	j, to, replace := m.choose(modelDatabases), m.name(), m.choose(2) == 0
	v, old := want[string(name)], m.dbs[j][string(to)]
	if v.alive(m.now) && v.object {
		return // no value that a type's file has made
	}
	ok := db.Copy(k, m.ks.DB(j), m.ks.Key(to), replace, m.now)
	same := i == j && string(to) == string(name)
	require.Equal(m.t, v.alive(m.now) && !same && (replace || !old.alive(m.now)), ok)
	if ok {
		copied := *v
		m.dbs[j][string(to)] = &copied
		m.wrote(j, to)
	}
}

func (m *model) move(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	j := m.choose(modelDatabases)
	v, old := want[string(name)], m.dbs[j][string(name)]
	ok := db.Move(k, m.ks.DB(j), m.now)
	require.Equal(m.t, v.alive(m.now) && i != j && !old.alive(m.now), ok)
	if ok {
		delete(want, string(name))
		m.dbs[j][string(name)] = v
		m.wrote(i, name)
		m.touch(j, name)
	}
}

func (m *model) swap(i int) {
	j := m.choose(modelDatabases)
	m.ks.Swap(i, j, m.now)
	if i == j {
		return
	}
	m.dirty++
	for _, w := range m.watches {
		if m.dbs[i][w.name].alive(m.now) || m.dbs[j][w.name].alive(m.now) {
			w.touched = true
		}
	}
	m.dbs[i], m.dbs[j] = m.dbs[j], m.dbs[i]
	m.scan.running = false
}

func (m *model) random(db *DB, want map[string]*modelValue) {
	name, ok := db.Random(m.now, m.choose)
	if ok {
		require.True(m.t, want[string(name)].alive(m.now), "random key %.40q", name)
		return
	}
	for _, v := range want {
		require.False(m.t, v.alive(m.now), "no random key although there is one")
	}
}

// scanOn begins a scan, or takes it a call further. What has been there at every call must have been returned by the last one.
func (m *model) scanOn(i int, db *DB, want map[string]*modelValue) {
	s := &m.scan
	if !s.running {
		*s = modelScan{running: true, db: i, owed: map[string]bool{}}
		for name := range want {
			s.owed[name] = true
		}
	}
	if s.db != i {
		return
	}
	for name := range s.owed {
		if !want[name].alive(m.now) {
			delete(s.owed, name)
		}
	}
	s.cursor = db.Scan(s.cursor, m.now, 1+m.choose(200), func(e *Entry) {
		require.True(m.t, want[string(e.Name())].alive(m.now), "scanned key %.40q", e.Name())
		delete(s.owed, string(e.Name()))
	})
	if s.cursor == 0 {
		require.Empty(m.t, s.owed, "keys that a scan has missed")
		s.running = false
		m.scans++
	}
}

// packed goes through the glue that the types' files use: create, resizePacked, setCount, toObject.
func (m *model) packed(i int, db *DB, want map[string]*modelValue, name []byte, k Key) {
	e, ok := db.Find(k, m.now)
	if !ok {
		e = db.create(k, encPackedHash)
		want[string(name)] = &modelValue{kind: KindHash}
	} else if e.rec.enc != encPackedHash {
		return
	}
	v := want[string(name)]
	e.mutate()
	m.wrote(i, name)
	size := m.choose(3000)
	if size > e.maxPacked() || m.choose(50) == 0 {
		text := modelObject(e.packed())
		e.toObject(encHash, &text)
		v.object = true
		return
	}
	old := len(v.text)
	b := e.resizePacked(size)
	require.Len(m.t, b, size)
	for j := min(old, size); j < size; j++ {
		b[j] = byte(j)
	}
	e.setCount(size / 2)
	text := []byte(v.text)
	for j := len(text); j < size; j++ {
		text = append(text, byte(j))
	}
	v.text, v.count = string(text[:size]), size/2
}

// modelObject is a value on the Go heap.
type modelObject string

func (o *modelObject) clone() any {
	own := *o
	return &own
}

func (o *modelObject) memory() int { return len(*o) }

// watch begins a watch, or checks and ends one.
func (m *model) watch(i int, db *DB, name []byte, k Key) {
	if len(m.watches) < 20 {
		w := &modelWatch{db: i, name: string(name)}
		w.watch.Watch(db, k, m.now)
		if v := m.dbs[i][string(name)]; v.alive(m.now) {
			w.expireAt = v.expireAt
		}
		m.watches = append(m.watches, w)
		return
	}
	j := m.choose(len(m.watches))
	w := m.watches[j]
	want := w.touched || w.expireAt != 0 && m.now > w.expireAt
	require.Equal(m.t, want, w.watch.Changed(m.now), "watched key %.40q", w.name)
	w.watch.Release(1)
	m.watches = slices.Delete(m.watches, j, j+1)
}

func (m *model) flush(i int, db *DB) {
	if db.Len() > 0 {
		m.dirty++
	}
	for _, w := range m.watches {
		if _, ok := db.Peek(m.ks.Key([]byte(w.name))); ok && w.db == i {
			w.touched = true
		}
	}
	db.Flush()
	clear(m.dbs[i])
	require.Zero(m.t, db.Len())
}

// verify compares one key.
func (m *model) verify(db *DB, v *modelValue, k Key) {
	e, ok := db.Find(k, m.now)
	require.Equal(m.t, v.alive(m.now), ok, "there: %.40q", k.Name)
	if ok {
		m.verifyEntry(&e, v)
	}
}

func (m *model) verifyEntry(e *Entry, v *modelValue) {
	require.Equal(m.t, v.kind, e.Kind())
	require.Equal(m.t, v.expireAt, e.ExpireAt())
	switch {
	case v.object:
		require.Equal(m.t, v.text, string(*e.object().(*modelObject)))
	case v.kind == KindHash:
		require.Equal(m.t, v.text, string(e.packed()))
		require.Equal(m.t, v.count, e.count())
	default:
		require.True(m.t, v.text == string(e.Bytes(nil)), "text of %.40q: %d bytes, %d wanted", e.Name(), e.StrLen(), len(v.text))
		require.Equal(m.t, v.encoding(), e.Encoding())
	}
}

func (v *modelValue) encoding() string {
	_, isInt := number.ParseInt([]byte(v.text))
	switch {
	case v.grown || !isInt && len(v.text) > embstrMax:
		return "raw"
	case isInt:
		return "int"
	default:
		return "embstr"
	}
}

// verifyAll compares everything and checks the store's own invariants.
func (m *model) verifyAll() {
	for i, want := range m.dbs {
		db := m.ks.DB(i)
		alive := 0
		for _, v := range want {
			if v.alive(m.now) {
				alive++
			}
		}
		db.Each(m.now, func(e *Entry) bool {
			v := want[string(e.Name())]
			require.True(m.t, v.alive(m.now), "unexpected key %.40q", e.Name())
			m.verifyEntry(e, v)
			alive--
			return true
		})
		require.Zero(m.t, alive, "keys missing")
		checkDB(m.t, db, m.now)
	}
}

// checkDB checks what must always be true of a database's memory.
func checkDB(t testing.TB, db *DB, now int64) {
	t.Helper()
	var keys, expires, objects int
	var used uint64
	atDepth := [dirBits + 1]int{}
	require.Len(t, db.dir, 1<<db.depth)
	require.EqualValues(t, dirBits-int(db.depth), db.dirShift)
	for i := 0; i < len(db.dir); {
		table := db.dir[i].table
		require.Equal(t, table.buckets, db.dir[i].buckets)
		require.EqualValues(t, i, table.prefix>>db.dirShift)
		span := 1 << (db.depth - table.depth)
		for j := range span {
			require.Same(t, table, db.dir[i+j].table)
		}
		i += span
		if table.ref == 0 {
			require.Len(t, db.dir, 1)
			continue
		}
		atDepth[table.depth]++
		used += tableBytes
		var overflow [tableBuckets]uint16
		count := 0
		for j := range table.buckets {
			b := &table.buckets[j]
			for slot := range bucketSlots {
				if b.tag(slot) == 0 {
					require.Zero(t, b.refs[slot])
					continue
				}
				count++
				rec := db.record(b.refs[slot])
				k := db.ks.Key(bytes.Clone(rec.name()))
				require.Same(t, table, db.entryAt(k.Hash).table, "key in a foreign table")
				require.Equal(t, tagOf(k.Hash), b.tag(slot))
				for p := homeOf(k.Hash); p != j; p = (p + 1) % tableBuckets {
					overflow[p]++
				}
				if rec.expireAt != 0 {
					expires++
					require.LessOrEqual(t, table.minExpire-int64(table.grace), rec.expireAt)
				}
				if rec.enc.isObject() {
					objects++
					require.NotNil(t, db.objects.at(rec.word))
				}
				size := recordSize(int(rec.keyLen), rec.payloadLen())
				if rec.class == hugeClass {
					used += uint64(db.arena.huge[uint32(b.refs[slot]>>chunkShift)])
				} else {
					require.Equal(t, classFor(size), rec.class)
					used += uint64(classSize(rec.class))
				}
			}
		}
		for j := range table.buckets {
			require.Equal(t, overflow[j], table.buckets[j].overflow, "overflow of bucket %d", j)
		}
		require.Equal(t, count, table.count)
		require.LessOrEqual(t, count, splitAt)
		keys += count
	}
	require.Equal(t, keys, db.Len())
	require.Equal(t, expires, db.Expires())
	require.Equal(t, objects, db.objects.len())
	db.ks.measureAll()
	require.NoError(t, db.check())
	require.Equal(t, atDepth, db.atDepth)
	require.Equal(t, used, db.arena.used, "bytes in use")
	checkArena(t, &db.arena)
}

// checkArena checks the arena's runs against its totals.
func checkArena(t testing.TB, a *arena) {
	t.Helper()
	var used, resident uint64
	free := 0
	for chunk := uint32(1); chunk < a.next; chunk++ {
		if size, ok := a.huge[chunk]; ok {
			used += uint64(size)
			resident += uint64(size)
			continue
		}
		if a.runs[chunk] == nil || a.bases[chunk] == nil {
			continue
		}
		for i := range a.runs[chunk] {
			r := &a.runs[chunk][i]
			if r.state == runFree {
				free++
				require.Zero(t, r.live)
				continue
			}
			require.NotZero(t, r.live, "a run in use without blocks in use")
			used += uint64(r.live) * uint64(classSize(r.class))
			resident += runSize
			listed := 0
			for f := r.free; f != 0; f = *(*ref)(a.at(f)) {
				listed++
			}
			require.Equal(t, int(r.bump), int(r.live)+listed, "free list of a run")
			if r.state == runFull {
				require.EqualValues(t, r.limit, r.live)
			}
		}
	}
	require.Equal(t, free, len(a.warm)+len(a.cold))
	require.LessOrEqual(t, len(a.warm), warmRunsLimit)
	require.Equal(t, used, a.used)
	require.Equal(t, resident+uint64(len(a.warm))*runSize, a.resident)
}

// testKey is a Key with a formatted name.
func testKey(ks *Keyspace, format string, args ...any) Key {
	return ks.Key(fmt.Appendf(nil, format, args...))
}
