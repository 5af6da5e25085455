package netpoll

import (
	"slices"
	"time"
)

// Whose turn it is: those that the last iteration had no time for, those that have something new, and behind them those that are left over
// or slow. The middle of a long command is read with what is left over, or everybody would wait while a crowd sends such.

const (
	againMax  = 2 << 20                // bytes read in one iteration from connections that are left over, and as many from new ones,
	againTime = 2 * time.Millisecond   // and for how long: memory that is written to for the first time costs more than the bytes
	meetTime  = 2 * time.Millisecond   // the same for new ones, among whom may be some that ask for little
	turnsMax  = 256                    // connections of each kind that have their turn in one iteration: each costs something even if the time does not suffice for it
	longTurn  = 10 * time.Millisecond  // a turn that takes longer is followed by a pause of the slow connections, while others have something to do:
	pauseMax  = 500 * time.Millisecond // for as long as the turn took, and at most for this. So they have no more than about half of the time
)

// batch has a worker run the commands of the connections that are ready, and sees to it that those which have more to do are looked at in
// the next iteration: first those that it has not come to, or they would never have their turn beside others that always have more.
func (l *Loop) batch(w Worker) {
	if len(l.ready) == 0 {
		return
	}
	served := w.Batch(l.ready)
	for _, c := range l.ready[served:] {
		c.PassOver()
	}
	l.carryPassed()
	for _, c := range l.ready {
		c.listed = false
		if c.passed {
			continue
		}
		l.pauseAfter(c)
		if c.carried = false; c.postponed || c.unread {
			l.carry(c)
		}
	}
}

// queue is connections that are left over, the one that has waited longest first.
type queue struct {
	list  []*Conn
	taken []*Conn // of the last take
}

// take removes so many from the front, at most. What it returns is valid until the next take, and to be cleared after use.
func (q *queue) take(most int) []*Conn {
	n := min(most, len(q.list))
	q.taken = append(q.taken[:0], q.list[:n]...)
	q.list = slices.Delete(q.list, 0, n)
	return q.taken
}

// toFront moves those behind the first n, which are new, before these.
func (q *queue) toFront(n int) {
	if n == 0 || n == len(q.list) {
		return
	}
	added := append(q.taken[:0], q.list[n:]...)
	copy(q.list[len(added):], q.list[:n])
	copy(q.list, added)
	clear(added)
	q.taken = added[:0]
}

// carryPassed has the connections that a batch has not come to looked at in the next iteration: before others of their queue, since they were taken
// from its front.
func (l *Loop) carryPassed() {
	before := len(l.behind.list)
	for _, c := range l.ready {
		if c.passed {
			l.carry(c)
		}
	}
	l.behind.toFront(before)
}

// carry has a connection looked at in the next iteration: or, when its socket is full and more replies wait behind that, once its peer
// has taken some, or after a pause. So replies pile up slowly for a peer that does not read, and not at all for one that is merely slow.
func (l *Loop) carry(c *Conn) {
	if c.waits {
		return
	}
	c.waits = true
	if !c.waiting || !c.more || c.behind-c.rested < stallBytes {
		l.enqueue(c)
		return
	}
	if len(l.stalled) == 0 {
		l.stallEnd = time.Now().Add(stallPause)
	}
	c.stalled, c.rested = true, c.behind
	l.stalled = append(l.stalled, c)
}

// enqueue puts a connection that is left over into its queue.
func (l *Loop) enqueue(c *Conn) {
	q := &l.unread
	switch {
	case c.passed && !c.carried:
		q = &l.passed
	case c.postponed:
		q = &l.behind
	}
	q.list = append(q.list, c)
}

// pauseAfter has the slow connections wait after the turn of one that was much too long. While some wait already, that is not for longer
// than one pause may be: or who comes again and again would keep them waiting for ever.
func (l *Loop) pauseAfter(c *Conn) {
	if c.took > longTurn {
		now := time.Now()
		if len(l.paused) == 0 {
			l.pauseLast, l.others = now.Add(pauseMax), false
		}
		if l.pauseEnd = now.Add(c.took); l.pauseEnd.After(l.pauseLast) {
			l.pauseEnd = l.pauseLast
		}
	}
	c.took = 0
}

// pause reports whether the slow connections wait, for the sake of others that have something to do.
func (l *Loop) pause() bool {
	if l.pauseEnd.IsZero() || l.stopping.Load() {
		return false
	}
	l.others = l.others || len(l.ready) > 0
	return l.others
}

