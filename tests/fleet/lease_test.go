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

// A leasedLimit is a limit that comes back at 100 a second.
type leasedLimit struct {
	words    []string // as RL.GCRA takes it
	capacity float64
	length   float64 // seconds that leases of it last
	calm     int     // calls a second at each of four gateways, as many as pass, or not even that
}

const (
	leasedRate     = 100
	saturating     = 100 // calls a second at each of four gateways, four times as many as pass
	forgottenCalls = 100 // that a replica which takes over may not have heard of: as many as pass in a second
)

// testedLimit is a small one whose leases are short, and for the whole test the one that documents speak of.
func testedLimit() leasedLimit {
	return sized(leasedLimit{[]string{"600", "100", "1s"}, 600, 0.3, 20}, leasedLimit{[]string{"6000", "6000", "60s"}, 6000, 2, 25})
}

// TestLeasedFleet: four gateways decide about one hot key by leases, before a redis-server and before a cluster, of which a primary is killed. In no stretch of
// time does more pass than the limit and what leases may let through, and nearly all is decided without a hop, which costs the upstream little.
func TestLeasedFleet(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		redis := harness.StartReference(t)
		leasedFleet(t, "redis://"+redis.Addr, redis.Addr)
	})
	t.Run("cluster", func(t *testing.T) {
		cluster := harness.StartCluster(t, 3, 1, electionAfter())
		leasedFleet(t, cluster.URL(), cluster.Addrs()[cluster.PrimaryOf(cluster.Shard("rl:hot"))])
		if *whole {
			shard := cluster.Shard("rl:hot")
			f := leasedCalls{url: cluster.URL(), key: "rl:killed{rl:hot}", each: saturating, span: leasedSpan(), fails: true, middle: func() { cluster.Nodes[cluster.PrimaryOf(shard)].Kill() }}
			f.run(t)
			f.requireBound(t, forgottenCalls)
			t.Logf("a primary killed in the middle: %.3f of the calls were decided without a hop, and %d had an error for an answer", f.localShare(), f.failed)
		}
	})
}

// leasedSpan is how long calls are made, and leasedWarm how long of that the gateways' connections are new and their scripts unknown.
func leasedSpan() time.Duration { return sized(2500*time.Millisecond, 24*time.Second) }
func leasedWarm() time.Duration { return leasedSpan() / 6 }

func leasedFleet(t *testing.T, url, node string) {
	limit := testedLimit()
	for _, each := range []int{limit.calm, saturating} {
		key := fmt.Sprint("rl:hot{rl:hot}", each)
		leased := leasedCalls{url: url, node: node, key: key, each: each, span: leasedSpan(), lease: true}
		leased.run(t)
		leased.requireBound(t, 0)
		t.Logf("%d a second each: %.3f of the calls were decided without a hop", each, leased.localShare())
		require.Greater(t, leased.localShare(), sized(0.3, 0.95))

		if *whole {
			idle := leasedCalls{url: url, node: node, key: key, span: leasedSpan(), lease: true}
			idle.run(t)
			unleased := leasedCalls{url: url, node: node, key: key + ":unleased", each: each, span: leasedSpan()}
			unleased.run(t)
			figure(t, fmt.Sprintf("the node's processor time (%.3f s), without that beside idle gateways (%.3f s), beside that without leases (%.3f s)", leased.cpu, idle.cpu, unleased.cpu),
				(leased.cpu-idle.cpu)/(unleased.cpu-idle.cpu), 0.08)
		}
	}
}

// leasedCalls are calls of one key at four gateways.
type leasedCalls struct {
	url, key string
	node     string // the server that has the key; "": its processor time is not looked at
	each     int    // calls a second at each gateway; 0: they are idle
	span     time.Duration
	lease    bool   // else every call is asked upstream
	fails    bool   // calls may be answered with an error of the upstream's
	middle   func() // called in the middle of the span, if it is not nil

	passed       []time.Duration // when calls passed, in order, since the beginning
	slowest      time.Duration   // how long a call took at most
	failed       int
	local, asked int
	cpu          float64 // processor time of the node in seconds, but for leasedWarm
	burnt        float64 // units that were charged before
}

