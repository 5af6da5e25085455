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
	var one, two, again, three Wait
	one.By, two.By, again.By, three.By = "one", "two", "two", "one"
	require.True(t, db.Await(a, &one))
	require.True(t, db.Await(a, &two))
	require.False(t, db.Await(a, &again), "it waits already")
	require.True(t, db.Await(b, &three))
	forA, forB := one.Awaited(), three.Awaited()
	require.Same(t, forA, two.Awaited())
	require.Nil(t, again.Awaited())
	require.Equal(t, 2, ks.AwaitedNames())
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
	one.Leave()
	next(forA)
	db.Flush()
	db.SetInt(a, 1, 0)
	two.Leave()
	next()
	require.True(t, db.Await(a, &one))
	require.NotSame(t, forA, one.Awaited())
	one.Leave()
	three.Leave()
	require.Zero(t, ks.AwaitedNames())
}

// TestWaitsStandInOrder: who has waited longest is first, wherever others leave or go to the end.
func TestWaitsStandInOrder(t *testing.T) {
	ks := New(Options{Databases: 1})
	defer ks.Close()
	waits := make([]Wait, 5)
	for i := range waits {
		waits[i].By = i
		require.True(t, ks.DB(0).Await(testKey(ks, "k"), &waits[i]))
	}
	key := waits[0].Awaited()
	want := func(order ...int) {
		t.Helper()
		require.Equal(t, len(order), key.Waits())
		for _, by := range order { // all are in their old order afterwards
			require.Equal(t, by, key.First().By)
			key.First().ToBack()
		}
	}
	want(0, 1, 2, 3, 4)
	waits[0].ToBack()
	waits[1].ToBack()
	key.Return(2)
	want(0, 1, 2, 3, 4)
	waits[2].Leave()
	want(0, 1, 3, 4)
	waits[1].ToBack()
	want(0, 3, 4, 1)
	waits[1].Leave()
	want(0, 3, 4)
	waits[0].Leave()
	want(3, 4)
	waits[4].ToBack()
	waits[3].ToBack()
	want(4, 3)
	waits[4].Leave()
	key.Return(1)
	want(3)
	waits[3].Leave()
	require.Nil(t, key.First())
	require.Zero(t, ks.AwaitedNames())
}
