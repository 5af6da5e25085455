package limits_test

import (
	"strconv"
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
		"FIXED x 1m":                       "ERR limit must be",
		"FIXED 3 1m NAME a b":              "ERR syntax error, try FIXED limit",
		"FIXED 3 1m NAME a/b":              "ERR policy name must be",
		"FIXED 3 1m NAME":                  "ERR syntax error, try FIXED limit",
		"FIXED":                            "ERR no such policy 'FIXED'",
		strings.Repeat("FIXED 3 1m ", 100): "ERR no such policy 'FIXED 3 1m",
	} {
		require.True(t, strings.HasPrefix(w.Ask("RL.TAKE", "1", text, "k2"), want), "%s: %s", text, w.Ask("RL.TAKE", "1", text, "k2"))
	}
}

// TestErrorsOfPoliciesWrittenOut: the usage named BLOCK, which is refused, and not NAME, which was called unknown without a name, or with two.
func TestErrorsOfPoliciesWrittenOut(t *testing.T) {
	w := servertest.NewClockClient(t)
	const usage = "ERR syntax error, try LOG limit window [SHADOW] [WHEN-UNWRITABLE <ERROR | MEMORY>] [FAILURE <ERROR | OPEN | CLOSED | LOCAL>] [NOLEASE] [NAME name]"
	for text, why := range map[string]string{
		"LOG 5":                  "",
		"LOG 5 1m SHADOWX":       " (unknown word 'SHADOWX', did you mean SHADOW?)",
		"LOG 5 1m NAME":          " (NAME needs a value)",
		"LOG 5 1m name a b":      " (NAME takes one name, as the last word)",
		"LOG 5 1m NAME a NAME b": " (NAME takes one name, as the last word)",
	} {
		for _, call := range [][]string{{"RL.TAKE", "1", text, "k"}, {"RL.RESERVE", "1", text, "k", "TTL", "1m"}} {
			require.Equal(t, usage+why, w.Ask(call...), text)
		}
	}
	require.Equal(t, "ERR a policy with BLOCK needs a name, see RL.POLICY SET", w.Ask("RL.TAKE", "1", "LOG 5 1m BLOCK 1m NAME a", "k"))
}

// TestNamesOfPoliciesWrittenOut: calls of a policy that is written out are counted under the name that it brings, for a number of names; the state has
// nothing of it.
func TestNamesOfPoliciesWrittenOut(t *testing.T) {
	w := servertest.NewClockClient(t)
	take := func(policy string) string { return w.Ask("RL.TAKE", "1", policy, "k") }
	require.Contains(t, take("FIXED 2 1m NAME search"), "[0 -1 [[0 2 1 ")
	require.Contains(t, take("FIXED 2 1m name search"), "[0 -1 [[0 2 0 ")
	require.Contains(t, take("FIXED 2 1m NAME other:search"), "[1 0 [[1 2 0 ", "the same key, the same limit")
	require.Contains(t, take("FIXED 2 1m"), "[1 0 ")
	info := w.Ask("INFO", "limiters")
	require.Contains(t, info, "policy_search:allowed=2,near_limit=1,limited=0")
	require.Contains(t, info, "policy_other:search:allowed=0,near_limit=0,limited=1")
	require.Contains(t, info, "policy_(written):allowed=0,near_limit=0,limited=1")
	require.Contains(t, w.Ask("RL.TOP", "10", "HOT"), "search")

	for i := range 1000 {
		take("FIXED 2 1m NAME n" + strconv.Itoa(i))
	}
	w.Ask("RL.POLICY", "SET", "late", "FIXED", "3", "1m")
	w.Ask("RL.TAKE", "1", "late", "k2")
	info = w.Ask("INFO", "limiters")
	require.Equal(t, 500-2, strings.Count(info, "policy_n"), "a bound for names that calls bring")
	require.Contains(t, info, "policy_(written):allowed=0,near_limit=0,limited=503")
	require.Contains(t, info, "policy_late:allowed=1", "which policies do not have")
	require.Contains(t, take("FIXED 2 1m NAME search"), "[1 0 ", "a name that is counted stays so")
	require.Contains(t, w.Ask("INFO", "limiters"), "policy_search:allowed=2,near_limit=1,limited=1")
}
