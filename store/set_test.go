package store

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/number"
)

// modelSet is the set that needs no thought.
type modelSet map[string]bool

func openSet(t testing.TB, db *DB, k Key) Set {
	t.Helper()
	s, _, err := db.Set(k, 0)
	require.NoError(t, err)
	return s
}

// requireSet compares a set with what it should hold, read in every way.
func requireSet(t testing.TB, want modelSet, db *DB, k Key) {
	t.Helper()
	s := openSet(t, db, k)
	require.Equal(t, len(want), s.Len())
	got := modelSet{}
	var last int64 = math.MinInt64
	s.Each(func(member []byte) bool {
		require.False(t, got[string(member)])
		got[string(member)] = true
		if s.Ordered() {
			n, ok := number.ParseInt(member)
			require.True(t, ok)
			require.True(t, n > last || len(got) == 1)
			last = n
		}
		return true
	})
	require.Equal(t, want, got)
	for i := range s.Len() {
		member := string(s.At(i))
		require.True(t, got[member])
		delete(got, member)
		require.True(t, s.Has([]byte(member)))
	}
	require.Empty(t, got)
	seen := modelSet{}
	for cursor := uint64(0); ; {
		if cursor = s.Scan(cursor, 7, func(member []byte) { seen[string(member)] = true }); cursor == 0 {
			break
		}
	}
	require.Equal(t, want, seen)
}

// changeSet adds or removes a member.
func changeSet(t testing.TB, db *DB, k Key, want modelSet, member string, remove bool) {
	s := openSet(t, db, k)
	require.Equal(t, want[member], s.Has([]byte(member)))
	if remove {
		require.Equal(t, want[member], s.Remove([]byte(member)))
		delete(want, member)
	} else {
		require.Equal(t, !want[member], s.Add([]byte(member)))
		want[member] = true
	}
	require.Equal(t, len(want), s.Len())
}

// randomMember is a number of any width, mostly, or another text that may look like one.
func randomMember(rnd *rand.Rand, whole bool) string {
	switch {
	case !whole:
		return string(randomName(rnd, 200))
	case rnd.IntN(20) == 0:
		return strconv.FormatInt(rnd.Int64()-rnd.Int64(), 10)
	case rnd.IntN(20) == 0:
		return strconv.FormatInt(rnd.Int64N(1<<32)-1<<31, 10)
	}
	return strconv.Itoa(rnd.IntN(400) - 200)
}

// TestSetModel compares a set with a Go map under random operations, in every encoding, with phases of numbers only.
func TestSetModel(t *testing.T) {
	for name, limits := range encodings {
		t.Run(name, func(t *testing.T) {
			rnd := newRand(t)
			ks, db := typesKeyspace(t, limits)
			k := testKey(ks, "set")
			want, whole := modelSet{}, true
			for i := range *opsFlag / 10 {
				changeSet(t, db, k, want, randomMember(rnd, whole), rnd.IntN(5) < 2)
				if i%200 == 0 || len(want) < 3 {
					requireSet(t, want, db, k)
				}
				switch {
				case rnd.IntN(1000) == 0:
					db.Flush()
					clear(want)
					whole = rnd.IntN(3) > 0
				case rnd.IntN(500) == 0:
					whole = !whole
				}
			}
			requireSet(t, want, db, k)
			checkDB(t, db, 0)
		})
	}
}

