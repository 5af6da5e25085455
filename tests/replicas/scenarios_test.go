package replicas

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// What Redis's own integration tests of replication play, as far as no other test here does.

var (
	layouts    = flag.Int("replicas.layouts", 2, "random trees of replicas that TestAnyLayout goes through")
	layoutSeed = flag.Uint64("replicas.seed", 0, "seed of these; 0 draws one")
)

// kindOf starts a headgate or, by its name, a redis-server.
func kindOf(name string) func(t testing.TB, flags ...string) *harness.Server {
	if name == "redis-server" {
		return harness.StartReference
	}
	return harness.Start
}

// TestScriptsAndExpiriesWhileTheLinkIsDown: what scripts have written, and which keys have expired, been given a time or kept for good while a replica
// was away, it has as soon as it is back, whether it goes on where it was or is sent everything.
func TestScriptsAndExpiriesWhileTheLinkIsDown(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"redis-server", "headgate"}, {"headgate", "redis-server"}, {"headgate", "headgate"}} {
		for _, backlog := range []string{"1mb", "16kb"} {
			t.Run(fmt.Sprintf("%s after %s, %s", pair[1], pair[0], backlog), func(t *testing.T) {
				t.Parallel()
				primary := kindOf(pair[0])(t, append(diskless, "--repl-backlog-size", backlog)...)
				proxy := harness.StartProxy(t, primary.Addr)
				replica := kindOf(pair[1])(t, follow(proxy.Port)...)
				p, r := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr)
				for _, k := range []string{"a", "b", "c", "d", "e"} {
					p.Ask("SET", k, k)
				}
				p.Ask("SADD", "set", "1", "2", "3", "4", "5", "6", "7", "8")
				p.Ask("SET", "kept", "1", "PX", "600000")
				p.Ask("SET", "shortened", "1", "PX", "600000")
				p.Ask("SET", "over", "1", "PX", "300000")
				harness.AwaitSame(t, p, r)

				proxy.Refuse(true)
				proxy.Cut()
				await(t, "the link is down", func() bool { return r.Info("replication")["master_link_status"] == "down" })
				p.Ask("PEXPIRE", "over", "1")
				p.Ask("SET", "brief", "1", "PX", "1")
				p.Ask("PEXPIRE", "a", "500000")
				p.Ask("PERSIST", "kept")
				p.Ask("PEXPIREAT", "shortened", "4000000000000")
				p.Ask("GETEX", "b", "PX", "500000")
				p.Ask("MULTI")
				p.Ask("PEXPIRE", "c", "500000")
				p.Ask("INCR", "n")
				p.Ask("EXEC")
				require.Len(t, p.Ask("EVAL", "local popped = redis.call('SPOP', KEYS[1], 3) for i, v in ipairs(popped) do redis.call('RPUSH', KEYS[2], v) end redis.call('PEXPIRE', KEYS[2], 500000) return popped", "2", "set", "popped").Items, 3)
				sha := p.Ask("SCRIPT", "LOAD", "local t = redis.call('TIME') redis.call('SET', KEYS[1], t[1] .. t[2], 'EX', 1000) return redis.call('INCR', 'n')").Text
				require.Equal(t, "2", p.Ask("EVALSHA", sha, "1", "at").Text)
				p.Ask("FUNCTION", "LOAD", "#!lua name=down\nredis.register_function('f', function(keys) redis.call('DEL', keys[1]) return redis.call('SET', keys[2], math.random(1000000), 'EX', 1000) end)")
				require.Equal(t, "OK", p.Ask("FCALL", "f", "2", "e", "drawn").Text)
				if pair[0] == "headgate" {
					p.Ask("CL.THROTTLE", "limited", "5", "10", "1000")
					p.Ask("RL.SLIDING", "slides", "5", "1000s")
				}
				if backlog == "16kb" {
					p.Ask("SET", "far", strings.Repeat("x", 40_000))
				}
				await(t, "two have expired", func() bool { return p.Ask("EXISTS", "over", "brief").Text == "0" })
				require.Equal(t, "1", r.Ask("EXISTS", "over").Text, "to the replica, which has heard nothing of it")

				proxy.Refuse(false)
				harness.AwaitSame(t, p, r)
				require.Equal(t, digest(p), digest(r))
				require.Equal(t, "0", r.Ask("EXISTS", "over", "brief", "e").Text)
				require.Equal(t, "-1", r.Ask("TTL", "kept").Text)
				stats := p.Info("stats")
				want := map[string][2]string{"1mb": {"1", "1"}, "16kb": {"2", "0"}}[backlog]
				require.Equal(t, want, [2]string{stats["sync_full"], stats["sync_partial_ok"]})
				if pair[1] == "headgate" {
					require.Equal(t, "0", r.Info("replication")["replica_failed_commands"], replica.Log())
				}

				// A replica that takes the place goes on with the script that it has never been asked to run.
				require.Equal(t, "+OK\r\n", string(r.Do("REPLICAOF", "NO", "ONE")))
				require.Equal(t, "OK", r.Ask("FCALL", "f", "2", "d", "drawn").Text)
			})
		}
	}
}

