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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newServer returns a server with a page of each kind, which answer with their paths.
func newServer(o Options) *Server {
	o.Log = slog.New(slog.DiscardHandler)
	if o.Credentials == nil {
		o.Credentials = func() (string, string) { return "", "" }
	}
	if o.Trusts == nil {
		o.Trusts = func(netip.Addr) string { return "" }
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
				Credentials: func() (string, string) { return user, tt.set },
				Trusts: func(peer netip.Addr) string {
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

// TestConnectionsAreBounded: one connection too many is closed, and there is room again when another has gone.
func TestConnectionsAreBounded(t *testing.T) {
	addr := listen(t, newServer(Options{}))
	ask := func(conn net.Conn) error {
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		if _, err := io.WriteString(conn, "GET /open HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return err
		}
		reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil {
			err = reply.Body.Close()
		}
		return err
	}
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	conns := make([]net.Conn, MaxConns)
	for i := range conns {
		conns[i] = dial()
		require.NoError(t, ask(conns[i]))
	}
	require.Error(t, ask(dial()), "one too many")
	require.NoError(t, conns[0].Close())
	require.Eventually(t, func() bool { return ask(dial()) == nil }, 10*time.Second, 10*time.Millisecond)
}

// TestSilentPeers: who says nothing is not waited for. What net/http does with the time limit is its own affair.
func TestSilentPeers(t *testing.T) {
	s := newServer(Options{})
	require.Equal(t, headerTimeout, s.http.ReadHeaderTimeout)
	require.LessOrEqual(t, s.http.ReadHeaderTimeout, 5*time.Second)
	require.NotZero(t, s.http.WriteTimeout)
	require.NotZero(t, s.http.IdleTimeout)
}
