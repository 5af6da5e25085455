package server

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/config"
	"headgate/server/netpoll"
)

// turn gives the worker input and has it run one batch: what a connection gets of one iteration.
func (w *workerClient) turn(input []byte) (replies []byte, more bool) {
	w.conn.Out.Reset()
	for len(input) > 0 {
		n := copy(w.conn.In.Space(&w.pool), input)
		w.conn.In.Received(n)
		input = input[n:]
	}
	w.worker.Batch(w.ready)
	return w.conn.Out.Bytes(), w.conn.TakePostponed()
}

// drainTurns runs batches until nothing is left over, and returns how many there were, the longest replies of one and all of them.
func (w *workerClient) drainTurns(input []byte) (turns, longest int, all []byte) {
	replies, more := w.turn(input)
	for {
		turns, longest, all = turns+1, max(longest, len(replies)), append(all, replies...)
		if !more {
			return turns, longest, all
		}
		replies, more = w.turn(nil)
	}
}

// TestTurnIsBoundedInCommands: of a long pipeline one iteration runs a part, and the rest comes in those that follow, in order.
func TestTurnIsBoundedInCommands(t *testing.T) {
	w := newWorkerClient(t)
	const n = 3*turnCommands + 10
	first, more := w.turn(bytes.Repeat([]byte("INCR n\r\n"), n))
	first = bytes.Clone(first)
	require.True(t, more)
	require.LessOrEqual(t, bytes.Count(first, []byte("\n")), turnCommands)
	turns, _, rest := w.drainTurns(nil)
	require.GreaterOrEqual(t, turns, 3)
	require.Equal(t, n, bytes.Count(first, []byte("\n"))+bytes.Count(rest, []byte("\n")))
	require.True(t, bytes.HasSuffix(rest, []byte(":1546\r\n")))
}

// TestTurnIsBoundedInReplies: what is answered is sent before more is run.
func TestTurnIsBoundedInReplies(t *testing.T) {
	w := newWorkerClient(t)
	value := strings.Repeat("v", turnReplies/3)
	w.turn(encodeCommand("SET", "k", value))
	turns, longest, all := w.drainTurns(bytes.Repeat([]byte("GET k\r\n"), 100))
	require.Equal(t, 100, bytes.Count(all, []byte(value)))
	require.LessOrEqual(t, longest, turnReplies+len(value)+32)
	require.GreaterOrEqual(t, turns, 25)
}

// TestTurnIsBoundedInTime: commands that take long wait for each other's next iteration.
func TestTurnIsBoundedInTime(t *testing.T) {
	w := newWorkerClient(t)
	slow := encodeCommand("EVAL", "for i = 1, 200000 do end return 1", "0")
	turns, _, all := w.drainTurns(bytes.Repeat(slow, 20))
	require.Equal(t, 20, bytes.Count(all, []byte(":1\r\n")))
	require.GreaterOrEqual(t, turns, 5, "each takes longer than a few µs")
}

// TestOthersComeBeforeWhatIsLeftOver: a batch stops at connections of earlier iterations once it has served such for its time, and
// serves one at least.
func TestOthersComeBeforeWhatIsLeftOver(t *testing.T) {
	w := newWorkerClient(t)
	slow := bytes.Repeat(encodeCommand("EVAL", "for i = 1, 200000 do end return 1", "0"), 20)
	var left []*netpoll.Conn
	for range 50 {
		conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", true)
		w.worker.Opened(conn)
		t.Cleanup(func() { w.worker.Closed(conn) })
		conn.In.Received(copy(conn.In.Space(&w.pool), slow))
		left = append(left, conn)
	}
	w.conn.In.Received(copy(w.conn.In.Space(&w.pool), "PING\r\n"))
	w.worker.Batch(append([]*netpoll.Conn{w.conn}, left...))
	require.Equal(t, "+PONG\r\n", string(w.conn.Out.Bytes()))
	served := 0
	for _, conn := range left {
		if conn.Out.Len() > 0 {
			served++
		}
	}
	require.Positive(t, served)
	require.Less(t, served, len(left), "%v for each of them", time.Duration(turnTime))
}

