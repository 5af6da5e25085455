package throttle

import "math"

// A process that decides for a limit whose state another server keeps may ask it once for many calls: it charges a lease of n units there by
// an ordinary call, and spends them here. LeaseTerms are what the leases of one limit are like; QuotaLease is what a process holds of one key.
// (Leases, which bounds how many hold something at once, is something else.)
//
// # What is guaranteed
//
// Let L be LeaseTerms.Length and ρ the factor, a thousandth, by which a clock may run too fast or too slow. A lease is spent for at most
// L/(1+ρ) after its charge was sent, by the clock here. The charge was made later than it was sent, so by the time of the server that decides
// a unit is spent at most (1+ρ)·L after it was charged, even if that server's clock is too fast by ρ and the one here too slow by as much.
//
// GCRA and Rate. What is spent in a time [a, b] was thus charged in [a - (1+ρ)L, b], at the key's server, where charges conform: so within any
// time t at most
//
//	capacity + rate · (t + (1+ρ)·L)
//
// units pass, however many processes hold leases, crash, are cut off or stand still. (Where a Rate rounds, less than one more: see there.)
// Nothing else is needed for it: not that processes know of each other, nor how large leases are, nor that replies come at all. L is at most
// LeaseOptions.Overshoot of the time in which the capacity comes back, so that rate · L is at most that share of the capacity. With
// LeaseOptions.Strict all charges are made by a capacity that is smaller by rate · (1+ρ)L, rounded up; then within any time t at most
// capacity + rate · t units pass, as without leases, if whoever charges the key does so.
//
// Fixed and Sliding. A lease ends with the window, or with the slice, in which it was charged, and that by the server's time, since what is
// left of it is divided by (1+ρ) twice. So a unit is spent in the window or slice that counts it, and what these two guarantee does not change.
//
// A key that is deleted or restored while leases of it are held, or that a failover sets back, forgets what was charged for them: they may be spent,
// or given back, beside what passes anew.
//
// "Spent" means: at the reading of the clock by which the call was decided. A process that stands still between that reading and its reply
// answers late, as any server may.
//
// # Giving back
//
// What is not spent may be given back, but a plain refund could let more pass. Of a limit of 20 with rate · L = 10, lease 10 at the time 0. At
// L, when all of the capacity is there again, lease 20, refund the first 10, and lease them anew: 30 are held. At 2L the 10 units that have come
// back meanwhile are charged directly, and 40 pass at one instant, where the bound is 30. The units that were refunded had been paid off by
// time already, and so came back twice. Hence
//
//	GiveBack of k units, charged at u, at the time v: the theoretical arrival time moves back by k intervals - (v - u), if that is above 0
//
// where v is the time at which the server does it, and not the time at which somebody sends it: otherwise one that is delivered late mints
// again. (Capacity 100, 10 a second: lease 50, send them back at once, have that arrive 5 s later behind a fresh charge of 100: 50 more pass.)
//
// Why this mints nothing: let T be the arrival time that is stored, or now if that is later, and T' what it would be if the k units had never
// been charged, all else alike. At u, T is ahead of T' by k intervals, rounded as Rate says, which is not below what giving back takes. Later
// charges move both alike, and while time passes T' stands still or moves with now: so T gets closer to T' by at most the time that passes,
// or it is now itself, and then the k intervals are over. So T is ahead of T' by k intervals - (v - u) at least, and giving
// that back leaves T at T' or later. Where charges that came after u were refused because of the k units, T' has not got them either. With
// several leases this holds for one after the other, and for k1 and k2 units charged at u1 and later as for k1 + k2 units charged at u1: time
// takes at most v - u1 of both. So what passes conforms to a history in which what was given back was never charged.
//
// For Fixed, k units are taken from the counter if its window still is the one of the charge, which its end tells; for Sliding, from the
// slice that was charged. Neither count falls below what was spent. Giving back twice is for nobody: what was taken out of a QuotaLease is
// sent once, whatever becomes of it.
//
// # How large
//
// A lease pays if it answers several calls. With the demand here, in units a second, one is worth 5/8 of L:
//
//	n = clamp(⌈demand · L·5/8⌉, 1, ⌈capacity / 4⌉)
//
// but where that is above 32 and L above a second, no more than a second's demand is worth, and 32: who crashes loses what it holds, and 31 of 32
// calls are saved already. The next one is asked for when three quarters are spent, so that both are spent within 25/32 of L, unless it is so small
// that chance would have much of it end unspent. The charge asks for n; or else for what there is, in steps of n/8, if that is at least n/4; or
// else for what the call costs that waits for it. That no more was to be had, or not even that, is remembered for as long as n would have to wait,
// and for half of L at most. So while a limit is exhausted each process comes back for a useful number of units, and not for each that comes
// free. Up to L of a second, about 1.6·N / (Overshoot · capacity) charges are made per unit that N processes admit, if they are asked for just the
// rate. Where less is asked for, leases are smaller and charges more by as much: 2·N at four fifths of the rate. Where more is, there are up to
// four times as many, since less is left to be leased.
//
// Source: Gray and Cheriton's leases (1989), on units of a rate. Doorman (Google) and the quota services of large fleets work alike.

