package store

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/number"
)

// hashTest drives a hash and its model side by side.
type hashTest struct {
	t     *testing.T
	rnd   *rand.Rand
	ks    *Keyspace
	db    *DB
	key   Key
	model map[string]string
}

func newHashTest(t *testing.T, limits Limits) *hashTest {
	rnd := newRand(t)
	ks, db := typesKeyspace(t, limits)
	return &hashTest{t: t, rnd: rnd, ks: ks, db: db, key: ks.Key([]byte("hash")), model: map[string]string{}}
}

func (h *hashTest) open() Hash {
	h.t.Helper()
	view, err := h.db.HashCreate(h.key, 0)
	require.NoError(h.t, err)
	return view
}

func (h *hashTest) change(few int) {
	view := h.open()
	dirty := h.ks.Dirty()
	field := randomName(h.rnd, few)
	_, held := h.model[string(field)]
	if h.rnd.IntN(3) == 0 {
		delete(h.model, string(field))
		require.Equal(h.t, held, view.Delete(field))
		require.Equal(h.t, held, h.ks.Dirty() > dirty, "the gate is passed when something changes")
	} else {
		value := randomName(h.rnd, 1000)
		h.model[string(field)] = string(value)
		require.Equal(h.t, !held, view.Set(field, value))
		require.Greater(h.t, h.ks.Dirty(), dirty)
	}
	require.Equal(h.t, len(h.model), view.Len())
	require.Equal(h.t, min(len(h.model), 1), h.db.Len(), "an empty hash has no key")
}

// verify compares every way of reading.
func (h *hashTest) verify() {
	t := h.t
	view := h.open()
	require.Equal(t, len(h.model), view.Len())
	each, scanned, picked := map[string]string{}, map[string]string{}, map[string]string{}
	view.Each(func(field, value []byte) bool {
		each[string(field)] = string(value)
		return true
	})
	require.Equal(t, h.model, each)
	for cursor := view.Scan(0, 7, func(f, v []byte) { scanned[string(f)] = string(v) }); cursor != 0; {
		cursor = view.Scan(cursor, 7, func(f, v []byte) { scanned[string(f)] = string(v) })
	}
	require.Equal(t, h.model, scanned)
	for i := range view.Len() {
		field, value := view.At(i)
		picked[string(field)] = string(value)
	}
	require.Equal(t, h.model, picked)
	for field, want := range h.model {
		value, ok := view.Get([]byte(field))
		require.True(t, ok)
		require.Equal(t, want, string(value))
	}
	_, ok := view.Get([]byte("never there"))
	require.False(t, ok)
}

func TestHashModel(t *testing.T) {
	for name, limits := range encodings {
		t.Run(name, func(t *testing.T) {
			h := newHashTest(t, limits)
			for i := range 8000 {
				// Few names by turns with many, so that the hash shrinks to nothing and grows.
				h.change([]int{2, 200}[i/500%2])
				if i%40 == 0 {
					h.verify()
				}
			}
			h.verify()
		})
	}
}

func TestHashPackedKeepsOrder(t *testing.T) {
	ks, db := typesKeyspace(t, Limits{})
	h, err := db.HashCreate(ks.Key([]byte("k")), 0)
	require.NoError(t, err)
	for _, field := range []string{"c", "a", "b", "d"} {
		require.True(t, h.Set([]byte(field), []byte("1")))
	}
	require.False(t, h.Set([]byte("a"), []byte("a longer value")))
	require.True(t, h.Delete([]byte("b")))
	var got []string
	h.Each(func(field, value []byte) bool {
		got = append(got, string(field)+"="+string(value))
		return true
	})
	require.Equal(t, []string{"c=1", "a=a longer value", "d=1"}, got)
}

func TestHashEncoding(t *testing.T) {
	limits := Limits{HashMaxListpackEntries: 3, HashMaxListpackValue: 8, ZSetMaxListpackEntries: 1, ZSetMaxListpackValue: 1}
	long := strings.Repeat("x", 9)
	type pairs [][2]string
	tests := map[string]struct {
		key   string
		pairs pairs
		want  string
	}{
		"within":             {"k", pairs{{"a", "1"}, {"b", "2"}, {"c", "3"}}, "listpack"},
		"too many":           {"k", pairs{{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}}, "hashtable"},
		"repeated":           {"k", pairs{{"a", "1"}, {"b", "2"}, {"c", "3"}, {"a", "4"}}, "listpack"},
		"longest":            {"k", pairs{{long[:8], long[:8]}}, "listpack"},
		"field too long":     {"k", pairs{{long, "1"}}, "hashtable"},
		"value too long":     {"k", pairs{{"a", long}}, "hashtable"},
		"new value too long": {"k", pairs{{"a", "1"}, {"a", long}}, "hashtable"},
		"name fills a block": {strings.Repeat("k", 40<<10), pairs{{"a", "1"}}, "hashtable"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			h, err := db.HashCreate(ks.Key([]byte(test.key)), 0)
			require.NoError(t, err)
			want := map[string]string{}
			for _, pair := range test.pairs {
				h.Set([]byte(pair[0]), []byte(pair[1]))
				want[pair[0]] = pair[1]
			}
			require.Equal(t, test.want, h.Entry().Encoding())
			again, found, err := db.Hash(ks.Key([]byte(test.key)), 0)
			require.NoError(t, err)
			require.True(t, found)
			for field, value := range want {
				got, ok := again.Get([]byte(field))
				require.True(t, ok)
				require.Equal(t, value, string(got))
			}
		})
	}
}

