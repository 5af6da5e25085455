package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	soakTime = flag.Duration("soak.time", 5*time.Second, "how long the mixed load goes on")
	soakSeed = flag.Uint64("soak.seed", 0, "seed of the load; 0 draws one")
)

const (
	soakKeys    = 20_000 // of each kind that expires, so that the data do not grow
	collections = 500    // hashes and sorted sets, which stay: few enough to be full before anything is measured
	soakPause   = 500 * time.Microsecond
	soakSteps   = 12 // rewrites and snapshots in all
	maxDrift    = 5  // percent
	driftAsked  = 5 * time.Minute
	pingPause   = time.Millisecond
	stallAsked  = 100 * time.Millisecond
	warmUpShare = 5 // of the time, one part in so many is not measured
)

const soakScript = `local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return n`

// job is one kind of work, done again and again.
type job struct {
	name string
	do   func(ctx context.Context, c *redis.Client, r *rand.Rand) error
}

func key(r *rand.Rand, kind string) string { return fmt.Sprintf("%s:%d", kind, r.IntN(soakKeys)) }

var jobs = []job{
	{"strings", func(ctx context.Context, c *redis.Client, r *rand.Rand) error {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range 16 {
				p.Set(ctx, key(r, "s"), r.Uint64(), time.Duration(1+r.IntN(5000))*time.Millisecond)
				p.Get(ctx, key(r, "s"))
			}
			return nil
		})
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	}},
	{"limiters", func(ctx context.Context, c *redis.Client, r *rand.Rand) error {
		if err := c.Do(ctx, "CL.THROTTLE", key(r, "gcra"), 15, 30, 60).Err(); err != nil {
			return err
		}
		if err := c.Do(ctx, "RL.SLIDING", key(r, "sliding"), 10, 1000).Err(); err != nil {
			return err
		}
		return c.Do(ctx, "RL.LOG", key(r, "log"), 10, 1000).Err()
	}},
	{"scripts", func(ctx context.Context, c *redis.Client, r *rand.Rand) error {
		return redis.NewScript(soakScript).Run(ctx, c, []string{key(r, "script")}, 1000).Err()
	}},
	{"collections", func(ctx context.Context, c *redis.Client, r *rand.Rand) error {
		_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, fmt.Sprintf("h:%d", r.IntN(collections)), fmt.Sprint(r.IntN(20)), r.Uint64())
			z := fmt.Sprintf("z:%d", r.IntN(collections))
			p.ZAdd(ctx, z, redis.Z{Score: r.Float64(), Member: r.IntN(50)})
			p.ZRemRangeByRank(ctx, z, 0, -40)
			p.XAdd(ctx, &redis.XAddArgs{Stream: fmt.Sprintf("x:%d", r.IntN(100)), MaxLen: 100, Values: []any{"f", r.Uint64()}})
			p.SAdd(ctx, key(r, "set"), r.IntN(30))
			p.Expire(ctx, key(r, "set"), 3*time.Second)
			return nil
		})
		return err
	}},
	{"queues", func(ctx context.Context, c *redis.Client, r *rand.Rand) error {
		q := fmt.Sprintf("q:%d", r.IntN(4))
		if err := c.RPush(ctx, q, "job").Err(); err != nil {
			return err
		}
		err := c.BLPop(ctx, time.Second, q).Err()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	}},
	{"messages", func(ctx context.Context, c *redis.Client, r *rand.Rand) error {
		return c.Publish(ctx, "news", r.Uint64()).Err()
	}},
}

