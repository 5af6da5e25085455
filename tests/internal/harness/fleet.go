package harness

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Slots is how many hash slots a Redis Cluster has.
const Slots = 16384

// Limits of the fleets that tests start.
const (
	fleetTimeout = 30 * time.Second // until a cluster serves all slots, a replica has its copy, a sentinel knows both
	fleetLook    = 20 * time.Millisecond

	// Ports below those that Linux gives to outgoing connections, so that a server that was killed finds its own still free.
	lowPort, highPort = 12000, 32000
)

// StartGateway runs the program under test before an upstream, which is what its directive of that name takes.
func StartGateway(t testing.TB, upstream string, flags ...string) *Server {
	t.Helper()
	return Start(t, append([]string{"--upstream", upstream}, flags...)...)
}

// Cluster is a Redis Cluster of Debian's redis-servers on loopback. Its methods belong to the test's own goroutine, but for those that
// say otherwise.
type Cluster struct {
	Nodes       []*Server // the primaries first, in the order of their slots, then a replica of each, and again one of each
	NodeTimeout time.Duration
	Primaries   int // how many there were at the start

	t     testing.TB
	ids   []string
	flags [][]string // of each node
}

// StartCluster starts a cluster whose slots are spread evenly, and returns once all nodes serve and all replicas have their copy. It
// serves on without a shard that is gone, which takes nodeTimeout to be noticed.
func StartCluster(t testing.TB, primaries, replicas int, nodeTimeout time.Duration, flags ...string) *Cluster {
	t.Helper()
	var last error
	for range startAttempts {
		c := &Cluster{NodeTimeout: nodeTimeout, Primaries: primaries, t: t}
		if last = c.start(primaries*(1+replicas), flags); last == nil {
			c.waitServing()
			return c
		}
		for _, node := range c.Nodes {
			node.Kill()
		}
		if !portTaken(last) {
			break
		}
	}
	require.NoError(t, last)
	return nil
}

// start writes what each node would know of the others had they met, and runs them: that is faster than an introduction.
func (c *Cluster) start(nodes int, flags []string) error {
	ports, buses := make([]int, nodes), make([]int, nodes)
	for i := range nodes {
		ports[i], buses[i] = FreePort(c.t), FreePort(c.t)
		c.ids = append(c.ids, fmt.Sprintf("%040x", i+1))
	}
	for i := range nodes {
		var known strings.Builder
		for j := range nodes {
			role, primary, slots := "master", "-", ""
			if j >= c.Primaries {
				role, primary = "slave", c.ids[j%c.Primaries]
			} else {
				from, to := c.slotsAtStart(j)
				slots = fmt.Sprintf(" %d-%d", from, to-1)
			}
			if i == j {
				role = "myself," + role
			}
			fmt.Fprintf(&known, "%s 127.0.0.1:%d@%d %s %s 0 0 %d connected%s\n", c.ids[j], ports[j], buses[j], role, primary, j%c.Primaries+1, slots)
		}
		fmt.Fprintf(&known, "vars currentEpoch %d lastVoteEpoch 0\n", c.Primaries)
		dir := c.t.TempDir()
		require.NoError(c.t, os.WriteFile(filepath.Join(dir, "nodes.conf"), []byte(known.String()), 0o644))
		c.flags = append(c.flags, slices.Concat([]string{
			"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(buses[i]), "--cluster-config-file", "nodes.conf",
			"--cluster-node-timeout", strconv.FormatInt(c.NodeTimeout.Milliseconds(), 10),
			"--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "no",
			"--repl-diskless-sync-delay", "0", // a replica has its copy at once
		}, flags))
		node, err := startReferenceAt(c.t, ports[i], dir, c.flags[i])
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, node)
	}
	return nil
}

// slotsAtStart are the slots, from and up to, that a primary had at the start.
func (c *Cluster) slotsAtStart(primary int) (from, to int) {
	return primary * Slots / c.Primaries, (primary + 1) * Slots / c.Primaries
}

