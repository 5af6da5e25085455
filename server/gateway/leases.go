package gateway

import (
	"context"
	"time"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/limiter/scripted"
	"headgate/server/limits"
	"headgate/server/upstream"
	"headgate/store"
	"headgate/throttle"
)

// Leases: the calls of a hot key are decided here, at once, by units that were charged upstream for many calls together. What that guarantees,
// and why, is throttle.QuotaLease's to say; here is the book of the keys that have leases, and how a call comes to one.
//
// A key gets into the book by a second call within a second. As long as its demand does not pay for a lease its calls are asked one by one, as
// without the book. When it does, the next call that has to be asked charges a lease together with itself (leaseCharge), and later leases are
// charged in the background. What is left of leases is given back when they end, if it can be, and when the process does.

const (
	// maxLeasedLimits is how many limits of keys the book has at most; calls of more are asked one by one.
	maxLeasedLimits = 10_000
	// maxLimitsOfKey is how many different limits of one key the book has.
	maxLimitsOfKey = 4
	// leasesIdle is after how long without a call a key leaves the book.
	leasesIdle = 2 * time.Second
	// leasesEvery is how often leases that have ended, and keys that have gone cold, are looked for.
	leasesEvery = 100 * time.Millisecond
	// leasesPerHold is how many are looked at under one hold of the executor's lock.
	leasesPerHold = 256
	// decisionsPerReading is after how many decisions by leases within a batch the clock is read again.
	decisionsPerReading = 64
	// latelyFound is how many limits are found again without a look into the book; a power of two.
	latelyFound = 256
	// recentCalls is how many calls of keys that are not in the book are remembered, to see a second one.
	recentCalls = 1 << 13
	// recentTime is for how long.
	recentTime = time.Second
	// spareGrants is how many charges' memory is kept for the next ones.
	spareGrants = 256
)

// leaseBook is what the gateway knows of leases. The executor's lock guards it.
type leaseBook struct {
	on       bool
	upstream string // cfg.Upstream: what is held was charged there
	options  throttle.LeaseOptions
	byKey    map[leasedKey]*leasedLimit
	all      []*leasedLimit
	lately   [latelyFound]*leasedLimit // by the hash of their keys: those that were found last
	hand     int                       // of the sweep, in all
	recent   []recentCall
	grants   []*scripted.Grant // that are not in use
	spare    []*leaseCall      // likewise

	clock     func() int64 // bootTime
	batch     int64        // Ctx.NowNs of the batch in which the clock was read
	decisions int          // since then
	now       int64        // what it showed

	strict strictLimit // of the last call

	Counts LeaseCounts
}

// LeaseCounts are what is counted of leases. The executor's lock guards them.
type LeaseCounts struct {
	Local    uint64 // calls that were decided here
	Asked    uint64 // calls of limits that may have leases and were asked for upstream
	Charges  uint64 // for leases
	Refused  uint64 // calls among Local that were limited, since upstream had limited one that was not larger
	Leased   uint64 // units
	Spent    uint64
	Returned uint64 // units of returns that were answered; of rates less comes back, by what has been paid off
	Expired  uint64 // units that were not spent until their lease ended, those that were given back then included
	Lost     uint64 // returns that were not answered
}

// leasedKey is a key in the book.
type leasedKey struct {
	db   int
	name string
}

// recentCall is a call of a key that is not in the book.
type recentCall struct {
	hash uint64
	at   int64
}

// leasedLimit is a limit of a key that is in the book.
type leasedLimit struct {
	key   leasedKey
	next  *leasedLimit // another limit of the same key
	place int          // in leaseBook.all
	hash  uint64       // of the key, once it was found

	policy  *limiter.Policy // nil: it is CL.THROTTLE's or GCRA's
	cell    throttle.GCRA
	charged chargedLimit // as it is charged

	terms    throttle.LeaseTerms
	lease    throttle.QuotaLease
	used     int64  // when it was called last
	underWay bool   // a charge is
	closed   bool   // it is in the book no more
	forgets  int    // how often what was charged before has come to mean nothing
	large    bool   // the last call's cost was above what a lease may be
	problem  string // why the last charge came to nothing
}