// joinLate completes a batch with those that come after others, but for the slow ones while there is a pause.
func (l *Loop) joinLate() {
	if !l.pause() {
		l.ready = append(l.ready, l.late...)
		return
	}
	for _, c := range l.late {
		if !c.slow {
			l.ready = append(l.ready, c)
			continue
		}
		c.PassOver()
		c.listed, c.waits = false, true
		l.paused = append(l.paused, c)
	}
}

// endPause has the slow connections looked at when the pause is over, before others that come after those that have nothing left over.
func (l *Loop) endPause() {
	if l.pauseEnd.IsZero() || time.Now().Before(l.pauseEnd) {
		return
	}
	l.pauseEnd = time.Time{}
	l.behind.list = slices.Insert(l.behind.list, 0, l.paused...)
	clear(l.paused)
	l.paused = l.paused[:0]
}

// endStall has a connection looked at whose peer takes replies again.
func (l *Loop) endStall(c *Conn) {
	if c.stalled {
		c.stalled = false
		l.enqueue(c)
	}
}

// endStalls has all connections looked at that have rested for long enough.
func (l *Loop) endStalls() {
	if len(l.stalled) == 0 || time.Now().Before(l.stallEnd) {
		return
	}
	for _, c := range l.stalled {
		l.endStall(c)
	}
	clear(l.stalled)
	l.stalled = l.stalled[:0]
}

// list puts a connection with new input into the batch: behind all others if it is slow or was left over, and then only if nobody waits for that in
// the queue.
func (l *Loop) list(c *Conn) {
	switch {
	case c.listed:
		return
	case c.carried || c.slow:
		c.carried = true
		if len(l.behind.list) > 0 || len(l.late) >= turnsMax {
			c.PassOver()
			l.carry(c)
			return
		}
		l.late = append(l.late, c)
	default:
		l.ready = append(l.ready, c)
	}
	c.listed = true
}

// reading is how much of an iteration has gone into reading from connections of one kind: those that are left over, or new ones.
type reading struct {
	begin time.Time // zero: nothing yet
	until uint64    // of Traffic.BytesIn
	count int       // connections
}

// over reports whether the next one has to wait for the next iteration. read is Traffic.BytesIn.
func (r *reading) over(read uint64, limit time.Duration) bool {
	if r.begin.IsZero() {
		*r = reading{begin: time.Now(), until: read + againMax}
	} else if r.count == turnsMax || read > r.until || time.Since(r.begin) > limit {
		return true
	}
	r.count++
	return false
}

// readFresh reads from the new connections that the last iteration had no time to read from.
func (l *Loop) readFresh() {
	read := 0
	for _, c := range l.fresh {
		if !c.dead.Load() && l.meeting.over(l.moved.BytesIn, meetTime) {
			break
		}
		read++
		switch c.waits = false; {
		case c.closing:
		case c.postponed: // it was resumed meanwhile, and passed over
			l.carry(c)
		default:
			l.read(c, true)
		}
	}
	l.fresh = slices.Delete(l.fresh, 0, read)
}

// readAgain goes on with connections that are left over: with all that come before what is new, with the first of those that come after it, and with the
// first of which more is to be read.
func (l *Loop) readAgain() {
	goOn := l.passed.take(len(l.passed.list))
	for _, c := range goOn {
		l.goOn(c)
	}
	clear(goOn)
	goOn = l.behind.take(turnsMax - l.looked)
	l.looked += len(goOn)
	for _, c := range goOn {
		c.carried = true
		l.goOn(c)
	}
	clear(goOn)
	goOn = l.unread.take(turnsMax)
	for i, c := range goOn {
		if !c.postponed && !c.dead.Load() && l.reading.over(l.moved.BytesIn, againTime) {
			l.unread.list = slices.Insert(l.unread.list, 0, goOn[i:]...)
			break
		}
		l.goOn(c)
	}
	clear(goOn)
}

// goOn goes on with a connection that was left over. If it has commands left to run it is not read: what its peer has sent waits in its socket.
func (l *Loop) goOn(c *Conn) {
	c.waits = false
	switch {
	case c.dead.Load() || c.listed || c.closing:
	case c.kept:
		l.carry(c)
	case c.postponed:
		late := c.carried || !c.passed
		c.carried, c.postponed, c.passed, c.listed = late, false, false, true
		if late {
			l.late = append(l.late, c)
		} else {
			l.ready = append(l.ready, c)
		}
	default:
		c.carried = true
		l.read(c, true)
		c.carried = c.listed || c.postponed
	}
}
