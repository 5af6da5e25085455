package exec_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/exec"
	"headgate/server/netpoll"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestTurnIsBoundedInCommands: of a long pipeline one iteration runs a part, and the rest comes in those that follow, in order.
func TestTurnIsBoundedInCommands(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	const n = 3*exec.TurnCommands + 10
	first, more := w.Turn(bytes.Repeat([]byte("INCR n\r\n"), n))
	first = bytes.Clone(first)
	require.True(t, more)
	require.LessOrEqual(t, bytes.Count(first, []byte("\n")), exec.TurnCommands)
	turns, _, rest := w.DrainTurns(nil)
	require.GreaterOrEqual(t, turns, 3)
	require.Equal(t, n, bytes.Count(first, []byte("\n"))+bytes.Count(rest, []byte("\n")))
	require.True(t, bytes.HasSuffix(rest, []byte(":1546\r\n")))
}

// TestTurnIsBoundedInReplies: what is answered is sent before more is run.
func TestTurnIsBoundedInReplies(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	value := strings.Repeat("v", exec.TurnReplies/3)
	w.Turn(servertest.EncodeCommand("SET", "k", value))
	turns, longest, all := w.DrainTurns(bytes.Repeat([]byte("GET k\r\n"), 100))
	require.Equal(t, 100, bytes.Count(all, []byte(value)))
	require.LessOrEqual(t, longest, exec.TurnReplies+len(value)+32)
	require.GreaterOrEqual(t, turns, 25)
}

// TestTurnIsBoundedInTime: commands that take long wait for each other's next iteration.
func TestTurnIsBoundedInTime(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	slow := servertest.EncodeCommand("EVAL", "for i = 1, 200000 do end return 1", "0")
	turns, _, all := w.DrainTurns(bytes.Repeat(slow, 20))
	require.Equal(t, 20, bytes.Count(all, []byte(":1\r\n")))
	require.GreaterOrEqual(t, turns, 5, "each takes longer than a few µs")
}

// TestOthersComeBeforeWhatIsLeftOver: a batch stops at connections of earlier iterations once it has served such for its time, and
// serves one at least.
func TestOthersComeBeforeWhatIsLeftOver(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	slow := bytes.Repeat(servertest.EncodeCommand("EVAL", "for i = 1, 200000 do end return 1", "0"), 20)
	var left []*netpoll.Conn
	for range 50 {
		conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", true)
		w.Worker.Opened(conn)
		t.Cleanup(func() { w.Worker.Closed(conn) })
		conn.In.Received(copy(conn.In.Space(&w.Pool), slow))
		left = append(left, conn)
	}
	w.Conn.In.Received(copy(w.Conn.In.Space(&w.Pool), "PING\r\n"))
	w.Worker.Batch(append([]*netpoll.Conn{w.Conn}, left...))
	require.Equal(t, "+PONG\r\n", string(w.Conn.Out.Bytes()))
	served := 0
	for _, conn := range left {
		if conn.Out.Len() > 0 {
			served++
		}
	}
	require.Positive(t, served)
	require.Less(t, served, len(left), "%v for each of them", time.Duration(exec.TurnTime))
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
			w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(withOutputLimit(hard)), server.Options{}))
			w.Conn.Out.SetBuffers(w.Srv.Buffers())
			w.DrainTurns(servertest.EncodeCommand("SET", "k", strings.Repeat("v", 10_000)))
			w.DrainTurns([]byte("RPUSH l" + strings.Repeat(" "+strings.Repeat("e", 500), 100) + "\r\n"))
			for range 6 {
				w.DrainTurns([]byte("EVAL \"local l = redis.call('LRANGE', 'l', 0, -1) return redis.call('RPUSH', 'l', unpack(l))\" 0\r\n"))
			}
			require.Zero(t, w.Srv.Stats.OutputLimited)
			w.DrainTurns([]byte(request + "\r\n"))
			require.EqualValues(t, 1, w.Srv.Stats.OutputLimited)
			require.True(t, w.Conn.Closing())
			require.LessOrEqual(t, w.Conn.Out.Cap(), hard)
			require.LessOrEqual(t, w.Srv.Pool.Used(), int64(hard))
			if strings.Contains(request, "done") {
				other := servertest.NewWorkerClientOf(t, w.Srv)
				require.Equal(t, "$1\r\n1\r\n", string(other.Run([]byte("GET done\r\n"))))
			}
		})
	}
}