// TestBlockedClientsReplicate: what clients get that have waited for it is gone at the replicas, too, also where one script or transaction serves several.
func TestBlockedClientsReplicate(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, diskless...)
	p := harness.Dial(t, primary.Addr)
	replicas := []*harness.Client{harness.Dial(t, harness.StartReference(t, follow(primary.Port)...).Addr), harness.Dial(t, harness.Start(t, follow(primary.Port)...).Addr)}
	online(t, p, 2)
	p.Ask("XGROUP", "CREATE", "stream", "g", "$", "MKSTREAM")
	waits := [][]string{
		{"BLPOP", "list", "0"}, {"BRPOP", "other", "list", "0"}, {"BLMOVE", "list", "moved", "LEFT", "RIGHT", "0"}, {"BRPOPLPUSH", "list", "moved", "0"}, {"BLMPOP", "0", "1", "list", "LEFT", "COUNT", "2"},
		{"BZPOPMIN", "zset", "0"}, {"BZPOPMAX", "zset", "0"}, {"BZMPOP", "0", "1", "zset", "MIN"}, {"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "stream", ">"},
	}
	for round := range 4 {
		p.Ask("DEL", "list", "zset") // what nobody has waited for
		var blocked []*harness.Client
		for i, words := range waits {
			c := harness.Dial(t, primary.Addr)
			require.NoError(t, c.Send(harness.Command(words...)))
			await(t, "it waits", func() bool { return p.Info("clients")["blocked_clients"] == strconv.Itoa(i+1) })
			blocked = append(blocked, c)
		}
		push := [][]string{{"RPUSH", "list", "a", "b", "c", "d", "e", "f", "g"}, {"ZADD", "zset", "1", "a", "2", "b", "3", "c", "4", "d"}, {"XADD", "stream", "*", "f", "v"}}
		switch round {
		case 0:
			for _, words := range push {
				p.Ask(words...)
			}
		case 1:
			p.Ask("MULTI")
			for _, words := range push {
				p.Ask(words...)
			}
			p.Ask("EXEC")
		case 2:
			p.Ask("EVAL", "for i = 1, 7 do redis.call('RPUSH', 'list', i) end redis.call('ZADD', 'zset', 1, 'a', 2, 'b', 3, 'c', 4, 'd') return redis.call('XADD', 'stream', '*', 'f', 'v')", "3", "list", "zset", "stream")
		case 3: // by a rename, and from elsewhere
			p.Ask("RPUSH", "from", "a", "b", "c", "d", "e", "f", "g")
			p.Ask("RENAME", "from", "list")
			p.Ask("ZADD", "elsewhere", "1", "a", "2", "b", "3", "c", "4", "d")
			p.Ask("ZUNIONSTORE", "zset", "1", "elsewhere")
			p.Ask("XADD", "stream", "*", "f", "v")
		}
		for i, c := range blocked {
			v, err := c.Read(wait)
			require.NoError(t, err, "%q", waits[i])
			require.NotEqual(t, byte('-'), v.Kind, "%q: %s", waits[i], v.Text)
			c.Close()
		}
		for _, r := range replicas {
			harness.AwaitSame(t, p, r)
			require.Equal(t, digest(p), digest(r))
			require.Equal(t, p.Ask("XPENDING", "stream", "g").Wire(), r.Ask("XPENDING", "stream", "g").Wire())
		}
	}
	require.Equal(t, "0", replicas[1].Info("replication")["replica_failed_commands"])
}

