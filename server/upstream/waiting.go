package upstream

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Pauses before a call is sent again: the first one, and the longest, or that part of the timeout if it is more, so that a call whose timeout is
// long is not sent too often before it is over.
const (
	pauseFirst = time.Millisecond
	pauseMax   = 16 * time.Millisecond
	pauseShare = 16
)

// pauseAfter is how long a call waits at most that was sent, or has waited, so often; and at least half as long.
func pauseAfter(attempts int, timeout time.Duration) time.Duration {
	return min(pauseFirst<<min(attempts, 30), max(pauseMax, timeout/pauseShare))
}

// wait has a call sent again after a pause, or lets it fail if there is no time for one. Flush must follow.
func (u *Upstream) wait(c *Call, failure *Failure) {
	pause := pauseAfter(int(c.attempts), time.Duration(u.timeout.Load()))
	due := Now() + int64(pause/2) + rand.Int64N(int64(pause/2))
	c.attempts++
	c.asking = false
	if c.attempts > attemptsMax || !u.waiting.push(c, due, failure) {
		u.refuse(c, failure)
	}
}

// waitingCalls are calls that are sent later, for a reason that passes. A client's calls for a key are to run in the order in which it made them:
// so calls for a slot of which some wait come behind these, in the order in which they were first sent, and so do calls for a slot
// that has just become another node's, behind those that the former one has still to answer.
type waitingCalls struct {
	up     *Upstream
	some   atomic.Bool // slots or former is not empty
	mu     sync.Mutex
	slots  map[int]*waitingSlot
	former map[int]*node        // whose slots these were, until all calls that it has been sent for them are answered
	owed   map[*node]*owedSlots // what the former ones had still to answer a moment ago
	timer  *time.Timer
	armed  int64 // when the timer fires, by Now
	closed bool
}

// waitingSlot is the calls that wait for one slot.
type waitingSlot struct {
	calls   []*Call // by number
	due     int64   // when they are sent, by Now
	sending bool    // some that were here are being sent
}

func (w *waitingCalls) init(u *Upstream) {
	w.up, w.armed = u, never
	w.slots, w.former, w.owed = map[int]*waitingSlot{}, map[int]*node{}, map[*node]*owedSlots{}
	w.timer = time.AfterFunc(never, w.run)
}

// push has a call wait until a time. It reports false after close, and if the call would be due after its deadline.
func (w *waitingCalls) push(c *Call, due int64, failure *Failure) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.slots[c.Slot]
	if q != nil {
		due = max(due, q.due)
	}
	if w.closed || due >= c.Deadline {
		return false
	}
	w.add(q, c, due, failure)
	return true
}