// TestRepliesMayReachTheLimit: a client is closed when there is more to be sent than client-output-buffer-limit, not when there is as much.
func TestRepliesMayReachTheLimit(t *testing.T) {
	const hard = 1 << 20
	w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(withOutputLimit(hard)), server.Options{}))
	w.Srv.Lock()
	defer w.Srv.Unlock()
	cl := w.Conn.Client.(*command.Client)
	cl.Reply.Raw(make([]byte, hard))
	w.Srv.CheckOutput(cl)
	require.False(t, w.Conn.Closing())
	cl.Reply.Raw([]byte("x"))
	w.Srv.CheckOutput(cl)
	require.True(t, w.Conn.Closing())
}

func withOutputLimit(hard int) *config.Config {
	cfg := servertest.Unsaved()
	cfg.OutputLimits.Normal = config.OutputLimit{Hard: hard}
	return cfg
}

// TestCalledReplyIsBounded: a command that a script calls cannot answer more than a script may hold.
func TestCalledReplyIsBounded(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.DrainTurns(servertest.EncodeCommand("SET", "k", strings.Repeat("v", 1<<20)))
	script := "redis.call('INCR', 'n') return redis.pcall('MGET', unpack(ARGV))"
	_, _, got := w.DrainTurns([]byte("EVAL \"" + script + "\" 0" + strings.Repeat(" k", 100) + "\r\n"))
	require.Equal(t, "-ERR not enough memory\r\n", string(got))
	require.Equal(t, "$1\r\n1\r\n", string(w.Run([]byte("GET n\r\n"))), "the script went on to its end")
}

// TestClientsShareACeiling: with maxmemory-clients at its default, clients whose buffers exceed their part of what the process may have
// are closed, the largest first, and others stay.
func TestClientsShareACeiling(t *testing.T) {
	cfg := withOutputLimit(0)
	cfg.MaxMemory = 1 << 40
	srv := server.New(config.NewLive(cfg), server.Options{Memory: 100 << 20})
	small := servertest.NewWorkerClientOf(t, srv)
	small.DrainTurns(servertest.EncodeCommand("SET", "k", strings.Repeat("v", 1<<20)))
	hog := servertest.NewWorkerClientOf(t, srv)
	hog.Conn.Out.SetBuffers(srv.Buffers())
	hog.DrainTurns([]byte("MGET" + strings.Repeat(" k", 1000) + "\r\n"))
	require.True(t, hog.Conn.Closing())
	require.False(t, small.Conn.Closing())
	require.LessOrEqual(t, srv.Pool.Used(), int64(23<<20))
	require.Zero(t, srv.Stats.OutputLimited, "memory was short, no output buffer was over its own limit")
}

// TestCutTransactionSkipsWhatOnlyAnswers: once nobody gets the answers of a transaction, its commands that change something are run, and no
// others.
func TestCutTransactionSkipsWhatOnlyAnswers(t *testing.T) {
	w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(withOutputLimit(1<<20)), server.Options{}))
	w.DrainTurns(servertest.EncodeCommand("SET", "k", strings.Repeat("v", 1<<19)))
	w.DrainTurns([]byte("MULTI\r\nGET k\r\nGET k\r\nGET k\r\n" + strings.Repeat("GET k\r\nCOMMAND\r\n", 100) + "SELECT 1\r\nINCR n\r\nEXEC\r\n"))
	require.True(t, w.Conn.Closing())
	calls := func(name string) uint64 {
		return uint64(w.Srv.Stats.Commands[w.Srv.Commands.Lookup([]byte(name)).ID].Calls)
	}
	require.Less(t, calls("GET"), uint64(5))
	require.Zero(t, calls("COMMAND"))
	other := servertest.NewWorkerClientOf(t, w.Srv)
	require.Equal(t, "+OK\r\n$1\r\n1\r\n", string(other.Run([]byte("SELECT 1\r\nGET n\r\n"))), "in the database that the transaction chose")
}