// run has each of four gateways be called at a rate for a time. A limit that is to be saturated has been used up nearly before.
func (f *leasedCalls) run(t *testing.T) {
	t.Helper()
	limit := testedLimit()
	flags := []string{"--upstream-timeout-ms", patient}
	if f.fails {
		flags = []string{"--upstream-timeout-ms", ms(upstreamTimeout())}
	}
	if f.lease || f.fails {
		flags = append(flags, "--upstream-lease", "yes")
	}
	var mu sync.Mutex
	var callers sync.WaitGroup
	var gateways []*harness.Server
	for range 4 {
		gateways = append(gateways, harness.StartGateway(t, f.url, flags...))
	}
	words := append([]string{"RL.GCRA", f.key}, limit.words...)
	if *whole && f.each == saturating {
		f.burnt = limit.capacity * 0.99
		require.Equal(t, "0", harness.Dial(t, gateways[0].Addr).Ask(append(words, "COST", strconv.Itoa(int(f.burnt)))...).Items[0].Text)
	}
	start := time.Now()
	for i, g := range gateways {
		client := harness.Dial(t, g.Addr)
		callers.Go(func() {
			for n := 0; ; n++ {
				due := start.Add(f.span + 1)
				if f.each > 0 { // their clients know nothing of each other: in step, the calls of three would find the node awake
					due = start.Add(time.Duration(len(gateways)*n+i) * time.Second / time.Duration(len(gateways)*f.each))
				}
				if time.Sleep(time.Until(due)); due.Sub(start) > f.span {
					return
				}
				asked := time.Now()
				reply := texts(client.Ask(words...))
				took := time.Since(asked)
				mu.Lock()
				f.slowest = max(f.slowest, took)
				switch {
				case strings.HasPrefix(reply, "0 "):
					f.passed = append(f.passed, time.Since(start))
				case f.fails && strings.HasPrefix(reply, "-UPSTREAM"):
					f.failed++
				case !strings.HasPrefix(reply, "1 "):
					t.Errorf("reply %q", reply)
				}
				mu.Unlock()
			}
		})
	}
	if f.node != "" {
		time.Sleep(leasedWarm())
		f.cpu = redisCPU(t, f.node)
	}
	if f.middle != nil {
		time.Sleep(f.span / 2)
		f.middle()
	}
	callers.Wait()
	if f.node != "" {
		f.cpu = redisCPU(t, f.node) - f.cpu
	}
	slices.Sort(f.passed)
	for _, g := range gateways {
		agrees(t, g)
		f.local += upstreamNumber(t, g, "lease_calls_local")
		f.asked += upstreamNumber(t, g, "lease_calls_asked")
		require.NoError(t, g.Terminate())
	}
}

// requireBound requires that in no stretch of time more passed than the limit, what leases let through, and so many units beyond.
func (f *leasedCalls) requireBound(t *testing.T, beyond float64) {
	t.Helper()
	limit := testedLimit()
	level, highest, at := f.burnt, f.burnt, time.Duration(0)
	for _, p := range f.passed {
		level = max(0, level-(p-at).Seconds()*leasedRate) + 1
		at, highest = p, max(highest, level)
	}
	// A call may be decided earlier than its caller hears of it.
	most := limit.capacity + leasedRate*(1.001*limit.length+f.slowest.Seconds()) + 1 + beyond
	t.Logf("%d a second each: %d passed, at most %.1f beyond the rate, where %.1f may", f.each, len(f.passed), highest, most)
	require.LessOrEqual(t, highest, most)
}

// localShare is the share of the calls that were decided without a hop.
func (f *leasedCalls) localShare() float64 { return float64(f.local) / float64(f.local+f.asked) }

