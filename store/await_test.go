package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAwait(t *testing.T) {
	const now = 1000
	ks := New(Options{Databases: 2})
	defer ks.Close()
	db, other := ks.DB(0), ks.DB(1)
	a, b := testKey(ks, "a"), testKey(ks, "b")
	forA := db.Await(a)
	require.Same(t, forA, db.Await(a))
	forB := db.Await(b)
	next := func(want ...*Awaited) {
		t.Helper()
		for _, w := range want {
			require.Same(t, w, ks.NextReady())
		}
		require.Nil(t, ks.NextReady())
	}
	next()
	other.SetInt(a, 1, 0)
	next()
	db.SetInt(b, 1, 0)
	db.SetInt(a, 1, 0)
	db.SetInt(a, 2, 0)
	next(forB, forA)
	db.SetInt(a, 3, 0)
	next()
	db.Signal(a)
	db.Signal(a)
	next(forA)
	db.Rename(a, b, now)
	next(forB)
	db.Copy(b, db, a, false, now)
	next(forA)
	ks.Swap(0, 1, now)
	next(forA)
	other.Move(b, db, now)
	next(forB)
	require.Equal(t, "a", string(forA.Key().Name))
	require.Same(t, db, forA.DB())

	db.Flush()
	db.SetInt(a, 1, 0)
	forA.Release()
	next(forA)
	db.Flush()
	db.SetInt(a, 1, 0)
	forA.Release()
	next()
	require.NotSame(t, forA, db.Await(a))
}
