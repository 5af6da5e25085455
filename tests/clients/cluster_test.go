package clients

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// emulated has a server answer clients in cluster mode.
var emulated = []string{"--cluster-enabled", "emulated"}

// TestClusterClients runs go-redis's client in cluster mode: keys of all slots, pipelines and transactions, scripts, and a limiter that
// admits exactly its limit.
func TestClusterClients(t *testing.T) {
	t.Parallel()
	server := harness.Start(t, emulated...)
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		t.Run("RESP"+strconv.Itoa(protocol), func(t *testing.T) {
			harness.Dial(t, server.Addr).Do("FLUSHALL")
			client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{server.Addr}, Protocol: protocol, PoolSize: workers, PoolTimeout: time.Minute})
			defer func() { _ = client.Close() }()
			require.NoError(t, client.Ping(ctx).Err())
			_, err := client.Pipelined(ctx, func(p goredis.Pipeliner) error {
				for i := range 1000 {
					p.Set(ctx, "k"+strconv.Itoa(i), i, time.Minute)
				}
				return nil
			})
			require.NoError(t, err)
			for i := range 100 {
				got, err := client.Get(ctx, "k"+strconv.Itoa(i)).Int()
				require.NoError(t, err)
				require.Equal(t, i, got)
			}
			require.EqualValues(t, 1000, client.DBSize(ctx).Val())
			replies, err := client.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				p.Incr(ctx, "{tag}n")
				p.Expire(ctx, "{tag}n", time.Minute)
				return nil
			})
			require.NoError(t, err)
			require.Len(t, replies, 2)
			script := goredis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
			require.Equal(t, 7, must(script.Run(ctx, client, []string{"scripted"}, 7).Int()))
			require.NoError(t, client.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error { return node.Ping(ctx).Err() }))
			subscriber := client.Subscribe(ctx, "news")
			defer func() { _ = subscriber.Close() }()
			_, err = subscriber.Receive(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 1, client.Publish(ctx, "news", "hello").Val())

			var admitted atomic.Int64
			var group sync.WaitGroup
			failures := make(chan error, workers)
			for range workers {
				group.Go(func() {
					for range 100 {
						verdict, err := client.Do(ctx, "RL.GCRA", "user", "50", "1", "1d").Int64Slice()
						if err != nil {
							failures <- err
							return
						}
						if verdict[0] == 0 {
							admitted.Add(1)
						}
					}
				})
			}
			group.Wait()
			close(failures)
			for err := range failures {
				require.NoError(t, err)
			}
			require.EqualValues(t, 50, admitted.Load())
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ofOneNode are replies of a cluster of one node without what differs from one to another.
type ofOneNode struct {
	id, port string
	varies   *regexp.Regexp
}

func newOfOneNode(t *testing.T, c *harness.Client, port int) ofOneNode {
	return ofOneNode{c.Ask("CLUSTER", "MYID").Text, strconv.Itoa(port), regexp.MustCompile(`@\d+|(epoch|messages_\w+|update_\w+|known_nodes):\d+|(myself,master - 0) \d+ \d+`)}
}

func (o ofOneNode) plain(v harness.Value) harness.Value {
	v.Text = strings.ReplaceAll(strings.ReplaceAll(v.Text, o.id, "ID"), o.port, "PORT")
	v.Text = o.varies.ReplaceAllString(v.Text, "$1$2 VARIES")
	for i := range v.Items {
		v.Items[i] = o.plain(v.Items[i])
	}
	return v
}