const (
	// driftUp / driftDown is 1+ρ.
	driftUp, driftDown = 1001, 1000

	// leaseParts is how many sizes from n down to n/4 a charge tries, which are whole eighths of n.
	leaseParts = 7
	// MaxLeaseSizes is how many sizes a charge tries at most: those, and what the call costs that waits for it.
	MaxLeaseSizes = leaseParts + 1

	// leaseWorth is the part of its length for whose demand a lease suffices. More of it would be left at its end when demand falls; with less there
	// are more charges.
	leaseWorth = 5.0 / 8
	// enoughUnits is how many units a lease is worth that is worth more than a demand of enoughDemand, in ns.
	enoughUnits  = 32
	enoughDemand = nsPerSecond
	// renewedLeft is the part of a lease that is left when the next one is asked for, as a divisor.
	renewedLeft = 4
	// minRenewed is how many units a lease has at least whose successor is asked for before it is used up.
	minRenewed = 8

	// leastReturned is how many units of a rate are worth a giveback.
	leastReturned = 0.5

	// refusedAhead is how long before a refusal is forgotten, at most, the next lease is asked for: longer than that takes.
	refusedAhead = 10 * nsPerMs

	// Demand is counted for twice the length of a lease, but at least and at most for so long.
	minDemandWindow = nsPerSecond / 5
	maxDemandWindow = nsPerSecond

	// minLeaseLength is the shortest lease there is.
	minLeaseLength = nsPerMs
)

// LeaseOptions say what leases may cost in exactness.
type LeaseOptions struct {
	// Overshoot is the share of the capacity, above 0, by which more may pass than without leases.
	Overshoot float64
	// Max is how long a lease may be, in nanoseconds, from 1 to 10^15.
	Max int64
	// Strict has nothing more pass: what leases might let through beyond the capacity is taken off it before.
	Strict bool
}

// LeaseTerms are what the leases of one limit are like. It is a value and does not change; the zero value is for limits without leases.
type LeaseTerms struct {
	// Capacity is what may be charged at one instant: the limit, or with Strict less. Below 1 there are no leases.
	Capacity int64
	// Length is L in nanoseconds.
	Length int64
	// Window is true of limits that count within windows: their leases end with these, and what is left of one can be given back.
	Window bool

	life   int64   // how long a lease is spent, in ns by the clock here
	demand int64   // how long demand is counted, in ns
	rate   float64 // units that come back in a nanosecond
}

// LeaseTerms returns what leases of the limit are like. The decisions of those who charge the key are to be made by WithLimit(Capacity), as with
// Strict the capacity is smaller.
func (g GCRA) LeaseTerms(o LeaseOptions) LeaseTerms {
	if g.interval <= 0 {
		return LeaseTerms{}
	}
	return leaseTerms(g.limit, uint64(g.interval), 1, false, o)
}

