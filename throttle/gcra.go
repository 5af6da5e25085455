package throttle

// Quota is a rate and a burst as CL.THROTTLE takes them. Any value can be written down; NewGCRA judges it.
type Quota struct {
	// MaxBurst is how many units may pass at one instant beyond the first. Below zero, nothing can be charged.
	MaxBurst int64

	// Count is how many units pass per period. It is not zero. A negative count limits everything, unless the period
	// is negative too: only their quotient matters.
	Count int64

	// Period is in seconds. It is not zero.
	Period int64
}

// GCRA decides by the generic cell rate algorithm for one quota. It is an immutable value of three words, cheap to
// make for each call; the zero GCRA answers every call with ErrZeroRate.
type GCRA struct {
	interval  int64
	limit     int64
	tolerance int64
}

// NewGCRA returns the GCRA of a quota: a limit of MaxBurst + 1 and an emission interval of Period / Count. It returns
// ErrZeroRate when that interval is zero or no number at all, and ErrOverflow when the limit, the period in nanoseconds
// or the tolerance leaves int64. The rate is judged before the burst.
func NewGCRA(q Quota) (GCRA, error) {
	interval, err := emissionInterval(q.Count, q.Period)
	if err != nil {
		return GCRA{}, err
	}
	limit, ok := add(q.MaxBurst, 1)
	if !ok {
		return GCRA{}, ErrOverflow
	}
	return newGCRA(interval, limit)
}

// NewCapacityGCRA is NewGCRA for callers who name the whole capacity, which is the limit itself, in place of what may
// pass beyond the first unit. The period is in seconds; the errors are those of NewGCRA.
func NewCapacityGCRA(capacity, count, period int64) (GCRA, error) {
	interval, err := emissionInterval(count, period)
	if err != nil {
		return GCRA{}, err
	}
	return newGCRA(interval, capacity)
}

// emissionInterval returns the nanoseconds that one unit costs, cut toward zero: negative when just one of count and
// period (in seconds) is negative.
func emissionInterval(count, period int64) (int64, error) {
	if count == 0 {
		return 0, ErrZeroRate
	}
	periodNs, ok := mul(period, nsPerSecond)
	if !ok {
		return 0, ErrOverflow
	}
	// No multiple of a billion is the lowest int64, so a count of -1 cannot make the quotient wrap around.
	interval := periodNs / count
	if interval == 0 {
		return 0, ErrZeroRate
	}
	return interval, nil
}

func newGCRA(interval, limit int64) (GCRA, error) {
	tolerance, ok := mul(interval, limit)
	if !ok {
		return GCRA{}, ErrOverflow
	}
	return GCRA{interval: interval, limit: limit, tolerance: tolerance}, nil
}

// Limit is what may pass at one instant when nothing is used.
func (g GCRA) Limit() int64 { return g.limit }

// Decide is NewGCRA and GCRA.Decide in one step.
func Decide(q Quota, now, tat int64, exists bool, quantity int64) (Decision, error) {
	g, err := NewGCRA(q)
	if err != nil {
		return Decision{}, err
	}
	return g.Decide(now, tat, exists, quantity)
}

// Decide answers a call for quantity units at the instant now. The stored state is tat when exists is true, and tat is
// ignored otherwise; every tat is valid, because users can write the key themselves. A negative quantity gives back and
// stops at "nothing is used"; it is limited when the key is still over the tolerance afterwards. Quantity 0 looks and
// never writes.
//
// A negative emission interval limits every call, with nothing remaining and NoRetry. So does a limit below zero,
// though a refund as large as the tolerance is then told a RetryAfter, which is the formula's answer and redis-cell's.
//
// It returns ErrOverflow when the charge, the new TAT or a duration of the answer leaves int64. For a now of zero or
// later, the durations do so only if the tolerance is the lowest int64.
func (g GCRA) Decide(now, tat int64, exists bool, quantity int64) (Decision, error) {
	var d Decision
	err := g.DecideTo(&d, now, tat, exists, quantity)
	return d, err
}

// DecideTo is Decide with the answer written to d, which is all zero after an error. It spares those who are in a hurry a copy: a Decision is
// too long to be returned in registers.
func (g *GCRA) DecideTo(d *Decision, now, tat int64, exists bool, quantity int64) error {
	*d = Decision{}
	if g.interval == 0 {
		return ErrZeroRate
	}
	increment, ok := mul(g.interval, quantity)
	if !ok {
		return ErrOverflow
	}
	if !exists {
		tat = now
	}
	tat = max(now, tat)
	if g.interval < 0 {
		return g.refuse(d, now, tat, NoRetry)
	}

	newTAT, ok := add(tat, increment)
	if !ok {
		return ErrOverflow
	}
	newTAT = max(now, newTAT)
	ahead, ok := sub(newTAT, now)
	if !ok {
		return ErrOverflow
	}
	// Durations are compared in place of the instants now and newTAT - tolerance: that subtraction could leave int64
	// although the answer is plain.
	if ahead > g.tolerance {
		if increment > g.tolerance {
			return g.refuse(d, now, tat, NoRetry)
		}
		retry, ok := sub(ahead, g.tolerance)
		if !ok {
			return ErrOverflow
		}
		return g.refuse(d, now, tat, retry)
	}

	d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter = g.limit, g.remaining(ahead), NoRetry, ahead
	switch {
	case quantity == 0:
	case newTAT > now:
		d.Write, d.TAT = Set, newTAT
	case exists:
		d.Write = Delete
	}
	return nil
}

// refuse is the limited decision: what is reported is the state before the call, which stays.
func (g *GCRA) refuse(d *Decision, now, tat, retryAfter int64) error {
	ahead, ok := sub(tat, now)
	if !ok {
		return ErrOverflow
	}
	d.Limited, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter = true, g.limit, g.remaining(ahead), retryAfter, ahead
	return nil
}

// remaining returns the whole units that fit between a TAT this far ahead of now, which is never negative, and the
// tolerance.
func (g *GCRA) remaining(ahead int64) int64 {
	if g.interval < 0 {
		return 0
	}
	// With the larger of the two as the minuend the difference is at least zero and cannot overflow, and the quotient
	// is at most tolerance / interval, the limit.
	return (max(g.tolerance, ahead) - ahead) / g.interval
}

// NewIntervalGCRA returns the GCRA that lets one unit pass in each interval of so many nanoseconds, at least 1, and MaxBurst more at
// once. It returns ErrOverflow when the limit or the tolerance leaves int64.
func NewIntervalGCRA(maxBurst, interval int64) (GCRA, error) {
	limit, ok := add(maxBurst, 1)
	if !ok {
		return GCRA{}, ErrOverflow
	}
	return newGCRA(interval, limit)
}
