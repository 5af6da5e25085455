package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// seenKeys is a Sink that remembers each key as a text of its expiry and value, by database and name.
type seenKeys struct {
	t     testing.TB
	keys  map[string]string
	db    int
	name  string
	open  bool // a value is being seen
	parts []string
	text  []byte
	left  int // parts to come
	work  int // bytes seen since it was last set to 0
}

func newSeenKeys(t testing.TB) *seenKeys { return &seenKeys{t: t, keys: map[string]string{}} }

func (k *seenKeys) Database(n int)          { k.db = n }
func (k *seenKeys) Sizes(keys, expires int) {}

func (k *seenKeys) Key(name []byte, expireAt int64) {
	require.False(k.t, k.open, "a key within another's value")
	k.name = fmt.Sprintf("%d/%s", k.db, name)
	_, twice := k.keys[k.name]
	require.False(k.t, twice, "%s is seen twice", k.name)
	k.keys[k.name] = strconv.FormatInt(expireAt, 10) + " "
	k.open = true
	k.work += len(name)
}

func (k *seenKeys) begin(kind string, n int) {
	k.parts, k.left = []string{kind}, n
}

func (k *seenKeys) part(format string, a ...any) {
	k.parts = append(k.parts, fmt.Sprintf(format, a...))
	k.left--
	k.work += len(k.parts[len(k.parts)-1])
}

func (k *seenKeys) Int(n int64) { k.Text(strconv.AppendInt(nil, n, 10)) }

func (k *seenKeys) Text(v []byte) {
	k.keys[k.name] += fmt.Sprintf("string %q", v)
	k.open = false
	k.work += len(v)
}

func (k *seenKeys) LongText(n int) {
	k.begin("string", n)
	k.text = nil
}

func (k *seenKeys) TextPart(p []byte) {
	k.text = append(k.text, p...)
	k.left -= len(p)
	k.work += len(p)
	if k.left == 0 {
		k.parts = append(k.parts, fmt.Sprintf("%q", k.text))
	}
}

func (k *seenKeys) Hash(n int, _ bool)         { k.begin("hash", n) }
func (k *seenKeys) Pair(field, value []byte)   { k.part("%q=%q", field, value) }
func (k *seenKeys) ZSet(n int, _ bool)         { k.begin("zset", n) }
func (k *seenKeys) Scored(m []byte, s float64) { k.part("%q=%v", m, s) }

func (k *seenKeys) List(n, _ int)     { k.begin("list", n) }
func (k *seenKeys) Element(v []byte)  { k.part("%d %q", k.left, v) }
func (k *seenKeys) EndNode()          {}
func (k *seenKeys) Set(n int)         { k.begin("set", n) }
func (k *seenKeys) Member(m []byte)   { k.part("%q", m) }
func (k *seenKeys) IntSet()           { k.begin("set", 0) }
func (k *seenKeys) IntMember(n int64) { k.left++; k.part("\"%d\"", n) }

func (k *seenKeys) Stream(nodes int) {
	k.begin("stream", nodes)
}

func (k *seenKeys) StreamNode(id [2]uint64, lp []byte) { k.part("%v %q", id, lp) }

func (k *seenKeys) StreamInfo(length int, last, first, maxDeleted [2]uint64, added uint64, groups int) {
	k.left++
	k.part("%d %v %v %v %d %d", length, last, first, maxDeleted, added, groups)
}

func (k *seenKeys) StreamGroup(name string, last [2]uint64, read int64, pending, consumers int) {
	k.left++
	k.part("%s %v %d %d %d", name, last, read, pending, consumers)
}

func (k *seenKeys) StreamPending(id [2]uint64, delivered int64, deliveries uint64) {
	k.left++
	k.part("%v %d %d", id, delivered, deliveries)
}

func (k *seenKeys) StreamConsumer(name string, seen int64, pending int) {
	k.left++
	k.part("%s %d %d", name, seen, pending)
}

func (k *seenKeys) StreamOwned(id [2]uint64) {
	k.left++
	k.part("%v", id)
}

func (k *seenKeys) End() {
	require.Zero(k.t, k.left, "as many parts as announced")
	slices.Sort(k.parts[1:])
	k.keys[k.name] += strings.Join(k.parts, " ")
	k.open = false
}

