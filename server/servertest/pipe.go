package servertest

import (
	"bufio"
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

// PipeServer serves connections that are pairs of pipes, as every connection is served that has no descriptor.
type PipeServer struct {
	t     *testing.T
	Srv   *server.Server
	Conns sync.WaitGroup // of the goroutines that serve connections
}

// NewPipeServer starts a server with the usual configuration, and its background work. At the test's end every client must be forgotten.
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

// ReadLines reads n lines, with their ends.
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

// AwaitBlocked returns when so many clients are blocked.
func (p *PipeServer) AwaitBlocked(n int) {
	require.Eventually(p.t, func() bool {
		p.Srv.Lock()
		defer p.Srv.Unlock()
		return p.Srv.Blocking.Clients == n
	}, 10*time.Second, time.Millisecond)
}

// RequireIdle waits until no client is blocked, and requires that nothing is left of those that were.
func (p *PipeServer) RequireIdle() {
	p.AwaitBlocked(0)
	p.Srv.Lock()
	defer p.Srv.Unlock()
	require.Zero(p.t, p.Srv.Keys.AwaitedNames())
	require.Empty(p.t, p.Srv.Blocking.Timeouts)
	require.False(p.t, p.Srv.Gate.Has(command.GateHolds))
	require.Nil(p.t, p.Srv.Keys.NextReady())
}

// CronHalted has background work take nothing out of the tables for the test's length, but for what it asks for itself.
func (p *PipeServer) CronHalted() {
	p.Srv.Lock()
	defer p.Srv.Unlock()
	p.Srv.CronAt.Remains = 1 << 62
	p.Srv.Remains.Spared = 0
}

// Session is a connection that sends inline commands, with | for the end of one, and reads replies as text, line ends as spaces.
type Session struct {
	t    *testing.T
	Conn net.Conn
	R    *bufio.Reader
}

// Session opens a connection that reads replies as text.
func (p *PipeServer) Session() *Session {
	conn, r := p.Dial()
	return &Session{p.t, conn, r}
}

// Send sends inline commands, with | between them.
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

// PipeClient is a connection to a PipeServer whose replies are of one line each.
type PipeClient struct {
	t    *testing.T
	Conn net.Conn
	*bufio.Reader
}

// Client opens a connection whose replies are of one line each.
func (p *PipeServer) Client() *PipeClient {
	conn, r := p.Dial()
	return &PipeClient{p.t, conn, r}
}

// Send sends one command, and waits for no reply.
func (c *PipeClient) Send(words ...string) {
	c.t.Helper()
	_, err := c.Conn.Write(EncodeCommand(words...))
	require.NoError(c.t, err)
}

// Line reads one line, without its end.
func (c *PipeClient) Line() string {
	c.t.Helper()
	return strings.TrimSuffix(ReadLines(c.t, c.Reader, 1), "\r\n")
}

// Ask sends one command and reads one line.
func (c *PipeClient) Ask(words ...string) string {
	c.t.Helper()
	c.Send(words...)
	return c.Line()
}

// UntilBusy waits for a script to pass busy-reply-threshold.
func (c *PipeClient) UntilBusy() string {
	for {
		if reply := c.Ask("PING"); strings.HasPrefix(reply, "-BUSY ") {
			return reply
		}
		time.Sleep(time.Millisecond)
	}
}
