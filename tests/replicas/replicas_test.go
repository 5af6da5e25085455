// Package replicas has headgate follow a redis-server, over links that are cut, with snapshots of both forms, as a move from Redis, and beside
// a redis-server that follows the same primary.
package replicas

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	wait = 20 * time.Second      // for what comes by itself
	tick = 10 * time.Millisecond // between two looks
)

// diskless has a primary send its snapshots as they are made, without the usual wait for further replicas.
var diskless = []string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"}

// onDisk has a primary save a file first, whose length it announces.
var onDisk = []string{"--repl-diskless-sync", "no"}

// follow returns the flag by which a server follows a port of this machine.
func follow(port int) []string { return []string{"--replicaof", "127.0.0.1 " + strconv.Itoa(port)} }

// await waits for a condition.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, wait, tick, what)
}

// awaitLog waits for a line in a server's log.
func awaitLog(t *testing.T, s *harness.Server, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.Log(), text) }, wait, tick, "%s: %s", text, s.Log)
}

// fill gives a server keys of some kinds in several databases, functions among them, and returns how many.
func fill(c *harness.Client) int {
	n := 0
	var all [][]string
	for db := range 3 {
		all = append(all, []string{"SELECT", strconv.Itoa(db)})
		for i := range 40 {
			k := strconv.Itoa(i)
			all = append(all, []string{"SET", "s" + k, strings.Repeat(k, i)}, []string{"SET", "t" + k, k, "PXAT", "4000000000000"},
				[]string{"RPUSH", "l" + k, "a", k, "b"}, []string{"HSET", "h" + k, "f", k}, []string{"ZADD", "z" + k, k, "m", "1.5", "n"})
			n += 5
		}
		all = append(all, []string{"XADD", "x", "5-5", "f", "v"})
		n++
	}
	c.AskAll(append(all, []string{"SELECT", "0"},
		[]string{"FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function{function_name='seven', callback=function() return 7 end, flags={'no-writes'}}"})...)
	return n
}

// readWhole is the command that reads a whole value of a type; of a key that is gone by now, that it is.
func readWhole(kind, k string) []string {
	switch kind {
	case "string":
		return []string{"GET", k}
	case "list":
		return []string{"LRANGE", k, "0", "-1"}
	case "hash":
		return []string{"HGETALL", k}
	case "set":
		return []string{"SMEMBERS", k}
	case "zset":
		return []string{"ZRANGE", k, "0", "-1", "WITHSCORES"}
	case "stream":
		return []string{"XRANGE", k, "-", "+"}
	}
	return []string{"TYPE", k}
}

// digest is all that a server holds, as far as fill makes it.
func digest(c *harness.Client) string {
	var all strings.Builder
	for db := range 16 {
		c.Ask("SELECT", strconv.Itoa(db))
		keys := c.Ask("KEYS", "*").Sorted(false).Strings()
		var about, values [][]string
		for _, k := range keys {
			about = append(about, []string{"TYPE", k}, []string{"PEXPIRETIME", k}, []string{"DUMP", k})
		}
		told := c.AskAll(about...)
		for i, k := range keys {
			values = append(values, readWhole(told[3*i].Text, k))
		}
		for i, value := range c.AskAll(values...) {
			kind := told[3*i].Text
			if kind == "hash" || kind == "set" { // which have no order
				value = value.Sorted(kind == "hash")
			}
			fmt.Fprintln(&all, db, keys[i], kind, told[3*i+1].Wire(), told[3*i+2].Kind, value.Wire())
		}
	}
	c.Ask("SELECT", "0")
	return all.String() + c.Ask("FUNCTION", "LIST", "WITHCODE").Wire()
}

