package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
)

func TestCallsAreAnsweredInOrder(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}})
	var calls []*pending
	for i := range 500 {
		p := newCall("GET", fmt.Sprint(i))
		u.Send(&p.Call)
		calls = append(calls, p)
	}
	u.Flush()
	for i, p := range calls {
		r := p.wait(t)
		require.Nil(t, r.failure)
		require.Equal(t, bulk(fmt.Sprintf("value of %d", i)), r.reply)
		require.Equal(t, node.addr, r.node)
	}
	s := u.Status()
	require.EqualValues(t, 500, s.Calls)
	require.Zero(t, s.PendingCalls)
	require.Zero(t, s.PendingBytes)
}

// TestAStalledNode: calls fail at their deadline, later ones at once, until a probe is answered.
func TestAStalledNode(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: 50 * time.Millisecond, Rest: 200 * time.Millisecond})
	require.Nil(t, do(t, u, "GET", "k").failure)

	node.answer(func([]string) string { return stall })
	r := do(t, u, "SET", "k", "1")
	require.Equal(t, Timeout, r.failure.Kind)
	require.Equal(t, "UPSTREAM no answer from "+node.addr+" within 50 ms", r.failure.Error())
	require.True(t, r.failure.mayHaveRun())
	r = do(t, u, "SET", "k", "2")
	require.Equal(t, Resting, r.failure.Kind)
	require.Equal(t, "UPSTREAM "+node.addr+" is resting after failures: no answer in time", r.failure.Error())
	require.False(t, r.failure.mayHaveRun())

	node.answer(nil)
	require.Eventually(t, func() bool { return do(t, u, "GET", "k").failure == nil }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, 1, node.count("SET"), "nothing is sent twice, nor to a node that rests")
}

// TestABusyNodeDoesNotRest: calls that come behind a long reply fail at their deadline, but a node whose bytes keep coming is no node that does
// not answer.
func TestABusyNodeDoesNotRest(t *testing.T) {
	node := startFake(t, on("MGET", func([]string) string { return trickle + "60" }))
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: 100 * time.Millisecond, Rest: time.Hour})
	long := newCall("MGET", "k")
	long.Deadline = Now() + int64(10*time.Second)
	long.send(u)
	require.Equal(t, Timeout, do(t, u, "GET", "k").failure.Kind)
	require.Equal(t, Timeout, do(t, u, "GET", "k").failure.Kind, "it does not rest")
	require.Nil(t, long.wait(t).failure)
	require.Nil(t, do(t, u, "GET", "k").failure)
	s := u.Status()
	require.Zero(t, s.Nodes[0].Rests)
	require.EqualValues(t, 1, s.Connects, "nor is the connection given up")
}

// TestALostConnectionsCalls are not sent again: a server may have executed them.
func TestALostConnectionsCalls(t *testing.T) {
	node := startFake(t, on("INCR", func([]string) string { return hangup }))
	u := started(t, Config{Addrs: []string{node.addr}})
	var calls []*pending
	for range 10 {
		c := newCall("INCR", "k")
		u.Send(&c.Call)
		calls = append(calls, c)
	}
	u.Flush()
	for _, c := range calls {
		r := c.wait(t)
		require.Equal(t, Lost, r.failure.Kind)
		require.True(t, r.failure.mayHaveRun())
	}
	require.Equal(t, 1, node.count("INCR"), "the server closed after the first one")
	require.Nil(t, do(t, u, "GET", "k").failure, "the next connection is made at once")
	require.EqualValues(t, 10, u.Status().Lost)
}

// TestRepliesBeforeALossCount: what came before the connection broke was answered.
func TestRepliesBeforeALossCount(t *testing.T) {
	var n atomic.Int64
	node := startFake(t, on("INCR", func([]string) string {
		if n.Add(1) > 5 {
			return hangup
		}
		return integer(1)
	}))
	u := started(t, Config{Addrs: []string{node.addr}})
	var calls []*pending
	for range 10 {
		c := newCall("INCR", "k")
		u.Send(&c.Call)
		calls = append(calls, c)
	}
	u.Flush()
	for i, c := range calls {
		r := c.wait(t)
		if i < 5 {
			require.Equal(t, integer(1), r.reply)
		} else {
			require.Equal(t, Lost, r.failure.Kind)
		}
	}
}

