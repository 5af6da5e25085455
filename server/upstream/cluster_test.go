package upstream

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startCluster runs a Redis Cluster of so many primaries, and as many replicas if that is wanted, until the test ends.
func startCluster(t *testing.T, primaries int, replicas bool) []*redisServer {
	t.Helper()
	count := primaries
	if replicas {
		count *= 2
	}
	nodes := make([]*redisServer, count)
	for i := range nodes {
		nodes[i] = launchRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", strconv.Itoa(freePort(t)),
			"--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no")
	}
	ids := make([]string, count)
	for i, node := range nodes {
		node.await(t)
		ids[i] = node.must(t, "CLUSTER", "MYID").text
	}
	for i, node := range nodes[:primaries] {
		node.must(t, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*Slots/primaries), strconv.Itoa((i+1)*Slots/primaries-1))
		node.must(t, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for i, node := range nodes {
		for _, other := range nodes[:i] {
			meet(t, other, node) // each to each: gossip alone takes seconds
		}
	}
	for i, node := range nodes[primaries:] {
		eventually(t, "the replica knows its primary", func() bool { return !node.ask("CLUSTER", "REPLICATE", ids[i]).isError() })
	}
	for _, node := range nodes {
		eventually(t, "the cluster agrees", func() bool {
			shards := node.must(t, "CLUSTER", "SLOTS").list
			for _, shard := range shards {
				if replicas && len(shard.list) < 4 {
					return false
				}
			}
			return len(shards) == primaries && strings.Contains(node.must(t, "CLUSTER", "INFO").text, "cluster_state:ok")
		})
	}
	for _, node := range nodes[primaries:] {
		eventually(t, "the replica follows", func() bool {
			return strings.Contains(node.must(t, "INFO", "replication").text, "master_link_status:up")
		})
	}
	return nodes
}

// meet joins a node to a cluster.
func meet(t *testing.T, member, joining *redisServer) {
	t.Helper()
	bus := joining.must(t, "CONFIG", "GET", "cluster-port").list[1].text
	member.must(t, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(joining.port), bus)
}

// writers add to numbers of random keys until they are stopped, by INCRs and by a script of which several calls may be one command, and hold what
// the servers have counted against the answers.
type writers struct {
	u       *Upstream
	script  *Script
	keys    []string
	passed  []atomic.Int64 // by key
	unsure  []atomic.Int64
	failed  atomic.Int64
	other   sync.Map // other replies, and failures by text
	latest  atomic.Int64
	stopped atomic.Bool
	running sync.WaitGroup
}

var writersStarted atomic.Int64

func startWriters(u *Upstream, count, keys int) *writers {
	prefix := writersStarted.Add(1)
	w := &writers{u: u, script: adding(), passed: make([]atomic.Int64, keys), unsure: make([]atomic.Int64, keys)}
	for i := range keys {
		w.keys = append(w.keys, fmt.Sprintf("counter%d:%d", prefix, i))
	}
	for range count {
		w.running.Go(w.write)
	}
	return w
}

// writesTogether is how many calls a writer sends at once, at most.
const writesTogether = 4

func (w *writers) write() {
	for !w.stopped.Load() {
		sent := map[*pending]int{}
		for range 1 + rand.IntN(writesTogether) {
			i := rand.IntN(len(w.keys))
			p := newCall("INCR", w.keys[i])
			if rand.IntN(2) == 0 {
				p = add(w.script, w.keys[i], 1)
			}
			p.sentAt = time.Now()
			sent[p] = i
			w.u.Send(&p.Call)
		}
		w.u.Flush()
		pause := 100 * time.Microsecond // leaves the processors to the nodes, for which the tests wait
		for p, i := range sent {
			if !w.hear(p, i) {
				pause = time.Millisecond
			}
		}
		time.Sleep(pause)
	}
}

// hear takes the answer of a call for a key, and reports whether it has passed.
func (w *writers) hear(p *pending, key int) bool {
	r := <-p.done
	if late := time.Since(start).Nanoseconds() - p.Deadline; late > w.latest.Load() {
		w.latest.Store(late)
	}
	switch {
	case r.failure == nil && r.reply[0] == ':':
		w.passed[key].Add(1)
		return true
	case r.failure == nil:
		w.other.Store(r.reply, true)
		return true
	case r.failure.mayHaveRun():
		w.unsure[key].Add(1)
	case r.failure.Kind != Resting:
		w.other.Store(r.failure.Error(), true)
	}
	w.failed.Add(1)
	return false
}

// stop ends the writers, and sees that each key was counted as often as the answers say: no call has run twice, and none that failed for sure
// has run.
func (w *writers) stop(t *testing.T) (passed, unsure int64) {
	t.Helper()
	w.stopped.Store(true)
	w.running.Wait()
	for i, key := range w.keys {
		var n int64
		eventually(t, "the counter can be read", func() bool {
			r := do(t, w.u, "GET", key)
			if r.failure != nil || r.reply[0] != '$' {
				return false
			}
			v, _ := parseValue([]byte(r.reply))
			n = v.number()
			return true
		})
		require.LessOrEqual(t, n, w.passed[i].Load()+w.unsure[i].Load(), "%s has run more often than it was sent", key)
		passed += w.passed[i].Load()
		unsure += w.unsure[i].Load()
	}
	return passed, unsure
}

