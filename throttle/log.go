package throttle

// Log admits by a list of the instants at which units passed, so it is exact. The list is the caller's; the decision needs its length
// and a few of its instants. It is a value of two words.
type Log struct {
	Limit  int64 // units, at least 0
	Window int64 // ms, at least 1
}

// Since returns the instant that the window at now begins after, both in Unix milliseconds: entries later than it and not later
// than now count.
func (l Log) Since(now int64) int64 { return now - l.Window }

// LogDecision is a Verdict with what to do with the list when Write is Set: to add Add entries at now, or to remove the Remove
// newest that count. Write is Delete when no entry that counts is left.
type LogDecision struct {
	Verdict
	Add, Remove int64

	// ExpireAtMs is when the newest entry stops counting, in Unix milliseconds, when Write is Set.
	ExpireAtMs int64
}

// Decide answers a call at now (Unix milliseconds). used is how many entries count, and at(i) the instant of the i-th of them from
// the oldest, 0 <= i < used, in Unix milliseconds.
func (l Log) Decide(now, used int64, at func(i int64) int64, call Call) LogDecision {
	d := LogDecision{Verdict: Verdict{Limit: l.Limit, RetryAfter: NoRetry}}
	left, newest := used, now
	switch {
	case call.Cost < 0:
		if d.Remove = call.refund(used); d.Remove > 0 && !call.Peek {
			left -= d.Remove
			d.Write = Set
		}
	case exceeds(l.Limit, used, call.Cost):
		d.Limited = true
		if call.Cost <= l.Limit {
			// So many of the oldest have to leave, which is at least one and at most all.
			leave := used - (l.Limit - call.Cost)
			d.RetryAfter = at(leave-1) + l.Window - now
		}
	case call.Cost > 0 && !call.Peek:
		d.Add = call.Cost
		d.Write = Set
	}
	d.Remaining = max(l.Limit-left-d.Add, 0)
	if d.Add == 0 && left > 0 {
		newest = at(left - 1)
	}
	if left+d.Add > 0 {
		d.ResetAfter = newest + l.Window - now
	}
	d.ExpireAtMs = now + d.ResetAfter
	if d.Write == Set && d.ResetAfter == 0 {
		d.Write = Delete
	}
	return d
}
