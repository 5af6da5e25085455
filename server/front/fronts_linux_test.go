package front_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// loopsServer runs a server with several event loops on a free port, until the test ends.
func loopsServer(t *testing.T, loops int, edits ...func(*config.Config)) *server.Server {
	t.Helper()
	cfg := servertest.Unsaved()
	cfg.Bind, cfg.Port, cfg.IOThreads = []string{"127.0.0.1"}, freePort(t), loops
	cfg.BusyReplyThreshold = 0 // under the race detector a script of some milliseconds may take seconds: nobody is to be answered BUSY meanwhile
	for _, edit := range edits {
		edit(cfg)
	}
	srv := server.New(config.NewLive(cfg), server.Options{})
	require.NoError(t, srv.Listen())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		srv.Run()
	}()
	t.Cleanup(func() {
		srv.Stop()
		<-ended
		require.Empty(t, srv.Clients.List, "every client is forgotten when its loop has ended")
		srv.Keys.Close()
	})
	return srv
}

func freePort(t *testing.T) int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// answerTime is for how long a client of loopsServer waits for an answer: much longer than any takes on a loaded machine, under the race
// detector too.
const answerTime = 2 * time.Minute

// loopClient is a client of loopsServer; connections go to the loops in turn.
type loopClient struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dialLoop(t *testing.T, srv *server.Server) *loopClient {
	t.Helper()
	return dialLoopAt(t, srv.Addresses()[0])
}

func dialLoopAt(t *testing.T, addr string) *loopClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &loopClient{t, conn, bufio.NewReader(conn)}
}

// send sends a line. The answer to it has to be there in time.
func (c *loopClient) send(line string) {
	c.t.Helper()
	require.NoError(c.t, c.SetDeadline(time.Now().Add(answerTime)))
	_, err := io.WriteString(c, line+"\r\n")
	require.NoError(c.t, err)
}

func (c *loopClient) ask(line string, lines int) string {
	c.t.Helper()
	c.send(line)
	return servertest.ReadLines(c.t, c.r, lines)
}

// TestQueuedConnectionsStay closes a listener while connections wait at it that the loop had no time to accept.
func TestQueuedConnectionsStay(t *testing.T) {
	for _, loops := range []int{1, 2} {
		t.Run(fmt.Sprint(loops, " loops"), func(t *testing.T) {
			srv := loopsServer(t, loops)
			addr := srv.Addresses()[0]
			var queued []*loopClient
			srv.Lock() // the loop needs it to accept
			for range 20 {
				queued = append(queued, dialLoopAt(t, addr))
			}
			srv.Plain.Drop(srv.Plain.Listeners)
			srv.Unlock()
			for _, c := range queued {
				require.Equal(t, "+PONG\r\n", c.ask("PING", 1))
			}
			_, err := net.Dial("tcp", addr)
			require.ErrorIs(t, err, unix.ECONNREFUSED)
		})
	}
}

// TestBacklog asks the kernel how many connections it holds for the listener.
func TestBacklog(t *testing.T) {
	for _, backlog := range []int{7, 100} {
		srv := loopsServer(t, 1, func(cfg *config.Config) { cfg.TCPBacklog = backlog })
		raw, err := srv.Plain.Listeners[0].(*net.TCPListener).SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			require.NoError(t, err)
			require.EqualValues(t, backlog, info.Sacked, "of a listener that is the limit; see tcp_get_info in Linux")
		}))
	}
}

func TestLoopsShareOneKeyspace(t *testing.T) {
	const loops, clients, each = 3, 9, 500
	srv := loopsServer(t, loops)
	var work sync.WaitGroup
	for range clients {
		c := dialLoop(t, srv)
		work.Go(func() {
			for range each / 10 {
				c.send(strings.Repeat("INCR n\r\n", 9) + "INCR n")
				servertest.ReadLines(t, c.r, 10)
			}
		})
	}
	work.Wait()
	c := dialLoop(t, srv)
	require.Equal(t, fmt.Sprintf("$4\r\n%d\r\n", clients*each), c.ask("GET n", 2))
	srv.Lock()
	defer srv.Unlock()
	for i, loop := range srv.Plain.Loops {
		require.Greater(t, loop.Traffic().Reads, uint64(each/10), "loop %d has its share of the connections", i)
	}
}

