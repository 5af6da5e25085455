package replicas

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestFailoverRefusals has a redis-server and a headgate refuse the same in the same words.
func TestFailoverRefusals(t *testing.T) {
	t.Parallel()
	ours, theirs := harness.StartPair(t)
	h, c := harness.Dial(t, ours.Addr), harness.Dial(t, theirs.Addr)
	both := func(words ...string) {
		t.Helper()
		require.Equal(t, c.Ask(words...).Wire(), h.Ask(words...).Wire(), "%q", words)
	}
	lines := [][]string{
		{"FAILOVER"}, {"FAILOVER", "ABORT"}, {"FAILOVER", "ABORT", "x"}, {"FAILOVER", "TO", "127.0.0.1"}, {"FAILOVER", "TO", "127.0.0.1", "x"}, {"FAILOVER", "TIMEOUT", "0"},
		{"FAILOVER", "TIMEOUT", "-1"}, {"FAILOVER", "TIMEOUT", "x"}, {"FAILOVER", "TIMEOUT"}, {"FAILOVER", "FORCE"}, {"FAILOVER", "FORCE", "FORCE"}, {"FAILOVER", "TIMEOUT", "1", "TIMEOUT", "2"},
		{"FAILOVER", "TO", "127.0.0.1", "1"}, {"FAILOVER", "x"},
	}
	for _, words := range lines {
		both(words...)
	}
	followers := map[*harness.Server]int{ours: harness.StartReference(t, follow(ours.Port)...).Port, theirs: harness.StartReference(t, append(diskless, follow(theirs.Port)...)...).Port}
	require.Len(t, followers, 2)
	for _, each := range []*harness.Client{h, c} {
		await(t, "a replica is there", func() bool { return each.Info("replication")["connected_slaves"] == "1" })
	}
	for _, words := range append(lines[2:11], [][]string{{"FAILOVER", "TO", "127.0.0.1", "1"}, {"FAILOVER", "FORCE"}, {"FAILOVER", "TO", "127.0.0.1", "1", "FORCE"}, {"FAILOVER", "TIMEOUT", "5", "FORCE"}}...) {
		both(words...)
	}
	require.Equal(t, h.Info("replication")["master_failover_state"], "no-failover")
	both("REPLICAOF", "127.0.0.1", strconv.Itoa(harness.FreePort(t)))
	both("FAILOVER")
}

// TestFailover has each kind of primary hand over to each kind of replica, and back, while clients count: no count is lost, nobody takes all data anew, and
// writes that have waited are answered as by a replica.
func TestFailover(t *testing.T) {
	t.Parallel()
	type start func(t testing.TB, flags ...string) *harness.Server
	for name, kinds := range map[string][2]start{
		"headgate to headgate":     {harness.Start, harness.Start},
		"headgate to redis-server": {harness.Start, harness.StartReference},
		"redis-server to headgate": {harness.StartReference, harness.Start},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := kinds[0](t, diskless...)
			replica := kinds[1](t, append(diskless, follow(primary.Port)...)...)
			servers := [2]*harness.Server{primary, replica}
			p, r := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr)
			harness.AwaitSame(t, p, r)
			full := p.Info("stats")["sync_full"]
			counted := 0
			for round := range 4 {
				from, to := servers[round%2], servers[1-round%2]
				p, r := harness.Dial(t, from.Addr), harness.Dial(t, to.Addr)
				writer := harness.Dial(t, from.Addr)
				stop, ended := make(chan struct{}), make(chan string)
				go func() {
					for {
						select {
						case <-stop:
							ended <- ""
							return
						default:
						}
						if err := writer.Send(harness.Command("INCR", "n")); err != nil {
							ended <- err.Error()
							return
						}
						v, err := writer.Read(wait)
						if err != nil {
							ended <- err.Error()
							return
						}
						if v.Kind == '-' {
							ended <- v.Text
							return
						}
						counted++
					}
				}()
				time.Sleep(20 * time.Millisecond)
				words := []string{"FAILOVER"}
				if round%2 == 1 {
					words = append(words, "TO", "127.0.0.1", strconv.Itoa(to.Port), "TIMEOUT", "10000")
				}
				require.Equal(t, "+OK\r\n", string(p.Do(words...)))
				require.Equal(t, "READONLY You can't write against a read only replica.", <-ended)
				close(stop)
				require.Equal(t, "master", r.Info("replication")["role"])
				harness.AwaitSame(t, r, p)
				require.Equal(t, "no-failover", p.Info("replication")["master_failover_state"])
				require.Equal(t, strconv.Itoa(counted), r.Ask("GET", "n").Text)
				require.Equal(t, strconv.Itoa(counted), p.Ask("GET", "n").Text)
			}
			require.Equal(t, full, p.Info("stats")["sync_full"])
			require.Equal(t, "0", r.Info("stats")["sync_full"])
		})
	}
}

