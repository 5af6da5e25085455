package limits_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate/server/command"
	"headgate/server/netpoll"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// crowd are clients of one server whose clock stands where the test puts it. They have names, and are there when they are first named.
type crowd struct {
	*servertest.ClockClient
	conns map[string]*netpoll.Conn
	pool  map[string]*servertest.WorkerClient
}

func newCrowd(t testing.TB) *crowd {
	w := &crowd{ClockClient: servertest.NewClockClient(t), conns: map[string]*netpoll.Conn{}, pool: map[string]*servertest.WorkerClient{}}
	t.Cleanup(func() {
		for name := range w.conns {
			w.hangUp(name)
		}
		require.Zero(t, w.Srv.Waits.Now)
		require.Zero(t, w.Srv.Blocking.Clients)
		require.Nil(t, w.Srv.Keys.NextHeeded())
	})
	return w
}

// client is the client of a name.
func (w *crowd) client(name string) *servertest.WorkerClient {
	if w.conns[name] == nil {
		conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", false)
		cl := &servertest.WorkerClient{T: w.T, Srv: w.Srv, Worker: w.Worker, Conn: conn, Ready: []*netpoll.Conn{conn}}
		w.Worker.Opened(conn)
		w.conns[name], w.pool[name] = conn, cl
	}
	return w.pool[name]
}

// hangUp has a client's connection end.
func (w *crowd) hangUp(name string) {
	w.Worker.Closed(w.conns[name])
	delete(w.conns, name)
	delete(w.pool, name)
}

// send has a client send a command, and returns the reply; "-" for one that has not come.
func (w *crowd) send(name string, words ...string) string {
	cl := w.client(name)
	reply := string(cl.Run(servertest.EncodeCommand(words...)))
	return w.taken(cl, reply)
}

// reply is what a client was sent since it was last looked at.
func (w *crowd) reply(name string) string {
	cl := w.client(name)
	return w.taken(cl, string(cl.Conn.Out.Bytes()))
}

func (w *crowd) taken(cl *servertest.WorkerClient, wire string) string {
	cl.Conn.Out.Reset()
	if wire == "" {
		return "-"
	}
	text, rest := servertest.PlainReply(wire)
	require.Empty(w.T, rest)
	return text
}

// pass lets time pass, in ms, and the background work be done whenever it asks for that.
func (w *crowd) pass(ms float64) {
	for until := w.Now + int64(ms*1e6); ; {
		next := max(int64(w.Srv.Cron()), 1)
		if w.Now+next > until {
			w.Now = until
			w.Srv.Cron()
			return
		}
		w.Now += next
	}
}

// converse goes through lines: "name command | reply", where - stands for no reply; "name | reply" for what has come since; +n before it
// lets n ms pass; a name with ! hangs up.
func (w *crowd) converse(lines string) {
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		call, want, _ := strings.Cut(line, "|")
		words := strings.Fields(call)
		if words[0][0] == '+' {
			var ms float64
			_, err := fmt.Sscan(words[0][1:], &ms)
			require.NoError(w.T, err)
			w.pass(ms)
			words = words[1:]
		}
		switch {
		case len(words) == 0:
		case words[0][0] == '!':
			w.hangUp(words[0][1:])
		case len(words) == 1:
			require.Equal(w.T, strings.TrimSpace(want), w.reply(words[0]), line)
		default:
			require.Equal(w.T, strings.TrimSpace(want), w.send(words[0], words[1:]...), line)
		}
	}
}

