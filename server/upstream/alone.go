package upstream

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// A command that waits at its server keeps all that come behind it on its connection. So it has one for itself until it is answered, and
// connections that have answered are kept for the next such command.

const (
	aloneIdleMax  = 64      // connections of a node that are kept while no command has them
	aloneReplyMax = 1 << 20 // bytes
	aloneReadSize = 512     // bytes of a buffer at first
)

var errTooLate = errors.New("the client has gone")

// SendAlone is Send for a call that may keep its server waiting, until its Deadline, which must be set. It has a connection for itself, and does
// not count as under way: the owner bounds how many there are. Where the server has no room for one more client, the Failure is Full. The call's
// Script is not loaded. end, which may be called at any time, tells the
// server by the connection's end that nobody waits any more; the call fails then, unless it has been answered.
func (u *Upstream) SendAlone(c *Call) (end func()) {
	c.Reply, c.Common, c.Kept, c.Err, c.Node = nil, nil, false, nil, ""
	a := &aloneCall{up: u, call: c}
	u.totals.calls.Add(1)
	go a.run()
	return a.end
}

// aloneCall is a call that has a connection for itself.
type aloneCall struct {
	up   *Upstream
	call *Call // the owner's again once it is answered

	mu    sync.Mutex
	ended bool
	on    *alone // nil: none, or not any more
}

func (a *aloneCall) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.on != nil {
		hangUp(a.on.conn)
	}
}

// takes notes the connection that the call has from now on, nil for none, and reports false if nobody waits for it any more.
func (a *aloneCall) takes(conn *alone) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on = conn
	return !a.ended
}

func (a *aloneCall) run() {
	reply, failure := a.ask()
	var told answers
	told.add(a.call, reply, failure)
	a.up.drained(&told)
}

// ask sends the call, again as long as its server serves nothing at present, and returns the answer.
func (a *aloneCall) ask() (reply []byte, failure *Failure) {
	c, u := a.call, a.up
	for attempt := 0; ; attempt++ {
		f := u.fleet.Load()
		n := f.nodeFor(c.Slot)
		if n == nil {
			return nil, &Failure{Kind: Unreachable, Detail: f.missing()}
		}
		c.Node = n.addr
		reply, failure = a.askNode(n)
		if failure != nil && attempt < attemptsMax && f.ctx.Err() != nil && u.fleet.Load() != f {
			continue // the connections of an earlier configuration are closed: it waits by the new one, and the server has let go of it
		}
		if failure != nil {
			return nil, failure
		}
		switch verdictOf(reply) {
		case demoted, moved:
			f.lookSoon()
		case down, later:
		default:
			return reply, nil
		}
		if attempt == attemptsMax || Now()+int64(pauseMax) > c.Deadline || !a.takes(nil) {
			return nil, n.failure(Unreachable, firstLine(reply))
		}
		time.Sleep(pauseMax)
	}
}

func (a *aloneCall) askNode(n *node) (reply []byte, failure *Failure) {
	if failure := n.resting.Load(); failure != nil {
		return nil, failure
	}
	c := a.call
	key := linkKey{proto: max(c.Proto, 2), db: int(c.DB)}
	if c.User != nil {
		key.user = *c.User
	}
	conn, failure := n.aloneFor(key, c.Deadline)
	if failure != nil {
		return nil, failure
	}
	if !a.takes(conn) {
		n.alones.put(conn)
		return nil, n.failure(Unreachable, errTooLate.Error())
	}
	n.figures.calls.Add(1)
	reply, err := conn.ask(c.Request, c.Deadline)
	waited := a.takes(nil)
	if err == nil && waited {
		n.alones.put(conn)
		return reply, nil
	}
	n.alones.drop(conn) // Whoever gave up has hung up, even if the answer was here already.
	if err == nil {
		return reply, nil
	}
	if !waited {
		err = errTooLate
	}
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		n.figures.timeouts.Add(1)
		n.up.totals.timeouts.Add(1)
		failure = n.failure(Timeout, "")
		failure.After = time.Duration(c.Deadline - c.At)
	case errors.Is(err, errTooLong):
		failure = n.failure(TooLarge, "")
	default:
		n.figures.lost.Add(1)
		n.up.totals.lost.Add(1)
		failure = n.failure(Lost, reason(err))
	}
	return nil, failure
}

// aloneFor returns a connection that no call has, and makes it by a time if there is none.
func (n *node) aloneFor(key linkKey, by int64) (*alone, *Failure) {
	if conn := n.alones.take(key); conn != nil {
		return conn, nil
	}
	if failure := n.alones.refusal(key); failure != nil {
		return nil, failure
	}
	begin := Now()
	made, err := n.connect(key, by)
	if err == nil {
		conn := &alone{key: key, conn: made, came: make(chan []byte, 1)}
		go conn.read()
		if !n.alones.add(conn) {
			hangUp(made)
			return nil, n.failure(Unreachable, closedDetail)
		}
		return conn, nil
	}
	failure := n.noConnection(err)
	switch failure.Full = errors.Is(err, errFull) || errors.As(err, new(ownError)) && n.answers(); {
	case failure.Full: // so that the call is sent over a connection that is there
	case failure.refused, n.isCut(err):
		n.alones.refuse(key, failure, Now()+jitteredNs(n.up.rest.Load()))
		n.warnOfConnection(key, err.Error())
	default:
		n.unreached(err, begin)
	}
	return nil, failure
}

