package upstream

import (
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const unblocked = "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n"

// newWait sends a call that waits, and whose answer may take some time more.
func newWait(u *Upstream, most, answer time.Duration) *pending {
	c := newCall("RL.GCRA", "k", "1", "1", "1s", "WAIT", "none")
	c.At = Now()
	until := c.At + int64(most)
	c.Deadline = until + int64(answer)
	u.SendAlone(&c.Call, Wait{Until: until, Words: func(left time.Duration) []byte {
		return command("RL.GCRA", "k", "1", "1", "1s", "WAIT", strconv.FormatInt(left.Milliseconds(), 10))
	}})
	return c
}

// waits returns for how long each call was to wait that a node has had, in ms.
func (f *fakeNode) waits(t *testing.T) (list []int64) {
	t.Helper()
	for _, line := range f.lines() {
		if before, left, found := strings.Cut(line, " WAIT "); found && strings.HasPrefix(before, "RL.GCRA") {
			ms, err := strconv.ParseInt(left, 10, 64)
			require.NoError(t, err)
			list = append(list, ms)
		}
	}
	return list
}

func isReplica(args []string) string {
	if args[0] != "HELLO" {
		return ""
	}
	return array(bulk("version"), bulk("7.0.15"), bulk("mode"), bulk("standalone"), bulk("role"), bulk("replica"))
}

const longWait = time.Minute

// TestWaitsOutliveTheirPrimary: a call that waited at a server which becomes a replica, and hangs up behind its answer, is sent to the one that serves it.
func TestWaitsOutliveTheirPrimary(t *testing.T) {
	var demotions atomic.Int64
	node := startFake(t, on("RL.GCRA", func([]string) string {
		if demotions.Add(1) <= 2 {
			return unblocked
		}
		return ":1\r\n"
	}))
	u := started(t, Config{Addrs: []string{node.addr}})
	require.Equal(t, ":1\r\n", newWait(u, longWait, 0).wait(t).reply)
	require.EqualValues(t, 3, demotions.Load())
}

// TestWaitsOutliveADemotion, also when no node is a primary for a while, and wait at the new one for the time that is left.
func TestWaitsOutliveADemotion(t *testing.T) {
	const waited = 50 * time.Millisecond
	second := startFake(t, isReplica)
	var first *fakeNode
	first = startFake(t, on("RL.GCRA", func([]string) string {
		time.Sleep(waited)
		first.answer(isReplica)
		return now + unblocked
	}))
	u := started(t, Config{Addrs: []string{first.addr, second.addr}, Rest: 20 * time.Millisecond})
	require.Equal(t, first.addr, (*u.fleet.Load().primaries.Load())[0].addr)
	c := newWait(u, longWait, 0)
	refused := func() int { return first.count("HELLO") }
	eventually(t, "it waits", func() bool { return first.count("RL.GCRA") == 1 })
	before := refused()
	eventually(t, "it has asked, and asked again", func() bool { return refused() >= before+3 })
	select {
	case r := <-c.done:
		require.Fail(t, "it has not waited", "%+v", r.failure)
	default:
	}
	second.answer(on("RL.GCRA", func([]string) string { return ":1\r\n" }))
	r := c.wait(t)
	require.Nil(t, r.failure)
	require.Equal(t, ":1\r\n", r.reply)
	require.Equal(t, second.addr, r.node)
	require.LessOrEqual(t, second.waits(t)[0], first.waits(t)[0]-waited.Milliseconds())
}

// TestWaitsEndInTime, while there is no primary; that a node is one again is known at once.
func TestWaitsEndInTime(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}, Rest: time.Hour})
	node.answer(isReplica)
	c := newWait(u, 20*time.Millisecond, time.Hour)
	r := c.wait(t)
	require.Equal(t, Unreachable, r.failure.Kind)
	require.Equal(t, string(errReplica), r.failure.Detail)
	require.GreaterOrEqual(t, Now(), c.Deadline-int64(time.Hour))
	node.answer(on("RL.GCRA", func([]string) string { return ":1\r\n" }))
	require.NoError(t, u.fleet.Load().look(t.Context()))
	require.Nil(t, newWait(u, longWait, 0).wait(t).failure)

	node.answer(isReplica)
	n := (*u.fleet.Load().primaries.Load())[0]
	n.alones.reap(never)
	c = newWait(u, time.Hour, 0)
	eventually(t, "it waits", func() bool { return n.alones.refusal(linkKey{proto: 2}) != nil })
	u.Close()
	require.NotNil(t, c.wait(t).failure)
}

// TestWaitsEndWhereTheyAreRefused for a reason that will not pass.
func TestWaitsEndWhereTheyAreRefused(t *testing.T) {
	var node *fakeNode
	node = startFake(t, on("RL.GCRA", func([]string) string {
		node.answer(on("HELLO", func([]string) string { return "-WRONGPASS invalid username-password pair or user is disabled.\r\n" }))
		return now + unblocked
	}))
	u := started(t, Config{Addrs: []string{node.addr}})
	require.Contains(t, newWait(u, longWait, 0).wait(t).failure.Detail, "WRONGPASS")
}

