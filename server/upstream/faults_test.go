package upstream

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	faultsSeed  = flag.Uint64("faults.seed", 0, "of the random faults; 0 draws one")
	faultsCalls = flag.Int("faults.calls", 3000, "how many calls are sent through random faults")
)

// faultyNode is a node that executes commands RUN id, refuses them, dies before or after, or answers late, by chance.
type faultyNode struct {
	*fakeNode
	ran *sync.Map // id to *atomic.Int64: how often it was executed
}

func (f *faultyNode) execute(id string) {
	n, _ := f.ran.LoadOrStore(id, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

func (f *faultyNode) handle(slots string, others []*faultyNode, chance func(int) int) func(args []string) string {
	return clustered(slots, func(args []string) string {
		if args[0] != "RUN" {
			return ""
		}
		slot := Slot([]byte(args[1]))
		switch n := chance(100); {
		case n < 3:
			return "-LOADING Redis is loading the dataset in memory\r\n"
		case n < 6:
			return "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
		case n < 10:
			return fmt.Sprintf("-MOVED %d %s\r\n", slot, others[chance(len(others))].addr)
		case n < 14:
			return fmt.Sprintf("-ASK %d %s\r\n", slot, others[chance(len(others))].addr)
		case n < 18:
			return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
		case n == 18 && chance(4) == 0:
			return hangup
		case n == 19 && chance(4) == 0:
			f.execute(args[2])
			return hangup
		case n == 20 && chance(8) == 0:
			f.execute(args[2])
			return stall
		case n == 21:
			time.Sleep(time.Duration(chance(60)) * time.Millisecond)
		}
		f.execute(args[2])
		return bulk(args[2])
	})
}

// TestRandomFaults: whatever nodes and connections do, each call is answered once; who has a reply has run once, who failed for sure has not
// run, and nobody has run twice.
func TestRandomFaults(t *testing.T) {
	seed := *faultsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-faults.seed=%d", seed)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	chance := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	var ran sync.Map
	nodes := make([]*faultyNode, 3)
	var plain []*fakeNode
	for i := range nodes {
		nodes[i] = &faultyNode{fakeNode: startFake(t, nil), ran: &ran}
		nodes[i].mode = "cluster"
		plain = append(plain, nodes[i].fakeNode)
	}
	for _, node := range nodes {
		node.answer(node.handle(slotsOf(plain...), nodes, chance))
	}
	u := started(t, Config{Addrs: []string{nodes[0].addr, nodes[1].addr}, Timeout: 40 * time.Millisecond, Rest: 20 * time.Millisecond})

	const writers = 16
	script := &Script{Text: "return 1"}
	var kinds [TooLarge + 1]atomic.Int64
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := range *faultsCalls / writers {
				id := fmt.Sprintf("%d:%d", w, i)
				c := newCall("RUN", fmt.Sprint("k", chance(1000)), id)
				c.Script = script
				c.Proto = 2 + chance(2)
				if chance(4) == 0 { // as large as the socket does not take at once
					c.Request = command("RUN", "k", id, strings.Repeat("x", chance(300_000)))
					c.Slot = int(Slot([]byte("k")))
				}
				r := c.send(u).wait(t)
				times := int64(0)
				if n, ok := ran.Load(id); ok {
					times = n.(*atomic.Int64).Load()
				}
				switch {
				case r.failure == nil && r.reply == bulk(id):
					kinds[0].Add(1)
					if times != 1 {
						t.Errorf("%s was answered and has run %d times", id, times)
					}
				case r.failure == nil:
					if !strings.HasPrefix(r.reply, "-NOSCRIPT") || times != 0 {
						t.Errorf("%s was answered %q and has run %d times", id, r.reply, times)
					}
				default:
					kinds[r.failure.Kind].Add(1)
					if !r.failure.mayHaveRun() && times != 0 {
						t.Errorf("%s failed with %v and has run", id, r.failure)
					}
				}
				if r.failure != nil {
					time.Sleep(time.Duration(chance(4)) * time.Millisecond)
				}
				if chance(500) == 0 {
					nodes[chance(len(nodes))].hangUp()
				}
			}
		})
	}
	running.Wait()
	time.Sleep(50 * time.Millisecond) // for what was given up and may still arrive
	ran.Range(func(id, n any) bool {
		if times := n.(*atomic.Int64).Load(); times > 1 {
			t.Errorf("%s has run %d times", id, times)
		}
		return true
	})
	passed := kinds[0].Load()
	t.Logf("%d passed; timeouts %d, resting %d, unreachable %d, pending %d, lost %d", passed, kinds[Timeout].Load(), kinds[Resting].Load(),
		kinds[Unreachable].Load(), kinds[Pending].Load(), kinds[Lost].Load())
	require.Positive(t, passed)
	require.Positive(t, kinds[Lost].Load())
	s := u.Status()
	require.Zero(t, s.PendingCalls)
	require.Zero(t, s.PendingBytes)
}