func TestWaitConversations(t *testing.T) {
	for _, tc := range []struct{ name, lines string }{
		{"first come, first served, by the charges of those before", `
			x RL.GCRA k 1 1 100ms                   | [0 1 0 -1 100]
			a RL.GCRA k 1 1 100ms WAIT 1s           | -
			b RL.GCRA k 1 1 100ms WAIT 1s           | -
			c RL.GCRA k 1 1 100ms WAIT 299          | [1 1 0 300 100]
			c RL.GCRA k 1 1 100ms WAIT 300ms        | -
			d RL.GCRA k 1 1 100ms                   | [1 1 0 400 100]
			+99.9 a                                 | -
			+0.1 a                                  | [0 1 0 -1 100]
			b                                       | -
			x RL.GCRA k 1 1 100ms COST 0            | [0 1 0 -1 100]
			x RL.GCRA k 1 1 100ms COST 1 PEEK       | [1 1 0 300 100]
			+100 b                                  | [0 1 0 -1 100]
			+100 c                                  | [0 1 0 -1 100]
			x RL.GCRA k 1 1 100ms                   | [1 1 0 100 100]`},
		{"an override that ends wakes who waits by its words", `
			x RL.POLICY SET p FIXED 5 10m                        | OK
			x RL.TAKE 1 p k                                      | [0 -1 [[0 5 4 -1 600000]]]
			x RL.POLICY OVERRIDE SET p k FIXED 1 10m EX 1        | OK
			a RL.TAKE 1 p k WAIT 1h                              | -
			+1200 a                                              | [0 -1 [[0 5 3 -1 598900]]]
			x RL.POLICY OVERRIDE SET p k FIXED 1 10m             | OK
			a RL.TAKE 1 p k WAIT 1h                              | -
			x DEL rl:override:{k}:p                              | 1
			a                                                    | [0 -1 [[0 5 2 -1 598800]]]`},
		{"a block that begins meanwhile answers who cannot pass in time, and only those", `
			x RL.POLICY SET p GCRA 1 1 1s BLOCK 1m               | OK
			x RL.TAKE 1 p k                                      | [0 -1 [[0 1 0 -1 1000]]]
			a RL.TAKE 1 p k WAIT 30s                             | -
			b RL.TAKE 1 p k WAIT 5m                              | -
			c RL.TAKE 1 p k WAIT 20s                             | -
			x RL.TAKE 1 p k                                      | [1 0 [[1 1 0 60000 1000]]]
			a                                                    | [1 0 [[1 1 0 60000 1000]]]
			c                                                    | [1 0 [[1 1 0 61000 1000]]]
			b                                                    | -
			+60000 b                                             | [0 -1 [[0 1 0 -1 1000]]]`},
		{"a large cost in front holds back small ones", `
			x RL.BUCKET k 10 10 1s COST 10          | [0 10 0 -1 1000]
			a RL.BUCKET k 10 10 1s COST 8 WAIT 5s   | -
			b RL.BUCKET k 10 10 1s COST 1 WAIT 5s   | -
			+500 b                                  | -
			x RL.BUCKET k 10 10 1s                  | [1 10 5 500 500]
			+300 a                                  | [0 10 0 -1 1000]
			b                                       | -
			+100 b                                  | [0 10 0 -1 1000]`},
		{"what does not look at who waits", `
			x CL.THROTTLE k 1 1 1                   | [0 2 1 -1 1]
			x CL.THROTTLE k 1 1 1                   | [0 2 0 -1 2]
			a RL.GCRA k 2 1 1s COST 2 WAIT 5s       | -
			+1000 x CL.THROTTLE k 1 1 1             | [0 2 0 -1 2]
			+2000 a                                 | [0 2 0 -1 2000]
			x RL.GCRA k 2 1 1s                      | [1 2 0 1000 2000]
			a RL.GCRA k 2 1 1s WAIT 1500            | -
			x CL.THROTTLE k 9 1 1                   | [0 10 7 -1 3]
			a                                       | [1 2 0 2000 3000]`},
		{"what takes nothing from anybody", `
			x RL.GCRA k 1 1 100ms                   | [0 1 0 -1 100]
			a RL.GCRA k 1 1 100ms WAIT 1s           | -
			x RL.GCRA k 1 1 100ms COST 0            | [0 1 0 -1 100]
			x RL.GCRA k -1 1 100ms                  | [0 -1 -1 -1 0]
			x RL.GCRA k 1 1 100ms COST -1           | [0 1 1 -1 0]
			a                                       | [0 1 0 -1 100]
			x RL.ACQUIRE l 1 1s MEMBER x            | [0 1 0 -1 1000 x]
			a RL.ACQUIRE l 1 1s MEMBER a WAIT 5s    | -
			x RL.ACQUIRE l 1 2s MEMBER x            | [0 1 0 -1 2000 x]
			x RL.RELEASE l x                        | 1
			a                                       | [0 1 0 -1 1000 a]
			x RL.LOG m 1 1s MEMBER x                | [0 1 0 -1 1000]
			a RL.LOG m 1 1s MEMBER a WAIT 5s        | -
			x RL.LOG m 1 1s MEMBER x                | [0 1 0 -1 1000]
			x RL.LOG m 1 1s MEMBER x COST -1        | [0 1 1 -1 0]
			a                                       | [0 1 0 -1 1000]`},
		{"it wakes whatever has changed the key", `
			x RL.FIXED k 1 10s                      | [0 1 0 -1 10000]
			a RL.FIXED k 1 10s WAIT 20s             | -
			x RL.RESET k                            | 1
			a                                       | [0 1 0 -1 10000]
			a RL.FIXED k 1 10s WAIT 20s             | -
			x DEL k                                 | 1
			a                                       | [0 1 0 -1 10000]
			a RL.FIXED k 1 10s WAIT 20s             | -
			x RL.FIXED k 1 10s COST -1              | [0 1 1 -1 0]
			a                                       | [0 1 0 -1 10000]
			a RL.FIXED k 1 10s WAIT 20s             | -
			x FLUSHALL                              | OK
			a                                       | [0 1 0 -1 10000]
			a RL.FIXED k 1 10s WAIT 20s             | -
			x EVAL redis.call('DEL',KEYS[1]) 1 k    | nil
			a                                       | [0 1 0 -1 10000]
			a RL.FIXED k 1 10s WAIT 20s             | -
			x SWAPDB 0 1                            | OK
			a                                       | [0 1 0 -1 10000]
			a RL.FIXED k 1 10s WAIT 20s             | -
			+10000 a                                | [0 1 0 -1 10000]
			a RL.FIXED k 1 10s WAIT 20s             | -
			x SET k text                            | OK
			a                                       | ERR the key holds a value that is no limiter's state
			x DEL k                                 | 1`},
		{"a counter without an expiry does not keep anybody waiting for ever", `
			x SET k 5                               | OK
			a RL.FIXED k 5 1s WAIT 2s               | -
			x PTTL k                                | 1000
			+1000 a                                 | [0 5 4 -1 1000]`},
		{"who goes is charged nothing", `
			x RL.LOG k 1 1s                         | [0 1 0 -1 1000]
			a RL.LOG k 1 1s WAIT 5s                 | -
			b RL.LOG k 1 1s WAIT 5s                 | -
			c RL.LOG k 1 1s WAIT 5s                 | -
			!a
			+1000 b                                 | [0 1 0 -1 1000]
			c CLIENT ID                             | -
			x ZCARD k                               | 1`},
		{"a large one that goes lets small ones pass at once", `
			x RL.BUCKET k 10 10 1s COST 5           | [0 10 5 -1 500]
			a RL.BUCKET k 10 10 1s COST 10 WAIT 5s  | -
			b RL.BUCKET k 10 10 1s COST 5 WAIT 5s   | -
			!a
			+0 b                                    | [0 10 0 -1 1000]`},
		{"RL.QUEUE is let out evenly", `
			a RL.QUEUE k 5 10 1s WAIT 1s            | [0 5 4 -1 100 0]
			b RL.QUEUE k 5 10 1s WAIT 1s            | -
			c RL.QUEUE k 5 10 1s WAIT 1s COST 2     | -
			d RL.QUEUE k 5 10 1s WAIT 399           | [1 5 4 400 100 -1]
			d RL.QUEUE k 5 10 1s WAIT 400           | -
			x RL.QUEUE k 5 10 1s                    | [1 5 4 400 100 -1]
			+100 b                                  | [0 5 4 -1 100 0]
			c                                       | -
			+100 c                                  | [0 5 3 -1 200 0]
			+199 d                                  | -
			+1 d                                    | [0 5 4 -1 100 0]
			x RL.QUEUE k 5 10 1s                    | [0 5 3 -1 200 100]`},
		{"RL.QUEUE tells who would wait for too short a time when it would have been let out", `
			a RL.QUEUE k 5 10 1s                    | [0 5 4 -1 100 0]
			a RL.QUEUE k 5 10 1s WAIT 99            | [1 5 4 100 100 -1]
			a RL.QUEUE k 5 10 1s WAIT 1             | [1 5 4 100 100 -1]
			a RL.QUEUE k 5 10 1s                    | [0 5 3 -1 200 100]`},
		{"leases are waited for until the deadline, since nobody knows when they are given back", `
			x RL.ACQUIRE k 1 1m MEMBER x            | [0 1 0 -1 60000 x]
			a RL.ACQUIRE k 1 1m MEMBER a WAIT 1s    | -
			b RL.ACQUIRE k 1 1m MEMBER b WAIT 5s    | -
			x RL.ACQUIRE k 1 1m MEMBER y            | [1 1 0 60000 60000 nil]
			+1000 a                                 | [1 1 0 59000 59000 nil]
			+1000 x RL.RELEASE k x                  | 1
			b                                       | [0 1 0 -1 60000 b]`},
		{"in a transaction, in a script, and with PEEK it does not wait", `
			x RL.FIXED k 1 1s                       | [0 1 0 -1 1000]
			a RL.FIXED k 1 1s WAIT 5s PEEK          | [0 1 0 -1 1000]
			a RL.FIXED k 1 1s COST 1 WAIT 5s PEEK   | [1 1 0 1000 1000]
			a MULTI                                 | OK
			a RL.FIXED k 1 1s WAIT 5s               | QUEUED
			a EXEC                                  | [[1 1 0 1000 1000]]
			a EVAL return{redis.call('RL.FIXED',KEYS[1],1,1000,'WAIT','5s')[1]} 1 k | [1]
			a RL.FIXED k 1 1s COST 2 WAIT 5s        | [1 1 0 -1 1000]
			b RL.FIXED k 1 1s WAIT 5s               | -
			a MULTI                                 | OK
			a DEL k                                 | QUEUED
			a RL.FIXED k 1 1s                       | QUEUED
			a EXEC                                  | [1 [1 1 1 1 0]]
			b                                       | [0 1 0 -1 1000]`},
		{"errors", `
			x RL.FIXED k 1 1s WAIT 0                | ERR duration '0' must be above 0
			x RL.FIXED k 1 1s WAIT 61m              | ERR WAIT must not be longer than 1h
			x RL.FIXED k 1 1s WAIT                  | ERR syntax error, try RL.FIXED key limit <window [ALIGNED] | <MINUTE | HOUR | DAY | WEEK | MONTH | YEAR> [TZ zone]> [COST n] [PEEK] [WAIT duration] (WAIT needs a value)
			x RL.FIXED k 1 1s WAIT 1s WAIT 1s       | ERR syntax error, try RL.FIXED key limit <window [ALIGNED] | <MINUTE | HOUR | DAY | WEEK | MONTH | YEAR> [TZ zone]> [COST n] [PEEK] [WAIT duration] (WAIT is given twice)
			x RL.POLICY SET p FIXED 1 1s            | OK
			x RL.TAKE 1 p k WAIT 2h                 | ERR WAIT must not be longer than 1h
			x EXISTS k                              | 0`},
		{"a take stands in the queue of the first that limits it, and moves to another at its arrival", `
			x RL.POLICY SET one FIXED 1 10s         | OK
			x RL.POLICY SET two FIXED 2 20s         | OK
			x RL.TAKE 1 one a                       | [0 -1 [[0 1 0 -1 10000]]]
			x RL.TAKE 1 two b COST 2                | [0 -1 [[0 2 0 -1 20000]]]
			p RL.TAKE 2 one a two b WAIT 30s        | -
			q RL.TAKE 1 one a WAIT 30s              | -
			r RL.TAKE 1 two b COST 2 WAIT 30s       | -
			s RL.TAKE 2 one a two b WAIT 15s        | [1 0 [[1 1 0 10000 10000] [1 2 0 20000 20000]]]
			x RL.TAKE 2 one a two b                 | [1 0 [[1 1 0 10000 10000] [1 2 0 20000 20000]]]
			+10000 p                                | -
			q                                       | [0 -1 [[0 1 0 -1 10000]]]
			x RL.TAKE 1 two b PEEK COST 1           | [1 0 [[1 2 0 10000 10000]]]
			+10000 p                                | [0 -1 [[0 1 0 -1 10000] [0 2 1 -1 20000]]]
			r                                       | [1 0 [[1 2 1 20000 20000]]]`},
		{"reservations wait as takes do, and for what others give back", `
			x RL.POLICY SET p FIXED 10 10s                        | OK
			x RL.RESERVE 1 p k COST 8 TTL 1m ID r                 | [0 -1 r [[0 10 2 -1 10000]]]
			a RL.RESERVE 1 p k COST 5 TTL 1m ID s WAIT 20s        | -
			b RL.RESERVE 1 p k COST 1 TTL 1m ID t WAIT 20s        | -
			c RL.RESERVE 1 p k COST 11 TTL 1m ID u WAIT 20s       | [1 0 nil [[1 10 2 -1 10000]]]
			c RL.RESERVE 1 p k COST 1 TTL 1m ID u                 | [1 0 nil [[1 10 2 10000 10000]]]
			+100 x RL.SETTLE r ACTUAL 5                           | [1 [[0 10 5 -1 9900]]]
			a                                                     | [0 -1 s [[0 10 0 -1 9900]]]
			b                                                     | -
			x RL.CANCEL s                                         | 1
			b                                                     | [0 -1 t [[0 10 4 -1 9900]]]
			a RL.RESERVE 1 p k COST 9 TTL 1s ID t WAIT 20s        | ERR reservation 't' exists
			a RL.RESERVE 1 p k COST 9 TTL 1m ID v WAIT 20s        | -
			x RL.RESERVE 1 p k COST 0 TTL 1m ID v                 | [0 -1 v [[0 10 4 -1 9900]]]
			+9900 a                                               | ERR reservation 'v' exists`},
		{"policies that change", `
			x RL.POLICY SET p FIXED 2 10s           | OK
			x RL.TAKE 1 p k COST 2                  | [0 -1 [[0 2 0 -1 10000]]]
			a RL.TAKE 1 p k COST 2 WAIT 30s         | -
			b RL.TAKE 1 p k COST 1 WAIT 30s         | -
			x RL.POLICY SET p FIXED 5 10s           | OK
			a                                       | [0 -1 [[0 5 1 -1 10000]]]
			b                                       | [0 -1 [[0 5 0 -1 10000]]]
			a RL.TAKE 1 p k COST 2 WAIT 30s         | -
			b RL.TAKE 1 p k COST 3 WAIT 30s         | -
			c RL.TAKE 1 p k COST 1 WAIT 30s         | -
			x RL.POLICY SET p FIXED 2 10s           | OK
			a                                       | -
			b                                       | [1 0 [[1 2 0 -1 10000]]]
			x RL.POLICY DEL p                       | 1
			a                                       | ERR no such policy 'p'
			c                                       | ERR no such policy 'p'`},
	} {
		t.Run(tc.name, func(t *testing.T) { newCrowd(t).converse(tc.lines) })
	}
}

