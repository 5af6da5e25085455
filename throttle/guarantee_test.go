package throttle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// guaranteeRuns is how many random quotas and traffics each guarantee is tried on.
const guaranteeRuns = 300

// quota draws a quota that admits something, and its emission interval.
func (r drawer) quota(t *testing.T) (GCRA, int64) {
	t.Helper()
	q := Quota{MaxBurst: r.Int64N(20), Count: 1 + r.Int64N(5000), Period: 1 + r.Int64N(100)}
	g, err := NewGCRA(q)
	require.NoError(t, err)
	return g, q.Period * 1e9 / q.Count
}

// TestNeverMoreThanBurstAndRate looks at every pair of admitted calls: between them, both included, no more passed than
// the limit and what the rate brings in that time.
func TestNeverMoreThanBurstAndRate(t *testing.T) {
	draw := drawer{newRand(t)}
	for range guaranteeRuns {
		g, interval := draw.quota(t)
		type pass struct{ at, units int64 }
		var passed []pass
		var key storedKey
		now := epoch
		for range 200 {
			if draw.IntN(3) > 0 {
				now += draw.Int64N(2 * interval)
			}
			units := 1 + draw.Int64N(g.limit+1)
			d, err := key.decide(g, now, units)
			require.NoError(t, err)
			if !d.Limited {
				passed = append(passed, pass{now, units})
			}
		}
		require.NotEmpty(t, passed)
		for i, first := range passed {
			units := int64(0)
			for _, last := range passed[i:] {
				units += last.units
				require.LessOrEqual(t, units*interval, g.limit*interval+last.at-first.at, "%+v from %d to %d", g, first.at, last.at)
			}
		}
	}
}

// TestBurstAndRateAreGranted is the other side: who asks for no more than the burst and the rate is never limited.
func TestBurstAndRateAreGranted(t *testing.T) {
	draw := drawer{newRand(t)}
	for range guaranteeRuns {
		g, interval := draw.quota(t)
		var key storedKey
		now := epoch + draw.Int64N(nsPerSecond)
		for i := range g.limit {
			d, err := key.decide(g, now, 1)
			require.NoError(t, err)
			require.False(t, d.Limited, "%+v", g)
			require.Equal(t, g.limit-1-i, d.Remaining)
		}
		for range 100 {
			now += interval
			d, err := key.decide(g, now, 1)
			require.NoError(t, err)
			require.False(t, d.Limited, "%+v", g)
		}
	}
}

// TestRetryAfterIsExact: a limited call passes after RetryAfter and not a nanosecond sooner, for any
// quantity up to the limit. The seconds reported are less than a millisecond too short and less than a second too long.
func TestRetryAfterIsExact(t *testing.T) {
	draw := drawer{newRand(t)}
	limited := 0
	for range guaranteeRuns {
		g, interval := draw.quota(t)
		var key storedKey
		now := epoch
		for range 50 {
			now += draw.Int64N(interval)
			units := 1 + draw.Int64N(g.limit)
			d, err := key.decide(g, now, units)
			require.NoError(t, err)
			if !d.Limited {
				require.Equal(t, NoRetry, d.RetryAfter)
				continue
			}
			limited++
			seconds := RetrySeconds(d.RetryAfter) * nsPerSecond
			require.Greater(t, seconds, d.RetryAfter-nsPerMs)
			require.Less(t, seconds, d.RetryAfter+nsPerSecond)

			tooSoon, err := key.decide(g, now+d.RetryAfter-1, units)
			require.NoError(t, err)
			require.True(t, tooSoon.Limited, "%+v", g)
			require.Equal(t, int64(1), tooSoon.RetryAfter)
			now += d.RetryAfter
			d, err = key.decide(g, now, units)
			require.NoError(t, err)
			require.False(t, d.Limited, "%+v", g)
		}
	}
	require.NotZero(t, limited)
}

// TestLookNeverWrites also holds a look to what the next call of one unit then gets.
func TestLookNeverWrites(t *testing.T) {
	draw := drawer{newRand(t)}
	for range guaranteeRuns {
		g, interval := draw.quota(t)
		tat := epoch + draw.Int64N((g.limit+1)*interval)
		exists := draw.IntN(4) > 0
		look, err := g.Decide(epoch, tat, exists, 0)
		require.NoError(t, err)
		require.Equal(t, Keep, look.Write)
		next, err := g.Decide(epoch, tat, exists, 1)
		require.NoError(t, err)
		require.Equal(t, look.Remaining == 0, next.Limited, "%+v, TAT %d", g, tat)
	}
}

// TestRefundStopsAtFull: whatever is given back, no more than the limit passes afterwards.
func TestRefundStopsAtFull(t *testing.T) {
	draw := drawer{newRand(t)}
	for range guaranteeRuns {
		g, interval := draw.quota(t)
		var key storedKey
		now := epoch
		for range 20 {
			now += draw.Int64N(interval)
			_, err := key.decide(g, now, draw.Int64N(2*g.limit+1)-g.limit)
			require.NoError(t, err)
		}
		d, err := key.decide(g, now, -1_000_000)
		require.NoError(t, err)
		require.Equal(t, Decision{Limit: g.limit, Remaining: g.limit, RetryAfter: NoRetry, Write: d.Write}, d)
		require.NotEqual(t, Set, d.Write)
		require.False(t, key.exists)

		d, err = key.decide(g, now, g.limit)
		require.NoError(t, err)
		require.False(t, d.Limited)
		d, err = key.decide(g, now, 1)
		require.NoError(t, err)
		require.True(t, d.Limited)
	}
}

// TestExpiryChangesNoDecision: a key that is gone at its expiry decides as one that stays.
func TestExpiryChangesNoDecision(t *testing.T) {
	draw := drawer{newRand(t)}
	for range guaranteeRuns {
		g, interval := draw.quota(t)
		stored, err := g.Decide(epoch, 0, false, 1)
		require.NoError(t, err)
		expireAt := ExpireAtMs(stored.TAT) * nsPerMs
		require.GreaterOrEqual(t, expireAt, stored.TAT)
		require.Less(t, expireAt, stored.TAT+nsPerMs)

		now := expireAt + draw.Int64N(interval)
		kept, err := g.Decide(now, stored.TAT, true, 1)
		require.NoError(t, err)
		gone, err := g.Decide(now, 0, false, 1)
		require.NoError(t, err)
		require.Equal(t, gone, kept)
	}
}
