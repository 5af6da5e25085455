package limits

import (
	"container/heap"
	"math"
	"time"

	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/server/waitqueue"
	"headgate/store"
	"headgate/throttle"
)

// A call with WAIT that would be limited stands in the queue of the first key that limits it, in the order in which calls have come to the
// server. Who is first in a queue is asked anew when its key has changed, by whatever command, and when it could pass at the earliest; those
// behind it cost nothing meanwhile. A call over several keys that would pass where it stands, but is limited by another key, moves to that
// one's queue, at its arrival. It holds nothing while it stands in one: so nobody waits for each other, and who is exhausted himself keeps
// nobody from the limits that he shares with others.
//
// While somebody waits for a key, no other call of a limiter passes there before. Calls of no cost, and those that ask for what is theirs
// already, take nothing from anybody and do not wait.

const (
	// maxServed is how many calls of one queue are answered before others have their turn.
	maxServed = 64
	// waiterBytes is about what a waiting call takes up beside its arguments' bytes, and its queue if it is alone there.
	waiterBytes = 640
	// argumentBytes is what each argument takes up beside its bytes.
	argumentBytes = 24
)

// Waits are the calls of a server that wait. The executor's lock guards it.
type Waits struct {
	Now    int          // calls that wait
	Counts []WaitCounts // by algorithm: of the limit for which a call has waited last

	arrivals  uint64
	queues    queueHeap // all of them, the one first that is to be looked at first
	followed  uint64    // changes of the hash of policies that are known here
	overrides uint64    // that have come or gone, as far as is known here
	revision  uint64    // of the policies, those of the configuration included
	perKey    int       // wait-max-per-key
	perServer int       // wait-max-clients

	asking    limit          // the words of a call that is read anew
	reserving reserveOptions // those of a reservation that is answered
	turns     [maxPairs]turn
}

// keyQueue is the queue of one key.
type keyQueue struct {
	waitqueue.Queue
	heed  store.Heed // of the key's changes
	due   int64      // ns: when it is to be looked at
	slot  int        // in Waits.queues
	stale bool       // policies have changed, and some of its calls have not been read since

	blocked bool // a block of the key has begun since the queue was looked at
}

// waiter is a call that waits. It implements command.Waiter.
type waiter struct {
	place     waitqueue.Place
	limits    *Limits
	queue     *keyQueue // nil: in none any more
	client    *command.Client
	cmd       *command.Command
	args      [][]byte
	call      waitingCall
	pair      int // the one for whose key it stands in the queue
	algorithm int // of that pair's limit
	since     int64
	revision  uint64 // of the policies by which it was last read
	held      int    // bytes, about
	end       waitEnd
	took      int64 // ns, if it has passed
}

// waitingCall is what a command that may wait asks: of one limit, or of several.
type waitingCall interface {
	// read reads the context's arguments, or sends the error and returns false. The pairs are good until the next call is read.
	read(l *Limits, c *command.Ctx) (pairs []takenPair, ok bool)
	// pass charges the limits, none of which limits the call, and answers. The error is one for the client; then nothing was charged.
	pass(l *Limits, c *command.Ctx, pairs []takenPair) error
	// limited answers by what all limits have said to a look. The one at an index is the first that limits; -1: none does, and it was but a look.
	limited(l *Limits, c *command.Ctx, pairs []takenPair, limiting int, peek bool)
}

// turn is how a call stands to one of its limits, and to those who wait for that one's key.
type turn struct {
	limits bool  // the call does not pass now
	never  bool  // nor ever
	at     int64 // ns: it passes no earlier, that is certain
	shown  int64 // ns: when it is expected to pass, which may be later
	pace   waitqueue.Pace
	tat    int64 // that the limit has, if it is a rate
}

// newcomer is the arrival of a call that has just come.
const newcomer = math.MaxUint64

// concernsWaits reports whether a call has to look at those who wait, or may have to wait itself. If nobody does, that is one comparison.
func (l *Limits) concernsWaits(wait int64) bool { return wait > 0 || l.Waits.Now > 0 }

// answerInTurn answers a call of pairs that were read, or has it wait for so many ms, if that is not 0.
func (l *Limits) answerInTurn(c *command.Ctx, call waitingCall, pairs []takenPair, peek bool, wait int64) {
	if !c.MayBlock() {
		wait = 0
	}
	if peek {
		l.answerLimited(c, call, pairs, refusal{arrival: newcomer, peek: true, index: -1})
		return
	}
	limiting, err := l.askTurns(c, pairs, newcomer, false, wait > 0)
	if err == nil && limiting < 0 {
		err = call.pass(l, c, pairs)
	}
	deadline := c.NowNs + wait*int64(time.Millisecond)
	switch {
	case err != nil:
		errLimiter(c, err)
	case limiting < 0:
	case wait > 0 && l.hasRoom(c.DB, pairs[limiting].key) && !l.hopeless(len(pairs), deadline):
		l.wait(c, call, pairs, limiting, deadline)
	default:
		l.answerLimited(c, call, pairs, refusal{arrival: newcomer, holds: wait > 0, index: limiting})
	}
}