// TestWaitsThatAreEnded: CLIENT UNBLOCK and CLIENT KILL charge nothing, and CLIENT LIST tells who waits for what.
func TestWaitsThatAreEnded(t *testing.T) {
	w := newCrowd(t)
	id := w.send("a", "CLIENT", "ID")
	idB := w.send("b", "CLIENT", "ID")
	w.converse(`
		x RL.LOG k~1 1 1s                       | [0 1 0 -1 1000]
		a RL.LOG k~1 1 1s WAIT 5s               | -
		b RL.LOG k~1 1 1s WAIT 5s               | -
		+250`)
	line := w.send("x", "CLIENT", "LIST", "ID", id)
	require.Contains(t, line, " flags=b ")
	require.Contains(t, line, " cmd=rl.log ")
	require.Contains(t, line, ` waits-for=k~1 waits-ms=4750`)
	require.NotContains(t, w.send("x", "CLIENT", "INFO"), "waits-for")
	require.Equal(t, "1", w.send("x", "CLIENT", "UNBLOCK", id))
	require.Equal(t, "[1 1 0 750 750]", w.reply("a"))
	require.Equal(t, "0", w.send("x", "CLIENT", "UNBLOCK", id))
	require.Equal(t, "-", w.send("a", "RL.LOG", "k~1", "1", "1s", "WAIT", "5s"))
	require.Equal(t, "1", w.send("x", "CLIENT", "UNBLOCK", id, "ERROR"))
	require.Equal(t, "UNBLOCKED client unblocked via CLIENT UNBLOCK", w.reply("a"))
	require.Equal(t, "1", w.send("x", "CLIENT", "KILL", "ID", idB))
	w.pass(10_000)
	require.Equal(t, "-", w.reply("b"), "who is about to be closed is answered nothing")
	require.Equal(t, "0", w.send("x", "EXISTS", "k~1"), "and charged nothing")
	info := w.send("x", "INFO", "limiters")
	require.Contains(t, info, "limiter_waiting:1\r\nlimiter_waits_passed:0\r\nlimiter_waits_limited:0\r\nlimiter_waits_given_up:2\r\n")
}

