package bench

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	clusterTime   = flag.Duration("cluster", 0, "measure what decisions before a cluster cost, each way for so long in each round")
	clusterRounds = flag.Int("cluster.rounds", 5, "rounds, in each of which all ways take turns")
	clusterOnly   = flag.String("cluster.only", "", "measure only the ways of these names, with commas between them")
	ratelimitPath = flag.String("cluster.ratelimit", "", "program of envoyproxy/ratelimit to measure as well; see `make cluster-bench`")
)

const clusterKeys = 100_000

// A way is one in which a decision can be had.
type way struct {
	name    string
	servers []*harness.Server // that stand before the cluster, or decide by themselves
	cluster bool              // the cluster decides, or counts
	asOften string            // the way that is to be asked before this one, and as often; "" is as often as it answers
	run     func(t *testing.T, l load) (decisions uint64, p50 time.Duration)
}

// A load is how a way is asked.
type load struct {
	clients, pipeline int
	length            time.Duration
	rate              float64 // decisions a second; 0 is as many as there are answers
}

// A cost is what decisions by one way came to.
type cost struct {
	decisions      uint64
	seconds        float64
	servers, nodes time.Duration // processor time, of those before the cluster and of its nodes
	asked, reads   float64       // calls that came to the nodes, those of scripts not counted, and in how many reads they came
	p50            time.Duration
}

func (c cost) perDecision(d time.Duration) float64 {
	return float64(d.Nanoseconds()) / 1000 / float64(c.decisions)
}

// TestClusterCosts measures, in one run in which they take turns, the processor time of a decision: by a headgate that keeps its state, by
// gateways before a cluster of three, by redis_rate and by envoyproxy/ratelimit on the same cluster. Without -cluster it only shows that
// all of it works. The clients' own time does not count.
func TestClusterCosts(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server has no load generator")
	}
	length, rounds := *clusterTime, *clusterRounds
	loads := []load{{clients: 200, pipeline: 1}, {clients: 50, pipeline: 16}, {clients: 1, pipeline: 1}}
	if length == 0 {
		length, rounds, loads = 30*time.Millisecond, 1, loads[1:2]
	}
	harness.OwnSessions(t)
	cluster := harness.StartCluster(t, 3, 0, 10*time.Second)
	ways := clusterWays(t, cluster)
	for _, l := range loads {
		l.length = length
		costs, rates := make([][]cost, len(ways)), make(map[string]float64)
		for round := range rounds {
			for turn := range ways {
				i := (round + turn) % len(ways)
				l.rate = rates[ways[i].asOften]
				c := ways[i].measure(t, cluster, l)
				costs[i], rates[ways[i].name] = append(costs[i], c), float64(c.decisions)/c.seconds
			}
		}
		t.Logf("%d clients, %d at once\n%s", l.clients, l.pipeline, costTable(ways, costs))
	}
}

// clusterWays are the ways in the order of the table. The first is there twice: how far the two are apart is what the machine does. It is there once
// more behind the gateway, asked as often as that was: a server that is asked ten times as often finds more to do each time that it wakes up.
func clusterWays(t *testing.T, cluster *harness.Cluster) (ways []way) {
	t.Helper()
	wanted := func(name string) bool {
		return *clusterOnly == "" || slices.Contains(strings.Split(*clusterOnly, ","), name)
	}
	var native *harness.Server
	if wanted("headgate") {
		native = harness.Start(t)
		for _, name := range []string{"headgate", "headgate again"} {
			ways = append(ways, way{name: name, servers: []*harness.Server{native}, run: byLoader(native)})
		}
	}
	for _, gateways := range []struct {
		name string
		n    int
	}{{"gateway", 1}, {"four gateways", 4}} {
		if !wanted(gateways.name) {
			continue
		}
		var servers []*harness.Server
		for range gateways.n {
			servers = append(servers, harness.StartGateway(t, cluster.URL(), "--upstream-timeout-ms", "1000"))
		}
		ways = append(ways, way{name: gateways.name, servers: servers, cluster: true, run: byLoader(servers...)})
		if gateways.n == 1 && native != nil {
			ways = append(ways, way{name: "headgate, as often", servers: []*harness.Server{native}, asOften: gateways.name, run: byLoader(native)})
		}
	}
	if wanted("redis_rate") {
		ways = append(ways, way{name: "redis_rate", cluster: true, run: byRedisRate(t, cluster)})
	}
	if *ratelimitPath != "" && wanted("envoyproxy/ratelimit") {
		ways = append(ways, ratelimitWay(t, cluster))
	}
	return ways
}