// WithLimit returns the GCRA of the same rate with another limit. It returns ErrOverflow when the tolerance leaves int64.
func (g GCRA) WithLimit(limit int64) (GCRA, error) { return newGCRA(g.interval, limit) }

// LeaseTerms is GCRA.LeaseTerms for a Rate.
func (r Rate) LeaseTerms(o LeaseOptions) LeaseTerms {
	if r.period == 0 {
		return LeaseTerms{}
	}
	return leaseTerms(r.capacity, r.period, r.count, false, o)
}

// WithLimit returns the Rate of the same rate with another capacity of at least 0. It returns ErrOverflow when the tolerance leaves int64.
func (r Rate) WithLimit(capacity int64) (Rate, error) {
	return NewRate(capacity, int64(r.count), int64(r.period))
}

// WindowLeaseTerms returns what leases of a limit are like that counts within windows of so many milliseconds, at least 1: of Fixed and
// Sliding. More may pass by them in no case, so that Strict changes nothing.
func WindowLeaseTerms(limit, window int64, o LeaseOptions) LeaseTerms {
	if limit < 1 {
		return LeaseTerms{}
	}
	ns, ok := mul(window, nsPerMs)
	if !ok {
		ns = math.MaxInt64
	}
	return leaseTerms(limit, uint64(ns), uint64(limit), true, o)
}

// leaseTerms returns the terms for a limit whose units come back at count a period.
func leaseTerms(limit int64, period, count uint64, window bool, o LeaseOptions) LeaseTerms {
	t := LeaseTerms{Capacity: limit, Length: o.Max, Window: window, rate: float64(count) / float64(period)}
	if share := o.Overshoot * float64(limit) / t.rate; share < float64(o.Max) {
		t.Length = int64(math.Round(share))
	}
	if o.Strict && !window {
		t.Capacity -= unitsWithin(t.Length, period, count)
	}
	t.life = t.Length * driftDown / driftUp
	t.demand = min(max(2*min(t.Length, maxDemandWindow), minDemandWindow), maxDemandWindow)
	return t
}

// unitsWithin returns how many units come back within (1+ρ) times a length, rounded up.
func unitsWithin(length int64, period, count uint64) int64 {
	longer := uint64(length) + uint64(ceilDiv(length, driftDown))
	units, rest, ok := scale(longer, count, period)
	if !ok || units > math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	if rest > 0 {
		units++
	}
	return int64(units)
}

// Leases reports whether there are leases: the capacity leaves room for them, and they are not too short.
func (t *LeaseTerms) Leases() bool { return t.Capacity >= 1 && t.Length >= minLeaseLength }

// MaxCost is what a call may cost that is answered by a lease, as none is larger: a quarter of the capacity, rounded up.
func (t *LeaseTerms) MaxCost() int64 { return ceilDiv(t.Capacity, 4) }

// LeaseEnd returns when a lease is spent no more that was charged by a call sent at the instant sent. For a window, rest says how long after the
// charge it ends, by the server's clock; rest is not looked at otherwise. All are in nanoseconds.
func (t *LeaseTerms) LeaseEnd(sent, rest int64) int64 {
	life := t.life
	if t.Window && rest < t.Length*2 {
		rest = max(rest, 0) * driftDown / driftUp // fits: it is below twice what leases are long
		life = min(life, rest*driftDown/driftUp)
	}
	return sent + life
}

// LeaseGrant is a charge that was made for a lease.
type LeaseGrant struct {
	Units int64 // of the lease, without the cost of a call that has waited for it

	// Sent is when the charge was sent, by the clock here, and Heard when its reply was.
	Sent, Heard int64
	// ChargedAt is when it was made, by the clock of the key's server, in nanoseconds since the Unix epoch.
	ChargedAt int64
	// WindowEnd is when the window or slice ends that it was charged to, in Unix milliseconds; for LeaseTerms with Window.
	WindowEnd int64

	// Remaining and ResetAfter, in nanoseconds, are as the reply has them.
	Remaining, ResetAfter int64
}

