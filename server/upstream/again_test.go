package upstream

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slotsOf is a reply to CLUSTER SLOTS: each node has an equal part.
func slotsOf(nodes ...*fakeNode) string {
	shards := make([]string, len(nodes))
	for i, node := range nodes {
		shards[i] = shard(i*Slots/len(nodes), (i+1)*Slots/len(nodes)-1, node)
	}
	return array(shards...)
}

func shard(first, last int, node *fakeNode) string {
	return array(integer(first), integer(last), addressOf(node))
}

// addressOf is a node in CLUSTER SLOTS.
func addressOf(node *fakeNode) string {
	host, port, _ := net.SplitHostPort(node.addr)
	return array(bulk(host), ":"+port+"\r\n", bulk("id"+port))
}

// fakeCluster makes fake nodes a cluster in which each has an equal part of the slots.
func fakeCluster(t *testing.T, n int) []*fakeNode {
	t.Helper()
	nodes := make([]*fakeNode, n)
	for i := range nodes {
		nodes[i] = startFake(t, nil)
		nodes[i].mode = "cluster"
	}
	for _, node := range nodes {
		node.answer(clustered(slotsOf(nodes...), nil))
	}
	return nodes
}

// clustered answers CLUSTER SLOTS, and all else by another handler.
func clustered(slots string, handle func(args []string) string) func(args []string) string {
	return func(args []string) string {
		if len(args) == 2 && args[0] == "CLUSTER" && args[1] == "SLOTS" {
			return slots
		}
		if handle == nil {
			return ""
		}
		return handle(args)
	}
}

// on answers one command by a function, and all others as a plain primary would.
func on(name string, reply func(args []string) string) func(args []string) string {
	return func(args []string) string {
		if args[0] == name {
			return reply(args)
		}
		return ""
	}
}

// keyOf returns a key whose slot is in a part of all slots.
func keyOf(part, parts int) string {
	for i := 0; ; i++ {
		key := fmt.Sprint("k", i)
		if int(Slot([]byte(key)))*parts/Slots == part {
			return key
		}
	}
}

func TestEachSlotsNode(t *testing.T) {
	nodes := fakeCluster(t, 3)
	u := started(t, Config{Addrs: []string{nodes[1].addr}})
	require.True(t, u.Cluster())
	require.False(t, u.Headgate())
	for i, node := range nodes {
		require.Equal(t, node.addr, do(t, u, "GET", keyOf(i, 3)).node)
	}
	asked := map[string]bool{}
	for range 3 {
		c := newCall("PING")
		asked[c.send(u).wait(t).node] = true
	}
	require.Len(t, asked, 3, "calls without a slot take turns")
}

// TestMovedIsFollowed, and believed by the calls that come later.
func TestMovedIsFollowed(t *testing.T) {
	nodes := fakeCluster(t, 2)
	key := keyOf(0, 2)
	moved := on("GET", func(args []string) string {
		return fmt.Sprintf("-MOVED %d %s\r\n", Slot([]byte(args[1])), nodes[1].addr)
	})
	nodes[0].answer(clustered(slotsOf(nodes...), moved))
	u := started(t, Config{Addrs: []string{nodes[0].addr}})
	r := do(t, u, "GET", key)
	require.Nil(t, r.failure)
	require.Equal(t, bulk("value of "+key), r.reply)
	require.Equal(t, nodes[1].addr, r.node)
	require.EqualValues(t, 1, u.Status().Redirects)
}

// TestAskIsFollowedOnce: ASKING and the command are one after the other on one connection, and later calls ask the owner again.
func TestAskIsFollowedOnce(t *testing.T) {
	nodes := fakeCluster(t, 2)
	key := keyOf(0, 2)
	nodes[0].answer(clustered(slotsOf(nodes...), on("GET", func([]string) string {
		return fmt.Sprintf("-ASK %d %s\r\n", Slot([]byte(key)), nodes[1].addr)
	})))
	u := started(t, Config{Addrs: []string{nodes[0].addr}})
	for range 2 {
		r := do(t, u, "GET", key)
		require.Equal(t, bulk("value of "+key), r.reply)
	}
	require.Equal(t, 2, nodes[0].count("GET"))
	lines := nodes[1].lines()
	i := slices.Index(lines, "ASKING")
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, []string{"ASKING", "GET " + key, "ASKING", "GET " + key}, lines[i:i+4])
}