// TestCommandsThatWereNotWrittenAreSentAgain: a server never sees the ends of those that the socket did not take, and cannot have executed
// them. The connection breaks while a large command is being written behind a small one.
func TestCommandsThatWereNotWrittenAreSentAgain(t *testing.T) {
	var first atomic.Bool
	release := make(chan struct{})
	node := startFake(t, func(args []string) string {
		if args[0] == "INCR" && first.CompareAndSwap(false, true) {
			<-release // nothing more is read
			return hangup
		}
		if args[0] == "INCR" || args[0] == "SET" {
			return "+OK\r\n"
		}
		return ""
	})
	u := started(t, Config{Addrs: []string{node.addr}, PendingBytes: 1 << 30})
	small, large, after := newCall("INCR", "k"), newCall("SET", "k", strings.Repeat("x", 24<<20)), newCall("SET", "k", "y")
	small.send(u)
	eventually(t, "it has been read", first.Load)
	large.send(u)
	after.send(u)
	require.Eventually(t, func() bool { return u.fleet.Load().all()[0].own[0].underWay() == 2 }, startLimit, time.Millisecond)
	close(release)
	require.Equal(t, Lost, small.wait(t).failure.Kind)
	require.Equal(t, "+OK\r\n", large.wait(t).reply)
	require.Equal(t, "+OK\r\n", after.wait(t).reply)
	require.Equal(t, 1, node.count("INCR"))
}

// underWay is how many writes are under way.
func (l *link) underWay() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes
}

// TestTwoWritesUnderWay, and the rest waits: it may still be given up without having run.
func TestTwoWritesUnderWay(t *testing.T) {
	release := make(chan struct{})
	node := startFake(t, on("INCR", func([]string) string {
		<-release
		return integer(1)
	}))
	u := started(t, Config{Addrs: []string{node.addr}})
	l := u.fleet.Load().all()[0].own[0]
	var calls []*pending
	for i := range 5 {
		calls = append(calls, newCall("INCR", "k").send(u))
		if i < flightsMax {
			eventually(t, "it is written", func() bool { return l.underWay() == i+1 })
		}
	}
	l.mu.Lock()
	require.Equal(t, 3, l.queue.n)
	require.Equal(t, flightsMax, l.writes)
	l.mu.Unlock()
	close(release)
	for _, c := range calls {
		require.Equal(t, integer(1), c.wait(t).reply)
	}
	batch := u.Status().Nodes[0].Batch
	require.EqualValues(t, 3, batch.Quantile(1), "what waited was one write")
}

// TestDeadlines: each call has its own, and the late reply is dropped.
func TestDeadlines(t *testing.T) {
	release := make(chan struct{})
	node := startFake(t, on("INCR", func([]string) string {
		<-release
		return integer(1)
	}))
	u := started(t, Config{Addrs: []string{node.addr}})
	long, short := newCall("INCR", "k"), newCall("INCR", "k")
	long.send(u)
	short.Deadline = Now() + int64(30*time.Millisecond)
	r := short.send(u).wait(t)
	require.Equal(t, Timeout, r.failure.Kind)
	require.GreaterOrEqual(t, Now(), short.Deadline)
	close(release)
	require.Equal(t, integer(1), long.wait(t).reply)
	require.Nil(t, do(t, u, "GET", "k").failure, "the node had too little time to be blamed")
}

// TestPending: above the limit the owner is to stop, and is told when it may go on; far above it calls are refused.
func TestPending(t *testing.T) {
	for _, cfg := range []Config{{PendingCommands: 10}, {PendingBytes: 10 * int64(len(command("INCR", "k")))}} {
		release := make(chan struct{})
		node := startFake(t, on("INCR", func([]string) string {
			<-release
			return integer(1)
		}))
		cfg.Addrs = []string{node.addr}
		u := open(t, cfg)
		var relieved atomic.Int64
		u.OnRelieved = func() { relieved.Add(1) }
		require.NoError(t, u.Start(t.Context()))
		var calls []*pending
		for i := range 10 {
			require.False(t, u.Overloaded(), "after %d calls", i)
			calls = append(calls, newCall("INCR", "k").send(u))
		}
		require.False(t, u.Overloaded())
		for len(calls) < 20 {
			calls = append(calls, newCall("INCR", "k").send(u))
			require.True(t, u.Overloaded())
		}
		refused := 0
		for range 5 {
			if c := newCall("INCR", "k").send(u); u.Status().PendingCalls == 20 {
				require.Equal(t, Pending, c.wait(t).failure.Kind)
				refused++
			} else {
				calls = append(calls, c)
			}
		}
		close(release)
		for _, c := range calls {
			if r := c.wait(t); r.failure != nil {
				require.Equal(t, Pending, r.failure.Kind)
			}
		}
		eventually(t, "it is relieved", func() bool { return relieved.Load() == 1 })
		require.False(t, u.Overloaded())
		s := u.Status()
		require.Zero(t, s.PendingCalls)
		require.Zero(t, s.PendingBytes)
		u.Close()
	}
}

