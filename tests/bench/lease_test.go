package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
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
	leaseTime      = flag.Duration("lease", 0, "measure what decisions cost with leases, each way for so long in each round")
	leaseRounds    = flag.Int("lease.rounds", 5, "rounds, in each of which all ways take turns")
	gubernatorPath = flag.String("lease.gubernator", "", "program of gubernator to measure as well; see `make cluster-bench`")
)

// The limit of the key that most calls are about: so many at once, and so many a second.
const (
	hotBurst = 20_000
	hotRate  = 20_000
)

// hot is the number of that key. Others are from 0 to clusterKeys - 1.
const hot = -1

// An asker is a connection of one client to a limiter.
type asker interface {
	// ask asks about one call of each of the keys at once, and sets for each whether it is allowed.
	ask(keys []int, allowed []bool) error
}

// leaseWay is a way in which decisions on few keys can be had.
type leaseWay struct {
	way
	connect func(t *testing.T, client int) asker
	askers  []asker
	excess  float64 // calls of the hot key that the last run has admitted above its limit, in any window
}

// TestLeaseCosts measures, in one run in which they take turns, the processor time of a decision where one key has nearly all calls: by a
// headgate that keeps its state, by gateways with and without leases before a cluster of three, and by gubernator in its mode GLOBAL; and
// how far above the limit they let that key go. Without -lease it only shows that all of it works. The clients' own time does not count.
func TestLeaseCosts(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server has no leases")
	}
	length, rounds := *leaseTime, *leaseRounds
	loads := []struct{ share, clients, pipeline int }{{90, 50, 16}, {90, 200, 1}, {100, 50, 16}, {100, 200, 1}, {100, 1, 1}}
	if length == 0 {
		length, rounds, loads = 50*time.Millisecond, 1, loads[:1]
	}
	cluster := harness.StartCluster(t, 3, 0, 10*time.Second)
	ways := leaseWays(t, cluster)
	for _, shared := range loads {
		costs := make([][]cost, len(ways))
		excess := make([][]float64, len(ways))
		for _, w := range ways {
			w.share(shared.share)
			w.run(t, load{clients: shared.clients, pipeline: shared.pipeline, length: length / 4}) // until leases are as large as they get
		}
		for round := range rounds {
			for turn := range ways {
				i := (round + turn) % len(ways)
				costs[i] = append(costs[i], ways[i].measure(t, cluster, load{clients: shared.clients, pipeline: shared.pipeline, length: length}))
				excess[i] = append(excess[i], ways[i].excess)
			}
		}
		t.Logf("%d %% of the calls for one key of %d a second, %d clients, %d at once\n%s", shared.share, hotRate, shared.clients, shared.pipeline, leaseTable(ways, costs, excess))
	}
}

// leaseWays are the ways in the order of the table.
func leaseWays(t *testing.T, cluster *harness.Cluster) (ways []*leaseWay) {
	t.Helper()
	add := func(name string, servers []*harness.Server, cluster bool, connect func(t *testing.T, client int) asker) {
		ways = append(ways, &leaseWay{way: way{name: name, servers: servers, cluster: cluster}, connect: connect})
	}
	native := harness.Start(t)
	add("headgate", []*harness.Server{native}, false, byCell(native))
	add("headgate again", []*harness.Server{native}, false, byCell(native))
	for _, gateways := range []struct {
		name  string
		n     int
		lease string
	}{{"leasing gateway", 1, "yes"}, {"four leasing gateways", 4, "yes"}, {"four gateways", 4, "no"}} {
		var servers []*harness.Server
		for range gateways.n {
			servers = append(servers, harness.StartGateway(t, cluster.URL(), "--upstream-timeout-ms", "1000", "--upstream-lease", gateways.lease))
		}
		add(gateways.name, servers, true, byCell(servers...))
	}
	if *gubernatorPath != "" {
		server, addrs := startGubernators(t, 4)
		add("four gubernators", []*harness.Server{server}, false, func(_ *testing.T, client int) asker {
			return &gubernatorAsker{client: newGRPCClient(addrs[client%len(addrs)])}
		})
	}
	return ways
}