// TestWaitLimits: beyond wait-max-clients and wait-max-per-key a call is limited at once.
func TestWaitLimits(t *testing.T) {
	w := newCrowd(t)
	w.converse(`
		x CONFIG SET wait-max-clients 3 wait-max-per-key 2 | OK
		x RL.FIXED k 1 1s            | [0 1 0 -1 1000]
		x RL.FIXED l 1 1s            | [0 1 0 -1 1000]
		a RL.FIXED k 1 1s WAIT 5s    | -
		b RL.FIXED k 1 1s WAIT 5s    | -
		c RL.FIXED k 1 1s WAIT 5s    | [1 1 0 1000 1000]
		c RL.FIXED l 1 1s WAIT 5s    | -
		d RL.FIXED l 1 1s WAIT 5s    | [1 1 0 1000 1000]
		!a
		d RL.FIXED l 1 1s WAIT 5s    | -
		+1000 b                      | [0 1 0 -1 1000]
		c                            | [0 1 0 -1 1000]
		x CONFIG SET wait-max-clients 0 | OK
		b RL.FIXED k 1 1s WAIT 5s    | [1 1 0 1000 1000]`)
}

// TestWaitersCountInTheirClientsMemory: a call that waits with a long key is among what maxmemory-clients counts.
func TestWaitersCountInTheirClientsMemory(t *testing.T) {
	w := newCrowd(t)
	key := strings.Repeat("k", 5000)
	require.Equal(t, "[0 1 0 -1 1000]", w.send("x", "RL.FIXED", key, "1", "1s"))
	before := w.Srv.ClientMemory()
	require.Equal(t, "-", w.send("a", "RL.FIXED", key, "1", "1s", "WAIT", "5s"))
	require.Greater(t, w.Srv.ClientMemory(), before+len(key))
	w.hangUp("a")
	require.LessOrEqual(t, w.Srv.ClientMemory(), before)
}

