package netpoll

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"headgate/server/resp"
)

// netConn is the front of one connection behind a net.Conn: one goroutine reads and executes, another writes.
type netConn struct {
	conn    net.Conn
	handler Handler
	pool    resp.Pool // the reader's
	spare   resp.Pool // of buffers for replies; the Handler's lock guards it
	wakeups chan struct{}
	taken   chan struct{} // the writer has taken replies
	resumes chan struct{} // the connection is resumed or to be closed
	c       *Conn
	rested  int           // bytes of replies that waited when the reader rested last; the reader's alone
	linger  bool          // everything was sent, and the peer has been told so
	lent    chan struct{} // closed when whoever Direct has given the connection to has closed it; nil: nobody. The Handler's lock guards it
}

// Graceful is what a net.Conn may have to be ended in good order: its peer gets all that was sent to it, even while it goes on
// sending, and a connection that is cut off is not written to.
type Graceful interface {
	CloseWrite() error // tells the peer that nothing more comes
	Abort() error      // closes the connection without a word
}

// lingerTime is how long a connection whose replies are all sent waits for its peer to close it. One that is closed while the peer
// still sends would be reset, and the kernel throws away what was still on its way, in the middle of a reply.
const lingerTime = 500 * time.Millisecond

// ServeConn serves one connection until it ends, and closes it. It is for connections that no descriptor stands for (TLS,
// net.Pipe) and for systems without epoll. nc may be a [Graceful].
func ServeConn(h Handler, nc net.Conn) {
	n := &netConn{conn: nc, handler: h, wakeups: make(chan struct{}, 1), taken: make(chan struct{}, 1), resumes: make(chan struct{}, 1)}
	n.pool.Buffers, n.spare.Buffers = h.Buffers(), h.Buffers()
	n.c = &Conn{FD: -1, front: n, Remote: nc.RemoteAddr().String(), Local: nc.LocalAddr().String()}
	_, n.c.Unix = nc.LocalAddr().(*net.UnixAddr)
	n.c.Out.SetBuffers(h.Buffers())
	w := h.NewWorker()
	w.Opened(n.c)
	written := make(chan struct{})
	go func() {
		defer close(written)
		n.writeReplies()
	}()
	n.wakeup()
	n.readCommands(w)
	h.Lock()
	n.c.closeAfterReply = true
	h.Unlock()
	n.wakeup()
	<-written
	w.Closed(n.c)
	h.Lock()
	n.c.free(&n.pool, &n.spare)
	lent := n.lent
	h.Unlock()
	n.pool.Drain()
	n.spare.Drain()
	if lent != nil {
		<-lent
		abort(nc)
	}
	if n.linger {
		nc.SetReadDeadline(time.Now().Add(lingerTime))
		io.Copy(io.Discard, nc)
		nc.Close()
	}
}

func (n *netConn) readCommands(w Worker) {
	batch := []*Conn{n.c}
	ended := false // nothing more comes
	for {
		var count int
		var err error
		if n.c.unreadRest() || ended {
			<-n.resumes
		} else {
			room := n.c.In.Space(&n.pool)
			if count, err = n.conn.Read(room[:min(len(room), readMax)]); count > 0 {
				n.c.In.Received(count)
			}
		}
		resumed := n.takeResumed()
		if resumed {
			n.c.goOn()
		}
		if n.c.rests && count > 0 {
			n.c.resting.Store(int64(n.c.In.Buffered()))
		}
		switch {
		case n.c.rests && !n.c.unreadRest() && n.c.In.Buffered() > n.c.restMax:
			n.drop()
		case !n.c.rests && (count > 0 || resumed):
			n.run(w, batch)
			n.c.In.Compact(&n.pool)
		}
		closing, awaits := n.isClosing()
		ended = ended || errors.Is(err, io.EOF)
		switch {
		case closing, ended && !awaits:
			return
		case err != nil && !ended && !(resumed && errors.Is(err, os.ErrDeadlineExceeded)):
			return
		}
	}
}

// run has the commands run that have come, a batch's worth at a time: the others may have the lock in between, and replies are sent.
func (n *netConn) run(w Worker, batch []*Conn) {
	for more := true; more; more = n.c.TakePostponed() {
		n.rest()
		w.Batch(batch)
		n.wakeup()
	}
}

// drop has the connection closed at once.
func (n *netConn) drop() {
	n.handler.Lock()
	defer n.handler.Unlock()
	n.c.CloseNow()
}

// prepare gives the connection a buffer for replies, one that the writer has sent if there is one. It returns how many bytes of replies the writer
// has not taken yet.
func (n *netConn) prepare() (unsent int) {
	n.handler.Lock()
	defer n.handler.Unlock()
	n.c.prepare(&n.spare)
	return n.c.Out.Len()
}

