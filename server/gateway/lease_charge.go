package gateway

import (
	"cmp"
	"errors"
	"strings"

	"headgate/internal/respcmd"
	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/server/limiter/scripted"
	"headgate/server/limits"
	"headgate/throttle"
)

// leaseCharge is a call that charges a lease, and the call that waits for it, if there is one.
type leaseCharge struct{}

// leaseCall is what a call knows of the lease that it charges.
type leaseCall struct {
	limit   *leasedLimit
	grant   *scripted.Grant
	sent    int64        // by the clock of leases
	cost    int64        // of the call that waits, or 0
	pair    *limits.Pair // of RL.TAKE, if that waits
	plain   []byte       // the call as another headgate takes it; empty: it goes by a script, too
	why     string       // no lease can be charged, so that the call is asked for by itself; "" means that one can
	forgets int          // of limit, when it was sent
	ended   bool         // what has become of the charge is in the book
}

// releaseLease has a call charge no lease any more.
func (g *Gateway) releaseLease(k *call) {
	l := k.lease
	k.lease = nil
	if l.limit != nil {
		g.returns.Done()
	}
	if l.forget(&g.leases); len(g.leases.spare) < spareGrants {
		g.leases.spare = append(g.leases.spare, l)
	}
}

// forget lets go of what was charged.
func (l *leaseCall) forget(b *leaseBook) {
	if l.limit != nil && !l.ended { // it has failed, and its client has gone or was answered otherwise
		l.limit.fail(b, cmp.Or(l.why, "the last charge has failed"))
	}
	if l.grant != nil && len(b.grants) < spareGrants && l.grant.Kept() <= keptBytes {
		b.grants = append(b.grants, l.grant)
	}
	plain := l.plain[:0]
	if cap(plain) > keptBytes {
		plain = nil
	}
	*l = leaseCall{plain: plain}
}

// chargeThrottle charges a lease and CL.THROTTLE or GCRA together, or returns false if that does not pay.
func (g *Gateway) chargeThrottle(c *command.Ctx, e *leasedLimit, now, quantity int64, form limits.Form) bool {
	var sizes [throttle.MaxLeaseSizes]int64
	n := e.lease.Sizes(&e.terms, now, quantity, &sizes)
	if n == 0 {
		return false
	}
	k := g.newCharge(c, c.Args[1], byGCRA)
	k.limit.gcra, k.limit.quantity, k.form = e.cell, quantity, form
	return g.charge(c, k, e, now, quantity, sizes[:n])
}

// chargePolicy is chargeThrottle for a limit of a key. pair is RL.TAKE's, or nil.
func (g *Gateway) chargePolicy(c *command.Ctx, key []byte, e *leasedLimit, now int64, r *limiter.Request, pair *limits.Pair) bool {
	var sizes [throttle.MaxLeaseSizes]int64
	n := 0
	if e.terms.Leases() && r.Call.Cost <= e.terms.MaxCost() {
		n = e.lease.Sizes(&e.terms, now, r.Call.Cost, &sizes)
	}
	if n == 0 {
		return false
	}
	k := g.newCharge(c, key, byPolicy)
	k.limit.policy, k.limit.request = *e.policy, *r
	if pair != nil {
		own := *pair
		own.Key = k.key // the client's goes with its command
		k.lease.pair = &own
	}
	return g.charge(c, k, e, now, r.Call.Cost, sizes[:n])
}

// renew charges the next lease in the background.
func (g *Gateway) renew(c *command.Ctx, key []byte, e *leasedLimit, now int64) {
	var sizes [throttle.MaxLeaseSizes]int64
	if n := e.lease.Sizes(&e.terms, now, 0, &sizes); n > 0 {
		g.charge(c, g.newCharge(c, key, byPolicy), e, now, 0, sizes[:n])
	}
}