// share has the following runs ask about the hot key so many times in a hundred.
func (w *leaseWay) share(percent int) {
	w.way.run = func(t *testing.T, l load) (uint64, time.Duration) {
		t.Helper()
		for i := len(w.askers); i < l.clients; i++ {
			w.askers = append(w.askers, w.connect(t, i))
		}
		runs := make([]leaseRun, l.clients)
		var running sync.WaitGroup
		began := time.Now()
		for i := range runs {
			running.Go(func() {
				runs[i].work(w.askers[i], rand.New(rand.NewPCG(1, uint64(i))), percent, l.pipeline, began, l.length)
			})
		}
		running.Wait()
		var decisions uint64
		var took, admitted []time.Duration
		for i := range runs {
			require.NoError(t, runs[i].err)
			decisions += uint64(len(runs[i].took) * l.pipeline)
			took, admitted = append(took, runs[i].took...), append(admitted, runs[i].admitted...)
		}
		slices.Sort(took)
		w.excess = excessOf(admitted)
		return decisions, took[len(took)/2]
	}
}

// leaseRun is what one client does in a run.
type leaseRun struct {
	took     []time.Duration // each batch of calls
	admitted []time.Duration // when calls of the hot key were known to be admitted, from the start of the run
	err      error
}

func (r *leaseRun) work(a asker, random *rand.Rand, percent, pipeline int, began time.Time, length time.Duration) {
	keys, allowed := make([]int, pipeline), make([]bool, pipeline)
	for last := time.Since(began); last < length; {
		for i := range keys {
			if keys[i] = hot; random.IntN(100) >= percent {
				keys[i] = random.IntN(clusterKeys)
			}
		}
		if r.err = a.ask(keys, allowed); r.err != nil {
			return
		}
		now := time.Since(began)
		for i, key := range keys {
			if key == hot && allowed[i] {
				r.admitted = append(r.admitted, now)
			}
		}
		r.took = append(r.took, now-last)
		last = now
	}
}

// excessOf is by how much calls that were admitted at these times exceed the hot key's limit in the window where they do so most. A reply
// takes a while to come, so a few calls too many may be the measurement's.
func excessOf(admitted []time.Duration) float64 {
	slices.Sort(admitted)
	worst, least := 0.0, 0.0
	for i, at := range admitted {
		level := float64(i) - hotRate*at.Seconds()
		if least = min(least, level); i == 0 {
			least = level
		}
		worst = max(worst, level+1-least)
	}
	return worst - hotBurst
}

func TestExcessOf(t *testing.T) {
	require.Equal(t, float64(-hotBurst), excessOf(nil))
	require.Equal(t, float64(1-hotBurst), excessOf([]time.Duration{time.Second}))
	even := make([]time.Duration, 3*hotBurst)
	for i := range even {
		even[i] = 5*time.Second + time.Duration(i)*time.Second/hotRate
	}
	require.InDelta(t, 1-hotBurst, excessOf(slices.Clone(even)), 1e-6, "a call whenever one is due")
	require.InDelta(t, 1, excessOf(append(make([]time.Duration, hotBurst), even...)), hotBurst, "a burst long before")
	require.InDelta(t, 7, excessOf(make([]time.Duration, hotBurst+7)), 1e-6, "a burst of seven too many")
}

// cellAsker asks CL.THROTTLE.
type cellAsker struct {
	conn    net.Conn
	replies *bufio.Reader
	request []byte
}

