package netpoll

import (
	"context"
	"errors"
	"net"
	"time"

	"headgate/server/resp"
)

// Inner is a client's connection within the process. No socket and no goroutine stands for it: the goroutine that calls Do runs the
// commands itself. Its client is judged, counted and listed like any other. It is not safe for concurrent use.
type Inner struct {
	conn    *Conn
	handler Handler
	worker  Worker
	batch   []*Conn
	pool    resp.Pool
	woken   chan struct{} // another goroutine has left a reply or a mark
	replies []byte
}

// ErrInnerClosed is what Do returns once the server has closed the connection.
var ErrInnerClosed = errors.New("the server has closed the connection")

// NewInner returns a connection whose client is listed under these addresses. The caller closes it.
func NewInner(h Handler, remote, local string) *Inner {
	i := &Inner{handler: h, worker: h.NewWorker(), woken: make(chan struct{}, 1)}
	i.conn = &Conn{FD: -1, front: i, Remote: remote, Local: local}
	i.batch, i.pool.Buffers = []*Conn{i.conn}, h.Buffers()
	i.conn.Out.SetBuffers(h.Buffers())
	i.worker.Opened(i.conn)
	return i
}

// Do runs a request's commands and returns their replies as soon as whole reports that nothing is missing. The replies are valid until the next
// call. Commands may be answered later, by other servers or after a wait; then Do waits, but no longer than ctx allows. After an error the
// connection must be closed: what was asked may have been done.
func (i *Inner) Do(ctx context.Context, request []byte, whole func(replies []byte) bool) ([]byte, error) {
	i.replies = i.replies[:0]
	i.give(request)
	for run := true; ; {
		if run {
			i.run()
		}
		closed, resumed := i.take()
		switch {
		case whole(i.replies):
			return i.replies, nil
		case closed:
			return i.replies, ErrInnerClosed
		case resumed:
			run = true
			continue
		}
		select {
		case <-i.woken:
		case <-ctx.Done():
			return i.replies, ctx.Err()
		}
		run = false
	}
}

// Open reports whether the server has not closed the connection so far. Whoever closes it wakes it up: the lock is only needed after that.
func (i *Inner) Open() bool {
	select {
	case <-i.woken:
	default:
		return true
	}
	i.handler.Lock()
	defer i.handler.Unlock()
	return !i.conn.Closing()
}

// give puts a request into the connection's input.
func (i *Inner) give(request []byte) {
	for len(request) > 0 {
		n := copy(i.conn.In.Space(&i.pool), request)
		i.conn.In.Received(n)
		request = request[n:]
	}
}

// run has the commands run that may run now.
func (i *Inner) run() {
	i.conn.goOn()
	for more := true; more; more = i.conn.TakePostponed() && !i.conn.rests {
		i.worker.Batch(i.batch)
	}
	i.conn.In.Compact(&i.pool)
}

// take moves replies out of the connection, and readies it for the next ones. It reports whether the connection is closed, and whether its commands
// may go on.
func (i *Inner) take() (closed, resumed bool) {
	c := i.conn
	i.handler.Lock()
	c.stage(&i.pool)
	c.prepare(&i.pool)
	closed, resumed, c.resumed = c.dead.Load() || c.closing, c.resumed, false
	i.handler.Unlock()
	i.replies = append(i.replies, c.out...)
	c.release(&i.pool)
	return closed, resumed
}

// Close forgets the client. What it waits for is not waited for any more.
func (i *Inner) Close() {
	i.worker.Closed(i.conn)
	i.handler.Lock()
	i.conn.free(&i.pool, &i.pool)
	i.handler.Unlock()
	i.pool.Drain()
}

// wake implements front.
func (i *Inner) wake(*Conn) {
	select {
	case i.woken <- struct{}{}:
	default:
	}
}

// yield implements front. Others have goroutines of their own, so they only need some time.
func (i *Inner) yield(*Conn) { time.Sleep(yieldPause) }

// direct implements front.
func (i *Inner) direct(*Conn) (net.Conn, error) { return nil, errNoSocket }
