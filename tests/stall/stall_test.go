// Package stall measures what clients notice of a snapshot and of a rewrite of the append-only file, and what memory these take. Times
// are printed; only memory can fail.
package stall

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	keys    = flag.Int("stall.keys", 100_000, "limiter keys that are there")
	quiet   = flag.Duration("stall.quiet", 500*time.Millisecond, "for how long the load is measured while nothing else goes on")
	clients = flag.Int("stall.clients", 4, "connections of the load")
	seed    = flag.Uint64("stall.seed", 0, "seed of the load; 0 draws one")
)

const (
	batch     = 1000                   // keys loaded at once
	pause     = 500 * time.Microsecond // between two commands of a connection
	sampling  = 5 * time.Millisecond   // between two looks at the memory
	replyTime = time.Minute
	share     = 0.25     // of the memory before, that may be added to it
	slack     = 48 << 20 // what may be added in any case: buffers, and garbage that has not been collected
)

// TestStall runs a steady load over many limiter keys, first with nothing beside it, then while the append-only file is rewritten and
// while a snapshot is saved, and prints how long the slowest command took each time.
func TestStall(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-stall.seed %d, %d keys", *seed, *keys)
	s := harness.Start(t, "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0")
	c := harness.Dial(t, s.Addr)
	defer c.Close()
	load(t, c)
	done := func(field string) func() bool {
		return func() bool {
			info := c.Ask("INFO", "persistence").Text
			return strings.Contains(info, field+":0") && strings.Contains(info, "aof_rewrite_scheduled:0")
		}
	}
	alone := measure(t, s, "nothing beside it", nil, nil)
	for _, job := range []struct{ command, field string }{{"BGREWRITEAOF", "aof_rewrite_in_progress"}, {"BGSAVE", "rdb_bgsave_in_progress"}} {
		p := measure(t, s, job.command, func() { require.Contains(t, c.Ask(job.command).Wire(), "+Background") }, done(job.field))
		t.Logf("%s: the slowest command took %.1f times as long as with nothing beside it; %+.1f %% memory",
			job.command, float64(p.worst)/float64(alone.worst), 100*(float64(p.peak)/float64(p.before)-1))
		require.LessOrEqual(t, float64(p.peak), float64(p.before)*(1+share)+slack, "memory during %s", job.command)
	}
	info := c.Ask("INFO", "persistence").Text
	require.Contains(t, info, "aof_last_bgrewrite_status:ok")
	require.Contains(t, info, "rdb_last_bgsave_status:ok")
}

// load makes the keys, each a limiter's state with an expiry.
func load(t *testing.T, c *harness.Client) {
	t.Helper()
	started := time.Now()
	for n := 0; n < *keys; n += batch {
		var out []byte
		size := min(batch, *keys-n)
		for i := range size {
			out = append(out, harness.Command("RL.GCRA", name(n+i), "100", "1", "1000s")...)
		}
		go func() { _ = c.Send(out) }()
		for range size {
			_, err := c.Read(replyTime)
			require.NoError(t, err)
		}
	}
	t.Logf("loaded in %v", time.Since(started).Round(time.Millisecond))
}

func name(i int) string { return "limiter:" + strconv.Itoa(i) }

// phase is what was measured during one job.
type phase struct {
	worst        time.Duration
	before, peak int64 // resident bytes
}

// measure runs the load while a job goes on, nil for none, until over says that it is.
func measure(t *testing.T, s *harness.Server, what string, job func(), over func() bool) phase {
	t.Helper()
	p := phase{before: s.RSS()}
	stop := make(chan struct{})
	took := make([][]time.Duration, *clients)
	var running sync.WaitGroup
	for i := range *clients {
		conn := harness.Dial(t, s.Addr)
		rnd := rand.New(rand.NewPCG(*seed, uint64(i)))
		running.Go(func() {
			defer conn.Close()
			took[i] = steady(conn, rnd, stop)
		})
	}
	started := time.Now()
	if job != nil {
		job()
	}
	for p.peak = p.before; over == nil && time.Since(started) < *quiet || over != nil && !over(); time.Sleep(sampling) {
		p.peak = max(p.peak, s.RSS())
	}
	p.peak = max(p.peak, s.RSS())
	elapsed := time.Since(started)
	close(stop)
	running.Wait()
	all := slices.Concat(took...)
	require.NotEmpty(t, all, "no command was answered")
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))].Round(time.Microsecond) }
	p.worst = all[len(all)-1]
	t.Logf("%-18s %8v, %7d commands: p50 %v, p99 %v, p99.9 %v, slowest %v; RSS %s before, %s at most", what, elapsed.Round(time.Millisecond),
		len(all), at(0.5), at(0.99), at(0.999), at(1), mebibytes(p.before), mebibytes(p.peak))
	return p
}

// steady sends one command after another, with a pause between them, and returns how long each took.
func steady(conn *harness.Client, rnd *rand.Rand, stop chan struct{}) (took []time.Duration) {
	for {
		select {
		case <-stop:
			return took
		case <-time.After(pause):
		}
		key := name(rnd.IntN(*keys))
		command := harness.Command("RL.GCRA", key, "100", "1", "1000s")
		switch rnd.IntN(4) {
		case 0:
			command = harness.Command("GET", key)
		case 1:
			command = harness.Command("CL.THROTTLE", key, "99", "1", "1000")
		}
		begin := time.Now()
		if conn.Send(command) != nil {
			return took
		}
		if _, err := conn.Read(replyTime); err != nil {
			return took
		}
		took = append(took, time.Since(begin))
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