// TestAskNamesANodeWithoutSlots: it is in no reply to CLUSTER SLOTS, but in CLUSTER NODES.
func TestAskNamesANodeWithoutSlots(t *testing.T) {
	nodes := fakeCluster(t, 2)
	fresh := startFake(t, nil)
	fresh.mode = "cluster"
	key := keyOf(0, 2)
	list := "id0 " + fresh.addr + "@17000,some.host myself,master - 0 0 1 connected\n"
	for _, node := range nodes {
		node.answer(clustered(slotsOf(nodes...), func(args []string) string {
			switch args[0] {
			case "GET":
				return fmt.Sprintf("-ASK %d %s\r\n", Slot([]byte(key)), fresh.addr)
			case "CLUSTER":
				return bulk(list)
			}
			return ""
		}))
	}
	u := started(t, Config{Addrs: []string{nodes[0].addr}, Timeout: 5 * time.Second})
	r := do(t, u, "GET", key)
	require.Nil(t, r.failure)
	require.Equal(t, fresh.addr, r.node)
}

// TestOnlyTheTopologyIsBelieved: a script may answer what looks like a redirect. No connection is made to a stranger, who would be told the
// password.
func TestOnlyTheTopologyIsBelieved(t *testing.T) {
	stranger := startFake(t, nil)
	nodes := fakeCluster(t, 2)
	for _, word := range []string{"MOVED", "ASK"} {
		for _, node := range nodes {
			node.answer(clustered(slotsOf(nodes...), on("EVAL", func(args []string) string {
				return fmt.Sprintf("-%s %d %s\r\n", word, 1, stranger.addr)
			})))
		}
		u := started(t, Config{Addrs: []string{nodes[0].addr}, Password: "secret"})
		r := refusedIn(t, u, 100*time.Millisecond, "EVAL", "return redis.error_reply('MOVED …')", "0")
		require.Contains(t, r.failure.Detail, word+" 1 "+stranger.addr)
		u.Close()
	}
	require.Zero(t, stranger.accepted.Load())
	single := startFake(t, on("EVAL", func([]string) string { return "-MOVED 1 " + stranger.addr + "\r\n" }))
	u := started(t, Config{Addrs: []string{single.addr}})
	require.Equal(t, "-MOVED 1 "+stranger.addr+"\r\n", do(t, u, "EVAL", "x", "0").reply, "outside clusters it is a reply like any other")
	require.Zero(t, stranger.accepted.Load())
}

// TestRefusalsBeforeExecutionAreTriedAgain until the deadline, and then the failure says what the node said.
func TestRefusalsBeforeExecutionAreTriedAgain(t *testing.T) {
	for _, refusal := range []string{
		"TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN The cluster is down", "LOADING Redis is loading the dataset in memory",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "READONLY You can't write against a read only replica.",
	} {
		var left atomic.Int64
		left.Store(3)
		node := startFake(t, on("INCR", func([]string) string {
			if left.Add(-1) >= 0 {
				return "-" + refusal + "\r\n"
			}
			return ":7\r\n"
		}))
		u := started(t, Config{Addrs: []string{node.addr}, Timeout: 5 * time.Second})
		require.Equal(t, ":7\r\n", do(t, u, "INCR", "k").reply, refusal)

		left.Store(1 << 40)
		r := refusedIn(t, u, 60*time.Millisecond, "INCR", "k")
		require.Equal(t, "UPSTREAM "+node.addr+" cannot answer: "+refusal, r.failure.Error())
		require.Nil(t, do(t, u, "GET", "k").failure, "the node does not rest")
		u.Close()
	}
}

