package replicas

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// online waits until a primary knows of so many replicas that are sent its changes.
func online(t *testing.T, p *harness.Client, n int) {
	t.Helper()
	await(t, "the replicas are online", func() bool { return strings.Count(p.Ask("INFO", "replication").Text, "state=online") == n })
}

// TestReplicasOfHeadgate has a redis-server and a headgate follow a headgate, which sends its snapshot in both forms, and to both of them at once.
func TestReplicasOfHeadgate(t *testing.T) {
	t.Parallel()
	for name, form := range map[string][]string{"as it is made": {"--repl-diskless-sync-delay", "1", "--repl-diskless-sync-max-replicas", "2"}, "of a file": onDisk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := harness.Start(t, form...)
			p := harness.Dial(t, primary.Addr)
			fill(p)
			p.Ask("CL.THROTTLE", "limited", "5", "10", "1000")
			replicas := []*harness.Server{harness.StartReference(t, follow(primary.Port)...), harness.Start(t, follow(primary.Port)...)}
			var clients []*harness.Client
			for _, replica := range replicas {
				r := harness.Dial(t, replica.Addr)
				clients = append(clients, r)
				harness.AwaitSame(t, p, r)
				require.Equal(t, digest(p), digest(r), replica.Name)
				require.Equal(t, ":7\r\n", string(r.Do("FCALL_RO", "seven", "0")))
			}
			require.Equal(t, "2", p.Info("stats")["sync_full"])
			if name == "as it is made" {
				require.Equal(t, 1, strings.Count(primary.Log(), "a snapshot is being created for replicas"), primary.Log())
			}
			files, err := filepath.Glob(filepath.Join(primary.Dir, "*.tmp"))
			require.NoError(t, err)
			require.Empty(t, files)

			p.Ask("SELECT", "5")
			p.Ask("SET", "later", "x", "EX", "1000")
			p.Ask("MULTI")
			p.Ask("INCR", "n")
			p.Ask("SELECT", "6")
			p.Ask("INCR", "n")
			p.Ask("EXEC")
			p.Ask("EVAL", "redis.call('SET', KEYS[1], 'x', 'PX', 100000000) return redis.call('SPOP', KEYS[2])", "2", "scripted", "none")
			p.Ask("CL.THROTTLE", "limited", "5", "10", "1000")
			p.Ask("RL.SLIDING", "slides", "5", "1000s")
			p.Ask("FUNCTION", "DELETE", "lib")
			p.Ask("SELECT", "0")
			p.Ask("SET", "brief", "1", "PX", "20")
			await(t, "it expires", func() bool { return p.Ask("EXISTS", "brief").Text == "0" })
			for i, r := range clients {
				harness.AwaitSame(t, p, r)
				require.Equal(t, digest(p), digest(r), replicas[i].Name)
			}
		})
	}
}

// TestWhatAPrimaryTells compares what a redis-server and a headgate say of a replica that follows each.
func TestWhatAPrimaryTells(t *testing.T) {
	t.Parallel()
	ours, theirs := harness.StartPair(t, append(diskless, "--min-replicas-to-write", "1")...)
	announced := []string{"--replica-announce-ip", "127.0.0.9", "--replica-announce-port", "77"}
	var clients []*harness.Client
	for _, primary := range []*harness.Server{theirs, ours} {
		p := harness.Dial(t, primary.Addr)
		require.Equal(t, "-NOREPLICAS Not enough good replicas to write.\r\n", string(p.Do("SET", "k", "1")), primary.Name)
		harness.StartReference(t, append(announced, follow(primary.Port)...)...)
		online(t, p, 1)
		clients = append(clients, p)
	}
	c, h := clients[0], clients[1]
	want, got := c.Info("replication"), h.Info("replication")
	for name, value := range want {
		require.Contains(t, got, name)
		switch {
		case name == "slave0":
			unlike := func(line string) string { return line[:strings.Index(line, ",offset=")] }
			require.Equal(t, unlike(value), unlike(got[name]))
		case strings.Contains(name, "offset"), strings.Contains(name, "histlen"), strings.Contains(name, "replid"):
		default:
			require.Equal(t, value, got[name], name)
		}
	}
	role, hers := c.Ask("ROLE"), h.Ask("ROLE")
	for _, r := range []*harness.Value{&role, &hers} {
		r.Items[1], r.Items[2].Items[0].Items[2] = harness.Value{}, harness.Value{}
	}
	require.Equal(t, role.Wire(), hers.Wire())
	for _, p := range clients {
		require.Equal(t, "+OK\r\n", string(p.Do("SET", "k", "1")))
		require.Equal(t, ":1\r\n", string(p.Do("WAIT", "1", "10000")))
		line := p.Ask("CLIENT", "LIST", "TYPE", "replica").Text
		require.Contains(t, line, " flags=S ")
		require.Contains(t, line, " cmd=replconf ")
		require.Equal(t, "1", p.Info("stats")["sync_full"])
		require.Equal(t, ":1\r\n", string(p.Do("CLIENT", "KILL", "TYPE", "replica")))
		await(t, "the replica goes on where it was", func() bool { return p.Info("stats")["sync_partial_ok"] == "1" })
	}
}

