package replicas

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var kills = flag.Int("replicas.kills", 2, "how often the primary that sentinels watch is killed, and how often its replica; make failovers does it 200 times")

// timing is that of the sentinels here.
var timing = harness.Timing{DownAfter: time.Second, FailoverTimeout: 5 * time.Second}

const (
	failoverSoon   = 5 * time.Second // nearly all failovers are over so long after the primary counts as down
	lateFailovers  = 40              // one in so many may take longer
	manyKills      = 40              // from so many on they have to keep to these times: make failovers has a machine for itself
	failoverWriter = 16
)

// writers add to lists by way of sentinels, each to its own, and remember what was confirmed by a replica.
type writers struct {
	t      *testing.T
	client *goredis.Client
	stop   chan struct{}
	group  sync.WaitGroup
	wrote  atomic.Int64 // ns since the Unix epoch, of the last write that was answered
	round  atomic.Int64

	mu    sync.Mutex
	kept  [failoverWriter][]string // what WAIT has confirmed in this round
	loose [failoverWriter]int      // writes of this round that it has not
}

func startWriters(t *testing.T, g *harness.Guarded) *writers {
	w := &writers{t: t, stop: make(chan struct{}), client: goredis.NewFailoverClient(&goredis.FailoverOptions{
		MasterName: g.Name(), SentinelAddrs: g.SentinelAddrs(), PoolSize: failoverWriter, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: 3 * time.Second,
	})}
	for i := range failoverWriter {
		w.group.Go(func() { w.write(i) })
	}
	t.Cleanup(func() {
		close(w.stop)
		w.group.Wait()
		_ = w.client.Close()
	})
	return w
}

// key is where a writer adds in a round.
func (w *writers) key(writer int, round int64) string {
	return fmt.Sprintf("round%d:writer%d", round, writer)
}

func (w *writers) write(i int) {
	ctx := context.Background()
	for n := 0; ; n++ {
		select {
		case <-w.stop:
			return
		default:
		}
		round := w.round.Load()
		value := strconv.Itoa(n)
		var confirmed *goredis.Cmd
		_, err := w.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
			p.RPush(ctx, w.key(i, round), value)
			confirmed = p.Do(ctx, "WAIT", 1, 200)
			return nil
		})
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		w.wrote.Store(time.Now().UnixNano())
		w.mu.Lock()
		if replicas, _ := confirmed.Int(); round == w.round.Load() && replicas >= 1 {
			w.kept[i] = append(w.kept[i], value)
		} else if round == w.round.Load() {
			w.loose[i]++
		}
		w.mu.Unlock()
	}
}

// awaitWrites returns when somebody has written after a time, and how long after that.
func (w *writers) awaitWrites(since time.Time, within time.Duration) time.Duration {
	w.t.Helper()
	const settled = 100 * time.Millisecond // a reply that was on its way has come by then
	require.Eventually(w.t, func() bool { return w.wrote.Load() > since.Add(settled).UnixNano() }, within, time.Millisecond, "nobody can write")
	return time.Duration(w.wrote.Load() - since.UnixNano())
}

// askAgain asks a server until it has answered: sentinels have all connections closed when they change what it is.
func askAgain(t *testing.T, server *harness.Server, words ...string) (v harness.Value) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := harness.TryDial(t, server.Addr)
		if err != nil {
			return false
		}
		defer c.Close()
		if err := c.Send(harness.Command(words...)); err != nil {
			return false
		}
		v, err = c.Read(wait)
		return err == nil
	}, wait, tick)
	return v
}