// TestMoreWaitThanAreServedAtOnce: a key that many wait for is served in parts, and all of them in their order.
func TestMoreWaitThanAreServedAtOnce(t *testing.T) {
	const clients = 500
	w := newCrowd(t)
	w.send("x", "RL.FIXED", "k", "500", "1s", "COST", "500")
	for i := range clients {
		require.Equal(t, "-", w.send(fmt.Sprint(i), "RL.FIXED", "k", "500", "1s", "WAIT", "5s"))
	}
	w.send("x", "DEL", "k")
	for next := w.Srv.Cron(); next == 0; {
		next = w.Srv.Cron()
	}
	for i := range clients {
		require.Equal(t, fmt.Sprintf("[0 500 %d -1 1000]", clients-1-i), w.reply(fmt.Sprint(i)))
	}
	require.False(t, w.Srv.Gate.Has(command.GateBlocked))
}

// TestWaitsEndWhenAPrimaryIsFollowed: who waits is answered as other blocked clients are, and charged nothing.
func TestWaitsEndWhenAPrimaryIsFollowed(t *testing.T) {
	w := newCrowd(t)
	t.Cleanup(w.Srv.Replica.Close)
	w.converse(`
		x RL.FIXED k 5 1s COST 5    | [0 5 0 -1 1000]
		a RL.FIXED k 5 1s WAIT 5s   | -
		x REPLICAOF 127.0.0.1 1     | OK`)
	require.Contains(t, w.reply("a"), "UNBLOCKED")
	require.Zero(t, w.Srv.Waits.Now)
	w.converse(`
		x REPLICAOF NO ONE          | OK
		x RL.FIXED k 5 1s COST 0    | [0 5 0 -1 1000]
		+1000 x RL.FIXED k 5 1s COST 0 | [0 5 5 -1 0]`)
}