// TestPartialResync cuts a replica's link, for so little that it goes on where it was, and for so much that it is sent all data; and has it go on
// with a replica that was promoted.
func TestPartialResync(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"redis-server", "headgate"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			start := harness.Start
			if kind == "redis-server" {
				start = harness.StartReference
			}
			primary := harness.Start(t, append(diskless, "--repl-backlog-size", "20000")...)
			p := harness.Dial(t, primary.Addr)
			fill(p)
			proxy := harness.StartProxy(t, primary.Addr)
			replica, heir := start(t, follow(proxy.Port)...), harness.Start(t, follow(primary.Port)...)
			r, s := harness.Dial(t, replica.Addr), harness.Dial(t, heir.Addr)
			harness.AwaitSame(t, p, r)
			harness.AwaitSame(t, p, s)
			counts := func() [3]string {
				stats := p.Info("stats")
				return [3]string{stats["sync_full"], stats["sync_partial_ok"], stats["sync_partial_err"]}
			}
			require.Equal(t, [3]string{"2", "0", "0"}, counts())
			apart := func(bytes int) {
				proxy.Refuse(true)
				proxy.Cut()
				await(t, "the link is cut", func() bool { return r.Info("replication")["master_link_status"] == "down" })
				p.Ask("SET", "far", strings.Repeat("x", bytes))
				proxy.Refuse(false)
				harness.AwaitSame(t, p, r)
				require.Equal(t, digest(p), digest(r))
			}
			apart(10_000)
			require.Equal(t, [3]string{"2", "1", "0"}, counts())
			apart(30_000)
			require.Equal(t, [3]string{"3", "1", "1"}, counts())

			harness.AwaitSame(t, p, s)
			require.Equal(t, "+OK\r\n", string(s.Do("REPLICAOF", "NO", "ONE")))
			s.Ask("SET", "of the heir", "1")
			r.Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(heir.Port))
			harness.AwaitSame(t, s, r)
			require.Equal(t, digest(s), digest(r))
			require.Equal(t, "0", s.Info("stats")["sync_full"])
			require.Equal(t, "1", s.Info("stats")["sync_partial_ok"])

			// The old primary has changed nothing since, so that it may go on, too; then something that the heir has not, so that it may not.
			p.Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(heir.Port))
			harness.AwaitSame(t, s, p)
			require.Equal(t, "0", s.Info("stats")["sync_full"], heir.Log())
			require.Equal(t, digest(s), digest(p))
			p.Ask("REPLICAOF", "NO", "ONE")
			p.Ask("SET", "lost", "1")
			p.Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(heir.Port))
			harness.AwaitSame(t, s, p)
			require.Equal(t, "1", s.Info("stats")["sync_full"])
			require.Equal(t, digest(s), digest(p))
		})
	}
}

// TestChainedReplicas has two servers follow one that follows a third: the offsets are the same everywhere, and the stream goes through unchanged.
func TestChainedReplicas(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"redis-server", "headgate"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			start := harness.Start
			if kind == "redis-server" {
				start = harness.StartReference
			}
			top := start(t, diskless...)
			p := harness.Dial(t, top.Addr)
			fill(p)
			proxy := harness.StartProxy(t, top.Addr)
			middle := harness.Start(t, append(diskless, follow(proxy.Port)...)...)
			m := harness.Dial(t, middle.Addr)
			harness.AwaitSame(t, p, m)
			p.Ask("SELECT", "3")
			p.Ask("SET", "of", "3")
			var ends []*harness.Client
			for _, end := range []*harness.Server{harness.StartReference(t, follow(middle.Port)...), harness.Start(t, follow(middle.Port)...)} {
				ends = append(ends, harness.Dial(t, end.Addr))
			}
			same := func() {
				t.Helper()
				for _, e := range ends {
					harness.AwaitSame(t, p, e)
					require.Equal(t, digest(p), digest(e))
				}
			}
			same()
			p.Ask("SET", "of", "four")
			p.Ask("RPUSH", "list", "a")
			same()
			proxy.Cut()
			p.Ask("RPUSH", "list", "b")
			same()
			require.Equal(t, "1", p.Info("stats")["sync_full"])
			require.Equal(t, "2", m.Info("stats")["sync_full"], "nobody below has noticed")

			// The middle goes on by itself: those below follow it there without being sent everything.
			m.Ask("REPLICAOF", "NO", "ONE")
			m.Ask("SELECT", "4")
			m.Ask("SET", "own", "1")
			p = m
			same()
			require.Equal(t, "2", m.Info("stats")["sync_full"])
			require.Equal(t, "2", m.Info("stats")["sync_partial_ok"])

			// And it follows again, with data of its own by now, which go.
			m.Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(top.Port))
			p = harness.Dial(t, top.Addr)
			harness.AwaitSame(t, p, m)
			require.Equal(t, digest(p), digest(m))
			same()
		})
	}
}

