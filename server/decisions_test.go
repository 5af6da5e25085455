package server

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
		want             decisions
	}{
		{false, 100, 11, decisions{allowed: 1}},
		{false, 100, 10, decisions{allowed: 1, near: 1}},
		{false, 109, 11, decisions{allowed: 1}},
		{false, 9, 1, decisions{allowed: 1}},
		{false, 9, 0, decisions{allowed: 1, near: 1}},
		{false, -1, -1, decisions{allowed: 1}}, // there is no limit
		{false, math.MaxInt64, math.MaxInt64 / 10, decisions{allowed: 1, near: 1}},
		{true, 100, 0, decisions{limited: 1}},
		{true, 100, 100, decisions{limited: 1}},
	} {
		var got decisions
		got.add(tc.limited, tc.limit, tc.remaining)
		require.Equal(t, tc.want, got, "%+v", tc)
		got.sum(&tc.want)
		require.Equal(t, decisions{2 * tc.want.allowed, 2 * tc.want.near, 2 * tc.want.limited}, got)
	}
}
