package harness

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy passes connections on to a server, and cuts them when a test asks for that. Its methods are safe for concurrent use.
type Proxy struct {
	Port int

	target   string
	listener net.Listener
	mu       sync.Mutex
	open     map[net.Conn]bool
	limit    int64 // bytes that a new connection may bring from the server before it is cut; below 0: any number
	refusing bool
	passed   int // connections so far
}

// StartProxy listens on a free loopback port, until the test ends, and passes connections on to host:port.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{Port: listener.Addr().(*net.TCPAddr).Port, target: target, listener: listener, open: map[net.Conn]bool{}, limit: -1}
	go p.accept()
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
	})
	return p
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		limit, refusing := p.limit, p.refusing
		p.open[near], p.open[far] = true, true
		p.passed++
		p.mu.Unlock()
		if refusing {
			p.forget(near, far)
			continue
		}
		go p.pass(far, near, -1)
		go p.pass(near, far, limit)
	}
}

// pass copies what one side sends to the other, up to a limit, and then closes both.
func (p *Proxy) pass(to, from net.Conn, limit int64) {
	if limit < 0 {
		_, _ = io.Copy(to, from)
	} else {
		_, _ = io.CopyN(to, from, limit)
	}
	p.forget(to, from)
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.open, c)
	}
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

// Limit has connections that come from now on be cut after so many bytes from the server; below 0 they are not.
func (p *Proxy) Limit(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = bytes
}

// Refuse has new connections closed at once, or no longer.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = refuse
}

// Connections is how many there have been.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}
