package recipes

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuotas(t *testing.T) {
	ctx, rdb := serve(t)
	require.NoError(t, SetPlans(ctx, rdb))
	use := func(tenant, plan string, cost int64) Verdict {
		v, err := UseQuota(ctx, rdb, tenant, plan, cost)
		require.NoError(t, err)
		return v
	}
	require.EqualValues(t, 1000-1, use("acme", "free", 1).Remaining)
	require.True(t, use("acme", "free", 1000).Limited)
	require.EqualValues(t, 0, use("acme", "free", 999).Remaining)
	v := use("acme", "free", 1)
	require.True(t, v.Limited)
	require.LessOrEqual(t, v.RetryAfter, 31*24*time.Hour)
	require.Equal(t, v.RetryAfter.Round(time.Minute), v.ResetAfter.Round(time.Minute))
	// The tenant buys more: what is used up stays used up.
	v = use("acme", "team", 1)
	require.False(t, v.Limited)
	require.EqualValues(t, 50_000-1001, v.Remaining)
	require.EqualValues(t, -1, use("acme", "own-servers", 1_000_000).Remaining)
	_, err := UseQuota(ctx, rdb, "acme", "nosuch", 1)
	require.ErrorContains(t, err, "no such policy")
}

func TestSeveral(t *testing.T) {
	ctx, rdb := serve(t)
	require.NoError(t, SetLimits(ctx, rdb))
	call := func(user, address string) bool {
		ok, err := MayCall(ctx, rdb, user, address, "/search")
		require.NoError(t, err)
		return ok
	}
	admitted := 0
	for call("ann", "192.0.2.1") {
		admitted++
		require.Less(t, admitted, 200)
	}
	require.GreaterOrEqual(t, admitted, 20)
	require.True(t, call("bob", "192.0.2.1"))
	// Refused calls have charged nobody.
	which, verdicts, err := Take(ctx, rdb, 1, "per-user", "rl:user:ann", "per-address", "rl:address:192.0.2.1")
	require.NoError(t, err)
	if which == 0 {
		require.True(t, verdicts[0].Limited)
		require.EqualValues(t, 1000-admitted-1, verdicts[1].Remaining)
	}
}

