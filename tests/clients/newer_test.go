package clients

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGCRAThroughEval is GCRA as Redisson sends it: within a script, with numbers as Java prints them.
func TestGCRAThroughEval(t *testing.T) {
	const script = "return redis.call('GCRA', KEYS[1], ARGV[1], ARGV[2], ARGV[3], 'TOKENS', ARGV[4])"
	eachClient(t, func(t *testing.T, c limiterClient) {
		ask := func(period, tokens string) []any {
			reply, err := c.do("EVAL", script, 1, "user", "2", "1", period, tokens)
			require.NoError(t, err)
			return reply.([]any)
		}
		require.Equal(t, []any{int64(0), int64(3), int64(2), int64(-1), int64(3600)}, ask("3600.0", "1"))
		require.Equal(t, []any{int64(0), int64(3), int64(0), int64(-1), int64(10800)}, ask("3.6E3", "2"))
		require.Equal(t, []any{int64(1), int64(3), int64(0), int64(3600), int64(10800)}, ask("3600.0", "1"))
		require.Equal(t, []any{int64(1), int64(3), int64(0), int64(-1), int64(10800)}, ask("3600", "4"))
		_, err := c.do("EVAL", script, 1, "user", "2", "1", "0.0", "1")
		require.ErrorContains(t, err, "period must be > 0 and < 1e12")
	})
}

// TestGCRAFromBuilders is GCRA in the words of rueidis' and ioredis' builders, without TOKENS and with it.
func TestGCRAFromBuilders(t *testing.T) {
	eachClient(t, func(t *testing.T, c limiterClient) {
		reply, err := c.do("GCRA", "user", "15", "30", "60")
		require.NoError(t, err)
		require.Equal(t, []any{int64(0), int64(16), int64(15), int64(-1), int64(2)}, reply)
		reply, err = c.do("GCRA", "user", "15", "30", "60", "TOKENS", "0")
		require.NoError(t, err)
		require.Equal(t, []any{int64(0), int64(16), int64(15), int64(-1), int64(2)}, reply)
	})
}

// TestIncrEx is the counter with a bound and an expiry in one command: exactly the bound passes.
func TestIncrEx(t *testing.T) {
	eachClient(t, func(t *testing.T, c limiterClient) {
		admitted := hammer(t, func(int) (bool, error) {
			reply, err := c.do("INCREX", "rl:user", "BYINT", 1, "UBOUND", limit, "EX", 3600, "ENX")
			if err != nil {
				return false, err
			}
			return reply.([]any)[1].(int64) == 1, nil
		})
		require.Equal(t, limit, admitted)
		ttl, err := integer(c.do("TTL", "rl:user"))
		require.NoError(t, err)
		require.InDelta(t, 3600, ttl, 60)
	})
}

// TestIncrExFractions: bulk strings in RESP2, doubles in RESP3.
func TestIncrExFractions(t *testing.T) {
	eachClient(t, func(t *testing.T, c limiterClient) {
		reply, err := c.do("INCREX", "f", "BYFLOAT", "0.5", "UBOUND", "2")
		require.NoError(t, err)
		values := reply.([]any)
		if _, isDouble := values[0].(float64); isDouble {
			require.Equal(t, []any{0.5, 0.5}, values)
			return
		}
		require.Equal(t, "0.5", text(values[0]))
		require.Equal(t, "0.5", text(values[1]))
	})
}