// TestRepliesStopAtTheLimit: a reply that exceeds its client's limit stops while it is made, in a command, in a transaction and from a
// script; the client is closed, and what a transaction was to change is changed.
func TestRepliesStopAtTheLimit(t *testing.T) {
	const hard = 1 << 20
	many := strings.Repeat(" k", 1000)
	for name, request := range map[string]string{
		"command":     "MGET" + many,
		"transaction": "MULTI\r\nMGET" + many + "\r\nINCR done\r\nEXEC",
		"parts":       "MULTI\r\n" + strings.Repeat("GET k\r\n", 200) + "INCR done\r\nEXEC",
		"script":      "EVAL \"redis.call('INCR', 'done') return redis.call('MGET', unpack(ARGV))\" 0" + many,
		"elements":    "LRANGE l 0 -1",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkerClientOf(t, New(config.NewLive(withOutputLimit(hard)), Options{}))
			w.conn.Out.SetBuffers(w.srv.Buffers())
			w.drainTurns(encodeCommand("SET", "k", strings.Repeat("v", 10_000)))
			w.drainTurns([]byte("RPUSH l" + strings.Repeat(" "+strings.Repeat("e", 500), 100) + "\r\n"))
			for range 6 {
				w.drainTurns([]byte("EVAL \"local l = redis.call('LRANGE', 'l', 0, -1) return redis.call('RPUSH', 'l', unpack(l))\" 0\r\n"))
			}
			require.Zero(t, w.srv.stats.outputLimited)
			w.drainTurns([]byte(request + "\r\n"))
			require.EqualValues(t, 1, w.srv.stats.outputLimited)
			require.True(t, w.conn.Closing())
			require.LessOrEqual(t, w.conn.Out.Cap(), hard)
			require.LessOrEqual(t, w.srv.buffers.Used(), int64(hard))
			if strings.Contains(request, "done") {
				other := newWorkerClientOf(t, w.srv)
				require.Equal(t, "$1\r\n1\r\n", string(other.run([]byte("GET done\r\n"))))
			}
		})
	}
}

func withOutputLimit(hard int) *config.Config {
	cfg := unsaved()
	cfg.OutputLimits.Normal = config.OutputLimit{Hard: hard}
	return cfg
}

// TestCalledReplyIsBounded: a command that a script calls cannot answer more than a script may hold.
func TestCalledReplyIsBounded(t *testing.T) {
	w := newWorkerClient(t)
	w.drainTurns(encodeCommand("SET", "k", strings.Repeat("v", 1<<20)))
	script := "redis.call('INCR', 'n') return redis.pcall('MGET', unpack(ARGV))"
	_, _, got := w.drainTurns([]byte("EVAL \"" + script + "\" 0" + strings.Repeat(" k", 100) + "\r\n"))
	require.Equal(t, "-ERR not enough memory\r\n", string(got))
	require.Equal(t, "$1\r\n1\r\n", string(w.run([]byte("GET n\r\n"))), "the script went on to its end")
}

// TestClientsShareACeiling: with maxmemory-clients at its default, clients whose buffers exceed their part of what the process may have
// are closed, the largest first, and others stay.
func TestClientsShareACeiling(t *testing.T) {
	cfg := withOutputLimit(0)
	cfg.MaxMemory = 1 << 40
	srv := New(config.NewLive(cfg), Options{Memory: 100 << 20})
	small := newWorkerClientOf(t, srv)
	small.drainTurns(encodeCommand("SET", "k", strings.Repeat("v", 1<<20)))
	hog := newWorkerClientOf(t, srv)
	hog.conn.Out.SetBuffers(srv.Buffers())
	hog.drainTurns([]byte("MGET" + strings.Repeat(" k", 1000) + "\r\n"))
	require.True(t, hog.conn.Closing())
	require.False(t, small.conn.Closing())
	require.LessOrEqual(t, srv.buffers.Used(), int64(23<<20))
}