// TestReplicaWithAScriptThatOverruns: what the primary sends meanwhile waits, the link stays, and all is run afterwards.
func TestReplicaWithAScriptThatOverruns(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"redis-server", "headgate"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			primary := kindOf(kind)(t, diskless...)
			p := harness.Dial(t, primary.Addr)
			replica := harness.Start(t, append(follow(primary.Port), "--busy-reply-threshold", "5", "--client-query-buffer-limit", "1mb")...)
			r, busy := harness.Dial(t, replica.Addr), harness.Dial(t, replica.Addr)
			harness.AwaitSame(t, p, r)
			require.NoError(t, busy.Send(harness.Command("EVAL", "while true do end", "0")))
			await(t, "the script overruns", func() bool { return strings.HasPrefix(string(r.Do("PING")), "-BUSY") })
			long := strings.Repeat("x", 3<<20) // a primary may send more at once than a client
			p.Ask("SET", "long", long)
			p.Ask("MULTI")
			p.Ask("INCR", "n")
			p.Ask("RPUSH", "list", "a")
			p.Ask("EXEC")
			require.Equal(t, "+OK\r\n", string(r.Do("SCRIPT", "KILL")))
			harness.AwaitSame(t, p, r)
			require.Equal(t, digest(p), digest(r))
			require.Equal(t, long, r.Ask("GET", "long").Text)
			require.Equal(t, "1", p.Info("stats")["sync_full"])
			require.Equal(t, "0", p.Info("stats")["sync_partial_ok"], "the link has stayed")
		})
	}
}

// TestAnyLayout: five servers of both kinds are arranged as random trees, one after the other, each under another primary, while links are cut; nobody is sent
// all data again.
func TestAnyLayout(t *testing.T) {
	t.Parallel()
	seed := *layoutSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-replicas.seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var servers []*harness.Server
	var clients []*harness.Client
	for _, kind := range []string{"headgate", "redis-server", "headgate", "redis-server", "headgate"} {
		s := kindOf(kind)(t, append(diskless, "--repl-backlog-size", "10mb")...)
		servers, clients = append(servers, s), append(clients, harness.Dial(t, s.Addr))
	}
	written := 0
	for layout := range *layouts {
		order := rnd.Perm(len(servers))
		top := clients[order[0]]
		if layout > 0 {
			require.Equal(t, "+OK\r\n", string(top.Do("REPLICAOF", "NO", "ONE")))
		}
		said := []string{strconv.Itoa(order[0])}
		for i, member := range order[1:] {
			above := order[rnd.IntN(i+1)]
			clients[member].Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(servers[above].Port))
			said = append(said, fmt.Sprintf("%d after %d", member, above))
			harness.AwaitSame(t, top, clients[member]) // whoever comes after it asks for a history that it has to know
		}
		t.Log(said)
		for range 20 {
			for range 50 {
				written++
				require.Equal(t, strconv.Itoa(written), top.Ask("INCR", "n").Text)
				top.Ask("SELECT", strconv.Itoa(rnd.IntN(3)))
				top.Ask("RPUSH", "list", strconv.Itoa(written))
				top.Ask("SET", "t"+strconv.Itoa(rnd.IntN(100)), "v", "PX", strconv.Itoa(1+rnd.IntN(1_000_000)))
				top.Ask("SELECT", "0")
			}
			clients[rnd.IntN(len(clients))].Ask("CLIENT", "KILL", "TYPE", []string{"master", "replica"}[rnd.IntN(2)])
		}
		for _, member := range order[1:] {
			harness.AwaitSame(t, top, clients[member])
			require.Equal(t, strconv.Itoa(written), clients[member].Ask("GET", "n").Text)
		}
	}
	full, partial := 0, 0
	for _, c := range clients {
		stats := c.Info("stats")
		for field, sum := range map[string]*int{"sync_full": &full, "sync_partial_ok": &partial} {
			n, err := strconv.Atoi(stats[field])
			require.NoError(t, err)
			*sum += n
		}
	}
	t.Logf("%d full syncs and %d partial ones", full, partial)
	require.Equal(t, len(servers)-1, full)
	require.NotZero(t, partial)
}