// TestSoak runs a mixed load over all ways in, with the append-only file, rewrites, snapshots, expiry, scripts, messages and waiting
// clients, and looks at resident memory and at what a PING takes meanwhile.
func TestSoak(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-soak.seed %d", seed)
	s := start(t, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "60", "1000", "--notify-keyspace-events", "Kx",
		"--latency-monitor-threshold", strconv.Itoa(int(stallAsked/2/time.Millisecond)))
	ctx, cancel := context.WithTimeout(context.Background(), *soakTime)
	defer cancel()
	var group sync.WaitGroup
	var done, heard atomic.Int64
	for i, way := range []string{"tcp", "unix", "tls"} {
		client := redis.NewClient(&redis.Options{
			Dialer: func(context.Context, string, string) (net.Conn, error) { return s.dial(way, 0) }, MaxRetries: -1, PoolSize: 20, ReadTimeout: time.Minute,
			ContextTimeoutEnabled: false,
		})
		defer client.Close()
		for j, job := range jobs {
			group.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i*len(jobs)+j)))
				for ctx.Err() == nil {
					if err := job.do(context.Background(), client, r); err != nil {
						t.Errorf("%s over %s: %v", job.name, way, err)
						return
					}
					done.Add(1)
					time.Sleep(soakPause)
				}
			})
		}
		sub := client.Subscribe(context.Background(), "news", "__keyevent@0__:expired")
		messages := sub.Channel()
		group.Go(func() {
			for {
				select {
				case <-ctx.Done():
					sub.Close()
					return
				case <-messages:
					heard.Add(1)
				}
			}
		})
	}
	var busy, idle []time.Duration // the slowest PING of each second
	twin := harness.Start(t, "--save", "")
	begin := time.Now()
	for addr, slowest := range map[string]*[]time.Duration{s.Addr: &busy, twin.Addr: &idle} {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
		*slowest = make([]time.Duration, int(*soakTime/time.Second))
		group.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				if err := ping(conn); err != nil {
					t.Errorf("PING: %v", err)
					return
				}
				if second := int(start.Sub(begin) / time.Second); second < len(*slowest) {
					(*slowest)[second] = max((*slowest)[second], time.Since(start))
				}
				time.Sleep(pingPause)
			}
		})
	}

	taken := make([]time.Duration, len(busy)) // by the host, in each second
	group.Go(func() {
		before := harness.Stolen()
		for second := range taken {
			time.Sleep(time.Until(begin.Add(time.Duration(second+1) * time.Second)))
			now := harness.Stolen()
			taken[second], before = now-before, now
		}
	})

	var resident []int64
	tick := time.NewTicker(max(*soakTime/200, 100*time.Millisecond))
	defer tick.Stop()
	background := time.NewTicker(*soakTime / soakSteps)
	defer background.Stop()
	rewrite, stolen := true, harness.Stolen()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			if time.Since(begin) > *soakTime/warmUpShare {
				resident = append(resident, s.RSS())
			}
		case <-background.C:
			command := "BGSAVE"
			if rewrite {
				command = "BGREWRITEAOF"
			}
			rewrite = !rewrite
			s.admin.Do(command)
		}
	}
	group.Wait()
	require.Equal(t, "+OK\r\n", string(s.admin.Do("SET", "after", "all")))
	first, last := mean(resident[:len(resident)/5]), mean(resident[len(resident)*4/5:])
	drift := 100 * (last - first) / first
	t.Logf("%v: %d rounds of work, %d messages; resident %.1f MiB, then %.1f MiB (%+.2f %%); the host took %v away",
		*soakTime, done.Load(), heard.Load(), first/(1<<20), last/(1<<20), drift, harness.Stolen()-stolen)
	warm := len(busy) / warmUpShare
	logStalls(t, busy[warm:], idle[warm:], taken[warm:])
	t.Logf("LATENCY LATEST (name, when, ms then, most ms): %q", s.admin.Do("LATENCY", "LATEST"))
	if *soakTime >= driftAsked {
		require.Less(t, drift, float64(maxDrift), "resident memory grows")
	}
	require.Zero(t, s.field("rejected_connections"))
	require.Contains(t, string(s.admin.Do("INFO", "persistence")), "aof_last_write_status:ok")
}

// logStalls prints the slowest PING, and each second that had one that took too long, with what an idle server's took about then and how
// much of the processors the host took away meanwhile: where these are large it is the machine that stood still.
func logStalls(t *testing.T, busy, idle, taken []time.Duration) {
	t.Helper()
	report := func(what string, list []time.Duration) {
		sorted := slices.Sorted(slices.Values(list))
		t.Logf("slowest PING of %s: %v; in the median second %v", what, sorted[len(sorted)-1].Round(time.Microsecond), sorted[len(sorted)/2].Round(time.Microsecond))
	}
	report("the server", busy)
	report("an idle server then", idle)
	late := 0
	for second, took := range busy {
		if took <= stallAsked {
			continue
		}
		late++
		from, to := max(second-1, 0), min(second+2, len(busy))
		sum := time.Duration(0)
		for _, d := range taken[from:to] {
			sum += d
		}
		t.Logf("second %d: %v; the idle server %v, and %v taken away, from second %d to %d", second, took.Round(time.Microsecond),
			slices.Max(idle[from:to]).Round(time.Microsecond), sum, from, to-1)
	}
	t.Logf("seconds with a PING above %v: %d of %d", stallAsked, late, len(busy))
}

func mean(list []int64) float64 {
	sum := 0.0
	for _, n := range list {
		sum += float64(n)
	}
	return sum / float64(max(len(list), 1))
}
