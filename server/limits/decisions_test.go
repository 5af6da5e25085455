package limits

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDecisionsNearTheirLimit: a call counts as near its limit if no more than a tenth of that is left.
func TestDecisionsNearTheirLimit(t *testing.T) {
	for _, tc := range []struct {
		limited          bool
		limit, remaining int64
		want             Decisions
	}{
		{false, 100, 11, Decisions{Allowed: 1}},
		{false, 100, 10, Decisions{Allowed: 1, Near: 1}},
		{false, 109, 11, Decisions{Allowed: 1}},
		{false, 9, 1, Decisions{Allowed: 1}},
		{false, 9, 0, Decisions{Allowed: 1, Near: 1}},
		{false, -1, -1, Decisions{Allowed: 1}}, // there is no limit
		{false, math.MaxInt64, math.MaxInt64 / 10, Decisions{Allowed: 1, Near: 1}},
		{true, 100, 0, Decisions{Limited: 1}},
		{true, 100, 100, Decisions{Limited: 1}},
	} {
		var got Decisions
		got.add(tc.limited, tc.limit, tc.remaining)
		require.Equal(t, tc.want, got, "%+v", tc)
		got.Sum(&tc.want)
		require.Equal(t, Decisions{Allowed: 2 * tc.want.Allowed, Near: 2 * tc.want.Near, Limited: 2 * tc.want.Limited}, got)
	}
}