// TestFailoverToSomebodyElse: if it is not the replica that answers where it was to be found, but a primary with data of its own, or no Redis, the server stays the
// primary with its data.
func TestFailoverToSomebodyElse(t *testing.T) {
	t.Parallel()
	for name, somebody := range map[string]func(t *testing.T) (port int){
		"a primary": func(t *testing.T) int {
			other := harness.Start(t, diskless...)
			harness.Dial(t, other.Addr).Ask("SET", "k", "theirs")
			return other.Port
		},
		"no Redis": func(t *testing.T) int {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { listener.Close() })
			go func() {
				for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
					_, _ = conn.Write([]byte("+PONG\r\n+OK\r\n+OK\r\n+WHAT\r\n"))
					_, _ = io.Copy(io.Discard, conn)
					conn.Close()
				}
			}()
			return listener.Addr().(*net.TCPAddr).Port
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, port := harness.Start(t, diskless...), strconv.Itoa(somebody(t))
			p := harness.Dial(t, primary.Addr)
			p.Ask("SET", "k", "mine")
			replica := followByHand(t, primary, "listening-port", port)
			acknowledge := func() bool {
				_, _ = replica.Write(harness.Command("REPLCONF", "ACK", p.Info("replication")["master_repl_offset"])) // it is closed when the failover has ended
				return true
			}
			await(t, "the replica is online", func() bool {
				return acknowledge() && strings.Contains(p.Ask("INFO", "replication").Text, "state=online")
			})
			require.Equal(t, "+OK\r\n", string(p.Do("FAILOVER", "TO", "127.0.0.1", port)))
			await(t, "the failover comes to nothing", func() bool { return acknowledge() && strings.Contains(primary.Log(), "the replica does not take over") })
			require.Equal(t, "OK", p.Ask("SET", "after", "1").Text)
			require.Equal(t, "mine", p.Ask("GET", "k").Text)
		})
	}
}

// TestTransactionThatEndsInFollowing: what a transaction has changed before its REPLICAOF stands in nobody's stream, so that the new primary's data are needed whole. A
// transaction that changes nothing, such as sentinels send, costs no full sync.
func TestTransactionThatEndsInFollowing(t *testing.T) {
	t.Parallel()
	for _, writes := range []bool{true, false} {
		primary := harness.Start(t, diskless...)
		heir := harness.Start(t, append(diskless, follow(primary.Port)...)...)
		p, h := harness.Dial(t, primary.Addr), harness.Dial(t, heir.Addr)
		harness.AwaitSame(t, p, h)
		h.Ask("REPLICAOF", "NO", "ONE")
		p.Ask("MULTI")
		if writes {
			p.Ask("SET", "k", "1")
		}
		p.Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(heir.Port))
		p.Ask("EXEC")
		harness.AwaitSame(t, h, p)
		require.Equal(t, "0", p.Ask("EXISTS", "k").Text)
		require.Equal(t, map[bool]string{true: "1", false: "0"}[writes], h.Info("stats")["sync_full"])
	}
}

