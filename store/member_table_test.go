package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireSound checks all that a memberTable says of itself.
func requireSound(t *testing.T, table *memberTable, model map[string]float64) {
	t.Helper()
	require.Equal(t, len(model), table.len())
	for i := range table.len() {
		m := table.at(i)
		want, ok := model[m.name]
		require.True(t, ok, "%s should be gone", m.name)
		require.Equal(t, want, m.score)
		p, ok := table.find([]byte(m.name))
		require.True(t, ok, "%s at %d is not found", m.name, i)
		require.Equal(t, i, p)
	}

	require.Len(t, table.dir, 1<<table.depth)
	used, deepest := 0, 0
	for i := 0; i < len(table.dir); {
		s := table.dir[i]
		span := 1 << (table.depth - s.depth)
		require.Zero(t, i%span)
		for _, other := range table.dir[i : i+span] {
			require.Same(t, s, other)
		}
		require.False(t, s.crowded(s.used))
		free := slices.Index(s.slots, memberSlot{})
		require.GreaterOrEqual(t, free, 0, "a full segment never ends a probe")
		if s.depth == table.depth {
			deepest++
		}
		used += s.used
		i += span
	}
	require.Equal(t, len(model), used)
	require.Equal(t, table.deepest, deepest)
	require.LessOrEqual(t, len(table.pages), table.len()/pageMembers+2)
}

// TestMemberTableModel lets a table grow and shrink by turns over several splits.
func TestMemberTableModel(t *testing.T) {
	rnd := newRand(t)
	table := newMemberTable()
	model := map[string]float64{}
	for phase, size := range []int{10, 3000, 100, 9000, 0, 700, 5} {
		for len(model) != size {
			name := fmt.Sprintf("m%d", rnd.IntN(20_000))
			p, ok := table.find([]byte(name))
			_, want := model[name]
			require.Equal(t, want, ok)
			switch grow := len(model) < size; {
			case ok && (!grow || rnd.IntN(8) == 0):
				delete(model, name)
				table.remove(p)
			case !ok && grow:
				v := rnd.Float64()
				model[name] = v
				require.Equal(t, v, table.insert([]byte(name), v).score)
			case !grow && len(model) > 0:
				i := rnd.IntN(table.len())
				delete(model, table.at(i).name)
				table.remove(i)
			}
		}
		t.Logf("phase %d: %d members in %d directory entries", phase, size, len(table.dir))
		requireSound(t, &table, model)
	}
	require.Len(t, table.dir, 1, "a table that has shrunk gives its index back")
}

// TestMemberIndexCollisions gives all members one hash, as no seed ever will: the
// directory stops growing and the segment doubles.
func TestMemberIndexCollisions(t *testing.T) {
	s := &memberSegment{depth: maxSegmentDepth}
	s.resize(1)
	table := memberIndex{dir: make([]*memberSegment, 1)}
	table.dir[0] = s
	for i := range 3 * segmentSlots {
		if s.crowded(s.used + 1) {
			table.grow(s, 7)
		}
		s.put(memberSlot{hash: 7, next: uint32(i) + 1})
	}
	require.Equal(t, 3*segmentSlots, s.used)
	for i := range 3 * segmentSlots {
		require.Equal(t, uint32(i)+1, s.slots[s.slotOf(7, i)].next)
	}
}
