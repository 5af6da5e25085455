package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// markedNumber notes what a key was before each change.
type markedNumber struct {
	db   *DB
	key  Key
	seen []int64
}

func (m *markedNumber) Changing() {
	n := int64(-1)
	if e, found := m.db.Peek(m.key); found {
		n, _ = e.Int()
	}
	m.seen = append(m.seen, n)
}

// TestMark: whoever has marked a name hears of each change of its key, before it, and of no others.
func TestMark(t *testing.T) {
	const now = 1000
	ks := New(Options{Databases: 2})
	defer ks.Close()
	db, k := ks.DB(0), testKey(ks, "limit:1")
	m := &markedNumber{db: db, key: k}
	db.Mark("limit:1", m)
	hears := func(what string, want []int64, do func()) {
		t.Helper()
		m.seen = nil
		do()
		require.Equal(t, want, m.seen, what)
	}
	hears("created", []int64{-1}, func() { db.SetInt(k, 1, 0) })
	hears("overwritten", []int64{1}, func() { db.SetInt(k, 2, 0) })
	hears("changed in place", []int64{2}, func() {
		e, _ := db.Find(k, now)
		e.SetInt(3)
		e.SetExpireAt(now + 5)
	})
	hears("read", nil, func() { db.Find(k, now) })
	hears("another key", nil, func() { db.SetInt(testKey(ks, "limit:2"), 1, 0) })
	hears("the same name elsewhere", nil, func() { ks.DB(1).SetInt(k, 1, 0) })
	hears("expired", []int64{3}, func() { db.Find(k, now+6) })
	db.SetInt(k, 4, 0)
	hears("renamed", []int64{4}, func() { db.Rename(k, testKey(ks, "limit:2"), now) })
	hears("renamed over", []int64{-1}, func() { db.Rename(testKey(ks, "limit:2"), k, now) })
	hears("deleted", []int64{4}, func() { e, _ := db.Find(k, now); e.Delete() })
	db.Unmark("limit:1")
	hears("no longer marked", nil, func() { db.SetInt(k, 1, 0) })
	require.Nil(t, db.marks)
}

// TestMarksOfManyNames: those that fall together are told apart, and each ends by itself.
func TestMarksOfManyNames(t *testing.T) {
	const names = 5000
	ks := New(Options{})
	defer ks.Close()
	db := ks.DB(0)
	all := make([]*markedNumber, names)
	for i := range all {
		all[i] = &markedNumber{db: db, key: testKey(ks, "key:%d", i)}
		db.Mark(string(all[i].key.Name), all[i])
		db.Mark(string(all[i].key.Name), all[i])
	}
	for i := range all {
		if i%2 == 0 {
			db.Unmark(string(all[i].key.Name))
		}
	}
	for i := range all {
		db.SetInt(all[i].key, 1, 0)
		require.Len(t, all[i].seen, i%2)
		db.Unmark(string(all[i].key.Name))
	}
	require.Nil(t, db.marks)
	db.Unmark("key:1")
}

// TestOnReplaced: whoever keeps what is derived from a database hears of it when all keys go or are replaced.
func TestOnReplaced(t *testing.T) {
	ks := New(Options{Databases: 3})
	defer ks.Close()
	var replaced []int
	ks.OnReplaced(func(db *DB) { replaced = append(replaced, db.Index()) })
	ks.DB(1).SetInt(testKey(ks, "k"), 1, 0)
	ks.Swap(1, 2, 0)
	require.Equal(t, []int{1, 2}, replaced)
	replaced = nil
	ks.FlushAll()
	require.Equal(t, []int{2}, replaced, "the others have had no keys")
	replaced = nil
	other := ks.Beside()
	defer other.Close()
	ks.Adopt(other)
	require.Equal(t, []int{0, 1, 2}, replaced)
}

// TestSparedKeysAreNotEvicted: what goes is one of the others, as long as there are any.
func TestSparedKeysAreNotEvicted(t *testing.T) {
	ks := New(Options{Random: newRand(t)})
	defer ks.Close()
	db := ks.DB(0)
	ks.Spare("kept:")
	for i := range 100 {
		db.SetInt(testKey(ks, "kept:%d", i), 1, 5000)
		db.SetInt(testKey(ks, "kep:%d", i), 1, 5000)
	}
	for _, by := range []EvictBy{EvictIdle, EvictRare, EvictSoon, EvictRandom} {
		for i := range 25 {
			how := Eviction{By: by, Volatile: i%2 == 0, Samples: 5}
			gone := false
			for range 1000 {
				if gone = ks.Evict(how, 1, func(_ *DB, name []byte) { require.NotContains(t, string(name), "kept:") }); gone {
					break
				}
			}
			require.True(t, gone)
		}
	}
	require.Equal(t, 100, db.Len())
	require.False(t, ks.Evict(Eviction{By: EvictRandom, Samples: 5}, 1, nil))
}

// TestMarksOfManyNamesThatEndAlike: however many names fall together, each is heard of.
func TestMarksOfManyNamesThatEndAlike(t *testing.T) {
	const names = 1 << 16
	ks := New(Options{})
	defer ks.Close()
	db := ks.DB(0)
	m := &markedNumber{db: db, key: testKey(ks, "%05d-same", 7)}
	for i := range names {
		db.Mark(fmt.Sprintf("%05d-same", i), m)
	}
	db.SetInt(m.key, 1, 0)
	require.Len(t, m.seen, 1)
}