// TestOrderIsKeptWhileNothingRuns: what is sent again runs in the order in which it was sent, and what is sent meanwhile comes behind it.
// Nobody can call back what is on its way when the node begins to answer, so some whole writes may come before others.
func TestOrderIsKeptWhileNothingRuns(t *testing.T) {
	const calls, refusals = 200, 500
	var refused int
	var mu sync.Mutex
	var ran []string
	node := startFake(t, on("SET", func(args []string) string {
		mu.Lock()
		defer mu.Unlock()
		if refused < refusals {
			refused++
			return "-LOADING Redis is loading the dataset in memory\r\n"
		}
		ran = append(ran, args[2])
		return "+OK\r\n"
	}))
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: 5 * time.Second})
	var sent []*pending
	var want []string
	for i := range calls {
		want = append(want, strconv.Itoa(i))
		sent = append(sent, newCall("SET", "k", want[i]).send(u))
		if i%10 == 9 {
			time.Sleep(time.Millisecond)
		}
	}
	for _, p := range sent {
		require.Nil(t, p.wait(t).failure)
	}
	mu.Lock()
	defer mu.Unlock()
	require.ElementsMatch(t, want, ran)
	steps := 0
	for i := 1; i < len(ran); i++ {
		before, _ := strconv.Atoi(ran[i-1])
		if n, _ := strconv.Atoi(ran[i]); n < before {
			steps++
		}
	}
	require.LessOrEqual(t, steps, 4*flightsMax, "but for what was under way when the node began to answer: %v", ran)
}

// refusedIn sends a command with little time until it fails since the node refuses it. On a busy machine the time may end while it is sent
// once more, which makes another failure.
func refusedIn(t *testing.T, u *Upstream, d time.Duration, args ...string) (r result) {
	t.Helper()
	require.Eventually(t, func() bool {
		c := newCall(args...)
		c.Deadline = Now() + int64(d)
		r = c.send(u).wait(t)
		require.NotNil(t, r.failure)
		return r.failure.Kind == Unreachable
	}, 20*time.Second, time.Millisecond)
	return r
}

// TestErrorsOfCommandsAreReplies: they are no reason to send a command again.
func TestErrorsOfCommandsAreReplies(t *testing.T) {
	for _, line := range []string{"WRONGTYPE x", "ERR x", "OOM x", "NOSCRIPT No matching script.", "BUSY x", "NOPERM x", "EXECABORT x", "MOVED", "ASKING x"} {
		node := startFake(t, on("SET", func([]string) string { return "-" + line + "\r\n" }))
		u := started(t, Config{Addrs: []string{node.addr}})
		require.Equal(t, "-"+line+"\r\n", do(t, u, "SET", "k", "v").reply)
		require.Equal(t, 1, node.count("SET"))
		u.Close()
	}
}

// TestErrorsOfProgramsAreReplies, too, whatever their codes are, as what a client has written has run before it ends with one. What a server says
// before that is followed all the same.
func TestErrorsOfProgramsAreReplies(t *testing.T) {
	nodes := fakeCluster(t, 2)
	key := keyOf(0, 2)
	slot := int(Slot([]byte(key)))
	other := nodes[1].addr
	nodes[1].answer(clustered(slotsOf(nodes...), on("EVAL", func([]string) string { return integer(1) })))
	u := started(t, Config{Addrs: []string{nodes[0].addr}, Timeout: 100 * time.Millisecond, Rest: time.Millisecond})
	eval := func(line string) result {
		u.fleet.Load().setOwner(slot, u.fleet.Load().named(nodes[0].addr))
		nodes[0].answer(clustered(slotsOf(nodes...), on("EVAL", func([]string) string { return "-" + line + "\r\n" })))
		nodes[0].mu.Lock()
		nodes[0].seen = nil
		nodes[0].mu.Unlock()
		c := newCall("EVAL", "…", "1", key)
		c.Slot, c.Program, c.Script = slot, true, &Script{Text: "…"}
		return c.send(u).wait(t)
	}
	for _, line := range []string{
		"TRYAGAIN later", "CLUSTERDOWN x", "LOADING x", "MASTERDOWN x", "READONLY x", "NOSCRIPT x", "MOVED to somewhere", "ASK me",
		fmt.Sprintf("MOVED %d %s", slot+1, other), fmt.Sprintf("ASK %d %s", slot+1, other),
	} {
		require.Equal(t, "-"+line+"\r\n", eval(line).reply)
		require.Equal(t, 1, nodes[0].count("EVAL"), line)
	}
	for _, code := range []string{"MOVED", "ASK"} {
		require.Equal(t, integer(1), eval(fmt.Sprintf("%s %d %s", code, slot, other)).reply)
	}
	for _, line := range refusalsInFull {
		eval(line[1:] + ".")
		require.Greater(t, nodes[0].count("EVAL"), 1, line)
	}
}