// followed returns an Upstream of nodes that are its primaries when a test says so.
func followed(t *testing.T) (u *Upstream, follow func(*fakeNode)) {
	t.Helper()
	u = open(t, Config{Addrs: []string{"127.0.0.1:1"}})
	f := u.fleet.Load()
	return u, func(fake *fakeNode) {
		n := f.node(fake.addr, primary)
		f.setPrimaries([]*node{n})
		f.keepOnly(map[*node]bool{n: true})
	}
}

// frozen is a node that takes calls and does nothing more, until the test ends.
func frozen(t *testing.T) *fakeNode {
	t.Helper()
	thaws := make(chan struct{})
	f := startFake(t, on("RL.GCRA", func([]string) string { <-thaws; return hangup }))
	t.Cleanup(func() { close(thaws) })
	return f
}

// TestWaitsFollowTheirPrimary: they do not stay at the former one, whether it lets go of them or is frozen.
func TestWaitsFollowTheirPrimary(t *testing.T) {
	for name, first := range map[string]*fakeNode{"it lets go": startFake(t, on("RL.GCRA", func([]string) string { return stall })), "it is frozen": frozen(t)} {
		t.Run(name, func(t *testing.T) {
			second := startFake(t, on("RL.GCRA", func([]string) string { return ":1\r\n" }))
			u, follow := followed(t)
			follow(first)
			c := newWait(u, longWait, 0)
			eventually(t, "it waits", func() bool { return first.count("RL.GCRA") == 1 })
			follow(second)
			r := c.wait(t)
			require.Nil(t, r.failure)
			require.Equal(t, second.addr, r.node)
			u.fleet.Load().reap()
			require.Empty(t, u.fleet.Load().left)
		})
	}
}

// TestAGrantOfTheFormerPrimary that it gives while it is told to let go is the answer.
func TestAGrantOfTheFormerPrimary(t *testing.T) {
	grants := make(chan struct{})
	first, second := startFake(t, on("RL.GCRA", func([]string) string { <-grants; return ":1\r\n" })), startFake(t, nil)
	u, follow := followed(t)
	follow(first)
	c := newWait(u, longWait, 0)
	eventually(t, "it waits", func() bool { return first.count("RL.GCRA") == 1 })
	n := (*u.fleet.Load().primaries.Load())[0]
	n.alones.mu.Lock() // it is told so with all the time that it needs
	for a := range n.alones.busy {
		a.parted = true
		a.letGo(time.Now().Add(longWait))
	}
	n.alones.mu.Unlock()
	follow(second)
	close(grants)
	r := c.wait(t)
	require.Equal(t, ":1\r\n", r.reply)
	require.Equal(t, first.addr, r.node)
	require.Zero(t, second.count("RL.GCRA"))
}

// TestAWaitIsNotRepeatedWhereItMayHaveRun: a node that did not let go of a call is not sent it again when it is back.
func TestAWaitIsNotRepeatedWhereItMayHaveRun(t *testing.T) {
	first := frozen(t)
	second := startFake(t, on("RL.GCRA", func([]string) string { return "-LOADING Redis is loading the dataset in memory\r\n" }))
	u, follow := followed(t)
	follow(first)
	c := newWait(u, longWait, 0)
	eventually(t, "it waits", func() bool { return first.count("RL.GCRA") == 1 })
	follow(second)
	eventually(t, "it would wait at the other one", func() bool { return second.count("RL.GCRA") > 0 })
	follow(first)
	require.Equal(t, Lost, c.wait(t).failure.Kind)
	require.Equal(t, 1, first.count("RL.GCRA"))
}

// TestWaitsOutliveTheirConfiguration: a call that waits by an earlier one is sent by the new one, unless its node has not let go of it.
func TestWaitsOutliveTheirConfiguration(t *testing.T) {
	for name, node := range map[string]*fakeNode{"it lets go": startFake(t, on("RL.GCRA", func([]string) string { return stall })), "it is frozen": frozen(t)} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Addrs: []string{node.addr}}
			u := started(t, cfg)
			c := newWait(u, longWait, 0)
			eventually(t, "it waits", func() bool { return node.count("RL.GCRA") == 1 })
			old := u.fleet.Load()
			cfg.Password = "new"
			u.SetConfig(cfg)
			eventually(t, "the new configuration is in use", func() bool { return u.fleet.Load() != old })
			node.answer(on("RL.GCRA", func([]string) string { return ":1\r\n" }))
			for _, n := range old.allEver() { // as after drainMax
				n.alones.letGo(func(int) bool { return true })
			}
			r := c.wait(t)
			if name == "it lets go" {
				require.Nil(t, r.failure)
				require.Equal(t, ":1\r\n", r.reply)
				return
			}
			require.Equal(t, Lost, r.failure.Kind)
			require.Equal(t, 1, node.count("RL.GCRA"))
		})
	}
}

