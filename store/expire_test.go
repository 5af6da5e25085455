package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindRemovesWhatIsPastItsTime(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db, k := ks.DB(0), testKey(ks, "key")
	db.SetInt(k, 1, 100)
	_, ok := db.Find(k, 100)
	require.True(t, ok, "a key lives through its last millisecond")
	require.Equal(t, 1, db.Expires())
	_, ok = db.Peek(k)
	require.True(t, ok)
	dirty := ks.Dirty()
	_, ok = db.Find(k, 101)
	require.False(t, ok)
	_, ok = db.Peek(k)
	require.False(t, ok)
	require.Zero(t, db.Len())
	require.Zero(t, db.Expires())
	require.EqualValues(t, 1, ks.Stats().Expired)
	require.Equal(t, dirty, ks.Dirty(), "expiry is no change")
}

// TestRenew has a number past its time written over, which nobody can tell from its removal and a new key, but for OnExpired.
func TestRenew(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	told := 0
	ks.OnExpired(func(*DB, []byte) { told++ })
	db, k := ks.DB(0), testKey(ks, "key")
	db.SetInt(k, 1, 100)
	e, ok := db.FindToSet(k, 101)
	require.False(t, ok)
	require.False(t, e.IsZero())
	require.Zero(t, ks.Stats().Expired, "nobody has said what is to become of it")
	_, x := ks.ExpireSlice(101, 1, 1<<20)
	require.Zero(t, x)
	dirty := ks.Dirty()
	e.Lapse()
	e.Renew(2, 200)
	require.Equal(t, dirty+1, ks.Dirty())
	require.EqualValues(t, 1, ks.Stats().Expired)
	require.Equal(t, 1, db.Expires())
	require.Equal(t, 1, db.Len())
	e, ok = db.FindToSet(k, 200)
	require.True(t, ok)
	n, _ := e.Int()
	require.EqualValues(t, 2, n)
	require.Zero(t, told)
	_, x = ks.ExpireSlice(202, 1, 1<<20)
	require.Equal(t, 1, x)
	require.Equal(t, 1, told)

	db.SetInt(k, 1, never)
	_, x = ks.ExpireSlice(202, 1, 1<<20)
	require.Zero(t, x)
	db.SetText(k, []byte("text"), 100)
	e, ok = db.FindToSet(k, 101)
	require.False(t, ok)
	require.True(t, e.IsZero(), "what is no number is removed")
	require.Zero(t, db.Len())
	checkDB(t, db, 101)
}

// TestExpireSlice spreads keys with all sorts of expiries over databases and expects that the sweep removes exactly
// those past their time, in slices of any size, while keys are added in between.
func TestExpireSlice(t *testing.T) {
	rnd := newRand(t)
	ks := New(Options{Databases: 4})
	defer ks.Close()
	const now = 1_000_000
	due, next := 0, 0
	add := func(n int) {
		for range n {
			at := int64(0)
			switch rnd.IntN(3) {
			case 0:
				at = now - 1 - int64(rnd.IntN(1000))
				due++
			case 1:
				at = now + int64(rnd.IntN(1000))
			}
			ks.DB(rnd.IntN(2)*3).SetInt(testKey(ks, "key:%d", next), 0, at)
			next++
		}
	}
	add(20_000)
	expired := 0
	for range 500 {
		limit := 1 + rnd.IntN(300)
		v, x := ks.ExpireSlice(now, 0, limit)
		require.Less(t, v, limit+bucketSlots)
		expired += x
		add(rnd.IntN(10))
	}
	for range 500 {
		_, x := ks.ExpireSlice(now, 0, 1000)
		expired += x
	}
	require.Equal(t, due, expired)
	require.EqualValues(t, due, ks.Stats().Expired)
	require.Equal(t, next-due, ks.Stats().Keys)
	for i := range 4 {
		checkDB(t, ks.DB(i), now)
		ks.DB(i).Each(now+2000, func(e *Entry) bool { require.Zero(t, e.ExpireAt()); return true })
	}
}

// TestExpireSlicePassesOverTables expects that a sweep does not look at keys that it knows not to be due.
func TestExpireSlicePassesOverTables(t *testing.T) {
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	visited, expired := ks.ExpireSlice(100, 0, 1<<30)
	require.Zero(t, visited)
	require.Zero(t, expired)
	const n = 20_000
	for i := range n {
		db.SetInt(testKey(ks, "key:%d", i), 0, 1000+int64(i))
	}
	visited, expired = ks.ExpireSlice(999, 0, 1<<30)
	require.LessOrEqual(t, visited, 2*ks.Stats().Tables)
	require.Zero(t, expired)

	e, ok := db.Find(testKey(ks, "key:7"), 0)
	require.True(t, ok)
	e.SetExpireAt(5)
	visited, expired = ks.ExpireSlice(999, 0, 1<<30)
	require.Equal(t, 1, expired)
	require.Less(t, visited, 2*ks.Stats().Tables+splitAt+tableBuckets)
	visited, _ = ks.ExpireSlice(999, 0, 1<<30)
	require.LessOrEqual(t, visited, 2*ks.Stats().Tables, "the bound is tight again after a sweep")
}