// TestAScriptThatIsMissingIsLoaded before its first call on a connection, once for all calls that miss it at the same time later on, and also
// after ASK.
func TestAScriptThatIsMissingIsLoaded(t *testing.T) {
	script := &Script{Name: "s", Own: true, Text: "return 1", SHA: "abc"}
	evalsha := func(key string) *pending {
		c := newCall("EVALSHA", script.SHA, "1", key)
		c.Slot, c.Script = int(Slot([]byte(key))), script
		return c
	}
	var loaded atomic.Bool
	missing := func(args []string) string {
		switch {
		case args[0] == "SCRIPT":
			loaded.Store(true)
		case args[0] == "EVALSHA" && !loaded.Load():
			return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
		case args[0] == "EVALSHA":
			return integer(1)
		}
		return ""
	}
	node := startFake(t, missing)
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: 5 * time.Second})
	require.Equal(t, integer(1), evalsha("k").send(u).wait(t).reply)
	require.Equal(t, integer(1), evalsha("k").send(u).wait(t).reply)
	require.Equal(t, []string{"SCRIPT LOAD return 1", "EVALSHA abc 1 k", "EVALSHA abc 1 k"}, lastOf(node.lines(), 3))

	loaded.Store(false) // SCRIPT FLUSH
	var calls []*pending
	for range 20 {
		c := evalsha("k")
		u.Send(&c.Call)
		calls = append(calls, c)
	}
	u.Flush()
	for _, c := range calls {
		require.Equal(t, integer(1), c.wait(t).reply)
	}
	require.LessOrEqual(t, node.count("SCRIPT LOAD return 1"), 4, "but for replies that were read in pieces")
	require.Equal(t, 42, node.count("EVALSHA"))

	// A new connection has it before the first call.
	loaded.Store(false)
	node.hangUp()
	require.Eventually(t, func() bool {
		c := evalsha("k").send(u).wait(t)
		return c.reply == integer(1)
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, 43, node.count("EVALSHA"))

	// After ASK.
	nodes := fakeCluster(t, 2)
	key := keyOf(0, 2)
	loaded.Store(false)
	nodes[0].answer(clustered(slotsOf(nodes...), on("EVALSHA", func([]string) string {
		return fmt.Sprintf("-ASK %d %s\r\n", Slot([]byte(key)), nodes[1].addr)
	})))
	nodes[1].answer(clustered(slotsOf(nodes...), missing))
	u2 := started(t, Config{Addrs: []string{nodes[0].addr}, Timeout: 5 * time.Second})
	require.Equal(t, integer(1), evalsha(key).send(u2).wait(t).reply)
	require.Equal(t, []string{"SCRIPT LOAD return 1", "ASKING", "EVALSHA abc 1 " + key}, lastOf(nodes[1].lines(), 3))
}

func lastOf(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }

// TestAScriptThatMayNotBeLoaded: the reply says so, and no call is sent without end.
func TestAScriptThatMayNotBeLoaded(t *testing.T) {
	node := startFake(t, func(args []string) string {
		switch args[0] {
		case "SCRIPT":
			return "-NOPERM this user has no permissions to run the 'script|load' command\r\n"
		case "EVALSHA":
			return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
		}
		return ""
	})
	u := started(t, Config{Addrs: []string{node.addr}})
	c := newCall("EVALSHA", "abc", "1", "k")
	c.Script = &Script{Text: "return 1", SHA: "abc"}
	require.Equal(t, "-NOPERM this user has no permissions to run the 'script|load' command\r\n", c.send(u).wait(t).reply)
	require.Equal(t, 1+loadsMax, node.count("EVALSHA"))

	// Where it is there all the same, the call's own error is told.
	const wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
	node.answer(func(args []string) string {
		switch args[0] {
		case "SCRIPT":
			return "-NOPERM this user has no permissions to run the 'script|load' command\r\n"
		case "EVALSHA":
			return wrong
		}
		return ""
	})
	c = newCall("EVALSHA", "abc", "1", "k")
	c.Script = &Script{Text: "return 1", SHA: "abc", Own: true}
	require.Equal(t, wrong, c.send(u).wait(t).reply)
}