// contentsNow is what a snapshot taken now must have.
func contentsNow(t testing.TB, ks *Keyspace) map[string]string {
	k := newSeenKeys(t)
	for i := range ks.Databases() {
		k.db = i
		ks.DB(i).Each(0, func(e *Entry) bool {
			k.Key(e.Name(), e.ExpireAt())
			e.Emit(k)
			return true
		})
	}
	return k.keys
}

// snapshotModel changes a keyspace in every way that there is.
type snapshotModel struct {
	ks  *Keyspace
	rnd *rand.Rand
	now int64

	filling int // how many elements an operation writes, if not 0
}

// name is one of few names, so that writes meet keys that are there.
func (m *snapshotModel) name() []byte { return fmt.Appendf(nil, "key:%d", m.rnd.IntN(800)) }

func (m *snapshotModel) text(longest int) []byte {
	b := make([]byte, m.rnd.IntN(longest))
	for i := range b {
		b[i] = 'a' + byte(m.rnd.IntN(26))
	}
	return b
}

// write does one operation. rare ones touch whole databases.
func (m *snapshotModel) write() {
	db := m.ks.DB(m.rnd.IntN(m.ks.Databases()))
	name := m.name()
	k := m.ks.Key(name)
	m.now += int64(m.rnd.IntN(3))
	switch op := m.rnd.IntN(1000); {
	case op < 250:
		db.SetInt(k, m.rnd.Int64(), m.expiry())
	case op < 400:
		db.SetString(k, m.text(200), m.expiry())
	case op < 404:
		db.SetString(k, m.text(100_000), m.expiry())
	case op < 454:
		_, _ = db.AppendTo(k, m.now, m.text(400))
	case op < 464:
		_, _ = db.SetRange(k, m.now, m.rnd.IntN(40_000), m.text(100))
	case op < 470:
		if e, err := db.GrowString(k, m.now, 1+m.rnd.IntN(50_000)); err == nil {
			e.WritableBytes()[0]++
		}
	case op < 600:
		m.writeHash(db, k)
	case op < 700:
		m.writeZSet(db, k)
	case op < 800:
		m.writeList(db, k)
	case op < 850:
		m.writeSet(db, k)
	case op < 890:
		m.writeStream(db, k)
	case op < 920:
		if e, ok := db.Find(k, m.now); ok {
			e.Delete()
		}
	case op < 940:
		if e, ok := db.Find(k, m.now); ok {
			e.SetExpireAt(m.expiry())
		}
	case op < 960:
		db.Rename(k, m.ks.Key(m.name()), m.now)
	case op < 975:
		db.Move(k, m.ks.DB(m.rnd.IntN(m.ks.Databases())), m.now)
	case op < 990:
		db.Copy(k, m.ks.DB(m.rnd.IntN(m.ks.Databases())), m.ks.Key(m.name()), m.rnd.IntN(2) == 0, m.now)
	case op < 995:
		m.ks.ExpireSlice(m.now, 0, 500)
	case op < 997:
		m.ks.Swap(m.rnd.IntN(m.ks.Databases()), m.rnd.IntN(m.ks.Databases()), m.now)
	case op < 998 && m.rnd.IntN(4) == 0:
		db.Flush()
	case op == 999 && m.rnd.IntN(10) == 0:
		m.ks.FlushAll()
	}
}

func (m *snapshotModel) expiry() int64 {
	if m.rnd.IntN(2) == 0 {
		return 0
	}
	return m.now + int64(m.rnd.IntN(20_000))
}

// elements is how many elements an operation writes: mostly few, now and then enough for a big form.
func (m *snapshotModel) elements() int {
	if m.filling > 0 {
		return m.filling
	}
	if m.rnd.IntN(20) == 0 {
		return m.rnd.IntN(2000)
	}
	return 1 + m.rnd.IntN(4)
}

func (m *snapshotModel) writeHash(db *DB, k Key) {
	h, err := db.HashCreate(k, m.now)
	if err != nil {
		return
	}
	for range m.elements() {
		field := fmt.Appendf(nil, "f%d", m.rnd.IntN(2000))
		if m.rnd.IntN(3) > 0 {
			h.Set(field, m.text(20))
		} else {
			h.Delete(field)
		}
	}
}

