package limiter_test

import (
	"testing"

	"headgate/server/limiter"

	"github.com/stretchr/testify/require"
)

// TestDrawnIDs are hex digits, all different, and behind what is there.
func TestDrawnIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := string(limiter.AppendDrawnID([]byte("id ")))
		require.Regexp(t, "^id [0-9a-f]{32}$", id)
		seen[id] = true
	}
	require.Len(t, seen, 1000)
}
