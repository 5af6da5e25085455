package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWatchAndSwap: a watch follows the database's number, and sees a swap if either database has the key.
func TestWatchAndSwap(t *testing.T) {
	const now = 1000
	nothing := func(*DB, Key) {}
	set := func(at int64) func(db *DB, k Key) { return func(db *DB, k Key) { db.SetInt(k, 1, at) } }
	sweep := func(db *DB, _ Key) { db.ks.ExpireSlice(now, 0, 1000) }
	for _, tc := range []struct {
		name            string
		watched, other  func(db *DB, k Key) // what is done in the two databases before
		swaps           int
		thenHere, there func(db *DB, k Key) // and after, by their numbers
		changed         bool
	}{
		{"in neither", nothing, nothing, 1, nothing, nothing, false},
		{"only in the watched one", set(0), nothing, 1, nothing, nothing, true},
		{"only in the other", nothing, set(0), 1, nothing, nothing, true},
		{"in both", set(0), set(0), 1, nothing, nothing, true},
		{"in neither, but others are", func(db *DB, _ Key) { db.SetInt(testKey(db.ks, "a"), 1, 0) },
			func(db *DB, _ Key) { db.SetInt(testKey(db.ks, "b"), 1, 0) }, 1, nothing, nothing, false},
		{"swapped there and back", set(0), nothing, 2, nothing, nothing, true},
		{"past its time in the other", nothing, set(now - 1), 1, nothing, nothing, false},
		{"past its time in the other, swept since", nothing, set(now - 1), 1, sweep, nothing, false},
		{"past its time before, and alive in the other", set(now - 1), set(now), 1, nothing, nothing, true},
		{"missing, then created under the number", nothing, nothing, 1, set(0), nothing, true},
		{"missing, then created under the other", nothing, nothing, 1, nothing, set(0), false},
	} {
		for _, order := range [][2]int{{1, 4}, {4, 1}} {
			t.Run(tc.name, func(t *testing.T) {
				ks := New(Options{})
				defer ks.Close()
				a, b, k := ks.DB(1), ks.DB(4), testKey(ks, "watched")
				tc.watched(a, k)
				tc.other(b, k)
				var w Watches
				w.Watch(a, k, now)
				defer w.Release(1)
				for range tc.swaps {
					ks.Swap(order[0], order[1], now)
				}
				tc.thenHere(a, k)
				tc.there(b, k)
				require.Equal(t, tc.changed, w.Changed(now))
				require.Equal(t, 1, a.Index())
				checkDB(t, a, now)
				checkDB(t, b, now)
			})
		}
	}
}

// TestSwapWithItself changes nothing.
func TestSwapWithItself(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db, k := ks.DB(1), testKey(ks, "watched")
	db.SetInt(k, 1, 0)
	var w Watches
	w.Watch(db, k, 0)
	defer w.Release(1)
	dirty := ks.Dirty()
	ks.Swap(1, 1, 0)
	require.False(t, w.Changed(0))
	require.Equal(t, dirty, ks.Dirty())
}