// TestACallThatIsLargerThanTheLimit goes if nothing else is under way.
func TestACallThatIsLargerThanTheLimit(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}, PendingBytes: 1000})
	require.Equal(t, "+OK\r\n", do(t, u, "SET", "k", strings.Repeat("x", 100_000)).reply)
}

// TestNoStorm: while all nodes are gone, each is tried about once per rest, however many calls there are.
func TestNoStorm(t *testing.T) {
	nodes := fakeCluster(t, 3)
	const rest = 200 * time.Millisecond
	u := started(t, Config{Addrs: []string{nodes[0].addr}, Rest: rest})
	for i := range nodes {
		require.Nil(t, do(t, u, "GET", keyOf(i, 3)).failure)
	}
	var accepted int64
	for _, node := range nodes {
		_ = node.listener.Close()
		node.hangUp()
		accepted += node.accepted.Load()
	}
	begin := time.Now()
	var running sync.WaitGroup
	for i := range 50 {
		running.Go(func() {
			for range 200 {
				c := newCall("GET", keyOf(i%3, 3))
				c.send(u)
				<-c.done
				time.Sleep(time.Millisecond)
			}
		})
	}
	running.Wait()
	rests := int64(time.Since(begin)/rest) + 1
	attempts := int64(u.Status().Connects) - accepted
	require.Positive(t, attempts)
	require.LessOrEqual(t, attempts, 3*(rests+2), "attempts at 3 nodes in %d rests", rests)
}

// TestClose answers all calls, those that come later too.
func TestClose(t *testing.T) {
	node := startFake(t, on("INCR", func([]string) string { return stall }))
	u := started(t, Config{Addrs: []string{node.addr}})
	under := newCall("INCR", "k").send(u)
	eventually(t, "it is sent", func() bool { return node.count("INCR") == 1 })
	u.Close()
	u.Close()
	require.Equal(t, Lost, under.wait(t).failure.Kind)
	require.Equal(t, Unreachable, do(t, u, "GET", "k").failure.Kind)
	require.Equal(t, Unreachable, do(t, New(Config{Kind: Sentinel, Addrs: []string{"h:1"}}, slog.New(slog.DiscardHandler)), "GET", "k").failure.Kind)
}

// TestAddressesAreMapped, those that the configuration names and those that the topology announces.
func TestAddressesAreMapped(t *testing.T) {
	nodes := fakeCluster(t, 2)
	announced := array(
		array(integer(0), integer(Slots/2-1), array(bulk("10.9.9.1"), integer(1), bulk("a"))),
		array(integer(Slots/2), integer(Slots-1), array(bulk("some.host.invalid"), integer(2), bulk("b"))))
	for _, node := range nodes {
		node.answer(clustered(announced, nil))
	}
	moved := on("GET", func([]string) string { return "-MOVED 1 some.host.invalid:2\r\n" })
	nodes[0].answer(clustered(announced, moved))
	u := started(t, Config{Addrs: []string{"10.9.9.1:1"}, Map: map[string]string{"10.9.9.1:1": nodes[0].addr, "some.host.invalid:2": nodes[1].addr}})
	require.Equal(t, "some.host.invalid:2", do(t, u, "GET", keyOf(1, 2)).node)
	require.Equal(t, "some.host.invalid:2", do(t, u, "GET", keyOf(0, 2)).node)
	require.Equal(t, "10.9.9.1:1", do(t, u, "SET", "k", "v").node[:10])
}

