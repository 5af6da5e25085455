package rdb

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIDsAreOrderedByTimeFirst compares IDs each way.
func TestIDsAreOrderedByTimeFirst(t *testing.T) {
	inOrder := []StreamID{{0, 0}, {0, 1}, {0, 1 << 63}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {1 << 63, 0}, {1<<64 - 1, 1<<64 - 1}}
	for i, a := range inOrder {
		for j, b := range inOrder {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			require.Equal(t, want, compareIDs(a, b), "%v and %v", a, b)
		}
	}
}