// Shard is the number, below Primaries, of the shard that a key was in at the start. It may be called from several goroutines.
func (c *Cluster) Shard(key string) int {
	slot := Slot(key)
	for shard := range c.Primaries {
		if _, to := c.slotsAtStart(shard); slot < to {
			return shard
		}
	}
	panic("a slot beyond the last")
}

// KeyIn returns a key that begins with a prefix and was in a shard at the start: the n-th, of those with that prefix. It may be called
// from several goroutines.
func (c *Cluster) KeyIn(shard int, prefix string, n int) string {
	for i := 0; ; i++ {
		key := prefix + ":" + strconv.Itoa(i)
		if c.Shard(key) != shard {
			continue
		}
		if n == 0 {
			return key
		}
		n--
	}
}

// Addrs are the nodes' addresses.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr
	}
	return addrs
}

// URL is the cluster as `upstream` takes it.
func (c *Cluster) URL() string { return "redis://" + strings.Join(c.Addrs(), ",") }

// ID is the name by which the cluster knows a node.
func (c *Cluster) ID(node int) string { return c.ids[node] }

// PrimaryOf is the number of the node that serves a shard's slots now, as another node of the cluster that is alive says. -1 if nobody does.
func (c *Cluster) PrimaryOf(shard int) int {
	c.t.Helper()
	from, _ := c.slotsAtStart(shard)
	for _, node := range c.Nodes {
		if !node.Alive() {
			continue
		}
		client, err := TryDial(c.t, node.Addr)
		if err != nil {
			continue
		}
		slots := client.Ask("CLUSTER", "SLOTS")
		client.Close()
		for _, entry := range slots.Items {
			first, _ := strconv.Atoi(entry.Items[0].Text)
			last, _ := strconv.Atoi(entry.Items[1].Text)
			if from < first || from > last {
				continue
			}
			if at := slices.Index(c.ids, entry.Items[2].Items[2].Text); c.Nodes[at].Alive() {
				return at
			}
		}
	}
	return -1
}

// Restart starts a node that was killed again, on the same ports and in the same directory, and does not wait for the cluster.
func (c *Cluster) Restart(node int) {
	c.t.Helper()
	old := c.Nodes[node]
	server, err := startReferenceAt(c.t, old.Port, old.Dir, c.flags[node])
	require.NoError(c.t, err)
	c.Nodes[node] = server
}

// WaitServing returns when every node that runs serves, agrees with the others on who has which slots, and, if it is a replica, has its copy.
func (c *Cluster) WaitServing() {
	c.t.Helper()
	c.waitServing()
}

func (c *Cluster) waitServing() {
	c.t.Helper()
	var missing string
	for deadline := time.Now().Add(fleetTimeout); time.Now().Before(deadline); time.Sleep(fleetLook) {
		missing = ""
		views := make(map[string]bool)
		for i, node := range c.Nodes {
			if !node.Alive() {
				continue
			}
			client := Dial(c.t, node.Addr)
			state, slots := client.Ask("CLUSTER", "INFO").Text, client.Ask("CLUSTER", "SLOTS")
			replication := client.Ask("INFO", "replication").Text
			client.Close()
			var view []string
			for _, entry := range slots.Items {
				view = append(view, entry.Items[0].Text+"-"+entry.Items[1].Text+" "+entry.Items[2].Items[2].Text)
			}
			slices.Sort(view)
			views[strings.Join(view, ",")] = true
			if !strings.Contains(state, "cluster_state:ok") || strings.Contains(replication, "master_link_status:down") {
				missing = fmt.Sprintf("node %d: %s\n%s", i, state, replication)
			}
		}
		if missing == "" && len(views) == 1 {
			return
		}
	}
	require.Fail(c.t, "the cluster does not serve", "%s", missing)
}

// A Mover moves slots between two nodes, as redis-cli --cluster reshard does. It belongs to one goroutine, the test's own or another.
type Mover struct {
	clients [2]*Client
	ids     [2]string
	ports   [2]string
	owner   [Slots]int // which of the two has a slot
}

