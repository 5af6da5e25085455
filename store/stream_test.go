package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// modelStream is the stream that needs no thought: a slice of entries, of which some are gone.
type modelStream struct {
	entries    []modelStreamEntry
	last       StreamID
	maxDeleted StreamID
	added      uint64
}

type modelStreamEntry struct {
	id     StreamID
	fields []string
}

// text shows an entry.
func (e modelStreamEntry) text() string { return fmt.Sprint(e.id, e.fields) }

func (m *modelStream) between(from, to StreamID) []string {
	texts := []string{}
	for _, e := range m.entries {
		if from.Compare(e.id) <= 0 && e.id.Compare(to) <= 0 {
			texts = append(texts, e.text())
		}
	}
	return texts
}

// streamTest drives a stream and its model side by side.
type streamTest struct {
	t     *testing.T
	rnd   *rand.Rand
	ks    *Keyspace
	db    *DB
	key   Key
	model modelStream
}

func newStreamTest(t *testing.T, maxBytes, maxEntries int) *streamTest {
	limits := DefaultLimits()
	limits.StreamNodeMaxBytes, limits.StreamNodeMaxEntries = maxBytes, maxEntries
	ks, db := typesKeyspace(t, limits)
	return &streamTest{t: t, rnd: newRand(t), ks: ks, db: db, key: ks.Key([]byte("stream"))}
}

func (s *streamTest) open() Stream {
	s.t.Helper()
	view, _, err := s.db.Stream(s.key, 0)
	require.NoError(s.t, err)
	return view
}

// id is near to one that was used.
func (s *streamTest) id() StreamID {
	return StreamID{s.rnd.Uint64N(s.model.last.MS + 2), s.rnd.Uint64N(4)}
}

func (s *streamTest) add() {
	view := s.open()
	id := StreamID{s.model.last.MS, s.model.last.Seq + 1 + s.rnd.Uint64N(3)}
	if s.rnd.IntN(2) == 0 {
		id = StreamID{s.model.last.MS + 1 + s.rnd.Uint64N(3), s.rnd.Uint64N(3)}
	}
	fields := []string{"field", fmt.Sprint(s.rnd.Int64() >> s.rnd.IntN(64))}
	if s.rnd.IntN(3) == 0 {
		fields = nil
		for range 2 * (1 + s.rnd.IntN(4)) {
			fields = append(fields, []string{"", "a", "-1", "127", "128", "-70000", "007", strings.Repeat("long ", s.rnd.IntN(100))}[s.rnd.IntN(8)])
		}
	}
	var raw [][]byte
	for _, f := range fields {
		raw = append(raw, []byte(f))
	}
	view.Add(id, raw)
	s.model.entries = append(s.model.entries, modelStreamEntry{id, fields})
	s.model.last = id
	s.model.added++
}

func (s *streamTest) remove() {
	view := s.open()
	id := s.id()
	if n := len(s.model.entries); n > 0 && s.rnd.IntN(2) == 0 {
		id = s.model.entries[s.rnd.IntN(n)].id
	}
	i := slices.IndexFunc(s.model.entries, func(e modelStreamEntry) bool { return e.id == id })
	dirty := s.ks.Dirty()
	require.Equal(s.t, i >= 0, view.Has(id))
	require.Equal(s.t, i >= 0, view.Delete(id))
	require.Equal(s.t, i >= 0, s.ks.Dirty() > dirty, "the gate is passed when something changes")
	if i >= 0 {
		s.model.entries = slices.Delete(s.model.entries, i, i+1)
		if id.Compare(s.model.maxDeleted) > 0 {
			s.model.maxDeleted = id
		}
	}
}

func (s *streamTest) trim() {
	view := s.open()
	t := StreamTrim{ByID: s.rnd.IntN(2) == 0, Max: int64(s.rnd.IntN(len(s.model.entries) + 5)), Min: s.id(), Approx: s.rnd.IntN(2) == 0}
	if t.Approx && s.rnd.IntN(2) == 0 {
		t.Limit = int64(s.rnd.IntN(40))
	}
	exact := max(0, len(s.model.entries)-int(t.Max))
	if t.ByID {
		exact = len(s.model.between(StreamID{}, t.Min))
		if slices.ContainsFunc(s.model.entries, func(e modelStreamEntry) bool { return e.id == t.Min }) {
			exact--
		}
	}
	dirty := s.ks.Dirty()
	removed := int(view.Trim(t))
	require.True(s.t, removed <= exact && (t.Approx || removed == exact), "%+v removed %d of %d", t, removed, exact)
	require.True(s.t, t.Limit == 0 || removed <= int(t.Limit))
	if removed > 0 {
		require.Greater(s.t, s.ks.Dirty(), dirty)
	}
	s.model.entries = slices.Delete(s.model.entries, 0, removed)
}

