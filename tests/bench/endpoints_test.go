package bench

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
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
	endpointTime      = flag.Duration("endpoints", 0, "measure what decisions over gRPC and HTTP cost, each way for so long in each round")
	endpointRounds    = flag.Int("endpoints.rounds", 5, "rounds, in each of which all ways take turns")
	endpointClients   = flag.Int("endpoints.clients", 50, "connections, with one request at a time on each")
	endpointRatelimit = flag.String("endpoints.ratelimit", "", "program of envoyproxy/ratelimit to measure as well; see `make api-bench`")
)

const (
	endpointKeys = 100_000
	endpointRule = "domain: bench\ndescriptors:\n  - key: user\n    rate_limit:\n      unit: minute\n      requests_per_unit: 30\n"
)

// plainVariable has this test's program be the least HTTP server that Go's library makes, on the address that it holds.
const plainVariable = "HEADGATE_BENCH_PLAIN"

func TestMain(m *testing.M) {
	if addr := os.Getenv(plainVariable); addr != "" {
		fmt.Println(http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// endpoint is where a decision is asked for.
type endpoint struct {
	name    string
	servers []*harness.Server // all that take part in it
	ask     func(ctx context.Context, worker, key int) error
}

// roundResult is what the decisions of a round came to.
type roundResult struct {
	decisions float64
	seconds   float64
	cpu       time.Duration // of the servers
	p50, p99  time.Duration
}

// cost is the processor time of a decision in µs.
func (p roundResult) cost() float64 { return float64(p.cpu.Nanoseconds()) / 1000 / p.decisions }

// TestEndpointCosts measures, in one run in which they take turns, the processor time of a decision over gRPC, beside envoyproxy/ratelimit and its redis-server;
// and of a check over HTTP, beside a server that answers 200 to everything. Without -endpoints it only shows that all of it works. The clients' own time does not
// count.
func TestEndpointCosts(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server has no such endpoints")
	}
	length, rounds := *endpointTime, *endpointRounds
	if length == 0 {
		length, rounds = 50*time.Millisecond, 1
	}
	compareEndpoints(t, rateEndpoints(t), length, rounds)
	compareEndpoints(t, checkEndpoints(t), length, rounds)
}

// compareEndpoints measures endpoints in turn and prints what they cost, the first as parts of each.
func compareEndpoints(t *testing.T, endpoints []endpoint, length time.Duration, rounds int) {
	t.Helper()
	results := make([][]roundResult, len(endpoints))
	for round := range rounds {
		for turn := range endpoints {
			i := (round + turn) % len(endpoints)
			results[i] = append(results[i], endpoints[i].measure(t, *endpointClients, length))
		}
	}
	of := func(i int, value func(p roundResult) float64) float64 {
		var all []float64
		for _, p := range results[i] {
			all = append(all, value(p))
		}
		return median(all)
	}
	var table strings.Builder
	table.WriteString("| endpoint | a second | µs of processors | the first's part | p50, µs | p99, µs |\n|---|---|---|---|---|---|\n")
	for i, d := range endpoints {
		part := of(0, roundResult.cost) / max(of(i, roundResult.cost), 1e-9)
		fmt.Fprintf(&table, "| %s | %s | %.1f | %.2f | %.0f | %.0f |\n", d.name, thousands(of(i, func(p roundResult) float64 { return p.decisions / p.seconds })), of(i, roundResult.cost), part,
			of(i, func(p roundResult) float64 { return float64(p.p50) / 1000 }), of(i, func(p roundResult) float64 { return float64(p.p99) / 1000 }))
	}
	t.Logf("%d clients, medians of %d rounds of %s\n%s", *endpointClients, rounds, length, table.String())
}

// measure has decisions made for a time.
func (d endpoint) measure(t *testing.T, workers int, length time.Duration) (p roundResult) {
	t.Helper()
	used := func() (cpu time.Duration) {
		for _, s := range d.servers {
			cpu += s.CPU()
		}
		return cpu
	}
	ctx, cancel := context.WithTimeout(context.Background(), length+harness.ReplyTimeout)
	defer cancel()
	took := make([][]time.Duration, workers)
	errs := make([]error, workers)
	var running sync.WaitGroup
	before, began := used(), time.Now()
	for i := range workers {
		running.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for last := began; errs[i] == nil && last.Sub(began) < length; {
				errs[i] = d.ask(ctx, i, random.IntN(endpointKeys))
				now := time.Now()
				took[i] = append(took[i], now.Sub(last))
				last = now
			}
		})
	}
	running.Wait()
	p.cpu, p.seconds = used()-before, time.Since(began).Seconds()
	for _, err := range errs {
		require.NoError(t, err, d.name)
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	p.decisions, p.p50, p.p99 = float64(len(all)), all[len(all)/2], all[len(all)*99/100]
	return p
}

// rateEndpoints are headgate's rate limit service, and envoyproxy/ratelimit as its documents advise, if there is one.
func rateEndpoints(t *testing.T) []endpoint {
	t.Helper()
	root := t.TempDir()
	rules := filepath.Join(root, "bench", "config")
	require.NoError(t, os.MkdirAll(rules, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(rules, "bench.yaml"), []byte(endpointRule), 0o644))
	port := harness.FreePort(t)
	endpoints := []endpoint{rateEndpoint("headgate, gRPC", fmt.Sprintf("127.0.0.1:%d", port), harness.Start(t, "--rls-port", strconv.Itoa(port), "--rls-config", rules))}
	if *endpointRatelimit != "" {
		redis := harness.StartReference(t)
		service := harness.StartOther(t, *endpointRatelimit, func(port int) []string {
			return []string{
				"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "GRPC_PORT=" + strconv.Itoa(port),
				"PORT=" + strconv.Itoa(harness.FreePort(t)), "DEBUG_PORT=" + strconv.Itoa(harness.FreePort(t)),
				"BACKEND_TYPE=redis", "REDIS_TYPE=single", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis.Addr,
				"REDIS_POOL_SIZE=50", "REDIS_PIPELINE_WINDOW=150us",
				"RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=bench", "RUNTIME_WATCH_ROOT=false", "USE_STATSD=false", "LOG_LEVEL=error",
			}
		})
		endpoints = append(endpoints, rateEndpoint("envoyproxy/ratelimit with redis-server", service.Addr, service, redis))
	}
	return endpoints
}

func rateEndpoint(name, addr string, servers ...*harness.Server) endpoint {
	clients := make([]*grpcClient, *endpointClients)
	for i := range clients {
		clients[i] = newGRPCClient(addr)
	}
	return endpoint{name, servers, func(ctx context.Context, worker, key int) error {
		return clients[worker].askRate(ctx, "bench", "user", strconv.Itoa(key))
	}}
}

// checkEndpoints are headgate's check over HTTP, and a server that answers 200 to the same requests.
func checkEndpoints(t *testing.T) []endpoint {
	t.Helper()
	port := harness.FreePort(t)
	headgate := harness.Start(t, "--http-port", strconv.Itoa(port), "--policy", "user", "FIXED", "30", "1m")
	program, err := os.Executable()
	require.NoError(t, err)
	plain := harness.StartOther(t, program, func(port int) []string { return []string{fmt.Sprintf("%s=127.0.0.1:%d", plainVariable, port)} })
	return []endpoint{checkEndpoint("headgate, HTTP", fmt.Sprintf("127.0.0.1:%d", port), headgate), checkEndpoint("Go's net/http, 200", plain.Addr, plain)}
}

func checkEndpoint(name, addr string, server *harness.Server) endpoint {
	client := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: *endpointClients}}
	return endpoint{name, []*harness.Server{server}, func(ctx context.Context, _, key int) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/check?policy=user&key=%d", addr, key), nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusTooManyRequests {
			return fmt.Errorf("status %s", answer.Status)
		}
		return err
	}}
}
