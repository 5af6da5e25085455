package fleet

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestAllNodesGone: all nodes die under many clients, and come back. Everybody is answered throughout, nobody is cut off, and neither while
// they are away nor when they are back do more connections come than a node needs.
func TestAllNodesGone(t *testing.T) {
	t.Parallel()
	const clients = 200
	away := sized(1500*time.Millisecond, 10*time.Second)
	cluster := harness.StartCluster(t, 3, 0, nodeTimeout)
	gateway := harness.StartGateway(t, cluster.URL(), "--upstream-timeout-ms", ms(upstreamTimeout()), "--upstream-rest-ms", "200")
	l := startLoad(t, gateway.Addr, cluster.Primaries, (clients+2)/3, sized(400, 2000), func(shard, n int) string {
		return cluster.KeyIn(shard, "gone", n)
	})
	time.Sleep(500 * time.Millisecond)

	var doors []*door
	for _, node := range cluster.Nodes {
		node.Kill()
		doors = append(doors, standIn(t, node.Addr))
	}
	time.Sleep(away)
	for i, d := range doors {
		d.close()
		figure(t, fmt.Sprintf("connections to node %d in a second while it was away", i), float64(d.knocks.Load())/away.Seconds(), 25)
		cluster.Restart(i)
	}
	back := time.Since(l.began)
	asks := harness.Dial(t, gateway.Addr)
	for shard := range cluster.Primaries {
		probe := cluster.KeyIn(shard, "gone:probe", 0)
		for deadline := time.Now().Add(failoverTimeout); asks.Ask("CL.THROTTLE", probe, "9", "1", "3600", "0").Kind == '-'; time.Sleep(10 * time.Millisecond) {
			require.True(t, time.Now().Before(deadline), "shard %d is not served again", shard)
		}
	}
	figure(t, "served again", time.Since(l.began)-back, 4*time.Second) // two of which a node waits itself before it serves
	time.Sleep(500 * time.Millisecond)
	l.stop(t)
	t.Logf("errors: %v", l.errors())
	require.NotEmpty(t, l.errors())
	l.requireChargedOnce(t)
	for i, node := range cluster.Nodes {
		var received int
		for line := range strings.Lines(harness.Dial(t, node.Addr).Ask("INFO", "stats").Text) {
			_, _ = fmt.Sscanf(line, "total_connections_received:%d", &received)
		}
		require.Positive(t, received)
		figure(t, fmt.Sprintf("connections to node %d since it is back", i), received, 50)
	}
	agrees(t, gateway)
}

// A door listens where a node was, counts who comes and sends everybody away.
type door struct {
	listener net.Listener
	knocks   atomic.Int64
}

func standIn(t *testing.T, addr string) *door {
	t.Helper()
	listener, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	d := &door{listener: listener}
	t.Cleanup(d.close)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			d.knocks.Add(1)
			_ = conn.Close()
		}
	}()
	return d
}

func (d *door) close() { _ = d.listener.Close() }