// TestLeasesWithoutTheLastCharges: the primary is killed whose replica has not had the last charges of four gateways, and the replica takes its
// place. Only as much more passes as was charged and lost, also where a gateway is killed and others give back what was charged to the one
// that is no more.
func TestLeasesWithoutTheLastCharges(t *testing.T) {
	t.Parallel()
	const key, capacity, rate, length, each, burnt = "rl:lost", 200, 100, 0.1, 60, 190.0
	primary := harness.StartReference(t)
	link := harness.StartProxy(t, primary.Addr)
	replica := harness.StartReference(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(link.Port), "--repl-diskless-sync-delay", "0")
	asksPrimary, asksReplica := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr)
	require.Eventually(t, func() bool {
		return strings.Contains(asksReplica.Ask("INFO", "replication").Text, "master_link_status:up")
	}, harness.ReplyTimeout, 10*time.Millisecond)

	url := "redis://" + primary.Addr + "," + replica.Addr
	var gateways []*harness.Server
	for range 4 {
		gateways = append(gateways, harness.StartGateway(t, url, "--upstream-lease", "yes", "--upstream-rest-ms", "100", "--upstream-timeout-ms", ms(upstreamTimeout())))
	}
	limit := []string{"RL.GCRA", key, strconv.Itoa(capacity), strconv.Itoa(rate), "1s"}
	require.Equal(t, "0", harness.Dial(t, gateways[0].Addr).Ask(append(limit, "COST", strconv.Itoa(int(burnt)))...).Items[0].Text)
	c := callWhileLeased(t, gateways, each, limit...)
	c.wait(t, sized(20, 200))
	link.Refuse(true)
	link.Cut()
	behind := func() float64 { return float64(arrival(t, asksPrimary, key)-arrival(t, asksReplica, key)) / 1e9 * rate }
	require.Eventually(t, func() bool { return behind() >= sized(10.0, 100.0) }, harness.ReplyTimeout, 10*time.Millisecond)
	gateways[0].Kill()
	require.Equal(t, "OK", asksPrimary.Ask("CLIENT", "PAUSE", "60000", "WRITE").Text)
	lost, before := behind(), c.count()
	primary.Kill()
	require.Equal(t, "OK", asksReplica.Ask("REPLICAOF", "NO", "ONE").Text)
	for _, g := range gateways[1:] {
		harness.Dial(t, g.Addr).Ask("RL.UPSTREAM", "RETURN")
	}
	c.wait(t, before+int(lost)+sized(20, 500))
	passed, slowest := c.stop()

	level, highest, at := burnt, burnt, time.Duration(0)
	for _, p := range passed {
		level = max(0, level-(p-at).Seconds()*rate) + 1
		at, highest = p, max(highest, level)
	}
	most := capacity + rate*(1.001*length+slowest.Seconds()) + 1
	t.Logf("%d passed, %.1f charges were lost; at most %.1f beyond the rate, where %.1f may", len(passed), lost, highest, most+lost)
	require.LessOrEqual(t, highest, most+lost)
	local := 0
	for _, g := range gateways[1:] {
		agrees(t, g)
		local += upstreamNumber(t, g, "lease_calls_local")
	}
	require.Positive(t, local)
}

// arrival is the theoretical arrival time that a server keeps of a key, in ns since the Unix epoch.
func arrival(t *testing.T, asks *harness.Client, key string) int64 {
	t.Helper()
	at, err := strconv.ParseInt(asks.Ask("GET", key).Text, 10, 64)
	require.NoError(t, err)
	return at
}

// leasedCallers call gateways at a steady rate, each over a connection of its own, until they are stopped.
type leasedCallers struct {
	began   time.Time
	end     chan struct{}
	calling sync.WaitGroup
	mu      sync.Mutex
	passed  []time.Duration // since began
	slowest time.Duration   // of those that passed
}

// callWhileLeased has each gateway be called so often a second.
func callWhileLeased(t *testing.T, gateways []*harness.Server, each int, words ...string) *leasedCallers {
	t.Helper()
	c := &leasedCallers{began: time.Now(), end: make(chan struct{})}
	for _, g := range gateways {
		client := harness.Dial(t, g.Addr)
		c.calling.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-c.end:
					return
				case <-time.After(time.Until(c.began.Add(time.Duration(n) * time.Second / time.Duration(each)))):
				}
				asked := time.Now()
				if client.Send(harness.Command(words...)) != nil {
					return
				}
				reply, err := client.Read(harness.ReplyTimeout)
				if err != nil { // its gateway was killed
					return
				}
				if strings.HasPrefix(texts(reply), "0 ") {
					c.mu.Lock()
					c.passed, c.slowest = append(c.passed, time.Since(c.began)), max(c.slowest, time.Since(asked))
					c.mu.Unlock()
				}
			}
		})
	}
	return c
}

func (c *leasedCallers) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.passed)
}

// wait returns when so many calls have passed.
func (c *leasedCallers) wait(t *testing.T, calls int) {
	t.Helper()
	require.Eventually(t, func() bool { return c.count() >= calls }, harness.ReplyTimeout, 5*time.Millisecond)
}

// stop ends the calls, and returns when which passed, in order, and how long the slowest of these took.
func (c *leasedCallers) stop() (passed []time.Duration, slowest time.Duration) {
	close(c.end)
	c.calling.Wait()
	slices.Sort(c.passed)
	return c.passed, c.slowest
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
