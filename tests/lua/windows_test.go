package lua

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	workers  = 50
	attempts = 20  // of each worker
	limit    = 120 // of workers*attempts calls
	span     = 3600
)

// windows are the sliding windows of the literature. Each is given a window in seconds or milliseconds, as its script
// wants it, and a moment that no other call has: the first two use it as the member too, and would count two calls of
// the same moment once.
var windows = []struct {
	name   string
	script string
	args   func(moment int64) []any
}{
	{"check, then add the moment", `
local count
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1] - ARGV[2] * 1000)
count = redis.call('ZCARD', KEYS[1])
if count < tonumber(ARGV[3]) then
  redis.call('ZADD', KEYS[1], ARGV[1], ARGV[1])
  return 1
end
return 0`,
		func(moment int64) []any { return []any{moment, span, limit} }},
	{"the same with an expiry and a boolean", `
local from = ARGV[1] - ARGV[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', from)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  return false
end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2] / 1000)
return true`,
		func(moment int64) []any { return []any{moment, span * 1000, limit} }},
	{"add first, count after", `
local now, window, max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZADD', KEYS[1], now, ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window)
redis.call('PEXPIRE', KEYS[1], window)
local count = redis.call('ZCARD', KEYS[1])
return count <= max and 1 or 0`,
		func(moment int64) []any {
			return []any{moment, span * 1000, limit, "id" + strconv.FormatInt(moment, 36)}
		}},
	{"check, then add a name", `
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, tonumber(ARGV[1]) - tonumber(ARGV[2]))
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  return 0
end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
redis.call('EXPIRE', KEYS[1], math.ceil(ARGV[2] / 1000))
return 1`,
		func(moment int64) []any {
			return []any{moment, span * 1000, limit, "id" + strconv.FormatInt(moment, 36)}
		}},
}

// TestWindows lets many workers call each window at once through go-redis. A script is one step for all others, so what
// is admitted is the limit exactly.
func TestWindows(t *testing.T) {
	server := harness.Start(t)
	moments := new(atomic.Int64)
	moments.Store(time.Now().UnixMilli())
	for _, protocol := range []int{2, 3} {
		for _, window := range windows {
			t.Run(window.name+" RESP"+strconv.Itoa(protocol), func(t *testing.T) {
				client := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: protocol, PoolSize: workers, PoolTimeout: time.Minute})
				defer func() { _ = client.Close() }()
				require.NoError(t, client.FlushAll(t.Context()).Err())
				require.NoError(t, client.ScriptFlush(t.Context()).Err())
				script := redis.NewScript(window.script)
				admitted := hammer(t, func() (bool, error) {
					return allowed(script.Run(context.Background(), client, []string{"window"}, window.args(moments.Add(1))...))
				})
				require.Equal(t, limit, admitted)
			})
		}
	}
}

// allowed is the answer of a window: 1 or true, 0, false or nothing.
func allowed(command *redis.Cmd) (bool, error) {
	value, err := command.Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return value == int64(1) || value == true, err
}

// hammer lets all workers make all their attempts at once and returns how many were admitted.
func hammer(t *testing.T, allow func() (bool, error)) int {
	t.Helper()
	var admitted atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, workers)
	for range workers {
		group.Go(func() {
			for range attempts {
				ok, err := allow()
				if err != nil {
					errs <- err
					return
				}
				if ok {
					admitted.Add(1)
				}
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	return int(admitted.Load())
}
