package recipes

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how long a call waits at most. The client must not give up before the server does.
const patience = 10 * time.Second

// NewWaiting returns a client for calls that wait. A reply may come as late as the end of the wait; go-redis would give up after three seconds,
// and send the command again.
func NewWaiting(address string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address, ReadTimeout: patience + 5*time.Second, MaxRetries: -1, PoolSize: 100})
}

// Send calls an API that takes ten requests a second, five of them at once. It waits for its turn on the server, behind those who have come
// before, on however many machines; nobody retries.
func Send(ctx context.Context, waiting *redis.Client, request func(context.Context) error) error {
	v, err := Ask(ctx, waiting, "RL.GCRA", "api:orders", 5, 10, "1s", "WAIT", patience.Milliseconds())
	if err != nil {
		return err
	}
	if v.Limited {
		return ErrBusy // so many are waiting that it could not have been sent in time
	}
	return request(ctx)
}

// HoldInTurn does the work while no more than limit do it at once, as Hold does, but waits for its turn.
func HoldInTurn(ctx context.Context, waiting *redis.Client, key string, limit int, work func(context.Context) error) error {
	reply, err := waiting.Do(ctx, "RL.ACQUIRE", key, limit, leaseTime.Milliseconds(), "WAIT", patience.Milliseconds()).Slice()
	if err != nil {
		return err
	}
	if reply[0].(int64) == 1 {
		return ErrBusy
	}
	defer waiting.Do(context.WithoutCancel(ctx), "RL.RELEASE", key, reply[5]) // which wakes the next one
	return work(ctx)
}