// shown is the limit that answers show.
func (e *leasedLimit) shown() int64 {
	if e.policy != nil {
		return e.policy.Limit
	}
	return e.cell.Limit()
}

// fail notes why a charge has come to nothing.
func (e *leasedLimit) fail(b *leaseBook, why string) {
	e.underWay, e.problem = false, why
	e.lease.Failed(&e.terms, b.now)
}

// chargedLimit is a limit by which is charged: under upstream-lease-strict it is smaller than the one that was called.
type chargedLimit struct {
	policy limiter.Policy
	cell   throttle.GCRA
}

// strictLimit is the smaller limit that was made of the last one.
type strictLimit struct {
	policy limiter.Policy
	cell   throttle.GCRA
	chargedLimit
}

// apply takes a configuration into use. Leases by another one are given back.
func (b *leaseBook) apply(g *Gateway, cfg *config.Config) {
	o := throttle.LeaseOptions{Overshoot: cfg.UpstreamLeaseOvershoot, Max: int64(cfg.UpstreamLeaseMax), Strict: cfg.UpstreamLeaseStrict}
	moves := b.upstream != cfg.Upstream
	if b.on == cfg.UpstreamLease && b.options == o && !moves {
		return
	}
	b.on, b.options, b.upstream = cfg.UpstreamLease, o, cfg.Upstream
	if b.clock == nil {
		b.clock = bootTime
	}
	if moves && len(b.all) > 0 {
		g.leaveUpstream()
	}
	g.closeLeases()
	b.byKey, b.recent, b.strict = nil, nil, strictLimit{}
}

// leaveUpstream gives back what is held while the upstream still is the one that has charged it. Charges under way there are no leases elsewhere.
func (g *Gateway) leaveUpstream() {
	for _, e := range g.leases.all {
		e.forgets++
	}
	g.closeLeases()
	g.Up.Flush()
}

// read returns the time for a decision.
func (b *leaseBook) read(c *command.Ctx) int64 {
	if b.decisions++; b.batch != c.NowNs || b.decisions > decisionsPerReading {
		b.batch, b.decisions = c.NowNs, 0
		b.now = b.clock()
	}
	return b.now
}

// mayLease reports whether the context's call may be decided by a lease. Those of a transaction go upstream together, and those of users who have
// connections of their own have their rights there.
func (g *Gateway) mayLease(c *command.Ctx, cost int64) bool {
	return cost > 0 && g.collecting == nil && (len(g.users) == 0 || g.userOf(c.Client) == nil)
}

// find returns the first of the limits of a key that are in the book, or nil.
func (b *leaseBook) find(db int, k store.Key) *leasedLimit {
	lately := &b.lately[k.Hash%latelyFound]
	if e := *lately; e != nil && e.key.db == db && e.key.name == string(k.Name) {
		return e
	}
	e := b.byKey[leasedKey{db, string(k.Name)}]
	if e != nil {
		e.hash, *lately = k.Hash, e
	}
	return e
}

// enter makes an entry for a key, if it was called a short time ago, or returns nil.
func (b *leaseBook) enter(c *command.Ctx, k store.Key, now int64) *leasedLimit {
	if b.byKey == nil {
		b.byKey, b.recent = map[leasedKey]*leasedLimit{}, make([]recentCall, recentCalls)
	}
	hash := k.Hash + uint64(c.DB.Index())
	r := &b.recent[hash%recentCalls]
	if again := r.hash == hash && now-r.at < int64(recentTime); !again || len(b.all) >= maxLeasedLimits {
		*r = recentCall{hash, now}
		return nil
	}
	key := leasedKey{c.DB.Index(), string(k.Name)}
	e := &leasedLimit{key: key, next: b.byKey[key], place: len(b.all)}
	n := 1
	for other := e.next; other != nil; other = other.next {
		if n++; n > maxLimitsOfKey {
			return nil
		}
	}
	b.byKey[key] = e
	b.all = append(b.all, e)
	b.lately[k.Hash%latelyFound] = nil
	return e
}

