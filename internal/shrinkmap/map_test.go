package shrinkmap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRoomIsGivenBack: a map that was large has no room left once it is empty, and one that was small keeps it.
func TestRoomIsGivenBack(t *testing.T) {
	for _, entries := range []int{1, keptEntries, keptEntries + 1, 50 * keptEntries} {
		var m Map[int, string]
		m.Delete(1)
		for i := range entries {
			m.Set(i, "value")
		}
		require.Equal(t, entries, m.Len())
		require.Len(t, m.Entries(), entries)
		for i := range entries {
			require.Equal(t, "value", m.Entries()[i])
			m.Delete(i)
		}
		require.Zero(t, m.Len())
		require.Empty(t, m.Entries()[0])
		require.Equal(t, entries <= keptEntries, m.entries != nil, "%d entries", entries)
		m.Set(1, "again")
		require.Equal(t, "again", m.Entries()[1])
	}
}

// TestDeleteWhileLooking: entries may go while they are looked at.
func TestDeleteWhileLooking(t *testing.T) {
	var m Map[int, int]
	for i := range 2 * keptEntries {
		m.Set(i, i)
	}
	for key := range m.Entries() {
		m.Delete(key)
	}
	require.Zero(t, m.Len())
	require.Nil(t, m.entries)
}
