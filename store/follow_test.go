package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFollow: whatever happens to the key that is followed is counted, and what happens to others is not.
func TestFollow(t *testing.T) {
	ks := New(Options{Databases: 2})
	t.Cleanup(ks.Close)
	db, other := ks.DB(0), ks.DB(1)
	name := []byte("rl:policies")
	k, neighbour := ks.Key(name), ks.Key([]byte("rl:policiez"))
	db.Follow(name)
	seen := db.FollowedChanges()
	counted := func(what string, do func()) {
		t.Helper()
		do()
		require.Greater(t, db.FollowedChanges(), seen, what)
		seen = db.FollowedChanges()
	}
	set := func() {
		h, err := db.HashCreate(k, 0)
		require.NoError(t, err)
		h.Set([]byte("f"), []byte("v"))
	}
	counted("created", set)
	counted("deleted", func() { e, _ := db.Find(k, 0); e.Delete() })
	counted("overwritten", func() { db.SetInt(k, 1, 5) })
	counted("expired", func() { _, found := db.Find(k, 6); require.False(t, found) })
	counted("created again", set)
	counted("swapped away", func() { ks.Swap(0, 1, 0) })
	counted("swapped back", func() { ks.Swap(0, 1, 0) })
	counted("flushed", db.Flush)

	db.SetInt(neighbour, 1, 0)
	other.SetInt(k, 1, 0)
	other.Flush()
	db.Find(k, 0)
	require.Equal(t, seen, db.FollowedChanges())
}
