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
)

// limitsTime is how long each algorithm is hammered; make limits takes 30 seconds.
var limitsTime = flag.Duration("limits.time", 250*time.Millisecond, "how long 64 connections hammer one key, for each algorithm")

const connections = 64

// nativeLimit is one algorithm and how much it may admit at most between two instants of the server's clock, in ms.
type nativeLimit struct {
	name    string
	command []any
	most    func(from, to int64) int64
	gcra    bool // its key's value is the theoretical arrival time
}

const (
	hammerLimit    = 200
	hammerWindow   = 1000 // ms
	hammerInterval = hammerWindow / hammerLimit
)

func nativeLimits() []nativeLimit {
	refilled := func(from, to int64) int64 { return hammerLimit + (to-from)/hammerInterval }
	windows := func(from, to int64) int64 { return hammerLimit * ((to-from)/hammerWindow + 1) }
	return []nativeLimit{
		{"RL.GCRA", []any{"RL.GCRA", "k", hammerLimit, hammerLimit, hammerWindow}, refilled, true},
		{"RL.BUCKET", []any{"RL.BUCKET", "k", hammerLimit, hammerLimit, hammerWindow}, refilled, true},
		{"RL.QUEUE", []any{"RL.QUEUE", "k", hammerLimit, hammerLimit, hammerWindow}, refilled, true},
		{
			"RL.FIXED", []any{"RL.FIXED", "k", hammerLimit, hammerWindow, "ALIGNED"},
			func(from, to int64) int64 { return hammerLimit * (to/hammerWindow - from/hammerWindow + 1) }, false,
		},
		// Whole slices that make up a window never hold more than the limit; the first and the last window may begin within one.
		{
			"RL.SLIDING", []any{"RL.SLIDING", "k", hammerLimit, hammerWindow, "SLICES", 10},
			func(from, to int64) int64 { return windows(from, to) + hammerLimit }, false,
		},
		{"RL.LOG", []any{"RL.LOG", "k", hammerLimit, hammerWindow}, windows, false},
	}
}

// hammerClient is go-redis with as many connections as callers.
func hammerClient(t *testing.T) *goredis.Client {
	t.Helper()
	server, _ := startServer(t)
	c := goredis.NewClient(&goredis.Options{Addr: server.Addr, PoolSize: connections, MinIdleConns: connections, PoolTimeout: time.Minute})
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

// TestNativeLimitsAreExact: 64 connections on one key never get more than the limit allows, and nobody is refused while something
// remains. Where the key's value tells, every unit is accounted for: what was admitted is within one of what the rate and the burst
// come to.
func TestNativeLimitsAreExact(t *testing.T) {
	c := hammerClient(t)
	for _, l := range nativeLimits() {
		t.Run(l.name, func(t *testing.T) { hammerLimiter(t, c, l) })
	}
}

func hammerLimiter(t *testing.T, c *goredis.Client, l nativeLimit) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, c.Del(ctx, "k").Err())
	var passed, full, asked atomic.Int64
	ask := func(int) (limited bool, err error) {
		reply, err := c.Do(ctx, l.command...).Int64Slice()
		if err != nil {
			return false, err
		}
		asked.Add(1)
		remaining, retry := reply[2], reply[3]
		limited = reply[0] == 1
		if limited && (remaining != 0 || retry < 1) || !limited && retry != -1 || remaining < 0 || remaining >= hammerLimit {
			return false, fmt.Errorf("%v answers %v", l.command, reply)
		}
		if !limited {
			passed.Add(1)
		}
		if remaining == hammerLimit-1 {
			full.Add(1) // nothing was used before this call
		}
		return limited, nil
	}
	from := serverTime(t, c)
	everywhere(t, *limitsTime, func(worker int) error { _, err := ask(worker); return err })
	for limited := false; !limited; { // takes what is left
		var err error
		limited, err = ask(0)
		require.NoError(t, err)
	}
	to := serverTime(t, c)
	most := l.most(from, to)
	t.Logf("%d of %d calls admitted in %d ms, at most %d may be; the key was unused %d times", passed.Load(), asked.Load(), to-from, most, full.Load())
	require.LessOrEqual(t, passed.Load(), most)
	if !l.gcra || full.Load() > 1 {
		return // on a machine that is busy with other things nobody asked for so long that units went by
	}
	tat, err := c.Get(ctx, "k").Int64()
	require.NoError(t, err)
	first := (tat - passed.Load()*hammerInterval*1e6) / 1e6
	require.GreaterOrEqual(t, first, from, "more was charged than admitted")
	require.LessOrEqual(t, first, to, "less was charged than admitted")
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
