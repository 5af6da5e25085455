package exec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLongArgumentSlicesAreKeptWhileUsed: a slice for many arguments is made again neither for each command nor kept for ever after one.
func TestLongArgumentSlicesAreKeptWhileUsed(t *testing.T) {
	var u argumentUse
	usual, long := make([][]byte, usualArguments), make([][]byte, keptArguments)
	for range 2 * longUnused {
		require.NotNil(t, u.fit(usual[:1]))
		require.NotNil(t, u.fit(long))
	}
	for range longUnused {
		require.NotNil(t, u.fit(long[:1]))
	}
	require.NotNil(t, u.fit(long), "it is used")
	for range longUnused {
		require.NotNil(t, u.fit(long[:1]))
	}
	require.Nil(t, u.fit(long[:1]))
	require.NotNil(t, u.fit(long))
	require.Nil(t, u.fit(make([][]byte, keptArguments+1)))
}
