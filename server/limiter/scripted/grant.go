package scripted

import (
	"headgate/internal/number"
	"headgate/internal/respcmd"
	"headgate/server/limiter"
	"headgate/throttle"
)

// Grant is a charge for a lease, see throttle.QuotaLease: of several costs the first is charged that passes. It is reused as a Question is, and
// never takes more than one command.
type Grant struct {
	// Call holds the answer of a limiter's call by that cost, or by the last one if none passes, in its Verdict.
	Call limiter.Call
	// Decision is the answer after AskGCRA.
	Decision throttle.Decision
	// Cost is what the answer is about.
	Cost int64
	// Passed reports whether it was charged.
	Passed bool
	// Unclear means that the key holds what no script decides on: nothing was charged, and nothing is known.
	Unclear bool
	// ChargedAt is the server's time in ns since the Unix epoch, and WindowEnd when the window or slice ends that was charged, in Unix ms,
	// of those who count in windows.
	ChargedAt, WindowEnd int64

	exchange
	one     asked
	request limiter.Request
	costs   [throttle.MaxLeaseSizes]int64
	count   int
	others  []byte // an argument of rate-lease.lua
}

// MayLease reports whether an algorithm has leases, and a script that charges them.
func MayLease(a *limiter.Algorithm) bool {
	switch familyOf(a) {
	case ofRate, ofCounter, ofSlices:
		return a.Leases()
	}
	return false
}

// begin has a grant be about a key and costs.
func (g *Grant) begin(key []byte, costs []int64) *asked {
	g.start()
	g.one.begin(&g.Call, key)
	g.list = append(g.list, &g.one)
	g.count = copy(g.costs[:], costs)
	g.Passed, g.Unclear, g.WindowEnd, g.Cost = false, false, 0, 0
	return &g.one
}

// Ask appends the command that charges a key by a limit for which MayLease, and which has a limit. The costs are above 0, from the largest to the
// smallest, and at most throttle.MaxLeaseSizes. p is kept until the answer is there; key and costs are not. If nothing is appended
// it cannot be charged by a script.
func (g *Grant) Ask(dst, key []byte, p *limiter.Policy, costs []int64) []byte {
	a := g.begin(key, costs)
	g.request = limiter.Request{}
	g.request.Call.Cost = costs[0]
	a.askLimiter(p, &g.request)
	return g.ask(dst, func(cost int64) bool {
		g.request.Call.Cost = cost
		if a.family == ofRate {
			a.terms, a.certain = p.Rate.Terms(cost)
			return a.certain
		}
		return cost <= maxExact
	})
}

// AskGCRA is Ask for CL.THROTTLE and GCRA.
func (g *Grant) AskGCRA(dst, key []byte, cell throttle.GCRA, costs []int64) []byte {
	a := g.begin(key, costs)
	g.Call.Policy, g.Call.Request = nil, nil
	a.family, a.cell = ofRate, cell
	return g.ask(dst, func(cost int64) bool {
		a.terms, a.certain = cell.Terms(cost)
		return a.certain
	})
}

// ask appends the command. use has the call be of a cost, and reports whether a script can charge that.
func (g *Grant) ask(dst []byte, use func(cost int64) bool) []byte {
	a := &g.one
	if string(a.key) == PoliciesKey {
		return dst
	}
	for _, cost := range g.costs[:g.count] {
		if !use(cost) {
			return dst
		}
	}
	if a.family == ofRate {
		return g.askRate(dst, use)
	}
	dst = g.call(dst, grantScripts[a.family], deciding, 1+g.count*a.arguments())
	dst = appendNumber(dst, int64(a.arguments()))
	for _, cost := range g.costs[:g.count] {
		use(cost)
		dst = a.appendArguments(dst, g.NowMs)
	}
	return dst
}

// askRate is ask for the rate family, whose script is given all costs but the first in one argument.
func (g *Grant) askRate(dst []byte, use func(cost int64) bool) []byte {
	dst = g.call(dst, grantScripts[ofRate], deciding, 5)
	use(g.costs[0])
	dst = appendTerms(dst, g.one.terms)
	others := g.others[:0]
	for _, cost := range g.costs[1:g.count] {
		use(cost)
		for _, ns := range [2]int64{g.one.terms.Charge, g.one.terms.Tolerance} {
			seconds, rest := split(ns)
			others = append(number.AppendInt(others, seconds), ' ')
			others = append(number.AppendInt(others, rest), ' ')
		}
	}
	g.others = others
	return respcmd.AppendBulk(dst, others)
}

// Answer takes the reply. The error is one for a client, of type limiter.Error, or ErrMalformed. The reply is not kept.
func (g *Grant) Answer(text []byte) error {
	if err := WireError(text); err != nil {
		return err
	}
	a, r := &g.one, reply{rest: text}
	elements := r.array()
	now := clock(&r)
	a.code = r.number()
	if g.Unclear = a.code == codeLeft && !r.bad; g.Unclear {
		return nil
	}
	a.prepare(now)
	err := a.readPart(&r)
	which := r.number()
	if r.bad || elements != 5 || which < 1 || which > int64(g.count) {
		return ErrMalformed
	}
	g.Cost = g.costs[which-1]
	g.request.Call.Cost, a.quantity = g.Cost, g.Cost
	if err == nil {
		err = a.decide()
	}
	if err != nil {
		g.disagrees = a.code == codeCharged
		return err
	}
	if g.disagrees = !a.agrees(); g.disagrees {
		a.follow()
	}
	g.Decision, g.ChargedAt = a.decision, now
	g.Passed = a.code == codeCharged
	switch a.family {
	case ofCounter:
		g.WindowEnd = g.Call.Change.ExpireAtMs
	case ofSlices:
		w := &g.Call.Policy.Sliding
		g.WindowEnd = w.Start(floorMs(now)) + w.Length()
	}
	return nil
}

// AskReturn appends the command that gives back what is left of a grant that was made by p, or for CL.THROTTLE and GCRA by cell where p is nil.
// It must not be sent twice; the reply is AnswerReturn's. Script is the script that it calls.
func (g *Grant) AskReturn(dst, key []byte, p *limiter.Policy, cell throttle.GCRA, back throttle.LeaseReturn) []byte {
	a := g.begin(key, nil)
	family := ofRate
	if p != nil {
		family = familyOf(p.Algorithm)
	}
	a.family = family
	dst = g.call(dst, giveBackScript, deciding, 5)
	switch family {
	case ofRate:
		var terms throttle.Terms
		var ok bool
		if p != nil {
			terms, ok = p.Rate.Terms(-back.Units)
		} else {
			terms, ok = cell.Terms(-back.Units)
		}
		if !ok {
			terms = throttle.Terms{}
		}
		seconds, rest := split(-terms.Charge)
		at, atNs := split(back.ChargedAt)
		return appendPart(dst, "rate", seconds, rest, at, atNs/1000)
	case ofCounter:
		return appendPart(dst, "counter", back.Units, back.WindowEnd, 0, 0)
	case ofSlices:
		return appendPart(dst, "slices", back.Units, back.WindowEnd-p.Sliding.Length(), 0, 0)
	}
	return appendPart(dst, "nothing", 0, 0, 0, 0)
}

// AnswerReturn takes the reply to AskReturn.
func (g *Grant) AnswerReturn(text []byte) error { return gaveBack(text) }
