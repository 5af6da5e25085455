package throttle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnits(t *testing.T) {
	tests := []struct {
		name                     string
		ns                       int64
		seconds, retry, expireMs int64
	}{
		{"nothing", 0, 0, 1, 0},
		{"1 ns", 1, 0, 1, 1},
		{"a nanosecond below 1 ms", nsPerMs - 1, 0, 1, 1},
		{"1 ms", nsPerMs, 1, 1, 1},
		{"a nanosecond above 1 ms", nsPerMs + 1, 1, 1, 2},
		{"1.000999999 s", 1_000_999_999, 1, 1, 1001},
		{"1.001 s", 1_001 * nsPerMs, 2, 2, 1001},
		{"2.000 s", 2_000 * nsPerMs, 2, 2, 2000},
		{"2.0005 s", 2_000_500_000, 2, 2, 2001},
		{"2.001 s", 2_001 * nsPerMs, 3, 3, 2001},
		{"the highest", math.MaxInt64, 9_223_372_037, 9_223_372_037, 9_223_372_036_855},
		{"no retry", NoRetry, 0, -1, 0},
		{"-2.5 s", -2_500 * nsPerMs, -2, -1, -2500},
		{"the lowest", math.MinInt64, -9_223_372_036, -1, -9_223_372_036_854},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.seconds, Seconds(test.ns))
			require.Equal(t, test.retry, RetrySeconds(test.ns))
			require.Equal(t, test.expireMs, ExpireAtMs(test.ns))
		})
	}
}