// LeaseRefusal says that none of the sizes has passed that a charge for a lease has tried.
type LeaseRefusal struct {
	Cost  int64 // the smallest of them
	Ahead bool  // no call waited for it
	Heard int64 // when the reply was, by the clock here

	// RetryAfter, when that cost would pass, and ResetAfter, in nanoseconds, and Remaining are as the reply has them.
	RetryAfter, ResetAfter, Remaining int64
}

// LeaseReturn is what was not spent of a lease. It is given back once, or never.
type LeaseReturn struct {
	Units     int64
	ChargedAt int64 // see LeaseGrant
	WindowEnd int64
}

// LeaseAnswer is what becomes of a call.
type LeaseAnswer uint8

// The answers.
const (
	// LeaseAsk: the key's server has to be asked.
	LeaseAsk LeaseAnswer = iota
	// LeaseSpent: it passes, and was spent of a lease.
	LeaseSpent
	// LeaseRefused: it is limited, as the server has said of a call that was not larger.
	LeaseRefused
)

// heldLease is a lease that is spent.
type heldLease struct {
	left, size int64 // units
	end        int64 // when it is spent no more, by the clock here
	chargedAt  int64
	windowEnd  int64
}

// QuotaLease is what one process holds of one key by one limit: up to two leases, of which the older is spent first, the demand that it has
// seen, and what was refused. All instants are readings of one clock of the process that never goes back, and that goes on while the machine
// is suspended, in nanoseconds. The zero value holds nothing. It is not safe for concurrent use.
//
//	switch q.Decide(&terms, now, cost) {            // for each call whose cost is from 1 to terms.MaxCost()
//	case LeaseSpent:                                // passes; if q.Renews(&terms, now), charge q.Sizes(…) in the background
//	case LeaseRefused:                              // is limited; the same
//	case LeaseAsk:                                  // if q.Sizes(…) are any, charge one of them for the call and the lease; or else charge the call
//	}
type QuotaLease struct {
	held    [2]heldLease
	asking  bool  // a charge is under way
	quietTo int64 // until then no charge is sent ahead of the calls that need one
	restTo  int64 // until then none is sent at all

	refusedTo   int64 // until then a refusal is remembered
	refusedCost int64

	told struct { // by the last reply
		remaining        int64
		resetAt, retryAt int64 // by the clock here
	}

	window            int64 // when the present window of demand began
	current, previous int64 // units asked for in it, and in the one before

	unspent LeaseReturn // of leases that have ended
	expired int64       // units of those, in all
}

// Decide answers a call at an instant, whose cost is from 1 to t.MaxCost().
func (q *QuotaLease) Decide(t *LeaseTerms, now, cost int64) LeaseAnswer {
	q.note(t, now, cost)
	if h := &q.held[0]; cost <= h.left && now < h.end {
		h.left -= cost
		return LeaseSpent
	}
	return q.decide(t, now, cost)
}

// decide is Decide if the first lease does not suffice.
func (q *QuotaLease) decide(t *LeaseTerms, now, cost int64) LeaseAnswer {
	q.end(t, now)
	if first, second := &q.held[0], &q.held[1]; cost <= first.left+second.left {
		second.left -= cost - first.left
		first.left = 0
		q.shift()
		return LeaseSpent
	}
	if now < q.refusedTo && cost >= q.refusedCost {
		return LeaseRefused
	}
	return LeaseAsk
}

// note counts demand.
func (q *QuotaLease) note(t *LeaseTerms, now, cost int64) {
	if elapsed := now - q.window; elapsed >= t.demand {
		q.previous, q.current = q.current, 0
		if q.window += t.demand; elapsed >= 2*t.demand {
			q.previous, q.window = 0, now
		}
	}
	q.current = saturatingAdd(q.current, cost)
}