// TestAScriptWhoseNodeIsLoading is loaded once the node serves, so that its call does not run behind a later one.
func TestAScriptWhoseNodeIsLoading(t *testing.T) {
	script := &Script{Name: "s", Own: true, Text: "return 1", SHA: "abc"}
	var known atomic.Bool
	begin := time.Now()
	node := startFake(t, func(args []string) string {
		switch {
		case args[0] != "SCRIPT" && args[0] != "EVALSHA" && args[0] != "DEL":
		case time.Since(begin) < 300*time.Millisecond:
			return "-LOADING Redis is loading the dataset in memory\r\n"
		case args[0] == "SCRIPT":
			known.Store(true)
		case args[0] == "EVALSHA" && !known.Load():
			return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
		default:
			return integer(1)
		}
		return ""
	})
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: time.Minute})
	call, later := newCall("EVALSHA", "abc", "1", "k"), newCall("DEL", "k")
	call.Script, call.Slot = script, later.Slot
	u.Send(&call.Call)
	u.Send(&later.Call)
	u.Flush()
	require.Equal(t, integer(1), call.wait(t).reply)
	require.Equal(t, integer(1), later.wait(t).reply)
	require.Equal(t, []string{"SCRIPT LOAD return 1", "EVALSHA abc 1 k", "DEL k"}, lastOf(node.lines(), 3))
}

// TestAScriptWhoseNodeWasBusy is loaded before its next call, so that this does not run behind a later one.
func TestAScriptWhoseNodeWasBusy(t *testing.T) {
	script := &Script{Name: "s", Own: true, Text: "return 1", SHA: "abc"}
	const busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
	var known, free atomic.Bool
	node := startFake(t, func(args []string) string {
		switch {
		case args[0] != "SCRIPT" && args[0] != "EVALSHA" && args[0] != "DEL":
		case !free.Load():
			return busy
		case args[0] == "SCRIPT":
			known.Store(true)
		case args[0] == "EVALSHA" && !known.Load():
			return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
		default:
			return integer(1)
		}
		return ""
	})
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: time.Minute})
	evalsha := func() *pending {
		c := newCall("EVALSHA", script.SHA, "1", "k")
		c.Script, c.Slot = script, int(Slot([]byte("k")))
		return c
	}
	require.Equal(t, busy, evalsha().send(u).wait(t).reply)
	free.Store(true)
	call, later := evalsha(), newCall("DEL", "k")
	u.Send(&call.Call)
	u.Send(&later.Call)
	u.Flush()
	require.Equal(t, integer(1), call.wait(t).reply)
	require.Equal(t, integer(1), later.wait(t).reply)
	require.Equal(t, []string{"SCRIPT LOAD return 1", "EVALSHA abc 1 k", "DEL k"}, lastOf(node.lines(), 3))
}

// TestTransactions are sent again only if none of their commands has run.
func TestTransactions(t *testing.T) {
	nodes := fakeCluster(t, 2)
	key := keyOf(0, 2)
	transaction := func() *pending {
		c := newCall("MULTI")
		c.Slot, c.Replies = int(Slot([]byte(key))), 4
		c.Request = slices.Concat(command("MULTI"), command("SET", key, "1"), command("SET", key, "2"), command("EXEC"))
		return c
	}
	queue := func(set, exec string) func([]string) string {
		return func(args []string) string {
			switch args[0] {
			case "SET":
				return set
			case "EXEC":
				return exec
			}
			return ""
		}
	}
	moved := fmt.Sprintf("-MOVED %d %s\r\n", Slot([]byte(key)), nodes[1].addr)
	abort := "-EXECABORT Transaction discarded because of previous errors.\r\n"
	ran := array(bulk("a"), bulk("b"))
	nodes[1].answer(clustered(slotsOf(nodes...), queue("+QUEUED\r\n", ran)))
	for _, test := range []struct{ set, exec, want string }{
		{moved, abort, "+OK\r\n+QUEUED\r\n+QUEUED\r\n" + ran},
		{"+QUEUED\r\n", moved, "+OK\r\n+QUEUED\r\n+QUEUED\r\n" + ran},
		{"-ERR syntax error\r\n", abort, "+OK\r\n-ERR syntax error\r\n-ERR syntax error\r\n" + abort},
		{moved, array(bulk("ran")), "+OK\r\n" + moved + moved + array(bulk("ran"))},
	} {
		nodes[0].answer(clustered(slotsOf(nodes...), queue(test.set, test.exec)))
		u := started(t, Config{Addrs: []string{nodes[0].addr}})
		r := transaction().send(u).wait(t)
		require.Nil(t, r.failure)
		require.Equal(t, test.want, r.reply)
		u.Close()
	}
}

