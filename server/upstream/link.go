package upstream

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"headgate/internal/respcmd"
)

// linkKey is what sets a node's connections apart.
type linkKey struct {
	proto int // 2 or 3
	db    int
	user  UserConn // zero: the user that Config names
}

// link is a connection to a node, and the calls that take it. The connection is made when there is something to send, and made anew when it
// has broken. Its writer goroutine sends, and decides what becomes of calls when the connection breaks; each connection has a reader that takes
// the replies.
type link struct {
	node *node
	key  linkKey
	own  bool // of Config's user

	mu      sync.Mutex
	wake    sync.Cond          // of the writer
	queue   callList           // not sent yet
	flights ring               // sent, and not answered whole
	writes  int                // flights under way, of which the last calls are still to be answered
	live    int                // calls in flights that have not been given up
	conn    io.ReadWriteCloser // nil: there is none
	reader  *reader            // of conn
	reading bool               // the reader has not ended
	judging bool               // some calls have been answered, and may still have to be sent again
	broken  error              // why the connection cannot be used any more; the writer clears up once the reader has ended
	heard   bool               // a reply has come over this connection
	due     bool               // Flush was called for what is queued
	listed  bool               // it is among Upstream.queued
	stale   bool               // something was not answered in time: it is closed once no call waits for it
	writing bool               // the writer goroutine runs
	sending bool               // out is being written, by the writer or in goOn
	handed  bool               // the writer is to write the rest of out
	direct  *direct            // writes to conn without waiting; nil if it cannot
	closed  bool               // for good
	known   []*Script          // own ones that were loaded over conn
	joining joining            // whether calls are joined over conn
	probeAt int64              // when it may be probed for that, by Now
	used    int64              // when something was queued last, by Now
	moved   int64              // when the socket has last taken a part of a long write, by Now
	refusal *Failure           // why no connection can be made, while there is none
	refused int64              // until when that is believed, by Now

	// Whoever has set sending owns these.
	out     []byte
	calls   int       // in out
	written int       // bytes of out that the socket has taken
	loaded  []*Script // in out

	arrived atomic.Int64 // when bytes have last come, by Now

	gone []*Call // the writer's own
}

func newLink(n *node, key linkKey) *link {
	l := &link{node: n, key: key, own: key.user == (UserConn{})}
	l.wake.L = &l.mu
	return l
}

// enqueue queues a call, or returns why it must not.
func (l *link) enqueue(c *Call) *Failure {
	now := c.At
	again := c.attempts+c.loads > 0 || c.single
	if again || c.internal {
		now = Now()
	}
	l.mu.Lock()
	failure := l.admit(c, now, again)
	l.mu.Unlock()
	return failure
}

// admit is enqueue for a call that comes now, or again. The caller holds mu.
func (l *link) admit(c *Call, now int64, again bool) *Failure {
	if l.closed {
		return l.node.failure(Unreachable, closedDetail)
	}
	if failure := l.node.resting.Load(); failure != nil && !c.internal {
		return failure
	}
	if l.refusal != nil && now < l.refused {
		return l.refusal
	}
	c.At = now
	l.used = now
	if again {
		l.queue.insert(c)
	} else {
		l.queue.push(c)
	}
	if !l.writing {
		l.writing = true
		go l.write()
	}
	if !l.listed {
		l.listed = true
		l.node.up.queued.add(l)
	}
	return nil
}

// flush sends what is queued.
func (l *link) flush() {
	l.mu.Lock()
	l.listed = false
	l.due = true
	l.goOn()
}

// goOn sends what may be sent, as much of it as the socket takes at once, and leaves the rest to the writer. The caller holds mu, which is
// free afterwards.
func (l *link) goOn() {
	if l.direct != nil && l.ready() {
		l.load()
		l.mu.Unlock()
		written, err := l.direct.write(l.out)
		l.mu.Lock()
		l.took(written, err)
		l.handed = l.sending
	}
	needed := l.handed || l.broken != nil || l.ready() || l.queue.n > 0 && l.conn == nil
	l.mu.Unlock()
	if needed {
		l.wake.Signal()
	}
}

// ready reports whether a write may begin. The caller holds mu.
func (l *link) ready() bool {
	return l.queue.n > 0 && l.due && l.conn != nil && l.broken == nil && !l.closed && !l.stale && !l.sending && l.writes < flightsMax
}

