package web

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// newServer returns a server with a page of each kind, which answer with their paths.
func newServer(o Options) *Server {
	o.Log = slog.New(slog.DiscardHandler)
	if o.Credentials == nil {
		o.Credentials = func(Access) (string, string) { return "", "" }
	}
	if o.Refuses == nil {
		o.Refuses = func(netip.Addr) string { return "" }
	}
	s := New(o)
	for path, access := range map[string]Access{"/open": Open, "/guarded": Guarded, "/private": Private} {
		s.Page(path, access, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	}
	return s
}

// listen has a server serve on a free port of this machine.
func listen(t *testing.T, s *Server) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.Serve(ln)
	t.Cleanup(s.Close)
	return ln.Addr().String()
}

func TestRequests(t *testing.T) {
	s := newServer(Options{})
	for _, tt := range []struct {
		method, target, body string
		status               int
	}{
		{"GET", "/open", "", 200}, {"HEAD", "/open", "", 200}, {"GET", "/guarded?x=1", "", 200}, {"GET", "/private", "", 200},
		{"GET", "/", "", 404}, {"GET", "/open/", "", 404}, {"GET", "//open", "", 404}, {"GET", "/debug/pprof/", "", 404},
		{"POST", "/open", "", 405}, {"PUT", "/open", "", 405}, {"DELETE", "/open", "", 405}, {"OPTIONS", "/open", "", 405},
		{"TRACE", "/open", "", 405}, {"CONNECT", "/open", "", 405}, {"get", "/open", "", 405}, {"POST", "/nowhere", "x", 405},
		{"GET", "/open", "body", 413},
	} {
		t.Run(tt.method+" "+tt.target, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(tt.method, tt.target, strings.NewReader(tt.body))
			r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5"
			s.ServeHTTP(w, r)
			require.Equal(t, tt.status, w.Code)
			for _, h := range headers {
				require.Equal(t, h[1], w.Header().Get(h[0]))
			}
			require.Equal(t, tt.status == 405, w.Header().Get("Allow") != "")
		})
	}
}

func TestAccess(t *testing.T) {
	const user, password = "prometheus", "s3cret"
	for _, tt := range []struct {
		name, path     string
		set            string // the password that is asked for
		user, password string
		host, peer     string
		status         int
	}{
		{name: "health needs nothing", path: "/open", set: password, status: 200},
		{name: "none is asked for", path: "/guarded", status: 200},
		{name: "none is given", path: "/guarded", set: password, status: 401},
		{name: "a wrong one", path: "/guarded", set: password, user: user, password: "s3cre", status: 401},
		{name: "a wrong user", path: "/guarded", set: password, user: "Prometheus", password: password, status: 401},
		{name: "the right one", path: "/guarded", set: password, user: user, password: password, status: 200},
		{name: "private, the right one from anywhere", path: "/private", set: password, user: user, password: password, peer: "192.0.2.1:5", host: "a.example", status: 200},
		{name: "private, a wrong one", path: "/private", set: password, user: user, status: 401},
		{name: "private, from here", path: "/private", status: 200},
		{name: "private, from here by IPv6", path: "/private", peer: "[::1]:5", host: "[::1]:9121", status: 200},
		{name: "private, from here by IPv4 within IPv6", path: "/private", peer: "[::ffff:127.0.0.1]:5", status: 200},
		{name: "private, from elsewhere", path: "/private", peer: "192.0.2.1:5", status: 403},
		{name: "private, under a name that somebody may have pointed here", path: "/private", host: "attacker.example:9121", status: 403},
		{name: "private, under a local name", path: "/private", host: "headgate:9121", status: 200},
		{name: "private, under localhost", path: "/private", host: "page.localhost", status: 200},
		{name: "guarded, under any name", path: "/guarded", host: "a.example", peer: "192.0.2.1:5", status: 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(Options{
				Credentials: func(Access) (string, string) { return user, tt.set },
				Refuses: func(peer netip.Addr) string {
					if peer.IsLoopback() {
						return ""
					}
					return "not from there"
				},
			})
			r := httptest.NewRequest("GET", tt.path, nil)
			r.RemoteAddr, r.Host = "127.0.0.1:5", "127.0.0.1:9121"
			if tt.peer != "" {
				r.RemoteAddr = tt.peer
			}
			if tt.host != "" {
				r.Host = tt.host
			}
			if tt.user != "" {
				r.SetBasicAuth(tt.user, tt.password)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			require.Equal(t, tt.status, w.Code, w.Body.String())
			require.Equal(t, tt.status == 401, w.Header().Get("WWW-Authenticate") != "")
		})
	}
}

func TestHeadersAreBounded(t *testing.T) {
	conn, err := net.Dial("tcp", listen(t, newServer(Options{})))
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET /open HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("x", 2*maxHeader))
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer reply.Body.Close()
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, reply.StatusCode)
}

