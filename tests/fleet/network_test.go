package fleet

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// proxies stand before the nodes of a cluster, in their order.
type proxies []*toxiproxy.Proxy

// startProxies puts a proxy before each node. What the nodes say of themselves leads past it, so a gateway is told by flags where they are.
func startProxies(t *testing.T, cluster *harness.Cluster) (p proxies, url string, flags []string) {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	var addrs []string
	for i, node := range cluster.Nodes {
		proxy := toxiproxy.NewProxy(server, fmt.Sprint(i), "127.0.0.1:0", node.Addr)
		require.NoError(t, proxy.Start())
		t.Cleanup(proxy.Stop)
		p = append(p, proxy)
		addrs = append(addrs, proxy.Listen)
		flags = append(flags, "--upstream-map", node.Addr+" "+proxy.Listen)
	}
	return p, "redis://" + strings.Join(addrs, ","), flags
}

// A trouble is what happens on the way to one node.
type trouble struct {
	name  string
	toxic string // as toxiproxy takes it
}

const toxicName = "trouble"

var troubles = []trouble{
	{"stall", `{"name": "trouble", "type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}}`},
	{"reset", `{"name": "trouble", "type": "reset_peer", "stream": "downstream", "attributes": {"timeout": 0}}`},
	{"delay", `{"name": "trouble", "type": "latency", "stream": "downstream", "attributes": {"latency": 200}}`},
}

// TestTroubledNetwork: while nothing comes from a node, or connections to it are reset, or its replies take four times as long as may be,
// callers have their answers in time, at most one in each rest waits for one, and the other nodes are not noticed to be troubled.
func TestTroubledNetwork(t *testing.T) {
	t.Parallel()
	cluster := harness.StartCluster(t, 3, 0, nodeTimeout)
	for _, what := range troubles {
		t.Run(what.name, func(t *testing.T) {
			t.Parallel()
			p, url, flags := startProxies(t, cluster)
			flags = append(flags, "--upstream-timeout-ms", ms(troubleTimeout()), "--upstream-rest-ms", ms(upstreamRest))
			gateway := harness.StartGateway(t, url, flags...)
			underTrouble(t, cluster, gateway, "net:"+what.name, func(on bool) {
				if on {
					_, err := p[0].Toxics.AddToxicJson(strings.NewReader(what.toxic))
					require.NoError(t, err)
				} else {
					require.NoError(t, p[0].Toxics.RemoveToxic(context.Background(), toxicName))
				}
			})
			agrees(t, gateway)
		})
	}
}

// troubleTimeout is the directive's default where figures count.
func troubleTimeout() time.Duration { return sized(150*time.Millisecond, 50*time.Millisecond) }

// underTrouble has a load on three nodes while the first is in trouble, and for some time afterwards.
func underTrouble(t *testing.T, cluster *harness.Cluster, gateway *harness.Server, prefix string, set func(on bool)) {
	t.Helper()
	l := startLoad(t, gateway.Addr, cluster.Primaries, 6, sized(300, 2000), func(shard, n int) string {
		return cluster.KeyIn(shard, prefix, n)
	})
	time.Sleep(sized(500*time.Millisecond, 3*time.Second))
	began := time.Since(l.began)
	set(true)
	time.Sleep(sized(1500*time.Millisecond, 10*time.Second))
	ended := time.Since(l.began)
	set(false)

	asks := harness.Dial(t, gateway.Addr)
	probe := cluster.KeyIn(0, prefix+":probe", 0)
	for deadline := time.Now().Add(failoverTimeout); asks.Ask("CL.THROTTLE", probe, "9", "1", "3600", "0").Kind == '-'; time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the node is not served again")
	}
	figure(t, "served again", time.Since(l.began)-ended, upstreamRest+500*time.Millisecond)
	time.Sleep(sized(200*time.Millisecond, time.Second))
	l.stop(t)
	l.requireChargedOnce(t)

	t.Logf("errors: %v", l.errors())
	troubled := l.took(began, ended, 0)
	require.NotEmpty(t, troubled)
	figure(t, "p99.9 of the troubled node", quantile(troubled, .999), troubleTimeout()+10*time.Millisecond)
	figure(t, "longest of the troubled node", quantile(troubled, 1), troubleTimeout()+50*time.Millisecond)
	before, during := l.took(began/2, began, 1, 2), l.took(began, ended, 1, 2) // and not the connections' first calls
	figure(t, "p99 of the others above what it was", quantile(during, .99)-quantile(before, .99), 5*time.Millisecond)
	figure(t, "times that one caller waited", l.waits(0, began, ended), int((ended-began)/upstreamRest)+2)
}

// waits is how often that caller of a shard waited for an answer until its time was over who did so most.
func (l *load) waits(shard int, from, to time.Duration) (most int) {
	for _, c := range l.callers {
		n := 0
		for _, made := range c.calls {
			if c.shard == shard && made.at >= from && made.at < to && made.took > troubleTimeout()/2 {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// TestStalledNode: a node whose process stands still is left alone, and callers of the others do not notice.
func TestStalledNode(t *testing.T) {
	t.Parallel()
	cluster := harness.StartCluster(t, 3, 0, nodeTimeout)
	gateway := harness.StartGateway(t, cluster.URL(), "--upstream-timeout-ms", ms(troubleTimeout()), "--upstream-rest-ms", ms(upstreamRest))
	underTrouble(t, cluster, gateway, "stalled", func(on bool) {
		if on {
			require.NoError(t, cluster.Nodes[0].Stall())
		} else {
			require.NoError(t, cluster.Nodes[0].Resume())
		}
	})
	agrees(t, gateway)
}