// rest readies the connection for replies. It waits until the writer has taken those that there are, for as long as a peer may be waited for, if many
// were added since the last time.
func (n *netConn) rest() {
	select {
	case <-n.taken: // it may have been before
	default:
	}
	behind := n.prepare()
	if n.rested = min(n.rested, behind); behind-n.rested < stallBytes {
		return
	}
	n.rested = behind
	pause := time.NewTimer(stallPause)
	defer pause.Stop()
	select {
	case <-n.taken:
	case <-pause.C:
	}
}

// writeReplies sends until the connection is marked closed and, unless at once, everything is sent. It closes the connection, or has the reader
// end if somebody else still sends.
func (n *netConn) writeReplies() {
	whole := n.sendAll()
	graceful, ok := n.conn.(Graceful)
	switch {
	case n.isLent():
		n.conn.SetReadDeadline(past)
	case whole && ok && graceful.CloseWrite() == nil:
		n.linger = true
		n.conn.SetReadDeadline(time.Now().Add(lingerTime)) // or the reader would wait for ever for a peer that does not close
	default:
		abort(n.conn)
	}
}

// abort closes a connection without a word, if it can be.
func abort(conn net.Conn) {
	if graceful, ok := conn.(Graceful); ok {
		_ = graceful.Abort()
		return
	}
	_ = conn.Close()
}

// isLent reports whether Direct has given the connection to somebody.
func (n *netConn) isLent() bool {
	n.handler.Lock()
	defer n.handler.Unlock()
	return n.lent != nil
}

// sendAll sends what there is until the connection is marked closed, and reports whether everything was sent.
func (n *netConn) sendAll() bool {
	for range n.wakeups {
		for {
			n.handler.Lock()
			if n.c.kept {
				n.handler.Unlock()
				break // the reader wakes us up after its batch
			}
			n.c.release(&n.spare)
			n.c.stage(&n.spare)
			more, end := len(n.c.out) > 0, n.c.dead.Load() || n.c.closing
			n.handler.Unlock()
			select {
			case n.taken <- struct{}{}:
			default:
			}
			if n.c.dead.Load() {
				return false
			}
			if !more {
				if end {
					return true
				}
				break
			}
			if !n.write() {
				return false
			}
		}
	}
	return false
}

// writeMax is how many bytes are written between two times that it is told how many the peer has taken.
const writeMax = 256 << 10

// write sends what the writer has taken, and reports whether the peer has taken all of it.
func (n *netConn) write() bool {
	for rest := n.c.out; ; {
		sent, err := n.conn.Write(rest[:min(len(rest), writeMax)])
		if rest = rest[sent:]; err != nil || len(rest) == 0 {
			return err == nil
		}
		n.handler.Lock()
		n.c.sent = len(n.c.out) - len(rest)
		n.c.staged = len(rest)
		n.handler.Unlock()
	}
}

func (n *netConn) takeResumed() bool {
	n.handler.Lock()
	defer n.handler.Unlock()
	was := n.c.resumed
	n.c.resumed = false
	if was {
		n.conn.SetReadDeadline(time.Time{})
	}
	return was
}

// isClosing reports whether the connection is to be closed, and whether replies are still to come.
func (n *netConn) isClosing() (closing, awaits bool) {
	n.handler.Lock()
	defer n.handler.Unlock()
	return n.c.Closing(), n.c.awaits
}

func (n *netConn) wakeup() {
	select {
	case n.wakeups <- struct{}{}:
	default:
	}
}

// yieldPause is how long a command lets the other fronts have the lock.
const yieldPause = 100 * time.Microsecond

// yield implements front. The other connections have goroutines of their own, so they only need some time.
func (n *netConn) yield(*Conn) { time.Sleep(yieldPause) }

// direct implements front. The caller holds the Handler's lock. The connection is closed when the front has ended and who gets it has closed it.
func (n *netConn) direct(*Conn) (net.Conn, error) {
	n.lent = make(chan struct{})
	return &undivided{Conn: n.conn, closed: sync.OnceFunc(func() { close(n.lent) })}, nil
}

// undivided is a connection that its front closes.
type undivided struct {
	net.Conn
	closed func() // tells the front
}

// past is a deadline that ends what is under way.
var past = time.Unix(1, 0)

// Close implements net.Conn: it ends what is under way.
func (u *undivided) Close() error {
	u.closed()
	return u.SetDeadline(past)
}

// CloseWrite tells the peer that nothing more comes.
func (u *undivided) CloseWrite() error {
	if graceful, ok := u.Conn.(Graceful); ok {
		return graceful.CloseWrite()
	}
	return errors.ErrUnsupported
}

// wake implements front. A resumed reader may sit in Read: an expired deadline gets it out, once. A connection to be closed at once
// may sit in Write as well, when its peer reads nothing.
func (n *netConn) wake(c *Conn) {
	n.wakeup()
	if c.resumed || c.Closing() || !c.awaits {
		select {
		case n.resumes <- struct{}{}:
		default:
		}
	}
	switch {
	case c.resumed, c.closeNow && n.lent != nil: // who has it may still send
		n.conn.SetReadDeadline(past)
	case c.closeNow:
		n.conn.SetDeadline(past)
	}
}