func (m *snapshotModel) writeZSet(db *DB, k Key) {
	z, err := db.ZSetCreate(k, m.now)
	if err != nil {
		return
	}
	for range m.elements() {
		member := fmt.Appendf(nil, "m%d", m.rnd.IntN(2000))
		score := float64(m.rnd.IntN(1000)) / 8
		if k.Hash%2 == 0 && m.rnd.IntN(1000) > 0 { // a log
			score = float64(1_700_000_000_000 + m.rnd.IntN(3000))
			member = strconv.AppendInt(nil, int64(score), 10)
		}
		if m.rnd.IntN(3) > 0 {
			z.Add(score, member)
		} else {
			z.Remove(member)
		}
	}
}

func (m *snapshotModel) writeList(db *DB, k Key) {
	l, _, err := db.List(k, m.now)
	if err != nil {
		return
	}
	for range m.elements() {
		switch n := l.Len(); m.rnd.IntN(8) {
		case 0, 1:
			l.Push(true, m.text(60))
		case 2, 3, 4:
			l.Push(false, m.text(60))
		case 5:
			if n > 0 {
				l.Set(m.rnd.IntN(n), m.text(60))
			}
		case 6:
			if n > 0 {
				l.Insert(m.rnd.IntN(n), m.text(60))
			}
		case 7:
			if n > 0 {
				i := []int{0, m.rnd.IntN(n), n - 1}[m.rnd.IntN(3)]
				l.Cut(i, min(n-i, 1+m.rnd.IntN(5)))
			}
		}
	}
	if l.Len() > 0 && m.rnd.IntN(3) == 0 {
		l.Remove(m.text(3), 5, true)
	}
}

func (m *snapshotModel) writeSet(db *DB, k Key) {
	set, _, err := db.Set(k, m.now)
	if err != nil {
		return
	}
	for range m.elements() {
		member := strconv.AppendInt(nil, int64(m.rnd.IntN(2000)), 10)
		if k.Hash%2 == 0 {
			member = append(member, 'x')
		}
		if m.rnd.IntN(3) > 0 {
			set.Add(member)
		} else {
			set.Remove(member)
		}
	}
}

func (m *snapshotModel) writeStream(db *DB, k Key) {
	s, _, err := db.Stream(k, m.now)
	if err != nil {
		return
	}
	for range m.elements() {
		last := s.Info().Last
		switch m.rnd.IntN(12) {
		case 0:
			s.Delete(StreamID{last.MS - uint64(m.rnd.IntN(20)), 0})
		case 1:
			s.Trim(StreamTrim{Max: int64(m.rnd.IntN(500)), Approx: m.rnd.IntN(2) == 0})
		case 2:
			s.Create()
			s.CreateGroup([]byte("g"), StreamID{}, 0)
		case 3:
			if g := s.Group([]byte("g")); g != nil {
				const heard = 1 // always the same: hearing of a consumer does not pass the gate, so that a snapshot may be seen of it
				c, _ := s.See(g, fmt.Appendf(nil, "c%d", m.rnd.IntN(3)), heard)
				s.Assign(g, c, last, m.now, 1)
				s.Advance(g, last)
			}
		case 4:
			if g := s.Group([]byte("g")); g != nil {
				s.Acknowledge(g, StreamID{last.MS - uint64(m.rnd.IntN(20)), 0})
			}
		case 5:
			if g := s.Group([]byte("g")); g != nil && m.rnd.IntN(50) == 0 {
				if !s.DestroyGroup([]byte("g")) || m.rnd.IntN(2) == 0 {
					continue
				}
				s.CreateGroup([]byte("g"), StreamID{}, 0)
			} else if g != nil && m.rnd.IntN(20) == 0 {
				s.DeleteConsumer(g, fmt.Appendf(nil, "c%d", m.rnd.IntN(3)))
			}
		case 6, 7:
			if g := s.Group([]byte("g")); g != nil && len(g.Consumers()) > 0 { // as who claims it, or reads it once more
				g.EachPending(StreamID{last.MS - min(last.MS, uint64(m.rnd.IntN(500))), 0}, func(p *Pending) bool {
					to := g.Consumers()[m.rnd.IntN(len(g.Consumers()))]
					s.Assign(g, to, p.ID, m.now+int64(m.rnd.IntN(100)), p.Count+1)
					return false
				})
			}
		default:
			s.Add(StreamID{last.MS + 1, 0}, [][]byte{[]byte("field"), m.text(40)})
		}
	}
}