// check sees that what was confirmed in this round is there, begins the next, and returns how many writes these were.
func (w *writers) check(server *harness.Server) (confirmed int) {
	w.t.Helper()
	round := w.round.Load()
	w.mu.Lock()
	w.round.Add(1)
	kept := w.kept
	w.kept, w.loose = [failoverWriter][]string{}, [failoverWriter]int{}
	w.mu.Unlock()
	for i := range kept {
		have := map[string]bool{}
		for _, value := range askAgain(w.t, server, "LRANGE", w.key(i, round), "0", "-1").Strings() {
			have[value] = true
		}
		for _, value := range kept[i] {
			require.True(w.t, have[value], "round %d: writer %d was told that a replica has %s, and it is gone", round, i, value)
			confirmed++
		}
	}
	return confirmed
}

// TestKilledPrimary kills the primary under writers who go by the sentinels, again and again: its replica takes its place in time, nothing is lost that
// WAIT has confirmed, and the killed one comes back as a replica of the other.
func TestKilledPrimary(t *testing.T) {
	t.Parallel()
	g := harness.StartGuarded(t, 2, 3, timing, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
	w := startWriters(t, g)
	var took []time.Duration
	confirmed := 0
	for range *kills {
		w.awaitWrites(time.Now(), wait)
		primary := g.Primary()
		killed := time.Now()
		g.Servers[primary].Kill()
		within := timing.DownAfter + 2*timing.FailoverTimeout
		if *kills < manyKills { // on a busy machine one may take any time
			within = 2 * wait
		}
		took = append(took, w.awaitWrites(killed, within))
		g.Restart(primary)
		g.AwaitWhole()
		require.Equal(t, 1-primary, g.Primary())
		confirmed += w.check(g.Servers[1-primary])
	}
	slices.Sort(took)
	late := 0
	for _, d := range took {
		if d > timing.DownAfter+failoverSoon {
			late++
		}
	}
	t.Logf("%d failovers took %v to %v, the median %v; %d were late; none of %d writes that WAIT has confirmed was lost", len(took), took[0], took[len(took)-1], took[len(took)/2], late, confirmed)
	if *kills >= manyKills {
		require.LessOrEqual(t, late, len(took)/lateFailovers)
	}
}

// TestKilledReplica kills the replica: writers go on with the primary, and it comes back.
func TestKilledReplica(t *testing.T) {
	t.Parallel()
	g := harness.StartGuarded(t, 2, 3, timing, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
	w := startWriters(t, g)
	var took []time.Duration
	confirmed := 0
	for range *kills {
		primary := g.Primary()
		killed := time.Now()
		g.Servers[1-primary].Kill()
		w.awaitWrites(killed, wait)
		restarted := time.Now()
		g.Restart(1 - primary)
		g.AwaitWhole()
		took = append(took, time.Since(restarted))
		require.Equal(t, primary, g.Primary())
		confirmed += w.check(g.Servers[primary])
	}
	slices.Sort(took)
	t.Logf("%d killed replicas had everything again %v to %v after their start, the median %v; none of %d writes that WAIT has confirmed was lost", len(took), took[0], took[len(took)-1], took[len(took)/2], confirmed)
}

// TestSentinelFailover has the sentinels change the two about on demand, while writes to the old primary are held back: nothing is lost.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	g := harness.StartGuarded(t, 2, 3, timing, "--repl-diskless-sync-delay", "0")
	w := startWriters(t, g)
	for range *kills {
		w.awaitWrites(time.Now(), wait)
		primary := g.Primary()
		require.Equal(t, "+OK\r\n", askAgain(t, g.Servers[primary], "CLIENT", "PAUSE", "3000", "WRITE").Wire())
		c := harness.Dial(t, g.Sentinels[0].Addr)
		await(t, "the sentinels let a failover begin", func() bool { return string(c.Do("SENTINEL", "FAILOVER", g.Name())) == "+OK\r\n" })
		await(t, "the other is the primary", func() bool { return g.Primary() == 1-primary })
		g.AwaitWhole()
		w.awaitWrites(time.Now(), wait)
		w.check(g.Servers[1-primary])
	}
	for _, s := range g.Servers {
		require.Contains(t, readFile(t, s.Dir+"/h.conf"), "save", "CONFIG REWRITE has kept the rest")
	}
}
