package throttle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShareOf(t *testing.T) {
	for _, c := range []struct {
		limit int64
		share float64
		want  int64
	}{
		{100, 0.25, 25}, {7, 0.5, 3}, {1, 0.25, 1}, {3, 0.25, 1}, {0, 0.5, 0}, {-1, 0.5, -1}, {8, 1, 8}, {math.MaxInt64, 1, math.MaxInt64},
	} {
		require.Equal(t, c.want, ShareOf(c.limit, c.share), "%d × %v", c.limit, c.share)
	}
}

// TestShareOfARate: a share lets so much pass at once, and the same share of the rate afterwards.
func TestShareOfARate(t *testing.T) {
	const now, second = int64(1_700_000_000_000_000_000), int64(1_000_000_000)
	rate, err := NewRate(100, 10, second)
	require.NoError(t, err)
	cell, err := NewCapacityGCRA(100, 10, 1)
	require.NoError(t, err)
	rate, err = rate.Share(0.25)
	require.NoError(t, err)
	cell, err = cell.Share(0.25)
	require.NoError(t, err)
	ask := map[string]func(d *Decision, now, tat int64, exists bool) error{
		"rate": func(d *Decision, now, tat int64, exists bool) error {
			return rate.ChargeTo(d, now, tat, exists, Call{Cost: 1})
		},
		"gcra": func(d *Decision, now, tat int64, exists bool) error { return cell.DecideTo(d, now, tat, exists, 1) },
	}
	for name, call := range ask {
		var d Decision
		passed, tat := 0, int64(0)
		try := func(now int64) {
			require.NoError(t, call(&d, now, tat, tat != 0))
			if !d.Limited {
				passed, tat = passed+1, d.TAT
			}
		}
		for range 200 {
			try(now)
		}
		require.Equal(t, 25, passed, name)
		for i := range int64(4000) {
			try(now + i*second/100)
		}
		require.InDelta(t, 25+100, passed, 1, "%s: 40 s at 2.5 a second", name)
	}
	_, err = Rate{capacity: math.MaxInt64, period: math.MaxInt64, count: 1}.Share(0.5)
	require.ErrorIs(t, err, ErrOverflow)
}