// TestSnapshotModel writes at random before and during snapshots, and compares what each has visited with what was there when it began.
func TestSnapshotModel(t *testing.T) {
	const writes = 4000
	rnd := newRand(t)
	ks := New(Options{Databases: 4})
	t.Cleanup(ks.Close)
	m := &snapshotModel{ks: ks, rnd: rnd, now: 1_000_000}
	for round := range max(2, *opsFlag/100_000) {
		for range rnd.IntN(writes) {
			m.write()
		}
		for range rnd.IntN(2) * rnd.IntN(2*epochs) {
			given := ks.Snapshot(newSeenKeys(t), 1<<rnd.IntN(24))
			given.Step(rnd.IntN(10_000))
			m.write()
			given.Abort()
		}
		want := contentsNow(t, ks)
		seen := newSeenKeys(t)
		s := ks.Snapshot(seen, 1<<rnd.IntN(24))
		budget, perStep := 1<<(8+rnd.IntN(8)), rnd.IntN(20)
		for left := writes; s.Step(budget); {
			for range min(rnd.IntN(perStep+1), left) {
				m.write()
				left--
			}
			if rnd.IntN(1000) == 0 {
				contentsNow(t, ks) // reading values whole disturbs nothing
			}
			if rnd.IntN(20_000) == 0 {
				s.Abort()
				break
			}
		}
		if s.seen() {
			requireSameKeys(t, want, seen.keys)
			require.Zero(t, s.Extra(), "round %d", round)
			requireWhole(t, s)
		}
		require.Nil(t, ks.snapshot)
		require.Empty(t, s.lost)
	}
}

// TestSnapshotNumbers uses up the numbers of snapshots, by ending them and by giving them up, with keys in a database that was emptied.
func TestSnapshotNumbers(t *testing.T) {
	ks := New(Options{Databases: 2})
	t.Cleanup(ks.Close)
	lasting, emptied := ks.dbs[0], ks.dbs[1]
	names := make([]string, 3000)
	for i := range names {
		names[i] = fmt.Sprint("key", i)
		lasting.SetInt(ks.Key([]byte(names[i])), 0, 0)
	}
	for round := range int64(4 * epochs) {
		for _, name := range names {
			emptied.SetInt(ks.Key([]byte(name)), round, 0)
		}
		if round%3 == 0 {
			ks.Snapshot(newSeenKeys(t), 1<<20).Abort()
		}
		if round%40 == 39 {
			for range 2 * epochs {
				given := ks.Snapshot(newSeenKeys(t), 1<<20)
				given.Step(10_000)
				lasting.SetInt(ks.Key([]byte(names[round])), round, 0)
				given.Abort()
			}
		}
		if round%2 == 0 {
			for _, name := range names {
				e, ok := emptied.Find(ks.Key([]byte(name)), 0)
				require.True(t, ok)
				e.Delete()
			}
		}
		want := contentsNow(t, ks)
		seen := newSeenKeys(t)
		s := ks.Snapshot(seen, 1<<20)
		for i := 0; s.Step(2000); i++ {
			lasting.SetInt(ks.Key([]byte(names[i])), round, 0)
			emptied.SetInt(ks.Key([]byte(names[i])), -1, 0)
		}
		require.True(t, s.seen())
		requireSameKeys(t, want, seen.keys)
	}
}

// TestSnapshotVisitsItsTotal: a snapshot that has come to its end has visited as many keys as there were when it began, whether they were visited
// at once or had to wait, and whatever has been written meanwhile.
func TestSnapshotVisitsItsTotal(t *testing.T) {
	ks := New(Options{Databases: 2})
	t.Cleanup(ks.Close)
	for _, db := range ks.dbs {
		db.SetInt(ks.Key([]byte("int")), 1, 0)
		db.SetText(ks.Key([]byte("short")), []byte("text"), 0)
		db.SetText(ks.Key([]byte("long")), make([]byte, 2*longValue), 0)
		h, _ := db.HashCreate(ks.Key([]byte("hash")), 0)
		for i := range 1000 {
			h.Set(strconv.AppendInt(nil, int64(i), 10), []byte("value"))
		}
	}
	s := ks.Snapshot(newSeenKeys(t), 1<<20)
	requireProgress := func(seen int) {
		t.Helper()
		got, total := s.Progress()
		require.Equal(t, []int{seen, 8}, []int{got, total})
	}
	requireProgress(0)
	db := ks.DB(1)
	db.SetInt(ks.Key([]byte("int")), 2, 0)
	requireProgress(1)
	db.SetInt(ks.Key([]byte("new")), 2, 0)
	requireProgress(1)
	db.SetInt(ks.Key([]byte("long")), 2, 0) // which has to wait
	requireProgress(1)
	for s.Step(1000) {
	}
	requireProgress(8)
}

