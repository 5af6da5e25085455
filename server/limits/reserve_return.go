package limits

import (
	"container/heap"
	"math"
	"time"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/store"
	"headgate/throttle"
)

// charged is how much a pair has charged to a number or a slice, in its own unit, and which that is. It is 0 for what is neither.
func (p *reservedPair) charged() (amount int64, kind followedKind) { return p.worth(p.cost) }

// worth is how much so many units are worth, as charged has it.
func (p *reservedPair) worth(units int64) (amount int64, kind followedKind) {
	if p.policy.Limit < 0 || p.cost <= 0 {
		return 0, followsNothing
	}
	switch p.policy.Algorithm.Returns {
	case limiter.ReturnBacklog:
		terms, _ := p.policy.Rate.Terms(units)
		return terms.Charge, followsTAT
	case limiter.ReturnCount:
		return units, followsCount
	case limiter.ReturnSlice:
		return units, followsSlice
	}
	return 0, followsNothing
}

// findReservation returns the open reservation of an id in the context's database, or nil. One whose time is over is cancelled first.
func (l *Limits) findReservation(c *command.Ctx, id []byte) *openReservation {
	if !mayBeReservationID(id) {
		return nil
	}
	l.Reservations.enter(c.DB, id, c.NowNs, foundAlone)
	r := l.readReservation(c.DB, id, c.Now)
	if r == nil {
		return nil
	}
	if r.deadline <= c.Now && !c.Core.Gate.Has(command.GateUnwritable|command.GateNoWrites) {
		l.endReservation(c, r, nil, limiter.MaxLogCost)
		l.countTimeOut(r)
		return nil
	}
	return r
}

// timeOut cancels a reservation whose time is over, outside of commands. now is in ns.
func (l *Limits) timeOut(r *reservation, now int64) {
	db := l.Keys.DB(r.db)
	open := l.readReservation(db, []byte(r.id), now/nsPerMs)
	switch {
	case open == nil || open.ticket != r.ticket: // somebody else has deleted it
		l.Reservations.forget(r)
		return
	case open.deadline > now/nsPerMs: // or changed it
		r.deadline = open.deadline
		heap.Fix(&l.Reservations.due, r.place)
		return
	}
	c := &command.Ctx{Core: l.Core, DB: db, Now: now / nsPerMs, NowNs: now, Cfg: l.Config.Get()}
	l.Effects.Begin(l.Keys, db)
	l.endReservation(c, open, nil, maxReservedEntries)
	l.Effects.End()
	l.countTimeOut(open)
}

// countTimeOut counts a reservation whose time was over, unless it is the rest of one that was settled.
func (l *Limits) countTimeOut(r *openReservation) {
	if r.pairs[0].cost >= 0 {
		l.Reservations.Counts.TimedOut++
	}
}

// endReservation gives back what the pairs have not used, charges what they have used beyond, and deletes the reservation's key. actuals is nil if
// nothing was used. What is logged of it is one unit, so that it has happened after a restart, or has not. At most so many entries are added to logs, which
// is maxReservedEntries or more; debts for which there is no room are kept as a reservation that has timed out, and background work charges them next.
func (l *Limits) endReservation(c *command.Ctx, r *openReservation, actuals []int64, entries int64) {
	known := l.Reservations.byID[reservationID{r.db.Index(), string(r.id)}]
	if known != nil && (known.ticket != r.ticket || len(known.pairs) != len(r.pairs)) {
		l.Reservations.forget(known)
		known = nil
	}
	owed := debts{limits: l, entries: entries}
	for i := range r.pairs {
		p, actual := &r.pairs[i], int64(0)
		if actuals != nil {
			actual = actuals[i]
		}
		var k *followedKey
		if known != nil {
			k, known.pairs[i].followed = known.pairs[i].followed, nil
		}
		l.giveBack(c, r, p, k, actual)
		if actual > p.cost {
			owed.charge(c, p, min(actual, math.MaxInt64+min(p.cost, 0))-p.cost) // a debt has a cost below 0
		}
	}
	if known != nil {
		l.Reservations.forget(known)
	}
	k := l.Keys.Key(appendReservationKey(nil, r.id))
	if e, found := c.DB.Peek(k); found {
		c.DeleteKey(k, &e)
	}
	if len(owed.rest) > 0 {
		rest := reservationValue{deadline: c.Now, ticket: l.Reservations.nextTicket(c.NowNs), pairs: owed.rest}
		l.keepReservation(c, limiter.AppendDrawnID(nil), &rest)
	}
	if owed.charged && r.pairs[0].cost >= 0 {
		l.Reservations.Counts.Debts++
	}
}

// giveBack gives back what a pair has not used. k is the key that is followed for it, or nil.
func (l *Limits) giveBack(c *command.Ctx, r *openReservation, p *reservedPair, k *followedKey, actual int64) {
	unused := p.cost - min(actual, p.cost)
	if _, kind := p.charged(); k != nil && k.kind != kind { // a client has written another limit there
		k.giveBack(r.ticket, 0, c.NowNs)
		k = nil
	}
	switch p.policy.Algorithm.Returns {
	case limiter.ReturnBacklog, limiter.ReturnCount, limiter.ReturnSlice:
		if k == nil {
			return
		}
		all, kind := p.charged()
		used, _ := p.worth(p.cost - unused)
		if kind != followsTAT && l.policyNow(c, p).Words != p.words {
			used = all
		}
		switch back := k.giveBack(r.ticket, all-used, c.NowNs); {
		case back == 0:
		case kind == followsSlice:
			l.lowerSlice(c, p, back)
		default:
			l.lower(c, p, back)
		}
	case limiter.ReturnEntries:
		l.removeEntries(c, p, unused)
	case limiter.ReturnLease:
		if p.cost > 0 {
			l.releaseReserved(c, r, p)
		}
	}
}

