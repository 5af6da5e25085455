package throttle

import (
	"math/rand/v2"
	"slices"
)

// The made-up fleet on which the bound of leases is tested: processes with clocks of their own, of which each may crash, be cut off or stand
// still; a key's server; and letters between them that arrive when it pleases the test, in any order, or never. What passes is judged by
// counting alone.

// maxPPM is by how many millionths a clock runs too fast at most, and minPPM too slow, so that the factor is 1+ρ either way.
const maxPPM, minPPM = 1000, -999

// inexactNs is by how much two readings of a clock that counts whole nanoseconds may miss the time between them, in all.
const inexactNs = 4

// leaseServer is the server of a key.
type leaseServer interface {
	// charge charges the first of the sizes that passes, or none, and then units is 0.
	charge(now int64, sizes []int64) (units int64, g LeaseGrant, r LeaseRefusal)
	// giveBack takes units back that were sent at an instant of the server's clock.
	giveBack(now, sent int64, back LeaseReturn)
	// most returns how many units might be charged at once.
	most(now int64) int64
	// excess returns by how much more has passed than the limit says, and by how much more may have, in the same unit.
	excess(passed []passedUnits) (excess, allowed int64)
}

// passedUnits is what has passed at an instant of the server's clock.
type passedUnits struct{ at, units int64 }

// refunds are ways to give back, of which one is right.
type refunds uint8

const (
	rightRefund   refunds = iota
	plainRefund           // mutant: all of the units come back, as by a negative cost
	refundsAtSend         // mutant: what was paid off is reckoned to when the return was sent
)

// rateServer keeps a TAT.
type rateServer struct {
	limit   int64 // without Strict
	rate    Rate
	period  int64
	count   int64
	terms   LeaseTerms
	strict  bool
	refunds refunds

	tat    int64
	exists bool
}