// write is the writer goroutine.
func (l *link) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case l.broken != nil:
			if l.handed {
				l.handed = false
				l.took(0, l.broken)
			}
			if l.reading || l.sending {
				l.wake.Wait()
			} else {
				l.clear()
			}
		case l.closed:
			if l.conn == nil {
				l.giveUp(l.node.failure(Unreachable, closedDetail))
				l.writing = false
				return
			}
			l.breakOff(errClosed)
		case l.handed || l.ready():
			l.fly()
		case l.queue.n > 0 && l.due && l.conn == nil:
			l.connect()
		default:
			l.wake.Wait()
		}
	}
}

// connect makes a connection. The caller holds mu, which is free meanwhile.
func (l *link) connect() {
	l.mu.Unlock()
	begin := Now()
	conn, err := l.node.connect(l.key, never)
	l.mu.Lock()
	if err == nil {
		if l == l.node.own[0] {
			l.node.accepted()
		}
		l.conn, l.heard, l.reading, l.known, l.refusal = conn, false, true, l.known[:0], nil
		l.joining, l.probeAt = apart, 0
		l.direct, l.reader = newDirect(conn), newReader(l, conn)
		go l.reader.run()
		return
	}
	failure, cut := l.node.noConnection(err), l.node.isCut(err)
	if failure.refused || cut {
		l.refusal, l.refused = failure, Now()+jitteredNs(min(l.node.up.rest.Load(), int64(proofMax)))
	}
	l.giveUp(failure)
	l.mu.Unlock()
	switch {
	case failure.refused && l == l.node.own[0]:
		l.node.refuses(err.Error())
		fallthrough
	case failure.refused, cut:
		l.node.warnOfConnection(l.key, err.Error())
	default:
		l.node.unreached(err, begin)
	}
	l.mu.Lock()
}

// giveUp lets all calls fail that are queued. The caller holds mu, which is free meanwhile.
func (l *link) giveUp(failure *Failure) {
	l.gone = l.queue.moveIf(l.gone[:0], func(*Call) bool { return true })
	l.tell(failure)
}

// tell gives the calls of gone back to their owners. The caller holds mu, which is free meanwhile.
func (l *link) tell(failure *Failure) {
	if len(l.gone) == 0 {
		return
	}
	l.mu.Unlock()
	var told answers
	for _, c := range l.gone {
		l.node.up.complete(&told, c, nil, failure)
	}
	clear(l.gone)
	l.node.up.drained(&told)
	l.mu.Lock()
}

// fly sends what is queued by one write, or the rest of what goOn has begun. The caller holds mu, which is free during the write.
func (l *link) fly() {
	if !l.handed {
		l.load()
	}
	l.handed = false
	conn, part := l.conn, l.out[l.written:]
	part = part[:min(len(part), writeBytes)]
	l.mu.Unlock()
	written, err := conn.Write(part)
	l.mu.Lock()
	l.took(written, err)
	if l.handed = l.sending; l.handed {
		l.moved = Now()
	}
}

// load moves calls from the queue to those that are sent, and their bytes to out. The caller holds mu.
func (l *link) load() {
	now := Now()
	l.out, l.loaded, l.calls, l.written = l.out[:0], l.loaded[:0], 0, 0
	for l.queue.n > 0 && l.calls < flightCalls && (l.calls == 0 || len(l.out)+len(l.queue.first.Request) <= flightBytes) {
		n := l.joinable()
		if n > 1 {
			l.join(n, now)
		} else {
			probes := l.probe(l.queue.first, now)
			c := l.queue.pop()
			before := probes + l.encode(c)
			l.flights.push(sent{call: c, before: int8(before), probes: int8(probes), replies: int32(c.Replies), end: len(l.out), at: now})
		}
		l.calls += n
	}
	l.flights.last().landing = true
	l.live += l.calls
	l.writes++
	l.sending = true
	l.node.workOn(len(l.out))
	l.due = l.queue.n > 0
	l.node.figures.batch.Add(int64(l.calls))
	l.node.figures.calls.Add(uint64(l.calls))
}

// took counts what the socket has taken of out. If there is no error, the writer goes on with the rest. The caller holds mu.
func (l *link) took(written int, err error) {
	l.written += written
	if err == nil && l.written < len(l.out) {
		return
	}
	if err != nil {
		l.recall(l.calls, l.written)
		l.breakOff(err)
	}
	l.node.workOn(len(l.out))
	l.sending = false
	l.written = 0
	if cap(l.out) > bufferKept {
		l.out = nil
	}
}

