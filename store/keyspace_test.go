package store

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	opsFlag   = flag.Int("ops", 200_000, "operations of the model test")
	namesFlag = flag.Int("names", 8000, "different names in the model test")
	seedFlag  = flag.Uint64("seed", 0, "seed of the randomised tests; 0 draws one")
)

// newRand is a generator whose seed the test prints.
func newRand(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestModel compares a Keyspace with Go maps under random operations. It goes through phases in which keys are mostly
// added or mostly removed, so that tables split and merge, and is scanned all the while.
func TestModel(t *testing.T) {
	rnd := newRand(t)
	m := newModel(t, *namesFlag, rnd.IntN)
	phase, interval := *namesFlag*3, max(10_000, *opsFlag/500)
	splits, merges, tables := 0, 0, 0
	for i := range *opsFlag {
		if i%phase == 0 {
			m.grow = 95
			if i/phase%2 == 1 {
				m.grow = 3
			}
		}
		m.step()
		if n := m.ks.Stats().Tables; n > tables {
			splits++
			tables = n
		} else if n < tables {
			merges++
			tables = n
		}
		if i%interval == 0 {
			m.verifyAll()
		}
	}
	m.verifyAll()
	t.Logf("%d keys at the end, %d splits, %d merges, %d scans, %d numbers renewed", m.ks.Stats().Keys, splits, merges, m.scans, m.renewed)
	if *opsFlag >= 100_000 {
		require.NotZero(t, m.scans)
		require.NotZero(t, m.renewed)
	}

	m.ks.FlushAll()
	for range m.ks.Stats().ArenaResident / sliceUnmapBytes {
		m.ks.ExpireSlice(m.now, 0, 1)
	}
	require.Zero(t, m.ks.Stats().ArenaUsed)
	require.LessOrEqual(t, m.ks.Stats().ArenaResident, uint64(m.ks.Databases()*warmRunsLimit*runSize)) // of those that were small
	require.Zero(t, m.ks.Stats().Objects)
}

// TestTablesMergeAway removes every key one by one, in random order, and expects the index to be as small as at the start.
func TestTablesMergeAway(t *testing.T) {
	rnd := newRand(t)
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	const n = 50_000
	for _, i := range rnd.Perm(n) {
		db.SetInt(testKey(ks, "key:%d", i), int64(i), 1+int64(i))
	}
	require.Greater(t, ks.Stats().Tables, n/splitAt)
	checkDB(t, db, 0)
	for j, i := range rnd.Perm(n) {
		e, ok := db.Find(testKey(ks, "key:%d", i), 0)
		require.True(t, ok)
		got, _ := e.Int()
		require.EqualValues(t, i, got)
		e.Delete()
		if j%10_000 == 0 {
			checkDB(t, db, 0)
		}
	}
	checkDB(t, db, 0)
	s := ks.Stats()
	require.Equal(t, 1, s.Tables)
	require.Len(t, db.dir, 1)
	require.EqualValues(t, tableBytes, s.ArenaUsed)
	require.LessOrEqual(t, s.ArenaResident, uint64(warmRunsLimit+1)*runSize)
}

func TestDatabasesAreApart(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	require.Equal(t, DefaultDatabases, ks.Databases())
	require.Equal(t, DefaultLimits(), ks.Limits())
	k := testKey(ks, "name")
	ks.DB(3).SetInt(k, 3, 0)
	ks.DB(4).SetInt(k, 4, 0)
	_, ok := ks.DB(0).Find(k, 0)
	require.False(t, ok)
	ks.DB(3).Flush()
	_, ok = ks.DB(3).Find(k, 0)
	require.False(t, ok)
	e, ok := ks.DB(4).Find(k, 0)
	require.True(t, ok)
	n, _ := e.Int()
	require.EqualValues(t, 4, n)
	require.Equal(t, 4, ks.DB(4).Index())
	require.Equal(t, 1, ks.Stats().Keys)
}

func TestFlushOfAnEmptyDatabaseIsNoChange(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	ks.FlushAll()
	require.Zero(t, ks.Dirty())
	ks.DB(0).SetInt(testKey(ks, "a"), 1, 0)
	ks.FlushAll()
	require.EqualValues(t, 2, ks.Dirty())
}

// TestFlushGivesBackWhatKeysLeft: a database whose keys have gone one by one still has a table.
func TestFlushGivesBackWhatKeysLeft(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	k := testKey(ks, "a")
	ks.DB(3).SetInt(k, 1, 0)
	e, _ := ks.DB(3).Find(k, 0)
	e.Delete()
	require.NotZero(t, ks.Stats().ArenaUsed)
	dirty := ks.Dirty()
	ks.FlushAll()
	require.Zero(t, ks.Stats().ArenaUsed)
	require.Equal(t, dirty, ks.Dirty())
	ks.DB(3).SetInt(k, 2, 0)
	require.Equal(t, 1, ks.DB(3).Len())
	require.NoError(t, ks.Check())
}

// TestFlushOfFewKeysMapsNothing: a flushed database that was small takes its next keys into the memory that it has, block by block as a new one does.
func TestFlushOfFewKeysMapsNothing(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db := ks.DB(0)
	fill := func() {
		for i := range 300 {
			db.SetString(testKey(ks, "key:%d", i), []byte(strings.Repeat("v", i*7)), 0)
		}
		require.NoError(t, ks.Check())
	}
	fill()
	chunk, full := db.arena.bases[1], ks.Stats()
	for range 3 {
		ks.FlushAll()
		require.Zero(t, ks.Stats().ArenaUsed)
		require.NoError(t, ks.Check())
		require.Equal(t, chunk, db.arena.bases[1])
		fill()
		s := ks.Stats()
		require.Equal(t, full.ArenaUsed, s.ArenaUsed)
		require.Equal(t, full.ArenaResident, s.ArenaResident)
	}
}

// TestFlushOfManyDatabasesGivesTheirMemoryBack: what each keeps when it is flushed must not add up where there are many.
func TestFlushOfManyDatabasesGivesTheirMemoryBack(t *testing.T) {
	ks := New(Options{Databases: 10 * DefaultDatabases})
	defer ks.Close()
	for i := range ks.Databases() {
		ks.DB(i).SetInt(testKey(ks, "a"), 1, 0)
	}
	full := ks.Stats()
	ks.FlushAll()
	require.NoError(t, ks.Check())
	require.LessOrEqual(t, ks.Stats().ArenaResident, full.ArenaResident/10)
	for i := DefaultDatabases; i < ks.Databases(); i++ {
		require.Nil(t, ks.DB(i).arena.bases)
	}
}

// TestTouchReturnsLoads only shows that the prefetch works on any state: an empty database, a miss, a hit.
func TestTouchReturnsLoads(t *testing.T) {
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	k := testKey(ks, "touched")
	require.Zero(t, db.TouchBucket(k.Hash))
	require.Zero(t, db.TouchRecord(k.Hash))
	db.SetInt(k, 42, 0)
	require.NotZero(t, db.TouchBucket(k.Hash)|uint64(db.entryAt(k.Hash).buckets[homeOf(k.Hash)].tagsHigh))
	require.NotZero(t, db.TouchRecord(k.Hash))
}

// FuzzKeyspace reads its input as choices of operations and their arguments.
func FuzzKeyspace(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{10, 100, 4000} {
		seed := make([]byte, size)
		for i := range seed {
			seed[i] = byte(rnd.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		next := 0
		m := newModel(t, 1200, func(n int) int {
			c := 0
			for limit := 1; limit < n && next < len(data); limit <<= 8 {
				c = c<<8 | int(data[next])
				next++
			}
			return c % n
		})
		const maxSteps = 5000
		for range maxSteps {
			if next >= len(data) {
				break
			}
			m.step()
		}
		m.verifyAll()
	})
}
