package limiter

import (
	"slices"

	"headgate/throttle"
)

// acquire keeps leases with the times at which they end.
var acquire = Algorithm{
	Name: "ACQUIRE", Label: "lease", Since: "headgate 0.1.0", Complexity: "O(log n) in the number of leases",
	Summary:   "Take one of a limited number of leases, which expires after its TTL, or renew the lease named by MEMBER; the sixth element is its id. PEEK asks whether a lease is available.",
	Guarantee: "never more than limit holders at once",
	Burst:     "the limit", Memory: "46 bytes per holder up to 128, some 110 beyond",
	Seen:    "passes again when a holder releases its lease, or when a crashed holder's lease expires",
	Example: "100 1s", Says: "100 leases of 1 s",
	Args: []Arg{
		limitArg("limit", "the most leases that can be held at the same time"), durationArg("ttl", "how long the lease lasts if it is neither renewed nor released"),
		{Name: "id", Type: "string", Token: "MEMBER", Optional: true, Summary: "the id of the lease; a lease of that id which is still held is renewed. Without MEMBER the server draws a random id"},
	}, Words: 2,
	Options: []Option{memberOption},
	Errors:  slices.Concat(DurationErrors, []Error{ErrSyntax, ErrWrongType}), NoCost: true,
	Costs: "ERR cost of a lease must be 0 or 1, use COSTS to give each pair its own", CheckCost: func(_ *Policy, cost int64) bool { return throttle.Leases{}.MayCost(cost) },
	Kind: Entries, Beyond: LeaseID, Returns: ReturnLease,
	Read: readWindow, Text: textOfWindow, Prepare: prepareAcquire, Decide: decideAcquire,
}

func prepareAcquire(c *Call) {
	c.wantLeases(c.Request.Member, c.Request.HasMember)
	c.Want.Ranks[2] = c.Policy.Limit - c.Request.Call.Cost // of the leases that have to end before the call passes, the one that ends last
}

// wantLeases sets Want to the leases that have not ended and, if named, to the one with this id.
func (c *Call) wantLeases(id []byte, named bool) {
	c.Want = Want{Kind: Entries, After: c.NowMs, Until: Forever, Member: id, HasMember: named, Ranks: [3]int64{0, 1, 0}}
}

// leases returns what was found out about the leases of the key.
func (c *Call) leases() (s throttle.LeasesState) {
	f := &c.Found
	s.Held = f.Used
	if s.Mine = c.Want.HasMember && f.MemberHeld && f.MemberAt > c.Want.After; s.Mine {
		s.MyEnd = f.MemberAt
	}
	switch {
	case s.Held == 0 || s.Mine && s.Held == 1:
	case s.Mine && f.At(0) == s.MyEnd:
		s.Last = f.At(1) // or it is the other way round, and they end together
	default:
		s.Last = f.At(0)
	}
	return s
}

func decideAcquire(c *Call) error {
	f, r := &c.Found, c.Request
	v := throttle.Leases{Limit: c.Policy.Limit, TTL: c.Policy.Window}.Acquire(c.NowMs, c.leases(),
		func(i int64) int64 { return f.At(f.Used - 1 - i) }, r.Call)
	c.set(&v)
	if v.Write != throttle.Set {
		return nil
	}
	c.Verdict.ID, c.Verdict.Draw = r.Member, !r.HasMember
	c.keepLease(r.Member, c.Policy.Window, c.NowMs+v.ResetAfter)
	c.Change.Drawn = !r.HasMember
	return nil
}

// keepLease sets the Change to a lease that ends ttl ms from now, and to a key that expires at expireAtMs.
func (c *Call) keepLease(id []byte, ttl, expireAtMs int64) {
	c.Change = Change{Write: throttle.Set, ExpireAtMs: expireAtMs, Slices: c.Change.Slices, Trim: true, Member: id, AddAt: c.NowMs + ttl}
}

// PrepareLease sets the Want for a change of the lease with this id at an instant.
func (c *Call) PrepareLease(id []byte, nowMs, nowNs int64) {
	c.Policy, c.NowMs, c.NowNs = nil, nowMs, nowNs
	c.wantLeases(id, true)
}

// Release sets the Change that gives the lease of PrepareLease back. It reports false, and changes nothing, if there is no such lease.
func (c *Call) Release() (held bool) {
	s := c.leases()
	switch {
	case !s.Mine:
		return false
	case s.Held == 1: // what is left beside this one has ended
		c.Change = Change{Write: throttle.Delete, Slices: c.Change.Slices}
	default:
		c.Change = Change{Write: throttle.Set, ExpireAtMs: s.Last, Slices: c.Change.Slices, Remove: c.Want.Member, Trim: true}
	}
	return true
}

// Renew sets the Change that has the lease of PrepareLease end ttl ms from now. It reports false, and changes nothing, if there is no such lease.
func (c *Call) Renew(ttl int64) (held bool) {
	s := c.leases()
	if s.Mine {
		c.keepLease(c.Want.Member, ttl, max(s.Last, c.NowMs+ttl))
	}
	return s.Mine
}