// TestClusterOfOne compares what clients in cluster mode ask for with what a Redis Cluster of one node answers.
func TestClusterOfOne(t *testing.T) {
	t.Parallel()
	theirs := harness.StartCluster(t, 1, 0, 5*time.Second).Nodes[0]
	ours := harness.Start(t, emulated...)
	for _, protocol := range []string{"2", "3"} {
		h, c := harness.Dial(t, ours.Addr), harness.Dial(t, theirs.Addr)
		h.Ask("HELLO", protocol)
		c.Ask("HELLO", protocol)
		mine, other := newOfOneNode(t, h, ours.Port), newOfOneNode(t, c, theirs.Port)
		both := func(words ...string) {
			t.Helper()
			require.Equal(t, other.plain(c.Ask(words...)).Wire(), mine.plain(h.Ask(words...)).Wire(), "%q", words)
		}
		for _, words := range [][]string{
			{"CLUSTER", "SLOTS"}, {"CLUSTER", "NODES"}, {"CLUSTER", "REPLICAS", "x"}, {"CLUSTER", "COUNT-FAILURE-REPORTS", "x"}, {"CLUSTER", "LINKS"},
			{"CLUSTER", "KEYSLOT", "foo"}, {"CLUSTER", "KEYSLOT", "a{foo}b"}, {"CLUSTER", "KEYSLOT", ""}, {"CLUSTER", "KEYSLOT"},
			{"READONLY"}, {"READWRITE"}, {"ASKING"}, {"ASKING", "x"}, {"CLUSTER", "NOSUCH"}, {"CLUSTER"},
			{"SET", "foo", "1"}, {"SET", "{foo}2", "1"}, {"CLUSTER", "COUNTKEYSINSLOT", "12182"}, {"CLUSTER", "GETKEYSINSLOT", "12182", "0"},
			{"CLUSTER", "COUNTKEYSINSLOT", "16384"}, {"CLUSTER", "COUNTKEYSINSLOT", "-1"}, {"CLUSTER", "COUNTKEYSINSLOT", "x"}, {"CLUSTER", "COUNTKEYSINSLOT", "1"},
			{"CLUSTER", "GETKEYSINSLOT", "1", "-1"}, {"CLUSTER", "GETKEYSINSLOT", "16384", "1"}, {"CLUSTER", "GETKEYSINSLOT", "x", "1"}, {"CLUSTER", "GETKEYSINSLOT", "1", "x"},
			{"INFO", "cluster"},
		} {
			both(words...)
		}
		require.Equal(t, c.Ask("CLUSTER", "GETKEYSINSLOT", "12182", "9").Sorted(false).Wire(), h.Ask("CLUSTER", "GETKEYSINSLOT", "12182", "9").Sorted(false).Wire())
		require.Len(t, h.Ask("CLUSTER", "GETKEYSINSLOT", "12182", "1").Items, 1)
		require.Equal(t, fieldNames(c.Ask("CLUSTER", "INFO").Text, "messages"), fieldNames(h.Ask("CLUSTER", "INFO").Text, "messages"))
		shard, otherShard := mine.plain(h.Ask("CLUSTER", "SHARDS")), other.plain(c.Ask("CLUSTER", "SHARDS"))
		sameOffset(&shard, "0")
		sameOffset(&otherShard, "0")
		require.Equal(t, otherShard.Wire(), shard.Wire())
		require.Equal(t, c.Ask("CLUSTER", "REPLICAS", other.id).Wire(), h.Ask("CLUSTER", "REPLICAS", mine.id).Wire())
		require.Contains(t, string(h.Do("HELLO")), "\r\ncluster\r\n")
		require.Contains(t, h.Ask("INFO", "server").Text, "redis_mode:cluster\r\n")
		require.Contains(t, string(h.Do("CLUSTER", "ADDSLOTS", "1")), "-ERR CLUSTER ADDSLOTS is not served: cluster-enabled is emulated")
		require.Contains(t, h.Ask("CLUSTER", "HELP").Items[0].Text, "CLUSTER <subcommand>")
	}
	// Keys of several slots go together.
	h := harness.Dial(t, ours.Addr)
	require.Equal(t, "+OK\r\n", string(h.Do("MSET", "a", "1", "b", "2", "c", "3")))
	require.Equal(t, "*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n", string(h.Do("MGET", "a", "b", "c")))
}

// fieldNames are the names of lines with a colon, but for those that contain a word.
func fieldNames(text, but string) (names []string) {
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.Contains(name, but) {
			names = append(names, name)
		}
	}
	return names
}

// sameOffset gives all replication offsets in a reply one value.
func sameOffset(v *harness.Value, offset string) {
	for i := range v.Items {
		if i > 0 && v.Items[i-1].Text == "replication-offset" {
			v.Items[i].Text = offset
		}
		sameOffset(&v.Items[i], offset)
	}
}

// TestClusterAnnounced: clients are told what a server is to announce, and otherwise where they have found it.
func TestClusterAnnounced(t *testing.T) {
	t.Parallel()
	server := harness.Start(t, append(emulated, "--cluster-announce-ip", "10.0.0.9", "--cluster-announce-port", "7000", "--cluster-announce-hostname", "limits.example")...)
	c := harness.Dial(t, server.Addr)
	endpoint := func() (string, string, []string) {
		node := c.Ask("CLUSTER", "SLOTS").Items[0].Items[2]
		return node.Items[0].Wire(), node.Items[1].Text, node.Items[3].Strings()
	}
	at, port, more := endpoint()
	require.Equal(t, []any{"$8\r\n10.0.0.9\r\n", "7000", []string{"hostname", "limits.example"}}, []any{at, port, more})
	require.Contains(t, c.Ask("CLUSTER", "NODES").Text, " 10.0.0.9:7000@0,limits.example myself,master - 0 0 1 connected 0-16383\n")
	c.Ask("CONFIG", "SET", "cluster-preferred-endpoint-type", "hostname")
	at, _, more = endpoint()
	require.Equal(t, []any{"$14\r\nlimits.example\r\n", []string{"ip", "10.0.0.9"}}, []any{at, more})
	c.Ask("CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint")
	at, _, _ = endpoint()
	require.Equal(t, "$-1\r\n", at)
	require.Contains(t, string(c.Do("CONFIG", "SET", "cluster-announce-ip", "a\nb")), "-ERR CONFIG SET failed")
	require.Contains(t, string(c.Do("CONFIG", "SET", "cluster-enabled", "no")), "can't set immutable config")

	plain := harness.Dial(t, harness.Start(t).Addr)
	for _, words := range [][]string{{"CLUSTER", "SLOTS"}, {"CLUSTER", "HELP"}, {"READONLY"}, {"READWRITE"}, {"ASKING"}} {
		require.Equal(t, "-ERR This instance has cluster support disabled\r\n", string(plain.Do(words...)), words)
	}
}