// TestWaitForReplicas: WAIT is answered by what replicas have, at once or when they say so, or when its time is over.
func TestWaitForReplicas(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, diskless...)
	p := harness.Dial(t, primary.Addr)
	require.Equal(t, ":0\r\n", string(p.Do("WAIT", "0", "0")))
	require.Equal(t, ":0\r\n", string(p.Do("WAIT", "1", "10")))
	replicas := []*harness.Server{harness.StartReference(t, follow(primary.Port)...), harness.Start(t, follow(primary.Port)...)}
	online(t, p, 2)
	for i := range 20 {
		p.Ask("SET", "k", strconv.Itoa(i))
		require.Equal(t, ":2\r\n", string(p.Do("WAIT", "2", "10000")))
	}
	require.NoError(t, replicas[0].Stall())
	p.Ask("SET", "k", "one of them")
	require.Equal(t, ":1\r\n", string(p.Do("WAIT", "1", "10000")))
	require.Equal(t, ":1\r\n", string(p.Do("WAIT", "2", "50")))
	p.Ask("MULTI")
	p.Ask("WAIT", "2", "0")
	require.Equal(t, "*1\r\n:1\r\n", string(p.Do("EXEC")))
	waiting := harness.Dial(t, primary.Addr)
	require.NoError(t, waiting.Send(harness.Command("WAIT", "2", "0")))
	several := []*harness.Client{harness.Dial(t, primary.Addr), harness.Dial(t, primary.Addr), harness.Dial(t, primary.Addr)}
	for _, c := range several {
		require.NoError(t, c.Send(append(harness.Command("INCR", "n"), harness.Command("WAIT", "2", "0")...)))
		require.Equal(t, byte(':'), c.Value().Kind)
	}
	await(t, "they wait", func() bool { return p.Info("clients")["blocked_clients"] == "4" })
	require.NoError(t, replicas[0].Resume())
	require.Equal(t, ":2\r\n", waiting.Value().Wire())
	for _, c := range several {
		require.Equal(t, ":2\r\n", c.Value().Wire(), "one answer of the replica is enough for all")
	}
	require.NoError(t, waiting.Send(harness.Command("WAIT", "9", "0")))
	await(t, "it waits", func() bool { return p.Info("clients")["blocked_clients"] == "1" })
	id := strings.Fields(strings.TrimPrefix(waitingLine(p), "id="))[0]
	require.Equal(t, ":1\r\n", string(p.Do("CLIENT", "UNBLOCK", id)))
	require.Equal(t, ":2\r\n", waiting.Value().Wire())
}

// waitingLine is the line of the client that is in WAIT.
func waitingLine(c *harness.Client) string {
	for line := range strings.SplitSeq(c.Ask("CLIENT", "LIST").Text, "\n") {
		if strings.Contains(line, " cmd=wait ") && strings.Contains(line, " flags=b ") {
			return line
		}
	}
	return ""
}

