package web

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
)

// Conns are the connections of a server that are open, so many at most. Whoever has sent no request, half a request, or nothing since the last
// answer is of no use to anybody and gives way to a newcomer, so that connections that are merely held keep no probe away.
type Conns struct {
	max, kept int
	atOnce    int    // bytes that are read of one in a turn
	crowded   func() // is called before somebody gives way, if it is there
	turns     turns
	present   bool // only those are answered who have not hung up

	mu        sync.Mutex
	moves     uint64 // counts, so that the places in two queues can be compared
	fresh     queue  // those that have never sent a request; the one that has waited longest is in front
	waiting   queue  // those that have, and wait for the next one to arrive whole; the same
	answering queue  // in the order in which their requests came
}

// RequestBytes is what NewConns is given for connections on which one request comes after another.
const RequestBytes = 1 << 10

// NewConns returns a count of at most max connections. Of those that have sent requests, kept are not closed for the sake of those that never have.
// What arrives is dealt with in turns, of so many bytes of one connection at most.
func NewConns(max, kept, atOnce int) *Conns { return &Conns{max: max, kept: kept, atOnce: atOnce} }

// OnlyPresent has what has arrived be forgotten when it is its turn and the peer has hung up meanwhile: for peers that never close one side alone. To
// be called before the first connection.
func (a *Conns) OnlyPresent() { a.present = true }

// conn is a connection that is counted until it is closed.
type conn struct {
	net.Conn
	all           *Conns
	in            *queue // nil: it has been closed
	before, after *conn  // in that queue
	moved         uint64 // what Conns.moves was then
	requests      int    // that are being answered
	hungUp        func() bool
}

// queue is a list of connections that go in behind and out anywhere. Each is in one at most, so that moving one, as each request does twice,
// allocates nothing.
type queue struct {
	front, back *conn
	length      int
}

func (q *queue) add(c *conn) {
	c.in, c.before, c.after = q, q.back, nil
	if q.back != nil {
		q.back.after = c
	} else {
		q.front = c
	}
	q.back = c
	q.length++
}

func (q *queue) remove(c *conn) {
	if c.before != nil {
		c.before.after = c.after
	} else {
		q.front = c.after
	}
	if c.after != nil {
		c.after.before = c.before
	} else {
		q.back = c.before
	}
	c.in, c.before, c.after = nil, nil, nil
	q.length--
}

// add counts a new connection and returns the one that has to go for it, if one has.
func (a *Conns) add(c net.Conn) (added, gone *conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open() >= a.max {
		gone = a.leastUseful()
		gone.move(nil)
	}
	added = &conn{Conn: c, all: a, hungUp: hangUps(c)}
	added.move(&a.fresh)
	return added, gone
}

// open is how many connections there are. The caller holds mu.
func (a *Conns) open() int { return a.fresh.length + a.waiting.length + a.answering.length }

// full reports whether somebody has to give way for a newcomer.
func (a *Conns) full() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open() >= a.max
}

const (
	// looksAtOnce is of how many connections it is looked for one newcomer whether their peers have gone.
	looksAtOnce = 64
	// closedAtOnce is how many of them are closed: each may end much that is under way.
	closedAtOnce = 4
	// waitingShare is how many times as many connections as may be open may wait for their turn: some have been closed meanwhile.
	waitingShare = 2
)

// closeHungUp closes connections whose peers have gone, if it finds some. What these have sent may wait for its turn, and until then their places
// would be taken, and newcomers be let in for others who are still there. It looks from any connection on.
func (a *Conns) closeHungUp() {
	a.mu.Lock()
	var gone []*conn
	before, looks := rand.IntN(a.open()+1), 0
	for _, q := range []*queue{&a.fresh, &a.waiting, &a.answering, &a.fresh, &a.waiting, &a.answering} {
		for c := q.front; c != nil && looks < looksAtOnce && len(gone) < closedAtOnce; c = c.after {
			if before--; before >= 0 {
				continue
			}
			if looks++; c.hungUp() {
				gone = append(gone, c)
			}
		}
	}
	a.mu.Unlock()
	for _, c := range gone {
		_ = c.Close()
	}
}

// never is hungUp of a connection of which that is not known.
func never() bool { return false }

// leastUseful is the connection that is to give way. There is one.
func (a *Conns) leastUseful() *conn {
	fresh, waiting := a.fresh.front, a.waiting.front
	switch {
	case waiting == nil && fresh == nil:
		return a.answering.front
	case waiting == nil:
		return fresh
	case fresh != nil && (a.waiting.length+a.answering.length <= a.kept || fresh.moved < waiting.moved):
		return fresh
	}
	return waiting
}

// Note is what http.Server.ConnState is to be: it is told what a connection does. It is StateActive from when a request has arrived whole until it is answered.
func (a *Conns) Note(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateActive:
		a.Begin(c)
	case http.StateIdle:
		a.End(c)
	}
}

// Begin notes that a request of a connection is being answered, one that the listener has accepted. There may be several at a time.
func (a *Conns) Begin(of net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := of.(*conn)
	if c.requests++; c.requests == 1 && c.in != nil {
		c.move(&a.answering)
	}
}

// End notes that a request has been answered.
func (a *Conns) End(of net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := of.(*conn)
	if c.requests--; c.requests == 0 && c.in != nil {
		c.move(&a.waiting)
	}
}

// move puts a connection at the end of a queue, or takes it out of all. The caller holds mu.
func (c *conn) move(to *queue) {
	if c.in != nil {
		c.in.remove(c)
	}
	if to != nil {
		c.all.moves++
		c.moved = c.all.moves
		to.add(c)
	}
}

// Read implements net.Conn. What has arrived waits for its turn, and so does an end: of a crowd that hangs up at once, each is work for several
// goroutines. A deadline does not: package http ends a read by one in each request.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), c.all.atOnce)])
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		c.all.turns.next()
	}
	if n > 0 && c.all.present && c.hungUp() {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn. A connection to which nothing can be written is closed: what its peer has sent before it went is of no use any more.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.all.mu.Lock()
	c.move(nil)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// Listener returns a listener that counts what it accepts.
func (a *Conns) Listener(ln net.Listener) net.Listener { return &roomy{ln, a} }

// roomy is a listener that has room for every newcomer.
type roomy struct {
	net.Listener
	conns *Conns
}

// Accept implements net.Listener. Before a newcomer may cost somebody the place, what has arrived has its turn: so, beside a peer that
// opens and drops 28,000 connections a second, 197 of 200 probes are answered, and else 152.
func (l *roomy) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.conns.turns.below(l.conns.max * waitingShare)
	if l.conns.full() {
		l.conns.closeHungUp()
	}
	if l.conns.crowded != nil && l.conns.full() {
		l.conns.crowded()
	}
	runtime.Gosched()
	added, gone := l.conns.add(accepted)
	if gone != nil {
		_ = gone.Close() // nobody is told: that would take time
	}
	return added, nil
}
