package upstream

import (
	"errors"
	"net"
	"slices"
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
}

// read is the reader goroutine of a connection.
func (l *link) read(conn net.Conn) {
	r := &reader{link: l, buf: make([]byte, 0, readSize)}
	var err error
	for err == nil {
		r.makeRoom()
		var n int
		n, err = conn.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		if wrong := r.take(); wrong != nil {
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
	l.mu.Lock()
	l.reading = false
	if l.broken == nil {
		l.broken = err
	}
	l.mu.Unlock()
	l.wake.Signal()
}

// take gives the replies that have come whole to their calls.
func (r *reader) take() error {
	now := Now()
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
		if again, line := verdict(replies, last); again != no && n.sendAgain(c, again, line) {
			return
		}
		if len(r.refusal) > 0 {
			replies = r.refusal // says why the script is not there
		}
	}
	n.up.complete(c, replies, nil)
}

// makeRoom has room for more behind what has come of a reply, in a buffer that grows with what has come.
func (r *reader) makeRoom() {
	if r.over {
		r.start, r.begin = r.scanned, r.scanned
	}
	if r.start > 0 {
		rest, kept := r.buf[r.start:], r.buf[:0]
		if len(rest) == 0 && cap(kept) > bufferKept {
			kept = make([]byte, 0, readSize)
		}
		r.buf = append(kept, rest...)
		r.begin -= r.start
		r.scanned -= r.start
		r.start = 0
	}
	if len(r.buf) == cap(r.buf) {
		r.buf = slices.Grow(r.buf, len(r.buf))
	}
}