// TestFailoverThatComesToNothing: a replica that does not answer leaves the primary what it was, when the time is up or somebody says so.
func TestFailoverThatComesToNothing(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, diskless...)
	replica := harness.Start(t, follow(primary.Port)...)
	p, r, writer := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr), harness.Dial(t, primary.Addr)
	harness.AwaitSame(t, p, r)
	state := func() string { return p.Info("replication")["master_failover_state"] }
	require.NoError(t, replica.Stall())
	p.Ask("SET", "k", "1")
	for name, words := range map[string][]string{"abort": {"FAILOVER"}, "timeout": {"FAILOVER", "TIMEOUT", "100"}} {
		require.Equal(t, "+OK\r\n", string(p.Do(words...)), name)
		require.NoError(t, writer.Send(harness.Command("SET", "k", name)))
		if name == "abort" {
			require.Equal(t, "waiting-for-sync", state())
			require.Equal(t, "-ERR FAILOVER already in progress.\r\n", string(p.Do("FAILOVER")))
			require.Equal(t, "-ERR REPLICAOF not allowed while failing over.\r\n", string(p.Do("REPLICAOF", "NO", "ONE")))
			require.Equal(t, "$1\r\n1\r\n", string(p.Do("GET", "k")), "reads do not wait")
			require.Equal(t, "+OK\r\n", string(p.Do("CLIENT", "UNPAUSE")))
			require.Equal(t, "$1\r\n1\r\n", string(p.Do("GET", "k")), "nor is it a pause that clients may end")
			require.Equal(t, "+OK\r\n", string(p.Do("FAILOVER", "ABORT")))
		}
		require.Equal(t, "+OK\r\n", string(writer.Reply()))
		require.Equal(t, "no-failover", state())
		require.Equal(t, "master", p.Info("replication")["role"])
		p.Ask("SET", "k", "1")
	}
	awaitLog(t, primary, "no replica had all changes in time")
	require.NoError(t, replica.Resume())
	harness.AwaitSame(t, p, r)

	// By force it is asked to take over though it lags.
	require.NoError(t, replica.Stall())
	p.Ask("SET", "k", "2")
	require.Equal(t, "+OK\r\n", string(p.Do("FAILOVER", "TO", "127.0.0.1", strconv.Itoa(replica.Port), "FORCE", "TIMEOUT", "100")))
	await(t, "the time is up", func() bool { return state() == "failover-in-progress" })
	require.NoError(t, replica.Resume())
	await(t, "it has taken over", func() bool { return state() == "no-failover" })
	harness.AwaitSame(t, r, p)
}

// TestFailoverWithoutAReplica: writes do not wait for ever for a replica that has gone.
func TestFailoverWithoutAReplica(t *testing.T) {
	t.Parallel()
	for _, to := range [][]string{nil, {"TO"}} {
		primary := harness.Start(t, diskless...)
		replica := harness.Start(t, follow(primary.Port)...)
		p, writer := harness.Dial(t, primary.Addr), harness.Dial(t, primary.Addr)
		harness.AwaitSame(t, p, harness.Dial(t, replica.Addr))
		require.NoError(t, replica.Stall())
		p.Ask("SET", "k", "1")
		words := append([]string{"FAILOVER"}, to...)
		if to != nil {
			words = append(words, "127.0.0.1", strconv.Itoa(replica.Port))
		}
		require.Equal(t, "+OK\r\n", string(p.Do(words...)))
		require.NoError(t, writer.Send(harness.Command("SET", "k", "2")))
		require.Equal(t, "waiting-for-sync", p.Info("replication")["master_failover_state"])
		replica.Kill()
		require.Equal(t, "+OK\r\n", string(writer.Reply()))
		awaitLog(t, primary, "the replica has gone")
	}
}

