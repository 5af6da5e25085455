package replicas

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestMoveWithoutAPause has twenty clients limit by redis_rate on a redis-server all the while, until they are on headgate: for each key exactly as
// much is admitted as there is, and there are no errors but those of connections that the old server has closed.
func TestMoveWithoutAPause(t *testing.T) {
	t.Parallel()
	const (
		clients = 20
		keys    = 4
		burst   = 6000
		between = 5 * time.Millisecond // from one call of a client to its next, until it has moved: there is to be something left by then
	)
	primary := harness.StartReference(t, diskless...)
	p := harness.Dial(t, primary.Addr)
	fill(p)
	replica := harness.Start(t, "--appendonly", "yes")
	r := harness.Dial(t, replica.Addr)

	var target atomic.Pointer[string] // where clients connect, as a name in DNS would say
	target.Store(&primary.Addr)
	var admitted, unknown [keys]atomic.Int64 // calls that passed; those of which nobody knows, since the connection was closed
	var before, after, failed atomic.Int64   // admitted on the one and on the other
	var moved atomic.Bool
	stop := make(chan struct{})
	failures := make(chan error, clients)
	var group sync.WaitGroup
	for i := range clients {
		client := goredis.NewClient(&goredis.Options{
			Addr: "limits.example:6379", PoolSize: 1, MaxRetries: -1, ReadTimeout: wait,
			Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, *target.Load())
			},
		})
		t.Cleanup(func() { _ = client.Close() })
		limiter := redis_rate.NewLimiter(client)
		group.Go(func() {
			for n := i; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if !moved.Load() {
					time.Sleep(between)
				}
				key := n % keys
				result, err := limiter.Allow(context.Background(), "user"+strconv.Itoa(key), redis_rate.Limit{Rate: 1, Burst: burst, Period: time.Hour})
				switch {
				case err == nil && result.Allowed == 1:
					admitted[key].Add(1)
					if moved.Load() {
						after.Add(1)
					} else {
						before.Add(1)
					}
				case err == nil:
				case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
					unknown[key].Add(1)
					failed.Add(1)
				default:
					failures <- err
					return
				}
			}
		})
	}
	require.Equal(t, "+OK\r\n", string(r.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(primary.Port))))
	await(t, "the replica follows", func() bool { return r.Info("replication")["master_link_status"] == "up" })
	await(t, "clients limit", func() bool { return before.Load() > 20*clients })
	require.Equal(t, "+OK\r\n", string(p.Do("CLIENT", "PAUSE", "10000", "WRITE")))
	harness.AwaitSame(t, p, r)
	require.Equal(t, "0", r.Info("replication")["replica_failed_commands"])
	require.Equal(t, "+OK\r\n", string(r.Do("REPLICAOF", "NO", "ONE")))
	moved.Store(true)
	target.Store(&replica.Addr)
	_ = p.Send(harness.Command("SHUTDOWN", "NOSAVE"))
	await(t, "everything is admitted that there is", func() bool {
		for key := range keys {
			if admitted[key].Load()+unknown[key].Load() < burst {
				return false
			}
		}
		return true
	})
	time.Sleep(20 * between) // nothing more is
	close(stop)
	group.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	for key := range keys {
		require.LessOrEqual(t, admitted[key].Load(), int64(burst), "user%d", key)
		require.GreaterOrEqual(t, admitted[key].Load(), int64(burst)-unknown[key].Load(), "user%d", key)
	}
	require.Positive(t, before.Load())
	require.Positive(t, after.Load())
	require.LessOrEqual(t, failed.Load(), int64(clients), "one for each connection that was closed")
	require.False(t, strings.Contains(replica.Log(), `"level":"ERROR"`), replica.Log)
	t.Logf("%d admitted by redis-server, %d by headgate, %d connections closed", before.Load(), after.Load(), failed.Load())
}

// TestNodeOfACluster: a node of a Redis Cluster sends the keys that it has itself.
func TestNodeOfACluster(t *testing.T) {
	t.Parallel()
	cluster := harness.StartCluster(t, 2, 0, 10*time.Second)
	p := harness.Dial(t, cluster.Nodes[0].Addr)
	for i := range 100 {
		p.Ask("SET", cluster.KeyIn(0, "k", i), "v")
		harness.Dial(t, cluster.Nodes[1].Addr).Ask("SET", cluster.KeyIn(1, "k", i), "v")
	}
	replica := harness.Start(t, follow(cluster.Nodes[0].Port)...)
	r := harness.Dial(t, replica.Addr)
	harness.AwaitSame(t, p, r)
	require.Equal(t, ":100\r\n", string(r.Do("DBSIZE")))
	require.Equal(t, "$1\r\nv\r\n", string(r.Do("GET", cluster.KeyIn(0, "k", 7))))
	require.Equal(t, "$-1\r\n", string(r.Do("GET", cluster.KeyIn(1, "k", 7))))
}
