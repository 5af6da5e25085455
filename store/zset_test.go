package store

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// zsetTest drives a sorted set and its model side by side.
type zsetTest struct {
	t     *testing.T
	rnd   *rand.Rand
	ks    *Keyspace
	db    *DB
	key   Key
	model modelZSet
	lex   bool // all scores the same, so that ranges of members mean something
	log   bool // most members tell their own score, as those of a sliding log
	nanos bool // many of these in nanoseconds, of which several are the same float64
}

func newZSetTest(t *testing.T, rnd *rand.Rand, limits Limits) *zsetTest {
	ks, db := typesKeyspace(t, limits)
	return &zsetTest{t: t, rnd: rnd, ks: ks, db: db, key: ks.Key([]byte("zset")), model: modelZSet{}}
}

func (z *zsetTest) open() ZSet {
	z.t.Helper()
	set, err := z.db.ZSetCreate(z.key, 0)
	require.NoError(z.t, err)
	return set
}

var testScores = []float64{0, math.Copysign(0, -1), 1, -1, 2, 2.5, 3, math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
	math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 1e300}

func (z *zsetTest) score() float64 {
	switch {
	case z.lex:
		return 7
	case z.log && z.rnd.IntN(10) > 0:
		return float64(z.stamp().score)
	case z.rnd.IntN(3) == 0:
		return testScores[z.rnd.IntN(len(testScores))]
	}
	return float64(z.rnd.IntN(60)) / 2
}

func (z *zsetTest) member() []byte {
	if z.log && z.rnd.IntN(10) > 0 {
		return z.stamp().appendText(nil)
	}
	return randomName(z.rnd, 200)
}

// logTestScores is how many scores a test of logs draws from.
const logTestScores = 150

// logTestNanos is a time in nanoseconds, from which on the scores of a test are some five float64s.
const logTestNanos = 1_763_900_060_123_456_789

func (z *zsetTest) stamp() stamp {
	if z.nanos && z.rnd.IntN(3) > 0 {
		return stamp{score: logTestNanos + z.rnd.Int64N(logTestScores)*7}
	}
	s := stamp{score: z.rnd.Int64N(logTestScores)}
	if z.rnd.IntN(2) == 0 {
		s.suffix = 1 + uint32(z.rnd.IntN(30))
	}
	return s
}

// entry is what a write adds.
func (z *zsetTest) entry() (float64, []byte) {
	if z.log && z.rnd.IntN(10) > 0 {
		s := z.stamp()
		return float64(s.score), s.appendText(nil)
	}
	return z.score(), z.member()
}

func (z *zsetTest) scoreRange() ScoreRange {
	r := ScoreRange{Min: z.score(), Max: z.score(), MinEx: z.rnd.IntN(3) == 0, MaxEx: z.rnd.IntN(3) == 0}
	if z.rnd.IntN(4) == 0 {
		r.Max = r.Min
	}
	return r
}

func (z *zsetTest) lexRange() LexRange {
	return LexRange{
		Min: z.member(), Max: z.member(), MinEx: z.rnd.IntN(3) == 0, MaxEx: z.rnd.IntN(3) == 0,
		MinInf: z.rnd.IntN(5) == 0, MaxInf: z.rnd.IntN(5) == 0, Empty: z.rnd.IntN(20) == 0,
	}
}

