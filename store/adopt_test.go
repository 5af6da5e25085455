package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fillNumbered adds n keys to a database: numbers, texts, and every hundredth a text on the Go heap; every third has a TTL.
func fillNumbered(ks *Keyspace, db, n int, prefix string) {
	for i := range n {
		k, at := testKey(ks, "%s%d", prefix, i), int64(0)
		if i%3 == 0 {
			at = int64(1_000_000 + i)
		}
		switch {
		case i%100 == 99:
			ks.DB(db).SetString(k, []byte(strings.Repeat("x", 200_000)), at)
		case i%2 == 0:
			ks.DB(db).SetInt(k, int64(i), at)
		default:
			ks.DB(db).SetString(k, []byte(prefix+"value"), at)
		}
	}
}

func TestAdoptReplacesEverything(t *testing.T) {
	const now = 1000
	ks := New(Options{Databases: 4})
	defer ks.Close()
	fillNumbered(ks, 0, 5000, "old")
	fillNumbered(ks, 2, 300, "old")
	var watches Watches
	watches.Watch(ks.DB(0), testKey(ks, "new1"), now)
	var wait Wait
	require.True(t, ks.DB(1).Await(testKey(ks, "new1"), &wait))
	ks.DB(3).Follow([]byte("policies"))
	followed := ks.DB(3).FollowedChanges()

	other := ks.Beside()
	fillNumbered(other, 0, 700, "new")
	fillNumbered(other, 1, 9000, "new")
	dirty := ks.Dirty()
	ks.Adopt(other)

	require.NoError(t, ks.Check())
	require.NoError(t, other.Check())
	require.Zero(t, other.Stats().Keys)
	require.GreaterOrEqual(t, ks.Dirty()-dirty, uint64(9700), "what a save point counts")
	require.Equal(t, []int{700, 9000, 0, 0}, []int{ks.DB(0).Len(), ks.DB(1).Len(), ks.DB(2).Len(), ks.DB(3).Len()})
	require.True(t, watches.Changed(now), "a key that is watched has come")
	require.NotNil(t, ks.NextReady(), "a key that is awaited has come")
	require.NotEqual(t, followed, ks.DB(3).FollowedChanges())
	for i := range 9000 {
		e, ok := ks.DB(1).Find(testKey(ks, "new%d", i), now)
		require.True(t, ok)
		require.Equal(t, i%3 == 0, e.ExpireAt() != 0)
	}
	watches.Release(1)
	wait.Leave()

	// What was adopted is used, changed, saved and given back as anything else.
	seen := newSeenKeys(t)
	s := ks.Snapshot(seen, 1<<20)
	fillNumbered(ks, 0, 100, "later")
	ks.DB(1).Flush()
	for s.Step(1 << 10) {
	}
	require.Len(t, seen.keys, 9700)
	visited, expired := ks.ExpireSlice(2_000_000, 0, 1_000_000)
	require.Positive(t, visited)
	require.Equal(t, 234+34, expired)
	require.NoError(t, ks.Check())
	fillNumbered(other, 3, 10, "unused") // it goes on by itself
	require.NoError(t, other.Check())
	other.Close()
	require.NoError(t, ks.Check())
}

// TestAdoptedKeysCountAsNew: keys that were filled in beside the others are no candidates for eviction before those.
func TestAdoptedKeysCountAsNew(t *testing.T) {
	for _, counts := range []*UseCounts{nil, {LogFactor: 10, DecayMinutes: 1}} {
		ks := New(Options{})
		ks.Tick(1_790_000_000_000)
		ks.CountUses(counts)
		other := ks.Beside()
		fillNumbered(other, 0, 1, "k")
		ks.Tick(1_790_000_002_000)
		ks.Adopt(other)
		e, ok := ks.DB(0).Peek(testKey(ks, "k0"))
		require.True(t, ok)
		if counts == nil {
			require.EqualValues(t, 2, e.Idle())
		} else {
			require.Equal(t, freshCount, e.Uses())
		}
		other.Close()
		ks.Close()
	}
}

func TestAdoptIsRefused(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	require.Panics(t, func() { ks.Adopt(New(Options{})) }, "its keys have other hashes")
	ks.Snapshot(newSeenKeys(t), 1<<20)
	require.Panics(t, func() { ks.Adopt(ks.Beside()) })
}

func TestKeepExpired(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db := ks.DB(0)
	k := testKey(ks, "k")
	db.SetInt(k, 1, 1000)
	ks.KeepExpired(true)
	ks.OnExpired(func(*DB, []byte) { t.Fatal("a key went by itself") })
	_, ok := db.Find(k, 1001)
	require.False(t, ok)
	_, ok = db.Look(k, 1001)
	require.False(t, ok)
	_, ok = db.Random(1001, func(int) int { return 0 })
	require.False(t, ok)
	require.Equal(t, 1, db.Len())
	e, ok := db.Find(k, 1)
	require.True(t, ok, "whoever decides when it goes finds it")
	e.SetExpireAt(5000)
	_, ok = db.Find(k, 1001)
	require.True(t, ok)
	ks.OnExpired(nil)
	ks.KeepExpired(false)
	_, ok = db.Find(k, 5001)
	require.False(t, ok)
	require.Zero(t, db.Len())
}
