package upstream

import (
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A command that waits at its server keeps all that come behind it on its connection. So it has one for itself until it is answered, and
// connections that have answered are kept for the next such command.

const (
	aloneIdleMax  = 64                     // connections of a node that are kept while no command has them
	aloneDialsMax = 32                     // connections to a node that are made at a time: with TLS each is work for both
	aloneReplyMax = 1 << 20                // bytes
	aloneReadSize = 512                    // bytes of a buffer at first
	alonePauseMax = 250 * time.Millisecond // between two attempts, while there is no node that serves the call
	letGoMax      = 500 * time.Millisecond // for a node to answer a call that is to wait elsewhere, or to let go of it
)

// errCrowded is why a call has no connection yet.
var errCrowded = errors.New("too many connections are being made")

var errTooLate = errors.New("the client has gone")

// Wait is how a call waits at its server.
type Wait struct {
	Until int64                           // by Now: the server is to answer by then. The call's Deadline is later by what the answer may take
	Words func(left time.Duration) []byte // the request, in place of the call's: it says for how long, and may be sent some time after the call has come
}

// SendAlone is Send for a call that may keep its server waiting, until its Deadline, which must be set. It has a connection for itself, and does
// not count as under way: the owner bounds how many there are. Where the server has no room for one more client, the Failure is Full. The call's
// Script is not loaded. end, which may be called at any time, tells the
// server by the connection's end that nobody waits any more; the call fails then, unless it has been answered.
//
// A call whose node does not serve it any more, or turns out to be a replica, waits for one that does, and is sent there to wait for the rest of its time.
func (u *Upstream) SendAlone(c *Call, w Wait) (end func()) {
	c.Reply, c.Common, c.Kept, c.Err, c.Node = nil, nil, false, nil, ""
	a := &aloneCall{up: u, call: c, wait: w, gone: make(chan struct{})}
	u.totals.calls.Add(1)
	go a.run()
	return a.end
}

// aloneCall is a call that has a connection for itself.
type aloneCall struct {
	up   *Upstream
	call *Call // the owner's again once it is answered
	wait Wait
	gone chan struct{} // closed when nobody waits for it any more

	mu    sync.Mutex
	ended bool   // gone is closed
	on    *alone // nil: none, or not any more
}

func (a *aloneCall) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.ended = true
		close(a.gone)
	}
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

// ask sends the call, again as long as no node serves it, and returns the answer.
func (a *aloneCall) ask() (reply []byte, failure *Failure) {
	c, u := a.call, a.up
	homeless := false // its node does not serve it, and another one, or the same, is waited for
	suspect := ""     // the node that may have run it, and was given up
	for attempt := 0; ; attempt++ {
		f := u.fleet.Load()
		n := f.nodeFor(c.Slot)
		switch {
		case n == nil:
			failure = &Failure{Kind: Unreachable, Detail: f.missing()}
		case n.addr == suspect:
			return nil, n.failure(Lost, "it was out of service")
		default:
			c.Node = n.addr
			reply, failure = a.askNode(n)
		}
		switch {
		case failure == nil:
			switch verdictOf(reply) {
			case demoted, moved:
				f.lookSoon()
			case down, later:
			default:
				return reply, nil
			}
			failure, homeless = n.failure(Unreachable, firstLine(reply)), true
		case failure.isReplica():
			f.lookSoon()
			homeless = true
		case failure.parted && failure.mayHaveRun():
			if u.fleet.Load() != f { // the new configuration may name the same node
				return nil, failure
			}
			suspect, homeless = n.addr, true
		case failure.parted, f.ctx.Err() != nil && !failure.mayHaveRun():
			homeless = true
		case failure.crowded:
			if !a.pause(f, attempt) {
				failure.Full = Now() >= a.wait.Until
				return nil, failure
			}
			continue
		case failure.mayHaveRun(), failure.Full, failure.refused && refusedError(failure.Detail).lasting(): // which waiting would not mend
			return nil, failure
		}
		if !homeless || !a.pause(f, attempt) {
			return nil, failure
		}
	}
}