// TestWritesNeedReplicas: with too few replicas writes are refused, in the words of redis-server, and limiters decide who is limited all the same.
func TestWritesNeedReplicas(t *testing.T) {
	t.Parallel()
	ours, theirs := harness.StartPair(t, append(diskless, "--min-replicas-max-lag", "1")...)
	h, c := harness.Dial(t, ours.Addr), harness.Dial(t, theirs.Addr)
	both := func(words ...string) {
		t.Helper()
		require.Equal(t, c.Ask(words...).Wire(), h.Ask(words...).Wire(), "%q", words)
	}
	h.Ask("CL.THROTTLE", "full", "0", "1", "1000")
	both("CONFIG", "SET", "min-replicas-to-write", "1")
	for _, words := range [][]string{
		{"SET", "a", "1"}, {"GET", "a"}, {"DEL", "a"}, {"SET"}, {"MULTI"}, {"SET", "a", "1"}, {"EXEC"}, {"MULTI"}, {"GET", "a"}, {"EXEC"},
		{"EVAL", "return redis.call('set','a',1)", "0"}, {"EVAL", "return redis.pcall('set','a',1).err", "0"}, {"EVAL", "return redis.call('get','a')", "0"},
		{"EVAL", "#!lua flags=allow-oom\nreturn redis.call('set','a',1)", "0"}, {"EVAL", "#!lua flags=no-writes\nreturn 1", "0"}, {"PFCOUNT", "a"},
		{"PUBLISH", "a", "b"}, {"FLUSHALL"}, {"WAIT", "1", "1"}, {"BLPOP", "a", "1"}, {"CONFIG", "SET", "min-slaves-to-write", "0"}, {"SET", "a", "1"},
		{"CONFIG", "GET", "min-slaves-to-write"}, {"CONFIG", "SET", "min-replicas-to-write", "1"},
	} {
		both(words...)
	}
	require.Equal(t, ":1\r\n", h.Ask("CL.THROTTLE", "full", "0", "1", "1000").Items[0].Wire())
	require.Equal(t, "-NOREPLICAS Not enough good replicas to write.\r\n", string(h.Do("CL.THROTTLE", "new", "0", "1", "1000")))
	replica := harness.StartReference(t, follow(ours.Port)...)
	await(t, "writes are taken", func() bool { return string(h.Do("SET", "a", "1")) == "+OK\r\n" })
	require.NoError(t, replica.Stall())
	await(t, "writes are refused", func() bool { return strings.HasPrefix(string(h.Do("SET", "a", "1")), "-NOREPLICAS") })
	require.NoError(t, replica.Resume())
	await(t, "writes are taken again", func() bool { return string(h.Do("SET", "a", "1")) == "+OK\r\n" })
	h.Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(theirs.Port))
	require.Contains(t, string(h.Do("SET", "a", "1")), "-READONLY")
}

// TestSlowReplicaIsCutOff: a replica that takes nothing is closed when it is further behind than client-output-buffer-limit allows; others, and
// clients, notice nothing, and it follows again when it goes on.
func TestSlowReplicaIsCutOff(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{"at once": "replica 4mb 0 0", "after a time": "replica 0 2mb 1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := harness.Start(t, append(diskless, "--client-output-buffer-limit", limit, "--repl-backlog-size", "1mb")...)
			p := harness.Dial(t, primary.Addr)
			slow, quick := harness.StartReference(t, follow(primary.Port)...), harness.Start(t, follow(primary.Port)...)
			online(t, p, 2)
			require.NoError(t, slow.Stall())
			q := harness.Dial(t, quick.Addr)
			value := strings.Repeat("x", 100_000)
			for i := 0; !strings.Contains(primary.Log(), "a replica has disconnected"); i++ {
				require.Less(t, i, 2000)
				p.Ask("SET", "k"+strconv.Itoa(i%10), value)
				if i > 100 {
					time.Sleep(tick)
				}
			}
			require.Contains(t, primary.Log(), "client-output-buffer-limit replica")
			harness.AwaitSame(t, p, q)
			require.Equal(t, "1", p.Info("replication")["connected_slaves"])
			require.NoError(t, slow.Resume())
			s := harness.Dial(t, slow.Addr)
			harness.AwaitSame(t, p, s)
			require.Equal(t, digest(p), digest(s))
		})
	}
}

// TestStalledReplicaAmidItsSnapshot: a replica that stops taking its snapshot is cut off when commands would have to wait for it, and not at
// repl-timeout alone. Until then the other that shares the snapshot waits with it; afterwards it gets all.
func TestStalledReplicaAmidItsSnapshot(t *testing.T) {
	t.Parallel()
	const keys, batch = 60_000, 500
	primary := harness.Start(t, "--rdbcompression", "no", "--repl-diskless-sync-delay", "60", "--repl-diskless-sync-max-replicas", "2")
	p := harness.Dial(t, primary.Addr)
	setAll := func(value string) {
		for i := 0; i < keys; i += batch {
			var out []byte
			for k := range batch {
				out = append(out, harness.Command("SET", "k"+strconv.Itoa(i+k), value)...)
			}
			require.NoError(t, p.Send(out))
			for range batch {
				_, err := p.Read(wait)
				require.NoError(t, err)
			}
		}
	}
	setAll(strings.Repeat("x", 1500))
	stalled := harness.Dial(t, primary.Addr)
	stalled.Ask("REPLCONF", "capa", "eof", "capa", "psync2", "listening-port", "1")
	require.NoError(t, stalled.Send(harness.Command("PSYNC", "?", "-1")))
	replica := harness.Start(t, follow(primary.Port)...)
	awaitLog(t, primary, "a snapshot is being created for replicas")
	// On a loaded machine the other may have fallen behind, too: then it asks again, and is not to wait for a second one.
	require.Equal(t, "OK", p.Ask("CONFIG", "SET", "repl-diskless-sync-delay", "0").Text)
	setAll(strings.Repeat("y", 1500)) // more than may wait for the replica
	awaitLog(t, primary, "commands would have to wait for it")
	online(t, p, 1)
	r := harness.Dial(t, replica.Addr)
	harness.AwaitSame(t, p, r)
	require.Equal(t, strconv.Itoa(keys), r.Ask("DBSIZE").Text)
	require.Equal(t, strings.Repeat("y", 1500), r.Ask("GET", "k77").Text)
}