// change does one random write to both, and checks that only a real change passes the gate.
func (z *zsetTest) change() {
	set := z.open()
	dirty := z.ks.Dirty()
	changed := false
	switch z.rnd.IntN(12) {
	case 0, 1:
		member := z.member()
		_, want := z.model[string(member)]
		delete(z.model, string(member))
		changed = set.Remove(member)
		require.Equal(z.t, want, changed)
	case 2:
		start, stop := z.rnd.IntN(40), z.rnd.IntN(40)
		entries := z.model.sorted()
		low := min(start, len(entries))
		want := z.model.remove(entries[low:max(low, min(stop+1, len(entries)))])
		require.Equal(z.t, want, set.RemoveRank(start, stop))
		changed = want > 0
	case 3:
		if z.lex {
			r := z.lexRange()
			want := z.model.remove(z.model.inLex(r))
			require.Equal(z.t, want, set.RemoveLex(r), "%+v", r)
			changed = want > 0
			break
		}
		r := z.scoreRange()
		if z.rnd.IntN(3) > 0 {
			r.Max = r.Min
		}
		want := z.model.remove(z.model.inScore(r))
		require.Equal(z.t, want, set.RemoveScore(r), "%+v", r)
		changed = want > 0
	case 4:
		if n := set.Len(); n > 0 {
			at := z.rnd.IntN(2) * (n - 1)
			member, _ := set.AtRank(at)
			delete(z.model, z.model.sorted()[at].Member)
			require.True(z.t, set.Remove(member))
			changed = true
		}
	default:
		score, member := z.entry()
		wantAdded, wantChanged := z.model.add(score, string(member))
		added, moved := set.Add(score, member)
		require.Equal(z.t, wantAdded, added)
		require.Equal(z.t, wantChanged, moved)
		changed = added || moved
	}
	require.Equal(z.t, changed, z.ks.Dirty() > dirty, "the gate is passed when something changes")
	require.Equal(z.t, len(z.model), set.Len())
	require.Equal(z.t, min(len(z.model), 1), z.db.Len(), "an empty set has no key")
}

// verify compares every way of reading.
func (z *zsetTest) verify() {
	t := z.t
	set := z.open()
	entries := z.model.sorted()
	require.Equal(t, len(entries), set.Len())

	got := newCollector()
	set.Range(0, len(entries)+3, false, got.each)
	requireEntries(t, entries, got.entries)
	got = newCollector()
	require.Zero(t, set.Scan(0, len(entries)+1, got.scan))
	slices.SortFunc(got.entries, compareEntries)
	requireEntries(t, entries, got.entries)

	for i, e := range entries {
		score, ok := set.Score([]byte(e.Member))
		require.True(t, ok)
		require.Equal(t, e.Score, score)
		rank, ok := set.Rank([]byte(e.Member))
		require.True(t, ok)
		require.Equal(t, i, rank)
		member, score := set.AtRank(i)
		require.Equal(t, e, modelEntry{string(member), score})
	}
	missing := []byte("never there")
	_, ok := set.Score(missing)
	require.False(t, ok)
	_, ok = set.Rank(missing)
	require.False(t, ok)

	for range 8 {
		z.verifyRanges(&set, entries)
	}
}

func (z *zsetTest) verifyRanges(set *ZSet, entries []modelEntry) {
	t := z.t
	reverse := z.rnd.IntN(2) == 0
	offset, limit := z.rnd.IntN(6)-1, z.rnd.IntN(30)-1

	start, stop := z.rnd.IntN(len(entries)+2), z.rnd.IntN(len(entries)+2)
	got := newCollector()
	set.Range(start, stop, reverse, got.each)
	requireEntries(t, page(entries, reverse, start, max(stop-start+1, 0)), got.entries)

	r := z.scoreRange()
	want := z.model.inScore(r)
	require.Equal(t, len(want), set.CountScore(r), "%+v", r)
	got = newCollector()
	set.EachScore(r, reverse, offset, limit, got.each)
	requireEntries(t, page(want, reverse, offset, limit), got.entries)

	if z.lex {
		r := z.lexRange()
		want := z.model.inLex(r)
		require.Equal(t, len(want), set.CountLex(r), "%+v", r)
		got = newCollector()
		set.EachLex(r, reverse, offset, limit, got.each)
		requireEntries(t, page(want, reverse, offset, limit), got.entries)
	}
}

func TestZSetModel(t *testing.T) {
	for name, limits := range encodings {
		for _, lex := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/lex=%v", name, lex), func(t *testing.T) {
				z := newZSetTest(t, newRand(t), limits)
				z.lex = lex
				for i := range 6000 {
					z.change()
					if i%40 == 0 {
						z.verify()
					}
				}
				z.verify()
			})
		}
	}
}