// askTurns asks the limits of all pairs without charging any, and those who wait for their keys. It returns the index of the first that does not
// let a call pass with this arrival, or -1. holds is true for a call that may wait.
func (l *Limits) askTurns(c *command.Ctx, pairs []takenPair, arrival uint64, peek, holds bool) (limiting int, err error) {
	limiting = -1
	for i := range pairs {
		t := &l.Waits.turns[i]
		if err := l.askTurn(c, &pairs[i], t, arrival, peek, holds); err != nil {
			return 0, err
		}
		if t.limits && limiting < 0 {
			limiting = i
		}
	}
	return limiting, nil
}

// askTurn asks the limit of one pair, and those who wait for its key.
func (l *Limits) askTurn(c *command.Ctx, p *takenPair, t *turn, arrival uint64, peek, holds bool) error {
	p.request.Call.Peek = peek || p.policy.Algorithm.Kind != limiter.Number
	if err := l.askPair(c, p); err != nil {
		return err
	}
	v := &p.verdict
	*t = turn{limits: v.Limited, at: c.NowNs, shown: c.NowNs}
	switch {
	case p.shadowed: // it passes, whoever waits
		return nil
	case p.blocked:
		t.never = v.RetryAfter == throttle.NoRetry || p.request.Call.Cost <= 0
		t.at = (c.Now + max(v.RetryAfter, 0)) * int64(time.Millisecond)
		t.shown = t.at
		return nil
	}
	retry := v.RetryAfter
	if p.begins > 0 {
		retry = p.retry // the key is blocked only when the call is answered
	}
	if p.policy.Limit < 0 || p.request.Call.Cost <= 0 {
		return nil
	}
	inside := l.Asked.Inside()
	switch t.pace, t.tat = l.Asked.Pace(holds); {
	case v.Limited && retry == throttle.NoRetry:
		t.never = true
	case t.pace.Charge > 0:
		t.at = t.pace.Pass(c.NowNs, t.tat)
		t.limits = t.at > c.NowNs
	case v.Limited:
		t.at = (c.Now + retry) * int64(time.Millisecond)
	}
	t.shown = t.at
	if v.Limited && p.write != throttle.Keep && !peek {
		_ = l.keepPair(c, p) // a counter gets the expiry that it lacks, or the call would wait for ever; another time if that fails now
	}
	if l.Waits.Now > 0 && !inside && !t.never {
		if q := queueOf(c.DB, p.key); q != nil && q.First().Arrival < arrival {
			t.limits = true
			if arrival == newcomer {
				l.standBehind(c, p, t, q)
			} else { // it is worked out where it stands
				t.shown = max(t.shown, q.First().At())
			}
		}
	}
	return nil
}

// standBehind works out when a call passes that has just come and stands behind all those who wait for a key.
func (l *Limits) standBehind(c *command.Ctx, p *takenPair, t *turn, q *keyQueue) {
	changed := q.stale || q.due <= c.NowNs || q.heed.Changed() // nobody has looked since
	if t.pace.Charge > 0 {
		behind, exact := q.Behind(t.pace, t.at)
		if t.shown = behind; exact && !changed {
			t.at = behind
		}
		return
	}
	if !changed {
		t.at = max(t.at, q.First().At())
	}
	all := p.request // of all those before and this one, or of the whole limit
	all.Call.Peek, all.Call.Cost = true, p.policy.Limit
	if q.Cost() < p.policy.Limit-p.request.Call.Cost {
		all.Call.Cost = p.request.Call.Cost + q.Cost()
	}
	if t.shown = t.at; l.Ask(c, p.key, p.policy, &all) == nil && l.Asked.Verdict.Limited {
		t.shown = max(t.shown, (c.Now+l.Asked.Verdict.RetryAfter)*int64(time.Millisecond))
	}
}

// hopeless reports whether it is certain that a call over so many limits, which have been asked, does not pass by a deadline.
func (l *Limits) hopeless(pairs int, deadline int64) bool {
	for i := range pairs {
		if t := &l.Waits.turns[i]; t.never || !t.pace.Open && t.at > deadline {
			return true
		}
	}
	return false
}

// hasRoom reports whether one more call may wait for the key.
func (l *Limits) hasRoom(db *store.DB, k store.Key) bool {
	if l.Waits.Now >= l.Waits.perServer {
		return false
	}
	q := queueOf(db, k)
	return q == nil || q.Len() < l.Waits.perKey
}

// refusal says how a call is answered that does not pass.
type refusal struct {
	arrival uint64 // of the call
	holds   bool   // it could have waited
	peek    bool   // it is but a look: it may be that nothing limits it
	index   int    // of a pair that limits it, whatever that says now; -1: none
	at      int64  // ns: that pair lets it pass no earlier
}

