package gateway

import (
	"fmt"
	"slices"
	"strings"

	"headgate/server/command"
	"headgate/throttle"
)

// maxLeasesShown is how many limits RL.UPSTREAM LEASES lists: those of the most demand.
const maxLeasesShown = 100

// LeaseCounts is what was counted of leases. The executor's lock is held, and guards it.
func (g *Gateway) LeaseCounts() *LeaseCounts { return &g.leases.Counts }

// LeasedLimits is how many limits of keys are in the book. The executor's lock is held.
func (g *Gateway) LeasedLimits() int { return len(g.leases.all) }

// LeasedUnits is how many units are held. The executor's lock is held.
func (g *Gateway) LeasedUnits() (held int64) {
	for _, e := range g.leases.all {
		held += e.lease.Left(g.leases.now)
	}
	return held
}

// ShowLeases answers RL.UPSTREAM LEASES [key]: what the book has of limits, those of the most demand first, or of one key's. A key that is not
// in it has an element that says why.
func (g *Gateway) ShowLeases(c *command.Ctx) {
	b := &g.leases
	b.now = b.clock()
	if len(c.Args) > 2 {
		g.showKey(c)
		return
	}
	list := slices.Clone(b.all)
	demand := func(e *leasedLimit) float64 { return e.lease.Demand(&e.terms, b.now) }
	slices.SortFunc(list, func(x, y *leasedLimit) int {
		switch dx, dy := demand(x), demand(y); {
		case dx > dy:
			return -1
		case dx < dy:
			return 1
		}
		return strings.Compare(x.key.name, y.key.name)
	})
	list = list[:min(len(list), maxLeasesShown)]
	c.Reply.Array(len(list))
	for _, e := range list {
		g.showLimit(c, e)
	}
}

// showKey is ShowLeases for a key of the client's database.
func (g *Gateway) showKey(c *command.Ctx) {
	b := &g.leases
	key := leasedKey{c.DB.Index(), string(c.Args[2])}
	first, n := b.byKey[key], 0
	for e := first; e != nil; e = e.next {
		n++
	}
	if n > 0 {
		c.Reply.Array(n)
		for e := first; e != nil; e = e.next {
			g.showLimit(c, e)
		}
		return
	}
	why := "cold: no limiter that may have leases was called twice within a second; there are none for PEEK, costs of 0, NOLEASE" + g.leaseless()
	switch {
	case !b.on:
		why = "upstream-lease is no"
	case len(b.all) >= maxLeasedLimits:
		why = fmt.Sprintf("%d limits of other keys are in use here, and no more may be", maxLeasedLimits)
	}
	c.Reply.Array(1)
	c.Reply.Map(4)
	sendFields(c, "key", key.name, "db", int64(key.db), "leased", "no", "why", why)
}

// leaseless names the algorithms that have no leases, each behind a comma.
func (g *Gateway) leaseless() (names string) {
	for _, a := range g.limits.Algorithms.All() {
		if !a.Leases() {
			names += ", " + a.Name
		}
	}
	return names
}

// showLimit sends what there is to tell of a limit.
func (g *Gateway) showLimit(c *command.Ctx, e *leasedLimit) {
	now := g.leases.now
	leased, why := g.whyLeased(e, now)
	name := "CL.THROTTLE"
	if e.policy != nil {
		name = e.policy.Algorithm.Name
	}
	c.Reply.Map(10)
	sendFields(c,
		"key", e.key.name, "db", int64(e.key.db), "limiter", name, "limit", e.shown(), "capacity", max(0, e.terms.Capacity), "leased", leased, "why", why,
		"units", e.lease.Left(now), "demand", int64(e.lease.Demand(&e.terms, now)), "length_ms", e.terms.Length/nsPerMs)
}

// whyLeased says whether a limit is decided here, and why or why not.
func (g *Gateway) whyLeased(e *leasedLimit, now int64) (leased, why string) {
	t := &e.terms
	switch {
	case t.Capacity < 1:
		return "no", "the limit is too small: upstream-lease-strict leaves nothing of it"
	case !t.Leases():
		return "no", fmt.Sprintf("the limit comes back too soon: a lease would be %d us long", t.Length/1000)
	case e.lease.Left(now) > 0:
		return "yes", "units are held"
	case e.lease.Refuses(now) > 0:
		return "yes", fmt.Sprintf("limited: asked again in %d ms", throttle.Millis(e.lease.Refuses(now)))
	case e.problem != "":
		return "no", e.problem
	case e.large:
		return "no", fmt.Sprintf("the last call's cost is above what a lease may be, which is %d here", t.MaxCost())
	case e.lease.Wanted(t, now) <= 1:
		return "no", fmt.Sprintf("too few calls: a lease of %d ms is worth %.1f units here", t.Length/nsPerMs, e.lease.Worth(t, now))
	case e.underWay:
		return "no", "a charge is under way"
	}
	return "no", "the next call asks for one"
}

// sendFields sends names and their values.
func sendFields(c *command.Ctx, fields ...any) {
	for _, field := range fields {
		switch v := field.(type) {
		case string:
			c.Reply.BulkString(v)
		case int64:
			c.Reply.Int(v)
		}
	}
}

// ReturnLeases answers RL.UPSTREAM RETURN [key]: what is held, of all keys or of one, is sent back. The answer is how many units.
func (g *Gateway) ReturnLeases(c *command.Ctx) {
	b := &g.leases
	b.now = b.clock()
	units := int64(0)
	if len(c.Args) > 2 {
		for e := b.byKey[leasedKey{c.DB.Index(), string(c.Args[2])}]; e != nil; e = e.next {
			units += g.returnLease(e)
		}
	} else {
		for _, e := range b.all {
			units += g.returnLease(e)
		}
	}
	c.Reply.Int(units)
}