// TestLaterCallsDoNotOvertake those for the same slot that were sent to the node that had it: neither when MOVED has told of the new one, nor
// while others are still to be answered.
func TestLaterCallsDoNotOvertake(t *testing.T) {
	nodes := fakeCluster(t, 2)
	key := keyOf(0, 2)
	moved := fmt.Sprintf("-MOVED %d %s\r\n", Slot([]byte(key)), nodes[1].addr)
	first, second := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(second) })
	defer release()
	nodes[0].answer(clustered(slotsOf(nodes...), on("SET", func(args []string) string {
		if args[2] == "1" {
			<-first
		} else {
			<-second
		}
		return moved
	})))
	u := started(t, Config{Addrs: []string{nodes[0].addr}})
	owner := u.fleet.Load().named(nodes[0].addr)
	calls := []*pending{newCall("SET", key, "1").send(u)}
	eventually(t, "it is there", func() bool { return nodes[0].count("SET "+key+" 1") == 1 })
	calls = append(calls, newCall("SET", key, "2").send(u))
	eventually(t, "it is written", func() bool { return owner.own[0].underWay() == 2 })
	close(first)
	eventually(t, "the first has come to the other node", func() bool { return nodes[1].count("SET") == 1 })
	calls = append(calls, newCall("SET", key, "3").send(u))
	due := int64(0)
	eventually(t, "the third has been due, and waits; or the topology shows the old node still, and it is behind the second one there", func() bool {
		u.waiting.mu.Lock()
		defer u.waiting.mu.Unlock()
		q := u.waiting.slots[int(Slot([]byte(key)))]
		if q == nil || len(q.calls) != 1 {
			return owner.own[0].underWay() == 2
		}
		if due == 0 {
			due = q.due
		}
		return q.due > due
	})
	release()
	for _, c := range calls {
		require.Equal(t, "+OK\r\n", c.wait(t).reply)
	}
	var order []string
	for _, line := range nodes[1].lines() {
		if strings.HasPrefix(line, "SET") {
			order = append(order, line)
		}
	}
	require.Equal(t, []string{"SET " + key + " 1", "SET " + key + " 2", "SET " + key + " 3"}, order)
	eventually(t, "nothing is waited for any more", func() bool { return !u.waiting.some.Load() })
}

// TestWhatIsQueuedDoesNotOvertake a call that a node has refused since it served nothing, if it serves again by the time when the queue is sent.
func TestWhatIsQueuedDoesNotOvertake(t *testing.T) {
	var loading atomic.Bool
	loading.Store(true)
	release := make(chan struct{})
	node := startFake(t, on("SET", func(args []string) string {
		switch {
		case args[2] == "1":
			<-release
			if loading.CompareAndSwap(true, false) {
				return "-LOADING Redis is loading the dataset in memory\r\n"
			}
		case args[2] == "2" && args[1] == "other":
			<-release
		}
		return ""
	}))
	u := started(t, Config{Addrs: []string{node.addr}})
	l := u.fleet.Load().all()[0].own[0]
	calls := []*pending{newCall("SET", "k", "1").send(u)}
	eventually(t, "it is written", func() bool { return l.underWay() == 1 })
	calls = append(calls, newCall("SET", "other", "2").send(u))
	eventually(t, "it is written", func() bool { return l.underWay() == 2 })
	calls = append(calls, newCall("SET", "k", "3").send(u)) // which has to wait for one of the two
	close(release)
	for _, c := range calls {
		require.Equal(t, "+OK\r\n", c.wait(t).reply)
	}
	var last string
	for _, line := range node.lines() {
		if strings.HasPrefix(line, "SET k") {
			last = line
		}
	}
	require.Equal(t, "SET k 3", last)
}