// NewMover connects to two primaries.
func (c *Cluster) NewMover(one, other int) (*Mover, error) {
	m := &Mover{}
	for i, node := range [2]int{one, other} {
		client, err := TryDial(c.t, c.Nodes[node].Addr)
		if err != nil {
			m.Close()
			return nil, err
		}
		m.clients[i], m.ids[i], m.ports[i] = client, c.ids[node], strconv.Itoa(c.Nodes[node].Port)
	}
	if err := m.learn(); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Close closes the connections.
func (m *Mover) Close() {
	for _, client := range m.clients {
		if client != nil {
			client.Close()
		}
	}
}

// keysAtOnce is how many keys one MIGRATE takes.
const keysAtOnce = "100"

// Move gives a slot, with its keys, to one of the two nodes, 0 or 1, and reports whether it had been the other's. Who moves slots to both waits
// by Settle between: nodes believe older news of each other otherwise, and may end up with slots that each takes for the other's.
func (m *Mover) Move(slot, to int) (moved bool, err error) {
	if m.owner[slot] == to {
		return false, nil
	}
	return true, m.move(slot, 1-to)
}

func (m *Mover) move(slot, from int) error {
	number, source, target := strconv.Itoa(slot), m.clients[from], m.clients[1-from]
	if _, err := asked(target, "CLUSTER", "SETSLOT", number, "IMPORTING", m.ids[from]); err != nil {
		return err
	}
	if _, err := asked(source, "CLUSTER", "SETSLOT", number, "MIGRATING", m.ids[1-from]); err != nil {
		return err
	}
	for {
		keys, err := asked(source, "CLUSTER", "GETKEYSINSLOT", number, keysAtOnce)
		if err != nil {
			return err
		}
		if len(keys.Items) == 0 {
			break
		}
		command := append([]string{"MIGRATE", "127.0.0.1", m.ports[1-from], "", "0", "5000", "KEYS"}, keys.Strings()...)
		if _, err := asked(source, command...); err != nil {
			return err
		}
	}
	for _, client := range []*Client{target, source} {
		if _, err := asked(client, "CLUSTER", "SETSLOT", number, "NODE", m.ids[1-from]); err != nil {
			return err
		}
	}
	m.owner[slot] = 1 - from
	return nil
}

// settleTime is longer than nodes take to tell each other what they have.
const settleTime = 500 * time.Millisecond

// Settle waits until both nodes have heard of all moves.
func (m *Mover) Settle() error {
	time.Sleep(settleTime)
	for deadline := time.Now().Add(fleetTimeout); time.Now().Before(deadline); time.Sleep(fleetLook) {
		one, err := asked(m.clients[0], "CLUSTER", "SLOTS")
		if err != nil {
			return err
		}
		other, err := asked(m.clients[1], "CLUSTER", "SLOTS")
		if err != nil {
			return err
		}
		if one.Sorted(false).Wire() == other.Sorted(false).Wire() {
			return nil
		}
	}
	return fmt.Errorf("the nodes do not agree on their slots")
}

// learn finds out which of the two nodes has which slots, as each says of itself.
func (m *Mover) learn() error {
	for i, client := range m.clients {
		slots, err := asked(client, "CLUSTER", "SLOTS")
		if err != nil {
			return err
		}
		for _, entry := range slots.Items {
			first, _ := strconv.Atoi(entry.Items[0].Text)
			last, _ := strconv.Atoi(entry.Items[1].Text)
			for slot := first; slot <= last && entry.Items[2].Items[2].Text == m.ids[i]; slot++ {
				m.owner[slot] = i
			}
		}
	}
	return nil
}

// asked sends a command from whatever goroutine; an error that the server answers is one here.
func asked(client *Client, args ...string) (Value, error) {
	if err := client.Send(Command(args...)); err != nil {
		return Value{}, err
	}
	v, err := client.Read(ReplyTimeout)
	if err == nil && v.Kind == '-' {
		err = fmt.Errorf("%s: %s", strings.Join(args, " "), v.Text)
	}
	return v, err
}

// Sentinel is a primary, its replica, and a redis-sentinel that watches both and decides alone.
type Sentinel struct {
	Primary, Replica, Watcher *Server
}

const sentinelName = "mymaster"

// StartSentinel starts the three, and returns when the replica has its copy and the sentinel knows of it. A primary is down when it has not
// answered for downAfter.
func StartSentinel(t testing.TB, downAfter time.Duration) *Sentinel {
	t.Helper()
	primary := StartReference(t)
	replica := StartReference(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(primary.Port), "--repl-diskless-sync-delay", "0")
	watcher := startWatcher(t, primary.Port, 1, Timing{DownAfter: downAfter, FailoverTimeout: 10 * time.Second})
	s := &Sentinel{primary, replica, watcher}
	for deadline := time.Now().Add(fleetTimeout); time.Now().Before(deadline); time.Sleep(fleetLook) {
		asksWatcher, asksReplica := Dial(t, watcher.Addr), Dial(t, replica.Addr)
		known := slices.Contains(asksWatcher.Ask("SENTINEL", "REPLICAS", sentinelName).Flat(), "ok") // its link to the primary
		copied := strings.Contains(asksReplica.Ask("INFO", "replication").Text, "master_link_status:up")
		asksWatcher.Close()
		asksReplica.Close()
		if known && copied {
			return s
		}
	}
	require.FailNow(t, "the sentinel does not know its primary and replica")
	return nil
}

// startWatcher starts a sentinel that watches a primary, which is down when quorum sentinels say so.
func startWatcher(t testing.TB, primary, quorum int, timing Timing) *Server {
	t.Helper()
	return onFreePort(t, func(port int) (*Server, error) {
		s := newServerAt(t, port, t.TempDir())
		path := filepath.Join(s.Dir, "sentinel.conf")
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\nsentinel monitor %s 127.0.0.1 %d %d\nsentinel down-after-milliseconds %[2]s %[5]d\nsentinel failover-timeout %[2]s %[6]d\n",
			port, sentinelName, primary, quorum, timing.DownAfter.Milliseconds(), timing.FailoverTimeout.Milliseconds())
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return s, s.runAs("redis-sentinel", Reference(t), []string{path, "--sentinel"})
	})
}