// verify compares every way of reading.
func (s *streamTest) verify() {
	t := s.t
	view := s.open()
	require.Equal(t, len(s.model.entries), view.Len())
	for range 4 {
		from, to := s.id(), s.id()
		if s.rnd.IntN(3) == 0 {
			from, to = StreamID{}, MaxStreamID
		}
		want := s.model.between(from, to)
		require.Equal(t, want, texts(&view, from, to, false))
		slices.Reverse(want)
		require.Equal(t, want, texts(&view, from, to, true))
	}
	first, newest := StreamID{}, StreamID{}
	if n := len(s.model.entries); n > 0 {
		first, newest = s.model.entries[0].id, s.model.entries[n-1].id
	}
	require.Equal(t, StreamInfo{Last: s.model.last, First: first, MaxDeleted: s.model.maxDeleted, Added: s.model.added}, view.Info())
	require.Equal(t, newest, view.Newest())
}

func texts(s *Stream, from, to StreamID, reverse bool) []string {
	found := []string{}
	s.Each(from, to, reverse, func(e *StreamEntry) bool {
		shown := modelStreamEntry{id: e.ID}
		e.Each(func(field, value []byte) { shown.fields = append(shown.fields, string(field), string(value)) })
		found = append(found, shown.text())
		return true
	})
	return found
}

func TestStreamModel(t *testing.T) {
	for _, limits := range [][2]int{{4096, 100}, {200, 0}, {0, 10}, {0, 0}, {1, 1}, {0, 200}} {
		t.Run(fmt.Sprint(limits), func(t *testing.T) {
			s := newStreamTest(t, limits[0], limits[1])
			for i := range 3000 {
				switch s.rnd.IntN(20) {
				case 0:
					if s.rnd.IntN(10) == 0 {
						s.trim()
					}
				case 1, 2, 3, 4, 5:
					s.remove()
				default:
					s.add()
				}
				if i%50 == 0 {
					s.verify()
				}
			}
			s.verify()
		})
	}
}

// A copy shares nothing that changes: entries, groups, consumers and what is pending.
func TestStreamCopies(t *testing.T) {
	s := newStreamTest(t, 4096, 100)
	for range 150 {
		s.add()
	}
	view := s.open()
	require.True(t, view.CreateGroup([]byte("g"), StreamID{}, 0))
	g := view.Group([]byte("g"))
	c, created := view.See(g, []byte("c"), 5)
	require.True(t, created)
	view.Each(StreamID{}, MaxStreamID, false, func(e *StreamEntry) bool {
		view.Advance(g, e.ID)
		view.Assign(g, c, e.ID, 7, 1)
		return true
	})
	other := s.ks.Key([]byte("other"))
	require.True(t, s.db.Copy(s.key, s.db, other, false, 0))
	first := view.Info().First
	require.True(t, view.Acknowledge(g, first))
	view.Trim(StreamTrim{Max: 10})
	_, found := view.DeleteConsumer(g, []byte("c"))
	require.True(t, found)

	copied, found, err := s.db.Stream(other, 0)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, 150, copied.Len())
	require.Equal(t, s.model.between(StreamID{}, MaxStreamID), texts(&copied, StreamID{}, MaxStreamID, false))
	own := copied.Group([]byte("g"))
	require.Equal(t, 150, own.Pending())
	require.EqualValues(t, 150, own.Reads())
	require.Equal(t, s.model.last, own.Last())
	require.Equal(t, first, own.FindPending(first).ID)
	require.Same(t, own.Consumers()[0], own.FindPending(first).Consumer())
	require.Equal(t, 150, own.Consumers()[0].Pending())
	require.Equal(t, 0, g.Pending())
	require.Equal(t, "stream", copied.Entry().Encoding())
	require.Greater(t, copied.Entry().MemoryUsage(), 150*10)
}

// Whoever waits for a stream hears of its entries, and of its end in every way that there is.
func TestStreamSignals(t *testing.T) {
	tests := []struct {
		name string
		run  func(s *streamTest)
	}{
		{"an entry", (*streamTest).add},
		{"no group any more", func(s *streamTest) { view := s.open(); view.DestroyGroup([]byte("g")) }},
		{"deleted", func(s *streamTest) { view := s.open(); view.Entry().Delete() }},
		{"replaced", func(s *streamTest) { s.db.SetInt(s.key, 5, 0) }},
		{"renamed", func(s *streamTest) { s.db.Rename(s.key, s.ks.Key([]byte("x")), 0) }},
		{"flushed", func(s *streamTest) { s.db.Flush() }},
		{"expired", func(s *streamTest) { view := s.open(); view.Entry().SetExpireAt(1); s.db.Find(s.key, 2) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStreamTest(t, 4096, 100)
			s.add()
			view := s.open()
			view.CreateGroup([]byte("g"), StreamID{}, 0)
			require.Nil(t, s.ks.NextReady())
			w := Wait{By: s}
			require.True(t, s.db.Await(s.key, &w))
			test.run(s)
			require.Same(t, w.Awaited(), s.ks.NextReady())
			require.Nil(t, s.ks.NextReady())
		})
	}
}