func TestAllDataInBothForms(t *testing.T) {
	t.Parallel()
	for name, form := range map[string][]string{"as it is made": diskless, "of a file": onDisk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := harness.StartReference(t, form...)
			p := harness.Dial(t, primary.Addr)
			keys := fill(p)
			replica := harness.Start(t)
			r := harness.Dial(t, replica.Addr)
			r.Ask("SET", "its own", "1")
			require.Equal(t, "+OK\r\n", string(r.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(primary.Port))))
			harness.AwaitSame(t, p, r)
			require.Equal(t, digest(p), digest(r))
			require.Contains(t, replica.Log(), fmt.Sprintf(`"keys":%d`, keys))
			require.Equal(t, ":7\r\n", string(r.Do("FCALL_RO", "seven", "0")))

			p.Ask("SELECT", "5")
			p.Ask("SET", "later", "x")
			p.Ask("MULTI")
			p.Ask("INCR", "n")
			p.Ask("SELECT", "6")
			p.Ask("INCR", "n")
			p.Ask("EXEC")
			p.Ask("EVAL", "redis.call('SET', KEYS[1], 'x', 'PX', 100000000) return redis.call('SPOP', KEYS[2])", "2", "scripted", "none")
			p.Ask("FUNCTION", "DELETE", "lib")
			harness.AwaitSame(t, p, r)
			require.Equal(t, digest(p), digest(r))
		})
	}
}

// TestRoleAndInfo compares what a redis-server and a headgate say of themselves that follow the same primary.
func TestRoleAndInfo(t *testing.T) {
	t.Parallel()
	primary := harness.StartReference(t, append(diskless, "--requirepass", "open sesame")...)
	p := harness.Dial(t, primary.Addr)
	p.Ask("AUTH", "open sesame")
	fill(p)
	flags := append(follow(primary.Port), "--masterauth", "open sesame", "--replica-priority", "7", "--replica-announce-ip", "127.0.0.9", "--replica-announce-port", "77")
	ours, theirs := harness.Start(t, flags...), harness.StartReference(t, flags...)
	h, c := harness.Dial(t, ours.Addr), harness.Dial(t, theirs.Addr)
	harness.AwaitSame(t, p, h)
	harness.AwaitSame(t, p, c)
	await(t, "the primary knows of both", func() bool {
		info := p.Info("replication")
		return strings.Contains(info["slave0"], "state=online") && strings.Contains(info["slave1"], "state=online")
	})
	require.Contains(t, p.Info("replication")["slave0"], "ip=127.0.0.9,port=77")
	require.Contains(t, p.Info("replication")["slave1"], "ip=127.0.0.9,port=77")

	want, got := c.Info("replication"), h.Info("replication")
	for name, value := range want {
		if strings.HasPrefix(name, "repl_backlog") || strings.HasSuffix(name, "_ago") {
			continue
		}
		require.Contains(t, got, name)
		if !strings.Contains(name, "offset") {
			require.Equal(t, value, got[name], name)
		}
	}
	role, hers := c.Ask("ROLE"), h.Ask("ROLE")
	role.Items[4], hers.Items[4] = harness.Value{}, harness.Value{}
	require.Equal(t, role.Wire(), hers.Wire())
	require.Equal(t, c.Ask("CONFIG", "GET", "replicaof").Wire(), h.Ask("CONFIG", "GET", "replicaof").Wire())
	require.Contains(t, string(h.Do("HELLO", "2")), "\r\nreplica\r\n")
	h.Ask("HELLO", "2")

	line := h.Ask("CLIENT", "LIST", "TYPE", "master").Text
	require.Contains(t, line, " flags=M")
	require.Contains(t, line, "addr=127.0.0.1:"+strconv.Itoa(primary.Port)+" ")
	require.Contains(t, line, " user=(superuser) ")
	require.NotContains(t, h.Ask("CLIENT", "LIST", "TYPE", "normal").Text, " flags=M")

	// Both hear of what WAIT asks for.
	p.Ask("SET", "k", "v")
	require.Equal(t, ":2\r\n", string(p.Do("WAIT", "2", "10000")))

	partial, err := strconv.Atoi(p.Info("stats")["sync_partial_ok"])
	require.NoError(t, err)
	require.Equal(t, ":1\r\n", string(h.Do("CLIENT", "KILL", "TYPE", "master")))
	awaitLog(t, ours, "CLIENT KILL")
	harness.AwaitSame(t, p, h)
	await(t, "the link is made anew", func() bool { return p.Info("stats")["sync_partial_ok"] == strconv.Itoa(partial+1) })
	require.Equal(t, "2", p.Info("stats")["sync_full"])
	require.NotContains(t, ours.Log(), "open sesame")
}

