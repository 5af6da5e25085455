package servertest

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
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/netpoll"

	"github.com/stretchr/testify/require"
)

// Session is a connection whose replies are read as text, line ends as spaces.
type Session struct {
	t    *testing.T
	Conn net.Conn
	R    *bufio.Reader
}

func (p *PipeServer) Session() *Session {
	conn, r := p.Dial()
	return &Session{p.t, conn, r}
}

func (s *Session) Send(text string) {
	s.t.Helper()
	_, err := io.WriteString(s.Conn, strings.ReplaceAll(text, "|", "\r\n")+"\r\n")
	require.NoError(s.t, err)
}

// Want reads as many lines as text has, and compares.
func (s *Session) Want(text string) {
	s.t.Helper()
	got := ReadLines(s.t, s.R, strings.Count(text, " ")+1)
	require.Equal(s.t, text, strings.TrimSpace(strings.ReplaceAll(got, "\r\n", " ")))
}

// AwaitBlocked returns when so many clients are blocked.
func (p *PipeServer) AwaitBlocked(n int) {
	require.Eventually(p.t, func() bool {
		p.Srv.Lock()
		defer p.Srv.Unlock()
		return p.Srv.Blocking.Clients == n
	}, 10*time.Second, time.Millisecond)
}

func (p *PipeServer) RequireIdle() {
	p.AwaitBlocked(0)
	p.Srv.Lock()
	defer p.Srv.Unlock()
	require.Zero(p.t, p.Srv.Blocking.Queues.Len())
	require.Empty(p.t, p.Srv.Blocking.Timeouts)
	require.False(p.t, p.Srv.Gate.Has(command.GateHolds))
	require.Nil(p.t, p.Srv.Keys.NextReady())
}

// PipeServer serves connections that are pairs of pipes, as every connection is served that has no descriptor.
type PipeServer struct {
	t     *testing.T
	Srv   *server.Server
	Conns sync.WaitGroup
}

func NewPipeServer(t *testing.T) *PipeServer {
	p := &PipeServer{t: t, Srv: server.New(config.NewLive(Unsaved()), server.Options{})}
	stop := make(chan struct{})
	var background sync.WaitGroup
	background.Go(func() { // what a loop does between batches
		w := p.Srv.NewWorker()
		for {
			select {
			case <-stop:
				return
			case <-time.After(min(w.Tick(), 5*time.Millisecond)):
			}
		}
	})
	t.Cleanup(func() {
		p.Conns.Wait()
		close(stop)
		background.Wait()
		require.Empty(t, p.Srv.Clients.List, "every client is forgotten when it is gone")
		p.Srv.Keys.Close()
	})
	return p
}

// Dial returns the client's end of a new connection; the test closes it.
func (p *PipeServer) Dial() (net.Conn, *bufio.Reader) {
	client, server := net.Pipe()
	p.Conns.Go(func() { netpoll.ServeConn(p.Srv, server) })
	p.t.Cleanup(func() { client.Close() })
	require.NoError(p.t, client.SetDeadline(time.Now().Add(20*time.Second)))
	return client, bufio.NewReader(client)
}

func ReadLines(t *testing.T, r *bufio.Reader, n int) string {
	t.Helper()
	var all strings.Builder
	for range n {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		all.WriteString(line)
	}
	return all.String()
}

func TestPipeCommandsAndQuit(t *testing.T) {
	p := NewPipeServer(t)
	conn, r := p.Dial()
	_, err := conn.Write([]byte("PING\r\nSET k 1\r\nINCR k\r\n*2\r\n$3\r\nGE"))
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n+OK\r\n:2\r\n", ReadLines(t, r, 3))
	_, err = conn.Write([]byte("T\r\n$1\r\nk\r\nQUIT\r\nPING\r\n"))
	require.NoError(t, err)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "$1\r\n2\r\n+OK\r\n", string(rest))
}

func TestPipeProtocolErrorCloses(t *testing.T) {
	p := NewPipeServer(t)
	conn, r := p.Dial()
	_, err := conn.Write([]byte("PING\r\n*1\r\n!\r\n"))
	require.NoError(t, err)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n", string(rest))
}

// TestPipePauseHoldsBack: what a pause holds back runs when it ends, without a further byte from the client.
func TestPipePauseHoldsBack(t *testing.T) {
	p := NewPipeServer(t)
	first, fr := p.Dial()
	second, sr := p.Dial()
	_, err := first.Write([]byte("CLIENT PAUSE 60000 WRITE\r\n"))
	require.NoError(t, err)
	ReadLines(t, fr, 1)
	_, err = second.Write([]byte("PING\r\nINCR n\r\nINCR n\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", ReadLines(t, sr, 1))
	_, err = first.Write([]byte("GET n\r\nCLIENT UNPAUSE\r\n"))
	require.NoError(t, err)
	require.Equal(t, "$-1\r\n+OK\r\n", ReadLines(t, fr, 2))
	require.Equal(t, ":1\r\n:2\r\n", ReadLines(t, sr, 2))
}

// TestPipeKill: one connection closes another that waits in a read.
func TestPipeKill(t *testing.T) {
	p := NewPipeServer(t)
	victim, vr := p.Dial()
	_, err := victim.Write([]byte("CLIENT ID\r\n"))
	require.NoError(t, err)
	id := strings.Trim(ReadLines(t, vr, 1), ":\r\n")
	killer, kr := p.Dial()
	_, err = fmt.Fprintf(killer, "CLIENT KILL ID %s\r\n", id)
	require.NoError(t, err)
	require.Equal(t, ":1\r\n", ReadLines(t, kr, 1))
	_, err = vr.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

// TestPipesShareOneExecutor: increments of many connections at once are all counted, each once.
func TestPipesShareOneExecutor(t *testing.T) {
	const conns, each = 20, 200
	p := NewPipeServer(t)
	var group sync.WaitGroup
	for range conns {
		conn, r := p.Dial()
		group.Go(func() {
			for range each {
				if _, err := conn.Write([]byte("INCR shared\r\n")); err != nil {
					t.Error(err)
					return
				}
				if _, err := r.ReadString('\n'); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	conn, r := p.Dial()
	_, err := conn.Write([]byte("GET shared\r\n"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("$4\r\n%d\r\n", conns*each), ReadLines(t, r, 2))
}

// CronHalted has background work take nothing out of the tables for the test's length, but for what it asks for itself.
func (p *PipeServer) CronHalted() {
	p.Srv.Lock()
	defer p.Srv.Unlock()
	p.Srv.CronAt.Remains = 1 << 62
	p.Srv.Remains.Spared = 0
}

// pipeClient is a connection to a pipeServer that speaks in lines.
type pipeClient struct {
	t    *testing.T
	Conn net.Conn
	*bufio.Reader
}

func (p *PipeServer) Client() *pipeClient {
	conn, r := p.Dial()
	return &pipeClient{p.t, conn, r}
}

func (c *pipeClient) Send(words ...string) {
	c.t.Helper()
	_, err := c.Conn.Write(EncodeCommand(words...))
	require.NoError(c.t, err)
}

func (c *pipeClient) Line() string {
	c.t.Helper()
	return strings.TrimSuffix(ReadLines(c.t, c.Reader, 1), "\r\n")
}

func (c *pipeClient) Ask(words ...string) string {
	c.t.Helper()
	c.Send(words...)
	return c.Line()
}

// UntilBusy waits for a script to pass busy-reply-threshold.
func (c *pipeClient) UntilBusy() string {
	for {
		if reply := c.Ask("PING"); strings.HasPrefix(reply, "-BUSY ") {
			return reply
		}
		time.Sleep(time.Millisecond)
	}
}
