package waitqueue

import "math"

// Pace is how long a limit keeps a call waiting behind others. The zero value is that of a limit which is no rate.
type Pace struct {
	Charge    int64 // of a rate: ns by which the call moves the TAT, at least 1
	Tolerance int64 // of a rate: ns that the TAT may be ahead of the call when it has passed
	Open      bool  // it may pass earlier than anybody can know, so that it waits until its deadline whatever is expected
}

// Place is one waiting call's place in a queue. Its fields are not to be changed while it stands in one, but for Pace before a Plan.
type Place struct {
	Owner    any    // whose place it is; for the caller
	Arrival  uint64 // the lower it is, the earlier it has come; no two are equal
	Deadline int64  // when it is not worth waiting any longer
	Cost     int64  // units that it asks for, at least 1
	Pace     Pace

	at, tat       int64 // when it can pass at the earliest, and the TAT that it finds then: as of the last plan
	before, after *Place
}

// At is when the call can pass at the earliest, as it was last worked out.
func (p *Place) At() int64 { return p.at }

// Next is the place behind it, or nil.
func (p *Place) Next() *Place { return p.after }

// maxCost bounds what one place adds to a queue's cost, so that the sum of any number of them fits.
const maxCost = 1 << 40

// Queue are the calls that wait for one key, in the order of their arrival. The zero value is an empty one. It is not safe for concurrent
// use.
//
// What it knows of times is a plan: each place's, worked out from the time of the first. A plan stays good while those at the front pass, and
// newcomers are added to it. What happens to the key otherwise moves all times together, so that it is compared with the slack: by how much
// the one with the least to spare may be delayed. Only beyond that are they worked out anew.
type Queue struct {
	first, last *Place
	count       int
	cost        int64

	planned bool  // the times are those of a plan
	early   bool  // and some may be too late: somebody has left whom the plan counts
	slack   int64 // by how much everybody may be delayed without one that cannot pass in time
	delay   int64 // by how much the first one was delayed when the limit was last asked
	soonest int64 // no deadline is earlier
}

// Len is how many wait.
func (q *Queue) Len() int { return q.count }

// Cost is what all of them ask for, or less if that is more than anybody counts.
func (q *Queue) Cost() int64 { return q.cost }

// First is the place of whoever has come first, or nil.
func (q *Queue) First() *Place { return q.first }

// Soonest is when the first deadline may be over; math.MaxInt64 for an empty queue.
func (q *Queue) Soonest() int64 {
	if q.first == nil {
		return math.MaxInt64
	}
	return q.soonest
}

// Look is when the queue is to be looked at at the latest, as far as the plan says: math.MinInt64 if at once.
func (q *Queue) Look() int64 {
	switch {
	case q.first == nil:
		return math.MaxInt64
	case !q.planned || q.slack < q.delay:
		return math.MinInt64
	}
	return min(q.first.at, q.soonest)
}

// Insert puts p into the queue by its arrival. The limit says that it passes no earlier than at, if nobody came before it, and has the TAT.
func (q *Queue) Insert(p *Place, at, tat int64) {
	before := q.last
	for before != nil && before.Arrival > p.Arrival {
		before = before.before
	}
	if q.first == nil {
		q.planned, q.early, q.slack, q.delay, q.soonest = true, false, math.MaxInt64, 0, math.MaxInt64
	}
	switch {
	case before == q.last && before != nil && q.planned:
		behind, tatBehind := q.end()
		p.at, p.tat = p.Pace.Pass(max(at, behind), tatBehind), tatBehind
	default:
		p.at, p.tat = at, tat
		q.planned = q.first == nil
	}
	q.slack, q.soonest = min(q.slack, p.slack()), min(q.soonest, p.Deadline)
	q.link(p, before)
}

