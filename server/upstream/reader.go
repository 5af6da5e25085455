package upstream

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

var (
	errUnasked    = errors.New("it sends a reply that nothing asked for")
	errPushWithin = errors.New("it sends a push between the replies of a transaction")
)

// reader takes the replies of one connection.
type reader struct {
	link *link
	conn io.Closer // it reads from
	in   io.Reader // that reads from it

	mu      sync.Mutex
	state   readerState // changed with mu held
	socket  *socket     // conn, if the socket is used past Go's poller
	watcher Watcher     // that says when there is something to read

	// Whoever reads owns these.
	scan scanner

	buf     []byte
	start   int // of the replies of the call in question
	begin   int // of the reply that is being read
	scanned int

	before   int    // replies to ASKING and SCRIPT LOAD that are still to come
	replies  int    // the call's own that are still to come; 0, and before too: none of them has come
	joint    int    // replies that are still to come of a joint command's, whose reply has begun
	common   []byte // of them; nil: it is still to come
	over     bool   // its replies are too large, or nobody waits for them, and they are dropped as they come
	dropped  int    // bytes of them that were
	refusal  []byte // what SCRIPT LOAD was answered, if that was an error
	landed   bool   // a call's replies have come whole since the last read
	landings int    // of which so many were the last of their writes
	held     int64  // bytes of buf that count as replyMemory
	handed   bool   // buf is a call's now

	whole   []whole // what the last read has brought
	told    answers
	settled struct{ calls, bytes int64 }
}

// whole is a call whose replies have come whole.
type whole struct {
	call              *Call
	start, begin, end int    // of its replies, and of the last of them, in the reader's buffer
	over              bool   // they are too large, and not there
	again             again  // why it is to be sent again, by a command of its own
	refusal           []byte // see reader
	common            []byte // see Call
}

func newReader(l *link, conn net.Conn) *reader {
	return &reader{link: l, conn: conn, in: newInput(conn), buf: make([]byte, 0, readSize)}
}

// run is the reader goroutine of a connection.
func (r *reader) run() {
	var err error
	for err == nil {
		if !r.makeRoom() {
			break // for the reason that the link has
		}
		if r.moveToWatcher() {
			return
		}
		var n int
		n, err = r.in.Read(r.buf[len(r.buf):cap(r.buf)])
		err = r.came(n, err)
	}
	r.end(err)
}

// came takes what was read, and returns why nothing more can be.
func (r *reader) came(n int, err error) error {
	l := r.link
	r.buf = r.buf[:len(r.buf)+n]
	now := Now()
	if n > 0 {
		l.arrived.Store(now)
		l.node.heard.Store(now)
		if r.over {
			r.dropped += n
		} else {
			r.dropped = 0
		}
		l.node.workOn(r.dropped + len(r.buf) - r.start)
	}
	if wrong := r.take(now); wrong != nil {
		err = wrong
	}
	if r.held > 0 && r.scanned > r.start && !r.over && !r.shared() && !l.awaited() {
		r.over, r.dropped = true, len(r.buf)-r.start // nothing is kept of what nobody waits for any more
	}
	if !r.landed {
		return err
	}
	r.landed = false
	for i := range r.whole {
		r.judge(&r.whole[i])
	}
	l.mu.Lock()
	l.judging = false
	l.writes -= r.landings // not before what has not run is ahead of what is queued
	r.landings = 0
	l.goOn() // a write may have been waiting for these replies
	r.giveAll()
	l.node.up.Flush()
	l.node.up.drained(&r.told)
	if r.handed {
		r.handed = false
		r.renew()
	}
	return err
}

// shared reports whether what is being read is for several calls.
func (r *reader) shared() bool { return r.joint > 0 && r.common == nil }

// end leaves the connection to the writer, which clears up.
func (r *reader) end(err error) {
	l := r.link
	hangUp(r.conn)
	if r.held > 0 {
		r.letGo()
	}
	l.mu.Lock()
	l.reading = false
	if l.broken == nil {
		l.broken = err
	}
	l.mu.Unlock()
	l.wake.Signal()
}