// TestClusterReplica: a replica sends clients on to its primary, unless they have said that they only read.
func TestClusterReplica(t *testing.T) {
	t.Parallel()
	primary := harness.StartReference(t, "--repl-diskless-sync-delay", "0")
	p := harness.Dial(t, primary.Addr)
	p.Ask("SET", "foo", "1")
	replica := harness.Start(t, append(emulated, "--replicaof", "127.0.0.1 "+strconv.Itoa(primary.Port))...)
	r := harness.Dial(t, replica.Addr)
	harness.AwaitSame(t, p, r)
	moved := fmt.Sprintf("-MOVED 12182 %s\r\n", primary.Addr)
	for _, words := range [][]string{{"GET", "foo"}, {"SET", "foo", "2"}, {"RL.GCRA", "foo", "1", "1", "1s", "PEEK"}, {"EVAL", "return 1", "1", "foo"}, {"MGET", "foo", "bar"}} {
		require.Equal(t, moved, string(r.Do(words...)), words)
	}
	require.Equal(t, "+PONG\r\n", string(r.Do("PING")))
	require.Equal(t, ":1\r\n", string(r.Do("DBSIZE")))
	require.Equal(t, ":0\r\n", string(r.Do("SPUBLISH", "foo", "m")))
	require.Equal(t, "*3\r\n$10\r\nssubscribe\r\n$3\r\nfoo\r\n:1\r\n", string(r.Do("SSUBSCRIBE", "foo")))
	require.Equal(t, "*3\r\n$12\r\nsunsubscribe\r\n$3\r\nfoo\r\n:0\r\n", string(r.Do("SUNSUBSCRIBE", "foo")))
	r.Ask("MULTI")
	require.Equal(t, moved, string(r.Do("GET", "foo")))
	require.Contains(t, string(r.Do("EXEC")), "-EXECABORT")
	require.Equal(t, "+OK\r\n", string(r.Do("READONLY")))
	require.Equal(t, "$1\r\n1\r\n", string(r.Do("GET", "foo")))
	require.Equal(t, moved, string(r.Do("SET", "foo", "2")))
	require.Equal(t, "+OK\r\n", string(r.Do("READWRITE")))
	require.Equal(t, moved, string(r.Do("GET", "foo")))

	shard := r.Ask("CLUSTER", "SLOTS").Items[0].Items
	require.Len(t, shard, 4)
	require.Equal(t, strconv.Itoa(primary.Port), shard[2].Items[1].Text)
	require.Equal(t, strconv.Itoa(replica.Port), shard[3].Items[1].Text)
	require.Regexp(t, ` 127\.0\.0\.1:\d+@0 master - 0 \d+ 1 connected 0-16383\n[0-9a-f]{40} 127\.0\.0\.1:\d+@0 myself,slave [0-9a-f]{40} 0 0 1 connected\n$`, r.Ask("CLUSTER", "NODES").Text)
	require.Len(t, r.Ask("CLUSTER", "REPLICAS", shard[2].Items[2].Text).Items, 1)
	require.Equal(t, "-ERR The specified node is not a master\r\n", string(r.Do("CLUSTER", "REPLICAS", r.Ask("CLUSTER", "MYID").Text)))

	// A client that knows the replica alone finds the primary.
	ctx := context.Background()
	client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{replica.Addr}})
	defer func() { _ = client.Close() }()
	require.NoError(t, client.Set(ctx, "foo", "3", 0).Err())
	require.Equal(t, "3", p.Ask("GET", "foo").Text)
	require.True(t, errors.Is(client.Get(ctx, "none").Err(), goredis.Nil))

	require.Equal(t, "+OK\r\n", string(r.Do("REPLICAOF", "NO", "ONE")))
	require.Equal(t, "+OK\r\n", string(r.Do("SET", "foo", "4")))
}