// TestMetricsOfReplicas: /metrics has the role of both sides, and how far a replica is behind.
func TestMetricsOfReplicas(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	primary := harness.Start(t, append(diskless, "--metrics-port", strconv.Itoa(port))...)
	p := harness.Dial(t, primary.Addr)
	other := harness.FreePort(t)
	replica := harness.Start(t, append(follow(primary.Port), "--metrics-port", strconv.Itoa(other), "--replica-announce-ip", "127.0.0.9")...)
	online(t, p, 1)
	p.Ask("SET", "k", "v")
	harness.AwaitSame(t, p, harness.Dial(t, replica.Addr))
	read := func(port int) string {
		reply, err := http.Get("http://127.0.0.1:" + strconv.Itoa(port) + "/metrics")
		require.NoError(t, err)
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		return string(text)
	}
	series := `{slave_ip="127.0.0.9",slave_port="` + strconv.Itoa(replica.Port) + `",slave_state="online"} `
	await(t, "it has acknowledged all", func() bool { return strings.Contains(read(port), "\nheadgate_replica_lag_bytes"+series+"0\n") })
	text := read(port)
	for _, line := range []string{
		"redis_connected_slaves 1\n", "redis_connected_slave_lag_seconds" + series, "redis_connected_slave_offset_bytes" + series, "headgate_replicas_missing 0\n",
		"headgate_replica_full_syncs_total 1\n", "redis_repl_backlog_is_active 1\n", `redis_instance_info{`, `role="master"`,
	} {
		require.Contains(t, text, line)
	}
	require.Contains(t, read(other), `role="slave"`)
}

// TestMemoryOfTheStream: what is kept for replicas is in use, as maxmemory counts it up to repl-backlog-size; what is kept beyond that for one that is behind is
// told, and no key goes for it.
func TestMemoryOfTheStream(t *testing.T) {
	t.Parallel()
	const kept, behind = 4 << 20, 12 << 20
	primary := harness.Start(t, append(diskless, "--repl-backlog-size", strconv.Itoa(kept), "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")...)
	p := harness.Dial(t, primary.Addr)
	bytesOf := func(field string) int {
		n, err := strconv.Atoi(p.Info("memory")[field])
		require.NoError(t, err)
		return n
	}
	p.Ask("SET", "k", strings.Repeat("x", 100_000))
	replica := harness.StartReference(t, follow(primary.Port)...)
	online(t, p, 1)
	before := bytesOf("used_memory")
	write := func(bytes int) {
		for range bytes / 100_000 {
			p.Ask("SET", "k", strings.Repeat("x", 100_000))
		}
	}
	write(behind)
	await(t, "the backlog is counted", func() bool { return bytesOf("used_memory") >= before+kept*9/10 })
	await(t, "the replica has all", func() bool { return bytesOf("mem_not_counted_for_evict") < 1<<20 })
	require.Less(t, bytesOf("used_memory"), before+2*kept)
	require.NoError(t, replica.Stall())
	write(4 * behind) // far more than the sockets of both take
	require.Greater(t, bytesOf("mem_not_counted_for_evict"), behind)
	require.GreaterOrEqual(t, bytesOf("used_memory"), before+bytesOf("mem_not_counted_for_evict")+kept*9/10)
	require.Equal(t, "0", p.Info("stats")["evicted_keys"])
	require.NoError(t, replica.Resume())
}

