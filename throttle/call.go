package throttle

// Call is one request to a limiter that counts in milliseconds.
type Call struct {
	// Cost is how many units the call asks for. Zero looks without charging. A negative cost gives back at most what is
	// used, and is never limited.
	Cost int64

	// Peek asks for the decision only: the answer then tells of the state as it is, and nothing is to be written.
	Peek bool
}

// refund returns how many of the used units a call with a negative cost gives back.
func (c Call) refund(used int64) int64 {
	if c.Cost < -used { // used is never negative, so this holds for the lowest int64 too
		return used
	}
	return -c.Cost
}

// Verdict is the answer to a Call. All times are in milliseconds.
type Verdict struct {
	// Limited is true when the call must not pass.
	Limited bool

	// Write says what to do with the state; Keep for a Peek. A limited call keeps it too, except where Fixed mends a TTL.
	Write Write

	// Limit is what may be used at most.
	Limit int64

	// Remaining is what may still be used after the call, from 0 to Limit.
	Remaining int64

	// RetryAfter is after how many milliseconds the same call would pass if nobody else called, at least 1, or NoRetry.
	RetryAfter int64

	// ResetAfter is after how many milliseconds nothing is used any more, at least 0.
	ResetAfter int64
}

// Unlimited is the answer of a limiter without a limit, which has no state.
var Unlimited = Verdict{Limit: -1, Remaining: -1, RetryAfter: NoRetry}

// exceeds reports whether a cost that is not negative goes beyond the limit when so much is used already. Neither limit nor used
// is negative, so the difference fits.
func exceeds(limit, used, cost int64) bool { return cost > limit-used }
