package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/reference"
	"headgate/server"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// answerTime is for how long a client waits for an answer: much longer than any takes on a loaded machine.
const answerTime = 20 * time.Second

// patient gives the upstream more time than a loaded machine needs.
func patient(cfg *config.Config) {
	cfg.UpstreamTimeout = 10 * time.Second
}

func freePort(t testing.TB) int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// socketOf is the Unix socket of a redis-server.
func socketOf(r *reference.Server) string {
	return r.Flags[slices.Index(r.Flags, "--unixsocket")+1]
}

// startServer runs a server on a free port until the test ends.
func startServer(t testing.TB, edits ...func(*config.Config)) (srv *server.Server, addr string) {
	t.Helper()
	cfg := servertest.Unsaved()
	cfg.Bind, cfg.Port = []string{"127.0.0.1"}, freePort(t)
	for _, edit := range edits {
		edit(cfg)
	}
	ready := make(chan struct{})
	srv = server.New(config.NewLive(cfg), server.Options{Ready: func() { close(ready) }})
	require.NoError(t, srv.Listen())
	srv.Load()
	<-ready
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		srv.Run()
	}()
	t.Cleanup(func() {
		srv.Stop()
		<-ended
		require.Empty(t, srv.Clients.List)
		srv.Keys.Close()
	})
	return srv, fmt.Sprintf("127.0.0.1:%d", cfg.Port)
}

// startGateway runs a gateway to an upstream until the test ends.
func startGateway(t testing.TB, url string, edits ...func(*config.Config)) (*server.Server, *client) {
	t.Helper()
	srv, addr := startServer(t, append([]func(*config.Config){patient, func(cfg *config.Config) { cfg.Upstream = url }}, edits...)...)
	return srv, dial(t, addr)
}

// client is a connection whose replies are texts.
type client struct {
	t    testing.TB
	addr string
	net.Conn
	r *bufio.Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(answerTime)))
	return &client{t, addr, conn, bufio.NewReader(conn)}
}

// send sends commands, each a line.
func (c *client) send(lines ...string) {
	c.t.Helper()
	var all []byte
	for _, line := range lines {
		all = append(all, servertest.EncodeCommand(strings.Fields(line)...)...)
	}
	_, err := c.Write(all)
	require.NoError(c.t, err)
}

// raw reads one reply as it was sent.
func (c *client) raw() string {
	c.t.Helper()
	require.NoError(c.t, c.SetDeadline(time.Now().Add(answerTime)))
	line, err := c.r.ReadString('\n')
	require.NoError(c.t, err)
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line
		}
		body := make([]byte, n+2)
		_, err := io.ReadFull(c.r, body)
		require.NoError(c.t, err)
		return line + string(body)
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return line
	}
	for range n {
		line += c.raw()
	}
	return line
}

// read reads one reply, as servertest.PlainReply has it.
func (c *client) read() string {
	c.t.Helper()
	raw := c.raw()
	if raw[0] == '-' {
		return strings.TrimSpace(raw[1:])
	}
	text, _ := servertest.PlainReply(raw)
	return text
}

// ask sends one command and reads its reply.
func (c *client) ask(line string) string {
	c.t.Helper()
	c.send(line)
	return c.read()
}

// converse makes the calls, one a line, and compares: "call | reply".
func (c *client) converse(lines string) {
	c.t.Helper()
	for line := range strings.Lines(lines) {
		call, want, found := strings.Cut(strings.TrimSpace(line), "|")
		if !found {
			continue
		}
		require.Equal(c.t, strings.TrimSpace(want), c.ask(call), call)
	}
}

// heapInUse is how many bytes are in use by what can be reached.
func heapInUse() int {
	for range 2 { // what pools hold goes with the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// relay stands between a gateway and a server, and may stall.
type relay struct {
	ln   net.Listener
	to   string // a Unix socket, or host:port
	mu   sync.Mutex
	cond *sync.Cond
	hold bool
	ends []net.Conn
}

func startRelay(t testing.TB, to string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{ln: ln, to: to}
	r.cond = sync.NewCond(&r.mu)
	go r.serve()
	t.Cleanup(func() {
		ln.Close()
		r.stall(false)
		r.cut()
	})
	return r
}

func (r *relay) url() string { return "redis://" + r.ln.Addr().String() }

func (r *relay) serve() {
	for {
		in, err := r.ln.Accept()
		if err != nil {
			return
		}
		network := "tcp"
		if strings.HasPrefix(r.to, "/") {
			network = "unix"
		}
		out, err := net.Dial(network, r.to)
		if err != nil {
			in.Close()
			continue
		}
		r.mu.Lock()
		r.ends = append(r.ends, in, out)
		r.mu.Unlock()
		go r.pump(in, out)
		go r.pump(out, in)
	}
}

func (r *relay) pump(from, to net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		for r.hold {
			r.cond.Wait()
		}
		r.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// stall has nothing go through, or everything.
func (r *relay) stall(hold bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hold = hold
	r.cond.Broadcast()
}

// cut ends all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.ends {
		conn.Close()
	}
	r.ends = nil
}

// stateOf is the state of a gateway's upstream.
func stateOf(srv *server.Server) string {
	status := srv.Gateway.Status()
	return status.State()
}