// Demand returns about how many units are asked for here in a second. Those count that were asked for within the last one to two windows of
// 0.2 to 1 s.
func (q *QuotaLease) Demand(t *LeaseTerms, now int64) float64 {
	return q.demandIn(t, now) / float64(t.demand) * nsPerSecond
}

// demandIn returns how many units were asked for within the length of a window of demand.
func (q *QuotaLease) demandIn(t *LeaseTerms, now int64) float64 {
	elapsed := now - q.window
	switch {
	case elapsed < t.demand:
		return float64(q.current) + float64(q.previous)*float64(t.demand-elapsed)/float64(t.demand)
	case elapsed < 2*t.demand:
		return float64(q.current) * float64(2*t.demand-elapsed) / float64(t.demand)
	}
	return 0
}

// Wanted returns how many units of a lease the demand here is worth, whatever remains: from 1 to t.MaxCost().
func (q *QuotaLease) Wanted(t *LeaseTerms, now int64) int64 {
	return max(1, int64(min(math.Ceil(q.Worth(t, now)), float64(t.MaxCost()))))
}

// Worth is Wanted before it is rounded up and bounded.
func (q *QuotaLease) Worth(t *LeaseTerms, now int64) float64 {
	each := q.demandIn(t, now) * leaseWorth / float64(t.demand)
	worth := each * float64(t.Length)
	if worth > enoughUnits && t.Length > enoughDemand {
		return max(enoughUnits, each*enoughDemand)
	}
	return worth
}

// Renews reports, behind a call that was decided here, whether the next lease is to be asked for before it is needed: little of what is held is
// left, or a refusal will soon be forgotten. A lease that is so small that what is held might come to its end unspent
// is not worth that.
func (q *QuotaLease) Renews(t *LeaseTerms, now int64) bool {
	if q.asking || now < q.quietTo {
		return false
	}
	if now < q.refusedTo {
		return !t.Window && q.Wanted(t, now) >= minRenewed
	}
	h := &q.held[0]
	return h.size >= minRenewed && h.left <= h.size/renewedLeft && q.held[1].left == 0
}

// Sizes says what a charge is to try for, from the largest to the smallest, and returns how many sizes that are. cost is that of the call that
// waits for it, which is in each of them and the last of them, or 0 for none. There are none where a lease would answer no other call; where a
// charge is under way, or has failed a short time ago; or where two leases are held. Otherwise a charge is under way until Granted, Refused or Failed.
func (q *QuotaLease) Sizes(t *LeaseTerms, now, cost int64, sizes *[MaxLeaseSizes]int64) int {
	q.end(t, now)
	wanted, least := q.Wanted(t, now), max(cost, 1)
	if q.asking || now < q.restTo || wanted <= least || q.held[1].left > 0 || !t.Leases() {
		return 0
	}
	q.asking = true
	found := 0
	for part := int64(leaseParts + 1); part > 1; part-- {
		if size := ceilDiv(wanted*part, leaseParts+1); size > least && (found == 0 || size < sizes[found-1]) {
			sizes[found] = size
			found++
		}
	}
	if cost > 0 {
		sizes[found] = cost
		found++
	}
	return found
}

