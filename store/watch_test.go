package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWatch(t *testing.T) {
	const now = 1000
	set := func(at int64) func(db *DB, k Key) { return func(db *DB, k Key) { db.SetInt(k, 1, at) } }
	nothing := func(*DB, Key) {}
	find := func(f func(e *Entry)) func(db *DB, k Key) {
		return func(db *DB, k Key) {
			if e, ok := db.Find(k, now); ok {
				f(&e)
			}
		}
	}
	for _, tc := range []struct {
		name    string
		before  func(db *DB, k Key)
		after   func(db *DB, k Key)
		at      int64 // when Changed is asked
		changed bool
	}{
		{"a missing key that stays so", nothing, nothing, now, false},
		{"a missing key that is created", nothing, set(0), now, true},
		{"another key", set(0), func(db *DB, _ Key) { db.SetInt(testKey(db.ks, "other"), 1, 0) }, now, false},
		{"the same value again", set(0), set(0), now, true},
		{"reading", set(0), find(func(e *Entry) { e.AppendString(nil) }), now, false},
		{"a number counted up", set(0), find(func(e *Entry) { e.SetInt(2) }), now, true},
		{"a new expiry", set(0), find(func(e *Entry) { e.SetExpireAt(now + 5) }), now, true},
		{"deleted", set(0), find(func(e *Entry) { e.Delete() }), now, true},
		{"appended to", set(0), func(db *DB, k Key) { _, _ = db.AppendTo(k, now, []byte("x")) }, now, true},
		{"written to in the middle", set(0), func(db *DB, k Key) { _, _ = db.SetRange(k, now, 0, []byte("x")) }, now, true},
		{"an empty range", set(0), func(db *DB, k Key) { _, _ = db.SetRange(k, now, 0, nil) }, now, false},
		{"renamed", set(0), func(db *DB, k Key) { db.Rename(k, testKey(db.ks, "other"), now) }, now, true},
		{"renamed to itself", set(0), func(db *DB, k Key) { db.Rename(k, k, now) }, now, false},
		{"renamed over", nothing, func(db *DB, k Key) {
			db.SetInt(testKey(db.ks, "other"), 1, 0)
			db.Rename(testKey(db.ks, "other"), k, now)
		}, now, true},
		{"flushed", set(0), func(db *DB, _ Key) { db.Flush() }, now, true},
		{"missing and flushed", nothing, func(db *DB, _ Key) {
			db.SetInt(testKey(db.ks, "other"), 1, 0)
			db.Flush()
		}, now, false},
		{"alive to its last millisecond", set(now + 5), nothing, now + 5, false},
		{"past its time", set(now + 5), nothing, now + 6, true},
		{"past its time and removed by the sweep", set(now + 5), func(db *DB, _ Key) {
			db.ks.ExpireSlice(now+6, 0, 1000)
		}, now + 6, true},
		{"past its time before, and still", set(now - 1), nothing, now, false},
		{"past its time before, removed since", set(now - 1), func(db *DB, _ Key) { db.ks.ExpireSlice(now, 0, 1000) }, now, false},
		{"past its time before, created since", set(now - 1), set(0), now, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ks := New(Options{})
			defer ks.Close()
			db := ks.DB(1)
			k := testKey(ks, "watched")
			tc.before(db, k)
			var first, second Watches
			first.Watch(db, k, now)
			second.Watch(db, k, now)
			tc.after(db, k)
			require.Equal(t, tc.changed, first.Changed(tc.at))
			require.Equal(t, 1, first.Release(5))
			require.Zero(t, first.Release(5))
			require.Equal(t, tc.changed, second.Changed(tc.at))
			require.Equal(t, 1, db.watched.Len())
			require.Equal(t, 1, second.Release(1))
			require.Zero(t, second.Bytes())
			require.Zero(t, db.watched.Len())
		})
	}
}

// TestWatchBeginsAfresh expects a watch not to see what happened before it, although others watch the same key.
func TestWatchBeginsAfresh(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db, k := ks.DB(0), testKey(ks, "watched")
	var old, young Watches
	old.Watch(db, k, 0)
	db.SetInt(k, 1, 0)
	young.Watch(db, k, 0)
	require.True(t, old.Changed(0))
	require.False(t, young.Changed(0))
	old.Release(1)
	require.False(t, young.Changed(0))
	db.SetInt(k, 2, 0)
	require.True(t, young.Changed(0))
}

// TestWatchAgainKeepsOne expects a key that is watched again and again to take up the room of one, and to stay as it was seen first.
func TestWatchAgainKeepsOne(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db := ks.DB(0)
	for _, keys := range []int{1, fewWatches, fewWatches + 1, 100} {
		var w Watches
		for range 3 {
			for i := range keys {
				w.Watch(db, testKey(ks, "%d", i), 0)
			}
		}
		require.Equal(t, keys, w.Len())
		require.Equal(t, keys, db.watched.Len())
		db.SetInt(testKey(ks, "0"), 1, 0)
		w.Watch(db, testKey(ks, "0"), 0)
		require.True(t, w.Changed(0))
		require.Equal(t, keys, w.Release(keys+1))
		require.False(t, w.Changed(0))
		require.Zero(t, db.watched.Len())
	}
}
