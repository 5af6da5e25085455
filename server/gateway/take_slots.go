package gateway

import (
	"cmp"
	"sync/atomic"

	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/server/limiter/scripted"
	"headgate/server/limits"
	"headgate/server/upstream"
)

// slotsTake is RL.TAKE whose pairs lie in several slots, under upstream-take compensate. Each slot's pairs are charged by a script of their
// own, all slots at the same time. If one limits, or is not answered, the others give back what they were charged. What is not given back,
// since this process or the node has ended by then, stays charged: too little may pass, and never too much. So pairs that give something back
// themselves, by a negative cost, are only looked at until all others have passed.
type slotsTake struct {
	pairs  []limits.Pair
	peek   bool
	nowMs  int64
	parts  []*slotPart
	second bool         // the pairs that give back do so now
	left   atomic.Int32 // parts that have not been heard of
}

// slotPart is what lies in one slot, and is charged, or gives back.
type slotPart struct {
	takeCall
	of      *slotsTake
	at      []int // which of the pairs these are
	refunds bool  // their costs are negative
	up      upstream.Call
	failure *upstream.Failure
	kept    bool // what has been answered stands, though the part was asked once more
}

// takeFromSlots charges pairs of several slots.
func (g *Gateway) takeFromSlots(c *command.Ctx, pairs []limits.Pair, peek bool) {
	type place struct {
		slot    int
		refunds bool
	}
	t := &slotsTake{pairs: pairs, peek: peek, nowMs: c.Now}
	byPlace := map[place]*slotPart{}
	for i := range pairs {
		at := place{g.slotOfKey(pairs[i].Key), pairs[i].Request.Call.Cost < 0}
		p := byPlace[at]
		if p == nil {
			p = &slotPart{of: t, refunds: at.refunds}
			p.up.Slot = at.slot
			byPlace[at] = p
			t.parts = append(t.parts, p)
		}
		p.at, p.pairs = append(p.at, i), append(p.pairs, pairs[i])
	}
	k := g.newCall(c, t)
	size, user := 0, g.userOf(c.Client)
	for _, p := range t.parts {
		p.ask(peek || p.refunds)
		up := &p.up
		up.Proto, up.DB, up.User, up.Replies = k.up.Proto, int32(c.DB.Index()), user, 1
		up.Done = func(*upstream.Call) { p.parseReply(k) }
		if size += len(up.Request); len(up.Request) > 0 {
			up.Script = g.scriptOf(&p.take)
			t.left.Add(1)
		}
	}
	sent := t.left.Load() > 0
	if !sent {
		t.writeReply(k, c)
		g.release(k)
		return
	}
	g.exec.Defer(c, &k.Answer, size)
	for _, p := range t.parts {
		if len(p.up.Request) > 0 {
			g.Up.Send(&p.up)
		}
	}
}

// ask makes the part's request, unless no server is needed for it.
func (p *slotPart) ask(peek bool) {
	p.take.Peek, p.take.NowMs = peek, p.of.nowMs
	p.asked = p.take.Pairs(len(p.pairs))
	for i, pair := range p.asked {
		pair.Key, pair.Policy, pair.Request.Call.Cost = p.pairs[i].Key, p.pairs[i].Policy, p.pairs[i].Request.Call.Cost
	}
	if p.up.Request = p.take.Ask(p.up.Request[:0]); len(p.up.Request) == 0 {
		_, p.err = p.take.Answer(nil)
	}
}

// parseReply is called by the upstream with the reply of one part of k; after the last one those that give back do, or the answer is told.
func (p *slotPart) parseReply(k *call) {
	g, t := k.g, p.of
	if p.failure = p.up.Err; p.failure == nil {
		p.failure = unserved(&p.up)
	}
	if p.failure == nil {
		outcome, err := p.take.Answer(p.up.Reply)
		if p.err = err; outcome == scripted.Again {
			p.up.Request = p.take.Next(p.up.Request[:0])
			p.up.Script = g.scriptOf(&p.take)
			g.Counts.Retries.Add(1)
			g.Up.Send(&p.up)
			g.unflushed.Store(true)
			return
		}
	}
	if t.second && (p.failure != nil || p.err != nil || p.take.Limiting >= 0) {
		p.failure, p.err, p.kept = nil, nil, true
		g.Counts.NotGivenBack.Add(1)
	}
	if t.left.Add(-1) == 0 && !t.refund(g) {
		k.again = false
		g.mu.Lock()
		g.heard = append(g.heard, &k.up)
		g.mu.Unlock()
		g.some.Store(true)
	}
}