func newRateServer(limit, count, period int64, o LeaseOptions) *rateServer {
	rate, err := NewRate(limit, count, period)
	must(err)
	s := &rateServer{limit: limit, period: period, count: count, strict: o.Strict, terms: rate.LeaseTerms(o)}
	s.rate, err = rate.WithLimit(max(s.terms.Capacity, 0))
	must(err)
	return s
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (s *rateServer) decide(now, cost int64, peek bool) (d Decision) {
	must(s.rate.ChargeTo(&d, now, s.tat, s.exists, Call{Cost: cost, Peek: peek}))
	return d
}

func (s *rateServer) keep(write Write, tat int64) {
	switch write {
	case Set:
		s.tat, s.exists = tat, true
	case Delete:
		s.exists = false
	}
}

func (s *rateServer) charge(now int64, sizes []int64) (units int64, g LeaseGrant, r LeaseRefusal) {
	var d Decision
	for _, size := range sizes {
		if d = s.decide(now, size, false); !d.Limited {
			s.keep(d.Write, d.TAT)
			return size, LeaseGrant{ChargedAt: now, Remaining: d.Remaining, ResetAfter: d.ResetAfter}, r
		}
		r.Cost = size
	}
	r.RetryAfter, r.Remaining, r.ResetAfter = d.RetryAfter, d.Remaining, d.ResetAfter
	return 0, g, r
}

func (s *rateServer) giveBack(now, sent int64, back LeaseReturn) {
	switch s.refunds {
	case plainRefund:
		back.ChargedAt = now
	case refundsAtSend:
		back.ChargedAt += now - sent
	}
	s.keep(s.rate.GiveBack(now, s.tat, s.exists, back.ChargedAt, back.Units))
}

func (s *rateServer) most(now int64) int64 { return s.decide(now, 0, true).Remaining }

// excess finds the stretch of time in which most has passed beyond what comes back meanwhile: the level of a bucket that leaks at the rate. A
// unit is a period of it, and a nanosecond a count.
func (s *rateServer) excess(passed []passedUnits) (excess, allowed int64) {
	level, highest, at := int64(0), int64(0), int64(0)
	for _, p := range passed {
		if at != 0 {
			level = max(0, level-(p.at-at)*s.count)
		}
		at = p.at
		level += p.units * s.period
		highest = max(highest, level)
	}
	if !s.strict {
		allowed = s.terms.Length * driftUp / driftDown * s.count
	}
	if s.period%s.count != 0 { // less than one more, by how a Rate rounds
		allowed += s.period
	}
	return highest - s.limit*s.period, allowed + inexactNs*s.count
}

// fixedServer keeps a counter, in windows that begin with their first call or are aligned.
type fixedServer struct {
	limit, window int64 // ms
	aligned       bool
	state         FixedState
	windows       []passedUnits // when each began, and how long it is, in ms
}

func (s *fixedServer) decide(now, cost int64) FixedDecision {
	ms := now / nsPerMs
	f := Fixed{Limit: s.limit, EndMs: ms + s.window}
	if s.aligned {
		f.EndMs = AlignedEnd(ms, s.window)
	}
	return f.Decide(ms, s.state, Call{Cost: cost})
}

func (s *fixedServer) charge(now int64, sizes []int64) (units int64, g LeaseGrant, r LeaseRefusal) {
	var d FixedDecision
	for _, size := range sizes {
		if d = s.decide(now, size); !d.Limited {
			if d.ExpireAtMs != s.state.ExpireAtMs {
				s.windows = append(s.windows, passedUnits{now / nsPerMs, d.ExpireAtMs - now/nsPerMs})
			}
			s.state = FixedState{Count: d.Count, ExpireAtMs: d.ExpireAtMs, Exists: true}
			return size, LeaseGrant{ChargedAt: now, WindowEnd: d.ExpireAtMs, Remaining: d.Remaining, ResetAfter: d.ResetAfter * nsPerMs}, r
		}
		r.Cost = size
	}
	r.RetryAfter, r.Remaining, r.ResetAfter = d.RetryAfter, d.Remaining, d.ResetAfter*nsPerMs
	if r.RetryAfter > 0 {
		r.RetryAfter *= nsPerMs
	}
	return 0, g, r
}

func (s *fixedServer) giveBack(now, _ int64, back LeaseReturn) {
	if count, ok := s.state.GiveBack(now/nsPerMs, back.WindowEnd, back.Units); ok {
		s.state.Count = count
	}
}

func (s *fixedServer) most(now int64) int64 { return s.decide(now, 0).Remaining }

// excess counts what has passed in each window, and all that has in none.
func (s *fixedServer) excess(passed []passedUnits) (excess, allowed int64) {
	counts := make(map[int64]int64)
	for _, p := range passed {
		window := int64(-1)
		for _, w := range s.windows {
			if ms := p.at / nsPerMs; w.at <= ms && ms < w.at+w.units {
				window = w.at
			}
		}
		if counts[window] += p.units; window < 0 {
			counts[window] += s.limit
		}
		excess = max(excess, counts[window]-s.limit)
	}
	return excess, 0
}

// slidingServer keeps slices.
type slidingServer struct {
	limit   int64
	sliding Sliding
	slices  map[int64]int64
}

func (s *slidingServer) counts(now int64) []int64 {
	counts := make([]int64, s.sliding.Counts())
	for start, count := range s.slices {
		if i, ok := s.sliding.Index(now/nsPerMs, start); ok {
			counts[i] += count
		}
	}
	return counts
}

func (s *slidingServer) charge(now int64, sizes []int64) (units int64, g LeaseGrant, r LeaseRefusal) {
	var d SlidingDecision
	start := s.sliding.Start(now / nsPerMs)
	counts := s.counts(now)
	for _, size := range sizes {
		if d = s.sliding.Decide(now/nsPerMs, counts, Call{Cost: size}); !d.Limited {
			s.slices[start] += size
			return size, LeaseGrant{ChargedAt: now, WindowEnd: start + s.sliding.Length(), Remaining: d.Remaining, ResetAfter: d.ResetAfter * nsPerMs}, r
		}
		r.Cost = size
	}
	r.RetryAfter, r.Remaining, r.ResetAfter = d.RetryAfter, d.Remaining, d.ResetAfter*nsPerMs
	if r.RetryAfter > 0 {
		r.RetryAfter *= nsPerMs
	}
	return 0, g, r
}

func (s *slidingServer) giveBack(_, _ int64, back LeaseReturn) {
	start := back.WindowEnd - s.sliding.Length()
	if s.slices[start] = max(0, s.slices[start]-back.Units); s.slices[start] == 0 {
		delete(s.slices, start)
	}
}

func (s *slidingServer) most(now int64) int64 {
	return s.sliding.Decide(now/nsPerMs, s.counts(now), Call{}).Remaining
}

// excess counts what has passed in whole slices that make up a window.
func (s *slidingServer) excess(passed []passedUnits) (excess, allowed int64) {
	length := s.sliding.Length()
	var counted []passedUnits // by slice
	for _, p := range passed {
		start := s.sliding.Start(p.at / nsPerMs)
		if n := len(counted); n == 0 || counted[n-1].at != start {
			counted = append(counted, passedUnits{at: start})
		}
		counted[len(counted)-1].units += p.units
	}
	first, sum := 0, int64(0)
	for _, slice := range counted {
		sum += slice.units
		for ; counted[first].at <= slice.at-s.sliding.slices*length; first++ {
			sum -= counted[first].units
		}
		excess = max(excess, sum-s.limit)
	}
	return excess, 0
}

// leaseNode is a process that holds leases.
type leaseNode struct {
	q       QuotaLease
	clock   drifting
	crashes int // so that replies to what it was before are not heard
}

// drifting is a clock that is off by an offset, and runs too fast by so many millionths.
type drifting struct{ offset, ppm int64 }

func (d drifting) at(t int64) int64 { return d.offset + t + t*d.ppm/1_000_000 }

// until returns for how long the true time has to go on from t until the clock shows a reading, or a little less.
func (d drifting) until(t, reading int64) int64 {
	return (reading - d.at(t)) * 1_000_000 / (1_000_000 + d.ppm)
}

// letter is what is under way between a node and the server.
type letter struct {
	node, crashes int
	answered      bool // it is on its way back
	giveBack      bool

	sent    int64 // by the node's clock
	sentAt  int64 // by the server's
	cost    int64 // of a call that waits for it
	leases  bool  // what is charged beyond the cost is a lease
	sizes   [MaxLeaseSizes]int64
	n       int
	units   int64
	grant   LeaseGrant
	refusal LeaseRefusal
	back    LeaseReturn
}

// leaseWorld is the fleet.
type leaseWorld struct {
	r       *rand.Rand
	terms   LeaseTerms
	server  leaseServer
	clock   drifting // the server's
	now     int64    // true time
	nodes   []leaseNode
	letters []letter
	passed  []passedUnits
}

// begin readies the world for a history.
func (w *leaseWorld) begin(server leaseServer, terms LeaseTerms, nodes int) {
	w.server, w.terms, w.now = server, terms, 1
	w.clock = drifting{offset: epoch, ppm: w.ppm()}
	w.nodes, w.letters, w.passed = w.nodes[:0], w.letters[:0], w.passed[:0]
	for range nodes {
		w.nodes = append(w.nodes, leaseNode{clock: drifting{offset: 1 + w.r.Int64N(nsPerSecond*1000), ppm: w.ppm()}})
	}
}

// ppm is by how much a clock is off, and often by as much as one may be.
func (w *leaseWorld) ppm() int64 {
	switch w.r.IntN(4) {
	case 0:
		return 0
	case 1:
		return minPPM
	case 2:
		return maxPPM
	}
	return minPPM + w.r.Int64N(maxPPM-minPPM+1)
}

// pass notes what has passed at an instant of true time.
func (w *leaseWorld) pass(at, units int64) {
	w.passed = append(w.passed, passedUnits{w.clock.at(at), units})
}

// call has a node answer a call. The clock was read a while before now, if the node has stood still since.
func (w *leaseWorld) call(i int, cost, stoodStill int64, chosen bool) {
	node := &w.nodes[i]
	read := w.now
	now := node.clock.at(read)
	w.now += stoodStill
	if cost <= w.terms.MaxCost() {
		answer := node.q.Decide(&w.terms, now, cost)
		if answer == LeaseSpent {
			w.pass(read, cost)
		}
		if answer != LeaseAsk {
			if node.q.Renews(&w.terms, now) {
				w.ask(i, now, 0, false)
			}
			return
		}
	}
	w.ask(i, now, cost, chosen)
}

// ask sends what charges a call, with a lease if that pays. chosen has the lease be of any size: no bound depends on that.
func (w *leaseWorld) ask(i int, now, cost int64, chosen bool) {
	l := letter{node: i, crashes: w.nodes[i].crashes, sent: now, cost: cost}
	switch {
	case chosen:
		most := max(1, w.server.most(w.clock.at(w.now))-cost)
		l.sizes[0], l.sizes[1], l.n, l.leases = cost+1+w.r.Int64N(most), cost, 2, true
	default:
		l.n = w.nodes[i].q.Sizes(&w.terms, now, cost, &l.sizes)
		l.leases = l.n > 0
	}
	if l.n == 0 {
		if cost == 0 {
			return
		}
		l.sizes[0], l.n = cost, 1
	}
	w.letters = append(w.letters, l)
}

// deliver has a letter arrive.
func (w *leaseWorld) deliver(k int) {
	l := &w.letters[k]
	now := w.clock.at(w.now)
	switch {
	case l.giveBack:
		w.server.giveBack(now, l.sentAt, l.back)
	case !l.answered:
		l.answered = true
		l.units, l.grant, l.refusal = w.server.charge(now, l.sizes[:l.n])
		if l.units > 0 && l.cost > 0 {
			w.pass(w.now, l.cost)
		}
		return
	default:
		w.hear(l)
	}
	w.drop(k)
}

// hear has a node hear the reply to a letter.
func (w *leaseWorld) hear(l *letter) {
	node := &w.nodes[l.node]
	if node.crashes != l.crashes || !l.leases {
		return
	}
	heard := node.clock.at(w.now)
	if l.units == 0 {
		l.refusal.Heard, l.refusal.Ahead = heard, l.cost == 0
		node.q.Refused(&w.terms, l.refusal)
		return
	}
	g := l.grant
	g.Sent, g.Heard, g.Units = l.sent, heard, l.units-l.cost
	node.q.Granted(&w.terms, g)
}

// lose has a letter arrive no more.
func (w *leaseWorld) lose(k int) {
	l := &w.letters[k]
	if node := &w.nodes[l.node]; !l.giveBack && l.leases && node.crashes == l.crashes {
		node.q.Failed(&w.terms, node.clock.at(w.now))
	}
	w.drop(k)
}

// drop forgets a letter.
func (w *leaseWorld) drop(k int) {
	w.letters[k] = w.letters[len(w.letters)-1]
	w.letters = w.letters[:len(w.letters)-1]
}

// give has a node give back: what it holds, or what it has not spent of what has ended.
func (w *leaseWorld) give(i int) {
	node := &w.nodes[i]
	now := node.clock.at(w.now)
	list := []LeaseReturn{node.q.Ended(&w.terms, now)}
	if w.r.IntN(2) == 0 {
		held := node.q.Return(&w.terms, now)
		list = append(list, held[:]...)
	}
	for _, back := range list {
		if back.Units > 0 {
			w.letters = append(w.letters, letter{node: i, giveBack: true, sentAt: w.clock.at(w.now), back: back})
		}
	}
}

// burst spends all that there is: what nodes hold, and what can be charged.
func (w *leaseWorld) burst() {
	for i := range w.nodes {
		node := &w.nodes[i]
		now := node.clock.at(w.now)
		for left := node.q.Left(now); left > 0; left = node.q.Left(now) {
			cost := min(left, w.terms.MaxCost())
			if node.q.Decide(&w.terms, now, cost) != LeaseSpent {
				panic("what is held is not spent")
			}
			w.pass(w.now, cost)
		}
	}
	if most := w.server.most(w.clock.at(w.now)); most > 0 {
		if units, _, _ := w.server.charge(w.clock.at(w.now), []int64{most}); units > 0 {
			w.pass(w.now, units)
		}
	}
}

// wait lets time go on, by something that may matter.
func (w *leaseWorld) wait() {
	length := w.terms.Length
	switch w.r.IntN(8) {
	case 6: // until all has come back
		w.now += int64(float64(w.terms.Capacity)/w.terms.rate) + w.r.Int64N(10)
	case 0:
		w.now += w.r.Int64N(10)
	case 1:
		w.now += w.r.Int64N(length/10 + 1)
	case 2:
		w.now += w.r.Int64N(length + 1)
	case 3:
		w.now += length + w.r.Int64N(length+1)
	default: // until a lease is about to end
		node := &w.nodes[w.r.IntN(len(w.nodes))]
		if h := &node.q.held[w.r.IntN(2)]; h.left > 0 {
			w.now += max(0, node.clock.until(w.now, h.end-w.r.Int64N(3)))
		}
	}
}

// step does something.
func (w *leaseWorld) step() {
	i := w.r.IntN(len(w.nodes))
	switch n := w.r.IntN(32); {
	case n < 12:
		cost := int64(1)
		if w.r.IntN(3) == 0 {
			cost += w.r.Int64N(w.terms.MaxCost() + 1)
		}
		still := int64(0)
		if w.r.IntN(8) == 0 {
			still = w.r.Int64N(2*w.terms.Length + 1)
		}
		w.call(i, cost, still, w.r.IntN(2) == 0)
	case n < 22:
		for again := true; again && len(w.letters) > 0; again = w.r.IntN(3) > 0 {
			w.deliver(w.r.IntN(len(w.letters)))
		}
	case n < 27:
		w.wait()
	case n < 29:
		w.give(i)
	case n == 29 && w.r.IntN(2) == 0:
		w.nodes[i].q, w.nodes[i].crashes = QuotaLease{}, w.nodes[i].crashes+1
	case n == 30:
		if len(w.letters) > 0 {
			w.lose(w.r.IntN(len(w.letters)))
		}
	case w.r.IntN(4) == 0:
		w.burst()
	}
}

// judge returns by how much more has passed than the limit says, and by how much more may have.
func (w *leaseWorld) judge() (excess, allowed int64) {
	slices.SortFunc(w.passed, func(a, b passedUnits) int { return int(a.at - b.at) })
	return w.server.excess(w.passed)
}
