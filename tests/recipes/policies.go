package recipes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// DryRun sets a policy that limits nobody and only counts what it would limit: DryRun(ctx, rdb, "api", "GCRA", 100, 100, "1m"). Services ask by
// its name as they will later.
func DryRun(ctx context.Context, rdb *redis.Client, policy string, words ...any) error {
	return setPolicy(ctx, rdb, policy, append(words, "SHADOW")...)
}

// Enforce sets the same policy for real. Keys keep what they have used.
func Enforce(ctx context.Context, rdb *redis.Client, policy string, words ...any) error {
	return setPolicy(ctx, rdb, policy, words...)
}

func setPolicy(ctx context.Context, rdb *redis.Client, policy string, words ...any) error {
	return rdb.Do(ctx, append([]any{"RL.POLICY", "SET", policy}, words...)...).Err()
}

// WouldLimit is the share of a policy's calls that it would have limited, since the server's start or CONFIG RESETSTAT.
func WouldLimit(ctx context.Context, rdb *redis.Client, policy string) (float64, error) {
	info, err := rdb.Info(ctx, "limiters").Result()
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(info, "\r\n") {
		if fields, found := strings.CutPrefix(line, "policy_"+policy+":"); found {
			var allowed, near, limited, shadow float64
			n, err := fmt.Sscanf(fields, "allowed=%g,near_limit=%g,limited=%g,shadow_limited=%g", &allowed, &near, &limited, &shadow)
			if n < 3 { // the fourth is not there while it is 0
				return 0, err
			}
			return shadow / max(allowed+limited+shadow, 1), nil
		}
	}
	return 0, nil
}

// TenTimes gives one customer ten times the limit of the policy "api", which has GCRA 100 100 1m. The key is the one that RL.TAKE is called with.
func TenTimes(ctx context.Context, rdb *redis.Client, key string) error {
	return rdb.Do(ctx, "RL.POLICY", "OVERRIDE", "SET", "api", key, "GCRA", 1000, 1000, "1m").Err()
}

// Exempt has the policy not apply to one key for a while.
func Exempt(ctx context.Context, rdb *redis.Client, policy, key string, d time.Duration) error {
	return rdb.Do(ctx, "RL.POLICY", "OVERRIDE", "SET", policy, key, "UNLIMITED", "EX", int(d.Seconds())).Err()
}

// BlockAbuse locks out for ten minutes whoever exceeds five calls a minute, for twenty the next time, and so on, up to a day.
func BlockAbuse(ctx context.Context, rdb *redis.Client, policy string) error {
	return setPolicy(ctx, rdb, policy, "LOG", 5, "1m", "BLOCK", "10m", "DOUBLE", "1d")
}

// Ban locks one key out by hand.
func Ban(ctx context.Context, rdb *redis.Client, policy, key string, d time.Duration) error {
	return rdb.Do(ctx, "RL.BLOCK", policy, key, fmt.Sprintf("%dms", d.Milliseconds())).Err()
}

// Unban lets one key in at once, whatever locked it out: it ends the block, and then forgets what the key has used, since a limit that is used up
// would limit the next call again. It reports whether the key was blocked.
func Unban(ctx context.Context, rdb *redis.Client, policy, key string) (bool, error) {
	n, err := rdb.Do(ctx, "RL.UNBLOCK", policy, key).Int64()
	if err != nil {
		return false, err
	}
	return n == 1, rdb.Do(ctx, "RL.RESET", key).Err()
}

// Blocks lists the keys that hold blocks, such as rl:block:{mallory}:login. One with DOUBLE stays for a while after its end, for the next one's length.
func Blocks(ctx context.Context, rdb *redis.Client) (keys []string, _ error) {
	found := rdb.Scan(ctx, 0, "rl:block:*", 1000).Iterator()
	for found.Next(ctx) {
		keys = append(keys, found.Val())
	}
	return keys, found.Err()
}

// WriteFields tells an HTTP client where it stands by the fields of draft-ietf-httpapi-ratelimit-headers-11: RateLimit-Policy is the limit and the
// seconds that it is for, RateLimit what remains and the seconds until all of it is there again.
func WriteFields(h http.Header, policy string, window time.Duration, v Verdict) {
	remaining, until := v.Remaining, v.ResetAfter
	if v.RetryAfter > v.ResetAfter { // a block: what remains is of no use before its end
		remaining, until = 0, v.RetryAfter
	}
	if v.Limit >= 0 { // else there is no limit, but a block is possible
		h.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%s", policy, v.Limit, seconds(window)))
		h.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%s", policy, remaining, seconds(until)))
	}
	if v.Limited && v.RetryAfter >= 0 {
		h.Set("Retry-After", seconds(v.RetryAfter))
	}
}
