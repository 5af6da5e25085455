package recipes

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

const firstLock, longestLock = time.Minute, 24 * time.Hour

// LoginWait returns for how long a user may not try to log in. Ask before looking at the password.
func LoginWait(ctx context.Context, rdb *redis.Client, user string) (time.Duration, error) {
	d, err := rdb.PTTL(ctx, "login:locked:"+user).Result()
	return max(d, 0), err
}

// LoginFailed notes a wrong password. The fifth within 15 minutes locks the user out: for a minute at first, and for twice as long
// with each further lock of the same day.
func LoginFailed(ctx context.Context, rdb *redis.Client, user string) error {
	v, err := Ask(ctx, rdb, "RL.LOG", "login:failed:"+user, 5, "15m")
	if err != nil || !v.Limited && v.Remaining > 0 {
		return err
	}
	locks, err := Ask(ctx, rdb, "RL.LOG", "login:locks:"+user, 12, "24h")
	if err != nil {
		return err
	}
	lock := min(firstLock<<(locks.Limit-locks.Remaining-1), longestLock)
	_, err = rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "login:locked:"+user, 1, lock)
		p.Del(ctx, "login:failed:"+user)
		return nil
	})
	return err
}

// LoginSucceeded forgets the wrong passwords, but not the locks.
func LoginSucceeded(ctx context.Context, rdb *redis.Client, user string) error {
	return rdb.Del(ctx, "login:failed:"+user).Err()
}