// TestExpireSliceSeesWhatIsSetDuringASweep lowers an expiry in a part of a table that the sweep has passed.
func TestExpireSliceSeesWhatIsSetDuringASweep(t *testing.T) {
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	const n = 1000
	for i := range n {
		db.SetInt(testKey(ks, "key:%d", i), 0, 1000)
	}
	e, _ := db.Find(testKey(ks, "key:0"), 0)
	e.SetExpireAt(5)
	for range n {
		ks.ExpireSlice(10, 0, 1)
		if db.sweep.bucket == tableBuckets/2 {
			break
		}
	}
	require.Equal(t, tableBuckets/2, db.sweep.bucket)
	for i := 1; i < n; i++ {
		if k := testKey(ks, "key:%d", i); homeOf(k.Hash) == 0 {
			e, _ := db.Find(k, 0)
			e.SetExpireAt(7)
			break
		}
	}
	for range n {
		ks.ExpireSlice(10, 0, 10)
	}
	require.Equal(t, n-2, db.Len())
}

// sweepHalf runs the sweep up to the middle of the first table.
func sweepHalf(t *testing.T, db *DB, now int64) {
	t.Helper()
	for range tableSlots {
		db.ks.ExpireSlice(now, 0, 1)
		if db.sweep.bucket == tableBuckets/2 && db.sweep.prefix == 0 {
			return
		}
	}
	require.Fail(t, "the sweep did not come to the middle of the first table")
}

// TestSplitDuringASweep moves the key that is due next from behind the sweep's place to before it.
func TestSplitDuringASweep(t *testing.T) {
	const due, later = 100, 1000
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	next := 0
	add := func() {
		db.SetInt(testKey(ks, "key:%d", next), 0, later)
		next++
	}
	for db.dir[0].table.count < splitAt {
		add()
	}
	// The last home before the middle, once it is full, sends a key of its own on to behind the middle.
	var moved Key
	victim := 0
	for i := 0; moved.Name == nil; i++ {
		k := testKey(ks, "moved:%d", i)
		if homeOf(k.Hash) != tableBuckets/2-1 || k.Hash>>63 != 0 {
			continue
		}
		e, ok := db.Find(testKey(ks, "key:%d", victim), 0)
		require.True(t, ok)
		e.Delete()
		victim++
		db.SetInt(k, 0, later)
		e, _ = db.Find(k, 0)
		if bucket, _ := db.dir[0].table.find(k.Hash, e.ref); bucket >= tableBuckets/2 {
			e.SetExpireAt(due)
			moved = k
		}
	}
	db.dir[0].table.minExpire = 1 // as after a key that was due before
	sweepHalf(t, db, due-1)
	for len(db.dir) == 1 {
		add()
	}
	for range 20 {
		ks.ExpireSlice(due-1, 0, tableSlots)
	}
	checkDB(t, db, 0)
	for range 20 {
		ks.ExpireSlice(due+1, 0, tableSlots)
	}
	_, ok := db.Peek(moved)
	require.False(t, ok)
}

// TestMergeDuringASweep brings keys that are due into the part of a table that the sweep has passed.
func TestMergeDuringASweep(t *testing.T) {
	const due, later = 100, 1000
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	n := 0
	for len(db.dir) == 1 {
		k := testKey(ks, "key:%d", n)
		n++
		at := int64(later)
		if k.Hash>>63 != 0 && homeOf(k.Hash) < tableBuckets/4 {
			at = due
		}
		db.SetInt(k, 0, at)
	}
	db.dir[0].table.minExpire = 1
	sweepHalf(t, db, due-1)
	for i := 0; len(db.dir) == 2; i++ {
		e, ok := db.Find(testKey(ks, "key:%d", i), 0)
		require.True(t, ok)
		e.Delete()
	}
	for range 20 {
		ks.ExpireSlice(due-1, 0, tableSlots)
	}
	checkDB(t, db, 0)
	for range 20 {
		ks.ExpireSlice(due+1, 0, tableSlots)
	}
	db.Each(0, func(e *Entry) bool {
		require.EqualValues(t, later, e.ExpireAt())
		return true
	})
	require.NotZero(t, db.Len())
}

func TestSetExpireAtCounts(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db, k := ks.DB(0), testKey(ks, "key")
	for _, tc := range []struct {
		at      int64
		expires int
	}{{0, 0}, {10, 1}, {20, 1}, {0, 0}, {-5, 1}} {
		db.SetInt(k, 1, 0)
		e, _ := db.Find(k, 0)
		e.SetExpireAt(tc.at)
		require.Equal(t, tc.at, e.ExpireAt())
		require.Equal(t, tc.expires, db.Expires())
	}
	_, ok := db.Find(k, 0)
	require.False(t, ok, "a time before 1970 is past")
}
