package gateway

import (
	"headgate/server/command"
	"headgate/server/limits"
	"headgate/store"
	"headgate/throttle"
)

// plainLimit is a call of CL.THROTTLE or GCRA, unless its answer turns out to be unusual: then it goes on as an askedLimit.
type plainLimit struct{}

// askPlain asks about the key at args[1], or returns false if that is an askedLimit's.
func (g *Gateway) askPlain(c *command.Ctx, cell *throttle.GCRA, quantity int64, form limits.Form) bool {
	k := g.newCall(c, plainLimit{})
	words, ok := g.plain.Ask(&k.plain, k.up.Request, c.Args[1], cell, quantity)
	if !ok {
		g.release(k)
		return false
	}
	key := c.Key(1)
	k.hash, k.form = key.Hash, form
	k.up.Slot, k.up.Request, k.up.Script, k.up.Headless = g.slotOfKey(key.Name), words, g.plainScript, true
	g.send(c, k)
	return true
}

func (plainLimit) parseReply(k *call, reply []byte) (again bool) {
	if k.plain.Answer(k.up.Common, reply) {
		return false
	}
	reply = k.wholeReply()
	k.handler, k.limit = askedLimit{}, &limitCall{kind: byGCRA}
	l := k.limit
	cell, quantity := k.plain.Cell()
	k.key = append(k.key[:0], k.plain.Key(k.up.Request)...)
	l.gcra, l.quantity, l.shown = *cell, quantity, cell.Limit()
	l.question.AskGCRA(nil, k.key, l.gcra, quantity)
	return askedLimit{}.parseReply(k, reply)
}

func (plainLimit) writeReply(k *call, c *command.Ctx) {
	var v throttle.Verdict
	k.form.Write(&v, &k.plain.Decision)
	if _, quantity := k.plain.Cell(); quantity > 0 {
		k.g.limits.CountKey(c, store.Key{Name: k.plain.Key(k.up.Request), Hash: k.hash}, k.g.limits.GCRA(), &v)
	}
	limits.SendNumbers(c.Reply, &v)
}

func (plainLimit) writeFailure(k *call, c *command.Ctx) {
	cell, quantity := k.plain.Cell()
	k.g.failing = k
	k.g.fallBackGCRA(c, k.plain.Key(k.up.Request), cell, quantity, k.form)
	k.g.failing = nil
}
