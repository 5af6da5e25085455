package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	upstreamRest    = time.Second            // the directive's default
	failoverTimeout = 60 * time.Second       // until a shard must be served again, on whatever machine
	settled         = 500 * time.Millisecond // without an error: it is served again
)

// upstreamTimeout is the directive's default where figures count, and otherwise one that only an upstream misses that is really gone.
func upstreamTimeout() time.Duration { return sized(2*time.Second, 50*time.Millisecond) }

// TestPrimaryKilled kills a primary under load, again and again: its keys are answered by the policy at once and exactly again as soon as its
// replica has been elected, the others' as ever, and no call is charged twice.
func TestPrimaryKilled(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	kills, rate := sized(1, 20), sized(300, 2000)
	cluster := harness.StartCluster(t, 3, 1, electionAfter())
	gateway := harness.StartGateway(t, cluster.URL(), "--upstream-timeout-ms", ms(upstreamTimeout()), "--upstream-rest-ms", ms(upstreamRest))
	var recoveries []time.Duration
	for n := range kills {
		shard := rnd.IntN(cluster.Primaries)
		recovery := killUnderLoad(t, cluster, gateway, shard, rate, fmt.Sprint("kill:", n))
		recoveries = append(recoveries, recovery)
		cluster.WaitServing()
	}
	slices.Sort(recoveries)
	t.Logf("%d kills, served again after %v", kills, recoveries)
	figure(t, "served again in nine of ten", recoveries[(len(recoveries)-1)*9/10], electionAfter()+2*time.Second)
	figure(t, "served again in all", recoveries[len(recoveries)-1], electionAfter()+4*time.Second)
	agrees(t, gateway)
}

// killUnderLoad kills a shard's primary, brings it back as a replica and returns after which time the shard was served again.
func killUnderLoad(t *testing.T, cluster *harness.Cluster, gateway *harness.Server, shard, rate int, prefix string) time.Duration {
	t.Helper()
	l := startLoad(t, gateway.Addr, cluster.Primaries, 6, rate, func(shard, n int) string {
		return cluster.KeyIn(shard, prefix, n)
	})
	warm := sized(500*time.Millisecond, 2*time.Second)
	time.Sleep(warm)
	primary := cluster.PrimaryOf(shard)
	require.GreaterOrEqual(t, primary, 0)
	killed := time.Since(l.began)
	cluster.Nodes[primary].Kill()

	asks := harness.Dial(t, gateway.Addr)
	probe := cluster.KeyIn(shard, prefix+":probe", 0)
	good := time.Now()
	for deadline := good.Add(failoverTimeout); time.Since(good) < settled; time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the shard is not served again")
		if asks.Ask("CL.THROTTLE", probe, "9", "1", "3600", "0").Kind == '-' {
			good = time.Now()
		}
	}
	l.stop(t)
	cluster.Restart(primary)
	l.requireChargedOnce(t)

	back := killed
	for _, c := range l.callers {
		for _, made := range c.calls {
			if !made.passed() {
				require.GreaterOrEqual(t, made.at+made.took, killed, "an error before anything was wrong: %s", made.refused)
				require.Equal(t, shard, c.shard, "a shard that is well: %s", made.refused)
				back = max(back, made.at+made.took)
			}
		}
	}
	t.Logf("shard %d: %v", shard, l.errors())
	others := slices.DeleteFunc([]int{0, 1, 2}, func(other int) bool { return other == shard })
	before, during := l.took(warm/2, killed, others...), l.took(killed, back, others...) // and not the connections' first calls
	figure(t, "p99 of the other shards above what it was", quantile(during, .99)-quantile(before, .99), 20*time.Millisecond)
	figure(t, "longest answer of the shard", quantile(l.took(killed, back, shard), 1), upstreamTimeout()+50*time.Millisecond)
	return back - killed
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// TestSentinelFailsOver: the primary behind a sentinel is killed, and the gateway follows to the one that takes its place.
func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	sentinel := harness.StartSentinel(t, time.Second)
	gateway := harness.StartGateway(t, sentinel.URL(), "--upstream-timeout-ms", ms(upstreamTimeout()), "--upstream-rest-ms", "200")
	l := startLoad(t, gateway.Addr, 1, 5, 200, func(_, n int) string { return fmt.Sprint("sentinel:", n) })
	time.Sleep(300 * time.Millisecond)
	killed := time.Since(l.began)
	sentinel.Primary.Kill()
	asks := harness.Dial(t, gateway.Addr)
	for deadline := time.Now().Add(failoverTimeout); ; time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the gateway does not follow")
		if v := asks.Ask("SET", "after", "1"); v.Text == "OK" {
			break
		}
	}
	figure(t, "served again", time.Since(l.began)-killed, 15*time.Second)
	l.stop(t)
	l.requireChargedOnce(t)
	require.Equal(t, "1", harness.Dial(t, sentinel.Replica.Addr).Ask("GET", "after").Text)
	agrees(t, gateway)
}
