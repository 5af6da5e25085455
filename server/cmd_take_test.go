package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTakesAreCountedByWhatTheyAnswer: a take that passes counts for each of its policies, one that is limited for those that limit it, and
// a look, or what costs nothing, for none.
func TestTakesAreCountedByWhatTheyAnswer(t *testing.T) {
	w := newClockClient(t)
	counts := func() [2]decisions {
		fixed, gcra := w.srv.countsOf("FIXED"), w.srv.countsOf("GCRA")
		return [2]decisions{fixed, gcra}
	}
	w.call("RL.POLICY SET one FIXED 1 60s")
	w.call("RL.POLICY SET many GCRA 100 1 60s")
	for _, tc := range []struct {
		call, want  string
		fixed, gcra decisions
	}{
		{"RL.TAKE 2 one a many b COST 1 PEEK", "[0 -1 [[0 1 1 -1 0] [0 100 100 -1 0]]]", decisions{}, decisions{}},
		{"RL.TAKE 2 one a many b COSTS 0 1", "[0 -1 [[0 1 1 -1 0] [0 100 99 -1 60000]]]", decisions{}, decisions{allowed: 1}},
		{"RL.TAKE 2 one a many b", "[0 -1 [[0 1 0 -1 60000] [0 100 98 -1 120000]]]", decisions{allowed: 1, near: 1}, decisions{allowed: 2}},
		{"RL.TAKE 2 one a many b", "[1 0 [[1 1 0 60000 60000] [0 100 98 -1 120000]]]", decisions{allowed: 1, near: 1, limited: 1}, decisions{allowed: 2}},
		{"RL.TAKE 2 one a many b COST 1 PEEK", "[1 0 [[1 1 0 60000 60000] [0 100 98 -1 120000]]]", decisions{allowed: 1, near: 1, limited: 1}, decisions{allowed: 2}},
	} {
		require.Equal(t, tc.want, w.call(tc.call), tc.call)
		require.Equal(t, [2]decisions{tc.fixed, tc.gcra}, counts(), tc.call)
	}
}

// countsOf is what is counted of an algorithm.
func (l *Limits) countsOf(name string) decisions { return l.counts[l.algorithms.Find(name).Index()] }