// answerLimited answers a call that does not pass, or is but a look, by a look at all of its limits.
func (l *Limits) answerLimited(c *command.Ctx, call waitingCall, pairs []takenPair, r refusal) {
	limiting, err := l.askTurns(c, pairs, r.arrival, true, r.holds)
	if err != nil {
		errLimiter(c, err)
		return
	}
	if r.index >= 0 {
		t := &l.Waits.turns[r.index]
		t.limits, t.shown = true, max(t.shown, r.at)
		if limiting < 0 || limiting > r.index {
			limiting = r.index
		}
	}
	for i := range pairs {
		if t, v := &l.Waits.turns[i], &pairs[i].verdict; t.limits {
			if v.Limited, v.WaitMs, v.ID, v.Draw = true, throttle.NoRetry, nil, false; !t.never {
				v.RetryAfter = max(v.RetryAfter, throttle.RetryMillis(max(t.shown-c.NowNs, 1)))
			}
		}
	}
	call.limited(l, c, pairs, limiting, r.peek)
}

// wait has a call wait for the pair at an index, until a deadline in ns.
func (l *Limits) wait(c *command.Ctx, call waitingCall, pairs []takenPair, limiting int, deadline int64) {
	ws := &l.Waits
	if ws.Now == 0 {
		ws.followed, ws.overrides = l.Keys.DB(0).FollowedChanges(), l.Keys.ReservedChanges()
	}
	w := &waiter{limits: l, client: c.Client, cmd: c.Cmd, args: command.CopyArgs(c.Args), call: call, since: c.NowNs, revision: ws.revision, held: waiterBytes}
	for _, a := range w.args {
		w.held += len(a) + argumentBytes
	}
	w.place = waitqueue.Place{Owner: w, Arrival: ws.arrivals, Deadline: deadline}
	ws.arrivals++
	ws.Now++
	l.enter(c.DB, pairs, limiting, w)
	c.Wait(w)
}

// enter puts a call into the queue of one of its keys.
func (l *Limits) enter(db *store.DB, pairs []takenPair, index int, w *waiter) {
	p, t := &pairs[index], &l.Waits.turns[index]
	q := queueOf(db, p.key)
	if q == nil {
		q = &keyQueue{due: math.MaxInt64}
		q.heed.By = q
		db.Heed(p.key, &q.heed)
		heap.Push(&l.Waits.queues, q)
	}
	w.queue, w.pair, w.algorithm = q, index, p.policy.Algorithm.Index()
	w.place.Pace, w.place.Cost = t.pace, p.request.Call.Cost
	q.Insert(&w.place, t.at, t.tat)
	l.lookAt(q, min(q.due, q.Look()))
}

// leave takes a call out of the queue that it stands in. passed is true if that is since it has passed.
func (l *Limits) leave(w *waiter, passed bool) {
	q := w.queue
	if q == nil {
		return
	}
	w.queue = nil
	front := q.First() == &w.place
	q.Remove(&w.place, passed)
	switch {
	case q.Len() == 0:
		q.heed.End()
		heap.Remove(&l.Waits.queues, q.slot)
	case front && !passed:
		l.lookAt(q, 0)
	}
}

// queueOf returns the queue of a key, or nil.
func queueOf(db *store.DB, k store.Key) *keyQueue {
	if h := db.Heeder(k); h != nil {
		return h.By.(*keyQueue)
	}
	return nil
}

// lookAt has a queue be looked at at a time in ns.
func (l *Limits) lookAt(q *keyQueue, due int64) {
	if q.due != due {
		q.due = due
		heap.Fix(&l.Waits.queues, q.slot)
	}
}

// Bytes implements command.Sized.
func (w *waiter) Bytes() int { return w.held }

// Call implements command.Waiter.
func (w *waiter) Call() (cmd *command.Command, args [][]byte) { return w.cmd, w.args }

// Awaits implements command.Waiter.
func (w *waiter) Awaits() (what string, until int64) {
	if w.queue != nil {
		what = w.queue.heed.Name()
	}
	return what, w.place.Deadline
}

// Over implements command.Waiter.
func (w *waiter) Over() {
	l := w.limits
	l.leave(w, w.end == waitPassed)
	l.Waits.Counts[w.algorithm].add(w.end, w.took)
	if l.Waits.Now--; l.Waits.Now == 0 {
		l.Keys.NextHeeded() // changes of which nobody needs to know any more are forgotten
	}
}

// Late implements command.Waiter.
func (w *waiter) Late(c *command.Ctx) { w.limits.refuse(c, w) }

// refuse answers a call that is not going to pass any more.
func (l *Limits) refuse(c *command.Ctx, w *waiter) {
	pairs, ok := w.call.read(l, c)
	if !ok {
		return
	}
	defer clear(pairs)
	l.answerLimited(c, w.call, pairs, refusal{arrival: w.place.Arrival, holds: true, index: w.pair, at: w.place.At()})
}

// queueHeap is a heap of queues, the one first that is to be looked at first.
type queueHeap []*keyQueue

// Len implements heap.Interface.
func (h queueHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h queueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

// Swap implements heap.Interface.
func (h queueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = i, j
}

// Push implements heap.Interface.
func (h *queueHeap) Push(x any) {
	q := x.(*keyQueue)
	q.slot = len(*h)
	*h = append(*h, q)
}

// Pop implements heap.Interface.
func (h *queueHeap) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return q
}