// remove takes an entry out.
func (b *leaseBook) remove(e *leasedLimit) {
	e.closed = true
	if lately := &b.lately[e.hash%latelyFound]; *lately == e {
		*lately = nil
	}
	last := len(b.all) - 1
	b.all[e.place], b.all[last].place = b.all[last], e.place
	b.all[last] = nil
	b.all = b.all[:last]
	first := b.byKey[e.key]
	switch {
	case first == e && e.next == nil:
		delete(b.byKey, e.key)
	case first == e:
		b.byKey[e.key] = e.next
	default:
		for first.next != e {
			first = first.next
		}
		first.next = e.next
	}
}

// leaseThrottle answers CL.THROTTLE or GCRA by a lease, or charges one together with the call, and reports whether it has done either.
func (g *Gateway) leaseThrottle(c *command.Ctx, cell *throttle.GCRA, quantity int64, form limits.Form) bool {
	b := &g.leases
	if !b.on || !g.mayLease(c, quantity) {
		return false
	}
	now := b.read(c)
	k := c.Key(1)
	e := b.find(c.DB.Index(), k)
	for e != nil && (e.policy != nil || e.cell != *cell) {
		e = e.next
	}
	if e == nil {
		terms := cell.LeaseTerms(b.options)
		if e = b.enter(c, k, now); e == nil {
			b.Counts.Asked++
			return false
		}
		e.cell, e.terms = *cell, terms
		e.charged.cell, _ = cell.WithLimit(max(terms.Capacity, 0)) // it is not above the limit, so there is no error
	}
	answer := g.byLease(e, now, quantity)
	if answer == throttle.LeaseAsk {
		return g.chargeThrottle(c, e, now, quantity, form)
	}
	var d throttle.Decision
	var v throttle.Verdict
	e.lease.VerdictTo(&d, now, answer, cell.Limit())
	form.Write(&v, &d)
	g.limits.CountKey(c, k, g.limits.GCRA(), &v)
	limits.SendNumbers(c.Reply, &v)
	if e.lease.Renews(&e.terms, now) {
		g.renew(c, c.Args[1], e, now)
	}
	return true
}

// leasePolicy is leaseThrottle for a limit.
func (g *Gateway) leasePolicy(c *command.Ctx, p *limiter.Policy, r *limiter.Request) bool {
	if !g.leases.on || r.Call.Peek {
		return false
	}
	k := c.Key(1)
	e, now := g.leasedPolicy(c, k, p, r.Call.Cost)
	if e == nil {
		return false
	}
	answer := g.byLease(e, now, r.Call.Cost)
	if answer == throttle.LeaseAsk {
		return g.chargePolicy(c, c.Args[1], e, now, r, nil)
	}
	var v throttle.Verdict
	e.verdictTo(&v, now, answer)
	g.limits.CountKey(c, k, p.Algorithm, &v)
	limits.SendNumbers(c.Reply, &v)
	if e.lease.Renews(&e.terms, now) {
		g.renew(c, c.Args[1], e, now)
	}
	return true
}

// leaseTake is leaseThrottle for RL.TAKE, which may have a lease if it is about one key. The policy may say whether.
func (g *Gateway) leaseTake(c *command.Ctx, pairs []limits.Pair, peek bool) bool {
	p := &pairs[0]
	if len(pairs) != 1 || peek || p.Policy.Leasing == limiter.LeaseNo || p.Policy.Leasing == limiter.LeaseUnsaid && !g.leases.on {
		return false
	}
	e, now := g.leasedPolicy(c, g.core.Keys.Key(p.Key), p.Policy, p.Request.Call.Cost)
	if e == nil {
		return false
	}
	answer := g.byLease(e, now, p.Request.Call.Cost)
	if answer == throttle.LeaseAsk {
		return g.chargePolicy(c, p.Key, e, now, &p.Request, p)
	}
	p.Verdict = limiter.Verdict{}
	e.verdictTo(&p.Verdict.Verdict, now, answer)
	g.sendPair(c, *p)
	if e.lease.Renews(&e.terms, now) {
		g.renew(c, p.Key, e, now)
	}
	return true
}