// TestSilentReplica is closed after repl-timeout, and gets PINGs before that as long as it answers.
func TestSilentReplica(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, append(diskless, "--repl-timeout", "2", "--repl-ping-replica-period", "1")...)
	p := harness.Dial(t, primary.Addr)
	replica := harness.StartReference(t, append(follow(primary.Port), "--repl-timeout", "3")...)
	online(t, p, 1)
	first := p.Info("replication")["master_repl_offset"]
	await(t, "PINGs come", func() bool { return p.Info("replication")["master_repl_offset"] != first })
	require.NoError(t, replica.Stall())
	awaitLog(t, primary, "nothing has been heard of it for repl-timeout")
	require.Equal(t, "0", p.Info("replication")["connected_slaves"])
	require.NoError(t, replica.Resume())
	await(t, "it goes on where it was", func() bool { return p.Info("stats")["sync_partial_ok"] == "1" })
}

// TestReplicaThatLoads: a replica that has been sent a snapshot, in either form, and loads it, says by empty lines that it is there; one that says nothing
// is closed after repl-timeout.
func TestReplicaThatLoads(t *testing.T) {
	t.Parallel()
	for name, form := range map[string][]string{"as it is made": diskless, "of a file": onDisk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := harness.Start(t, append(form, "--repl-timeout", "3")...)
			p := harness.Dial(t, primary.Addr)
			fill(p)
			replicas := [2]net.Conn{followByHand(t, primary), followByHand(t, primary)}
			await(t, "both have been sent a snapshot", func() bool {
				told := p.Ask("INFO", "replication").Text
				return strings.Count(told, "state=") == 2 && !strings.Contains(told, "wait_bgsave")
			})
			until := time.Now().Add(wait)
			for !strings.Contains(primary.Log(), "a replica has disconnected") && time.Now().Before(until) {
				_, err := replicas[0].Write([]byte("\n"))
				require.NoError(t, err)
				time.Sleep(tick)
			}
			gone := replicas[1].LocalAddr().String()
			require.Equal(t, 1, strings.Count(primary.Log(), "a replica has disconnected"), primary.Log())
			require.Contains(t, primary.Log(), `"replica":"`+gone+`","err":"nothing has been heard of it for repl-timeout"`)
			require.Equal(t, "1", p.Info("replication")["connected_slaves"])
		})
	}
}

// followByHand tells a primary some more of a replica, asks for all data, and reads whatever comes from then on.
func followByHand(t *testing.T, primary *harness.Server, told ...string) net.Conn {
	conn, err := net.Dial("tcp", primary.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = conn.Write(harness.Command(append([]string{"REPLCONF", "capa", "eof", "capa", "psync2"}, told...)...))
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, len("+OK\r\n")))
	require.NoError(t, err)
	_, err = conn.Write(harness.Command("PSYNC", "?", "-1"))
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	return conn
}

// TestReplicasOnlyReport: a replica that sends a command which is answered, or which touches keys, is closed as by Redis, and that is not run: no pause would
// hold it back.
func TestReplicasOnlyReport(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, diskless...)
	p := harness.Dial(t, primary.Addr)
	lines := [][]string{
		{"SET", "k", "1"}, {"GET", "k"}, {"EVAL", "return redis.call('SET', 'k', '1')", "0"}, {"RL.FIXED", "k", "1", "1h"}, {"MULTI"}, {"RESET"}, {"CLIENT", "REPLY", "ON"},
		{"SUBSCRIBE", "c"}, {"MONITOR"}, {"PING"}, {"nonsense"},
	}
	for _, words := range lines {
		replica := followByHand(t, primary)
		online := func() bool { return strings.Contains(p.Ask("INFO", "replication").Text, "slave0:") }
		await(t, "the replica is there", online)
		_, err := replica.Write(harness.Command(words...))
		require.NoError(t, err)
		await(t, "it is closed after "+words[0], func() bool { return !online() })
	}
	require.Equal(t, "0", p.Ask("EXISTS", "k").Text)
}

// TestBacklogEnds: without replicas changes are kept for repl-backlog-ttl, and counted no more afterwards.
func TestBacklogEnds(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, append(diskless, "--repl-backlog-ttl", "1")...)
	p := harness.Dial(t, primary.Addr)
	require.Equal(t, "0", p.Info("replication")["repl_backlog_active"])
	p.Ask("SET", "k", "uncounted")
	require.Equal(t, "0", p.Info("replication")["master_repl_offset"])
	replica := harness.StartReference(t, follow(primary.Port)...)
	online(t, p, 1)
	before := p.Info("replication")
	require.Equal(t, "1", before["repl_backlog_active"])
	require.NoError(t, replica.Stall())
	p.Ask("CLIENT", "KILL", "TYPE", "replica")
	await(t, "the backlog goes", func() bool { return p.Info("replication")["repl_backlog_active"] == "0" })
	require.NotEqual(t, before["master_replid"], p.Info("replication")["master_replid"])
	p.Ask("SET", "k", "uncounted again")
	require.NoError(t, replica.Resume())
	r := harness.Dial(t, replica.Addr)
	harness.AwaitSame(t, p, r)
	require.Equal(t, digest(p), digest(r))
	require.Equal(t, "2", p.Info("stats")["sync_full"])
}