// requireWhole checks that a snapshot that has ended has visited all keys that there were.
func requireWhole(t *testing.T, s *Snapshot) {
	t.Helper()
	seen, total := s.Progress()
	require.Equal(t, total, seen)
}

// seen reports whether the snapshot has come to its end.
func (s *Snapshot) seen() bool { return s.origin == len(s.sizes) }

func requireSameKeys(t *testing.T, want, got map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[name]; !ok || value != want[name] {
			require.FailNow(t, "another value", "%s\nwant %.300s\ngot  %.300s", name, want[name], value)
		}
	}
	require.Len(t, got, len(want))
}

// countingSink counts the bytes and elements that it is given, as work.
type countingSink struct{ work int }

func (c *countingSink) Database(int)                                                 {}
func (c *countingSink) Sizes(_, _ int)                                               {}
func (c *countingSink) Key(name []byte, _ int64)                                     { c.work += keyWork + len(name) }
func (c *countingSink) Int(int64)                                                    {}
func (c *countingSink) Text(v []byte)                                                { c.work += len(v) }
func (c *countingSink) LongText(int)                                                 {}
func (c *countingSink) TextPart(p []byte)                                            { c.work += len(p) }
func (c *countingSink) Hash(int, bool)                                               {}
func (c *countingSink) Pair(field, value []byte)                                     { c.work += elementWork + len(field) + len(value) }
func (c *countingSink) ZSet(int, bool)                                               {}
func (c *countingSink) Scored(m []byte, _ float64)                                   { c.work += elementWork + len(m) }
func (c *countingSink) List(_, _ int)                                                {}
func (c *countingSink) Element(v []byte)                                             { c.work += len(v) }
func (c *countingSink) EndNode()                                                     {}
func (c *countingSink) Set(int)                                                      {}
func (c *countingSink) Member(m []byte)                                              { c.work += elementWork + len(m) }
func (c *countingSink) IntSet()                                                      {}
func (c *countingSink) IntMember(int64)                                              { c.work += elementWork }
func (c *countingSink) Stream(int)                                                   {}
func (c *countingSink) StreamNode(_ [2]uint64, lp []byte)                            { c.work += len(lp) }
func (c *countingSink) StreamInfo(int, [2]uint64, [2]uint64, [2]uint64, uint64, int) {}
func (c *countingSink) StreamGroup(string, [2]uint64, int64, int, int)               {}
func (c *countingSink) StreamPending([2]uint64, int64, uint64)                       { c.work += elementWork }
func (c *countingSink) StreamConsumer(string, int64, int)                            {}
func (c *countingSink) StreamOwned([2]uint64)                                        { c.work += elementWork }
func (c *countingSink) End()                                                         {}

// bigAndSmall fills a database with values of all sizes.
func bigAndSmall(db *DB) {
	ks := db.ks
	key := func(format string, a ...any) Key { return ks.Key(fmt.Appendf(nil, format, a...)) }
	for i := range 20_000 {
		db.SetInt(key("int:%d", i), int64(i), 0)
		if i%10 == 0 {
			db.SetText(key("text:%d", i), make([]byte, i), 0)
		}
	}
	db.SetText(key("long"), make([]byte, 5_000_000), 0)
	for i := range 3 {
		h, _ := db.HashCreate(key("hash:%d", i), 0)
		z, _ := db.ZSetCreate(key("zset:%d", i), 0)
		l, _ := db.ZSetCreate(key("log:%d", i), 0)
		for j := range 30_000 {
			name := fmt.Appendf(nil, "element:%d", j)
			h.Set(name, name)
			z.Add(float64(j%100), name)
			l.Add(float64(1_700_000_000_000+j), strconv.AppendInt(nil, 1_700_000_000_000+int64(j), 10))
		}
	}
}

