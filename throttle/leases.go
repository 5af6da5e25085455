package throttle

// Leases limits how many hold something at once. Each holder has a lease that ends by itself, so one that crashed is not counted
// for ever. The list of leases is the caller's. It is a value of two words.
type Leases struct {
	Limit int64 // holders, at least 0
	TTL   int64 // of a lease, in ms, at least 1
}

// LeasesState tells what Leases.Acquire needs to know of the list: of leases that end later than now.
type LeasesState struct {
	Held  int64 // how many there are, that of the caller included
	Mine  bool  // the caller holds one already
	Last  int64 // when the last of the others' ends, in Unix milliseconds; 0 when there is none
	MyEnd int64 // when the caller's ends, if Mine
}

// MayCost reports whether a call may ask for so many leases: for one, or for none, which looks. To give one back takes its name.
func (Leases) MayCost(cost int64) bool { return cost == 0 || cost == 1 }

// Acquire answers a call for one lease at now (Unix milliseconds), whose cost is one that MayCost allows. at(i) is when the i-th lease ends, from the
// first that does, 0 <= i < Held. A caller that holds one has it renewed, whatever the limit. When Write is Set the lease ends at now + TTL, and
// nothing is held any more after ResetAfter.
func (l Leases) Acquire(now int64, s LeasesState, at func(i int64) int64, call Call) Verdict {
	v := Verdict{Limit: l.Limit, RetryAfter: NoRetry}
	held, last := s.Held, s.Last
	if s.Mine {
		last = max(last, s.MyEnd)
	}
	switch {
	case !s.Mine && exceeds(l.Limit, s.Held, call.Cost):
		v.Limited = true
		if call.Cost <= l.Limit {
			v.RetryAfter = at(s.Held-l.Limit+call.Cost-1) - now
		}
	case call.Cost > 0 && !call.Peek:
		v.Write = Set
		last = max(s.Last, now+l.TTL)
		if !s.Mine {
			held++
		}
	}
	v.Remaining = max(l.Limit-held, 0)
	if held > 0 {
		v.ResetAfter = last - now
	}
	return v
}
