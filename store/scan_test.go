package store

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScanShowsWhatStays keeps some keys through a whole scan, while others come and go between its calls in numbers
// that split and merge the tables, and expects each of the first to be shown.
func TestScanShowsWhatStays(t *testing.T) {
	rnd := newRand(t)
	splits, merges := 0, 0
	for range 40 {
		ks := New(Options{Databases: 1})
		db := ks.DB(0)
		stay := 1 + rnd.IntN(1500)
		for i := range stay {
			db.SetInt(testKey(ks, "stays:%d", i), 0, 0)
		}
		noise := 0
		churn := func() {
			target := rnd.IntN(12_000)
			if rnd.IntN(2) == 0 {
				target = rnd.IntN(100)
			}
			before := ks.Stats().Tables
			for ; noise < target; noise++ {
				db.SetInt(testKey(ks, "noise:%d", noise), 0, int64(rnd.IntN(2)))
			}
			for noise > target {
				noise--
				if e, ok := db.Peek(testKey(ks, "noise:%d", noise)); ok {
					e.Delete()
				}
			}
			if rnd.IntN(4) == 0 {
				ks.ExpireSlice(10, 0, rnd.IntN(5000))
			}
			if d := ks.Stats().Tables - before; d > 0 {
				splits++
			} else if d < 0 {
				merges++
			}
		}
		churn()
		seen := map[string]bool{}
		cursor, calls := uint64(0), 0
		for {
			cursor = db.Scan(cursor, 0, 1+rnd.IntN(100), func(e *Entry) {
				seen[string(e.Name())] = true
				k := ks.Key(e.Name())
				_, ok := db.Peek(k)
				require.True(t, ok)
			})
			require.Less(t, cursor, uint64(1)<<53)
			if calls++; cursor == 0 {
				break
			}
			require.Less(t, calls, 100_000)
			if calls%8 == 0 && calls < 400 {
				churn()
			}
		}
		for i := range stay {
			require.True(t, seen[fmt.Sprintf("stays:%d", i)], "key %d of %d was not shown", i, stay)
		}
		ks.Close()
	}
	require.NotZero(t, splits)
	require.NotZero(t, merges)
	t.Logf("%d calls split tables, %d merged them", splits, merges)
}

// TestScanOfWhatDoesNotChange expects every key once, whatever the count.
func TestScanOfWhatDoesNotChange(t *testing.T) {
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	const n = 20_000
	for i := range n {
		db.SetInt(testKey(ks, "key:%d", i), 0, 0)
	}
	for _, count := range []int{-1, 1, 10, 1000, n, math.MaxInt} {
		seen := map[string]int{}
		for cursor := uint64(0); ; {
			cursor = db.Scan(cursor, 0, count, func(e *Entry) { seen[string(e.Name())]++ })
			if cursor == 0 {
				break
			}
		}
		require.Len(t, seen, n, "count %d", count)
		for name, times := range seen {
			require.Equal(t, 1, times, "%s, count %d", name, count)
		}
	}
}

func TestScanOfFewKeysIsOneCall(t *testing.T) {
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	none := func(*Entry) { require.Fail(t, "no key expected") }
	require.Zero(t, db.Scan(0, 0, 10, none))
	for i := range 5 {
		db.SetInt(testKey(ks, "key:%d", i), 0, 0)
	}
	seen := 0
	require.Zero(t, db.Scan(0, 0, 10, func(*Entry) { seen++ }))
	require.Equal(t, 5, seen)
}

func TestScanPassesOverExpiredKeys(t *testing.T) {
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	db.SetInt(testKey(ks, "gone"), 0, 99)
	db.SetInt(testKey(ks, "here"), 0, 100)
	var seen []string
	db.Scan(0, 100, 10, func(e *Entry) { seen = append(seen, string(e.Name())) })
	require.Equal(t, []string{"here"}, seen)
	require.Equal(t, 2, db.Len())
	seen = nil
	db.Each(100, func(e *Entry) bool { seen = append(seen, string(e.Name())); return true })
	require.Equal(t, []string{"here"}, seen)
}

func TestEachStops(t *testing.T) {
	ks := New(Options{Databases: 1})
	defer ks.Close()
	for i := range 10 {
		ks.DB(0).SetInt(testKey(ks, "key:%d", i), 0, 0)
	}
	calls := 0
	ks.DB(0).Each(0, func(*Entry) bool { calls++; return calls < 3 })
	require.Equal(t, 3, calls)
}

// TestScanTakesAnyCursor expects that no number a client sends does harm or goes on for ever.
func TestScanTakesAnyCursor(t *testing.T) {
	rnd := newRand(t)
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	for i := range 5000 {
		db.SetInt(testKey(ks, "key:%d", i), 0, 0)
	}
	for range 200 {
		cursor := rnd.Uint64() >> rnd.IntN(64)
		for calls := 0; ; calls++ {
			if cursor = db.Scan(cursor, 0, 100, func(*Entry) {}); cursor == 0 {
				break
			}
			require.Less(t, calls, 1000)
		}
	}
}