// TestSnapshotStepsAreBounded: no step and no write does much more work than it is to do, whatever the values' sizes.
func TestSnapshotStepsAreBounded(t *testing.T) {
	const (
		budget = 4 << 10
		bucket = bucketSlots * (longValue + keyWork + bucketWork)
		whole  = wholeTextSize + longValue
		big    = 14 << 20 // bytes of the values that are seen in parts
	)
	rnd := newRand(t)
	ks := New(Options{Databases: 1})
	t.Cleanup(ks.Close)
	db := ks.DB(0)
	bigAndSmall(db)
	sink := &countingSink{}
	s := ks.Snapshot(sink, 256<<10)
	steps := 0
	for more := true; more; steps++ {
		sink.work = 0
		more = s.Step(budget)
		require.LessOrEqual(t, sink.work, budget+whole+bucket, "a step")
		for range 20 {
			sink.work = 0
			i := rnd.IntN(30_000)
			name := fmt.Appendf(nil, "element:%d", i)
			added := s.Extra()
			switch rnd.IntN(5) {
			case 0:
				db.SetInt(ks.Key(fmt.Appendf(nil, "int:%d", i)), 1, 0)
			case 1:
				h, _ := db.HashCreate(ks.Key([]byte("hash:1")), 0)
				h.Set(name, []byte("other"))
			case 2:
				z, _ := db.ZSetCreate(ks.Key([]byte("zset:1")), 0)
				z.Add(rnd.Float64(), name)
			case 3:
				db.SetText(ks.Key(fmt.Appendf(nil, "text:%d", i/10*10)), name, 0)
			case 4:
				_, _ = db.AppendTo(ks.Key([]byte("long")), 0, name)
			}
			added = max(0, s.Extra()-added)
			split := splitAt * (keyWork + 10) // a table that splits is seen first
			require.LessOrEqual(t, sink.work, bucket+writeWork+whole+split+payRatio*(added+bucketSlots*maxBlock), "a write")
		}
		require.LessOrEqual(t, s.Extra(), 256<<10+bucketSlots*maxBlock+big/payRatio, "what is kept")
	}
	require.Greater(t, steps, 100)
}

// TestSnapshotOfAStringThatChanges covers each way of changing a big string in place.
func TestSnapshotOfAStringThatChanges(t *testing.T) {
	changes := map[string]func(db *DB, k Key){
		"append":    func(db *DB, k Key) { _, _ = db.AppendTo(k, 0, []byte("tail")) },
		"set range": func(db *DB, k Key) { _, _ = db.SetRange(k, 0, 100, []byte("middle")) },
		"grow":      func(db *DB, k Key) { _, _ = db.GrowString(k, 0, 400_000) },
		"bits": func(db *DB, k Key) {
			e, _ := db.Find(k, 0)
			e.WritableBytes()[150_000] = 1
		},
		"replace": func(db *DB, k Key) { db.SetText(k, []byte("new"), 0) },
		"delete": func(db *DB, k Key) {
			e, _ := db.Find(k, 0)
			e.Delete()
		},
		"flush":  func(db *DB, _ Key) { db.Flush() },
		"rename": func(db *DB, k Key) { db.Rename(k, db.ks.Key([]byte("other")), 0) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			ks := New(Options{Databases: 1})
			t.Cleanup(ks.Close)
			db, k := ks.DB(0), ks.Key([]byte("k"))
			db.SetText(k, []byte(strings.Repeat("0123456789", 30_000)), 7)
			_, _ = db.AppendTo(k, 0, []byte("x")) // with room behind it
			want := contentsNow(t, ks)
			seen := newSeenKeys(t)
			s := ks.Snapshot(seen, 1<<20)
			s.Step(1) // it waits
			s.Step(1) // a part is seen
			change(db, k)
			_, _ = db.SetRange(k, 0, 200_000, []byte("again"))
			for s.Step(1 << 10) {
				_, _ = db.AppendTo(k, 0, []byte("more"))
			}
			requireSameKeys(t, want, seen.keys)
		})
	}
}
