package recipes

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// WarmUp raises a limit in steps after a start or a failover, so that caches fill before the full load arrives. It changes the policy
// that all instances ask by name; what each key has used up is kept. pause waits, or says that it is over.
func WarmUp(ctx context.Context, rdb *redis.Client, policy string, perSecond []int64, pause func(context.Context) error) error {
	for i, rate := range perSecond {
		if i > 0 {
			if err := pause(ctx); err != nil {
				return err
			}
		}
		if err := rdb.Do(ctx, "RL.POLICY", "SET", policy, "GCRA", rate, rate, "1s").Err(); err != nil {
			return err
		}
	}
	return nil
}

// Every waits for d: WarmUp(ctx, rdb, "upstream", []int64{50, 100, 200, 500, 1000}, Every(30*time.Second)).
func Every(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
}
