package rls

import (
	"net"
	"sync"
	"sync/atomic"
)

// Connections of gateways are few, and each carries the requests of many clients; a crowd of connections is no gateway's. So the first ones that
// are open at a time may have maxStreams requests under way, and those beyond them few: a request whose answer the peer does not let through takes
// up memory for as long as the connection is there.
const (
	wideConns  = 32
	fewStreams = 64
)

// lane is a listener of connections that another one has accepted.
type lane struct {
	accepted chan net.Conn
	ended    chan struct{}
	end      func()
	addr     net.Addr
}

func newLane(addr net.Addr) *lane {
	l := &lane{accepted: make(chan net.Conn), ended: make(chan struct{}), addr: addr}
	l.end = sync.OnceFunc(func() { close(l.ended) })
	return l
}

// give hands a connection to whoever serves the lane.
func (l *lane) give(c net.Conn) {
	select {
	case l.accepted <- c:
	case <-l.ended:
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (l *lane) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *lane) Close() error {
	l.end()
	return nil
}

// Addr implements net.Listener.
func (l *lane) Addr() net.Addr { return l.addr }

// wideListener gives its own server the connections that may be wide, and the others to the narrow lane.
type wideListener struct {
	net.Listener
	open   *atomic.Int64 // wide connections
	narrow *lane
}

// Accept implements net.Listener.
func (l wideListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= wideConns {
			return wideConn{c, sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		l.narrow.give(c)
	}
}

// wideConn is a wide connection.
type wideConn struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c wideConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
