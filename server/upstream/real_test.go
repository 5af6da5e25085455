package upstream

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const startLimit = 20 * time.Second // for servers to come up, and for clusters to agree

// redisServer is a redis-server of a test's own.
type redisServer struct {
	addr string
	port int
	cmd  *exec.Cmd
	args []string
}

// startRedis runs redis-server on a port of its own until the test ends.
func startRedis(t *testing.T, flags ...string) *redisServer {
	t.Helper()
	r := launchRedis(t, flags...)
	r.await(t, flags...)
	return r
}

func launchRedis(t *testing.T, flags ...string) *redisServer {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	require.NoError(t, err, "redis-server is missing: make deps installs it")
	dir := t.TempDir()
	port := freePort(t)
	r := &redisServer{port: port, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	r.args = append([]string{binary, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", dir, "--daemonize", "no",
		"--enable-debug-command", "yes"}, flags...)
	r.start(t)
	t.Cleanup(r.kill)
	return r
}

func (r *redisServer) start(t *testing.T) {
	t.Helper()
	r.cmd = exec.Command(r.args[0], r.args[1:]...)
	require.NoError(t, r.cmd.Start())
}

// kill ends the server as kill -9 does.
func (r *redisServer) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// await waits until the server answers, over TLS if its flags say so.
func (r *redisServer) await(t *testing.T, flags ...string) {
	t.Helper()
	deadline := time.Now().Add(startLimit)
	for {
		if conn, err := net.Dial("tcp", r.addr); err == nil {
			_ = conn.Close()
			return
		}
		require.True(t, time.Now().Before(deadline), "redis-server %v does not come up", flags)
		time.Sleep(10 * time.Millisecond)
	}
}

// stop has the process stand still, and cont go on.
func (r *redisServer) stop() { _ = r.cmd.Process.Signal(syscall.SIGSTOP) }
func (r *redisServer) cont() { _ = r.cmd.Process.Signal(syscall.SIGCONT) }

// ask sends one command over a connection of its own.
func (r *redisServer) ask(args ...string) value {
	conn, err := net.DialTimeout("tcp", r.addr, time.Second)
	if err != nil {
		return value{kind: '-', text: err.Error()}
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err = conn.Write(command(args...)); err == nil {
		var values []value
		if values, err = readValues(conn, 1, 1<<20); err == nil {
			return values[0]
		}
	}
	return value{kind: '-', text: err.Error()}
}

// must is ask for what may not fail.
func (r *redisServer) must(t *testing.T, args ...string) value {
	t.Helper()
	v := r.ask(args...)
	require.False(t, v.isError(), "%v at %s: %s", args, r.addr, v.text)
	return v
}

// nextPort is shared by tests that run beside each other.
var nextPort atomic.Int64

func init() { nextPort.Store(int64(21000 + os.Getpid()%1000*8)) }

// freePort returns a port that nothing listens on, below those that the system gives to outgoing connections.
func freePort(t *testing.T) int {
	t.Helper()
	for range 2000 {
		port := int(nextPort.Add(1))
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = listener.Close()
			return port
		}
	}
	require.FailNow(t, "no port is free")
	return 0
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, startLimit, 10*time.Millisecond, what)
}