// slowAnswer starts a primary and a replica that the primary reaches through a proxy, which keeps what the replica says to PSYNC … FAILOVER until told is
// closed.
func slowAnswer(t *testing.T) (primary, replica *harness.Server, told chan struct{}) {
	between, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { between.Close() })
	port := strconv.Itoa(between.Addr().(*net.TCPAddr).Port)
	primary = harness.Start(t, diskless...)
	replica = harness.Start(t, append(follow(primary.Port), "--replica-announce-port", port)...)
	told = make(chan struct{})
	go func() {
		from, err := between.Accept()
		if err != nil {
			return
		}
		defer from.Close()
		to, err := net.Dial("tcp", replica.Addr)
		if err != nil {
			return
		}
		defer to.Close()
		var asked atomic.Bool
		go func() {
			b := make([]byte, 4096)
			for n, err := from.Read(b); err == nil; n, err = from.Read(b) {
				asked.Store(asked.Load() || bytes.Contains(b[:n], []byte("FAILOVER")))
				if _, err := to.Write(b[:n]); err != nil {
					return
				}
			}
		}()
		b := make([]byte, 4096)
		for n, err := to.Read(b); err == nil; n, err = to.Read(b) {
			if asked.Load() {
				<-told
			}
			if _, err := from.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	return primary, replica, told
}

// TestFailoverOverAfterTakeover: the time is up, or somebody calls the failover off, between the takeover and the answer that tells of it. There must
// not be two primaries then.
func TestFailoverOverAfterTakeover(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	for name, end := range map[string]func(p *harness.Client){
		"timeout": func(*harness.Client) { time.Sleep(timeout + timeout/4) },
		"abort":   func(p *harness.Client) { require.Equal(t, "+OK\r\n", string(p.Do("FAILOVER", "ABORT"))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, replica, told := slowAnswer(t)
			p, r, writer := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr), harness.Dial(t, primary.Addr)
			harness.AwaitSame(t, p, r)
			require.Equal(t, "+OK\r\n", string(p.Do("FAILOVER", "TIMEOUT", strconv.FormatInt(timeout.Milliseconds(), 10))))
			require.NoError(t, writer.Send(harness.Command("INCR", "n")))
			await(t, "the replica has taken over", func() bool { return r.Info("replication")["role"] == "master" })
			end(p)
			require.Equal(t, "failover-in-progress", p.Info("replication")["master_failover_state"])
			close(told)
			await(t, "the old primary knows", func() bool { return p.Info("replication")["master_failover_state"] == "no-failover" })
			require.Equal(t, "slave", p.Info("replication")["role"])
			require.Contains(t, string(writer.Reply()), "-READONLY")
		})
	}
}

// TestAbortWithoutAnswer: a replica that was asked to take over and does not answer leaves the primary what it was once ABORT has waited for it, and
// is not asked again over another connection.
func TestAbortWithoutAnswer(t *testing.T) {
	t.Parallel()
	primary, replica, told := slowAnswer(t)
	defer close(told)
	p, r, writer := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr), harness.Dial(t, primary.Addr)
	harness.AwaitSame(t, p, r)
	p.Ask("SET", "k", "1")
	require.Equal(t, "+OK\r\n", string(p.Do("FAILOVER")))
	require.NoError(t, writer.Send(harness.Command("INCR", "n")))
	await(t, "the replica has taken over", func() bool { return r.Info("replication")["role"] == "master" })
	require.Equal(t, "+OK\r\n", string(p.Do("FAILOVER", "ABORT")))
	require.Equal(t, "+OK\r\n", string(p.Do("FAILOVER", "ABORT")), "once more")
	await(t, "the failover has ended", func() bool { return p.Info("replication")["master_failover_state"] == "no-failover" })
	require.Equal(t, "master", p.Info("replication")["role"])
	require.Equal(t, ":1\r\n", string(writer.Reply()))
	awaitLog(t, primary, "see by ROLE that there are not two primaries")
}

// TestReplicaThatLacksChangesDoesNotTakeOver: a replica that was asked to take over and comes back with older data before it has read that refuses when it is
// asked again, unless it is to by force: what it lacks may have been confirmed by WAIT.
func TestReplicaThatLacksChangesDoesNotTakeOver(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, diskless...)
	replica := harness.Start(t, follow(primary.Port)...)
	p, r := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr)
	p.Ask("SET", "k", "v")
	harness.AwaitSame(t, p, r)
	info := r.Info("replication")
	offset, err := strconv.Atoi(info["master_repl_offset"])
	require.NoError(t, err)
	beyond := strconv.Itoa(offset + 1_000_000)
	asker := harness.Dial(t, replica.Addr)
	require.Equal(t, "-ERR PSYNC FAILOVER offset is beyond mine: this replica lacks changes.\r\n", string(asker.Do("PSYNC", info["master_replid"], beyond, "FAILOVER")))
	require.Equal(t, "slave", r.Info("replication")["role"])
	require.NoError(t, asker.Send(harness.Command("PSYNC", info["master_replid"], beyond, "FAILOVER", "FORCE")))
	await(t, "it takes over by force", func() bool { return r.Info("replication")["role"] == "master" })
}
