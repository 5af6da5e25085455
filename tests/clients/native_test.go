package clients

import (
	"context"
	"flag"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// limitsTime is how long each algorithm is hammered; make limits takes 30 seconds.
var limitsTime = flag.Duration("limits.time", 250*time.Millisecond, "how long 64 connections hammer one key, for each algorithm")

const (
	connections = 64

	// limitsAttempts is how often a run is tried that admitted too little: a machine that is busy with other things may keep the
	// connections from asking in time. To admit too much is a failure at once.
	limitsAttempts = 4
)

// nativeLimit is one algorithm with its exact bounds: between two instants of the server's clock, in ms, while somebody asks all the time.
type nativeLimit struct {
	name    string
	command []any
	high    func(from, to int64) int64
	low     func(from, to int64) int64
}

const (
	hammerLimit  = 20
	hammerWindow = 100 // ms
)

// gcraHigh is the capacity, and what comes back in the time at one unit every 5 ms.
func gcraHigh(from, to int64) int64 { return hammerLimit + (to-from)/5 }
func gcraLow(from, to int64) int64  { return gcraHigh(from, to) - 1 }

func nativeLimits() []nativeLimit {
	whole := func(from, to, window int64) int64 { return hammerLimit * ((to - from) / window) }
	return []nativeLimit{
		{"RL.GCRA", []any{"RL.GCRA", "k", hammerLimit, hammerLimit, hammerWindow}, gcraHigh, gcraLow},
		{"RL.BUCKET", []any{"RL.BUCKET", "k", hammerLimit, hammerLimit, hammerWindow}, gcraHigh, gcraLow},
		{"RL.QUEUE", []any{"RL.QUEUE", "k", hammerLimit, hammerLimit, hammerWindow}, gcraHigh, gcraLow},
		{
			"RL.FIXED", []any{"RL.FIXED", "k", hammerLimit, hammerWindow, "ALIGNED"},
			func(from, to int64) int64 { return hammerLimit * (to/hammerWindow - from/hammerWindow + 1) },
			func(from, to int64) int64 { return hammerLimit * (to/hammerWindow - from/hammerWindow - 1) },
		},
		{
			// Whole slices that make up a window never hold more than the limit; a count is forgotten after one slice more at the latest.
			"RL.SLIDING", []any{"RL.SLIDING", "k", hammerLimit, hammerWindow, "SLICES", 10},
			func(from, to int64) int64 { return whole(from, to, hammerWindow) + 2*hammerLimit },
			func(from, to int64) int64 { return whole(from, to, hammerWindow*5/4) },
		},
		{
			// An entry leaves after a window, and the next call takes its place.
			"RL.LOG", []any{"RL.LOG", "k", hammerLimit, hammerWindow},
			func(from, to int64) int64 { return whole(from, to, hammerWindow) + hammerLimit },
			func(from, to int64) int64 { return whole(from, to, hammerWindow*5/4) },
		},
	}
}

// hammerClient is go-redis with as many connections as callers.
func hammerClient(t *testing.T) *goredis.Client {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: harness.Start(t).Addr, PoolSize: connections, MinIdleConns: connections, PoolTimeout: time.Minute})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// serverTime is the server's clock in ms.
func serverTime(t *testing.T, c *goredis.Client) int64 {
	t.Helper()
	now, err := c.Time(context.Background()).Result()
	require.NoError(t, err)
	return now.UnixMilli()
}