// byLoader asks CL.THROTTLE with headgate bench, by as many of it as there are servers.
func byLoader(servers ...*harness.Server) func(*testing.T, load) (uint64, time.Duration) {
	return func(t *testing.T, l load) (uint64, time.Duration) {
		t.Helper()
		used := servers[:min(len(servers), l.clients)]
		reports := make([]report, len(used))
		var running sync.WaitGroup
		for i, server := range used {
			running.Go(func() {
				reports[i] = runBench(t, "--addr", server.Addr, "--load", "throttle", "--clients", strconv.Itoa(l.clients/len(used)), "--pipeline", strconv.Itoa(l.pipeline),
					"--rate", strconv.Itoa(int(l.rate)/len(used)), "--keys", strconv.Itoa(clusterKeys), "--duration", l.length.String(), "--seed", strconv.Itoa(i+1))
			})
		}
		running.Wait()
		var decisions uint64
		for _, r := range reports {
			require.Zero(t, r.Servers[0].Errors)
			decisions += r.Servers[0].Operations
		}
		return decisions, time.Duration(reports[0].Servers[0].Latency["p50"] * float64(time.Millisecond))
	}
}

// repeat has workers ask at once, until the time is over, and returns how often they did and what the middle one of each hundredth call took.
func repeat(t *testing.T, workers int, length time.Duration, ask func(ctx context.Context, worker, key int) error) (uint64, time.Duration) {
	t.Helper()
	ctx := context.Background()
	took := make([][]time.Duration, workers)
	errs := make([]error, workers)
	var count atomic.Uint64
	var running sync.WaitGroup
	began := time.Now()
	for i := range workers {
		running.Go(func() {
			random, done := rand.New(rand.NewPCG(1, uint64(i))), uint64(0)
			for last := began; errs[i] == nil && last.Sub(began) < length; done++ {
				errs[i] = ask(ctx, i, random.IntN(clusterKeys))
				now := time.Now()
				took[i] = append(took[i], now.Sub(last))
				last = now
			}
			count.Add(done)
		})
	}
	running.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	return count.Load(), all[len(all)/2]
}

// byRedisRate asks redis_rate on go-redis, which knows no pipelines: so many more goroutines ask at once.
func byRedisRate(t *testing.T, cluster *harness.Cluster) func(*testing.T, load) (uint64, time.Duration) {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), PoolSize: 300})
	t.Cleanup(func() { _ = client.Close() })
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: 30, Burst: 16, Period: time.Minute} // as the loader asks
	return func(t *testing.T, l load) (uint64, time.Duration) {
		t.Helper()
		return repeat(t, l.clients*l.pipeline, l.length, func(ctx context.Context, _, key int) error {
			_, err := limiter.Allow(ctx, strconv.Itoa(key), limit)
			return err
		})
	}
}

// measure has decisions made for a time and returns what they cost.
func (w way) measure(t *testing.T, cluster *harness.Cluster, l load) cost {
	t.Helper()
	before := w.used(t, cluster)
	began := time.Now()
	decisions, p50 := w.run(t, l)
	c := w.used(t, cluster)
	c.seconds = time.Since(began).Seconds()
	c.servers, c.nodes = c.servers-before.servers, c.nodes-before.nodes
	c.asked, c.reads = c.asked-before.asked, c.reads-before.reads
	c.decisions, c.p50 = decisions, p50
	require.NotZero(t, decisions)
	return c
}

