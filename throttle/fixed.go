package throttle

// Fixed counts within one window at a time. It is a value of two words, made for each call: where the window ends is the
// caller's to say (now + window for a window that begins with its first call, AlignedEnd, or Calendar.End).
type Fixed struct {
	// Limit is how many units may pass within one window, at least 0.
	Limit int64

	// EndMs is when a window that began now would end, in Unix milliseconds, later than now.
	EndMs int64
}

// FixedState is a counter as the key holds it. The zero value is no key.
type FixedState struct {
	Count      int64 // below 0 counts as 0
	ExpireAtMs int64 // when its window ends, in Unix milliseconds; 0 when it has no expiry
	Exists     bool
}

// FixedDecision is a Verdict with the counter to store when Write is Set.
type FixedDecision struct {
	Verdict
	Count      int64
	ExpireAtMs int64
}

// AlignedEnd returns the next multiple of the window after now, both in milliseconds, counted from the Unix epoch.
func AlignedEnd(now, window int64) int64 { return now - floorMod(now, window) + window }

// Decide answers a call at now (Unix milliseconds). A window that has ended counts as none. A counter without an expiry gets one,
// and one beyond EndMs is cut to it, by every call that may write, limited or not: otherwise a counter whose INCR was never
// followed by its EXPIRE would limit for ever.
func (f Fixed) Decide(now int64, s FixedState, call Call) FixedDecision {
	used, end := int64(0), f.EndMs
	exists := s.Exists && (s.ExpireAtMs == 0 || s.ExpireAtMs > now)
	if exists {
		used = max(s.Count, 0)
		if s.ExpireAtMs != 0 {
			end = min(end, s.ExpireAtMs)
		}
	}
	d := FixedDecision{Verdict: Verdict{Limit: f.Limit, RetryAfter: NoRetry}, Count: used, ExpireAtMs: end}
	mend := exists && s.ExpireAtMs != end
	after := used
	switch {
	case call.Cost < 0:
		after = used - call.refund(used)
		if after != used || mend {
			d.Write = Set
		}
	case exceeds(f.Limit, used, call.Cost):
		d.Limited = true
		if call.Cost <= f.Limit {
			d.RetryAfter = end - now
		}
		if mend && call.Cost > 0 {
			d.Write = Set
		}
	case call.Cost > 0:
		after = used + call.Cost
		d.Write = Set
	}
	if call.Peek {
		after, d.Write = used, Keep
	}
	d.Count = after
	d.Remaining = max(f.Limit-after, 0)
	if after > 0 {
		d.ResetAfter = end - now
	}
	return d
}
