package harness

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDraw: what is drawn are different ones, in their order, and all of them come up.
func TestDraw(t *testing.T) {
	all := []int{1, 2, 3, 4, 5}
	require.Equal(t, all, Draw(t, all, 7))
	seen := make(map[int]bool)
	for range 100 {
		drawn := Draw(t, all, 2)
		require.Len(t, drawn, 2)
		require.True(t, drawn[0] < drawn[1], drawn)
		for _, one := range drawn {
			require.True(t, slices.Contains(all, one))
			seen[one] = true
		}
	}
	require.Len(t, seen, len(all))
}