// TestZSetBigModel runs at a size at which the tree has levels and the index segments.
func TestZSetBigModel(t *testing.T) {
	rnd := newRand(t)
	z := newZSetTest(t, rnd, encodings["conversion"])
	set := z.open()
	member := func() string { return fmt.Sprintf("m%d", rnd.IntN(30_000)) }
	for range 60_000 {
		score, m := float64(rnd.IntN(5000)), member()
		z.model.add(score, m)
		set.Add(score, []byte(m))
	}
	z.verify()
	for range 20_000 {
		m := member()
		_, want := z.model[m]
		delete(z.model, m)
		require.Equal(t, want, set.Remove([]byte(m)))
	}
	z.verify()
	for _, r := range []ScoreRange{{Min: 100, Max: 400}, {Min: math.Inf(-1), Max: 50}, {Min: 1000, Max: math.Inf(1), MinEx: true}} {
		require.Equal(t, z.model.remove(z.model.inScore(r)), set.RemoveScore(r))
	}
	z.verify()
}

func TestZSetEncoding(t *testing.T) {
	limits := Limits{HashMaxListpackEntries: 1, HashMaxListpackValue: 1, ZSetMaxListpackEntries: 3, ZSetMaxListpackValue: 8}
	long := strings.Repeat("x", 9)
	tests := map[string]struct {
		key     string
		members []string
		want    string
	}{
		"within":             {"k", []string{"a", "b", "c"}, "listpack"},
		"too many":           {"k", []string{"a", "b", "c", "d"}, "skiplist"},
		"repeated":           {"k", []string{"a", "b", "c", "a"}, "listpack"},
		"longest":            {"k", []string{long[:8]}, "listpack"},
		"too long":           {"k", []string{long}, "skiplist"},
		"name fills a block": {strings.Repeat("k", 40<<10), []string{"a", "b"}, "skiplist"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			set, err := db.ZSetCreate(ks.Key([]byte(test.key)), 0)
			require.NoError(t, err)
			for i, m := range test.members {
				set.Add(float64(i), []byte(m))
			}
			require.Equal(t, test.want, set.Entry().Encoding())
			again, found, err := db.ZSet(ks.Key([]byte(test.key)), 0)
			require.NoError(t, err)
			require.True(t, found)
			for _, m := range test.members {
				_, ok := again.Score([]byte(m))
				require.True(t, ok)
			}
		})
	}
}

// TestZSetFillsBlock adds until the packed form meets the largest block, not the limits.
func TestZSetFillsBlock(t *testing.T) {
	ks, db := typesKeyspace(t, encodings["packed"])
	set, err := db.ZSetCreate(ks.Key([]byte("k")), 0)
	require.NoError(t, err)
	added := 0
	for ; set.Len() == 0 || set.Entry().Encoding() == "listpack"; added++ {
		set.Add(float64(-added), fmt.Appendf(nil, "member %d", added))
	}
	require.Greater(t, added, 1000)
	require.Equal(t, added, set.Len())
	for i := range added {
		score, ok := set.Score(fmt.Appendf(nil, "member %d", i))
		require.True(t, ok)
		require.Equal(t, float64(-i), score)
	}
}

func TestZSetWrongType(t *testing.T) {
	ks, db := typesKeyspace(t, Limits{})
	k := ks.Key([]byte("k"))
	db.SetString(k, []byte("text"), 0)
	_, _, err := db.ZSet(k, 0)
	require.ErrorIs(t, err, ErrWrongType)
	_, err = db.ZSetCreate(k, 0)
	require.ErrorIs(t, err, ErrWrongType)
	_, _, err = db.Hash(k, 0)
	require.ErrorIs(t, err, ErrWrongType)
}