func TestLoopsWakeEachOther(t *testing.T) {
	srv := loopsServer(t, 2)
	one, other := dialLoop(t, srv), dialLoop(t, srv) // on different loops
	require.Equal(t, "+PONG\r\n", one.ask("PING", 1))
	require.Equal(t, "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", other.ask("SUBSCRIBE c", 6))
	waiter := dialLoop(t, srv)
	for range 100 {
		require.Equal(t, ":1\r\n", one.ask("PUBLISH c m", 1))
		require.Equal(t, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n", servertest.ReadLines(t, other.r, 7))
		waiter.send("BLPOP l 0")
		for !strings.Contains(one.ask("CLIENT LIST ID 3", 3), "flags=b") {
		}
		require.Equal(t, ":1\r\n", one.ask("RPUSH l v", 1))
		require.Equal(t, "*2\r\n$1\r\nl\r\n$1\r\nv\r\n", servertest.ReadLines(t, waiter.r, 5))
	}
	other.Close()
	for one.ask("PUBLISH c m", 1) != ":0\r\n" { // a loop that loses a client tells nobody
	}
}

func TestLoopsAnswerWhileAScriptIsBusy(t *testing.T) {
	srv := loopsServer(t, 2)
	one, other := dialLoop(t, srv), dialLoop(t, srv)
	require.Equal(t, "+OK\r\n", one.ask("CONFIG SET busy-reply-threshold 1", 1))
	one.send("EVAL 'while true do end' 0")
	for !strings.HasPrefix(other.ask("GET k", 1), "-BUSY") {
	}
	require.Equal(t, "+OK\r\n", other.ask("SCRIPT KILL", 1))
	require.Contains(t, servertest.ReadLines(t, one.r, 1), "Script killed by user")
	require.Equal(t, "$-1\r\n", other.ask("GET k", 1))
}

// slowLoad has clients send scripts of so many steps until stop is called. number asks, as a client of its own, how many have run; each client
// has been seen to be slow.
func slowLoad(t *testing.T, srv *server.Server, clients, steps int) (number func() int, stop func()) {
	c := dialLoop(t, srv)
	c.ask("SET n 0", 1)
	var all sync.WaitGroup
	done := make(chan struct{})
	for range clients {
		slow := dialLoop(t, srv)
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					slow.ask(fmt.Sprintf("EVAL \"redis.call('INCR', 'n') for i = 1, %d do end return 1\" 0", steps), 1)
				}
			}
		})
	}
	number = func() (n int) {
		reply := c.ask("GET n", 2)
		_, err := fmt.Sscanf(reply, "$%d\n%d", new(int), &n)
		require.NoError(t, err, reply)
		return n
	}
	stop = sync.OnceFunc(func() {
		close(done)
		all.Wait()
	})
	t.Cleanup(stop) // before the connections are closed, or a test that fails would be said to fail for that
	for number() < 2*clients {
	}
	return number, stop
}

// TestSlowClientsComeLast: however many clients send commands that take long, the others wait for about one such command each time.
func TestSlowClientsComeLast(t *testing.T) {
	const slowClients, looks, between = 12, 15, 3
	srv := loopsServer(t, 1)
	number, stop := slowLoad(t, srv, slowClients, 400000)
	before, most := number(), 0
	for range looks {
		now := number()
		most, before = max(most, now-before), now
	}
	stop()
	require.LessOrEqual(t, most, between, "slow commands between two others")
}

// TestNewcomersComeLast: clients of whom nothing is known but that they have authenticated come after one that is known to be quick, however
// many come at once and before it.
func TestNewcomersComeLast(t *testing.T) {
	const newcomers, atMost = 20, 4
	srv := loopsServer(t, 1)
	quick, busy := dialLoop(t, srv), dialLoop(t, srv)
	busy.ask("SET n 0", 1)
	quick.ask("GET n", 2)
	slow := "EVAL \"redis.call('INCR', 'n') for i = 1, %d do end return 1\" 0"
	var all []*loopClient
	for range newcomers {
		c := dialLoop(t, srv)
		c.ask("AUTH nothing", 1)
		all = append(all, c)
	}
	busy.send(fmt.Sprintf(slow, 4_000_000)) // meanwhile the others come
	time.Sleep(10 * time.Millisecond)
	for _, c := range all {
		c.send(fmt.Sprintf(slow, 400_000))
	}
	var length, before int
	_, err := fmt.Sscanf(quick.ask("GET n", 2), "$%d\n%d", &length, &before)
	require.NoError(t, err)
	require.LessOrEqual(t, before, atMost, "commands before it")
}

// TestSlowPipelinesTakeTurns: clients that each send many commands at once which take long have their turns one after the other.
func TestSlowPipelinesTakeTurns(t *testing.T) {
	const clients, each = 6, 10
	srv := loopsServer(t, 1)
	var all sync.WaitGroup
	for i := range clients {
		c := dialLoop(t, srv)
		all.Go(func() {
			line := fmt.Sprintf("EVAL \"redis.call('RPUSH', 'order', '%d') for i = 1, 400000 do end return 1\" 0\r\n", i)
			c.ask(strings.TrimSuffix(strings.Repeat(line, each), "\r\n"), each)
		})
	}
	all.Wait()
	c := dialLoop(t, srv)
	order := strings.Fields(c.ask("LRANGE order 0 -1", 1+2*clients*each))
	turns := map[string]int{}
	for i := range clients * each / 2 {
		turns[order[2+2*i]]++
	}
	require.Len(t, turns, clients, "%v", turns)
	for _, n := range turns {
		require.GreaterOrEqual(t, n, 2, "%v", turns)
	}
}

// TestSlowClientsPause: after a long command, others come again and again before the next one, however many clients send such commands
// at once.
func TestSlowClientsPause(t *testing.T) {
	const slowClients, long, least = 6, 12, 3
	srv := loopsServer(t, 1)
	number, stop := slowLoad(t, srv, slowClients, 800000)
	hurried, looks, before := 0, least, number()
	for end := before + long; before < end; looks++ {
		if now := number(); now > before {
			if looks < least {
				hurried++
			}
			looks, before = 0, now
		}
	}
	stop()
	require.Less(t, hurried, long/2, "long commands that came at once after another")
}