// TestItselfBehindAProxy: a server that is told to follow itself by an address that it cannot know to be its own finds out by its own answer.
func TestItselfBehindAProxy(t *testing.T) {
	t.Parallel()
	server := harness.Start(t)
	c := harness.Dial(t, server.Addr)
	c.Ask("SET", "k", "v")
	require.Contains(t, string(c.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(server.Port))), "-ERR this is the server's own address")
	proxy := harness.StartProxy(t, server.Addr)
	require.Equal(t, "+OK\r\n", string(c.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(proxy.Port))))
	await(t, "it finds out", func() bool {
		return strings.Contains(c.Info("replication")["master_link_last_error"], "this is the server itself")
	})
	awaitLog(t, server, "this is the server itself")
	require.Equal(t, "$1\r\nv\r\n", string(c.Do("GET", "k")))
	require.Equal(t, "+OK\r\n", string(c.Do("REPLICAOF", "NO", "ONE")))
	require.Equal(t, "+OK\r\n", string(c.Do("SET", "k", "w")))
}

// TestRefusals has a redis-server and a headgate that follow nobody who answers refuse the same in the same words.
func TestRefusals(t *testing.T) {
	t.Parallel()
	closed := strconv.Itoa(harness.FreePort(t))
	ours, theirs := harness.StartPair(t)
	h, c := harness.Dial(t, ours.Addr), harness.Dial(t, theirs.Addr)
	both := func(words ...string) {
		t.Helper()
		require.Equal(t, c.Ask(words...).Wire(), h.Ask(words...).Wire(), "%q", words)
	}
	for _, words := range [][]string{
		{"REPLICAOF", "localhost", "70000"}, {"REPLICAOF", "localhost", "x"}, {"SLAVEOF", "a", "-1"}, {"REPLICAOF", "no", "two"}, {"REPLICAOF", "x"},
		{"REPLCONF"}, {"REPLCONF", "a"}, {"REPLCONF", "listening-port", "x"}, {"REPLCONF", "listening-port", "5"}, {"REPLCONF", "foo", "bar"},
		{"REPLCONF", "capa", "eof", "capa", "psync2"}, {"ROLE"}, {"REPLICAOF", "NO", "ONE"},
		{"SET", "k", "v"}, {"MULTI"}, {"SET", "k", "w"},
	} {
		both(words...)
	}
	waiting, waiting2 := harness.Dial(t, ours.Addr), harness.Dial(t, theirs.Addr)
	for _, w := range []*harness.Client{waiting, waiting2} {
		require.NoError(t, w.Send(harness.Command("BLPOP", "empty", "0")))
	}
	for _, each := range []*harness.Client{harness.Dial(t, ours.Addr), harness.Dial(t, theirs.Addr)} {
		await(t, "it waits", func() bool { return each.Info("clients")["blocked_clients"] == "1" })
		require.Equal(t, "+OK\r\n", string(each.Do("REPLICAOF", "127.0.0.1", closed)))
		require.Equal(t, "+OK Already connected to specified master\r\n", string(each.Do("SLAVEOF", "127.0.0.1", closed)))
	}
	require.Equal(t, waiting2.Value().Wire(), waiting.Value().Wire())
	_, gone := waiting.Drain(wait)
	require.True(t, gone)
	for _, words := range [][]string{
		{"EXEC"}, {"GET", "k"}, {"SET", "k", "v"}, {"FLUSHALL"}, {"BLPOP", "k", "1"}, {"PFCOUNT", "k"}, {"PUBLISH", "a", "b"}, {"FUNCTION", "FLUSH"}, {"WAIT", "0", "1"},
		{"SCRIPT", "LOAD", "return 1"}, {"SET"}, {"NOSUCH"}, {"XREAD", "BLOCK", "1", "STREAMS", "s", "$"},
		{"EVAL", "return redis.call('set','a',1)", "0"}, {"EVAL", "return redis.pcall('set','a',1).err", "0"}, {"EVAL", "return redis.call('get','a')", "0"},
		{"EVAL", "#!lua flags=allow-oom\nreturn redis.call('set','a',1)", "0"}, {"EVAL", "#!lua flags=no-writes\nreturn redis.call('set','a',1)", "0"},
		{"EVAL_RO", "return 1", "0"},
		{"MULTI"}, {"GET", "a"}, {"EXEC"}, {"MULTI"}, {"SET", "a", "1"}, {"EXEC"},
		{"CONFIG", "SET", "replica-serve-stale-data", "no"},
		{"GET", "a"}, {"SET", "a", "1"}, {"PING"}, {"EVAL", "return 1", "0"}, {"EVAL", "#!lua flags=no-writes\nreturn 1", "0"},
		{"EVAL", "#!lua flags=allow-stale\nreturn 1", "0"}, {"EVAL", "#!lua flags=allow-stale,no-writes\nreturn 1", "0"},
		{"MULTI"}, {"GET", "a"}, {"EXEC"}, {"DBSIZE"}, {"CONFIG", "GET", "replicaof"},
		{"CONFIG", "SET", "slave-serve-stale-data", "yes", "replica-read-only", "no"},
		{"SET", "a", "1"}, {"GET", "a"}, {"DEL", "a"},
		{"REPLICAOF", "NO", "ONE"}, {"ROLE"}, {"SET", "a", "1"}, {"WAIT", "0", "1"}, {"CONFIG", "GET", "replicaof"},
	} {
		both(words...)
	}
}