// everywhere runs call on all connections at once until the time is over, and fails the test on its first error.
func everywhere(t *testing.T, duration time.Duration, call func(worker int) error) {
	t.Helper()
	var group sync.WaitGroup
	errs := make(chan error, connections)
	deadline := time.Now().Add(duration)
	for worker := range connections {
		group.Go(func() {
			for time.Now().Before(deadline) {
				if err := call(worker); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

// TestNativeLimitsAreExact: 64 connections on one key get what the limit allows, never more. A call is only refused when nothing
// remains.
func TestNativeLimitsAreExact(t *testing.T) {
	c := hammerClient(t)
	for _, l := range nativeLimits() {
		t.Run(l.name, func(t *testing.T) {
			for attempt := 1; ; attempt++ {
				low, admitted, high := hammerOnce(t, c, l)
				t.Logf("%d admitted, bounds %d and %d", admitted, low, high)
				require.LessOrEqual(t, admitted, high)
				if admitted >= low {
					return
				}
				require.Less(t, attempt, limitsAttempts, "%d admitted, at least %d are due", admitted, low)
			}
		})
	}
}

func hammerOnce(t *testing.T, c *goredis.Client, l nativeLimit) (low, admitted, high int64) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, c.FlushAll(ctx).Err())
	var passed atomic.Int64
	from := serverTime(t, c)
	everywhere(t, *limitsTime, func(int) error {
		reply, err := c.Do(ctx, l.command...).Int64Slice()
		if err != nil {
			return err
		}
		limited, remaining, retry := reply[0] == 1, reply[2], reply[3]
		if limited && (remaining != 0 || retry < 1) || !limited && retry != -1 || remaining < 0 || remaining >= hammerLimit {
			return fmt.Errorf("%v answers %v", l.command, reply)
		}
		if !limited {
			passed.Add(1)
		}
		return nil
	})
	to := serverTime(t, c)
	// The first and the last call came a little after and before these two instants, so at most this much less may have passed.
	const edges = 2
	return l.low(from+edges, to-edges), passed.Load(), l.high(from, to)
}

// TestAcquireIsExact: never more than the limit hold a lease, as those see it who hold one; and nobody is refused while there is room.
func TestAcquireIsExact(t *testing.T) {
	const leases = 8
	c := hammerClient(t)
	ctx := context.Background()
	var holding, most, acquired, refused atomic.Int64
	var held [connections]any // the lease of each connection
	release := func(worker int) error {
		id := held[worker]
		held[worker] = nil
		holding.Add(-1)
		if released, err := c.Do(ctx, "RL.RELEASE", "k", id).Int(); err != nil || released != 1 {
			return fmt.Errorf("RELEASE: %d, %w", released, err)
		}
		return nil
	}
	everywhere(t, *limitsTime, func(worker int) error {
		if held[worker] != nil {
			return release(worker)
		}
		reply, err := c.Do(ctx, "RL.ACQUIRE", "k", leases, "1h").Slice()
		if err != nil {
			return err
		}
		if reply[0].(int64) == 1 {
			refused.Add(1)
			return nil
		}
		held[worker] = reply[5]
		acquired.Add(1)
		now := holding.Add(1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		return nil
	})
	for worker, id := range held {
		if id != nil {
			require.NoError(t, release(worker))
		}
	}
	t.Logf("%d leases, at most %d at once, %d refused", acquired.Load(), most.Load(), refused.Load())
	require.LessOrEqual(t, most.Load(), int64(leases))
	require.Positive(t, acquired.Load())
	exists, err := c.Exists(ctx, "k").Result()
	require.NoError(t, err)
	require.Zero(t, exists, "every lease was given back")
}

// TestOneKeyManyWays: one key through RL.GCRA, CL.THROTTLE, a script, a transaction and GCRA at once. What comes back in the time of the
// test is less than one unit, so exactly the limit passes, and the key's state is worth exactly that.
func TestOneKeyManyWays(t *testing.T) {
	const (
		capacity = 400
		calls    = 20 // of each connection
		period   = capacity * 3600
		interval = int64(time.Hour)
	)
	c := hammerClient(t)
	ctx := context.Background()
	ways := []func() (bool, error){
		func() (bool, error) {
			reply, err := c.Do(ctx, "RL.GCRA", "k", capacity, capacity, fmt.Sprintf("%ds", period)).Int64Slice()
			return err == nil && reply[0] == 0, err
		},
		func() (bool, error) {
			reply, err := c.Do(ctx, "CL.THROTTLE", "k", capacity-1, capacity, period).Int64Slice()
			return err == nil && reply[0] == 0, err
		},
		func() (bool, error) {
			const script = "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"
			reply, err := c.Eval(ctx, script, []string{"k"}, capacity-1, capacity, period).Int64Slice()
			return err == nil && reply[0] == 0, err
		},
		func() (bool, error) {
			var decision *goredis.Cmd
			_, err := c.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				p.Exists(ctx, "k")
				decision = p.Do(ctx, "RL.GCRA", "k", capacity, capacity, fmt.Sprintf("%ds", period))
				return nil
			})
			if err != nil {
				return false, err
			}
			reply, err := decision.Int64Slice()
			return err == nil && reply[0] == 0, err
		},
		func() (bool, error) {
			reply, err := c.Do(ctx, "GCRA", "k", capacity-1, capacity, period).Int64Slice()
			return err == nil && reply[0] == 0, err
		},
	}
	before := serverTime(t, c)
	var passed atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, connections)
	for worker := range connections {
		group.Go(func() {
			for call := range calls {
				ok, err := ways[(worker+call)%len(ways)]()
				if err != nil {
					errs <- err
					return
				}
				if ok {
					passed.Add(1)
				}
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.EqualValues(t, capacity, passed.Load())
	tat, err := c.Get(ctx, "k").Int64()
	require.NoError(t, err)
	first := (tat - capacity*interval) / int64(time.Millisecond) // when the first call was made
	require.GreaterOrEqual(t, first, before)
	require.LessOrEqual(t, first, serverTime(t, c))
	require.Less(t, float64(tat), float64(math.MaxInt64))
}
