package limits_test

import (
	"testing"

	"headgate/server/limits"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestTakesAreCountedByWhatTheyAnswer: a take that passes counts for each of its policies, one that is limited for those that limit it, and
// a look, or what costs nothing, for none.
func TestTakesAreCountedByWhatTheyAnswer(t *testing.T) {
	w := servertest.NewClockClient(t)
	counts := func() [2]limits.Decisions {
		fixed, gcra := countsOf(w.Srv.Limits, "FIXED"), countsOf(w.Srv.Limits, "GCRA")
		return [2]limits.Decisions{fixed, gcra}
	}
	w.Call("RL.POLICY SET one FIXED 1 60s")
	w.Call("RL.POLICY SET many GCRA 100 1 60s")
	for _, tc := range []struct {
		call, want  string
		fixed, gcra limits.Decisions
	}{
		{"RL.TAKE 2 one a many b COST 1 PEEK", "[0 -1 [[0 1 1 -1 0] [0 100 100 -1 0]]]", limits.Decisions{}, limits.Decisions{}},
		{"RL.TAKE 2 one a many b COSTS 0 1", "[0 -1 [[0 1 1 -1 0] [0 100 99 -1 60000]]]", limits.Decisions{}, limits.Decisions{Allowed: 1}},
		{"RL.TAKE 2 one a many b", "[0 -1 [[0 1 0 -1 60000] [0 100 98 -1 120000]]]", limits.Decisions{Allowed: 1, Near: 1}, limits.Decisions{Allowed: 2}},
		{"RL.TAKE 2 one a many b", "[1 0 [[1 1 0 60000 60000] [0 100 98 -1 120000]]]", limits.Decisions{Allowed: 1, Near: 1, Limited: 1}, limits.Decisions{Allowed: 2}},
		{"RL.TAKE 2 one a many b COST 1 PEEK", "[1 0 [[1 1 0 60000 60000] [0 100 98 -1 120000]]]", limits.Decisions{Allowed: 1, Near: 1, Limited: 1}, limits.Decisions{Allowed: 2}},
	} {
		require.Equal(t, tc.want, w.Call(tc.call), tc.call)
		require.Equal(t, [2]limits.Decisions{tc.fixed, tc.gcra}, counts(), tc.call)
	}
}

// countsOf is what is counted of an algorithm.
func countsOf(l *limits.Limits, name string) limits.Decisions {
	return l.Counts[l.Algorithms.Find(name).Index()]
}

// TestTakeOfNoLimitWhileMemoryIsShort: while memory is short a take looks whether all limits could keep their charges. One without a limit has
// none, also if no limiter was called before.
func TestTakeOfNoLimitWhileMemoryIsShort(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("RL.POLICY SET free UNLIMITED")
	w.SetShort(true)
	require.Equal(t, "[0 -1 [[0 -1 -1 -1 0]]]", w.Call("RL.TAKE 1 free k"))
}
