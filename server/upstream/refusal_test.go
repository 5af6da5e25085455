package upstream

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// logged is a log whose text can be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestANodeThatRefusesAllCalls is seen: in its state, in the upstream's, and in the log, once.
func TestANodeThatRefusesAllCalls(t *testing.T) {
	nodes := fakeCluster(t, 2)
	key := keyOf(1, 2)
	refuse := func(reply string) {
		nodes[1].answer(clustered(slotsOf(nodes...), on("GET", func([]string) string { return reply })))
	}
	const lacking = "NOPERM this user has no permissions to run the 'get' command"
	refuse("-" + lacking + "\r\n")
	var log logged
	u := New(Config{Addrs: []string{nodes[0].addr}}, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(u.Close)
	require.NoError(t, u.Start(t.Context()))
	status := func() *NodeStatus {
		s := u.Status()
		for i := range s.Nodes {
			if s.Nodes[i].Addr == nodes[1].addr {
				return &s.Nodes[i]
			}
		}
		require.FailNow(t, "the node is not known")
		return nil
	}
	require.Equal(t, "-"+lacking+"\r\n", do(t, u, "GET", key).reply)
	require.NotEqual(t, "refusing", status().State, "it may be the client's mistake")
	require.Nil(t, do(t, u, "SET", key, "v").failure)
	for range refusalsMin {
		do(t, u, "GET", key)
	}
	require.Equal(t, "refusing", status().State)
	require.Equal(t, lacking, status().Why)
	s := u.Status()
	require.Equal(t, StateDegraded, s.State())
	require.Equal(t, nodes[1].addr+": "+lacking, s.Problem)
	require.Equal(t, 1, s.NodesDown())
	require.Equal(t, 1, strings.Count(log.String(), "a node refuses calls"), log.String())
	require.Contains(t, log.String(), lacking)

	const other = "NOPERM this user has no permissions to access one of the keys used as arguments"
	refuse("-" + other + "\r\n")
	do(t, u, "GET", key)
	require.Contains(t, log.String(), other[:60], "what it refuses often does not hide what it refuses as well")

	refuse("")
	require.Nil(t, do(t, u, "GET", key).failure)
	s = u.Status()
	require.Equal(t, StateUp, s.State())
	require.Empty(t, s.Problem)
	require.Contains(t, log.String(), "a node accepts calls again")
}

// TestCallsThatAreRefused are answers: one client without the right to what it asks for must not take the gateway out of service, where no other call would
// come that showed that the node serves others.
func TestCallsThatAreRefused(t *testing.T) {
	const lacking = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	node := startFake(t, on("GET", func([]string) string { return lacking }))
	u := started(t, Config{Addrs: []string{node.addr}})
	for range 2 * refusalsMin {
		require.Equal(t, lacking, do(t, u, "GET", "k").reply)
	}
	s := u.Status()
	require.True(t, s.Reached)
	require.Equal(t, StateDegraded, s.State())
	require.Equal(t, "refusing", s.Nodes[0].State)
}

// TestANodeThatServesReadsOnly refuses calls, however often it serves others, and says so once.
func TestANodeThatServesReadsOnly(t *testing.T) {
	var log logged
	node := startFake(t, on("SET", func([]string) string {
		return "-OOM command not allowed when used memory > 'maxmemory'. script: 0123, on @user_script:1.\r\n"
	}))
	u := New(Config{Addrs: []string{node.addr}}, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(u.Close)
	require.NoError(t, u.Start(t.Context()))
	for range 20 {
		do(t, u, "SET", "k", "v")
		get := newCall("GET", "k")
		get.Reads = true
		require.Nil(t, get.send(u).wait(t).failure)
	}
	require.Equal(t, "refusing", u.Status().Nodes[0].State)
	require.NotContains(t, log.String(), "accepts calls again")
	require.NotContains(t, log.String(), "script: 0123")
	node.answer(nil)
	do(t, u, "SET", "k", "v")
	s := u.Status()
	require.Equal(t, StateUp, s.State())
}

// TestANodeThatRefusesConnections is seen likewise, and no call is needed for that.
func TestANodeThatRefusesConnections(t *testing.T) {
	nodes := fakeCluster(t, 2)
	nodes[1].answer(clustered(slotsOf(nodes...), on("HELLO", func([]string) string { return "-WRONGPASS invalid username-password pair or user is disabled.\r\n" })))
	var log logged
	u := New(Config{Addrs: []string{nodes[0].addr}, Password: "secret"}, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(u.Close)
	require.NoError(t, u.Start(t.Context()))
	readAllClocks(u)
	var s Status
	eventually(t, "it is seen", func() bool {
		s = u.Status()
		return s.State() == StateDegraded
	})
	require.Equal(t, nodes[1].addr+": wrong user name or password (WRONGPASS)", s.Problem)
	eventually(t, "it is logged", func() bool { return strings.Contains(log.String(), "a node refuses connections") })
	require.Equal(t, "UPSTREAM "+nodes[1].addr+" cannot answer: wrong user name or password (WRONGPASS)", do(t, u, "GET", keyOf(1, 2)).failure.Error())
	require.Nil(t, do(t, u, "GET", keyOf(0, 2)).failure)
}

// TestADatabaseThatIsRefused is no matter of the node's state, which goes on serving database 0; nor are a user, or one client too many, over RESP3.
// Not every call that is refused makes a connection.
func TestADatabaseThatIsRefused(t *testing.T) {
	const selecting = "-NOPERM this user has no permissions to run the 'select' command\r\n"
	node := startFake(t, func(args []string) string {
		switch line := strings.Join(args, " "); {
		case args[0] == "SELECT":
			return selecting
		case strings.HasPrefix(line, "HELLO 3 "):
			return "-ERR max number of clients reached\r\n"
		case strings.HasPrefix(line, "HELLO 2 AUTH other "):
			return "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
		}
		return ""
	})
	u := started(t, Config{Addrs: []string{node.addr}, Rest: time.Minute})
	require.Nil(t, do(t, u, "GET", "k").failure)
	before := node.accepted.Load()
	for _, set := range []func(*Call){
		func(c *Call) { c.DB = 1 },
		func(c *Call) { c.Proto = 3 },
		func(c *Call) { c.User = &UserConn{Name: "other", Password: "wrong"} },
	} {
		for range 2 * refusalsMin {
			c := newCall("GET", "k")
			set(&c.Call)
			r := c.send(u).wait(t)
			require.True(t, r.failure != nil || r.reply == selecting, r.reply)
			s := u.Status()
			require.Equal(t, StateUp, s.State(), s.Problem)
		}
		require.Nil(t, do(t, u, "GET", "k").failure)
	}
	require.Equal(t, before+3, node.accepted.Load())
	for range 2 { // likewise
		c := newCall("RL.GCRA", "k", "1", "1", "1s", "WAIT", "100")
		c.DB, c.Deadline = 1, Now()+int64(time.Minute)
		u.SendAlone(&c.Call, Wait{Until: c.Deadline, Words: func(time.Duration) []byte { return c.Request }})
		r := c.wait(t)
		require.True(t, r.failure != nil || r.reply == selecting, r.reply)
		s := u.Status()
		require.Equal(t, StateUp, s.State(), s.Problem)
	}
	require.Equal(t, before+4, node.accepted.Load())
}

// TestConnectionsThatAreCutOff are no matter of a node that answers others: one more client than it serves, which it tells before it hangs up, a user
// whose connection ends during HELLO, and one whose first call has no answer.
func TestConnectionsThatAreCutOff(t *testing.T) {
	node := startFake(t, func(args []string) string {
		switch line := strings.Join(args, " "); {
		case args[0] == "SELECT", args[0] == "INCR", strings.HasPrefix(line, "HELLO 2 AUTH gone "):
			return hangup
		case strings.HasPrefix(line, "HELLO 2 AUTH more "):
			return "-ERR max number of clients reached\r\n"
		}
		return ""
	})
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: time.Minute, Rest: time.Minute})
	for _, tc := range []struct {
		user, command, failure string
		db                     int
	}{
		{"more", "GET", "cannot answer: ERR max number of clients reached", 1},
		{"gone", "GET", "cannot answer: closed by the server before HELLO was answered", 0},
		{"killed", "INCR", "broke (closed by the server)", 0},
	} {
		require.Nil(t, do(t, u, "GET", "k").failure)
		c := newCall(tc.command, "k")
		c.DB, c.User = int32(tc.db), &UserConn{Name: tc.user, Password: "p"}
		failure := c.send(u).wait(t).failure
		require.NotNil(t, failure, tc.user)
		require.Contains(t, failure.Error(), tc.failure)
		require.Nil(t, do(t, u, "GET", "k").failure, tc.user)
		require.Zero(t, u.Status().Nodes[0].Rests, tc.user)
	}
	before := node.accepted.Load()
	c := newCall("GET", "k")
	c.User = &UserConn{Name: "gone", Password: "p"}
	require.NotNil(t, c.send(u).wait(t).failure)
	require.Equal(t, before, node.accepted.Load(), "the connection rests")
}

// TestANodeThatComesBackAndRefuses rests no longer: a Redis that was restarted knows no users of ACL SETUSER any more.
func TestANodeThatComesBackAndRefuses(t *testing.T) {
	nodes := fakeCluster(t, 2)
	var forgot atomic.Bool
	nodes[1].answer(clustered(slotsOf(nodes...), on("HELLO", func([]string) string {
		if forgot.Load() {
			return "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
		}
		return ""
	})))
	var log logged
	u := New(Config{Addrs: []string{nodes[0].addr}, Timeout: 10 * time.Second, Rest: 10 * time.Millisecond}, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(u.Close)
	require.NoError(t, u.Start(t.Context()))
	require.Nil(t, do(t, u, "GET", keyOf(1, 2)).failure)
	status := func() NodeStatus {
		all := u.Status().Nodes
		return all[slices.IndexFunc(all, func(n NodeStatus) bool { return n.Addr == nodes[1].addr })]
	}
	forgot.Store(true)
	nodes[1].hangUp()
	u.fleet.Load().named(nodes[1].addr).rest("it has ended")
	eventually(t, "it refuses", func() bool { return status().State == "refusing" })
	require.Contains(t, status().Why, "wrong user name or password (WRONGPASS)")
	eventually(t, "it is logged", func() bool { return strings.Contains(log.String(), "a node refuses connections") })
	require.NotContains(t, log.String(), "a node answers again")
	forgot.Store(false)
	eventually(t, "it is used again", func() bool { return do(t, u, "GET", keyOf(1, 2)).failure == nil && status().State == "up" })
	require.Contains(t, log.String(), "a node accepts connections again")
}

// TestNodesThatAreGone: the problem is told as soon as no primary is left, also where replicas still tell of the topology.
func TestNodesThatAreGone(t *testing.T) {
	first, second := startFake(t, nil), startFake(t, nil)
	first.mode, second.mode = "cluster", "cluster"
	topology := array(array(integer(0), integer(Slots-1), addressOf(first), addressOf(second)))
	for _, node := range []*fakeNode{first, second} {
		node.answer(clustered(topology, nil))
	}
	u := started(t, Config{Addrs: []string{first.addr, second.addr}})
	require.Nil(t, do(t, u, "GET", "k").failure)
	_ = first.listener.Close()
	first.hangUp()
	do(t, u, "GET", "k")
	do(t, u, "GET", "k")
	eventually(t, "it is down", func() bool {
		s := u.Status()
		return s.State() == StateDown
	})
	s := u.Status()
	require.Contains(t, s.Problem, first.addr+": connection refused")
}

// TestANodeThatNobodyAsksIsAskedAgain: a replica that had refused the gateway's user counted as refusing for as long as it was one.
func TestANodeThatNobodyAsksIsAskedAgain(t *testing.T) {
	t.Parallel()
	nodes := fakeCluster(t, 2)
	topology := clustered(slotsOf(nodes[0]), nil)
	refuse := func(args []string) string {
		if args[0] == "HELLO" {
			return "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
		}
		return topology(args)
	}
	nodes[0].answer(topology)
	nodes[1].answer(refuse)
	u := started(t, Config{Addrs: []string{nodes[0].addr, nodes[1].addr}, User: "gateway", Password: "secret"})
	second := u.fleet.Load().named(nodes[1].addr)
	_, err := second.ask(time.Second, "HELLO")
	require.Error(t, err)
	require.Equal(t, stateRefusing, second.status().State)
	nodes[1].answer(topology)
	eventually(t, "it is asked again", func() bool {
		u.fleet.Load().lookSoon()
		return second.status().State == "up"
	})
}
