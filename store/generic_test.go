package store

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRename(t *testing.T) {
	long := bytes.Repeat([]byte{'n'}, maxBlock)
	for _, tc := range []struct {
		name     string
		from, to []byte
		value    []byte
		over     []byte
	}{
		{"integer", []byte("a"), []byte("b"), []byte("17"), nil},
		{"text over text", []byte("a"), []byte("b"), []byte("text"), []byte("old")},
		{"big over integer", []byte("a"), []byte("b"), make([]byte, 100_000), []byte("1")},
		{"text over big", []byte("a"), []byte("b"), []byte("text"), make([]byte, 100_000)},
		{"text to a name beyond a block", []byte("a"), long, []byte("text"), nil},
		{"and back", long, []byte("a"), []byte("text"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ks := New(Options{})
			defer ks.Close()
			db, from, to := ks.DB(0), ks.Key(tc.from), ks.Key(tc.to)
			db.SetString(from, tc.value, 50)
			if tc.over != nil {
				db.SetString(to, tc.over, 0)
			}
			dirty := ks.Dirty()
			require.True(t, db.Rename(from, to, 50))
			require.Equal(t, dirty+1, ks.Dirty())
			_, ok := db.Find(from, 0)
			require.False(t, ok)
			e, ok := db.Find(to, 0)
			require.True(t, ok)
			require.True(t, bytes.Equal(tc.value, e.Bytes(nil)))
			require.EqualValues(t, 50, e.ExpireAt())
			checkDB(t, db, 0)
			require.False(t, db.Rename(from, to, 50), "missing")
			require.False(t, db.Rename(to, from, 51), "past its time")
		})
	}
}

// TestRenamePackedToALongName keeps a packed value although its new name leaves no room for it in a block.
func TestRenamePackedToALongName(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db, from, to := ks.DB(0), testKey(ks, "a"), ks.Key(bytes.Repeat([]byte{'n'}, maxBlock-100))
	e := db.create(from, encPackedHash)
	payload := bytes.Repeat([]byte("field"), 200)
	copy(e.resizePacked(len(payload)), payload)
	e.setCount(100)
	require.True(t, db.Rename(from, to, 0))
	e, ok := db.Find(to, 0)
	require.True(t, ok)
	require.Equal(t, payload, e.packed())
	require.Equal(t, 100, e.count())
	require.Less(t, e.maxPacked(), len(payload))
	require.Equal(t, payload[:999], e.resizePacked(999))
	require.Panics(t, func() { e.resizePacked(1001) })
	require.Equal(t, payload[:5], e.resizePacked(5))
	require.NotEqual(t, hugeClass, int(e.rec.class), "it fits a block again")
	checkDB(t, db, 0)
}

// TestRandomIsEven draws from databases of different sizes and compares how often each key comes with its share.
func TestRandomIsEven(t *testing.T) {
	rnd := newRand(t)
	for _, n := range []int{1, 2, 10, 3000} {
		ks := New(Options{Databases: 1})
		db := ks.DB(0)
		for i := range n {
			db.SetInt(testKey(ks, "key:%d", i), 0, 0)
		}
		const draws = 200
		times := map[string]int{}
		for range n * draws {
			name, ok := db.Random(0, rnd.IntN)
			require.True(t, ok)
			times[string(name)]++
		}
		require.Len(t, times, n)
		for name, got := range times {
			require.InDelta(t, draws, got, draws*0.6, "%s of %d", name, n)
		}
		ks.Close()
	}
}

func TestRandomOfNothingAlive(t *testing.T) {
	rnd := newRand(t)
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	_, ok := db.Random(0, rnd.IntN)
	require.False(t, ok)
	for i := range 5000 {
		db.SetInt(testKey(ks, "key:%d", i), 0, 10)
	}
	db.SetInt(testKey(ks, "alive"), 0, 0)
	name, ok := db.Random(11, rnd.IntN)
	require.True(t, ok)
	require.Equal(t, "alive", string(name))
	e, _ := db.Find(testKey(ks, "alive"), 11)
	e.Delete()
	_, ok = db.Random(11, rnd.IntN)
	require.False(t, ok)
	require.Zero(t, db.Len())
}