func TestConcurrency(t *testing.T) {
	ctx, rdb := serve(t)
	const limit = 3
	started, finish := make(chan struct{}), make(chan struct{})
	results := make(chan error)
	for range limit {
		go func() {
			results <- Hold(ctx, rdb, "exports", limit, func(context.Context) error {
				started <- struct{}{}
				<-finish
				return nil
			})
		}()
		<-started
	}
	nothing := func(context.Context) error { return nil }
	require.ErrorIs(t, Hold(ctx, rdb, "exports", limit, nothing), ErrBusy)
	finish <- struct{}{}
	require.NoError(t, <-results)
	failed := errors.New("failed")
	require.ErrorIs(t, Hold(ctx, rdb, "exports", limit, func(context.Context) error { return failed }), failed)
	require.NoError(t, Hold(ctx, rdb, "exports", limit, nothing), "a failure gives its lease back")
	close(finish)
	for range limit - 1 {
		require.NoError(t, <-results)
	}
	n, err := rdb.Exists(ctx, "exports").Result()
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestDryRun(t *testing.T) {
	ctx, rdb := serve(t)
	take := func(key string) Verdict {
		_, verdicts, err := Take(ctx, rdb, 1, "api", key)
		require.NoError(t, err)
		return verdicts[0]
	}
	share, err := WouldLimit(ctx, rdb, "api")
	require.NoError(t, err)
	require.Zero(t, share)
	require.NoError(t, DryRun(ctx, rdb, "api", "FIXED", 3, "1h"))
	require.False(t, take("rl:u1").Limited)
	share, err = WouldLimit(ctx, rdb, "api")
	require.NoError(t, err, "INFO leaves shadow_limited out while it is 0")
	require.Zero(t, share)
	for range 3 {
		require.False(t, take("rl:u1").Limited)
	}
	share, err = WouldLimit(ctx, rdb, "api")
	require.NoError(t, err)
	require.Equal(t, 0.25, share)
	require.NoError(t, Enforce(ctx, rdb, "api", "FIXED", 3, "1h"))
	require.True(t, take("rl:u1").Limited)
}

func TestOneCustomer(t *testing.T) {
	ctx, rdb := serve(t)
	require.NoError(t, Enforce(ctx, rdb, "api", "GCRA", 100, 100, "1m"))
	require.NoError(t, TenTimes(ctx, rdb, "rl:acme"))
	require.NoError(t, Exempt(ctx, rdb, "api", "rl:monitoring", time.Hour))
	_, verdicts, err := Take(ctx, rdb, 1, "api", "rl:acme", "api", "rl:other", "api", "rl:monitoring")
	require.NoError(t, err)
	require.Equal(t, []int64{1000, 100, -1}, []int64{verdicts[0].Limit, verdicts[1].Limit, verdicts[2].Limit})
}

func TestBlockAbuse(t *testing.T) {
	ctx, rdb := serve(t)
	require.NoError(t, BlockAbuse(ctx, rdb, "login"))
	var last Verdict
	for range 6 {
		_, verdicts, err := Take(ctx, rdb, 1, "login", "rl:mallory")
		require.NoError(t, err)
		last = verdicts[0]
	}
	require.True(t, last.Limited)
	require.Equal(t, 10*time.Minute, last.RetryAfter)
	blocks, err := Blocks(ctx, rdb)
	require.NoError(t, err)
	require.Equal(t, []string{"rl:block:{rl:mallory}:login"}, blocks)
	lifted, err := Unban(ctx, rdb, "login", "rl:mallory")
	require.NoError(t, err)
	require.True(t, lifted)
	_, verdicts, err := Take(ctx, rdb, 1, "login", "rl:mallory")
	require.NoError(t, err)
	require.False(t, verdicts[0].Limited, "it is let in at once, though its limit was used up")
	require.NoError(t, Ban(ctx, rdb, "login", "rl:mallory", 24*time.Hour))
	_, verdicts, err = Take(ctx, rdb, 1, "login", "rl:mallory")
	require.NoError(t, err)
	require.Greater(t, verdicts[0].RetryAfter, 23*time.Hour)
	lifted, err = Unban(ctx, rdb, "login", "rl:alice")
	require.NoError(t, err)
	require.False(t, lifted)
}

func TestFields(t *testing.T) {
	for _, tc := range []struct {
		v                        Verdict
		policy, limit, retryFrom string
	}{
		{Verdict{Limit: 100, Remaining: 99, RetryAfter: -1, ResetAfter: 11_001 * time.Millisecond}, `"user";q=100;w=60`, `"user";r=99;t=12`, ""},
		{Verdict{Limited: true, Limit: 100, RetryAfter: 500 * time.Millisecond, ResetAfter: time.Minute}, `"user";q=100;w=60`, `"user";r=0;t=60`, "1"},
		{Verdict{Limited: true, Limit: 100, Remaining: 100, RetryAfter: 10 * time.Minute}, `"user";q=100;w=60`, `"user";r=0;t=600`, "600"},
		{Verdict{Limited: true, Limit: 1, Remaining: 1, RetryAfter: -1}, `"user";q=1;w=60`, `"user";r=1;t=0`, ""},
		{Verdict{Limit: -1, Remaining: -1, RetryAfter: -1}, "", "", ""},
		{Verdict{Limited: true, Limit: -1, Remaining: -1, RetryAfter: time.Hour}, "", "", "3600"},
	} {
		h := http.Header{}
		WriteFields(h, "user", time.Minute, tc.v)
		require.Equal(t, []string{tc.policy, tc.limit, tc.retryFrom}, []string{h.Get("RateLimit-Policy"), h.Get("RateLimit"), h.Get("Retry-After")})
	}
}

func TestWarmUp(t *testing.T) {
	ctx, rdb := serve(t)
	policy := func() string {
		text, err := rdb.Do(ctx, "RL.POLICY", "GET", "upstream").Text()
		require.NoError(t, err)
		return text
	}
	var seen []string
	step := func(ctx context.Context) error {
		seen = append(seen, policy())
		_, verdicts, err := Take(ctx, rdb, 5, "upstream", "rl:upstream")
		require.NoError(t, err)
		require.False(t, verdicts[0].Limited)
		return nil
	}
	require.NoError(t, WarmUp(ctx, rdb, "upstream", []int64{10, 100, 1000}, step))
	require.Len(t, seen, 2)
	require.Equal(t, []string{"GCRA 10 10 1s", "GCRA 100 100 1s"}, seen)
	require.Equal(t, "GCRA 1000 1000 1s", policy())
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, Every(time.Hour)(ctx), context.Canceled)
	require.NoError(t, Every(0)(context.Background()))
}