// encode appends a call's bytes to out, and returns how many replies come before its own.
func (l *link) encode(c *Call) (before int) {
	if c.Script != nil {
		before = l.teach(c.Script, c.load)
	}
	if c.asking {
		l.out = append(l.out, asking...)
		before++
	}
	if c.Headless {
		l.out = append(l.out, c.Script.Joint.Head...)
	}
	l.out = append(l.out, c.Request...)
	return before
}

// teach has a script be loaded, if it is an own one that was not loaded yet, or if it must, and returns how many replies there are to that.
func (l *link) teach(s *Script, must bool) (before int) {
	if !must && (!s.Own || !l.own || slices.Contains(l.known, s)) || slices.Contains(l.loaded, s) {
		return 0
	}
	l.out = respcmd.Append(l.out, "SCRIPT", "LOAD", s.Text)
	l.loaded = append(l.loaded, s)
	if s.Own && !slices.Contains(l.known, s) { // if it cannot be loaded, a call that misses it tells why
		l.known = append(l.known, s)
	}
	return 1
}

const asking = "*1\r\n$6\r\nASKING\r\n"

// recall takes calls back into the queue that the last flight, of n calls, was to send: those of which the socket has not taken all bytes.
// A server cannot have executed them, since it never sees their ends. The caller holds mu.
func (l *link) recall(n, written int) {
	for ; n > 0 && l.flights.n > 0 && l.flights.last().end > written; n-- {
		c := l.flights.popLast().call
		if c == nil {
			continue
		}
		l.live--
		l.queue.pushFront(c)
		l.due = true
	}
}

// breakOff has the connection be given up. The caller holds mu.
func (l *link) breakOff(err error) {
	if l.broken == nil {
		l.broken = err
	}
	hangUp(l.conn)
}

// clear makes the end of a connection, whose reader has ended: what was sent over it is lost. The caller holds mu, which is free meanwhile.
func (l *link) clear() {
	err := l.broken
	l.gone = l.gone[:0]
	for l.flights.n > 0 {
		if c := l.flights.pop().call; c != nil {
			l.gone = append(l.gone, c)
		}
	}
	unheard := !l.heard && len(l.gone) > 0 && !l.node.answers() // else somebody may have killed this connection alone
	if s, ok := l.conn.(*socket); ok {
		s.free()
	}
	l.conn, l.reader, l.direct, l.broken, l.stale, l.writes, l.live = nil, nil, nil, nil, false, 0, 0
	if failure := l.node.resting.Load(); failure != nil {
		l.refuseQueue(failure) // what was taken back from the write that failed
	}
	detail := reason(err)
	if len(l.gone) > 0 {
		l.node.figures.lost.Add(uint64(len(l.gone)))
		l.node.up.totals.lost.Add(uint64(len(l.gone)))
	}
	l.tell(l.node.failure(Lost, detail))
	l.mu.Unlock()
	l.node.up.Flush()
	if unheard {
		l.node.rest(detail)
	}
	if err != errClosed {
		l.node.fleet.lookSoon()
	}
	l.mu.Lock()
}

// refuseQueue lets the calls fail that are queued and are not this package's own. The caller holds mu; Flush tells the owners.
func (l *link) refuseQueue(failure *Failure) {
	for _, c := range l.queue.moveIf(nil, func(c *Call) bool { return !c.internal }) {
		l.node.up.refuse(c, failure)
	}
}

// hangUp closes a connection without a word: TLS would say goodbye, and wait for a peer that takes nothing.
func hangUp(conn io.Closer) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	_ = conn.Close()
}

// halfClose tells the peer that nothing more comes, and leaves the way back open where that is possible. TLS would wait for it to say goodbye.
func halfClose(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}

var errClosed = errors.New("closed here")