// Granted notes a charge. It reports false, and holds nothing of it, if it comes too late to be spent, or two leases are held.
func (q *QuotaLease) Granted(t *LeaseTerms, g LeaseGrant) bool {
	q.asking = false
	q.end(t, g.Heard)
	q.refusedTo, q.quietTo = 0, 0
	q.tell(g.Heard, g.Remaining, g.ResetAfter, 0)
	rest := g.WindowEnd*nsPerMs - g.ChargedAt
	h := heldLease{left: g.Units, size: g.Units, end: t.LeaseEnd(g.Sent, rest), chargedAt: g.ChargedAt, windowEnd: g.WindowEnd}
	if wanted := q.Wanted(t, g.Heard); g.Units <= 0 || !t.Window && wanted >= minRenewed && g.Remaining < wanted/4 {
		q.refuse(t, g.Heard, 1, float64(wanted-g.Remaining)/t.rate) // once what is held is spent: there is not enough for another lease
	}
	switch {
	case g.Units <= 0:
		return false
	case h.end <= g.Heard, q.held[1].left > 0:
		q.retire(t, &h)
		return false
	case q.held[0].left == 0:
		q.held[0] = h
	default:
		q.held[1] = h
	}
	return true
}

// Refused notes that none of the sizes has passed. That is remembered until what the demand is worth would pass, and for half of a lease's
// length at most. If no call waited for the charge of a rate, all costs count as refused, or those who come while the next charge is under way
// would go to the server one by one: what there is, less than a lease worth charging, adds up for one. In a window it might add up to nothing.
func (q *QuotaLease) Refused(t *LeaseTerms, r LeaseRefusal) {
	q.asking = false
	wait := math.Inf(1)
	if r.RetryAfter >= 0 && !t.Window {
		wait = float64(r.RetryAfter) + float64(q.Wanted(t, r.Heard)-r.Cost)/t.rate
	}
	if r.Ahead && !t.Window {
		q.refuse(t, r.Heard, 1, wait)
		q.tell(r.Heard, r.Remaining, r.ResetAfter, 0)
		return
	}
	q.refuse(t, r.Heard, r.Cost, wait)
	q.tell(r.Heard, r.Remaining, r.ResetAfter, max(r.RetryAfter, 0))
}

// refuse has costs from cost on be refused for so many ns, and for half of a lease's length at most.
func (q *QuotaLease) refuse(t *LeaseTerms, now, cost int64, wait float64) {
	remembered := int64(max(0, min(wait, float64(t.Length/2))))
	q.refusedTo, q.quietTo = now+remembered, now+remembered
	if q.refusedCost = cost; !t.Window {
		q.quietTo -= min(remembered/2, refusedAhead)
	}
}

// Failed notes that a charge has had no answer that can be used, or was not sent. For half of a lease's length none is asked for.
func (q *QuotaLease) Failed(t *LeaseTerms, now int64) {
	q.asking = false
	q.restTo = now + t.Length/2
}

// tell keeps what a reply says of the key.
func (q *QuotaLease) tell(heard, remaining, resetAfter, retryAfter int64) {
	q.told.remaining = remaining
	q.told.resetAt, q.told.retryAt = saturatingAdd(heard, resetAfter), saturatingAdd(heard, retryAfter)
}

// Refuses returns for how many ns a refusal is still remembered, or 0 if none is.
func (q *QuotaLease) Refuses(now int64) int64 { return max(0, q.refusedTo-now) }

// Left returns how many units are held.
func (q *QuotaLease) Left(now int64) int64 {
	left := int64(0)
	for i := range q.held {
		if h := &q.held[i]; now < h.end {
			left += h.left
		}
	}
	return left
}

// VerdictTo writes the answer to a call that was decided here to d, in nanoseconds. What remains and when nothing is used any more is as the
// server last told, with what is held here; so both are as old as the leases are, at most.
func (q *QuotaLease) VerdictTo(d *Decision, now int64, answer LeaseAnswer, limit int64) {
	*d = Decision{Limited: answer == LeaseRefused, Limit: limit, RetryAfter: NoRetry, ResetAfter: max(0, q.told.resetAt-now)}
	if d.Limited {
		d.Remaining = min(q.told.remaining, q.refusedCost-1)
		d.RetryAfter = max(1, q.told.retryAt-now, q.refusedTo-now)
	} else {
		d.Remaining = min(limit, q.told.remaining+q.held[0].left+q.held[1].left)
	}
}