// link puts p behind a place, or in front.
func (q *Queue) link(p, before *Place) {
	if p.before = before; before == nil {
		p.after, q.first = q.first, p
	} else {
		p.after, before.after = before.after, p
	}
	if p.after == nil {
		q.last = p
	} else {
		p.after.before = p
	}
	q.count++
	q.cost += min(p.Cost, maxCost)
}

// Remove takes p out of the queue. passed is true if it has passed, at the front, as the plan has it.
func (q *Queue) Remove(p *Place, passed bool) {
	if p.after != nil && !(passed && p == q.first) {
		q.early = true
	}
	if p.before == nil {
		q.first = p.after
	} else {
		p.before.after = p.after
	}
	if p.after == nil {
		q.last = p.before
	} else {
		p.after.before = p.before
	}
	p.before, p.after = nil, nil
	q.count--
	q.cost -= min(p.Cost, maxCost)
}

// Behind returns when a call can pass that came now and stands behind all others: at is what the limit says without them. exact is false if it
// may be earlier, which a Plan would tell.
func (q *Queue) Behind(pace Pace, at int64) (behind int64, exact bool) {
	if q.first == nil {
		return at, true
	}
	end, tat := q.end()
	return pace.Pass(max(at, end), tat), q.planned && !q.early
}

// end returns when the last one passes, and the TAT behind it.
func (q *Queue) end() (at, tat int64) { return q.last.at, q.last.Pace.after(q.last.at, q.last.tat) }

// NeedsPlan reports whether somebody may be past its deadline, or unable to pass before it, now that the limit has said when the first one
// passes and what TAT it has.
func (q *Queue) NeedsPlan(now, at, tat int64) bool {
	later, least := max(at-q.first.at, tat-q.first.tat, 0), min(at-q.first.at, tat-q.first.tat)
	if least < 0 || later < q.delay { // earlier than the plan has it, or than newcomers since then have heard
		q.early = true
	}
	q.delay = later
	return !q.planned || now >= q.soonest || q.delay > q.slack
}

// Unplan has the times be worked out anew: paces have changed.
func (q *Queue) Unplan() { q.planned = false }

// Plan works all times out, from what the limit says of the first one, and calls late for each place that cannot pass before its deadline, or
// whose deadline has come. late takes the place out of the queue and returns true, or false if enough is done for now. Plan returns false if
// late did, or if it was the first one that was late: then the limit has to be asked about the next.
func (q *Queue) Plan(now, at, tat int64, late func(p *Place) bool) (whole bool) {
	q.planned = false
	slack, soonest := int64(math.MaxInt64), int64(math.MaxInt64)
	for p := q.first; p != nil; {
		next := p.after
		if p == q.first {
			p.at, p.tat = at, tat
		} else {
			p.at, p.tat = p.Pace.Pass(at, tat), tat
		}
		if p.Deadline <= now || p.slack() < 0 {
			if front := p == q.first; !late(p) || front {
				return false
			}
		} else {
			at, tat = p.at, p.Pace.after(p.at, p.tat)
			slack, soonest = min(slack, p.slack()), min(soonest, p.Deadline)
		}
		p = next
	}
	q.planned, q.early, q.slack, q.delay, q.soonest = true, false, slack, 0, soonest
	return true
}

// slack is by how much the call may be delayed.
func (p *Place) slack() int64 {
	if p.Pace.Open {
		return math.MaxInt64
	}
	return p.Deadline - p.at
}

// Pass returns when a call passes that comes no earlier than at and finds the TAT.
func (p Pace) Pass(at, tat int64) int64 {
	if p.Charge == 0 {
		return at
	}
	return max(at, plus(tat, p.Charge-p.Tolerance))
}

// after returns the TAT behind a call that has passed.
func (p Pace) after(at, tat int64) int64 {
	if p.Charge == 0 {
		return tat
	}
	return plus(max(at, tat), p.Charge)
}

// plus adds without leaving int64.
func plus(a, b int64) int64 {
	sum := a + b
	switch {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	}
	return sum
}