func TestZSetMissing(t *testing.T) {
	ks, db := typesKeyspace(t, Limits{})
	set, found, err := db.ZSet(ks.Key([]byte("k")), 0)
	require.NoError(t, err)
	require.False(t, found)
	require.Zero(t, set.Len())
	require.False(t, set.Remove([]byte("m")))
	require.Zero(t, set.RemoveRank(0, 10))
	require.Zero(t, set.RemoveScore(ScoreRange{Min: math.Inf(-1), Max: math.Inf(1)}))
	require.Zero(t, set.CountLex(LexRange{MinInf: true, MaxInf: true}))
	set.Range(0, 10, true, func([]byte, float64) bool { t.Fatal("nothing to show"); return false })
	require.Zero(t, set.Scan(3, 1, func([]byte, float64) { t.Fatal("nothing to show") }))
	require.Zero(t, ks.Dirty())
	require.Zero(t, db.Len())
}

func TestZSetViewAfterEmptied(t *testing.T) {
	for name, limits := range encodings {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			set, err := db.ZSetCreate(ks.Key([]byte("k")), 0)
			require.NoError(t, err)
			for range 3 {
				set.Add(1, []byte("m"))
				set.Add(2, []byte("n"))
				require.Equal(t, 2, set.RemoveScore(ScoreRange{Min: 0, Max: 9}))
				require.Zero(t, set.Len())
				require.Zero(t, db.Len())
			}
		})
	}
}

func TestZSetSignOfZero(t *testing.T) {
	negative := math.Copysign(0, -1)
	for name, limits := range encodings {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			set, err := db.ZSetCreate(ks.Key([]byte("k")), 0)
			require.NoError(t, err)
			set.Add(negative, []byte("b"))
			set.Add(0, []byte("a"))
			added, changed := set.Add(0, []byte("b"))
			require.False(t, added || changed)
			score, _ := set.Score([]byte("b"))
			require.Equal(t, set.Entry().Encoding() == "skiplist", math.Signbit(score), "only the tree keeps it")
			member, _ := set.AtRank(0)
			require.Equal(t, "a", string(member))
			require.Equal(t, 2, set.CountScore(ScoreRange{Min: 0, Max: negative}))
		})
	}
}

func TestZSetRefusesNaN(t *testing.T) {
	ks, db := typesKeyspace(t, Limits{})
	set, err := db.ZSetCreate(ks.Key([]byte("k")), 0)
	require.NoError(t, err)
	require.Panics(t, func() { set.Add(math.NaN(), []byte("m")) })
	require.Zero(t, db.Len())
}

func TestZSetStopsWhenToldTo(t *testing.T) {
	for name, limits := range encodings {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			set, err := db.ZSetCreate(ks.Key([]byte("k")), 0)
			require.NoError(t, err)
			for i := range 10 {
				set.Add(float64(i), []byte{byte('a' + i)})
			}
			for _, reverse := range []bool{false, true} {
				seen := 0
				set.Range(0, 9, reverse, func([]byte, float64) bool { seen++; return seen < 4 })
				require.Equal(t, 4, seen)
			}
		})
	}
}

// TestZSetScanGuarantee changes the set between the calls of a scan and requires that
// every member that was there all along has been shown.
func TestZSetScanGuarantee(t *testing.T) {
	rnd := newRand(t)
	for range 60 {
		ks, db := typesKeyspace(t, encodings["big"])
		set, err := db.ZSetCreate(ks.Key([]byte("k")), 0)
		require.NoError(t, err)
		stays := map[string]bool{}
		for i := range 200 + rnd.IntN(2000) {
			m := fmt.Sprintf("m%d", i)
			set.Add(rnd.Float64(), []byte(m))
			stays[m] = true
		}
		shown := map[string]bool{}
		cursor := uint64(0)
		for {
			cursor = set.Scan(cursor, 1+rnd.IntN(30), func(m []byte, _ float64) { shown[string(m)] = true })
			if cursor == 0 {
				break
			}
			for range rnd.IntN(20) {
				m := fmt.Sprintf("m%d", rnd.IntN(3000))
				if rnd.IntN(3) > 0 {
					delete(stays, m)
					set.Remove([]byte(m))
				} else {
					set.Add(rnd.Float64(), []byte(m))
				}
			}
		}
		for m := range stays {
			require.True(t, shown[m], "%s was there all along", m)
		}
	}
}