// take finds the replies that have come whole, and takes their calls out of those that were sent.
func (r *reader) take(now int64) (err error) {
	l := r.link
	trips := roundTrips{of: &l.node.figures.roundTrip}
	l.mu.Lock()
	for r.scanned < len(r.buf) && err == nil {
		if r.opens() {
			var opened bool
			if opened, err = r.open(); !opened {
				break
			}
			continue
		}
		var n int
		var whole bool
		n, whole, err = r.scan.next(r.buf[r.scanned:])
		r.scanned += n
		if err != nil || !whole {
			break
		}
		err = r.reply(now, &trips)
		r.begin = r.scanned
	}
	l.mu.Unlock()
	trips.flush()
	if int64(r.scanned-r.start) > l.node.up.replyMax.Load() {
		r.over = true
	}
	return err
}

// roundTrips counts calls that took equally long together, as those of one write do that are answered by one.
type roundTrips struct {
	of    *histogram
	took  int64 // µs
	calls uint64
}

func (t *roundTrips) add(took int64) {
	if took != t.took {
		t.flush()
		t.took = took
	}
	t.calls++
}

func (t *roundTrips) flush() {
	t.of.addMany(t.took, t.calls)
	t.calls = 0
}

// reply takes the reply that has been read. The caller holds the link's mu.
func (r *reader) reply(now int64, trips *roundTrips) error {
	l := r.link
	if r.scan.outOfBand {
		if r.start != r.begin || r.joint > 0 {
			return errPushWithin // it would have to be cut out of what the call is given, and nothing here asks for pushes
		}
		r.start, r.over = r.scanned, false
		return nil
	}
	if r.shared() {
		return r.keepCommon(r.buf[r.begin:r.scanned])
	}
	if l.flights.n == 0 { // of a call, too, that was recalled since the rest of it could not be sent
		return errUnasked
	}
	if r.before+r.replies == 0 { // it is the first of its call
		first := l.flights.at(0)
		r.before, r.replies = int(first.before), max(1, int(first.replies))
		r.refusal = nil
	}
	if r.before > 0 {
		r.before--
		reply := r.buf[r.begin:r.scanned]
		if first := l.flights.at(0); int(first.before-first.probes) == r.before && first.probes > 0 {
			l.learn(reply)
		} else if reply[0] == '-' {
			r.refusal = bytes.Clone(reply)
			if !isRefusal(reply) { // it is not there, and the next load may succeed, unless the user has no right to it
				l.known = l.known[:0]
			}
		}
		r.start = r.scanned
		return nil
	}
	if r.replies--; r.replies > 0 {
		return nil
	}
	calls, why, err := r.tells(r.buf[r.begin:r.scanned])
	if err != nil {
		return err
	}
	common := r.common
	if r.buf[r.begin] == '-' {
		common = nil
	}
	for range calls {
		s := l.landed()
		r.landed, l.judging = true, true
		if s.landing {
			r.landings++
		}
		trips.add((now - s.at) / 1000)
		if s.call != nil {
			r.whole = append(r.whole, whole{s.call, r.start, r.begin, r.scanned, r.over, why, r.refusal, common})
		}
	}
	r.start, r.over = r.scanned, false
	if r.joint == 0 {
		r.common = nil
	}
	return nil
}

// landed takes the oldest call out of those that were sent, since its replies have come. The caller holds mu.
func (l *link) landed() sent {
	s := l.flights.pop()
	l.heard = true
	if s.call != nil {
		l.live--
	}
	l.closeStale()
	return s
}

// giveAll gives calls the replies that have come whole and been judged.
func (r *reader) giveAll() {
	up := r.link.node.up
	up.settle(r.settled.calls, r.settled.bytes)
	r.settled.calls, r.settled.bytes = 0, 0
	for i := range r.whole {
		if w := &r.whole[i]; w.call != nil {
			r.give(w)
		}
	}
	clear(r.whole)
	r.whole = r.whole[:0]
}