// sendPair counts and sends the answer of RL.TAKE about one key.
func (g *Gateway) sendPair(c *command.Ctx, p limits.Pair) {
	limiting := -1
	if p.Verdict.Limited {
		limiting = 0
	}
	g.sendPairs(c, []limits.Pair{p}, limiting, false)
}

// leasedPolicy returns the entry of a limit of a key, and the time, or nil if there is none.
func (g *Gateway) leasedPolicy(c *command.Ctx, k store.Key, p *limiter.Policy, cost int64) (e *leasedLimit, now int64) {
	if !g.mayLease(c, cost) || !scripted.MayLease(p.Algorithm) {
		return nil, 0
	}
	b := &g.leases
	now = b.read(c)
	e = b.find(c.DB.Index(), k)
	for e != nil && (e.policy == nil || !e.policy.SameLimit(p)) {
		e = e.next
	}
	if e != nil {
		return e, now
	}
	if e = b.enter(c, k, now); e == nil {
		b.Counts.Asked++
		return nil, 0
	}
	own := *p
	e.policy, e.terms = &own, p.LeaseTerms(b.options)
	e.charged.policy, _ = p.WithLimit(max(e.terms.Capacity, 0)) // it is not above the limit, so there is no error
	return e, now
}

// verdictTo is the answer of a lease to a call of a limit.
func (e *leasedLimit) verdictTo(v *throttle.Verdict, now int64, answer throttle.LeaseAnswer) {
	var d throttle.Decision
	e.lease.VerdictTo(&d, now, answer, e.policy.Limit)
	v.Limited, v.Limit, v.Remaining = d.Limited, d.Limit, d.Remaining
	v.RetryAfter, v.ResetAfter = throttle.RetryMillis(d.RetryAfter), throttle.Millis(d.ResetAfter)
}

// byLease decides a call, if a lease can.
func (g *Gateway) byLease(e *leasedLimit, now, cost int64) throttle.LeaseAnswer {
	n := &g.leases.Counts
	e.used = now
	if !e.terms.Leases() || cost > e.terms.MaxCost() {
		e.large = true
		n.Asked++
		return throttle.LeaseAsk
	}
	e.large = false
	answer := e.lease.Decide(&e.terms, now, cost)
	switch answer {
	case throttle.LeaseSpent:
		n.Local++
		n.Spent += uint64(cost)
	case throttle.LeaseRefused:
		n.Local++
		n.Refused++
	default:
		n.Asked++
	}
	return answer
}

// strictThrottle returns the limit by which CL.THROTTLE and GCRA are charged, whether or not there are leases here: other gateways may have some.
func (g *Gateway) strictThrottle(cell *throttle.GCRA) *throttle.GCRA {
	s := &g.leases.strict
	if !g.leases.options.Strict {
		return cell
	}
	if s.cell != *cell {
		terms := cell.LeaseTerms(g.leases.options)
		s.cell, s.chargedLimit.cell = *cell, *cell
		if terms.Capacity >= 1 {
			s.chargedLimit.cell, _ = cell.WithLimit(terms.Capacity)
		}
	}
	return &s.chargedLimit.cell
}

// strictPairs has RL.TAKE charge what its limits are charged by.
func (g *Gateway) strictPairs(pairs []limits.Pair) {
	for i := range pairs {
		p := &pairs[i]
		if charged := g.strictPolicy(p.Policy); charged != p.Policy {
			own := *charged
			p.Shown, p.Policy = p.Policy.Limit, &own
		}
	}
}

// strictPolicy returns the limit by which a limit is charged.
func (g *Gateway) strictPolicy(p *limiter.Policy) *limiter.Policy {
	s := &g.leases.strict
	if !g.leases.options.Strict || !scripted.MayLease(p.Algorithm) {
		return p
	}
	if s.policy.Algorithm == nil || !s.policy.SameLimit(p) {
		terms := p.LeaseTerms(g.leases.options)
		s.policy, s.chargedLimit.policy = *p, *p
		if terms.Capacity >= 1 {
			s.chargedLimit.policy, _ = p.WithLimit(terms.Capacity)
		}
	}
	return &s.chargedLimit.policy
}

