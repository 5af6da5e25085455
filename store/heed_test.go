package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHeed: whoever heeds a key is told once of all changes since it was told last, whatever made them.
func TestHeed(t *testing.T) {
	const now = 1000
	ks := New(Options{Databases: 2})
	defer ks.Close()
	db, other := ks.DB(0), ks.DB(1)
	a, b, absent := testKey(ks, "a"), testKey(ks, "b"), testKey(ks, "absent")
	var heedA, heedB, heedAbsent Heed
	for k, h := range map[*Key]*Heed{&a: &heedA, &b: &heedB, &absent: &heedAbsent} {
		require.Nil(t, db.Heeder(*k))
		db.Heed(*k, h)
		require.Same(t, h, db.Heeder(*k))
		require.Nil(t, other.Heeder(*k))
		require.Equal(t, string(k.Name), h.Name())
		require.Equal(t, *k, h.Key())
		require.Same(t, db, h.DB())
	}
	require.Panics(t, func() { db.Heed(a, &Heed{}) })
	told := func(want ...*Heed) {
		t.Helper()
		for _, h := range want {
			require.Same(t, h, ks.NextHeeded())
		}
		require.Nil(t, ks.NextHeeded())
	}
	told()
	other.SetInt(a, 1, 0)
	told()
	db.SetInt(b, 1, 0)
	db.SetInt(a, 1, 0)
	db.SetInt(b, 2, 0)
	told(&heedB, &heedA)
	e, ok := db.Find(a, now)
	require.True(t, ok)
	e.SetExpireAt(now + 5)
	told(&heedA)
	_, ok = db.Find(a, now+6) // which removes it
	require.False(t, ok)
	told(&heedA)
	e, ok = db.Find(b, now)
	require.True(t, ok)
	e.Delete()
	told(&heedB)
	ks.Swap(0, 1, now)
	told(&heedA)
	db.Flush()
	told(&heedA)
	db.Flush()
	told()
	beside := ks.Beside()
	beside.DB(0).SetInt(b, 1, 0)
	ks.Adopt(beside)
	beside.Close()
	told(&heedB)

	db.SetInt(b, 2, 0)
	heedB.End()
	told()
	require.Nil(t, db.Heeder(b))
	var watches Watches
	watches.Watch(db, a, now)
	heedA.End()
	db.SetInt(a, 1, 0)
	require.True(t, watches.Changed(now), "that somebody else no longer heeds a key is nothing to those who watch it")
	watches.Release(1)
	told()
	heedAbsent.End()
	require.Zero(t, db.watched.Len())
}