func TestHashMissing(t *testing.T) {
	ks, db := typesKeyspace(t, Limits{})
	h, found, err := db.Hash(ks.Key([]byte("k")), 0)
	require.NoError(t, err)
	require.False(t, found)
	require.Zero(t, h.Len())
	_, ok := h.Get([]byte("f"))
	require.False(t, ok)
	require.False(t, h.Delete([]byte("f")))
	h.Each(func(_, _ []byte) bool { t.Fatal("nothing to show"); return false })
	require.Zero(t, h.Scan(5, 1, func(_, _ []byte) { t.Fatal("nothing to show") }))
	require.Zero(t, ks.Dirty())
	require.Zero(t, db.Len())
}

func TestHashViewAfterEmptied(t *testing.T) {
	for name, limits := range encodings {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			h, err := db.HashCreate(ks.Key([]byte("k")), 0)
			require.NoError(t, err)
			for range 3 {
				require.True(t, h.Set([]byte("f"), []byte("v")))
				require.True(t, h.Delete([]byte("f")))
				require.Zero(t, h.Len())
				require.Zero(t, db.Len())
			}
		})
	}
}

// TestHashScanGuarantee changes the hash between the calls of a scan and requires
// that every field that was there all along has been shown.
func TestHashScanGuarantee(t *testing.T) {
	rnd := newRand(t)
	for range 60 {
		ks, db := typesKeyspace(t, encodings["big"])
		h, err := db.HashCreate(ks.Key([]byte("k")), 0)
		require.NoError(t, err)
		stays := map[string]bool{}
		for i := range 50 + rnd.IntN(1500) {
			stays[strconv.Itoa(i)] = true
			h.Set([]byte(strconv.Itoa(i)), []byte("v"))
		}
		shown := map[string]bool{}
		show := func(field, _ []byte) { shown[string(field)] = true }
		for cursor := h.Scan(0, 10, show); cursor != 0; cursor = h.Scan(cursor, 1+rnd.IntN(20), show) {
			for range rnd.IntN(20) {
				field := strconv.Itoa(rnd.IntN(2500))
				if rnd.IntN(3) > 0 {
					delete(stays, field)
					h.Delete([]byte(field))
				} else {
					h.Set([]byte(field), []byte("w"))
				}
			}
		}
		for field := range stays {
			require.True(t, shown[field], "%s was there all along", field)
		}
	}
}

// TestHashHotPathAllocs holds a counter in a field, which is read and set, to no
// allocation at all, also where its text grows in the packed form.
func TestHashHotPathAllocs(t *testing.T) {
	for name, limits := range map[string]Limits{"packed": DefaultLimits(), "big": encodings["big"]} {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			increment := hashIncrement(db, ks.Key([]byte("rl:user:1")))
			increment(40)
			require.Zero(t, testing.AllocsPerRun(500, func() { increment(1) }))
		})
	}
}

// hashIncrement is what HINCRBY does to the store.
func hashIncrement(db *DB, k Key) func(by int64) {
	field := []byte("1700000000000")
	var digits [20]byte
	return func(by int64) {
		h, err := db.HashCreate(k, 0)
		if err != nil {
			panic(err)
		}
		text, _ := h.Get(field)
		n, _ := number.ParseInt(text)
		h.Set(field, strconv.AppendInt(digits[:0], n+by, 10))
	}
}

// TestHashMemory bounds what a big hash of counters costs.
func TestHashMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a million fields")
	}
	const n = 1_000_000
	const bound = 110
	before := heapInUse()
	table := newTextTable()
	var field [16]byte
	for i := range n {
		copy(field[:], fmt.Sprintf("%016x", i))
		table.insert(field[:], []byte("12345"))
	}
	each := float64(heapInUse()-before) / n
	t.Logf("%.1f bytes a field", each)
	require.Less(t, each, float64(bound))
	runtime.KeepAlive(&table)
}

func BenchmarkHashIncrement(b *testing.B) {
	for name, limits := range map[string]Limits{"packed": DefaultLimits(), "big": encodings["big"]} {
		b.Run(name, func(b *testing.B) {
			ks, db := typesKeyspace(b, limits)
			increment := hashIncrement(db, ks.Key([]byte("rl:user:1")))
			b.ReportAllocs()
			for range b.N {
				increment(1)
			}
		})
	}
}

// TestHashIsLookedAtInPart: whoever has seen enough sees no more, in each encoding.
func TestHashIsLookedAtInPart(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	for _, fields := range []int{3, 5000} {
		h, err := ks.DB(0).HashCreate(testKey(ks, "h%d", fields), 0)
		require.NoError(t, err)
		for i := range fields {
			h.Set(fmt.Appendf(nil, "field%d", i), []byte("v"))
		}
		seen := 0
		h.Each(func(_, _ []byte) bool {
			seen++
			return seen < 2
		})
		require.Equal(t, 2, seen)
	}
}
