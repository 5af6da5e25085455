package fleet

import (
	"fmt"
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

// TestLeasedFleet: four gateways decide about one hot key by leases, before a redis-server and before a cluster. In no stretch of time does more pass
// than the limit and what leases may let through, and nearly all is decided without a hop.
func TestLeasedFleet(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		redis := harness.StartReference(t)
		leasedFleet(t, "redis://"+redis.Addr, redis.Addr)
	})
	t.Run("cluster", func(t *testing.T) {
		cluster := harness.StartCluster(t, 3, 1, electionAfter())
		leasedFleet(t, cluster.URL(), cluster.Addrs()[cluster.PrimaryOf(cluster.Shard("rl:hot"))])
	})
}

// The limit: 600 at once and 100 a second, so that a lease lasts for 0.3 s.
const leasedCapacity, leasedRate, leasedLength = 600, 100, 0.3

func leasedFleet(t *testing.T, url, node string) {
	span := sized(4*time.Second, 20*time.Second)
	for _, each := range []int{20, 100} {
		key := fmt.Sprint("rl:hot{rl:hot}", each)
		passed, slowest, gateways := callLeased(t, url, key, each, span, "--upstream-lease", "yes")
		level, highest, at := 0.0, 0.0, time.Duration(0)
		for _, p := range passed {
			level = max(0, level-(p-at).Seconds()*leasedRate) + 1
			at, highest = p, max(highest, level)
		}
		// A call may be decided earlier than its caller hears of it.
		most := leasedCapacity + leasedRate*(1.001*leasedLength+slowest.Seconds()) + 1
		t.Logf("%d a second each: %d passed, at most %.1f beyond the rate, where %.1f may", each, len(passed), highest, most)
		require.LessOrEqual(t, highest, most)
		local, asked := 0, 0
		for _, g := range gateways {
			agrees(t, g)
			local += upstreamNumber(t, g, "lease_calls_local")
			asked += upstreamNumber(t, g, "lease_calls_asked")
		}
		share := float64(local) / float64(local+asked)
		t.Logf("%.3f of the calls were decided without a hop", share)
		require.Greater(t, share, 0.3)

		if *whole {
			before := redisCPU(t, node)
			callLeased(t, url, key+":leased", each, span, "--upstream-lease", "yes")
			middle := redisCPU(t, node)
			callLeased(t, url, key+":unleased", each, span)
			t.Logf("the node's CPU: %.3f of what it is without leases", (middle-before)/(redisCPU(t, node)-middle))
		}
	}
}

// callLeased has each of four gateways be called at a rate for a time, and returns when calls passed, and how long the slowest took.
func callLeased(t *testing.T, url, key string, each int, span time.Duration, flags ...string) (passed []time.Duration, slowest time.Duration, gateways []*harness.Server) {
	t.Helper()
	flags = append(flags, "--upstream-timeout-ms", patient)
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range 4 {
		gateways = append(gateways, harness.StartGateway(t, url, flags...))
	}
	start := time.Now()
	for _, g := range gateways {
		client := harness.Dial(t, g.Addr)
		callers.Go(func() {
			for n := 0; ; n++ {
				due := start.Add(time.Duration(n) * time.Second / time.Duration(each))
				if time.Sleep(time.Until(due)); due.Sub(start) > span {
					return
				}
				asked := time.Now()
				reply := texts(client.Ask("RL.GCRA", key, strconv.Itoa(leasedCapacity), strconv.Itoa(leasedRate), "1s"))
				took := time.Since(asked)
				mu.Lock()
				if slowest = max(slowest, took); strings.HasPrefix(reply, "0 ") {
					passed = append(passed, time.Since(start))
				} else if !strings.HasPrefix(reply, "1 ") {
					t.Errorf("reply %q", reply)
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	slices.Sort(passed)
	return passed, slowest, gateways
}

// upstreamNumber is a number of INFO upstream.
func upstreamNumber(t *testing.T, g *harness.Server, name string) int {
	t.Helper()
	info := harness.Dial(t, g.Addr).Ask("INFO", "upstream").Text
	found := regexp.MustCompile(`upstream_` + name + `:(\d+)`).FindStringSubmatch(info)
	require.NotNil(t, found, name)
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n
}

// redisCPU is the processor time that a redis-server has taken, in seconds.
func redisCPU(t *testing.T, addr string) (seconds float64) {
	t.Helper()
	info := harness.Dial(t, addr).Ask("INFO", "cpu").Text
	for _, found := range regexp.MustCompile(`used_cpu_(?:sys|user):([\d.]+)`).FindAllStringSubmatch(info, -1) {
		part, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		seconds += part
	}
	return seconds
}
