package clients

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// decision is CL.THROTTLE's reply.
type decision struct {
	limited                     bool
	limit, remaining            int64
	retryAfterSec, resetAfterSc int64
}

func throttle(c limiterClient, command string, args ...any) (decision, error) {
	v, err := c.do(append([]any{command}, args...)...)
	if err != nil {
		return decision{}, err
	}
	items, ok := v.([]any)
	if !ok || len(items) != 5 {
		return decision{}, fmt.Errorf("%v is not five integers", v)
	}
	var n [5]int64
	for i, item := range items {
		if n[i], ok = item.(int64); !ok {
			return decision{}, fmt.Errorf("%v is not five integers", v)
		}
	}
	return decision{n[0] == 1, n[1], n[2], n[3], n[4]}, nil
}

// TestThrottleExact: of all workers' calls exactly the burst passes.
func TestThrottleExact(t *testing.T) {
	for _, command := range []string{"CL.THROTTLE", "RL.THROTTLE", "cl.throttle"} {
		t.Run(command, func(t *testing.T) {
			eachClient(t, func(t *testing.T, c limiterClient) {
				admitted := hammer(t, func(int) (bool, error) {
					d, err := throttle(c, command, "user", limit-1, 1, int64(window.Seconds()), 1)
					if err == nil && (d.limit != limit || d.remaining < 0 || d.remaining >= limit || d.limited == (d.retryAfterSec == -1)) {
						err = fmt.Errorf("%+v", d)
					}
					return !d.limited, err
				})
				require.Equal(t, limit, admitted)
			})
		})
	}
}

// TestThrottleRetryAfter: a client that is limited and sleeps for retry_after is admitted at its first try.
func TestThrottleRetryAfter(t *testing.T) {
	const users = 20
	eachClient(t, func(t *testing.T, c limiterClient) {
		errs := make(chan error, users)
		for user := range users {
			go func() { errs <- waitsOnce(c, fmt.Sprintf("user:%d", user)) }()
		}
		for range users {
			require.NoError(t, <-errs)
		}
	})
}

func waitsOnce(c limiterClient, key string) error {
	const maxBurst = 2
	for range maxBurst + 1 {
		d, err := throttle(c, "CL.THROTTLE", key, maxBurst, 1, 1)
		if err != nil || d.limited {
			return fmt.Errorf("%s: within the burst: %+v, %v", key, d, err)
		}
	}
	d, err := throttle(c, "CL.THROTTLE", key, maxBurst, 1, 1)
	if err != nil || !d.limited || d.retryAfterSec < 1 {
		return fmt.Errorf("%s: beyond the burst: %+v, %v", key, d, err)
	}
	time.Sleep(time.Duration(d.retryAfterSec) * time.Second)
	if d, err = throttle(c, "CL.THROTTLE", key, maxBurst, 1, 1); err != nil || d.limited {
		return fmt.Errorf("%s: after retry_after: %+v, %v", key, d, err)
	}
	return nil
}

// TestThrottleStateIsAString: what the limiter keeps can be looked at and reset with ordinary commands.
func TestThrottleStateIsAString(t *testing.T) {
	eachClient(t, func(t *testing.T, c limiterClient) {
		first, err := throttle(c, "CL.THROTTLE", "user", 15, 30, 60)
		require.NoError(t, err)
		require.Equal(t, decision{false, 16, 15, -1, 2}, first)
		kind, err := c.do("TYPE", "user")
		require.NoError(t, err)
		require.Equal(t, "string", text(kind))
		tat, err := integer(c.do("GET", "user"))
		require.NoError(t, err)
		require.Greater(t, tat, time.Now().UnixNano())
		pttl, err := integer(c.do("PTTL", "user"))
		require.NoError(t, err)
		require.LessOrEqual(t, pttl, int64(2001), "an expiry is rounded up to the millisecond")
		require.Positive(t, pttl)
		deleted, err := integer(c.do("DEL", "user"))
		require.NoError(t, err)
		require.EqualValues(t, 1, deleted)
		again, err := throttle(c, "CL.THROTTLE", "user", 15, 30, 60)
		require.NoError(t, err)
		require.Equal(t, first, again)
	})
}