// URL is the sentinel as `upstream` takes it.
func (s *Sentinel) URL() string { return "redis-sentinel://" + s.Watcher.Addr + "/" + sentinelName }

// Certificate makes a certificate for this machine, and for the names that are given, that vouches for itself, with openssl, and returns its
// file and that of its key.
func Certificate(t testing.TB, names ...string) (cert, key string) {
	t.Helper()
	san := "subjectAltName=IP:127.0.0.1,DNS:localhost"
	for _, name := range names {
		san += ",DNS:" + name
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
		"-subj", "/CN=localhost", "-addext", san, "-out", cert, "-keyout", key).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return cert, key
}

// StartReferenceTLS is StartReference with a port for TLS besides, whose address it returns.
func StartReferenceTLS(t testing.TB, cert, key string, flags ...string) (s *Server, addr string) {
	t.Helper()
	s = onFreePort(t, func(port int) (*Server, error) {
		secure := strconv.Itoa(FreePort(t))
		addr = net.JoinHostPort("127.0.0.1", secure)
		return startReferenceAt(t, port, t.TempDir(), append([]string{"--tls-port", secure, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no"}, flags...))
	})
	return s, addr
}

// startReferenceAt runs redis-server on a port that was chosen.
func startReferenceAt(t testing.TB, port int, dir string, flags []string) (*Server, error) {
	s := newServerAt(t, port, dir)
	return s, s.runAs("redis-server", Reference(t), append(s.usualFlags(), flags...))
}

// Slot is the hash slot of a key: CRC16 (XMODEM) of what is in its first braces, if there is something, or of all of it.
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % Slots)
}
