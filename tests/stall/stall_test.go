// Package stall measures what clients notice of a snapshot, of a rewrite of the append-only file, of a table that grows and of keys that
// expire all at once, and what memory that takes. Times are printed; only memory can fail.
package stall

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
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
	rounds  = flag.Int("stall.rounds", 1, "how often a snapshot is saved, and the log rewritten, beside half of the most that the server can do")
	floor   = flag.String("stall.floor", "", "the program of `make floor`, which is given the same load for comparison")
	clients = flag.Int("stall.clients", 4, "connections of the load")
	seed    = flag.Uint64("stall.seed", 0, "seed of the load; 0 draws one")
)

const (
	batch     = 1000                   // keys loaded at once
	pause     = 500 * time.Microsecond // between two commands of a connection
	inserted  = 100                    // keys that come at once while others measure,
	insertGap = time.Millisecond       // and how often
	sampling  = 5 * time.Millisecond   // between two looks at the memory
	replyTime = time.Minute

	expiryTime = time.Minute // beside as long as they were there, for all keys to be gone
	share      = 0.25        // of the memory before, that may be added to it
	slack      = 48 << 20    // what may be added in any case: buffers, and garbage that has not been collected
)

// TestStall runs a steady load over many limiter keys, first with nothing beside it, then while the append-only file is rewritten and
// while a snapshot is saved, and prints how long the slowest command took each time.
func TestStall(t *testing.T) {
	logSeed(t)
	s := harness.Start(t, "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0")
	c := harness.Dial(t, s.Addr)
	defer c.Close()
	load(t, c, func(i int) []string { return []string{"RL.GCRA", name(i), "100", "1", "1000s"} })
	alone := measure(t, "nothing beside it", nil, nil, s)[0]
	for _, job := range []struct{ command, field string }{{"BGREWRITEAOF", "aof_rewrite_in_progress"}, {"BGSAVE", "rdb_bgsave_in_progress"}} {
		p := measure(t, job.command, func() { require.Contains(t, c.Ask(job.command).Wire(), "+Background") }, func() bool { return over(c, job.field) }, s)[0]
		t.Logf("%s: the slowest command took %.1f times as long as with nothing beside it; %+.1f %% memory",
			job.command, float64(p.worst)/float64(alone.worst), 100*(float64(p.peak)/float64(p.before)-1))
		require.LessOrEqual(t, float64(p.peak), float64(p.before)*(1+share)+slack, "memory during %s", job.command)
	}
	info := c.Ask("INFO", "persistence").Text
	require.Contains(t, info, "aof_last_bgrewrite_status:ok")
	require.Contains(t, info, "rdb_last_bgsave_status:ok")
}

// TestComeAndGo runs a steady load while many keys are written, so that the table grows all the time, and while they expire in the same
// millisecond. A server that nobody else uses is measured at the same time: what it takes is the machine's.
func TestComeAndGo(t *testing.T) {
	logSeed(t)
	s, twin := harness.Start(t), harness.Start(t)
	c := harness.Dial(t, s.Addr)
	defer c.Close()
	steps := (*keys + inserted - 1) / inserted
	life := 2*time.Duration(steps)*insertGap + 2*time.Second
	until := time.Now().Add(life + 2**quiet)
	measure(t, "nothing beside it", nil, nil, s, twin)
	done := make(chan struct{})
	measure(t, "keys come", func() {
		go func() {
			defer close(done)
			insert(t, s, steps, until)
		}()
	}, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}, s, twin)
	full := s.RSS()
	require.True(t, time.Now().Before(until), "more time is needed until the keys expire")
	time.Sleep(time.Until(until))
	expired := regexp.MustCompile(`(?m)^expired_keys:(\d+)`)
	measure(t, "keys expire", nil, func() bool {
		require.Less(t, time.Since(until), life+expiryTime, "keys stay")
		gone, err := strconv.Atoi(expired.FindStringSubmatch(c.Ask("INFO", "stats").Text)[1])
		require.NoError(t, err)
		return gone == *keys
	}, s, twin)
	t.Logf("all keys have gone after %v; RSS %s before, %s now", time.Since(until).Round(time.Millisecond), mebibytes(full), mebibytes(s.RSS()))
}

// logSeed prints the seed, after drawing it unless it was given.
func logSeed(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-stall.seed %d, %d keys", *seed, *keys)
}

// over reports whether the job that a field of INFO tells of has ended.
func over(c *harness.Client, field string) bool {
	info := c.Ask("INFO", "persistence").Text
	return strings.Contains(info, field+":0") && strings.Contains(info, "aof_rewrite_scheduled:0")
}

// insert writes keys that expire at a time, so many each millisecond.
func insert(t *testing.T, s *harness.Server, steps int, until time.Time) {
	c := harness.Dial(t, s.Addr)
	defer c.Close()
	at := strconv.FormatInt(until.UnixMilli(), 10)
	tick := time.NewTicker(insertGap)
	defer tick.Stop()
	for n := range steps {
		var out []byte
		for i := range inserted {
			out = append(out, harness.Command("SET", "key:"+strconv.Itoa(n*inserted+i), "1", "PXAT", at)...)
		}
		if err := c.Send(out); err != nil {
			t.Error(err)
			return
		}
		for range inserted {
			if _, err := c.Read(replyTime); err != nil {
				t.Error(err)
				return
			}
		}
		<-tick.C
	}
}

// load makes the keys, each a limiter's state with an expiry, by a command for each.
func load(t *testing.T, c *harness.Client, command func(i int) []string) {
	t.Helper()
	started := time.Now()
	for n := 0; n < *keys; n += batch {
		var out []byte
		size := min(batch, *keys-n)
		for i := range size {
			out = append(out, harness.Command(command(n+i)...)...)
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

// measure runs the load on each of the servers while a job goes on, nil for none, until over says that it is; nil is after -stall.quiet.
func measure(t *testing.T, what string, job func(), over func() bool, servers ...*harness.Server) []phase {
	t.Helper()
	phases := make([]phase, len(servers))
	took := make([][][]time.Duration, len(servers))
	stop := make(chan struct{})
	var running sync.WaitGroup
	for n, s := range servers {
		phases[n].before = s.RSS()
		took[n] = make([][]time.Duration, *clients)
		for i := range *clients {
			conn := harness.Dial(t, s.Addr)
			rnd := rand.New(rand.NewPCG(*seed, uint64(i)))
			running.Go(func() {
				defer conn.Close()
				took[n][i] = steady(conn, rnd, stop)
			})
		}
	}
	started := time.Now()
	if job != nil {
		job()
	}
	look := func() {
		for n, s := range servers {
			phases[n].peak = max(phases[n].peak, s.RSS())
		}
	}
	for look(); over == nil && time.Since(started) < *quiet || over != nil && !over(); time.Sleep(sampling) {
		look()
	}
	look()
	elapsed := time.Since(started)
	close(stop)
	running.Wait()
	for n := range servers {
		p := &phases[n]
		all := slices.Concat(took[n]...)
		require.NotEmpty(t, all, "no command was answered")
		slices.Sort(all)
		at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))].Round(time.Microsecond) }
		p.worst = all[len(all)-1]
		t.Logf("%-22s %8v, %7d commands: p50 %v, p99 %v, p99.9 %v, slowest %v; RSS %s before, %s at most", what, elapsed.Round(time.Millisecond),
			len(all), at(0.5), at(0.99), at(0.999), at(1), mebibytes(p.before), mebibytes(p.peak))
		what = "- an idle server then"
	}
	return phases
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