func FuzzPackedZSet(f *testing.F) {
	f.Add([]byte("a1b2c3a9"), uint8(4))
	f.Add([]byte("\x00\x01\x02\x03\x80\x81\x82\xff\xfe\xfd"), uint8(200))
	f.Fuzz(func(t *testing.T, ops []byte, entries uint8) {
		limits := encodings["packed"]
		limits.ZSetMaxListpackEntries = int(entries)
		// The operations themselves are drawn from the input's bytes.
		z := newZSetTest(t, rand.New(&byteSource{bytes: ops}), limits)
		for range min(len(ops), 400) {
			z.lex = entries%2 == 0
			z.change()
		}
		z.verify()
	})
}

// byteSource is a random source whose numbers are the bytes of a fuzzer's input, and
// a plain sequence after its end.
type byteSource struct {
	bytes []byte
	next  uint64
}

func (s *byteSource) Uint64() uint64 {
	s.next++
	v := s.next
	if len(s.bytes) > 0 {
		v += uint64(s.bytes[0]) << 8
		s.bytes = s.bytes[1:]
	}
	// Spread over all 64 bits: IntN looks at the upper ones.
	return v * 0x9e3779b97f4a7c15
}

// TestZSetHotPathAllocs holds the limiters' commands to no allocation at all.
func TestZSetHotPathAllocs(t *testing.T) {
	const hotMembers = 100
	window := ScoreRange{Min: math.Inf(-1), Max: 10}
	for name, limits := range map[string]Limits{"packed": DefaultLimits(), "big": encodings["big"]} {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			k := ks.Key([]byte("rl:user:1"))
			set, err := db.ZSetCreate(k, 0)
			require.NoError(t, err)
			members := make([][]byte, hotMembers)
			for i := range members {
				members[i] = fmt.Appendf(nil, "%016d", i)
				set.Add(float64(100+i), members[i])
			}
			open := func() ZSet {
				set, err := db.ZSetCreate(k, 0)
				if err != nil {
					panic(err)
				}
				return set
			}
			score := 1000.0
			paths := map[string]func(){
				"update":         func() { set := open(); score++; set.Add(score, members[int(score)%hotMembers]) },
				"remove nothing": func() { set := open(); set.RemoveScore(window) },
				"len":            func() { set := open(); set.Len() },
				"score":          func() { set := open(); set.Score(members[7]) },
				"rank":           func() { set := open(); set.Rank(members[7]) },
				"count":          func() { set := open(); set.CountScore(ScoreRange{Min: 105, Max: 120}) },
			}
			if name == "packed" {
				paths["insert and remove"] = func() {
					set := open()
					set.Add(5, []byte("new"))
					set.RemoveScore(window)
				}
			}
			for path, fn := range paths {
				require.Zero(t, testing.AllocsPerRun(200, fn), path)
			}
		})
	}
}