// Forget implements limits.Remote. What is held of the keys is not given back: that would be to a state that begins anew.
func (g *Gateway) Forget(c *command.Ctx) {
	for _, name := range c.Args[1:] {
		for e := g.leases.byKey[leasedKey{c.DB.Index(), string(name)}]; e != nil; e = e.next {
			e.lease = throttle.QuotaLease{}
			e.forgets++
		}
	}
}

// returnLease gives back what is held of a limit, and returns how many units.
func (g *Gateway) returnLease(e *leasedLimit) (units int64) {
	for _, back := range e.lease.Return(&e.terms, g.leases.now) {
		units += back.Units
		g.giveBack(e, back)
	}
	return units
}

// returnAll is returnLease, also for what was not spent of leases that have ended.
func (g *Gateway) returnAll(e *leasedLimit) {
	g.returnLease(e)
	g.giveBack(e, e.lease.Ended(&e.terms, g.leases.now))
}

// giveBack gives back what was not spent of a lease. Nobody waits for it.
func (g *Gateway) giveBack(e *leasedLimit, back throttle.LeaseReturn) {
	if back.Units <= 0 {
		return
	}
	n := &g.leases.Counts
	name := []byte(e.key.name)
	var ask scripted.Grant
	var p *limiter.Policy
	if e.policy != nil {
		p = &e.charged.policy
	}
	request := ask.AskReturn(nil, name, p, e.charged.cell, back)
	g.returns.Add(1)
	g.Up.Send(&upstream.Call{
		Slot: g.slotOfKey(name), Proto: 2, DB: int32(e.key.db), Request: request, Replies: 1, Script: g.scriptOf(&ask),
		Done: func(up *upstream.Call) {
			g.core.Lock()
			defer g.core.Unlock()
			defer g.returns.Done() // under the lock, as is Add
			if up.Err != nil || ask.AnswerReturn(up.Reply) != nil {
				n.Lost++
			} else {
				n.Returned += uint64(back.Units)
			}
		},
	})
	g.unflushed.Store(true)
}

// closeLeases gives back all that is held, and empties the book.
func (g *Gateway) closeLeases() {
	b := &g.leases
	if len(b.all) == 0 {
		return
	}
	b.now = b.clock()
	for len(b.all) > 0 {
		e := b.all[len(b.all)-1]
		g.returnAll(e)
		b.remove(e)
	}
}

// returnLeases gives back all that is held, and waits until that has arrived or its time is over.
func (g *Gateway) returnLeases() {
	g.core.Lock()
	g.closeLeases()
	g.leases.on = false
	g.core.Unlock()
	g.Up.Flush()
	g.returns.Wait()
}

// followLeases looks after leases that have ended, and after keys that have gone cold.
func (g *Gateway) followLeases(ctx context.Context) {
	tick := time.NewTicker(leasesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for left := leasesPerHold; left == leasesPerHold; {
			left = g.sweepLeases()
		}
		if g.unflushed.Swap(false) {
			g.Up.Flush()
		}
	}
}

// sweepLeases looks at the next few limits of the book, and returns how many it has, up to the end.
func (g *Gateway) sweepLeases() (looked int) {
	g.core.Lock()
	defer g.core.Unlock()
	b := &g.leases
	if len(b.all) == 0 {
		b.hand = 0
		return 0
	}
	b.now = b.clock()
	for ; looked < leasesPerHold && b.hand < len(b.all); looked++ {
		if e := b.all[b.hand]; !g.sweepLease(e) {
			b.hand++
		}
	}
	if b.hand >= len(b.all) {
		b.hand = 0
		return 0
	}
	return looked
}

// sweepLease looks at one limit, and reports whether it has left the book.
func (g *Gateway) sweepLease(e *leasedLimit) (removed bool) {
	b := &g.leases
	g.giveBack(e, e.lease.Ended(&e.terms, b.now))
	b.Counts.Expired += uint64(e.lease.Expired())
	idle := b.now - e.used
	if e.terms.Window && idle > e.terms.Length/2 {
		g.returnLease(e)
	}
	if idle > int64(leasesIdle) && !e.underWay && e.lease.Left(b.now) == 0 {
		b.remove(e)
		return true
	}
	return false
}