// newCharge returns a call about a key.
func (g *Gateway) newCharge(c *command.Ctx, key []byte, kind limitKind) *call {
	k := g.newCall(c, leaseCharge{})
	g.setKey(k, key)
	g.addLimit(k, kind)
	k.limit.question.Inline, k.limit.question.NowMs = false, c.Now
	b := &g.leases
	if last := len(b.spare) - 1; last >= 0 {
		k.lease, b.spare = b.spare[last], b.spare[:last]
	} else {
		k.lease = &leaseCall{}
	}
	return k
}

// charge sends a charge of one of these sizes, for a call of so much or, with 0, for none.
func (g *Gateway) charge(c *command.Ctx, k *call, e *leasedLimit, now, cost int64, sizes []int64) bool {
	b := &g.leases
	l := k.lease
	l.limit, l.sent, l.cost, l.plain, l.why, l.ended = e, now, cost, l.plain[:0], "", false
	k.limit.shown = e.shown()
	l.forgets = e.forgets
	g.returns.Add(1) // what comes of it may have to be returned
	if last := len(b.grants) - 1; last >= 0 {
		l.grant, b.grants = b.grants[last], b.grants[:last]
	} else {
		l.grant = &scripted.Grant{}
	}
	l.grant.NowMs = c.Now
	if e.policy == nil {
		k.up.Request = l.grant.AskGCRA(k.up.Request, k.key, e.charged.cell, sizes)
	} else {
		k.up.Request = l.grant.Ask(k.up.Request, k.key, &e.charged.policy, sizes)
	}
	if len(k.up.Request) == 0 {
		e.fail(b, "no script can charge so much")
		l.ended = true
		g.release(k)
		return false
	}
	if cost > 0 && !b.options.Strict && g.Up.Headgate() {
		l.plain = respcmd.Append(l.plain, c.Args...)
	}
	b.Counts.Charges++
	e.underWay = true
	k.up.Script = g.scriptOf(l.grant)
	if cost > 0 {
		g.exec.Defer(c, &k.Answer, len(k.up.Request))
	} else {
		k.quiet = true
	}
	g.Up.Send(&k.up)
	return true
}

// unclear is why no lease is charged to what only a server itself decides about.
const unclear = "its state is none that a script can charge a lease to"

func (leaseCharge) parseReply(k *call, reply []byte) (again bool) {
	l := k.lease
	if l.why != "" {
		return askedLimit{}.parseReply(k, reply)
	}
	err := l.grant.Answer(reply)
	k.limit.err = err
	switch {
	case l.grant.Unclear:
		l.why = unclear
	case lacksRight(err):
		l.why = err.Error()
	}
	if l.why == "" || k.quiet {
		return false
	}
	k.limit.err = nil
	if len(l.plain) > 0 && !l.grant.Unclear {
		k.handler, k.up.Script = passedLimit{}, nil
		k.up.Request = append(k.up.Request[:0], l.plain...)
		return true
	}
	q := &k.limit.question
	if l.limit.policy == nil {
		k.up.Request = q.AskGCRA(k.up.Request[:0], k.key, l.limit.charged.cell, k.limit.quantity)
	} else {
		k.up.Request = q.Ask(k.up.Request[:0], k.key, &l.limit.charged.policy, &k.limit.request)
	}
	k.up.Script = k.g.scriptOf(q)
	return true
}

// lacksRight reports whether an error says that the gateway's user may not do upstream what leases take: calls without one may take less.
func lacksRight(err error) bool {
	var text limiter.Error
	return errors.As(err, &text) && strings.HasPrefix(string(text), noRight[1:]+scripted.OfUpstream)
}