// TestANewConfiguration is used as soon as it works, and the old one until then. No call fails.
func TestANewConfiguration(t *testing.T) {
	first, second := startFake(t, nil), startFake(t, nil)
	cfg := Config{Addrs: []string{first.addr}, Timeout: 10 * time.Second}
	u := started(t, cfg)
	var stopped atomic.Bool
	var running sync.WaitGroup
	var failed atomic.Int64
	for range 4 {
		running.Go(func() {
			for !stopped.Load() {
				c := newCall("GET", "k").send(u)
				if r := <-c.done; r.failure != nil {
					failed.Add(1)
				}
			}
		})
	}
	wrong := cfg
	wrong.Addrs = []string{"127.0.0.1:1"}
	u.SetConfig(wrong)
	eventually(t, "it is found not to work", func() bool { return strings.Contains(u.Status().Problem, "127.0.0.1:1: connection refused") })
	require.True(t, u.Status().Changing)
	require.Equal(t, first.addr, do(t, u, "GET", "k").node)

	cfg.Addrs = []string{second.addr}
	u.SetConfig(cfg)
	eventually(t, "it is used", func() bool { return do(t, u, "GET", "k").node == second.addr })
	require.False(t, u.Status().Changing)
	eventually(t, "the old connections are closed", func() bool {
		first.mu.Lock()
		defer first.mu.Unlock()
		return len(first.conns) == 0
	})
	cfg.Timeout = time.Minute
	connects := u.Status().Connects
	u.SetConfig(cfg)
	require.Equal(t, second.addr, do(t, u, "GET", "k").node)
	stopped.Store(true)
	running.Wait()
	require.Zero(t, failed.Load())
	require.Equal(t, connects, u.Status().Connects, "a limit needs no new connection")
}

// TestManyUsers: connections to a node are bounded, and those that nobody uses give way.
func TestManyUsers(t *testing.T) {
	node := startFake(t, on("INCR", func([]string) string { return stall }))
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: 20 * time.Second})
	as := func(i int, args ...string) *pending {
		c := newCall(args...)
		c.User = &UserConn{Name: fmt.Sprint("user", i), Password: "p"}
		return c.send(u)
	}
	for _, most := range []int{LinksMax, 9, 0, 2 * LinksMax} { // as many as there are descriptors for
		u.BoundLinks(most)
		for i := range 3 * LinksMax {
			require.Nil(t, as(i, "GET", "k").wait(t).failure)
		}
		require.LessOrEqual(t, u.Status().Nodes[0].Connections, max(1+2, min(most, LinksMax)))
	}
	for i := range LinksMax - 2 {
		as(1000+i, "INCR", "k")
	}
	require.Equal(t, "UPSTREAM "+node.addr+" cannot answer: too many connections, of different users and databases", as(1, "GET", "k").wait(t).failure.Error())
	require.Nil(t, do(t, u, "GET", "k").failure)
}

// TestRefusedUsersGiveWay: where there may be no more connections, users that the node refuses cost others none of theirs, and the one that was used
// longest ago is dropped first.
func TestRefusedUsersGiveWay(t *testing.T) {
	var mu sync.Mutex
	connects := make(map[string]int) // of each user
	node := startFake(t, on("HELLO", func(args []string) string {
		at := slices.Index(args, "AUTH")
		if at < 0 {
			return ""
		}
		mu.Lock()
		defer mu.Unlock()
		if connects[args[at+1]]++; strings.HasPrefix(args[at+1], "refused") {
			return "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
		}
		return ""
	}))
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: 20 * time.Second})
	ask := func(user string) *Failure {
		c := newCall("GET", "k")
		c.User = &UserConn{Name: user, Password: "p"}
		return c.send(u).wait(t).failure
	}
	connectsOf := func(user string) int {
		mu.Lock()
		defer mu.Unlock()
		return connects[user]
	}
	const served = LinksMax - 2 - 1 // beside the connections of the gateway's own user, and one that is refused
	for i := range served {
		require.Nil(t, ask(fmt.Sprint("served", i)))
	}
	for i := range LinksMax {
		require.NotNil(t, ask(fmt.Sprint("refused", i)))
	}
	for i := range served {
		require.Nil(t, ask(fmt.Sprint("served", i)))
		require.Equal(t, 1, connectsOf(fmt.Sprint("served", i)))
	}
	require.Nil(t, ask("another"))
	require.Nil(t, ask("more"))
	require.Nil(t, ask("served1"))
	require.Equal(t, 1, connectsOf("served1"))
	require.Nil(t, ask("served0"))
	require.Equal(t, 2, connectsOf("served0"))
}