// TestExpiryIsThePrimarys: what has expired is not there for clients, but goes only when the primary says so.
func TestExpiryIsThePrimarys(t *testing.T) {
	t.Parallel()
	primary := harness.StartReference(t, append(diskless, "--enable-debug-command", "yes")...)
	p := harness.Dial(t, primary.Addr)
	p.Ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
	p.Ask("SET", "before", "1", "PX", "50")
	replica := harness.Start(t, follow(primary.Port)...)
	r := harness.Dial(t, replica.Addr)
	harness.AwaitSame(t, p, r)
	p.Ask("SET", "after", "1", "PX", "50")
	p.Ask("RPUSH", "list", "a")
	p.Ask("PEXPIRE", "list", "50")
	harness.AwaitSame(t, p, r)
	await(t, "they are past their time", func() bool { return r.Ask("EXISTS", "before", "after", "list").Text == "0" })
	time.Sleep(300 * time.Millisecond) // longer than any round of background work is away
	require.Equal(t, ":3\r\n", string(r.Do("DBSIZE")))
	require.Equal(t, "$-1\r\n", string(r.Do("GET", "after")))
	require.Equal(t, "*0\r\n", string(r.Do("KEYS", "*")))
	require.Equal(t, "$-1\r\n", string(r.Do("RANDOMKEY")))
	require.Equal(t, ":-2\r\n", string(r.Do("PTTL", "list")))
	require.Equal(t, "*2\r\n$1\r\n0\r\n*0\r\n", string(r.Do("SCAN", "0")))
	require.Equal(t, ":3\r\n", string(r.Do("DBSIZE")))

	require.Equal(t, "$-1\r\n", string(p.Do("GET", "after"))) // which has the primary delete it
	harness.AwaitSame(t, p, r)
	require.Equal(t, ":2\r\n", string(r.Do("DBSIZE")))
	p.Ask("RPUSH", "list", "b") // the primary deletes the old list first
	harness.AwaitSame(t, p, r)
	require.Equal(t, "*1\r\n$1\r\nb\r\n", string(r.Do("LRANGE", "list", "0", "-1")))

	require.Equal(t, "+OK\r\n", string(r.Do("REPLICAOF", "NO", "ONE")))
	await(t, "it removes them itself now", func() bool { return r.Ask("DBSIZE").Text == "1" })
}