// complete sees besides that nothing that was answered was forgotten, which failovers may.
func (w *writers) complete(t *testing.T) {
	t.Helper()
	for i, key := range w.keys {
		v, _ := parseValue([]byte(do(t, w.u, "GET", key).reply))
		require.GreaterOrEqual(t, v.number(), w.passed[i].Load(), key)
	}
}

func (w *writers) others() (list []string) {
	w.other.Range(func(key, _ any) bool {
		list = append(list, key.(string))
		return true
	})
	return list
}

func TestCluster(t *testing.T) {
	t.Parallel() // it waits for the nodes most of the time, as the next two do
	nodes := startCluster(t, 3, true)
	u := started(t, Config{Addrs: []string{nodes[5].addr}, Timeout: 2 * time.Second, Rest: 300 * time.Millisecond}) // a replica tells of the topology too
	require.True(t, u.Cluster())
	for i := range 3 {
		require.Equal(t, nodes[i].addr, do(t, u, "GET", keyOf(i, 3)).node)
	}
	require.Contains(t, do(t, u, "MSET", keyOf(0, 3), "1", keyOf(1, 3), "2").reply, "-CROSSSLOT")
	roles := map[string]int{}
	for _, n := range u.Status().Nodes {
		roles[n.Role]++
	}
	require.Equal(t, map[string]int{"primary": 3, "replica": 3}, roles)

	t.Run("failover by hand", func(t *testing.T) {
		w := startWriters(u, 8, 30)
		require.Equal(t, "OK", nodes[3].must(t, "CLUSTER", "FAILOVER").text)
		eventually(t, "the replica is used", func() bool { return do(t, u, "INCR", keyOf(0, 3)).node == nodes[3].addr })
		w.stop(t)
		require.Empty(t, w.others())
	})
	t.Run("kill -9 of a primary", func(t *testing.T) {
		w := startWriters(u, 8, 30)
		nodes[1].kill()
		eventually(t, "the replica is used", func() bool {
			r := do(t, u, "INCR", keyOf(1, 3))
			return r.failure == nil && r.node == nodes[4].addr
		})
		passed, unsure := w.stop(t)
		t.Logf("%d passed, %d may have, %d failed: %v", passed, unsure, w.failed.Load(), w.others())
		require.Less(t, w.latest.Load(), int64(10*time.Second), "answers come by the deadline, but for how busy the machine is")
	})
}

// TestSlotsMove: no error reaches a caller while slots with keys move from one node to another and back, the first ones to a node that had
// none, and each call runs exactly once.
func TestSlotsMove(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t, 2, false)
	fresh := launchRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", strconv.Itoa(freePort(t)),
		"--cluster-allow-replica-migration", "no")
	fresh.await(t)
	meet(t, nodes[0], fresh)
	all := []*redisServer{nodes[0], nodes[1], fresh}
	ids := make([]string, len(all))
	for i, node := range all {
		ids[i] = node.must(t, "CLUSTER", "MYID").text
		eventually(t, "all know each other", func() bool { return strings.Count(node.must(t, "CLUSTER", "NODES").text, "connected") == 3 })
	}
	eventually(t, "the new node takes part", func() bool { return strings.Contains(fresh.must(t, "CLUSTER", "INFO").text, "cluster_state:ok") })
	u := started(t, Config{Addrs: []string{nodes[0].addr, nodes[1].addr}})
	const keys = 40
	w := startWriters(u, 8, keys)
	slots := map[int]int{} // and the node that has them
	for _, key := range w.keys {
		slot := int(Slot([]byte(key)))
		slots[slot] = slot * 2 / Slots
	}
	for _, to := range []int{2, 0, 2, 1} {
		looks := 0
		eventually(t, "all agree on who has which slot", func() bool {
			if looks++; looks%looksPerReminder == 0 {
				remind(all, ids, slots)
			}
			return agree(t, all)
		})
		for slot, from := range slots {
			if from != to {
				moveSlot(t, all[from], all[to], ids[from], ids[to], slot, all)
				slots[slot] = to
			}
		}
	}
	passed, unsure := w.stop(t)
	require.Empty(t, w.others())
	require.Zero(t, w.failed.Load())
	require.Zero(t, unsure)
	w.complete(t)
	s := u.Status()
	t.Logf("%d calls passed with %d redirects and %d looks at the topology", passed, s.Redirects, s.Looks)
	require.Positive(t, s.Redirects)
}

// looksPerReminder is how often nodes are asked whether they agree until they are told once more.
const looksPerReminder = 50

// remind tells all nodes who has which slot, as redis-cli --cluster fix does: two that have taken slots in the same epoch may each know of other owners for
// good.
func remind(nodes []*redisServer, ids []string, slots map[int]int) {
	for slot, owner := range slots {
		for _, node := range nodes {
			_ = node.ask("CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", ids[owner])
		}
	}
}

