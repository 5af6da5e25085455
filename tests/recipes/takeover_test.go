package recipes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTakeOver: a command goes on where redis-cell or a script has stopped, on the same key.
func TestTakeOver(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		script  [][]any
		command []any
		used    int64
	}{
		"redis-cell": {
			[][]any{{"CL.THROTTLE", "key", 15, 30, 3600, 4}},
			[]any{"RL.GCRA", "key", 16, 30, "1h"}, 4,
		},
		"counter": {
			[][]any{{"SET", "key", 1, "NX", "EX", 3600}, {"INCR", "key"}},
			[]any{"RL.FIXED", "key", 5, "1h"}, 2,
		},
		"counter without its EXPIRE": {
			[][]any{{"INCR", "key"}, {"INCR", "key"}},
			[]any{"RL.FIXED", "key", 5, "1h"}, 2,
		},
		"window": {
			[][]any{
				{"ZADD", "key", now.Add(-2 * time.Hour).UnixMilli(), now.Add(-2 * time.Hour).UnixMilli()},
				{"ZADD", "key", now.Add(-time.Minute).UnixMilli(), now.Add(-time.Minute).UnixMilli()},
				{"ZADD", "key", now.UnixMilli(), now.UnixMilli()},
			},
			[]any{"RL.LOG", "key", 5, "1h"}, 2,
		},
		"window of ids": {
			[][]any{{"ZADD", "key", now.UnixMilli(), "request-1", now.UnixMilli(), "request-2"}},
			[]any{"RL.LOG", "key", 5, "1h", "MEMBER", "request-3"}, 2,
		},
		"semaphore": {
			[][]any{{"ZADD", "key", now.Add(time.Hour).UnixMilli(), "holder-1"}},
			[]any{"RL.ACQUIRE", "key", 5, "1h"}, 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, rdb := serve(t)
			for _, command := range test.script {
				require.NoError(t, rdb.Do(ctx, command...).Err())
			}
			reply, err := rdb.Do(ctx, test.command...).Slice()
			require.NoError(t, err)
			require.EqualValues(t, 0, reply[0])
			require.EqualValues(t, reply[1].(int64)-test.used-1, reply[2])
			ttl, err := rdb.PTTL(ctx, "key").Result()
			require.NoError(t, err)
			require.Positive(t, ttl)
		})
	}
}