// alone is a connection that one call at a time has.
type alone struct {
	key    linkKey
	conn   net.Conn
	came   chan []byte // the replies; closed by the reader when the connection has ended
	broken error       // why; set before came is closed
	since  int64       // when no call has had it any more, by Now
}

// ask sends a request and returns its reply, or why there is none by the deadline; then the connection is of no use any more.
func (a *alone) ask(request []byte, deadline int64) ([]byte, error) {
	if err := a.conn.SetDeadline(time.Now().Add(time.Duration(deadline - Now()))); err != nil {
		return nil, err
	}
	if _, err := a.conn.Write(request); err != nil {
		return nil, err
	}
	reply, whole := <-a.came
	if !whole {
		return nil, a.broken
	}
	_ = a.conn.SetDeadline(time.Time{}) // where the server has hung up behind the reply, the next call finds that out
	return reply, nil
}

// read is the connection's reader goroutine.
func (a *alone) read() {
	a.broken = a.readReplies()
	hangUp(a.conn)
	close(a.came)
}

func (a *alone) readReplies() error {
	var s scanner
	buffer, scanned := make([]byte, 0, aloneReadSize), 0
	for {
		for scanned < len(buffer) {
			taken, whole, err := s.next(buffer[scanned:])
			if scanned += taken; err != nil {
				return err
			}
			if !whole {
				break
			}
			if !s.outOfBand {
				select {
				case a.came <- slices.Clone(buffer[:scanned]):
				default:
					return errUnasked
				}
			}
			buffer = buffer[:copy(buffer, buffer[scanned:])]
			scanned = 0
		}
		if len(buffer) > aloneReplyMax {
			return errTooLong
		}
		buffer = slices.Grow(buffer, aloneReadSize)
		n, err := a.conn.Read(buffer[len(buffer):cap(buffer)])
		if buffer = buffer[:len(buffer)+n]; err != nil && n == 0 {
			return err
		}
	}
}

// ready reports whether the connection may be used: it has not ended, and nothing has come that was not asked for.
func (a *alone) ready() bool {
	select {
	case <-a.came:
		return false
	default:
		return true
	}
}

// alones are the connections of a node that one call at a time has.
type alones struct {
	mu     sync.Mutex
	busy   map[*alone]bool
	idle   []*alone // the last one used last
	closed bool

	refused map[linkKey]refusedUntil // of connections that could not be made
}

// refusedUntil is why connections of a kind are refused, which is believed until a time, by Now, so that not every call tries in vain.
type refusedUntil struct {
	failure *Failure
	until   int64
}

// refusal returns why a connection would be refused, nil if that is to be tried.
func (s *alones) refusal(key linkKey) *Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.refused[key]; Now() < r.until {
		return r.failure
	}
	return nil
}

// refuse has a refusal be believed until a time.
func (s *alones) refuse(key linkKey, failure *Failure, until int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[linkKey]refusedUntil{}
	}
	now := Now()
	maps.DeleteFunc(s.refused, func(_ linkKey, r refusedUntil) bool { return now >= r.until })
	if len(s.refused) < linksMax {
		s.refused[key] = refusedUntil{failure, until}
	}
}

// add has a new connection be a call's, and reports false after close.
func (s *alones) add(a *alone) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.busy == nil {
		s.busy = map[*alone]bool{}
	}
	s.busy[a] = true
	return true
}

// take returns a connection that is idle, or nil.
func (s *alones) take(key linkKey) *alone {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.idle) - 1; i >= 0; i-- {
		a := s.idle[i]
		if a.key != key {
			continue
		}
		s.idle = slices.Delete(s.idle, i, i+1)
		if a.ready() {
			s.busy[a] = true
			return a
		}
		hangUp(a.conn)
	}
	return nil
}

// put keeps a connection whose call is over, or closes it if there are enough.
func (s *alones) put(a *alone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, a)
	if s.closed || len(s.idle) >= aloneIdleMax {
		hangUp(a.conn)
		return
	}
	a.since = Now()
	s.idle = append(s.idle, a)
}

// drop closes a connection.
func (s *alones) drop(a *alone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, a)
	hangUp(a.conn)
}

// reap closes the connections that no call has had since a time, and reports whether none is left.
func (s *alones) reap(since int64) (none bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = slices.DeleteFunc(s.idle, func(a *alone) bool {
		if a.since >= since {
			return false
		}
		hangUp(a.conn)
		return true
	})
	return len(s.idle)+len(s.busy) == 0
}

// close closes all connections, and those that come.
func (s *alones) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, a := range s.idle {
		hangUp(a.conn)
	}
	s.idle = nil
	for a := range s.busy {
		hangUp(a.conn)
	}
}