// TestUsersOfANodeThatHasLeft: a call for which the node has no connection yet is one for the next node, and not one too many.
func TestUsersOfANodeThatHasLeft(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}})
	n := (*u.fleet.Load().primaries.Load())[0]
	n.close()
	for db := range 2 {
		c := newCall("PING")
		c.DB, c.Deadline = int32(db), Now()+int64(50*time.Millisecond)
		c.send(u)
		require.Equal(t, closedDetail, c.wait(t).failure.Detail, "database %d", db)
	}
}

// TestCloseEndsAChange: a new configuration whose nodes answer just then is not used any more.
func TestCloseEndsAChange(t *testing.T) {
	first, second := startFake(t, nil), startFake(t, nil)
	u := started(t, Config{Addrs: []string{first.addr}})
	u.config.Lock()
	current, next := u.fleet.Load(), newFleet(u, Config{Addrs: []string{second.addr}})
	u.next = next
	u.config.Unlock()
	require.NoError(t, next.look(t.Context()))
	u.Close()
	u.change(current, next)
	require.Same(t, current, u.fleet.Load())
}

// TestIdleConnectionsAreClosed, and made again when they are needed.
func TestIdleConnectionsAreClosed(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}})
	require.Nil(t, do(t, u, "GET", "k").failure)
	n := u.fleet.Load().all()[0]
	n.reap(Now() - int64(time.Hour))
	require.Equal(t, 1, n.status().Connections)
	n.reap(Now() + 1)
	eventually(t, "it is closed", func() bool { return n.status().Connections == 0 })
	require.Nil(t, do(t, u, "GET", "k").failure)
	require.GreaterOrEqual(t, n.status().Connects, uint64(2))
}

// TestServersThatSayNonsense lose the connection, and nothing is made of it.
func TestServersThatSayNonsense(t *testing.T) {
	for _, nonsense := range []string{"nonsense\r\n", "$-7\r\n", ":1\r\n:2\r\n", strings.Repeat("*1\r\n", 2*depthMax)} {
		node := startFake(t, on("INCR", func([]string) string { return nonsense }))
		u := started(t, Config{Addrs: []string{node.addr}, Rest: 50 * time.Millisecond})
		do(t, u, "INCR", "k")
		eventually(t, "it is used again", func() bool { return do(t, u, "GET", "k").reply == bulk("value of k") })
		require.GreaterOrEqual(t, u.Status().Connects, uint64(2))
		u.Close()
	}
}

func TestHistogram(t *testing.T) {
	for v := range uint64(1 << 20) {
		if b := bucketOf(v); bucketMax(b) < v || b > 0 && bucketMax(b-1) >= v {
			require.FailNow(t, "the bucket is wrong", "%d is in %d, up to %d", v, b, bucketMax(b))
		}
	}
	var h histogram
	require.Zero(t, new(Histogram).Quantile(0.5))
	for i := range int64(100) {
		h.Add(i)
	}
	h.Add(-1)
	s := h.snapshot()
	require.EqualValues(t, 101, s.Count())
	require.EqualValues(t, 4950, s.Sum)
	require.InDelta(t, 50, s.Quantile(0.5), 7)
	require.InDelta(t, 99, s.Quantile(0.99), 13)
	require.Zero(t, s.Quantile(0))
	h.Add(1 << 62)
	s = h.snapshot()
	require.EqualValues(t, bucketMax(buckets-1), s.Quantile(1))
	s.Merge(&s)
	require.EqualValues(t, 204, s.Count())
}