// dial opens a connection that ends with the test.
func dial(t *testing.T, addr string) net.Conn {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return conn
}

// ask asks for a page over a connection and returns the status of the answer.
func ask(conn net.Conn, path string) (status int, err error) {
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return 0, err
	}
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, reply.Body)
	return reply.StatusCode, err
}

// TestIdleConnectionsGiveWay: there are never more than MaxConns, a newcomer is answered however many there are, and the one that has
// waited longest has gone for it.
func TestIdleConnectionsGiveWay(t *testing.T) {
	s := newServer(Options{})
	addr := listen(t, s)
	awaitConns := func(waiting int) {
		require.Eventually(t, func() bool {
			s.conns.mu.Lock()
			defer s.conns.mu.Unlock()
			return s.conns.waiting.length == waiting && s.conns.answering.length == 0
		}, time.Minute, 100*time.Microsecond)
	}
	conns := make([]net.Conn, MaxConns+5)
	for i := range conns {
		conns[i] = dial(t, addr)
		status, err := ask(conns[i], "/guarded")
		require.NoError(t, err, i)
		require.Equal(t, 200, status)
		awaitConns(min(i+1, MaxConns))
	}
	for i, conn := range conns[:5] {
		_, err := conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, i)
	}
	for _, conn := range conns[5:] { // the others are still there
		status, err := ask(conn, "/guarded")
		require.NoError(t, err)
		require.Equal(t, 200, status)
	}
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
	awaitConns(0) // none is counted that has gone
}

// TestProbesHaveRoomOfTheirOwn: while as many pages are made as may be, no further is, and probes are answered.
func TestProbesHaveRoomOfTheirOwn(t *testing.T) {
	s := newServer(Options{})
	begun, goOn := make(chan struct{}), make(chan struct{})
	s.Page("/long", Guarded, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-goOn
	}))
	addr := listen(t, s)
	results := make(chan error)
	for range maxAnswers {
		conn := dial(t, addr)
		go func() {
			status, err := ask(conn, "/long")
			if err == nil && status != 200 {
				err = fmt.Errorf("status %d", status)
			}
			results <- err
		}()
		<-begun
	}
	for range 2 * MaxConns { // on connections that stay open behind them
		status, err := ask(dial(t, addr), "/open")
		require.NoError(t, err)
		require.Equal(t, 200, status)
	}
	for _, path := range []string{"/long", "/guarded", "/private"} {
		status, err := ask(dial(t, addr), path)
		require.NoError(t, err)
		require.Equal(t, 503, status, path)
	}
	close(goOn)
	for range maxAnswers {
		require.NoError(t, <-results, "nobody who was being answered had to give way")
	}
	status, err := ask(dial(t, addr), "/guarded")
	require.NoError(t, err)
	require.Equal(t, 200, status)
}

// TestPipelinedProbes: of many probes in one piece one is answered, so that a peer who reads no answers keeps no connection busy.
func TestPipelinedProbes(t *testing.T) {
	conn := dial(t, listen(t, newServer(Options{})))
	_, err := io.WriteString(conn, strings.Repeat("GET /open HTTP/1.1\r\nHost: x\r\n\r\n", 20))
	require.NoError(t, err)
	answers, _ := io.ReadAll(conn) // up to a reset, as there is input that nobody reads
	require.Equal(t, 1, strings.Count(string(answers), "HTTP/1.1"))
}

// pipes is a listener whose connections are pipes, so that time can be made up.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestPeersThatWait: a connection is closed ten seconds after its last answer, five seconds after it came if it asks for nothing, and as
// long after that if its request does not arrive whole, however busily it is sent.
func TestPeersThatWait(t *testing.T) {
	for name, tt := range map[string]struct {
		request string
		drip    string // sent again and again
		limit   time.Duration
	}{
		"idle":   {"GET /guarded HTTP/1.1\r\nHost: x\r\n\r\n", "", idleTimeout},
		"silent": {"", "", headerTimeout},
		"half":   {"GET /open HTT", "", headerTimeout},
		"drip":   {"GET /open HTTP/1.1\r\n", "X: y\r\n", headerTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(Options{})
				listener := make(pipes)
				s.Serve(listener)
				ours, theirs := net.Pipe()
				listener <- theirs
				began := time.Now()
				var sending sync.WaitGroup
				sending.Go(func() {
					_, _ = io.WriteString(ours, tt.request)
					for tt.drip != "" {
						time.Sleep(100 * time.Millisecond)
						if _, err := io.WriteString(ours, tt.drip); err != nil {
							return
						}
					}
				})
				_, _ = io.Copy(io.Discard, ours) // until it is closed
				require.Equal(t, tt.limit, time.Since(began).Truncate(time.Second))
				sending.Wait()
				close(listener)
				s.Close()
			})
		})
	}
}
