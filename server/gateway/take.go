package gateway

import (
	"bytes"
	"slices"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/limiter/scripted"
	"headgate/server/limits"
)

// takeCall is RL.TAKE whose pairs lie in one slot, so that one script charges all of them or none.
type takeCall struct {
	take  scripted.Take
	asked []*scripted.Pair // take's
	pairs []limits.Pair    // in the same order
	keys  []byte           // of the pairs
	err   error
}

const (
	// keptPairs is how many pairs a call keeps the memory of for its next use.
	keptPairs = 64
	// keptTake bounds what was found of them likewise, in bytes.
	keptTake = 16 << 10
)

// hold has the call be about pairs, whose keys it copies.
func (t *takeCall) hold(pairs []limits.Pair) {
	t.keys, t.pairs, t.err = t.keys[:0], append(t.pairs[:0], pairs...), nil
	for i := range pairs {
		t.keys = append(t.keys, pairs[i].Key...)
	}
	at := 0
	for i := range t.pairs {
		end := at + len(t.pairs[i].Key)
		t.pairs[i].Key, at = t.keys[at:end:end], end
	}
}

// forget lets go of what the call pointed to, and reports whether it may be used again.
func (t *takeCall) forget() bool {
	clear(t.pairs)
	for _, p := range t.asked {
		p.Key, p.Policy = nil, nil
	}
	return cap(t.pairs) <= keptPairs && cap(t.keys) <= keptBytes && t.take.Kept() <= keptTake
}

// Take implements limits.Remote.
func (g *Gateway) Take(c *command.Ctx, pairs []limits.Pair, peek bool) {
	if g.failing != nil {
		g.fallBackPairs(c, pairs, peek)
		return
	}
	for i := range pairs {
		if word := pairs[i].Policy.HomeOnly(); word != "" {
			c.Err(limits.NotServedByRedis(word))
			return
		}
	}
	if g.leaseTake(c, pairs, peek) {
		return
	}
	g.strictPairs(pairs)
	if _, ok := g.slotOf(c); ok {
		if k := g.newTake(c, pairs, peek); k != nil {
			if g.collecting != nil {
				g.collecting.undecided = k.taken.take.Loads()
			}
			g.send(c, k)
		}
		return
	}
	if c.Cfg.UpstreamTake != config.TakeCompensate || g.collecting != nil {
		c.Err(errCrossSlot)
		return
	}
	copied := slices.Clone(pairs)
	for i := range copied {
		copied[i].Key = bytes.Clone(copied[i].Key)
	}
	g.takeFromSlots(c, copied, peek)
}

// newTake returns the call of one slot's pairs, or nil if it has been answered because no server is needed.
func (g *Gateway) newTake(c *command.Ctx, pairs []limits.Pair, peek bool) *call {
	k := g.newCall(c, nil)
	if k.taken == nil {
		k.taken = &takeCall{}
	}
	t := k.taken
	k.handler = t
	t.hold(pairs)
	k.up.Slot = g.slotOfKey(t.pairs[0].Key)
	t.take.Peek, t.take.Inline, t.take.NowMs = peek, g.collecting != nil, c.Now
	t.asked = t.take.Pairs(len(t.pairs))
	for i, p := range t.asked {
		p.Key, p.Policy, p.Request.Call.Cost = t.pairs[i].Key, t.pairs[i].Policy, t.pairs[i].Request.Call.Cost
	}
	k.up.Request = t.take.Ask(k.up.Request)
	if len(k.up.Request) == 0 {
		_, t.err = t.take.Answer(nil)
		t.writeReply(k, c)
		g.release(k)
		return nil
	}
	k.up.Script = g.scriptOf(&t.take)
	return k
}

func (t *takeCall) parseReply(k *call, reply []byte) (again bool) {
	outcome, err := t.take.Answer(reply)
	if t.err = err; outcome != scripted.Again {
		return false
	}
	k.up.Request = t.take.Next(k.up.Request[:0])
	k.up.Script = k.g.scriptOf(&t.take)
	return true
}

func (t *takeCall) writeReply(k *call, c *command.Ctx) {
	if t.take.Disagrees() {
		k.g.disagreed(k)
	}
	if t.err != nil {
		sendError(c, t.err)
		return
	}
	for i, p := range t.asked {
		t.pairs[i].Verdict = p.Call.Verdict
	}
	k.g.sendPairs(c, t.pairs, t.take.Limiting, t.take.Peek)
}

// sendPairs counts and sends the answer of RL.TAKE.
func (g *Gateway) sendPairs(c *command.Ctx, pairs []limits.Pair, limiting int, peek bool) {
	for i := range pairs {
		if p := &pairs[i]; p.Shown > 0 {
			p.Verdict.Limit = p.Shown
		}
	}
	if !peek {
		g.limits.CountPairs(c, pairs, limiting >= 0)
	}
	limits.SendPairs(c.Reply, pairs, limiting)
}

func (t *takeCall) writeFailure(k *call, c *command.Ctx) {
	k.g.failing = k
	k.g.fallBackPairs(c, t.pairs, t.take.Peek)
	k.g.failing = nil
}

// fallBackPairs answers RL.TAKE without the upstream: each pair by its policy's mode, and an error if one has that.
func (g *Gateway) fallBackPairs(c *command.Ctx, pairs []limits.Pair, peek bool) {
	unanswered := make([]int, len(pairs))
	for i := range unanswered {
		unanswered[i] = i
	}
	modes, ok := g.modesOf(c, pairs, unanswered)
	if !ok {
		sendFailure(c, g.failing.failure)
		return
	}
	limiting := -1
	ask := func(look bool) bool {
		for i := range pairs {
			p := &pairs[i]
			if err := g.pairWithoutNode(c, p, modes[i], look); err != nil {
				sendError(c, err)
				return false
			}
			if p.Verdict.Limited && limiting < 0 {
				limiting = i
			}
		}
		return true
	}
	if !ask(true) || limiting < 0 && !peek && !ask(false) {
		return
	}
	g.sendPairs(c, pairs, limiting, peek)
}

// pairWithoutNode decides about one pair without the upstream; with look it asks what a charge would be answered, and makes none.
func (g *Gateway) pairWithoutNode(c *command.Ctx, p *limits.Pair, mode limiter.Failure, look bool) (err error) {
	if p.Policy.Limit < 0 || p.Policy.Shadow { // a policy in the shadow limits nobody
		mode = limiter.FailOpen
	}
	r := p.Request
	r.Call.Peek = r.Call.Peek || look
	p.Verdict, err = g.withoutNode(c, p.Key, p.Policy, &r, mode)
	if p.Verdict.ID != nil { // it may be in memory that the next pair uses
		p.Verdict.ID = append([]byte(nil), p.Verdict.ID...)
	}
	return err
}