// TestMoveFromRedis: clients count on a redis-server all the while, end on headgate, and every count that they were told is there.
func TestMoveFromRedis(t *testing.T) {
	t.Parallel()
	const writers = 8
	primary := harness.StartReference(t, diskless...)
	p := harness.Dial(t, primary.Addr)
	fill(p)
	replica := harness.Start(t, "--appendonly", "yes")
	r := harness.Dial(t, replica.Addr)

	var target atomic.Pointer[harness.Server]
	target.Store(primary)
	var moved, counted [writers]atomic.Int64
	stop := make(chan struct{})
	ended := make(chan error, writers)
	for i := range writers {
		go func() {
			ended <- func() error {
				var c *harness.Client
				var at *harness.Server
				for {
					select {
					case <-stop:
						return nil
					default:
					}
					if now := target.Load(); now == nil { // between the two nobody counts
						moved[i].Store(1)
						time.Sleep(time.Millisecond)
						continue
					} else if now != at {
						var err error
						if c, err = harness.TryDial(t, now.Addr); err != nil {
							return err
						}
						at = now
					}
					if err := c.Send(harness.Command("EVAL", "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('PEXPIRE', KEYS[1], 10000000) end return n", "1", "count:"+strconv.Itoa(i))); err != nil {
						return err
					}
					v, err := c.Read(wait)
					if err != nil {
						return err
					}
					if want := strconv.FormatInt(counted[i].Add(1), 10); v.Text != want {
						return fmt.Errorf("%s answers %s and not %s", at.Name, v.Wire(), want)
					}
				}
			}()
		}()
	}
	require.Equal(t, "+OK\r\n", string(r.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(primary.Port))))
	await(t, "the replica follows", func() bool { return r.Info("replication")["master_link_status"] == "up" })
	target.Store(nil)
	await(t, "all writers pause", func() bool {
		for i := range moved {
			if moved[i].Load() == 0 {
				return false
			}
		}
		return true
	})
	harness.AwaitSame(t, p, r)
	require.Equal(t, "+OK\r\n", string(r.Do("REPLICAOF", "NO", "ONE")))
	target.Store(replica)
	before := counted[0].Load()
	await(t, "they go on", func() bool { return counted[0].Load() > before+100 })
	close(stop)
	for range writers {
		require.NoError(t, <-ended)
	}
	require.Equal(t, "master", r.Info("replication")["role"])
	require.Equal(t, p.Info("replication")["master_replid"], r.Info("replication")["master_replid2"], "what it was before is known, for replicas of the same primary")

	// What has come over is on the disk.
	want := digest(r)
	replica.Kill()
	again := harness.Dial(t, harness.StartIn(t, replica.Dir, "--appendonly", "yes").Addr)
	require.Equal(t, want, digest(again))
}

// TestOldDataStayUntilTheNewAreWhole cuts each link in the midst of the snapshot: the old data are served all the while, and after a restart.
func TestOldDataStayUntilTheNewAreWhole(t *testing.T) {
	t.Parallel()
	for name, form := range map[string][]string{"as it is made": diskless, "of a file": onDisk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := harness.StartReference(t, form...)
			fill(harness.Dial(t, primary.Addr))
			proxy := harness.StartProxy(t, primary.Addr)
			proxy.Limit(5_000)
			replica := harness.Start(t, "--appendonly", "yes")
			r := harness.Dial(t, replica.Addr)
			r.Ask("SET", "old", "1")
			r.Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(proxy.Port))
			await(t, "a link was cut", func() bool { return proxy.Connections() >= 2 })
			require.Equal(t, "$1\r\n1\r\n", string(r.Do("GET", "old")))
			require.Equal(t, ":1\r\n", string(r.Do("DBSIZE")))
			require.Equal(t, "down", r.Info("replication")["master_link_status"])
			require.Contains(t, replica.Log(), "the data stay as they are")
			replica.Kill()
			restarted := harness.StartIn(t, replica.Dir, append(follow(proxy.Port), "--appendonly", "yes")...)
			r = harness.Dial(t, restarted.Addr)
			require.Equal(t, "$1\r\n1\r\n", string(r.Do("GET", "old")))
			proxy.Limit(-1)
			p := harness.Dial(t, primary.Addr)
			harness.AwaitSame(t, p, r)
			require.Equal(t, digest(p), digest(r))
		})
	}
}

// TestRewriteAndRestart: CONFIG REWRITE keeps who is followed, and a start follows again.
func TestRewriteAndRestart(t *testing.T) {
	t.Parallel()
	primary := harness.StartReference(t, diskless...)
	p := harness.Dial(t, primary.Addr)
	path := t.TempDir() + "/h.conf"
	writeFile(t, path, "save \"\"\n")
	replica := harness.StartConfigured(t, path)
	r := harness.Dial(t, replica.Addr)
	r.Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(primary.Port))
	require.Equal(t, "+OK\r\n", string(r.Do("CONFIG", "REWRITE")))
	harness.AwaitSame(t, p, r)
	require.NoError(t, replica.Terminate())
	p.Ask("SET", "k", "v")
	r = harness.Dial(t, harness.StartConfigured(t, path).Addr)
	harness.AwaitSame(t, p, r)
	require.Equal(t, "$1\r\nv\r\n", string(r.Do("GET", "k")))
	r.Ask("REPLICAOF", "NO", "ONE")
	require.Equal(t, "+OK\r\n", string(r.Do("CONFIG", "REWRITE")))
	require.NotContains(t, readFile(t, path), strconv.Itoa(primary.Port))
}