// TestCallsAllocateNothing once there are a connection and its buffers. The server is one that allocates nothing either.
func TestCallsAllocateNothing(t *testing.T) {
	u := started(t, Config{Addrs: []string{startFake(t, nil).addr}})
	const batch = 16
	done := make(chan struct{}, batch)
	calls := make([]Call, batch)
	request := command("PING")
	// The connection of RESP3 is made by the test: its server answers each PING, and nothing else comes.
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = theirs.Close() })
	go func() {
		in, pongs := make([]byte, batch*len(request)), bytes.Repeat([]byte("+PONG\r\n"), batch)
		for {
			n, err := io.ReadFull(theirs, in)
			if err != nil {
				return
			}
			_, _ = theirs.Write(pongs[:n/len(request)*7])
		}
	}()
	l := u.fleet.Load().all()[0].own[1]
	l.mu.Lock()
	l.conn, l.reading = ours, true
	l.mu.Unlock()
	go newReader(l, ours).run()
	for i := range calls {
		calls[i] = Call{Slot: -1, Proto: 3, Replies: 1, Request: request, Done: func(*Call) { done <- struct{}{} }}
	}
	round := func() {
		for i := range calls {
			calls[i].Deadline = 0
			u.Send(&calls[i])
		}
		u.Flush()
		for range calls {
			<-done
		}
	}
	for range 10 {
		round()
	}
	require.Less(t, testing.AllocsPerRun(1000, round), 1.0)
}

// TestAServerThatReadsNothing: deadlines hold while a write is stuck, and the connection is not used again.
func TestAServerThatReadsNothing(t *testing.T) {
	release := make(chan struct{})
	node := startFake(t, on("INCR", func([]string) string {
		<-release
		return hangup
	}))
	u := started(t, Config{Addrs: []string{node.addr}, PendingBytes: 1 << 30, Timeout: 100 * time.Millisecond, Rest: 100 * time.Millisecond})
	stuck := newCall("INCR", "k").send(u)
	large := newCall("SET", "k", strings.Repeat("x", 64<<20)).send(u)
	require.Equal(t, Timeout, stuck.wait(t).failure.Kind)
	kind := large.wait(t).failure.Kind
	require.True(t, kind == Timeout || kind == Resting, kind)
	close(release)
	node.answer(nil)
	eventually(t, "it is used again", func() bool { return do(t, u, "GET", "k").failure == nil })
	require.GreaterOrEqual(t, u.Status().Connects, uint64(2))
}

// TestAnotherPrimary: outside clusters, a primary that has become a replica is left for the one that is named beside it.
func TestAnotherPrimary(t *testing.T) {
	first, second := startRedis(t), startRedis(t)
	second.must(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(first.port))
	u := started(t, Config{Addrs: []string{first.addr, second.addr}, Rest: 50 * time.Millisecond})
	require.Equal(t, first.addr, do(t, u, "SET", "k", "v").node)
	second.must(t, "REPLICAOF", "NO", "ONE")
	first.must(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(second.port))
	r := do(t, u, "SET", "k", "v")
	require.Nil(t, r.failure, "the call waits for the topology")
	require.Equal(t, second.addr, r.node)
}

func TestIPv6(t *testing.T) {
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6: ", err)
	}
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	node := startFakeAt(t, "[::1]:"+port, nil)
	node.mode = "cluster"
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	node.answer(clustered(array(array(integer(0), integer(Slots-1), array(bulk("::1"), integer(number), bulk("id")))), nil))
	cfg, err := ParseURL("redis://[::1]:" + port)
	require.NoError(t, err)
	u := started(t, cfg)
	require.Equal(t, "[::1]:"+port, do(t, u, "GET", "k").node)
	require.Len(t, u.Status().Nodes, 1)
}

func TestStatus(t *testing.T) {
	node := startFake(t, func(args []string) string {
		switch args[0] {
		case "INFO":
			return bulk("# Server\r\nredis_version:7.0.15\r\nheadgate_version:1.2.3\r\nrun_id:abc\r\n")
		case "TIME":
			return array(bulk(strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)), bulk("0"))
		}
		return ""
	})
	u := started(t, Config{Addrs: []string{node.addr}, RunID: "another"})
	require.True(t, u.Headgate())
	readAllClocks(u)
	require.Nil(t, do(t, u, "GET", "k").failure)
	s := u.Status()
	require.EqualValues(t, 1, s.Calls)
	require.True(t, s.Headgate)
	require.Len(t, s.Nodes, 1)
	n := s.Nodes[0]
	require.InDelta(t, float64(time.Hour), float64(n.Offset), float64(10*time.Second))
	require.Equal(t, "up", n.State)
	require.Equal(t, "primary", n.Role)
	require.Equal(t, "7.0.15", n.Version)
	require.EqualValues(t, n.Calls, n.RoundTrip.Count())
	require.EqualValues(t, n.Calls, n.Batch.Sum)

	node.answer(func([]string) string { return hangup })
	_ = node.listener.Close()
	do(t, u, "GET", "k")
	do(t, u, "GET", "k")
	eventually(t, "it rests", func() bool { return u.Status().Nodes[0].State == "resting" })
	n = u.Status().Nodes[0]
	require.NotEmpty(t, n.Why)
	require.EqualValues(t, 1, n.Rests)
	eventually(t, "the topology is not known", func() bool { return strings.HasPrefix(u.Status().Problem, node.addr+": ") })
}