// TestSnapshotByTool has redis-cli take a snapshot by SYNC, in both forms, which redis-server loads.
func TestSnapshotByTool(t *testing.T) {
	t.Parallel()
	cli, err := exec.LookPath("redis-cli")
	require.NoError(t, err)
	for _, form := range []string{"yes", "no"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			primary := harness.Start(t, "--repl-diskless-sync-delay", "0", "--repl-diskless-sync", form)
			p := harness.Dial(t, primary.Addr)
			fill(p)
			dir := t.TempDir()
			said, err := exec.Command(cli, "-p", strconv.Itoa(primary.Port), "--rdb", filepath.Join(dir, "dump.rdb")).CombinedOutput()
			require.NoError(t, err, "%s", said)
			loaded := harness.StartReferenceIn(t, dir)
			require.Equal(t, digest(p), digest(harness.Dial(t, loaded.Addr)))
			await(t, "it has gone", func() bool { return p.Info("replication")["connected_slaves"] == "0" })
		})
	}
}

// TestManyReplicasAtOnce has several replicas ask for all data while keys change, a snapshot is saved, and the append-only file is written anew.
func TestManyReplicasAtOnce(t *testing.T) {
	t.Parallel()
	const replicas = 4
	primary := harness.Start(t, append(diskless, "--appendonly", "yes")...)
	p := harness.Dial(t, primary.Addr)
	fill(p)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		w, err := harness.TryDial(t, primary.Addr)
		for i := 0; err == nil; i++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err = w.Send(harness.Command("SET", "s"+strconv.Itoa(i%400), fmt.Sprint(i))); err == nil {
				_, err = w.Read(wait)
			}
		}
		stopped <- err
	}()
	var servers []*harness.Server
	for i := range replicas {
		start := harness.Start
		if i%2 == 0 {
			start = harness.StartReference
		}
		servers = append(servers, start(t, follow(primary.Port)...))
		p.Ask("BGSAVE", "SCHEDULE")
		p.Ask("BGREWRITEAOF")
	}
	online(t, p, replicas)
	close(stop)
	require.NoError(t, <-stopped)
	for _, s := range servers {
		r := harness.Dial(t, s.Addr)
		harness.AwaitSame(t, p, r)
		require.Equal(t, digest(p), digest(r))
	}
	want := digest(p)
	await(t, "the snapshot is saved", func() bool { _, err := os.Stat(filepath.Join(primary.Dir, "dump.rdb")); return err == nil })
	primary.Kill()
	require.Equal(t, want, digest(harness.Dial(t, harness.StartIn(t, primary.Dir, "--appendonly", "yes").Addr)))
}

// TestRefusedReplicas: what a primary answers to those who ask wrongly.
func TestRefusedReplicas(t *testing.T) {
	t.Parallel()
	ours, theirs := harness.StartPair(t, diskless...)
	ask := func(s *harness.Server, words ...string) string { return string(harness.Dial(t, s.Addr).Do(words...)) }
	for _, words := range [][]string{
		{"PSYNC"}, {"PSYNC", "?"}, {"PSYNC", "?", "x"}, {"PSYNC", "?", "-1", "FAILOVER"}, {"SYNC", "x"}, {"REPLCONF", "ip-address", strings.Repeat("1", 300)},
		{"REPLCONF", "rdb-only", "2"}, {"REPLCONF", "rdb-only", "x"}, {"REPLCONF", "listening-port", "x"}, {"REPLCONF", "capa"}, {"REPLCONF", "listening-port", "-1"},
		{"EVAL", "return redis.call('PSYNC', '?', '-1')", "0"},
	} {
		require.Equal(t, ask(theirs, words...), ask(ours, words...), "%q", words)
	}
	closed := strconv.Itoa(harness.FreePort(t))
	for _, s := range []*harness.Server{ours, theirs} {
		require.Equal(t, "+OK\r\n", ask(s, "REPLICAOF", "127.0.0.1", closed))
		require.Equal(t, "-NOMASTERLINK Can't SYNC while not connected with my master\r\n", ask(s, "PSYNC", "?", "-1"))
	}
	for _, s := range []*harness.Server{ours, theirs} {
		ask(s, "REPLICAOF", "NO", "ONE")
		c := harness.Dial(t, s.Addr)
		require.NoError(t, c.Send(append(harness.Command("PING"), harness.Command("PSYNC", "?", "-1")...)))
		require.Equal(t, "+PONG\r\n", c.Value().Wire())
		require.Equal(t, "-ERR SYNC and PSYNC are invalid with pending output\r\n", c.Value().Wire())
	}
}

