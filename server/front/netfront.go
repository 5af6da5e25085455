package front

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"headgate/server/config"
	"headgate/server/netpoll"
)

// netDrainTime is how long an ending server waits for replies that are to come, and then lets peers take in their replies.
const netDrainTime = 500 * time.Millisecond

// answerPause is after how long it is looked again whether they have come.
const answerPause = time.Millisecond

// netFront serves connections on goroutines of their own: those of TLS, which only a net.Conn can carry, and on systems without epoll
// all of them. It is safe for concurrent use.
type netFront struct {
	of        *Fronts
	conns     sync.WaitGroup // goroutines that accept or serve
	keepAlive atomic.Int64   // ns; 0 = off
	moved     struct{ bytesIn, bytesOut, reads, writes atomic.Uint64 }
	ending    atomic.Bool
}

func (f *netFront) apply(cfg *config.Config) { f.keepAlive.Store(int64(cfg.TCPKeepalive)) }

// traffic returns what was read from clients and written to them.
func (f *netFront) traffic() netpoll.Traffic {
	m := &f.moved
	return netpoll.Traffic{BytesIn: m.bytesIn.Load(), BytesOut: m.bytesOut.Load(), Reads: m.reads.Load(), Writes: m.writes.Load()}
}

// acceptFrom has begin called for each connection that comes in, until the listener is closed. A failing accept, such as one without
// descriptors, is tried again after a pause and logged once.
func (f *netFront) acceptFrom(ln net.Listener, begin func(net.Conn)) {
	var pause time.Duration
	for {
		conn, err := ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			if pause == 0 {
				f.of.warnOfAccept(err)
			}
			pause = netpoll.AcceptPause(pause)
			time.Sleep(pause)
			continue
		}
		pause = 0
		f.keep(conn)
		begin(conn)
	}
}

// warnOfAccept logs that connections cannot be accepted.
func (f *Fronts) warnOfAccept(err error) {
	f.Logger.Warn("cannot accept connections for now; open ones continue", "err", err)
}

// keep has the kernel probe a silent peer, as tcp-keepalive says.
func (f *netFront) keep(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		// Its peer may be gone already, which reading will show.
		_ = tcp.SetKeepAliveConfig(netpoll.KeepAlive(time.Duration(f.keepAlive.Load())))
	}
}

// serve runs the commands of one connection until it ends.
func (f *netFront) serve(conn net.Conn) {
	if f.ending.Load() {
		conn.Close()
		return
	}
	netpoll.ServeConn(f.of.handlers.Each, &frontConn{conn, f})
}

// end closes the clients that are served on goroutines, once what was read is answered, also what others are to answer, and returns when all are
// gone. Nothing may be accepted any more.
func (f *netFront) end() {
	f.ending.Store(true)
	gone := make(chan struct{})
	go func() {
		f.conns.Wait()
		close(gone)
	}()
	how := (*netpoll.Conn).CloseAfterReply
	answered := func(c *netpoll.Conn) bool { return !c.AwaitsReplies() }
	for begin := time.Now(); f.closeClients(how, answered) && time.Since(begin) < netDrainTime; {
		time.Sleep(answerPause)
	}
	for {
		f.closeClients(how, nil)
		how = (*netpoll.Conn).CloseNow
		select {
		case <-gone:
			return
		case <-time.After(netDrainTime):
		}
	}
}

// closeClients closes those that are served on goroutines and of which a condition holds, if there is one. It reports whether it does not hold of some.
func (f *netFront) closeClients(how func(*netpoll.Conn), condition func(*netpoll.Conn) bool) (left bool) {
	f.of.Lock()
	defer f.of.Unlock()
	for _, cl := range f.of.Clients.List {
		switch {
		case cl.Conn.FD >= 0:
		case condition == nil || condition(cl.Conn):
			how(cl.Conn)
		default:
			left = true
		}
	}
	return left
}

// frontConn counts what goes through a connection, and ends it in good order.
type frontConn struct {
	net.Conn
	front *netFront
}

// Read implements net.Conn.
func (c *frontConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.front.moved.bytesIn.Add(uint64(n))
	c.front.moved.reads.Add(1)
	return n, err
}

// Write implements net.Conn.
func (c *frontConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.front.moved.bytesOut.Add(uint64(n))
	c.front.moved.writes.Add(1)
	return n, err
}

// CloseWrite implements netpoll.Graceful.
func (c *frontConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Abort implements netpoll.Graceful. Closing a TLS connection would send a farewell, and wait for that.
func (c *frontConn) Abort() error {
	if secure, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		return secure.NetConn().Close()
	}
	return c.Close()
}

// setBacklog sets how many connections the kernel may hold for a listener.
func setBacklog(ln net.Listener, backlog int) error {
	raw, ok := ln.(syscall.Conn)
	if !ok || backlog <= 0 {
		return nil
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = control.Control(func(fd uintptr) { failed = listen(fd, backlog) })
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("cannot set tcp-backlog: %w", err)
	}
	return nil
}