func TestSetEncoding(t *testing.T) {
	limits := DefaultLimits()
	limits.SetMaxIntsetEntries = 3
	for _, tc := range []struct {
		members  []string
		encoding string
	}{
		{[]string{"1", "-2", "9223372036854775807"}, "intset"},
		{[]string{"1", "2", "3", "3", "1"}, "intset"},
		{[]string{"1", "2", "3", "4"}, "hashtable"},
		{[]string{"1", "a"}, "hashtable"},
		{[]string{"01"}, "hashtable"},
		{[]string{"+1"}, "hashtable"},
		{[]string{"-0"}, "hashtable"},
		{[]string{""}, "hashtable"},
		{[]string{"9223372036854775808"}, "hashtable"},
	} {
		ks, db := typesKeyspace(t, limits)
		k := testKey(ks, "set")
		want := modelSet{}
		for _, member := range tc.members {
			changeSet(t, db, k, want, member, false)
		}
		s := openSet(t, db, k)
		require.Equal(t, tc.encoding, s.Entry().Encoding(), tc.members)
		require.Equal(t, "set", s.Entry().Kind().String())
		requireSet(t, want, db, k)
	}
}

// TestIntSetWidths adds numbers so that those which are there have to become wider, before and behind them.
func TestIntSetWidths(t *testing.T) {
	edges := []int64{
		math.MinInt64, math.MinInt32 - 1, math.MinInt32, math.MinInt16 - 1, math.MinInt16, -1, 0, 1, math.MaxInt16, math.MaxInt16 + 1,
		math.MaxInt32, math.MaxInt32 + 1, math.MaxInt64,
	}
	rnd := newRand(t)
	for range 200 {
		ks, db := typesKeyspace(t, DefaultLimits())
		k := testKey(ks, "set")
		want := modelSet{}
		for _, i := range rnd.Perm(len(edges)) {
			changeSet(t, db, k, want, strconv.FormatInt(edges[i], 10), false)
			requireSet(t, want, db, k)
		}
		s := openSet(t, db, k)
		require.True(t, s.Ordered())
		require.Equal(t, "-9223372036854775808", string(s.At(0)))
	}
}

// TestSetWithALongName: beside a name that fills a block there is no room for members.
func TestSetWithALongName(t *testing.T) {
	ks, db := typesKeyspace(t, DefaultLimits())
	k := ks.Key(slices.Repeat([]byte("n"), maxBlock))
	want := modelSet{}
	for _, member := range []string{"1", "2", "a"} {
		changeSet(t, db, k, want, member, false)
	}
	requireSet(t, want, db, k)
	for member := range maps.Clone(want) {
		changeSet(t, db, k, want, member, true)
	}
	require.Zero(t, db.Len())
}

// TestSetMemory: what a member costs beside its bytes, in each form.
func TestSetMemory(t *testing.T) {
	for _, tc := range []struct {
		what  string
		n     int
		text  func(i int) []byte
		bytes int // of a member's text
		least float64
		most  float64
	}{
		{"few texts", 100, func(i int) []byte { return fmt.Appendf(nil, "member:%03d", i) }, 10, 12, 16},
		{"whole numbers", 500, func(i int) []byte { return strconv.AppendInt(nil, int64(100_000+i), 10) }, 6, 4, 6},
		{"many texts", 100_000, func(i int) []byte { return fmt.Appendf(nil, "member:%05d", i) }, 12, 28, 45},
	} {
		ks, db := typesKeyspace(t, DefaultLimits())
		s := openSet(t, db, testKey(ks, "set"))
		for i := range tc.n {
			s.Add(tc.text(i))
		}
		each := float64(s.Entry().MemoryUsage()) / float64(tc.n)
		t.Logf("%s: %.1f bytes for a member of %d", tc.what, each, tc.bytes)
		require.Greater(t, each, tc.least)
		require.Less(t, each, tc.most)
	}
}

func TestMembers(t *testing.T) {
	m := NewMembers()
	require.True(t, m.Whole())
	for _, member := range []string{"1", "2", "a", "1", "a"} {
		m.Add([]byte(member))
	}
	require.Equal(t, 3, m.Len())
	require.False(t, m.Whole())
	m.Remove([]byte("a"))
	m.Remove([]byte("a"))
	require.True(t, m.Whole())
	got := modelSet{}
	m.Each(func(member []byte) { got[string(member)] = true })
	require.Equal(t, modelSet{"1": true, "2": true}, got)
}