// readAllClocks reads the clocks of all primaries.
func readAllClocks(u *Upstream) {
	f := u.fleet.Load()
	for unread := *f.primaries.Load(); len(unread) > 0; {
		unread = f.readClocks(unread)
	}
}

// TestClocksAreReadWhileLooksAreDue all the time, one after each look.
func TestClocksAreReadWhileLooksAreDue(t *testing.T) {
	nodes := fakeCluster(t, 3)
	u := open(t, Config{Addrs: []string{nodes[0].addr}})
	f := u.fleet.Load()
	require.NoError(t, f.look(t.Context()))
	unread := *f.primaries.Load()
	for left := range 3 {
		f.lookSoon()
		unread = f.readClocks(unread)
		require.Len(t, unread, 2-left)
	}
	for _, node := range nodes {
		require.Equal(t, 1, node.count("TIME"))
	}
	require.Len(t, f.readClocks(*f.primaries.Load()), 2)
	<-f.wanted
	require.Empty(t, f.readClocks(*f.primaries.Load()), "no look is due")
}

// TestWhatWaitsGoesOnAfterLateReplies: replies to calls that were given up make room for the next write, too.
func TestWhatWaitsGoesOnAfterLateReplies(t *testing.T) {
	release := make(chan struct{})
	node := startFake(t, on("INCR", func([]string) string {
		<-release
		return integer(1)
	}))
	u := started(t, Config{Addrs: []string{node.addr}})
	l := u.fleet.Load().all()[0].own[0]
	var short []*pending
	for i := range flightsMax {
		c := newCall("INCR", "k")
		c.Deadline = Now() + int64(200*time.Millisecond)
		short = append(short, c.send(u))
		eventually(t, "it is written", func() bool { return l.underWay() == i+1 })
	}
	long := newCall("GET", "k").send(u)
	for _, c := range short {
		require.Equal(t, Timeout, c.wait(t).failure.Kind)
	}
	close(release)
	require.Equal(t, bulk("value of k"), long.wait(t).reply)
}

// TestPushesLeaveRepliesInPlace: one between the replies of a transaction ends the connection, as its end cannot be told from theirs.
func TestPushesLeaveRepliesInPlace(t *testing.T) {
	const push = ">2\r\n+invalidate\r\n*1\r\n+k\r\n"
	node := startFake(t, nil)
	answer := func(within string) {
		node.answer(func(args []string) string {
			switch args[0] {
			case "GET":
				return push + bulk("value of "+args[1]) + push
			case "MULTI":
				return push + "+OK\r\n"
			case "SET":
				return within + "+QUEUED\r\n"
			case "EXEC":
				return array("+OK\r\n") + push
			}
			return ""
		})
	}
	answer("")
	u := started(t, Config{Addrs: []string{node.addr}, Rest: 20 * time.Millisecond})
	transaction := func() *pending {
		c := newCall("MULTI")
		c.Replies, c.Request = 3, slices.Concat(command("MULTI"), command("SET", "k", "1"), command("EXEC"))
		return c
	}
	require.Equal(t, bulk("value of a"), do(t, u, "GET", "a").reply)
	require.Equal(t, "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n", transaction().send(u).wait(t).reply)
	answer(push)
	calls := []*pending{transaction(), newCall("GET", "a"), newCall("GET", "b")}
	for _, c := range calls {
		u.Send(&c.Call)
	}
	u.Flush()
	for i, c := range calls {
		r := c.wait(t)
		require.NotNil(t, r.failure, "%d: %q", i, r.reply)
		require.Equal(t, Lost, r.failure.Kind)
	}
	eventually(t, "it is used again", func() bool { return do(t, u, "GET", "c").reply == bulk("value of c") })
}

