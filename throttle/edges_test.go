package throttle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewIntervalGCRA(t *testing.T) {
	_, err := NewIntervalGCRA(math.MaxInt64, 1)
	require.ErrorIs(t, err, ErrOverflow)
	g, err := NewIntervalGCRA(4, 1_500)
	require.NoError(t, err)
	require.Equal(t, GCRA{interval: 1_500, limit: 5, tolerance: 7_500}, g)
}

func TestMillisAndMicros(t *testing.T) {
	for _, test := range []struct{ ns, millis, retry, seconds int64 }{
		{0, 0, 0, 0}, {1, 1, 1, 0}, {999, 1, 1, 0}, {1_000, 1, 1, 1}, {nsPerMs, 1, 1, 1}, {nsPerMs + 1, 2, 2, 1},
		{nsPerSecond, 1000, 1000, 1}, {nsPerSecond + 999, 1001, 1001, 1}, {nsPerSecond + 1_000, 1001, 1001, 2}, {NoRetry, 0, NoRetry, 0},
	} {
		require.Equal(t, test.millis, Millis(test.ns), test.ns)
		require.Equal(t, test.retry, RetryMillis(test.ns), test.ns)
		require.Equal(t, test.seconds, SecondsOfMicros(test.ns), test.ns)
	}
}

// TestCountsBeyond64Bits: sums that int64 cannot hold count as the largest there is.
func TestCountsBeyond64Bits(t *testing.T) {
	s := NewSliding(math.MaxInt64, 4, 2)
	counts := []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}
	d := s.Decide(1_000_001, counts, Call{Cost: 1})
	require.Equal(t, Verdict{Limited: true, Limit: math.MaxInt64, RetryAfter: 4, ResetAfter: 5}, d.Verdict)
	require.EqualValues(t, math.MaxInt64, saturatingAdd(math.MaxInt64, math.MaxInt64))

	f := Fixed{Limit: math.MaxInt64, EndMs: 10}
	got := f.Decide(0, FixedState{Count: math.MinInt64, Exists: true, ExpireAtMs: 5}, Call{Cost: math.MinInt64})
	require.Equal(t, FixedDecision{Verdict: Verdict{Limit: math.MaxInt64, Remaining: math.MaxInt64, RetryAfter: NoRetry}, ExpireAtMs: 5}, got)
}

// TestFixedLooksAfterALoweredLimit: a call for nothing is limited while more is used than the limit, and writes nothing, not even an
// expiry that is missing; a call for something, limited or giving back, mends that.
func TestFixedLooksAfterALoweredLimit(t *testing.T) {
	f := Fixed{Limit: 2, EndMs: 1_000}
	for _, test := range []struct {
		state FixedState
		cost  int64
		want  FixedDecision
	}{
		{FixedState{Count: 3, ExpireAtMs: 400, Exists: true}, 0, FixedDecision{Verdict{Limited: true, Limit: 2, RetryAfter: 300, ResetAfter: 300}, 3, 400}},
		{FixedState{Count: 3, Exists: true}, 0, FixedDecision{Verdict{Limited: true, Limit: 2, RetryAfter: 900, ResetAfter: 900}, 3, 1_000}},
		{FixedState{Count: 2, Exists: true}, 0, FixedDecision{Verdict{Limit: 2, RetryAfter: NoRetry, ResetAfter: 900}, 2, 1_000}},
		{FixedState{Count: 3, Exists: true}, 1, FixedDecision{Verdict{Limited: true, Write: Set, Limit: 2, RetryAfter: 900, ResetAfter: 900}, 3, 1_000}},
		{FixedState{Count: 0, Exists: true}, -1, FixedDecision{Verdict{Write: Set, Limit: 2, Remaining: 2, RetryAfter: NoRetry}, 0, 1_000}},
		{FixedState{Count: 0, ExpireAtMs: 400, Exists: true}, -1, FixedDecision{Verdict{Limit: 2, Remaining: 2, RetryAfter: NoRetry}, 0, 400}},
	} {
		require.Equal(t, test.want, f.Decide(100, test.state, Call{Cost: test.cost}), "%+v", test)
	}
}

// TestGivingBackNothingWritesNothing: a refund of what is not used leaves the state alone.
func TestGivingBackNothingWritesNothing(t *testing.T) {
	call := Call{Cost: -3}
	require.Equal(t, Keep, Log{Limit: 5, Window: 10}.Decide(100, 0, nil, call).Write)
	s := NewSliding(5, 10, 2)
	require.Equal(t, Keep, s.Decide(100, make([]int64, s.Counts()), call).Write)
	require.Equal(t, Keep, Fixed{Limit: 5, EndMs: 200}.Decide(100, FixedState{}, call).Write)
}