// TestMessagesReachReplicas: what is published to a primary is heard at its replicas, and stands in no log.
func TestMessagesReachReplicas(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, append(diskless, "--appendonly", "yes")...)
	p := harness.Dial(t, primary.Addr)
	replica := harness.StartReference(t, follow(primary.Port)...)
	online(t, p, 1)
	r := harness.Dial(t, replica.Addr)
	r.Ask("SUBSCRIBE", "news")
	for i := range 3 {
		p.Ask("SELECT", strconv.Itoa(i))
		p.Ask("SET", "k", "v")
		p.Ask("MULTI")
		p.Ask("PUBLISH", "news", strconv.Itoa(i))
		p.Ask("SET", "in", "one unit")
		p.Ask("PUBLISH", "news", "again")
		p.Ask("EXEC")
		require.Equal(t, strconv.Itoa(i), r.Value().Items[2].Text)
		require.Equal(t, "again", r.Value().Items[2].Text)
	}
	w := harness.Dial(t, replica.Addr)
	harness.AwaitSame(t, p, w)
	require.Equal(t, digest(p), digest(w))
	want := digest(p)
	primary.Kill()
	logs, err := filepath.Glob(filepath.Join(primary.Dir, "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	for _, name := range logs {
		require.NotContains(t, readFile(t, name), "PUBLISH")
	}
	require.Equal(t, want, digest(harness.Dial(t, harness.StartIn(t, primary.Dir, "--appendonly", "yes").Addr)))
}

// TestEndingPrimarySendsAll: a primary that ends has sent its replicas what was answered before.
func TestEndingPrimarySendsAll(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, diskless...)
	p := harness.Dial(t, primary.Addr)
	replica := harness.StartReference(t, follow(primary.Port)...)
	online(t, p, 1)
	var out []byte
	const writes = 20_000
	for i := range writes {
		out = append(out, harness.Command("SET", "k", strconv.Itoa(i))...)
	}
	require.NoError(t, p.Send(out))
	for range writes {
		_, err := p.Read(wait)
		require.NoError(t, err)
	}
	require.NoError(t, primary.Terminate())
	r := harness.Dial(t, replica.Addr)
	await(t, "the last write is there", func() bool { return r.Ask("GET", "k").Text == strconv.Itoa(writes-1) })
}

// TestStrangerAtThePort: bytes that replicas never send, at any point of the dialogue, disturb nobody.
func TestStrangerAtThePort(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, append(diskless, "--repl-backlog-size", "16kb")...)
	p := harness.Dial(t, primary.Addr)
	fill(p)
	for _, talk := range []string{
		"PSYNC ? -1\r\nPSYNC ? -1\r\n", "SYNC\r\nGET s1\r\nSET s1 x\r\n", "PSYNC ? -1\r\n*1\r\n$-5\r\n", "REPLCONF capa eof\r\nSYNC\r\nREPLCONF ACK x\r\nREPLCONF ACK -5\r\nSUBSCRIBE a\r\n",
		"PSYNC ? -1\r\nREPLCONF ACK 9223372036854775807\r\nMULTI\r\nPING\r\n", "REPLCONF rdb-only 1\r\nSYNC\r\nQUIT\r\n", "PSYNC ? -1\r\nREPLICAOF NO ONE\r\nMONITOR\r\n",
	} {
		for range 3 {
			conn, err := net.Dial("tcp", primary.Addr)
			require.NoError(t, err)
			for line := range strings.SplitAfterSeq(talk, "\r\n") {
				_, _ = conn.Write([]byte(line))
				time.Sleep(time.Millisecond)
			}
			p.Ask("SET", "between", talk)
			require.NoError(t, conn.Close())
		}
	}
	await(t, "all have gone", func() bool { return p.Info("replication")["connected_slaves"] == "0" })
	require.Equal(t, "+PONG\r\n", string(p.Do("PING")))
	replica := harness.StartReference(t, follow(primary.Port)...)
	r := harness.Dial(t, replica.Addr)
	harness.AwaitSame(t, p, r)
	require.Equal(t, digest(p), digest(r))
}
