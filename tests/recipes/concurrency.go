package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrBusy means that as many as may are at work.
var ErrBusy = errors.New("too many at work")

// leaseTime is after how long a holder that has crashed is forgotten. One at work renews its lease well before.
const leaseTime = 30 * time.Second

// Hold does the work while no more than limit do it at once, on however many machines. The work's context ends when the lease is lost.
func Hold(ctx context.Context, rdb *redis.Client, key string, limit int, work func(context.Context) error) error {
	reply, err := rdb.Do(ctx, "RL.ACQUIRE", key, limit, leaseTime.Milliseconds()).Slice()
	if err != nil {
		return err
	}
	if reply[0].(int64) == 1 {
		return ErrBusy
	}
	id := reply[5].(string)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer rdb.Do(context.WithoutCancel(ctx), "RL.RELEASE", key, id)
	go func() {
		for tick := time.NewTicker(leaseTime / 3); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				if held, err := rdb.Do(ctx, "RL.RENEW", key, id, leaseTime.Milliseconds()).Int64(); err == nil && held == 0 && limit >= 0 {
					cancel(ErrBusy)
				}
			}
		}
	}()
	return work(ctx)
}