// add has a call wait in its place among those for its slot, which are q, nil if there are none. The caller holds mu.
func (w *waitingCalls) add(q *waitingSlot, c *Call, due int64, failure *Failure) {
	if q == nil {
		q = &waitingSlot{}
		w.slots[c.Slot] = q
	}
	at, _ := slices.BinarySearchFunc(q.calls, c, func(a, b *Call) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	q.calls = slices.Insert(q.calls, at, c)
	q.due = max(q.due, due)
	c.Err = failure
	w.some.Store(true)
	w.arm(q.due)
}

// joined has a new call wait if others for its slot do, and reports whether it does.
func (w *waitingCalls) joined(c *Call) bool {
	if !w.some.Load() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.slots[c.Slot]
	due := int64(0)
	if q == nil {
		now := Now()
		if !w.turns(c.Slot, now) {
			return false
		}
		due = now + int64(pauseFirst)
	}
	w.add(q, c, due, nil)
	return true
}

// mayPass reports whether a call may be sent although others for its slot wait: all of these are later ones.
func (w *waitingCalls) mayPass(c *Call) bool {
	if !w.some.Load() {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.slots[c.Slot]
	return q == nil || !q.sending && (len(q.calls) == 0 || q.calls[0].number > c.number)
}

// turn tells that a slot is about to become another node's.
func (w *waitingCalls) turn(slot int, from *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.former[slot] = from
	delete(w.owed, from) // calls for this slot may not be in it
	w.some.Store(true)
	w.arm(Now() + int64(pauseMax))
}

// turns reports whether a slot's former node has still to answer calls for it. Looking at all that it has been sent for each slot apart would
// take long after a failover, which moves thousands: one look at a time, now, is for all of them. The caller holds mu.
func (w *waitingCalls) turns(slot int, now int64) bool {
	from := w.former[slot]
	if from == nil {
		return false
	}
	owed := w.owed[from]
	switch {
	case owed == nil, now-owed.at > owedFor, !owed.has(slot) && owed.at != now:
		owed = &owedSlots{at: now}
		from.owes(owed)
		w.owed[from] = owed
	}
	if owed.has(slot) {
		return true
	}
	delete(w.former, slot)
	return false
}

// owedFor is for how long an answer that has been seen to be owed is taken to be: calls that wait for it wait for pauseFirst in any case.
const owedFor = int64(pauseFirst)

// owedSlots are those for which a node had still to answer calls at a time.
type owedSlots struct {
	at    int64                // by Now
	all   bool                 // nobody knows for which
	slots [Slots/64 + 1]uint64 // a bit for each, from anySlot on
}

func (o *owedSlots) add(c *Call) {
	if !c.internal {
		bit := c.Slot - anySlot
		o.slots[bit/64] |= 1 << (bit % 64)
	}
}

func (o *owedSlots) has(slot int) bool {
	bit := slot - anySlot
	return o.all || o.slots[bit/64]&(1<<(bit%64)) != 0
}

// arm has the timer fire by a time. The caller holds mu.
func (w *waitingCalls) arm(at int64) {
	if at < w.armed {
		w.armed = at
		w.timer.Reset(time.Duration(at - Now()))
	}
}

// run sends the calls that are due, those of a slot in their order.
func (w *waitingCalls) run() {
	var sending []*waitingSlot
	var due []*Call
	w.mu.Lock()
	w.armed = never
	now := Now()
	for slot, q := range w.slots {
		switch {
		case q.sending:
		case q.due > now:
			w.arm(q.due)
		case w.turns(slot, now):
			q.due = now + int64(pauseFirst)
			w.arm(q.due)
			q.calls = slices.DeleteFunc(q.calls, func(c *Call) bool {
				late := c.Deadline <= q.due
				if late {
					w.up.refuse(c, c.late())
				}
				return late
			})
		default:
			due = append(due, q.calls...)
			q.calls, q.sending = nil, true
			sending = append(sending, q)
		}
	}
	w.mu.Unlock()
	for _, c := range due {
		if c.Deadline <= now {
			w.up.refuse(c, c.late())
		} else {
			w.up.route(c)
		}
	}
	w.sent(sending)
	w.up.Flush()
}

// late is why a call fails whose time has passed while it waited.
func (c *Call) late() *Failure {
	if c.Err != nil {
		return c.Err
	}
	return &Failure{Kind: Unreachable, Detail: "earlier commands for its slot were not answered in time"}
}

// sent looks again at slots whose calls have been sent, and forgets what is over.
func (w *waitingCalls) sent(sending []*waitingSlot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := Now()
	for _, q := range sending {
		q.sending = false
	}
	for slot, q := range w.slots {
		if len(q.calls) > 0 {
			w.arm(max(q.due, now))
		} else if !q.sending {
			delete(w.slots, slot)
		}
	}
	for slot := range w.former {
		if w.turns(slot, now) {
			w.arm(now + int64(pauseMax))
		}
	}
	if len(w.former) == 0 {
		clear(w.owed)
	}
	w.some.Store(len(w.slots)+len(w.former) > 0)
}

// close lets all that wait fail.
func (w *waitingCalls) close() {
	w.mu.Lock()
	w.closed = true
	slots := w.slots
	w.slots, w.former, w.owed = map[int]*waitingSlot{}, map[int]*node{}, map[*node]*owedSlots{}
	w.some.Store(false)
	w.mu.Unlock()
	for _, q := range slots {
		for _, c := range q.calls {
			w.up.refuse(c, &Failure{Kind: Unreachable, Detail: "the upstream is closed"})
		}
	}
}