// TestZSetMemory bounds what a big sorted set costs, for both orders of arrival.
func TestZSetMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("fills trees of hundreds of thousands of entries")
	}
	const n = 300_000
	const bound = 110
	for name, score := range map[string]func(i int) float64{
		"ascending": func(i int) float64 { return float64(1_700_000_000_000 + i) },
		"random":    func(i int) float64 { return float64(uint32(i) * 2654435761) },
	} {
		t.Run(name, func(t *testing.T) {
			before := heapInUse()
			tree := newZSetTree()
			var member [16]byte
			var number [8]byte
			for i := range n {
				hex.Encode(member[:], binary.BigEndian.AppendUint64(number[:0], uint64(i)))
				tree.insert(score(i), member[:])
			}
			each := float64(heapInUse()-before) / n
			t.Logf("%.1f bytes an entry", each)
			require.Less(t, each, float64(bound))
			runtime.KeepAlive(tree)
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

const benchMembers = 100_000

func benchZSet(b *testing.B, members int) (*ZSet, [][]byte) {
	ks, db := typesKeyspace(b, DefaultLimits())
	set, err := db.ZSetCreate(ks.Key([]byte("board")), 0)
	require.NoError(b, err)
	names := make([][]byte, members)
	for i := range names {
		names[i] = fmt.Appendf(nil, "member:%09d", i)
		set.Add(rand.Float64(), names[i])
	}
	b.ReportAllocs()
	b.ResetTimer()
	return &set, names
}

func BenchmarkZSetUpdate(b *testing.B) {
	set, names := benchZSet(b, benchMembers)
	for i := range b.N {
		set.Add(rand.Float64(), names[i*7919%benchMembers])
	}
}

func BenchmarkZSetInsert(b *testing.B) {
	set, _ := benchZSet(b, benchMembers)
	var name [24]byte
	for i := range b.N {
		set.Add(rand.Float64(), fmt.Appendf(name[:0], "new:%09d", i))
	}
}

func BenchmarkZSetRank(b *testing.B) {
	set, names := benchZSet(b, benchMembers)
	for i := range b.N {
		set.Rank(names[i*7919%benchMembers])
	}
}

// BenchmarkZSetWindow is a sliding log: drop what is too old, count, add.
func BenchmarkZSetWindow(b *testing.B) {
	for _, size := range []int{50, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			ks, db := typesKeyspace(b, DefaultLimits())
			k := ks.Key([]byte("rl:user:1"))
			var name [24]byte
			b.ReportAllocs()
			for i := range b.N {
				now := float64(i)
				set, err := db.ZSetCreate(k, 0)
				if err != nil {
					b.Fatal(err)
				}
				set.RemoveScore(ScoreRange{Min: math.Inf(-1), Max: now - float64(size)})
				set.Len()
				set.Add(now, fmt.Appendf(name[:0], "%016d", i))
			}
		})
	}
}

func TestZSetReverseBlocks(t *testing.T) {
	ks, db := typesKeyspace(t, encodings["packed"])
	set, err := db.ZSetCreate(ks.Key([]byte("k")), 0)
	require.NoError(t, err)
	const n = 3*reverseBlock + 5
	want := make([]modelEntry, n)
	for i := range n {
		want[n-1-i] = modelEntry{fmt.Sprintf("%05d", i), float64(i)}
		set.Add(float64(i), fmt.Appendf(nil, "%05d", i))
	}
	for _, part := range [][2]int{{0, n - 1}, {reverseBlock - 1, 2 * reverseBlock}, {n - 1, n - 1}} {
		got := newCollector()
		set.Range(part[0], part[1], true, got.each)
		require.True(t, slices.Equal(want[part[0]:part[1]+1], got.entries))
	}
}

// Expect gives a set its final form at once, and never a smaller one than Add would.
func TestZSetExpect(t *testing.T) {
	tests := []struct {
		name             string
		members, longest int
		encoding         string
	}{
		{"few and short", 2, 3, "listpack"},
		{"many", 3, 1, "skiplist"},
		{"long", 1, 4, "skiplist"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ks, db := typesKeyspace(t, Limits{ZSetMaxListpackEntries: 2, ZSetMaxListpackValue: 3})
			set, err := db.ZSetCreate(ks.Key([]byte("z")), 0)
			require.NoError(t, err)
			set.Expect(test.members, test.longest)
			set.Add(math.Copysign(0, -1), []byte("m"))
			require.Equal(t, test.encoding, set.Entry().Encoding())
			score, _ := set.Score([]byte("m"))
			require.Equal(t, test.encoding == "skiplist", math.Signbit(score))
			set.Expect(100, 100)
			require.Equal(t, 1, set.Len())
			require.Equal(t, test.encoding, set.Entry().Encoding(), "a set with members expects nothing")
		})
	}
}