// end takes out the leases that have ended.
func (q *QuotaLease) end(t *LeaseTerms, now int64) {
	for i := range q.held {
		if h := &q.held[i]; h.left > 0 && now >= h.end {
			q.retire(t, h)
		}
	}
	q.shift()
}

// retire takes out what is left of a lease that is not spent any more. Leases of one window, and those of a rate, add up to one return.
func (q *QuotaLease) retire(t *LeaseTerms, h *heldLease) {
	q.expired += h.left
	if q.unspent.Units == 0 || t.Window && h.windowEnd != q.unspent.WindowEnd {
		q.unspent = LeaseReturn{h.left, h.chargedAt, h.windowEnd}
	} else {
		q.unspent.Units += h.left
		q.unspent.ChargedAt = min(q.unspent.ChargedAt, h.chargedAt)
	}
	h.left = 0
}

// shift has the second lease be the first if that is used up.
func (q *QuotaLease) shift() {
	if q.held[0].left == 0 && q.held[1].left > 0 {
		q.held[0], q.held[1].left = q.held[1], 0
	}
}

// Ended takes out what was not spent of leases that have ended, to be given back: of a rate only if time has not paid it off meanwhile, which
// needs less than half a unit to be left. If nobody asks, and leases of several windows end, the latest window counts.
func (q *QuotaLease) Ended(t *LeaseTerms, now int64) LeaseReturn {
	q.end(t, now)
	back := q.unspent
	q.unspent = LeaseReturn{}
	if !t.Window && float64(back.Units)-t.rate*float64(t.Length) < leastReturned {
		return LeaseReturn{}
	}
	return back
}

// Expired returns how many units were not spent until their leases ended, since the last time that it was asked.
func (q *QuotaLease) Expired() int64 {
	expired := q.expired
	q.expired = 0
	return expired
}

// Return takes out the leases that are held, to be given back: those with Units above 0.
func (q *QuotaLease) Return(t *LeaseTerms, now int64) (back [2]LeaseReturn) {
	q.end(t, now)
	for i := range q.held {
		h := &q.held[i]
		back[i] = LeaseReturn{h.left, h.chargedAt, h.windowEnd}
		h.left = 0
	}
	return back
}

// GiveBack answers a giveback of so many units that were charged at the instant charged, by the same clock as now: it is not later than now
// unless that was set back, when nothing is given back. See QuotaLease for why nothing more passes by it. It returns what is to be done with
// the key, and the TAT that is to be stored if that is Set.
func (g *GCRA) GiveBack(now, tat int64, exists bool, charged, units int64) (Write, int64) {
	back, ok := mul(g.interval, units)
	if !ok || g.interval <= 0 {
		return Keep, 0
	}
	return giveBack(now, tat, exists, charged, back)
}

// GiveBack is GCRA.GiveBack for a Rate. What is given back is rounded down.
func (r *Rate) GiveBack(now, tat int64, exists bool, charged, units int64) (Write, int64) {
	back, ok := r.charge(-units)
	if !ok {
		return Keep, 0
	}
	return giveBack(now, tat, exists, charged, -back)
}

// giveBack moves a TAT back by so many ns, less what has passed since they were charged.
func giveBack(now, tat int64, exists bool, charged, back int64) (Write, int64) {
	passed, ok := sub(now, charged)
	back -= passed
	if !ok || passed < 0 || back <= 0 || !exists || tat <= now {
		return Keep, 0
	}
	if tat -= back; tat <= now {
		return Delete, 0
	}
	return Set, tat
}

// GiveBack answers a giveback of so many units that were charged to the window that ends at windowEnd, in Unix milliseconds. The new state has the
// same expiry. It is false if there is nothing to give back to.
func (s FixedState) GiveBack(now, windowEnd, units int64) (count int64, ok bool) {
	if !s.Exists || s.ExpireAtMs != windowEnd || windowEnd <= now || s.Count <= 0 || units <= 0 {
		return s.Count, false
	}
	return max(s.Count-units, 0), true
}