// TestCutTransactionSkipsWhatOnlyAnswers: once nobody gets the answers of a transaction, its commands that change something are run, and no
// others.
func TestCutTransactionSkipsWhatOnlyAnswers(t *testing.T) {
	w := newWorkerClientOf(t, New(config.NewLive(withOutputLimit(1<<20)), Options{}))
	w.drainTurns(encodeCommand("SET", "k", strings.Repeat("v", 1<<19)))
	w.drainTurns([]byte("MULTI\r\nGET k\r\nGET k\r\nGET k\r\n" + strings.Repeat("GET k\r\nCOMMAND\r\n", 100) + "SELECT 1\r\nINCR n\r\nEXEC\r\n"))
	require.True(t, w.conn.Closing())
	calls := func(name string) uint64 {
		return uint64(w.srv.stats.commands[w.srv.commands.lookup([]byte(name)).id].calls)
	}
	require.Less(t, calls("GET"), uint64(5))
	require.Zero(t, calls("COMMAND"))
	other := newWorkerClientOf(t, w.srv)
	require.Equal(t, "+OK\r\n$1\r\n1\r\n", string(other.run([]byte("SELECT 1\r\nGET n\r\n"))), "in the database that the transaction chose")
}

// TestBatchIsBoundedInTime: connections that a batch of slow commands has no time for are left over, though none of them was before, and
// so nobody who comes next waits for all of them.
func TestBatchIsBoundedInTime(t *testing.T) {
	w := newWorkerClient(t)
	slow := encodeCommand("EVAL", "for i = 1, 2000000 do end return 1", "0")
	var all []*netpoll.Conn
	for range 30 {
		conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", false)
		w.worker.Opened(conn)
		t.Cleanup(func() { w.worker.Closed(conn) })
		conn.In.Received(copy(conn.In.Space(&w.pool), slow))
		all = append(all, conn)
	}
	require.Equal(t, len(all), w.worker.Batch(all), "none of them was left over before")
	served, postponed := 0, 0
	for _, conn := range all {
		if conn.Out.Len() > 0 {
			served++
		}
		if conn.TakePostponed() {
			postponed++
		}
	}
	require.Positive(t, served)
	require.Positive(t, postponed)
	require.Equal(t, len(all), served+postponed)
}

// carriedConn is a connection that comes after others, with input.
func (w *workerClient) carriedConn(input []byte) *netpoll.Conn {
	conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", true)
	w.worker.Opened(conn)
	w.t.Cleanup(func() { w.worker.Closed(conn) })
	conn.In.Received(copy(conn.In.Space(&w.pool), input))
	return conn
}

// TestLeftOverConnectionIsServedAfterALongWait: one that comes after others is served also when the executor's lock is busy for longer than
// such connections have in an iteration, since that may be so in each of them.
func TestLeftOverConnectionIsServedAfterALongWait(t *testing.T) {
	w := newWorkerClient(t)
	conn := w.carriedConn([]byte("PING\r\n"))
	w.srv.Lock()
	time.AfterFunc(3*carriedTime, w.srv.Unlock)
	w.worker.Batch([]*netpoll.Conn{conn})
	require.Equal(t, "+PONG\r\n", string(conn.Out.Bytes()))
}

// TestBrokenOffTurnIsATurn: a connection that an iteration's time ends for in the middle of its turn has had it, and comes after those that
// have had none.
func TestBrokenOffTurnIsATurn(t *testing.T) {
	w := newWorkerClient(t)
	w.drainTurns(bytes.Repeat([]byte("PUBLISH c m\r\n"), 2*alwaysTimed)) // so that those below are hardly ever timed
	for range 1000 {
		w.worker.Batch([]*netpoll.Conn{w.carriedConn([]byte("SUBSCRIBE c\r\n"))})
	}
	long := w.carriedConn(bytes.Repeat([]byte("PUBLISH c m\r\n"), 5*batchCommands))
	other := w.carriedConn([]byte("PING\r\n"))
	served := w.worker.Batch([]*netpoll.Conn{long, other})
	require.Positive(t, long.Out.Len())
	require.Equal(t, 1, served)
	require.True(t, long.TakePostponed())
	require.Zero(t, other.Out.Len())
}