// reason says why a connection broke.
func reason(err error) string {
	if errors.Is(err, io.EOF) {
		return "closed by the server"
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}

// expire takes out the calls whose deadline has passed. The connection is given up if it owes replies, and nothing has come over it for
// so long that it cannot be that other replies take up the time; or if a reply that nobody waits for any more has not come whole for owedMax.
func (l *link) expire(now int64, e *expiry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	silent := l.node.up.silence()
	e.calls = l.queue.moveIf(e.calls, func(c *Call) bool {
		if c.Deadline > now {
			e.next = min(e.next, c.Deadline)
			return false
		}
		e.silent = e.silent || l.due && l.conn == nil && now-max(c.At, l.node.busy.Load()) >= silent
		return true
	})
	for i := range l.flights.n {
		s := l.flights.at(i)
		switch {
		case s.call == nil:
		case s.call.Deadline > now:
			e.next = min(e.next, s.call.Deadline)
		default:
			e.calls = append(e.calls, s.call)
			s.call = nil
			l.live--
		}
	}
	if l.flights.n > 0 && l.flights.at(0).call == nil {
		sent := l.flights.at(0).at
		switch since := max(l.arrived.Load(), l.moved, sent, l.node.busy.Load()); {
		case now-since >= silent:
			e.silent, l.stale = true, true
		case now-sent >= int64(owedMax):
			l.stale = true
		default:
			e.next = min(e.next, since+silent, sent+int64(owedMax))
		}
	}
	l.closeStale()
}

// lookNow reads replies that have come and that nobody has had the time for.
func (l *link) lookNow() {
	l.mu.Lock()
	r := l.reader
	l.mu.Unlock()
	if r != nil {
		r.lookNow()
	}
}

// owes adds the slots whose calls are queued, or sent and not answered, or may be.
func (l *link) owes(to *owedSlots) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to.all = to.all || l.judging
	for c := l.queue.first; c != nil; c = c.next {
		to.add(c)
	}
	for i := range l.flights.n {
		if c := l.flights.at(i).call; c != nil {
			to.add(c)
		}
	}
}

// awaited reports whether somebody waits for the replies that come next.
func (l *link) awaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flights.n > 0 && l.flights.at(0).call != nil
}

func (l *link) connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil && l.broken == nil
}

func (l *link) isBroken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken != nil
}

// closeStale closes a connection that has not answered in time, once no call waits for it. The caller holds mu.
func (l *link) closeStale() {
	if l.stale && l.live == 0 && l.conn != nil {
		l.breakOff(errStale)
		l.wake.Signal()
	}
}

var errStale = errors.New("no answer in time")

// shut closes the connection if it is idle: for good, or until there is something to send. It reports whether it was idle.
func (l *link) shut(forGood bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.n > 0 || l.live > 0 {
		return false
	}
	if l.conn != nil && l.broken == nil {
		l.breakOff(errClosed)
	}
	l.closed = l.closed || forGood
	l.wake.Signal()
	return true
}

// unusedSince reports whether nothing has been queued since a time, although there is a connection.
func (l *link) unusedSince(since int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil && l.used < since
}

// lastUse is when something was queued last, by Now: 0 where there is no connection.
func (l *link) lastUse() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return 0
	}
	return l.used
}

// close closes the connection for good, and calls that take it fail.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wake.Signal()
}

// sent is a call that was sent.
type sent struct {
	call    *Call // nil: it was given up, and its replies are dropped
	end     int   // of its bytes in the write
	at      int64 // when, by Now
	replies int32
	before  int8  // replies that come before the call's own, to ASKING and SCRIPT LOAD, and
	probes  int8  // to what probe has sent, of which the last of so many is
	joint   uint8 // with so many calls, of which it is the first, it is one command
	landing bool  // it is the last of its write
}

// ring is a queue of sent calls.
type ring struct {
	calls []sent // as many as a power of 2
	first int
	n     int
}

func (r *ring) at(i int) *sent { return &r.calls[(r.first+i)&(len(r.calls)-1)] }
func (r *ring) last() *sent    { return r.at(r.n - 1) }

func (r *ring) push(s sent) {
	if r.n == len(r.calls) {
		grown := make([]sent, max(16, 2*len(r.calls)))
		for i := range r.n {
			grown[i] = *r.at(i)
		}
		r.calls, r.first = grown, 0
	}
	r.n++
	*r.last() = s
}

func (r *ring) pop() sent {
	s := *r.at(0)
	*r.at(0) = sent{}
	r.first = (r.first + 1) & (len(r.calls) - 1)
	r.n--
	return s
}

func (r *ring) popLast() sent {
	s := *r.last()
	*r.last() = sent{}
	r.n--
	return s
}