func TestSingleRedis(t *testing.T) {
	socket := filepath.Join(shortDir(t), "s")
	r := startRedis(t, "--unixsocket", socket)
	for _, cfg := range []Config{{Addrs: []string{r.addr}}, {Unix: socket}, {Addrs: []string{"127.0.0.1:1", r.addr}}} {
		u := started(t, cfg)
		require.False(t, u.Cluster())
		require.Equal(t, "+OK\r\n", do(t, u, "SET", "k", "v").reply)
		require.Equal(t, "$1\r\nv\r\n", do(t, u, "GET", "k").reply)
		require.Equal(t, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", do(t, u, "HGETALL", "k").reply)

		c := newCall("HGETALL", "none")
		c.Proto = 3
		require.Equal(t, "%0\r\n", c.send(u).wait(t).reply)
		c = newCall("HGETALL", "none")
		require.Equal(t, "*0\r\n", c.send(u).wait(t).reply)

		c = newCall("GET", "k")
		c.DB = 3
		require.Equal(t, "$-1\r\n", c.send(u).wait(t).reply)
		c = newCall("GET", "k")
		c.DB = 99
		require.Equal(t, "-ERR DB index is out of range\r\n", c.send(u).wait(t).reply)
		require.Nil(t, do(t, u, "GET", "k").failure, "that is no fault of the node")

		large := strings.Repeat("x", 3<<20)
		require.Equal(t, "+OK\r\n", do(t, u, "SET", "large", large).reply)
		require.Equal(t, bulk(large), do(t, u, "GET", "large").reply)
		require.Equal(t, "$1\r\nv\r\n", do(t, u, "GET", "k").reply)
		u.Close()
	}
	eventually(t, "connections end with Close", func() bool { return !strings.Contains(r.must(t, "CLIENT", "LIST").text, "name=headgate") })
}

// shortDir is a directory with a name short enough for a socket's path.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "up")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestRepliesThatAreTooLarge are dropped, and what comes behind them is not.
func TestRepliesThatAreTooLarge(t *testing.T) {
	r := startRedis(t)
	u := started(t, Config{Addrs: []string{r.addr}, ReplyMax: 100_000})
	r.must(t, "SET", "k", "v")
	for _, size := range []int{99_000, 101_000, 5_000_000} {
		r.must(t, "EVAL", "redis.call('SET', 'large', string.rep('x', tonumber(ARGV[1])))", "0", strconv.Itoa(size))
		large, small := newCall("GET", "large"), newCall("GET", "k")
		u.Send(&large.Call)
		u.Send(&small.Call)
		u.Flush()
		got := large.wait(t)
		if size < 100_000 {
			require.Nil(t, got.failure)
			require.Len(t, got.reply, size+10)
		} else {
			require.Equal(t, TooLarge, got.failure.Kind)
		}
		require.Equal(t, "$1\r\nv\r\n", small.wait(t).reply)
	}
	require.EqualValues(t, 1, u.Status().Nodes[0].Connects)
}

func TestPasswordsAndUsers(t *testing.T) {
	r := startRedis(t, "--requirepass", "secret", "--user", "gate", "on", ">gatepass", "~*", "+@read", "+@write", "--user", "other", "on", ">otherpass", "~o*", "+get")
	for _, test := range []struct{ user, password, want string }{
		{"", "", "it wants a password (NOAUTH), and upstream-password is not set"},
		{"gate", "", "wrong user name or password (WRONGPASS): upstream-password is not set"},
		{"", "wrong", "wrong user name or password (WRONGPASS)"},
		{"gate", "wrong", "wrong user name or password (WRONGPASS)"},
		{"nobody", "x", "wrong user name or password (WRONGPASS)"},
	} {
		u := open(t, Config{Addrs: []string{r.addr}, User: test.user, Password: test.password})
		require.EqualError(t, u.Start(t.Context()), r.addr+": "+test.want)
		require.Equal(t, Unreachable, do(t, u, "GET", "k").failure.Kind)
		u.Close()
	}
	require.Equal(t, "+OK\r\n", do(t, started(t, Config{Addrs: []string{r.addr}, Password: "secret"}), "SET", "other", "v").reply)

	// A user that may do little: not even INFO, SCRIPT LOAD or CLIENT SETNAME.
	u := started(t, Config{Addrs: []string{r.addr}, User: "gate", Password: "gatepass"})
	require.Equal(t, "$1\r\nv\r\n", do(t, u, "GET", "other").reply)
	require.Contains(t, do(t, u, "EVALSHA", "x", "0").reply, "-NOPERM")

	// Some commands as another user, on a connection of its own.
	other := &UserConn{Name: "other", Password: "otherpass"}
	for _, proto := range []int{2, 3} {
		c := newCall("GET", "other")
		c.User, c.Proto = other, proto
		require.Equal(t, "$1\r\nv\r\n", c.send(u).wait(t).reply)
		c = newCall("GET", "k")
		c.User, c.Proto = other, proto
		require.Contains(t, c.send(u).wait(t).reply, "-NOPERM")
	}
	c := newCall("GET", "k")
	c.User = &UserConn{Name: "other", Password: "wrong"}
	failure := c.send(u).wait(t).failure
	require.Equal(t, "UPSTREAM "+r.addr+" cannot answer: wrong user name or password (WRONGPASS)", failure.Error())
	require.Nil(t, do(t, u, "GET", "k").failure, "the node does not rest for that")
}

// TestNoSentinel: a server that is none answered with the raw error for its command.
func TestNoSentinel(t *testing.T) {
	plain := startRedis(t)
	err := open(t, Config{Kind: Sentinel, Addrs: []string{plain.addr}, Master: "mymaster"}).Start(t.Context())
	require.ErrorContains(t, err, plain.addr+": it is not a Sentinel: ")
	require.NotContains(t, err.Error(), "unknown command")
}

func TestWrongUpstreams(t *testing.T) {
	first := startRedis(t)
	behind := startRedis(t, "--replicaof", "127.0.0.1", strconv.Itoa(first.port))
	old := startFake(t, on("HELLO", func([]string) string {
		return array(bulk("server"), bulk("redis"), bulk("version"), bulk("6.0.16"), bulk("mode"), bulk("standalone"), bulk("role"), bulk("master"))
	}))
	ancient := startFake(t, on("HELLO", func([]string) string { return "-ERR unknown command `HELLO`, with args beginning with: `2`, \r\n" }))
	sentinel := startFake(t, nil)
	sentinel.mode = "sentinel"
	web := startFake(t, func([]string) string { return "HTTP/1.1 400 Bad Request\r\n\r\n" })
	closed := startFake(t, nil)
	_ = closed.listener.Close()
	for addr, want := range map[string]string{
		behind.addr:   "it is a replica, which cannot be written to",
		old.addr:      "it runs version 6.0.16: Redis 6.2 or later is needed",
		ancient.addr:  "it does not know HELLO: Redis 6.2 or later is needed",
		sentinel.addr: "it is a Sentinel: set upstream to redis-sentinel://" + sentinel.addr + "/ and the name that it has for the primary, such as mymaster",
		web.addr:      "it sends bytes that are not RESP",
		closed.addr:   "connection refused",
	} {
		u := open(t, Config{Addrs: []string{addr}})
		err := u.Start(t.Context())
		require.EqualError(t, err, addr+": "+want)
		require.Equal(t, addr != closed.addr && addr != web.addr, IsLasting(err), want)
		require.Contains(t, u.Status().Problem, want)
		u.Close()
	}
	u := open(t, Config{Addrs: []string{behind.addr, closed.addr}})
	require.False(t, IsLasting(u.Start(t.Context())), "one of them may come up, and be the primary")
	u = open(t, Config{Addrs: []string{behind.addr, first.addr}})
	require.NoError(t, u.Start(t.Context()), "the primary is among them")
	require.Equal(t, "+OK\r\n", do(t, u, "SET", "k", "v").reply)

	itself := startFake(t, nil)
	u = open(t, Config{Addrs: []string{itself.addr}, RunID: "abc"})
	require.EqualError(t, u.Start(t.Context()), itself.addr+": that is this gateway itself")
	u = open(t, Config{Addrs: []string{"no.such.host.invalid:6379"}})
	require.ErrorContains(t, u.Start(t.Context()), "no.such.host.invalid:6379: ")
}

// TestAnUpstreamThatComesUpLater is used then, though Start found none.
func TestAnUpstreamThatComesUpLater(t *testing.T) {
	r := startRedis(t)
	r.kill()
	u := open(t, Config{Addrs: []string{r.addr}, Rest: 100 * time.Millisecond})
	require.EqualError(t, u.Start(t.Context()), r.addr+": connection refused")
	require.NotNil(t, do(t, u, "GET", "k").failure)
	r.start(t)
	eventually(t, "it comes up", func() bool { return do(t, u, "GET", "k").failure == nil })
	eventually(t, "the topology is known", func() bool { return u.Status().Problem == "" })
}

// TestAServerThatStandsStill: calls end at their deadline, no call is sent to it while it rests, and none is sent twice.
func TestAServerThatStandsStill(t *testing.T) {
	r := startRedis(t)
	u := started(t, Config{Addrs: []string{r.addr}, Timeout: 100 * time.Millisecond, Rest: 300 * time.Millisecond})
	var passed, unsure int
	count := func(res result) {
		switch {
		case res.failure == nil:
			passed++
		case res.failure.mayHaveRun():
			unsure++
		}
	}
	for range 3 {
		r.stop()
		c := newCall("INCR", "n")
		count(c.send(u).wait(t))
		count(do(t, u, "INCR", "n"))
		r.cont()
		eventually(t, "it answers again", func() bool {
			res := do(t, u, "INCR", "n")
			count(res)
			return res.failure == nil
		})
	}
	v := r.must(t, "GET", "n").text
	n, err := strconv.Atoi(v)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, passed)
	require.LessOrEqual(t, n, passed+unsure)
	require.Positive(t, unsure)
}

// TestARestart: what was under way is lost or has run, what comes later is answered.
func TestARestart(t *testing.T) {
	r := startRedis(t)
	u := started(t, Config{Addrs: []string{r.addr}, Rest: 50 * time.Millisecond})
	script := &Script{Name: "s", Text: "return 'one'", SHA: "6cf5b1a3f5e8ab6f3c3c0b3a0a4c8c9b0d5a2f10"}
	script.SHA = r.must(t, "SCRIPT", "LOAD", script.Text).text
	call := func() result {
		c := newCall("EVALSHA", script.SHA, "1", "k")
		c.Script = script
		return c.send(u).wait(t)
	}
	require.Equal(t, bulk("one"), call().reply)
	r.must(t, "SCRIPT", "FLUSH")
	require.Equal(t, bulk("one"), call().reply)
	r.kill()
	require.NotNil(t, call().failure)
	r.start(t)
	eventually(t, "it comes up again", func() bool { return call().reply == bulk("one") })
}