// TestEndingPrimaryWaitsForReplicas: a primary that ends goes on sending to a replica that is behind, for as long as shutdown-timeout says.
func TestEndingPrimaryWaitsForReplicas(t *testing.T) {
	t.Parallel()
	for timeout, arrives := range map[string]bool{"10": true, "0": false} {
		t.Run(timeout, func(t *testing.T) {
			t.Parallel()
			primary := harness.Start(t, append(diskless, "--shutdown-timeout", timeout)...)
			p := harness.Dial(t, primary.Addr)
			replica := harness.StartReference(t, follow(primary.Port)...)
			online(t, p, 1)
			require.NoError(t, replica.Stall())
			const writes = 300 // of so much that no socket takes it
			value := strings.Repeat("x", 100_000)
			for i := range writes {
				p.Ask("SET", "k"+strconv.Itoa(i), value)
			}
			resumed := make(chan struct{})
			go func() {
				defer close(resumed)
				if arrives {
					time.Sleep(time.Second)
				} else {
					for primary.Alive() {
						time.Sleep(tick)
					}
				}
				_ = replica.Resume()
			}()
			require.NoError(t, primary.Terminate())
			<-resumed
			r := harness.Dial(t, replica.Addr)
			if arrives {
				await(t, "the last write is there", func() bool { return r.Ask("EXISTS", "k"+strconv.Itoa(writes-1)).Text == "1" })
			} else {
				require.Equal(t, "0", r.Ask("EXISTS", "k"+strconv.Itoa(writes-1)).Text)
			}
		})
	}
}

// TestEndingPrimaryIsNotKept by a replica that has said that it has everything, nor by SHUTDOWN NOW by one that has not, though neither closes
// its connection.
func TestEndingPrimaryIsNotKept(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *harness.Server, p *harness.Client, replica net.Conn){
		"it has everything": func(t *testing.T, s *harness.Server, p *harness.Client, replica net.Conn) {
			_, err := fmt.Fprintf(replica, "REPLCONF ACK %s\r\n", p.Info("replication")["master_repl_offset"])
			require.NoError(t, err)
			await(t, "it is known", func() bool {
				return strings.Contains(p.Info("replication")["slave0"], "offset="+p.Info("replication")["master_repl_offset"]+",")
			})
			require.NoError(t, s.Terminate())
		},
		"SHUTDOWN NOW": func(t *testing.T, s *harness.Server, p *harness.Client, replica net.Conn) {
			require.NoError(t, p.Send(harness.Command("SHUTDOWN", "NOW")))
			await(t, "it has ended", func() bool { return !s.Alive() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := harness.Start(t, append([]string{"--shutdown-timeout", "3600"}, onDisk...)...)
			p := harness.Dial(t, primary.Addr)
			replica, err := net.Dial("tcp", primary.Addr)
			require.NoError(t, err)
			defer replica.Close()
			harness.Sync(t, replica)
			awaitLog(t, primary, "now receives changes")
			p.Ask("SET", "k", "v")
			end(t, primary, p, replica)
		})
	}
}

// TestEndingPrimaryIsReadToItsEnd: a replica that goes on acknowledging while the primary ends still gets all that was on its way.
func TestEndingPrimaryIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, onDisk...)
	replica, err := net.Dial("tcp", primary.Addr)
	require.NoError(t, err)
	harness.RequireReadToItsEnd(t, primary, replica)
}