func (leaseCharge) writeReply(k *call, c *command.Ctx) {
	g, l := k.g, k.lease
	b, e, grant := &g.leases, l.limit, l.grant
	b.now = b.clock()
	l.ended = true
	if l.why != "" {
		e.fail(b, l.why)
		switch {
		case k.quiet:
		case l.pair == nil || k.limit.err != nil:
			askedLimit{}.writeReply(k, c)
		default:
			l.sendPair(k, c, k.limit.question.Call.Verdict)
		}
		return
	}
	if grant.Disagrees() {
		g.disagreed(k)
	}
	if k.limit.err != nil {
		e.fail(b, k.limit.err.Error())
		if !k.quiet {
			sendError(c, k.limit.err)
		}
		return
	}
	e.underWay, e.problem = false, ""
	if l.forgets == e.forgets { // or else RL.RESET has come first, or another upstream
		l.note(b)
	}
	if e.closed { // meanwhile
		g.returnAll(e)
	}
	if !k.quiet {
		l.answer(k, c)
	}
}

// tellNobody is writeReply for a call whose answer nobody waits for.
func (g *Gateway) tellNobody(k *call) {
	if k.failure != nil {
		k.handler.writeFailure(k, &g.ctx)
	} else {
		k.handler.writeReply(k, &g.ctx)
	}
	g.release(k)
}

// note enters what was charged, or refused, into the book.
func (l *leaseCall) note(b *leaseBook) {
	e, grant := l.limit, l.grant
	d := grant.Decision
	if e.policy != nil {
		v := &grant.Call.Verdict
		d.Remaining, d.RetryAfter, d.ResetAfter = v.Remaining, v.RetryAfter, v.ResetAfter*nsPerMs
		if d.RetryAfter >= 0 {
			d.RetryAfter *= nsPerMs
		}
	}
	if !grant.Passed {
		e.lease.Refused(&e.terms, throttle.LeaseRefusal{
			Cost: grant.Cost, Ahead: l.cost == 0, Heard: b.now, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter, Remaining: d.Remaining,
		})
		return
	}
	units := grant.Cost - l.cost
	b.Counts.Leased += uint64(units)
	e.lease.Granted(&e.terms, throttle.LeaseGrant{
		Units: units, Sent: l.sent, Heard: b.now, ChargedAt: grant.ChargedAt, WindowEnd: grant.WindowEnd, Remaining: d.Remaining, ResetAfter: d.ResetAfter,
	})
}

const nsPerMs = 1_000_000

// answer answers the call that has waited. What was charged with it remains for others here.
func (l *leaseCall) answer(k *call, c *command.Ctx) {
	g, grant := k.g, l.grant
	rest := int64(0)
	if grant.Passed {
		rest = grant.Cost - l.cost
	}
	if l.limit.policy == nil {
		d := grant.Decision
		d.Limit, d.Remaining = l.limit.shown(), d.Remaining+rest
		var v throttle.Verdict
		k.form.Write(&v, &d)
		g.limits.Count(c, k.key, g.limits.GCRA(), &v)
		limits.SendNumbers(c.Reply, &v)
		return
	}
	v := grant.Call.Verdict
	v.Remaining += rest
	if l.pair != nil {
		l.sendPair(k, c, v)
		return
	}
	v.Limit = l.limit.shown()
	g.limits.Count(c, k.key, l.limit.policy.Algorithm, &v.Verdict)
	limits.SendVerdict(c.Reply, limiter.Nothing, &v)
}

// sendPair answers RL.TAKE.
func (l *leaseCall) sendPair(k *call, c *command.Ctx, v limiter.Verdict) {
	v.Limit = l.limit.shown()
	l.pair.Verdict = v
	k.g.sendPair(c, *l.pair)
}

// writeFailure is called for a charge without an answer. It may have been made all the same: then what it has charged is nobody's.
func (leaseCharge) writeFailure(k *call, c *command.Ctx) {
	k.lease.ended = true
	k.g.leases.now = k.g.leases.clock()
	k.lease.limit.fail(&k.g.leases, k.failure.Error())
	switch {
	case k.quiet:
	case k.lease.pair != nil:
		k.g.failing = k
		k.g.fallBackPairs(c, []limits.Pair{*k.lease.pair}, false)
		k.g.failing = nil
	default:
		askedLimit{}.writeFailure(k, c)
	}
}