// refund has the pairs that give back do so, now that all others have passed, and reports whether there are any.
func (t *slotsTake) refund(g *Gateway) bool {
	if t.peek || t.second {
		return false
	}
	var refunds []*slotPart
	for _, p := range t.parts {
		switch {
		case p.failure != nil, p.err != nil, p.take.Limiting >= 0:
			return false
		case p.refunds && len(p.up.Request) > 0:
			refunds = append(refunds, p)
		}
	}
	t.second = true
	t.left.Store(int32(len(refunds)))
	for _, p := range refunds {
		p.verdicts()
		p.ask(false)
		p.up.Script = g.scriptOf(&p.take)
		g.Up.Send(&p.up)
		g.unflushed.Store(true)
	}
	return len(refunds) > 0
}

func (t *slotsTake) parseReply(*call, []byte) bool        { return false } // its parts take theirs
func (t *slotsTake) writeFailure(k *call, c *command.Ctx) { t.writeReply(k, c) }
func (p *slotPart) verdicts() {
	for i, pair := range p.asked {
		p.of.pairs[p.at[i]].Verdict = pair.Call.Verdict
	}
}

func (t *slotsTake) writeReply(k *call, c *command.Ctx) {
	g := k.g
	for _, p := range t.parts {
		if p.failure == nil && p.take.Disagrees() {
			k.key = append(k.key[:0], p.pairs[0].Key...)
			g.disagreed(k)
		}
	}
	for _, p := range t.parts {
		if p.failure == nil && p.err != nil {
			t.giveBack(k, nil)
			sendError(c, p.err)
			return
		}
	}
	modes, failure := t.fallBacks(g, c)
	if failure != nil {
		t.giveBack(k, nil)
		sendFailure(c, failure)
		return
	}
	for _, p := range t.parts {
		if p.failure == nil && !p.kept {
			p.verdicts()
		}
	}
	limiting, err := t.decide(g, c, modes)
	switch {
	case err != nil:
		t.giveBack(k, nil)
		sendError(c, err)
		return
	case limiting >= 0 && !t.peek:
		t.giveBack(k, (*slotPart).verdicts)
	case !t.peek && !t.second:
		t.countRefundsNotMade(g)
	}
	g.sendPairs(c, t.pairs, limiting, t.peek)
}

// fallBacks are what becomes of the pairs, by their index, whose slots have not answered; failure is the error if one of them has that.
func (t *slotsTake) fallBacks(g *Gateway, c *command.Ctx) (modes map[int]limiter.Failure, failure *upstream.Failure) {
	var unanswered []int
	for _, p := range t.parts {
		if p.failure != nil {
			unanswered = append(unanswered, p.at...)
			failure = cmp.Or(failure, p.failure)
		}
	}
	modes, ok := g.modesOf(c, t.pairs, unanswered)
	if ok {
		failure = nil
	}
	return modes, failure
}

// decide decides about the pairs whose slots have not answered, and returns which pair limits first, or -1. What is decided here is charged
// only if none limits.
func (t *slotsTake) decide(g *Gateway, c *command.Ctx, modes map[int]limiter.Failure) (limiting int, err error) {
	for _, look := range []bool{true, false} {
		limiting = -1
		for i := range t.pairs {
			if mode, failed := modes[i]; failed {
				if err := g.pairWithoutNode(c, &t.pairs[i], mode, look); err != nil {
					return -1, err
				}
			}
			if t.pairs[i].Policy.Limit >= 0 && t.pairs[i].Verdict.Limited && limiting < 0 {
				limiting = i
			}
		}
		if limiting >= 0 || t.peek {
			break
		}
	}
	return limiting, nil
}

// countRefundsNotMade counts the parts that have given nothing back since others were not answered, and passed all the same.
func (t *slotsTake) countRefundsNotMade(g *Gateway) {
	for _, p := range t.parts {
		if p.refunds && p.failure == nil && len(p.up.Request) > 0 {
			g.Counts.NotGivenBack.Add(1)
		}
	}
}

// giveBack has the parts that were charged give that back, and answer as a look would have been; then looked is called with each, if it is
// not nil. Nobody waits for it.
func (t *slotsTake) giveBack(k *call, looked func(*slotPart)) {
	g := k.g
	for _, p := range t.parts {
		if t.peek || p.failure != nil || p.err != nil {
			continue
		}
		if request := p.take.AskGiveBack(nil); len(request) > 0 {
			g.Up.Send(&upstream.Call{
				Slot: p.up.Slot, Proto: p.up.Proto, DB: p.up.DB, User: p.up.User, Request: request, Replies: 1, Script: g.scriptOf(&p.take),
				Done: func(up *upstream.Call) {
					if up.Err != nil || p.take.AnswerGiveBack(up.Reply) != nil {
						g.Counts.NotGivenBack.Add(1)
					}
				},
			})
			g.unflushed.Store(true)
		}
		if looked != nil && p.take.Limiting < 0 {
			p.take.Look()
			looked(p)
		}
	}
}