// used is what all concerned have used since they started.
func (w way) used(t *testing.T, cluster *harness.Cluster) (c cost) {
	t.Helper()
	for _, server := range w.servers {
		c.servers += server.CPU()
	}
	if !w.cluster {
		return c
	}
	for _, node := range cluster.Nodes {
		c.nodes += node.CPU()
		client := harness.Dial(t, node.Addr)
		for line := range strings.Lines(client.Ask("INFO", "stats").Text + client.Ask("INFO", "commandstats").Text) {
			var n float64
			if _, err := fmt.Sscanf(line, "total_reads_processed:%g", &n); err == nil {
				c.reads += n
			}
			for _, asked := range []string{"evalsha", "incrby", "expire"} { // scripts here call none of the latter two
				if _, err := fmt.Sscanf(line, "cmdstat_"+asked+":calls=%g,", &n); err == nil {
					c.asked += n
				}
			}
		}
		client.Close()
	}
	return c
}

// mediansOf returns what finds the median of a figure.
func mediansOf(costs []cost) func(value func(c cost) float64) float64 {
	return func(value func(c cost) float64) float64 {
		var all []float64
		for _, c := range costs {
			all = append(all, value(c))
		}
		return median(all)
	}
}

// costTable writes the medians of what was measured, and how they compare.
func costTable(ways []way, costs [][]cost) string {
	var table strings.Builder
	table.WriteString("| way | a second | µs of servers | µs of the cluster's nodes | both | p50, µs | calls of nodes per decision | in one read |\n|---|---|---|---|---|---|---|---|\n")
	for i, w := range ways {
		of := mediansOf(costs[i])
		fmt.Fprintf(&table, "| %s | %s | %.2f | %.2f | %.2f | %.0f | %.2f | %.1f |\n", w.name,
			thousands(of(func(c cost) float64 { return float64(c.decisions) / c.seconds })),
			of(func(c cost) float64 { return c.perDecision(c.servers) }), of(func(c cost) float64 { return c.perDecision(c.nodes) }),
			of(func(c cost) float64 { return c.perDecision(c.servers + c.nodes) }), of(func(c cost) float64 { return float64(c.p50) / 1000 }),
			of(func(c cost) float64 { return c.asked / float64(c.decisions) }), of(func(c cost) float64 { return c.asked / max(1, c.reads) }))
	}
	return table.String()
}

// ratelimitWay is envoyproxy/ratelimit: a service that is asked over gRPC and counts in the cluster, by the minute.
func ratelimitWay(t *testing.T, cluster *harness.Cluster) way {
	t.Helper()
	root := t.TempDir()
	config := filepath.Join(root, "bench", "config")
	require.NoError(t, os.MkdirAll(config, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(config, "bench.yaml"),
		[]byte("domain: bench\ndescriptors:\n  - key: user\n    rate_limit:\n      unit: minute\n      requests_per_unit: 30\n"), 0o644))
	server := harness.StartOther(t, *ratelimitPath, func(port int) []string {
		return []string{
			"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "GRPC_PORT=" + strconv.Itoa(port),
			"PORT=" + strconv.Itoa(harness.FreePort(t)), "DEBUG_PORT=" + strconv.Itoa(harness.FreePort(t)),
			"BACKEND_TYPE=redis", "REDIS_TYPE=cluster", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + strings.Join(cluster.Addrs(), ","),
			"REDIS_POOL_SIZE=50", "REDIS_PIPELINE_WINDOW=150us", // what its documents advise
			"RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=bench", "RUNTIME_WATCH_ROOT=false", "USE_STATSD=false", "LOG_LEVEL=error",
		}
	})
	clients := make(map[int]*grpcClient)
	return way{name: "envoyproxy/ratelimit", servers: []*harness.Server{server}, cluster: true, run: func(t *testing.T, l load) (uint64, time.Duration) {
		t.Helper()
		for i := range l.clients {
			if clients[i] == nil {
				clients[i] = newGRPCClient(server.Addr)
			}
		}
		return repeat(t, l.clients*l.pipeline, l.length, func(ctx context.Context, worker, key int) error {
			return clients[worker%l.clients].askRate(ctx, "bench", "user", strconv.Itoa(key))
		})
	}}
}
