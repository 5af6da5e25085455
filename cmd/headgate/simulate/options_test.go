package simulate_test

import (
	"io"
	"testing"

	"headgate/cmd/headgate/simulate"

	"github.com/stretchr/testify/require"
)

// TestAnUnquotedLimitIsSaidToBeOne: the shell makes several words of it, and the rest would be taken for logs.
func TestAnUnquotedLimitIsSaidToBeOne(t *testing.T) {
	_, err := simulate.ParseOptions([]string{"access.log", "--policy", "GCRA", "20", "100", "1m"}, io.Discard)
	require.ErrorContains(t, err, "put the whole limit in quotes, as in --policy 'GCRA 20 100 1m'")
}
