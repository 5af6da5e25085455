package limits_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/servertest"
)

// TestPoliciesWrittenOut: RL.TAKE takes a policy in one argument where it takes a name, with the same state and the same answers.
func TestPoliciesWrittenOut(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Ask("RL.POLICY", "SET", "three", "FIXED", "3", "1m")
	for _, policy := range []string{"FIXED 3 1m", "three", "fixed 3 60s"} {
		require.Contains(t, w.Ask("RL.TAKE", "1", policy, "k"), "[0 -1 [[0 3 ", policy)
	}
	require.Contains(t, w.Ask("RL.TAKE", "1", "FIXED 3 1m", "k"), "[1 0 [[1 3 0 ", "the fourth call")
	require.Contains(t, w.Ask("RL.TAKE", "2", "FIXED 5 1m", "a", "GCRA 1 1 1s", "b"), "[0 -1 [[0 5 4 ")
	for text, want := range map[string]string{
		"FIXED 3":                          "ERR syntax error, try FIXED limit",
		"LEAKY 3 1m":                       "ERR unknown algorithm 'LEAKY'",
		"FIXED 3 1m BLOCK 1m":              "ERR a policy with BLOCK needs a name",
		"FIXED x 1m":                       "ERR limit 'x' must be",
		"FIXED":                            "ERR no such policy 'FIXED'",
		strings.Repeat("FIXED 3 1m ", 100): "ERR no such policy 'FIXED 3 1m",
	} {
		require.True(t, strings.HasPrefix(w.Ask("RL.TAKE", "1", text, "k2"), want), "%s: %s", text, w.Ask("RL.TAKE", "1", text, "k2"))
	}
}