// pause waits before the call is sent again, and reports false if it is not to be sent.
func (a *aloneCall) pause(f *fleet, attempt int) bool {
	left := time.Duration(a.wait.Until - Now())
	if left <= 0 {
		return false
	}
	pause := min(pauseFirst<<min(attempt, 30), alonePauseMax)
	timer := time.NewTimer(min(left, pause/2+rand.N(pause/2)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.gone:
		return false
	case <-f.done: // there is another configuration, or none any more
		return a.up.fleet.Load() != f
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
	conn, failure := n.aloneFor(key, c)
	if failure != nil {
		return nil, failure
	}
	if !a.takes(conn) {
		n.alones.put(conn)
		return nil, n.failure(Unreachable, errTooLate.Error())
	}
	if !n.fleet.serves(n, c.Slot) { // letGo has perhaps not seen this connection
		a.takes(nil)
		n.alones.put(conn)
		return nil, n.parted(unsentError{errReplica})
	}
	n.figures.calls.Add(1)
	reply, err := conn.ask(a.wait.Words(max(0, time.Duration(a.wait.Until-Now()))), c.Deadline)
	waited := a.takes(nil)
	if err == nil && waited {
		if verdictOf(reply) == demoted { // the node hangs up now, on those that are idle, too: what is sent over them would be lost
			n.alones.drop(conn)
			n.alones.reap(never)
			return reply, nil
		}
		n.alones.put(conn)
		return reply, nil
	}
	parted := n.alones.drop(conn) // Whoever gave up has hung up, even if the answer was here already.
	if err == nil {
		return reply, nil
	}
	if waited && parted {
		return nil, n.parted(err)
	}
	var timeout net.Error
	switch {
	case !waited: // the client has hung up, which is no fault of the node's
		failure = n.failure(Lost, reason(errTooLate))
	case errors.As(err, new(unsentError)): // it cannot have run
		failure = n.failure(Unreachable, "the request could not be sent: "+reason(err))
	case errors.As(err, &timeout) && timeout.Timeout():
		n.figures.timeouts.Add(1)
		n.up.totals.timeouts.Add(1)
		failure = n.failure(Timeout, "")
		failure.After = time.Duration(c.Deadline - c.At)
	case errors.Is(err, errTooLong):
		failure = n.failure(TooLarge, "")
	default:
		failure = n.lost(reason(err))
	}
	return nil, failure
}

func (n *node) lost(why string) *Failure {
	n.figures.lost.Add(1)
	n.up.totals.lost.Add(1)
	return n.failure(Lost, why)
}

// parted is what a call fails with that was to wait elsewhere. The node got no end of the request, or it has ended the connection when this side did,
// without an answer, and so drops whoever waits: then nothing has run, and will. If not, the node may run it whenever it goes on.
func (n *node) parted(err error) (failure *Failure) {
	if errors.As(err, new(unsentError)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		failure = n.failure(Unreachable, "it is not the primary any more")
	} else {
		failure = n.lost("it is not the primary any more, and does not answer")
	}
	failure.parted = true
	return failure
}

// unsentError is why a request was not written whole.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// BoundAlones says how many connections there may be that one call at a time has. As many calls may come by SendAlone; connections that are kept idle
// beside theirs are closed to make room.
func (u *Upstream) BoundAlones(most int) { u.alonesMax.Store(int64(most)) }

// addAlone counts a connection that is to be made, and closes an idle one if there are too many.
func (u *Upstream) addAlone() {
	if most := u.alonesMax.Load(); u.alones.Add(1) <= most || most == 0 {
		return
	}
	for _, n := range u.fleet.Load().allEver() {
		if n.alones.dropIdle() {
			return
		}
	}
}

// aloneFor returns a connection that no call has for one, and makes it if there is none.
func (n *node) aloneFor(key linkKey, c *Call) (*alone, *Failure) {
	if conn := n.alones.take(key, c); conn != nil {
		return conn, nil
	}
	if failure := n.alones.refusal(key); failure != nil {
		return nil, failure
	}
	if !n.alones.mayDial() {
		failure := n.failure(Unreachable, errCrowded.Error())
		failure.crowded = true
		return nil, failure
	}
	defer n.alones.dialled()
	begin := Now()
	n.up.addAlone()
	made, err := n.connect(key, c.Deadline)
	if err == nil {
		n.alones.hears(n)
		conn := &alone{node: n, key: key, conn: made, came: make(chan []byte, 1)}
		go func() {
			conn.read()
			n.up.alones.Add(-1)
		}()
		if !n.alones.add(conn, c) {
			hangUp(made)
			return nil, n.failure(Unreachable, closedDetail)
		}
		return conn, nil
	}
	n.up.alones.Add(-1)
	return nil, n.noAlone(key, err, begin)
}

// noAlone is what a call fails with whose connection, begun at a time, could not be made.
func (n *node) noAlone(key linkKey, err error, begin int64) *Failure {
	failure := n.noConnection(err)
	switch failure.Full = errors.Is(err, errFull) || errors.As(err, new(ownError)); {
	case failure.Full: // so that the call is sent over a connection that others share
	case failure.refused, n.isCut(err):
		n.alones.refuse(key, failure, Now()+jitteredNs(n.up.rest.Load()))
		n.warnOfConnection(key, err.Error())
	case n.connected():
		n.fleet.lookSoon() // over that connection, which finds out whether the node answers
	default:
		n.unreached(err, begin)
	}
	return failure
}

// alone is a connection that one call at a time has.
type alone struct {
	node   *node
	key    linkKey
	conn   net.Conn
	came   chan []byte // the replies; closed by the reader when the connection has ended
	broken error       // why; set before came is closed

	// The lock of alones guards these.
	since    int64 // when no call has had it any more, by Now
	slot     int   // of the call that has it
	deadline int64 // likewise
	parted   bool  // that call is to wait elsewhere
}

// ask sends a request and returns its reply, or why there is none by the deadline; then the connection is of no use any more.
func (a *alone) ask(request []byte, deadline int64) ([]byte, error) {
	if err := a.conn.SetDeadline(time.Now().Add(time.Duration(deadline - Now()))); err != nil {
		return nil, unsentError{err}
	}
	if _, err := a.conn.Write(request); err != nil {
		return nil, unsentError{err}
	}
	reply, whole := <-a.came
	if !whole {
		return nil, a.broken
	}
	_ = a.conn.SetDeadline(time.Time{}) // where the server has hung up behind the reply, the next call finds that out
	return reply, nil
}

// letGo has the node let go of the call by a time: a server that reads the end of a connection drops who waits there, and ends it, too. What it
// has decided by then still comes.
func (a *alone) letGo(by time.Time) {
	halfClose(a.conn)
	_ = a.conn.SetReadDeadline(by) // after the other, so that ask does not set a later one before it writes
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
		if n > 0 {
			a.node.alones.hears(a.node)
		}
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
	dials  int      // connections that are being made
	closed bool

	refused map[linkKey]refusedUntil // of connections that could not be made

	arrived atomic.Int64 // when something has last come over one of them, by Now
}

// hears notes that something has come from their node.
func (s *alones) hears(n *node) {
	now := Now()
	s.arrived.Store(now)
	n.heard.Store(now)
}

// mayDial reports whether one more connection may be made, which dialled is to follow.
func (s *alones) mayDial() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dials >= aloneDialsMax {
		return false
	}
	s.dials++
	return true
}

func (s *alones) dialled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials--
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
	if len(s.refused) < LinksMax {
		s.refused[key] = refusedUntil{failure, until}
	}
}