// agree reports whether all nodes know the same of each other: epochs and slots. A node that takes a slot before it has heard of the last
// epoch may lose it again to the node that had it.
func agree(t *testing.T, nodes []*redisServer) bool {
	t.Helper()
	var first []string
	for _, node := range nodes {
		var known []string
		for line := range strings.Lines(node.must(t, "CLUSTER", "NODES").text) {
			const epoch, link, slots = 6, 7, 8
			fields := strings.Fields(line)
			known = append(known, fmt.Sprint(fields[0], fields[epoch], fields[link], fields[slots:]))
		}
		slices.Sort(known)
		if first == nil {
			first = known
		}
		if !slices.Equal(first, known) {
			return false
		}
	}
	return true
}

// moveSlot moves a slot as redis-cli --cluster reshard does.
func moveSlot(t *testing.T, from, to *redisServer, fromID, toID string, slot int, all []*redisServer) {
	t.Helper()
	number := strconv.Itoa(slot)
	to.must(t, "CLUSTER", "SETSLOT", number, "IMPORTING", fromID)
	from.must(t, "CLUSTER", "SETSLOT", number, "MIGRATING", toID)
	for {
		keys := from.must(t, "CLUSTER", "GETKEYSINSLOT", number, "10").list
		if len(keys) == 0 {
			break
		}
		migrate := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(to.port), "", "0", "5000", "KEYS"}
		for _, key := range keys {
			migrate = append(migrate, key.text)
		}
		from.must(t, migrate...)
	}
	to.must(t, "CLUSTER", "SETSLOT", number, "NODE", toID)
	from.must(t, "CLUSTER", "SETSLOT", number, "NODE", toID)
	for _, node := range all {
		if node != from && node != to {
			_ = node.ask("CLUSTER", "SETSLOT", number, "NODE", toID)
		}
	}
}

// TestClusterDown: that a cluster serves nothing is told, also by those who have sent no call, and that it serves again.
func TestClusterDown(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t, 3, false)
	for _, node := range nodes {
		node.must(t, "CONFIG", "SET", "cluster-require-full-coverage", "yes")
	}
	u := started(t, Config{Addrs: []string{nodes[0].addr, nodes[1].addr}})
	status := u.Status()
	require.Equal(t, StateUp, status.State())
	nodes[2].kill()
	eventually(t, "the upstream is down", func() bool {
		s := u.Status()
		return s.State() == StateDown && strings.Contains(s.Problem, "CLUSTERDOWN The cluster is down")
	})
	later := open(t, Config{Addrs: []string{nodes[0].addr, nodes[1].addr}})
	err := later.Start(t.Context())
	require.ErrorContains(t, err, "CLUSTERDOWN The cluster is down")
	require.False(t, IsLasting(err))
	require.True(t, later.Cluster())
	nodes[2].start(t)
	for _, u := range []*Upstream{u, later} {
		eventually(t, "the upstream is up", func() bool {
			s := u.Status()
			return s.State() == StateUp
		})
	}
}

// TestSentinel: the primary that a Sentinel names is used, and the one that takes its place.
func TestSentinel(t *testing.T) {
	t.Parallel()
	first := startRedis(t, "--requirepass", "secret", "--masterauth", "secret")
	second := startRedis(t, "--requirepass", "secret", "--masterauth", "secret", "--replicaof", "127.0.0.1", strconv.Itoa(first.port))
	sentinel := startSentinel(t, first)
	cfg := Config{Kind: Sentinel, Addrs: []string{"127.0.0.1:1", sentinel.addr}, Master: "mymaster", Password: "secret", Timeout: 2 * time.Second, Rest: 200 * time.Millisecond}
	u := started(t, cfg)
	require.False(t, u.Cluster())
	require.Equal(t, first.addr, do(t, u, "SET", "k", "v").node)

	wrong := cfg
	wrong.Master = "other"
	require.ErrorContains(t, open(t, wrong).Start(t.Context()), sentinel.addr+`: it knows no primary named "other"; SENTINEL MASTERS lists those that it knows`)

	eventually(t, "the Sentinel knows the replica", func() bool { return len(sentinel.must(t, "SENTINEL", "REPLICAS", "mymaster").list) == 1 })
	w := startWriters(u, 4, 10)
	eventually(t, "the failover begins", func() bool { return !sentinel.ask("SENTINEL", "FAILOVER", "mymaster").isError() })
	eventually(t, "the other one is used", func() bool {
		r := do(t, u, "SET", "k", "v")
		return r.failure == nil && r.node == second.addr
	})
	w.stop(t)
	for _, reply := range w.others() {
		require.True(t, strings.HasPrefix(reply, "UPSTREAM "), reply)
	}
}

func startSentinel(t *testing.T, primary *redisServer) *redisServer {
	t.Helper()
	port := freePort(t)
	config := t.TempDir() + "/sentinel.conf"
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 %d 1\nsentinel auth-pass mymaster secret\n"+
		"sentinel down-after-milliseconds mymaster 1000\nsentinel failover-timeout mymaster 5000\n", port, primary.port)
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	s := &redisServer{port: port, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), args: []string{"redis-server", config, "--sentinel"}}
	s.start(t)
	t.Cleanup(s.kill)
	s.await(t)
	return s
}