// TestWorkIsNoSilence: a node that was at work on one client's long request was taken for silent, and all others were refused for a while.
func TestWorkIsNoSilence(t *testing.T) {
	node := startFake(t, func(args []string) string {
		switch args[0] {
		case "GET":
			return stall
		case "GETRANGE":
			length, _ := strconv.Atoi(args[3])
			return bulk(strings.Repeat("x", length))
		}
		return ""
	})
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: 400 * time.Millisecond, Rest: time.Minute})
	n := u.fleet.Load().node(node.addr, primary)
	require.Nil(t, do(t, u, "SET", "k", strings.Repeat("x", flightBytes/2)).failure)
	require.Zero(t, n.busy.Load(), "that is no long request")
	begin := Now()
	do(t, u, "SET", "k", strings.Repeat("x", 1<<20)) // however long the node takes
	until := n.busy.Load()
	require.GreaterOrEqual(t, until, begin+workPerMiB)
	n.workOn(1 << 40)
	require.LessOrEqual(t, n.busy.Load(), Now()+workMax)
	n.workOn(1 << 20)
	require.Greater(t, n.busy.Load(), until, "what comes later does not make it less")

	silent := Now() - int64(time.Hour)
	until = Now() + int64(time.Second)
	n.busy.Store(until)
	n.begun.Store(silent)
	n.heard.Store(silent)
	n.workOn(1 << 30)
	require.Equal(t, until, n.busy.Load(), "what has long been silent is not at work, whatever it is given")

	n.busy.Store(0)
	n.workOn(1 << 30)
	require.LessOrEqual(t, n.busy.Load(), Now(), "nor if that comes between two long requests")

	n.busy.Store(0)
	begin = Now()
	do(t, u, "GETRANGE", "k", "0", strconv.Itoa(flightBytes/2))
	require.Zero(t, n.busy.Load(), "that is no long reply")
	do(t, u, "GETRANGE", "k", "0", strconv.Itoa(1<<20))
	require.GreaterOrEqual(t, n.busy.Load(), begin+workPerMiB)

	storeMax(&n.busy, Now()+int64(time.Hour))
	require.Equal(t, Timeout, do(t, u, "GET", "k").failure.Kind)
	require.Zero(t, u.Status().Nodes[0].Rests)
	n.busy.Store(0)
	eventually(t, "it rests", func() bool {
		do(t, u, "GET", "k")
		return u.Status().Nodes[0].Rests == 1
	})
}

// TestNewConnectionsToANodeAtWork: that one is not made yet, while a long request keeps the node from answering anybody, is no silence.
func TestNewConnectionsToANodeAtWork(t *testing.T) {
	node := startFake(t, func(args []string) string {
		if args[0] == "HELLO" && len(args) > 1 && args[1] == "3" {
			return stall
		}
		return ""
	})
	const timeout = 200 * time.Millisecond
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: timeout, Rest: time.Hour})
	n := u.fleet.Load().node(node.addr, primary)
	n.busy.Store(never)
	c := newCall("GET", "k")
	c.Proto = 3
	c.send(u)
	require.Equal(t, Timeout, c.wait(t).failure.Kind)
	time.Sleep(connectMax + timeout) // until the connection has failed, too
	require.Zero(t, u.Status().Nodes[0].Rests)
}

// TestOwnErrors: a node that answers does not rest because this process can have no more connections, and a call that would have had one for itself is to
// take one that is there.
func TestOwnErrors(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}, Rest: time.Hour})
	require.Nil(t, do(t, u, "PING").failure)
	n := u.fleet.Load().all()[0]
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL} {
		n.unreached(dialError(&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", err)}), Now())
		require.False(t, n.rests(), err)
	}
	n.heard.Store(1) // long ago, which says nothing of a connection that nobody uses
	exhausted := dialError(&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)})
	failure := n.noAlone(linkKey{proto: 3}, exhausted, Now())
	require.True(t, failure.Full)
	require.False(t, n.rests())
	n.unreached(exhausted, Now())
	require.False(t, n.rests())
	n.unreached(dialError(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), Now())
	require.True(t, n.rests())
}

// TestABusyHeadgateIsOne: a script that runs long does not make it a Redis.
func TestABusyHeadgateIsOne(t *testing.T) {
	var busy atomic.Bool
	node := startFake(t, on("INFO", func([]string) string {
		if busy.Load() {
			return "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
		}
		return bulk("run_id:other\r\nheadgate_version:0.1.0\r\n")
	}))
	u := started(t, Config{Addrs: []string{node.addr}})
	require.True(t, u.fleet.Load().headgate.Load())
	busy.Store(true)
	require.NoError(t, u.fleet.Load().look(t.Context()))
	require.True(t, u.fleet.Load().headgate.Load())
}

// TestAloneInTime: a call with a connection for itself does not wait for that any longer than for its answer.
func TestAloneInTime(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: 50 * time.Millisecond, Rest: time.Hour})
	node.answer(func([]string) string { return stall })
	begin := Now()
	c := newWait(u, connectMax/4, 0)
	require.NotNil(t, c.wait(t).failure)
	require.Less(t, Now()-begin, int64(connectMax)*3/4)
}