// TestIdleConnectionsGiveWay to one that a call needs for itself: those that are kept for calls of another kind took up all descriptors.
func TestIdleConnectionsGiveWay(t *testing.T) {
	const most = 2
	node := startFake(t, on("RL.GCRA", func([]string) string { return ":1\r\n" }))
	u := started(t, Config{Addrs: []string{node.addr}})
	u.BoundAlones(most)
	alones := &u.fleet.Load().all()[0].alones
	for proto := 2; proto <= 3; proto++ {
		for db := range most {
			c := newCall("RL.GCRA", "k")
			c.Proto, c.DB, c.At = proto, int32(db), Now()
			c.Deadline = c.At + int64(longWait)
			u.SendAlone(&c.Call, Wait{Until: c.Deadline, Words: func(time.Duration) []byte { return c.Request }})
			require.Nil(t, c.wait(t).failure)
		}
	}
	eventually(t, "no more are left than there may be", func() bool { return u.alones.Load() == most })
	require.False(t, alones.reap(0))
	require.True(t, alones.reap(never))
	eventually(t, "all are counted", func() bool { return u.alones.Load() == 0 })
}

// TestConnectionsAreMadeInTurns: a call for which none may be made yet waits for its turn, and is decided at once when its time is over.
func TestConnectionsAreMadeInTurns(t *testing.T) {
	node := startFake(t, on("RL.GCRA", func([]string) string { return ":1\r\n" }))
	u := started(t, Config{Addrs: []string{node.addr}})
	alones := &u.fleet.Load().all()[0].alones
	for range aloneDialsMax {
		require.True(t, alones.mayDial())
	}
	require.False(t, alones.mayDial())
	failure := newWait(u, 20*time.Millisecond, time.Hour).wait(t).failure
	require.NotNil(t, failure)
	require.True(t, failure.Full)
	require.Zero(t, node.count("RL.GCRA"))
	c := newWait(u, longWait, 0)
	alones.dialled()
	require.Nil(t, c.wait(t).failure)
	require.True(t, alones.mayDial(), "the turn is over")
}

// TestASlowConnectionOfACall is no reason to leave a node alone that is connected, nor is silence while such calls are answered.
func TestASlowConnectionOfACall(t *testing.T) {
	node := startFake(t, on("RL.GCRA", func([]string) string { return ":1\r\n" }))
	u := started(t, Config{Addrs: []string{node.addr}, Rest: time.Hour})
	n := u.fleet.Load().all()[0]
	long := Now() - int64(time.Minute)
	for _, l := range n.links() {
		l.arrived.Store(long)
	}
	n.alones.arrived.Store(long)
	for _, err := range []error{errNoConnection, errSlowTLS, errNoHello} {
		require.False(t, n.noAlone(linkKey{proto: 2}, err, long).Full)
		require.False(t, n.rests(), err)
	}
	begin := Now()
	require.Nil(t, newWait(u, longWait, 0).wait(t).failure)
	require.Greater(t, n.alones.arrived.Load(), begin)
	require.Greater(t, n.heard.Load(), begin)
	require.False(t, n.silentSince(begin))
}

// TestAWaitThatIsNotSent has not run, and does not count as lost.
func TestAWaitThatIsNotSent(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}})
	n := u.fleet.Load().all()[0]
	for _, why := range []string{"i/o timeout", "closed pipe"} {
		ours, theirs := net.Pipe() // of which nobody reads
		defer theirs.Close()
		if why == "closed pipe" {
			require.NoError(t, theirs.Close())
		}
		n.alones.put(&alone{node: n, key: linkKey{proto: 2}, conn: ours, came: make(chan []byte, 1)})
		failure := newWait(u, 20*time.Millisecond, 0).wait(t).failure
		require.NotNil(t, failure)
		require.False(t, failure.mayHaveRun())
		require.Contains(t, failure.Detail, why)
	}
	require.Zero(t, u.Status().Lost)
}

// TestAClientThatHangsUp while its call waits is no fault of the node's, and does not count as lost.
func TestAClientThatHangsUp(t *testing.T) {
	node := startFake(t, on("RL.GCRA", func([]string) string { return stall }))
	u := started(t, Config{Addrs: []string{node.addr}})
	c := newCall("RL.GCRA", "k")
	c.At = Now()
	c.Deadline = c.At + int64(longWait)
	leave := u.SendAlone(&c.Call, Wait{Until: c.Deadline, Words: func(time.Duration) []byte { return c.Request }})
	eventually(t, "it waits", func() bool { return node.count("RL.GCRA") == 1 })
	leave()
	require.NotNil(t, c.wait(t).failure)
	require.Zero(t, u.Status().Lost)
}

// TestANodeThatHasLeftIsNotTriedOut, as if its own end were news.
func TestANodeThatHasLeftIsNotTriedOut(t *testing.T) {
	var log logged
	u := New(Config{Addrs: []string{"127.0.0.1:1"}}, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(u.Close)
	n := u.fleet.Load().all()[0]
	n.rest("it does not answer")
	require.True(t, n.shut())
	n.tryOut()
	require.NotContains(t, log.String(), "still rests")
}
