package deploy

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Guard asks a limiter, and decides by itself while that cannot be asked.
type Guard struct {
	Client *redis.Client
	Open   bool          // what is decided then: true lets everything pass, false nothing
	Rest   time.Duration // for how long it is not asked again after a failure
	again  atomic.Int64  // ns: not before this
}

// NewGuard keeps a request from ever waiting longer than 50 ms for its limiter.
func NewGuard(addr string, open bool) *Guard {
	return &Guard{Open: open, Rest: time.Second, Client: redis.NewClient(&redis.Options{
		Addr:                  addr,
		ContextTimeoutEnabled: true, // a call ends with its context
		MaxRetries:            -1,   // a limiter that was asked twice has charged twice
	})}
}

// Allow reports whether the request may pass, and if not, when to try again. 10 requests at once, 5 a second.
func (g *Guard) Allow(ctx context.Context, user string) (ok bool, retryAfter time.Duration) {
	if time.Now().UnixNano() < g.again.Load() {
		return g.Open, g.Rest
	}
	// A user who hangs up is no failure of the limiter: the call has the time limit, but not the request's cancellation.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 50*time.Millisecond)
	defer cancel()
	reply, err := g.Client.Do(ctx, "RL.GCRA", "user:"+user, 10, 5, "1s").Int64Slice()
	if err != nil { // no answer, LOADING, MISCONF, OOM …
		g.again.Store(time.Now().Add(g.Rest).UnixNano())
		return g.Open, g.Rest
	}
	return reply[0] == 0, time.Duration(reply[3]) * time.Millisecond
}
