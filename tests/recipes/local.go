package recipes

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Local is the nearer of two levels: each instance takes permits from the shared limit in batches and hands them out from its own
// memory. The sum over all instances stays within the shared limit, since every permit was taken there first. A refusal is kept
// too, until the moment that the server named.
type Local struct {
	rdb   *redis.Client
	batch int64

	mu      sync.Mutex
	permits int64
	expires time.Time // of the permits: later ones would add to a burst
	closed  time.Time // until then the shared limit lets nothing through
}

// The limit that all instances share, and for how long an instance may keep a permit.
const (
	sharedCapacity, sharedRate = 1000, 1000 // at once, and per second
	permitLife                 = 200 * time.Millisecond
)

// NewLocal is one instance's level. With 20 instances and 1000 per second, a batch of 10 is one call in ten requests, and an instance
// that takes a batch and falls silent wastes a hundredth of a second's worth.
func NewLocal(rdb *redis.Client, batch int64) *Local { return &Local{rdb: rdb, batch: batch} }

// Allow says whether a request may pass.
func (l *Local) Allow(ctx context.Context) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.After(l.expires) {
		l.permits = 0
	}
	if l.permits > 0 {
		l.permits--
		return true, nil
	}
	if now.Before(l.closed) {
		return false, nil
	}
	for _, n := range []int64{l.batch, 1} {
		v, err := Ask(ctx, l.rdb, "RL.GCRA", "shared", sharedCapacity, sharedRate, "1s", "COST", n)
		if err != nil {
			return false, err
		}
		if !v.Limited {
			l.permits, l.expires = n-1, now.Add(permitLife)
			return true, nil
		}
		l.closed = now.Add(v.RetryAfter)
	}
	return false, nil
}