// forgive forgets that the node was a replica.
func (s *alones) forgive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.refused, func(_ linkKey, r refusedUntil) bool { return r.failure.isReplica() })
}

// add has a new connection be a call's, and reports false after close.
func (s *alones) add(a *alone, c *Call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.have(a, c)
	return true
}

// have has a connection be a call's. The caller holds mu.
func (s *alones) have(a *alone, c *Call) {
	if s.busy == nil {
		s.busy = map[*alone]bool{}
	}
	s.busy[a] = true
	a.slot, a.deadline = c.Slot, c.Deadline
}

// take returns a connection that is idle, or nil.
func (s *alones) take(key linkKey, c *Call) *alone {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.idle) - 1; i >= 0; i-- {
		a := s.idle[i]
		if a.key != key {
			continue
		}
		s.idle = slices.Delete(s.idle, i, i+1)
		if a.ready() {
			s.have(a, c)
			return a
		}
		hangUp(a.conn)
	}
	return nil
}

// dropIdle closes the connection that has been idle longest, and reports false if there is none that lives.
func (s *alones) dropIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.idle) > 0 {
		a := s.idle[0]
		s.idle = slices.Delete(s.idle, 0, 1)
		lives := a.ready()
		if hangUp(a.conn); lives {
			return true
		}
	}
	return false
}

// put keeps a connection whose call is over, or closes it if there are enough.
func (s *alones) put(a *alone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, a)
	if s.closed || a.parted || len(s.idle) >= aloneIdleMax {
		hangUp(a.conn)
		return
	}
	a.since = Now()
	s.idle = append(s.idle, a)
}

// drop closes a connection, and reports whether its call is to wait elsewhere.
func (s *alones) drop(a *alone) (parted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, a)
	hangUp(a.conn)
	return a.parted
}

// letGo has the node let go of the calls for some slots. Each has half of its time left for another node, if this one does not answer.
func (s *alones) letGo(gone func(slot int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.busy {
		if !a.parted && gone(a.slot) {
			a.parted = true
			a.letGo(time.Now().Add(min(letGoMax, time.Duration(a.deadline-Now())/2)))
		}
	}
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