// lower takes so much from the number at a pair's key.
func (l *Limits) lower(c *command.Ctx, p *reservedPair, back int64) {
	call := &l.Asked
	l.state.open(c, l.Keys.Key(p.key))
	call.Policy, call.Want.Kind = p.policy, limiter.Number
	if l.state.loadNumber(&call.Found) != nil || !call.Found.Exists {
		return
	}
	n := call.Found.Number - back
	ch := &call.Change
	ch.Write, ch.Number, ch.ExpireAtMs = throttle.Set, n, call.Found.ExpireAtMs
	if p.policy.Algorithm.Returns == limiter.ReturnBacklog {
		if ch.ExpireAtMs = throttle.ExpireAtMs(n); n <= c.NowNs {
			ch.Write = throttle.Delete
		}
	}
	l.state.change(call)
}

// lowerSlice takes so many units from the slice that a pair has charged, if that still counts.
func (l *Limits) lowerSlice(c *command.Ctx, p *reservedPair, units int64) {
	call := &l.Asked
	l.state.open(c, l.Keys.Key(p.key))
	call.Policy, call.Want.Kind = p.policy, limiter.Slices
	if l.state.loadSlices(&call.Found) != nil || !call.Found.Exists {
		return
	}
	if _, counts := p.policy.Sliding.Index(c.Now, p.where); !counts {
		return
	}
	for _, s := range call.Found.Slices {
		if s.Start != p.where {
			continue
		}
		ch := &call.Change
		s.Count -= min(units, s.Count)
		ch.Write, ch.Replace, ch.ExpireAtMs = throttle.Set, false, l.state.hash.Entry().ExpireAt()
		ch.Slices = append(ch.Slices[:0], s)
		if s.Count == 0 && len(call.Found.Slices) == 1 {
			ch.Write = throttle.Delete
		}
		l.state.change(call)
		return
	}
}

// removeEntries takes so many of the entries out that a pair has added to a log, the newest first.
func (l *Limits) removeEntries(c *command.Ctx, p *reservedPair, units int64) {
	k := l.Keys.Key(p.key)
	z, found, err := c.DB.ZSet(k, c.Now)
	if err != nil || !found {
		return
	}
	removed := false
	for i := len(p.entries) - 1; i >= 0; i-- {
		for n := p.entries[i].last; n >= p.entries[i].first && units > 0 && z.Len() > 0; n-- {
			member := store.AppendStamp(c.Scratch[:0], p.where, int(n))
			c.Scratch = member
			if z.Remove(member) {
				c.Effect("ZREM", k.Name, member)
				removed = true
			}
			units--
		}
	}
	if removed {
		c.Notify(config.EventZSet, "zrem", k.Name)
		c.NotifyDeleted(z.Len() == 0, k.Name)
	}
}

// releaseReserved gives the lease back that a pair has taken, which goes by the reservation's id.
func (l *Limits) releaseReserved(c *command.Ctx, r *openReservation, p *reservedPair) {
	l.state.open(c, l.Keys.Key(p.key))
	l.Asked.PrepareLease(r.id, c.Now, c.NowNs)
	if l.state.Load(&l.Asked) == nil && l.Asked.Release() {
		l.state.change(&l.Asked)
	}
}

// maxDebt is the longest debt that one settlement charges to a rate, in ns: 100 years, so that 64 bits also hold what comes to it later.
const maxDebt = 36525 * 24 * int64(time.Hour)

// boundedDebt is so many units, or fewer that a rate needs no longer than maxDebt for, though more than half as long.
func boundedDebt(p *limiter.Policy, units int64) int64 {
	rate := p.Rate.Boundless()
	for ; units > 1; units /= 2 {
		if terms, ok := rate.Terms(units); ok && terms.Charge <= maxDebt {
			break
		}
	}
	return units
}

// debts are what the pairs of a reservation have used beyond what was reserved.
type debts struct {
	limits  *Limits
	entries int64          // that may still be added to logs
	rest    []reservedPair // for which there was no room, with the debt as a cost below 0
	charged bool           // one was charged, or is going to be
}

// charge charges what a pair has used beyond what was reserved, to now and whatever the limit, or keeps it for later.
func (d *debts) charge(c *command.Ctx, p *reservedPair, units int64) {
	policy := d.limits.policyNow(c, p)
	if returns := policy.Algorithm.Returns; policy.Limit < 0 || p.policy.Limit < 0 || returns == limiter.ReturnNothing || returns == limiter.ReturnLease {
		return
	}
	switch policy.Algorithm.Returns {
	case limiter.ReturnBacklog:
		units = boundedDebt(policy, units)
	case limiter.ReturnEntries: // the policy may be a log only since the reservation was made
		if units = min(units, maxReservedEntries); units > d.entries {
			d.rest = append(d.rest, reservedPair{name: p.name, key: p.key, words: p.words, cost: -units, policy: p.policy})
			d.charged = true
			return
		}
		d.entries -= units
	}
	if d.limits.chargeDebt(c, p, policy, units) {
		d.charged = true
	}
}

// chargeDebt charges units to a pair whatever the limit, and reports whether that was kept.
func (l *Limits) chargeDebt(c *command.Ctx, p *reservedPair, policy *limiter.Policy, units int64) bool {
	boundless := policy.Boundless()
	request := limiter.Request{Call: throttle.Call{Cost: units}}
	if err := l.Ask(c, l.Keys.Key(p.key), &boundless, &request); err != nil || l.Asked.Change.Write == throttle.Keep {
		return false
	}
	l.state.change(&l.Asked)
	return true
}