// judge sends a call again if its replies prove that it has not run, and lets it be given them otherwise.
func (r *reader) judge(w *whole) {
	n, c := r.link.node, w.call
	c.Node = n.addr
	if w.again != no {
		r.single(c, w.again, r.buf[w.begin:w.end])
		w.call = nil
		return
	}
	if w.over = w.over || int64(w.end-w.start) > n.up.replyMax.Load(); !w.over && !c.internal {
		last := r.buf[w.begin:w.end]
		if last[0] == '-' {
			if again, line := verdict(r.buf[w.start:w.end], last); again != no && c.proves(again, line) {
				slot := c.Slot // once it is sent again, the call may be its owner's at any moment
				if n.sendAgain(c, again, line) {
					r.link.holdBack(slot, again)
					w.call = nil
					return
				}
			}
			if verdictOf(last) != scriptful {
				w.refusal = nil // the call has run, or was refused itself
			} else if len(w.refusal) > 0 {
				last = w.refusal // says why the script is not there
			}
		}
		if r.link.own {
			switch refusal := refusalIn(r.buf[w.start:w.end], last); {
			case refusal == nil:
				n.served(c.Reads)
			case !c.Program: // which may end with any error
				n.refusedCall(refusal)
			}
		}
	}
	if !c.internal {
		r.settled.calls++
		r.settled.bytes += int64(len(c.Request))
	}
}

// give gives a call its replies.
func (r *reader) give(w *whole) {
	n, c := r.link.node, w.call
	if w.over {
		r.told.add(c, nil, n.failure(TooLarge, ""))
		return
	}
	replies := r.buf[w.start:w.end:w.end]
	switch {
	case r.buf[w.begin] == '-' && len(w.refusal) > 0:
		replies = w.refusal
	case r.held > 0 && len(replies) > bufferKept/2 && c.Keeps:
		c.held, c.Kept = r.held, true
		n.up.replies.pass(r, c)
		r.held, r.handed = 0, true
	}
	c.Common = w.common
	r.told.add(c, replies, nil)
}

// makeRoom has room for more behind what has come of a reply, in a buffer that grows with what has come. It waits while replies take up too
// much in all, and reports false if the connection ends meanwhile.
func (r *reader) makeRoom() bool {
	if r.over {
		r.start, r.begin = r.scanned, r.scanned
	}
	switch {
	case r.held > 0 && (r.over || r.start > 0):
		r.letGo()
	case r.start > 0:
		r.move(r.buf[:0])
	}
	if len(r.buf) < cap(r.buf) {
		return true
	}
	return r.grow()
}

// grow makes the buffer larger: twice as large, or as large as the string needs that is coming. Of a reply that nobody waits for any more, or
// that is going to be too large, nothing is kept. It waits and reports as makeRoom does.
func (r *reader) grow() bool {
	l, up := r.link, r.link.node.up
	replyMax := up.replyMax.Load()
	size := r.larger()
	waits := false
	defer func() {
		if waits {
			up.replies.waiting.Add(-1)
			up.relieve()
		}
	}()
	for size > bufferKept && r.held < int64(size) {
		switch {
		case int64(len(r.buf))+r.scan.bulk > replyMax || !l.awaited():
			r.over = true
			return r.makeRoom()
		case up.hold(r, int64(size)-r.held):
			r.held = int64(size)
		default: // until others have let go of theirs; the node cannot be blamed meanwhile
			if !waits {
				waits = true
				up.replies.waiting.Add(1)
			}
			time.Sleep(holdPause)
			l.arrived.Store(Now())
			if l.isBroken() {
				return false
			}
		}
	}
	r.buf = append(make([]byte, 0, size), r.buf...)
	return true
}

// larger is the size of a larger buffer.
func (r *reader) larger() int {
	return max(2*len(r.buf), len(r.buf)+int(min(r.scan.bulk, r.link.node.up.replyMax.Load()))+lineSpare)
}

// lineSpare is the room behind a long string for what follows it.
const lineSpare = 512

// holdPause is after how long it is looked again whether there is room for a reply.
const holdPause = time.Millisecond

// letGo goes on in a small buffer. What was in the large one has been given, or is needed by nobody.
func (r *reader) letGo() {
	up := r.link.node.up
	up.replies.release(r, r.held)
	r.held = 0
	r.renew()
	up.relieve()
}

// renew goes on in another buffer.
func (r *reader) renew() { r.move(make([]byte, 0, max(readSize, len(r.buf)-r.start))) }

// move has what is still to be read stand at the beginning of a buffer, which may be the same.
func (r *reader) move(to []byte) {
	r.buf = append(to, r.buf[r.start:]...)
	r.begin -= r.start
	r.scanned -= r.start
	r.start = 0
}