// TestAReplyWithoutEnd that nobody waits for any more does not keep its connection for good.
func TestAReplyWithoutEnd(t *testing.T) {
	node := startFake(t, on("LRANGE", func([]string) string { return trickle + "1000000" }))
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: time.Second})
	require.Equal(t, Timeout, do(t, u, "LRANGE", "k").failure.Kind)
	l := u.fleet.Load().all()[0].own[0]
	l.mu.Lock()
	require.Equal(t, 1, l.flights.n)
	require.False(t, l.stale, "something comes")
	l.flights.at(0).at -= int64(owedMax)
	l.mu.Unlock()
	eventually(t, "it is used again", func() bool { return do(t, u, "GET", "k").reply == bulk("value of k") })
	require.Zero(t, u.Status().Nodes[0].Rests)
}

// TestNodesThatHaveLeftAreForgotten: nothing of them stays in memory, also where nothing was ever asked of them, as of most replicas.
func TestNodesThatHaveLeftAreForgotten(t *testing.T) {
	u := open(t, Config{Addrs: []string{"127.0.0.1:1"}})
	f := u.fleet.Load()
	left := weak.Make(f.node("127.0.0.1:2", replica))
	f.keepOnly(nil)
	f.reap()
	eventually(t, "it is forgotten", func() bool {
		runtime.GC()
		return left.Value() == nil
	})
}

// TestCallsAreSentAgainUntilTheirDeadline, however long their timeout is.
func TestCallsAreSentAgainUntilTheirDeadline(t *testing.T) {
	for _, timeout := range []time.Duration{time.Millisecond, TimeoutDefault, time.Second, 10 * time.Second, time.Hour} {
		least := time.Duration(0)
		for attempts := range attemptsMax {
			pause := pauseAfter(attempts, timeout)
			require.Positive(t, pause)
			require.LessOrEqual(t, pause, max(pauseMax, timeout/pauseShare))
			least += pause / 2
		}
		require.GreaterOrEqual(t, least, timeout, "of %v", timeout)
	}
}

// TestAProblemIsLoggedOnce, and not each time that it is found.
func TestAProblemIsLoggedOnce(t *testing.T) {
	f := open(t, Config{Addrs: []string{"127.0.0.1:1"}}).fleet.Load()
	require.True(t, f.failed(errors.New("a")))
	require.False(t, f.failed(errors.New("a")))
	require.True(t, f.failed(errors.New("b")))
	require.False(t, f.failed(nil))
	require.True(t, f.failed(errors.New("b")))
}

// TestATopologyThatIsTooLong is not read.
func TestATopologyThatIsTooLong(t *testing.T) {
	slots := fmt.Sprintf("*%d\r\n%s", topologyMax/4, strings.Repeat(":1\r\n", topologyMax/4))
	node := startFake(t, on("CLUSTER", func([]string) string { return slots }))
	node.mode = "cluster"
	u := open(t, Config{Addrs: []string{node.addr}, Timeout: 20 * time.Second})
	require.ErrorContains(t, u.Start(t.Context()), errTooLong.Error())
}

// TestATopologyOfTooManyNodes is not followed, and forgotten as soon as it is a better one again.
func TestATopologyOfTooManyNodes(t *testing.T) {
	nodes := fakeCluster(t, 2)
	var absurd atomic.Bool
	shards := []string{}
	for i := range nodesMax + 200 {
		shards = append(shards, fmt.Sprintf("*3\r\n:%d\r\n:%d\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$1\r\nx\r\n", i, i, 20_000+i))
	}
	for _, node := range nodes {
		good := node.handle
		node.answer(func(args []string) string {
			if absurd.Load() && len(args) > 1 && args[0] == "CLUSTER" && args[1] == "SLOTS" {
				return fmt.Sprintf("*%d\r\n", len(shards)) + strings.Join(shards, "")
			}
			return good(args)
		})
	}
	u := started(t, Config{Addrs: []string{nodes[0].addr}})
	require.Equal(t, 2, len(u.fleet.Load().all()))
	absurd.Store(true)
	require.ErrorContains(t, u.fleet.Load().look(t.Context()), errTooManyNodes.Error())
	require.Equal(t, 2, len(u.fleet.Load().all()))
	absurd.Store(false)
	require.NoError(t, u.fleet.Load().look(t.Context()))
}