// BenchmarkStream adds entries to a stream that is kept at 1000, and goes through all of it.
func BenchmarkStream(b *testing.B) {
	const kept = 1000
	ks, db := typesKeyspace(b, DefaultLimits())
	view, _, _ := db.Stream(ks.Key([]byte("stream")), 0)
	fields := [][]byte{[]byte("user"), []byte("1234567"), []byte("text"), []byte("what was said"), []byte("at"), []byte("1700000000000")}
	id := StreamID{MS: 1_700_000_000_000}
	add := func() {
		id.MS++
		view.Add(id, fields)
	}
	for range kept {
		add()
	}
	b.Run("add", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			add()
			view.Trim(StreamTrim{Max: kept, Approx: true})
		}
	})
	view.Trim(StreamTrim{Max: kept})
	for _, reverse := range []bool{false, true} {
		b.Run(fmt.Sprintf("each/reverse=%t", reverse), func(b *testing.B) {
			b.ReportAllocs()
			sum := 0
			for b.Loop() {
				view.Each(StreamID{}, id, reverse, func(e *StreamEntry) bool {
					e.Each(func(field, value []byte) { sum += len(field) + len(value) })
					return true
				})
			}
		})
	}
}

// TestPreviousID: within a millisecond, across two, and before the least.
func TestPreviousID(t *testing.T) {
	for id, want := range map[StreamID]StreamID{
		{MS: 5, Seq: 2}: {MS: 5, Seq: 1},
		{MS: 5, Seq: 1}: {MS: 5},
		{MS: 5}:         {MS: 4, Seq: math.MaxUint64},
		{MS: 1}:         {Seq: math.MaxUint64},
	} {
		previous, ok := id.Previous()
		require.True(t, ok)
		require.Equal(t, want, previous)
	}
	_, ok := StreamID{}.Previous()
	require.False(t, ok)
}

// TestReadsAreUnknownWhereEntriesWereDeleted: at the first entry, too, if its ID is the last deleted one, which XSETID can say.
func TestReadsAreUnknownWhereEntriesWereDeleted(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	s, _, err := ks.DB(0).Stream(testKey(ks, "s"), 0)
	require.NoError(t, err)
	for ms := range uint64(2) {
		s.Add(StreamID{MS: 5 + ms}, [][]byte{[]byte("f"), []byte("v")})
	}
	for deleted, want := range map[StreamID]int64{{}: 1, {MS: 4}: 1, {MS: 5}: UnknownReads, {MS: 6}: UnknownReads} {
		s.SetInfo(StreamInfo{Last: StreamID{MS: 6}, Added: 2, MaxDeleted: deleted})
		require.Equal(t, want, s.ReadsUpTo(StreamID{MS: 5}), "%v", deleted)
	}
}

// TestLag: what a group has still to read is known from the first entry on, as long as none that is ahead of it has been deleted.
func TestLag(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	s, _, err := ks.DB(0).Stream(testKey(ks, "s"), 0)
	require.NoError(t, err)
	s.Create()
	require.True(t, s.CreateGroup([]byte("g"), StreamID{}, 0))
	g := s.Group([]byte("g"))
	requireLag := func(want int64) {
		t.Helper()
		lag, ok := s.Lag(g)
		require.True(t, ok)
		require.Equal(t, want, lag)
	}
	requireLag(0)
	for ms := range uint64(3) {
		s.Add(StreamID{MS: 5 + ms}, [][]byte{[]byte("f"), []byte("v")})
		requireLag(int64(ms) + 1)
	}
	s.Advance(g, StreamID{MS: 5})
	requireLag(2)
	require.True(t, s.Delete(StreamID{MS: 6}))
	_, ok := s.Lag(g)
	require.False(t, ok)
}

// TestFlagsInALongForm: whatever form the flags of entries came in, those that are marked as deleted do not move the others out of sight.
func TestFlagsInALongForm(t *testing.T) {
	ks, db := typesKeyspace(t, DefaultLimits())
	s, _, err := db.Stream(testKey(ks, "s"), 1)
	require.NoError(t, err)
	const entries = 6
	lp := []byte{0, 0, 0, 0, 5 + 5*entries, 0, entries, 1, 0, 1, 1, 1, 0x81, 'f', 2, 0, 1}
	for i := range byte(entries) {
		lp = append(lp, 0xf4, streamSameFields, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, i, 1, 0x81, 'v', 2, 4, 1)
	}
	lp = append(lp, 0xff)
	lp[0] = byte(len(lp))
	s.AddNode(StreamID{1, 0}, lp, entries)
	s.SetLoaded(StreamInfo{Last: StreamID{1, entries - 1}, First: StreamID{1, 0}, Added: entries})
	require.EqualValues(t, entries-1, s.Trim(StreamTrim{Max: 1}))
	require.Equal(t, []string{"{1 5} [f v]"}, texts(&s, StreamID{}, MaxStreamID, false))
	require.Equal(t, []string{"{1 5} [f v]"}, texts(&s, StreamID{}, MaxStreamID, true))
}
