package upstream

import (
	"errors"
	"net"
	"time"
)

var errUnasked = errors.New("it sends a reply to nothing")

// reader takes the replies of one connection.
type reader struct {
	link *link
	scan scanner

	buf     []byte
	start   int // of the replies of the call in question
	begin   int // of the reply that is being read
	scanned int

	before  int    // replies to ASKING and SCRIPT LOAD that are still to come
	replies int    // the call's own that are still to come; 0, and before too: none of them has come
	over    bool   // its replies are too large, and dropped as they come
	refusal []byte // what SCRIPT LOAD was answered, if that was an error
	landed  bool   // a call's replies have come whole since the last read
	held    int64  // bytes of buf that count as replyMemory
}

// read is the reader goroutine of a connection.
func (l *link) read(conn net.Conn) {
	r := &reader{link: l, buf: make([]byte, 0, readSize)}
	var err error
	for err == nil {
		if !r.makeRoom() {
			break // for the reason that the link has
		}
		var n int
		n, err = conn.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		now := Now()
		if n > 0 {
			l.arrived.Store(now)
		}
		if wrong := r.take(now); wrong != nil {
			err = wrong
		}
		if r.landed {
			r.landed = false
			l.mu.Lock()
			l.goOn() // a write may have been waiting for these replies
			l.node.up.Flush()
			l.node.up.drained()
		}
	}
	hangUp(conn)
	if r.held > 0 {
		r.letGo()
		l.node.up.drained()
	}
	l.mu.Lock()
	l.reading = false
	if l.broken == nil {
		l.broken = err
	}
	l.mu.Unlock()
	l.wake.Signal()
}

// take gives the replies that have come whole to their calls.
func (r *reader) take(now int64) error {
	for r.scanned < len(r.buf) {
		n, whole, err := r.scan.next(r.buf[r.scanned:])
		r.scanned += n
		if err != nil {
			return err
		}
		if !whole {
			break
		}
		if err := r.reply(now); err != nil {
			return err
		}
		r.begin = r.scanned
	}
	if int64(r.scanned-r.start) > r.link.node.up.replyMax.Load() {
		r.over = true
	}
	return nil
}

// reply takes the reply that has been read.
func (r *reader) reply(now int64) error {
	l := r.link
	first := r.before+r.replies == 0
	if first && r.scan.outOfBand {
		r.start = r.scanned
		return nil
	}
	l.mu.Lock()
	if first {
		if l.flights.n == 0 {
			l.mu.Unlock()
			return errUnasked
		}
		r.before, r.replies = l.flights.at(0).before, max(1, l.flights.at(0).replies)
		r.refusal = r.refusal[:0]
	}
	if r.before > 0 {
		l.mu.Unlock()
		r.before--
		if reply := r.buf[r.begin:r.scanned]; reply[0] == '-' {
			r.refusal = append(r.refusal[:0], reply...)
		}
		r.start = r.scanned
		return nil
	}
	if r.replies--; r.replies > 0 {
		l.mu.Unlock()
		return nil
	}
	s := l.landed()
	l.mu.Unlock()
	r.landed = true
	l.node.figures.roundTrip.Add((now - s.at) / 1000)
	if s.call != nil {
		r.give(s.call)
	}
	r.start, r.over = r.scanned, false
	return nil
}

// landed takes the oldest call out of those that were sent, since its replies have come. The caller holds mu.
func (l *link) landed() sent {
	s := l.flights.pop()
	l.heard = true
	if s.call != nil {
		l.live--
	}
	if s.landing {
		l.writes--
	}
	l.closeStale()
	return s
}

// give gives a call its replies, unless they prove that it has not run and may be sent again.
func (r *reader) give(c *Call) {
	n := r.link.node
	c.Node = n.addr
	if r.over || int64(r.scanned-r.start) > n.up.replyMax.Load() {
		n.up.complete(c, nil, n.failure(TooLarge, ""))
		return
	}
	replies, last := r.buf[r.start:r.scanned], r.buf[r.begin:r.scanned]
	if last[0] == '-' && !c.internal {
		if again, line := verdict(replies, last); again != no {
			slot := c.Slot // once it is sent again, the call may be its owner's at any moment
			if n.sendAgain(c, again, line) {
				r.link.holdBack(slot, again)
				return
			}
		}
		if len(r.refusal) > 0 {
			replies, last = r.refusal, r.refusal // says why the script is not there
		}
	}
	if r.link.own && !c.internal {
		if last[0] == '-' && isRefusal(last) {
			n.refusedCall(last)
		} else {
			n.served()
		}
	}
	if r.held > 0 && last[0] != '-' {
		r.handOver(c)
		return
	}
	n.up.complete(c, replies, nil)
}

// handOver gives a call its replies with the memory that they are in, since they are large, and goes on in a new buffer.
func (r *reader) handOver(c *Call) {
	up := r.link.node.up
	replies, rest := r.buf[r.start:r.scanned:r.scanned], r.buf[r.scanned:]
	r.buf = append(make([]byte, 0, max(readSize, len(rest))), rest...)
	r.start, r.begin, r.scanned = 0, 0, 0
	held := r.held
	if r.held = 0; c.Keeps {
		c.held, c.Kept = held, true
		up.replies.pass(r, c)
		up.complete(c, replies, nil)
		return
	}
	up.complete(c, replies, nil)
	up.replies.release(r, held)
}

// makeRoom has room for more behind what has come of a reply, in a buffer that grows with what has come. It waits while replies take up too
// much in all, and reports false if the connection ends meanwhile.
func (r *reader) makeRoom() bool {
	if r.over {
		r.start, r.begin = r.scanned, r.scanned
	}
	if r.start > 0 {
		r.buf = append(r.buf[:0], r.buf[r.start:]...)
		r.begin -= r.start
		r.scanned -= r.start
		r.start = 0
	}
	if r.held > 0 && (r.over || len(r.buf) == 0) {
		r.letGo()
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
	size := max(2*len(r.buf), len(r.buf)+int(min(r.scan.bulk, replyMax))+lineSpare)
	for size > bufferKept && r.held < int64(size) {
		switch {
		case int64(len(r.buf))+r.scan.bulk > replyMax || !l.awaited():
			r.over = true
			return r.makeRoom()
		case up.hold(r, int64(size)-r.held):
			r.held = int64(size)
		default: // until others have let go of theirs; the node cannot be blamed meanwhile
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

// lineSpare is the room behind a long string for what follows it.
const lineSpare = 512

// holdPause is after how long it is looked again whether there is room for a reply.
const holdPause = time.Millisecond

// letGo goes on in a small buffer. Nothing of what is in the large one is needed.
func (r *reader) letGo() {
	r.link.node.up.replies.release(r, r.held)
	r.held = 0
	rest := r.buf[r.start:]
	r.buf = append(make([]byte, 0, max(readSize, len(rest))), rest...)
	r.begin -= r.start
	r.scanned -= r.start
	r.start = 0
}
