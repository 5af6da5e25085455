package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSamplesComeFromAllKeys: among the keys that are compared each one comes about as often as any other, wherever it lies.
func TestSamplesComeFromAllKeys(t *testing.T) {
	const keys, samples, each = 5000, 5, 200
	rnd := newRand(t)
	ks := New(Options{Random: rnd})
	defer ks.Close()
	db := ks.DB(0)
	for i := range keys {
		db.SetInt(testKey(ks, "key:%d", i), int64(i), 0)
	}
	times := map[ref]int{}
	for range keys * each / samples {
		left := samples
		db.eachFrom(db.randomPlace(), false, new(int), func(r ref, _ *record) bool {
			times[r]++
			left--
			return left > 0
		})
	}
	require.Equal(t, keys, len(times), "keys that have come")
	least, most := each, each
	for _, n := range times {
		least, most = min(least, n), max(most, n)
	}
	t.Logf("%d times in the mean, %d at least, %d at most", each, least, most)
	require.Greater(t, least, each/20)
	require.Less(t, most, each*6)
}

// TestEvictTakesTheRightKey: each order evicts the key that it is named for, only keys with a TTL where that is asked for, and nothing once
// there is none left.
func TestEvictTakesTheRightKey(t *testing.T) {
	const now = 1_000_000
	for _, c := range []struct {
		name  string
		how   Eviction
		first string // "" where any may be it
		goes  int
	}{
		{"idle", Eviction{By: EvictIdle, Samples: 10}, "", 4},
		{"soon", Eviction{By: EvictSoon, Volatile: true, Samples: 10}, "soon", 2},
		{"idle among volatile", Eviction{By: EvictIdle, Volatile: true, Samples: 10}, "", 2},
		{"random", Eviction{By: EvictRandom, Samples: 10}, "", 4},
		{"random among volatile", Eviction{By: EvictRandom, Volatile: true, Samples: 10}, "", 2},
	} {
		ks := New(Options{Random: newRand(t)})
		db := ks.DB(0)
		db.SetInt(testKey(ks, "lasting"), 1, 0)
		db.SetInt(testKey(ks, "forever"), 1, 0)
		db.SetInt(testKey(ks, "late"), 1, now+2000)
		db.SetInt(testKey(ks, "soon"), 1, now+1000)
		var gone []string
		for range c.goes {
			require.True(t, ks.Evict(c.how, now, func(_ *DB, name []byte) { gone = append(gone, string(name)) }), c.name)
		}
		require.Len(t, gone, c.goes, c.name)
		if c.first != "" {
			require.Equal(t, c.first, gone[0], c.name)
		}
		require.Equal(t, 4-c.goes, db.Len(), c.name)
		require.False(t, ks.Evict(c.how, now, func(*DB, []byte) { t.Error("a key is evicted that must stay") }), c.name)
		ks.Close()
	}
}

// TestEvictPrefersTheExpired: a key past its time goes before all others, and counts as expired.
func TestEvictPrefersTheExpired(t *testing.T) {
	const now = 1_000_000
	ks := New(Options{Random: newRand(t)})
	defer ks.Close()
	db := ks.DB(0)
	db.SetInt(testKey(ks, "lasting"), 1, 0)
	db.SetInt(testKey(ks, "over"), 1, now-1)
	require.True(t, ks.Evict(Eviction{By: EvictIdle, Samples: 10}, now, func(_ *DB, name []byte) { t.Errorf("%s is evicted", name) }))
	_, found := db.Find(testKey(ks, "lasting"), now)
	require.True(t, found)
	require.Equal(t, 1, db.Len())
}

// TestEvictionTakesTurnsAmongDatabases: none is spared while others have keys.
func TestEvictionTakesTurnsAmongDatabases(t *testing.T) {
	ks := New(Options{Random: newRand(t), Databases: 4})
	defer ks.Close()
	for i := range 4 {
		for n := range 3 {
			ks.DB(i).SetInt(testKey(ks, "key:%d", n), 1, 0)
		}
	}
	for range 2 * 4 {
		require.True(t, ks.Evict(Eviction{By: EvictRandom, Samples: 5}, 1, func(*DB, []byte) {}))
	}
	for i := range 4 {
		require.Equal(t, 1, ks.DB(i).Len(), "database %d", i)
	}
}

// TestFewKeysWithTTLAmongManyTables: a key that may go is found wherever the search begins.
func TestFewKeysWithTTLAmongManyTables(t *testing.T) {
	const depth = 13 // of tables, which are twice as many as evictVisits
	ks := New(Options{})
	defer ks.Close()
	db := ks.DB(0)
	k := testKey(ks, "volatile")
	db.SetInt(k, 1, 1_000_000)
	for d := range uint8(depth) {
		for i := range 1 << d {
			db.split(db.dir[i<<(db.depth-d)].table)
		}
	}
	require.Greater(t, len(db.dir), evictVisits)
	for _, by := range []EvictBy{EvictIdle, EvictRandom} {
		for range 10 {
			db.SetInt(k, 1, 1_000_000)
			require.True(t, ks.Evict(Eviction{By: by, Volatile: true, Samples: 5}, 1, func(*DB, []byte) {}))
			require.Zero(t, db.Len())
		}
	}
}

// TestTablesThatHadKeysWithTTL are passed over like those that never had any: where locks come and go, each has had some.
func TestTablesThatHadKeysWithTTL(t *testing.T) {
	const keys = 60_000
	ks := New(Options{Random: newRand(t)})
	defer ks.Close()
	db := ks.DB(0)
	for i := range keys {
		db.SetInt(testKey(ks, "key:%d", i), 1, 1_000_000)
		if i > 0 {
			db.SetInt(testKey(ks, "key:%d", i), 1, 0)
		}
	}
	require.NoError(t, ks.Check())
	require.Greater(t, len(db.dir), 32)
	for range 20 {
		looked, found := 0, 0
		db.eachFrom(db.randomPlace(), true, &found, func(_ ref, rec *record) bool {
			looked++
			if rec.expireAt != 0 {
				found++
			}
			return found == 0
		})
		require.Equal(t, 1, found)
		require.LessOrEqual(t, looked, 2*tableSlots, "the table that it begins in the midst of may come again")
	}
}

// TestKeysThatMayNotGoAreNotAllLookedAt: however many there are, one search ends.
func TestKeysThatMayNotGoAreNotAllLookedAt(t *testing.T) {
	const keys = 100_000
	ks := New(Options{Random: newRand(t)})
	defer ks.Close()
	db := ks.DB(0)
	for i := range keys {
		db.SetInt(testKey(ks, "key:%d", i), 1, 1_000_000)
	}
	looked := 0
	db.eachFrom(db.randomPlace(), true, new(int), func(ref, *record) bool {
		looked++
		return true
	})
	require.LessOrEqual(t, looked, (evictVisits+tableBuckets)*bucketSlots)
	require.Less(t, looked, keys/2)
}