// TestFormerNodesAreLookedAtTogether: all slots that a node has lost at once are judged by one look at what it owes, which holds for what it
// was given before, is no older than a moment, and never lets a slot go that is still owed.
func TestFormerNodesAreLookedAtTogether(t *testing.T) {
	release := make(chan struct{})
	node := halfReplies(t, 1<<10, release)
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: time.Minute})
	n := (*u.fleet.Load().primaries.Load())[0]
	w := &u.waiting
	get := newCall("GET", "k")
	get.Slot = 7
	get.send(u)
	for _, slot := range []int{anySlot, 0, 7, 64, Slots - 1} {
		w.turn(slot, n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := Now()
	for _, slot := range []int{anySlot, 0, 64, Slots - 1} {
		require.False(t, w.turns(slot, now), "slot %d", slot)
		require.NotContains(t, w.former, slot)
	}
	require.True(t, w.turns(7, now))
	look := w.owed[n]
	require.True(t, w.turns(7, now+1))
	require.Same(t, look, w.owed[n])
	close(release)
	require.Nil(t, get.wait(t).failure)
	require.True(t, w.turns(7, now+owedFor), "as it was a moment ago")
	require.False(t, w.turns(7, now+owedFor+1))
	w.mu.Unlock()
	w.turn(7, n)
	w.mu.Lock()
	require.NotContains(t, w.owed, n, "what was seen before says nothing about this slot")
}

func TestParseRedirect(t *testing.T) {
	n := &node{addr: "10.0.0.1:7000"}
	for line, want := range map[string]string{
		"-MOVED 3999 127.0.0.1:6381\r\n": "127.0.0.1:6381", "-MOVED 3999 ::1:6381\r\n": "[::1]:6381", "-MOVED 3999 [::1]:6381\r\n": "[::1]:6381",
		"-MOVED 3999 :6381\r\n": "10.0.0.1:6381", "-MOVED 3999 ?:6381\r\n": "10.0.0.1:6381", "-ASK 1 some.host:1\r\n": "some.host:1",
	} {
		_, addr, ok := parseRedirect([]byte(line))
		require.True(t, ok, line)
		require.Equal(t, want, n.announced(addr), line)
	}
	for _, bad := range []string{"-MOVED", "-MOVED x", "-MOVED x h:1", "-MOVED 16384 h:1", "-MOVED -1 h:1"} {
		_, _, ok := parseRedirect([]byte(bad))
		require.False(t, ok, bad)
	}
}

// TestAnnouncedEndpoints of CLUSTER SLOTS, as the Redis documentation describes them.
func TestAnnouncedEndpoints(t *testing.T) {
	asked := &node{addr: "10.0.0.1:7000"}
	for reply, want := range map[string]string{
		array(bulk("h"), integer(1), bulk("id")):                                              "h:1",
		array(bulk(""), integer(1), bulk("id")):                                               "10.0.0.1:1",
		array("$-1\r\n", integer(1), bulk("id")):                                              "10.0.0.1:1",
		array(bulk("?"), integer(1), bulk("id"), array(bulk("ip"), bulk("10.0.0.2"))):         "10.0.0.2:1",
		array(bulk("?"), integer(1), bulk("id"), array()):                                     "10.0.0.1:1",
		array(bulk("::1"), integer(1), bulk("id")):                                            "[::1]:1",
		array(bulk("some.host"), integer(1), bulk("id"), array(bulk("ip"), bulk("10.0.0.2"))): "some.host:1",
	} {
		v, _ := parseValue([]byte(reply))
		require.Equal(t, want, announcedIn(v, asked), strings.ReplaceAll(reply, "\r\n", " "))
	}
}
