package limits

import (
	"container/heap"
	"math"
	"time"

	"headgate/server/command"
	"headgate/server/waitqueue"
)

// ServeWaits implements exec.Waits: it looks at the queues whose keys or policies have changed, and at those whose time has come.
func (l *Limits) ServeWaits(c *command.Ctx) (next int64) {
	ws := &l.Waits
	if ws.Now == 0 {
		return math.MaxInt64
	}
	if followed, overrides := l.Keys.DB(0).FollowedChanges(), l.Keys.ReservedChanges(); followed != ws.followed || overrides != ws.overrides {
		ws.followed, ws.overrides = followed, overrides
		l.policiesChanged()
	}
	for start := time.Now(); ; {
		for h := l.Keys.NextHeeded(); h != nil; h = l.Keys.NextHeeded() {
			l.lookAt(h.By.(*keyQueue), 0)
		}
		switch {
		case len(ws.queues) == 0:
			return math.MaxInt64
		case ws.queues[0].due > c.NowNs:
			return ws.queues[0].due
		case time.Since(start) > command.SliceTime:
			return c.NowNs
		}
		l.advance(c, ws.queues[0])
	}
}

// policiesChanged has all who wait be read anew, since policies may say something else now.
func (l *Limits) policiesChanged() {
	l.Waits.revision++
	for _, q := range l.Waits.queues {
		q.stale, q.due = true, 0
	}
	heap.Init(&l.Waits.queues)
}

// advance lets those in front pass who can, and answers those who no longer can in time, but no more than so many at once.
func (l *Limits) advance(c *command.Ctx, q *keyQueue) {
	left := maxServed
	q.blocked = false
	if q.stale && !l.readAnew(c, q, &left) {
		l.yield(c, q)
		return
	}
	for ; left > 0 && q.Len() > 0; left-- {
		w := q.First().Owner.(*waiter)
		if w.client.Conn.Closing() { // it is forgotten soon, and is to be charged nothing until then
			l.leave(w, false)
			continue
		}
		t := l.try(c, w)
		if w.queue != q {
			continue
		}
		if !q.NeedsPlan(c.NowNs, t.at, t.tat) || q.Plan(c.NowNs, t.at, t.tat, func(p *waitqueue.Place) bool {
			l.end(c, p.Owner.(*waiter), l.refuse)
			left--
			return left > 0
		}) {
			if q.blocked { // by one of those that were answered
				break
			}
			l.lookAt(q, min(t.at, q.Soonest()))
			return
		}
	}
	l.yield(c, q)
}

// yield has a queue that is not at its end be looked at again soon, but after others that are to be looked at now.
func (l *Limits) yield(c *command.Ctx, q *keyQueue) {
	if q.Len() > 0 {
		l.lookAt(q, c.NowNs)
	}
}

// try lets a call pass that stands in front, if all of its limits let it. If another limits it now it moves to that one's queue. Otherwise it
// stays, or is answered: that it is limited, if it has become impossible, or what is wrong with it now. How it stands to the limit for which it
// has waited is returned.
func (l *Limits) try(c *command.Ctx, w *waiter) (t turn) {
	c.Serve(command.Serving{Client: w.client, Waiter: w, Try: func(c *command.Ctx) (answered bool) {
		pairs, ok := w.call.read(l, c)
		if !ok {
			return true
		}
		defer clear(pairs)
		own := &l.Waits.turns[w.pair]
		if err := l.askTurn(c, &pairs[w.pair], own, w.place.Arrival, false, true); err != nil {
			errLimiter(c, err)
			return true
		}
		if t = *own; t.limits && !t.never {
			return false
		}
		limiting, err := l.askTurns(c, pairs, w.place.Arrival, false, true)
		switch {
		case err != nil:
			errLimiter(c, err)
		case limiting < 0:
			l.letPass(c, w, pairs)
		case l.hopeless(len(pairs), w.place.Deadline):
			w.end = waitLimited
			l.answerLimited(c, w.call, pairs, refusal{arrival: w.place.Arrival, holds: true, index: limiting})
		default:
			l.leave(w, false)
			l.enter(c.DB, pairs, limiting, w)
			return false
		}
		return true
	}})
	return t
}

// letPass charges the limits of a call that has waited, and answers it.
func (l *Limits) letPass(c *command.Ctx, w *waiter, pairs []takenPair) {
	if err := w.call.pass(l, c, pairs); err != nil {
		errLimiter(c, err)
		return
	}
	w.end, w.took = waitPassed, c.NowNs-w.since
}

// end answers a call that is not going to pass any more.
func (l *Limits) end(c *command.Ctx, w *waiter, answer func(c *command.Ctx, w *waiter)) {
	if w.client.Conn.Closing() {
		l.leave(w, false)
		return
	}
	w.end = waitLimited
	c.Serve(command.Serving{Client: w.client, Waiter: w, Try: func(c *command.Ctx) bool {
		answer(c, w)
		return true
	}})
}

// readAnew reads the calls of a queue by the policies as they are now, and answers those whose cost has become impossible. It reports whether
// all were read before so many were.
func (l *Limits) readAnew(c *command.Ctx, q *keyQueue, left *int) bool {
	for p := q.First(); p != nil; {
		w := p.Owner.(*waiter)
		p = p.Next()
		if w.revision == l.Waits.revision {
			continue
		}
		if *left == 0 {
			return false
		}
		*left--
		w.revision = l.Waits.revision
		l.reread(c, w)
	}
	q.stale = false
	q.Unplan()
	return true
}

// reread notes what a call asks of its limit by the policies as they are now.
func (l *Limits) reread(c *command.Ctx, w *waiter) {
	c.Serve(command.Serving{Client: w.client, Waiter: w, Try: func(c *command.Ctx) (answered bool) {
		if w.client.Conn.Closing() {
			return false
		}
		pairs, ok := w.call.read(l, c)
		if !ok {
			return true
		}
		defer clear(pairs)
		if _, err := l.askTurns(c, pairs, w.place.Arrival, true, true); err != nil {
			errLimiter(c, err)
			return true
		}
		for i := range pairs {
			if l.Waits.turns[i].never {
				w.end = waitLimited
				l.answerLimited(c, w.call, pairs, refusal{arrival: w.place.Arrival, holds: true, index: i})
				return true
			}
		}
		w.place.Pace, w.algorithm = l.Waits.turns[w.pair].pace, pairs[w.pair].policy.Algorithm.Index()
		return false
	}})
}