// byCell connects clients to the servers in turn.
func byCell(servers ...*harness.Server) func(*testing.T, int) asker {
	return func(t *testing.T, client int) asker {
		t.Helper()
		conn, err := net.Dial("tcp", servers[client%len(servers)].Addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return &cellAsker{conn: conn, replies: bufio.NewReader(conn)}
	}
}

func (a *cellAsker) ask(keys []int, allowed []bool) error {
	a.request = a.request[:0]
	for _, key := range keys {
		name := leaseKey(key)
		a.request = fmt.Appendf(a.request, "*5\r\n$11\r\nCL.THROTTLE\r\n$%d\r\n%s\r\n$5\r\n%d\r\n$5\r\n%d\r\n$1\r\n1\r\n", len(name), name, hotBurst-1, hotRate)
	}
	if _, err := a.conn.Write(a.request); err != nil {
		return err
	}
	for i := range keys {
		const lines = 6
		for line := range lines {
			text, err := a.replies.ReadSlice('\n')
			switch {
			case err != nil:
				return err
			case line == 0 && text[0] != '*':
				return errors.New(string(text))
			case line == 1:
				allowed[i] = text[1] == '0'
			}
		}
	}
	return nil
}

func leaseKey(key int) string { return "lease:" + strconv.Itoa(key) }

// startGubernators runs so many nodes that know each other, in one process.
func startGubernators(t *testing.T, n int) (server *harness.Server, addrs []string) {
	t.Helper()
	for range n {
		addrs = append(addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(harness.FreePort(t))))
	}
	server = harness.StartOther(t, *gubernatorPath, func(port int) []string {
		addrs[0] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		return nil
	}, addrs...)
	client := newGRPCClient(server.Addr)
	require.Eventually(t, func() bool {
		reply, err := client.call(context.Background(), "pb.gubernator.V1/HealthCheck", nil)
		return err == nil && strings.Contains(string(reply), "\x07healthy")
	}, harness.ReplyTimeout, 100*time.Millisecond, "gubernator's nodes have not found each other")
	return server, addrs
}

// gubernatorAsker asks gubernator for leaky buckets that all of its nodes count by themselves and tell each other of.
type gubernatorAsker struct {
	client  *grpcClient
	message []byte
}

// Values of gubernator.proto.
const (
	leakyBucket = 1
	global      = 2
)

func (a *gubernatorAsker) ask(keys []int, allowed []bool) error {
	a.message = a.message[:0]
	for _, key := range keys {
		limit := append(protoBytes(1, "bench"), protoBytes(2, leaseKey(key))...)
		for _, field := range []struct{ number, value uint64 }{{3, 1}, {4, hotRate}, {5, 1000}, {6, leakyBucket}, {7, global}, {8, hotBurst}} {
			limit = binary.AppendUvarint(append(limit, byte(field.number<<3)), field.value)
		}
		a.message = append(a.message, protoBytes(1, string(limit))...)
	}
	reply, err := a.client.call(context.Background(), "pb.gubernator.V1/GetRateLimits", a.message)
	if err != nil {
		return err
	}
	for i := range keys {
		if len(reply) < 2 || reply[0] != 1<<3|2 {
			return fmt.Errorf("no answer to each call: %x", reply)
		}
		size, n := binary.Uvarint(reply[1:])
		answer := reply[1+n:][:size]
		if strings.Contains(string(answer), "error") {
			return errors.New(string(answer))
		}
		allowed[i] = len(answer) < 2 || answer[0] != 1<<3 || answer[1] == 0
		reply = reply[1+n:][size:]
	}
	return nil
}

// leaseTable writes the medians of what was measured, but the greatest excess of all rounds.
func leaseTable(ways []*leaseWay, costs [][]cost, excess [][]float64) string {
	var table strings.Builder
	table.WriteString("| way | a second | µs of servers | µs of the cluster's nodes | both | p50, µs | calls of nodes per decision | most above the limit, % of the burst |\n|---|---|---|---|---|---|---|---|\n")
	for i, w := range ways {
		of := mediansOf(costs[i])
		fmt.Fprintf(&table, "| %s | %s | %.2f | %.2f | %.2f | %.0f | %.4f | %.1f |\n", w.name,
			thousands(of(func(c cost) float64 { return float64(c.decisions) / c.seconds })),
			of(func(c cost) float64 { return c.perDecision(c.servers) }), of(func(c cost) float64 { return c.perDecision(c.nodes) }),
			of(func(c cost) float64 { return c.perDecision(c.servers + c.nodes) }), of(func(c cost) float64 { return float64(c.p50) / 1000 }),
			of(func(c cost) float64 { return c.asked / float64(c.decisions) }), slices.Max(excess[i])/hotBurst*100)
	}
	return table.String()
}