// TestBatchIsBoundedInTime: connections that a batch of slow commands has no time for are left over, though none of them was before, and
// so nobody who comes next waits for all of them.
func TestBatchIsBoundedInTime(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	slow := servertest.EncodeCommand("EVAL", "for i = 1, 300000 do end return 1", "0")
	var all []*netpoll.Conn
	for range 100 {
		conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", false)
		w.Worker.Opened(conn)
		t.Cleanup(func() { w.Worker.Closed(conn) })
		conn.In.Received(copy(conn.In.Space(&w.Pool), slow))
		all = append(all, conn)
	}
	require.Equal(t, len(all), w.Worker.Batch(all), "none of them was left over before")
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

// TestLeftOverConnectionIsServedAfterALongWait: one that comes after others is served also when the executor's lock is busy for longer than
// such connections have in an iteration, since that may be so in each of them.
func TestLeftOverConnectionIsServedAfterALongWait(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	conn := w.CarriedConn([]byte("PING\r\n"))
	w.Srv.Lock()
	time.AfterFunc(3*exec.CarriedTime, w.Srv.Unlock)
	w.Worker.Batch([]*netpoll.Conn{conn})
	require.Equal(t, "+PONG\r\n", string(conn.Out.Bytes()))
}

// TestBrokenOffTurnIsATurn: a connection that an iteration's time ends for in the middle of its turn has had it, and comes after those that
// have had none.
func TestBrokenOffTurnIsATurn(t *testing.T) {
	slow := time.Duration(0)
	clock := command.NewClock(func() (wall, mono int64) { // which is read before each part of a batch
		time.Sleep(slow)
		now := time.Now().UnixNano()
		return now, now
	})
	w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(servertest.Unsaved()), server.Options{Clock: clock}))
	long := w.CarriedConn(bytes.Repeat([]byte("PING\r\n"), 2*exec.BatchCommands))
	other := w.CarriedConn([]byte("PING\r\n"))
	slow = 2 * exec.CarriedTime
	served := w.Worker.Batch([]*netpoll.Conn{long, other})
	slow = 0
	require.Equal(t, exec.BatchCommands, bytes.Count(long.Out.Bytes(), []byte("\n")))
	require.Equal(t, 1, served)
	require.True(t, long.TakePostponed())
	require.Zero(t, other.Out.Len())
}

// TestCommandsOfManyReceiversAreTimed: what Redis calls fast is timed by sampling, but a message that goes to a crowd ends a turn all the same.
func TestCommandsOfManyReceiversAreTimed(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	publish := bytes.Repeat([]byte("PUBLISH c m\r\n"), 2*exec.AlwaysTimed)
	w.DrainTurns(publish)                  // so that those below are hardly ever timed by themselves
	const patterns, atOnce = 200_000, 1000 // comparing with all of them takes longer than turnTime
	for first := 0; first < patterns; first += atOnce {
		words := []string{"PSUBSCRIBE"}
		for i := range atOnce {
			words = append(words, fmt.Sprintf("c?%d", first+i))
		}
		w.Worker.Batch([]*netpoll.Conn{w.CarriedConn(servertest.EncodeCommand(words...))})
	}
	replies, more := w.Turn(publish)
	require.True(t, more)
	require.LessOrEqual(t, bytes.Count(replies, []byte("\n")), 3)
}

// TestCommandsThatLookForLongAreTimed: what a fast command looks at without answering it ends a turn, too.
func TestCommandsThatLookForLongAreTimed(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	const entries, atOnce = 20_000, 500
	for range entries / atOnce {
		w.DrainTurns(bytes.Repeat([]byte("XADD s * a b\r\n"), atOnce))
	}
	w.DrainTurns([]byte("XGROUP CREATE s g 0\r\nXREADGROUP GROUP g c STREAMS s >\r\n"))
	w.DrainTurns(bytes.Repeat([]byte("XAUTOCLAIM s g c 99999999 0-0 COUNT 1\r\n"), 2*exec.AlwaysTimed))
	replies, more := w.Turn(bytes.Repeat([]byte("XAUTOCLAIM s g c 99999999 0-0 COUNT 1000\r\n"), exec.AlwaysTimed))
	require.True(t, more)
	require.LessOrEqual(t, bytes.Count(replies, []byte("*3")), 3)
}
