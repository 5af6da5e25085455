package throttle

const (
	nsPerUs     = 1_000
	usPerSecond = 1_000_000
	nsPerMs     = 1_000_000
	nsPerSecond = 1_000_000_000
	msPerSecond = 1_000
)

// Seconds turns nanoseconds into the whole seconds that CL.THROTTLE reports: what is below a millisecond is dropped,
// and the rest is rounded up. So 2.0005 s is 2 and 2.001 s is 3.
func Seconds(d int64) int64 {
	return ceilDiv(d/nsPerMs, msPerSecond)
}

// RetrySeconds is Seconds for a RetryAfter. It is at least 1, because a caller told to wait 0 seconds would spin, and
// NoRetry stays NoRetry. What Seconds drops makes the answer up to a millisecond too short.
func RetrySeconds(retryAfter int64) int64 {
	if retryAfter < 0 {
		return NoRetry
	}
	return max(1, Seconds(retryAfter))
}

// ExpireAtMs returns the first whole millisecond since the Unix epoch that is not before tat. A key that expires then
// never loses a TAT that still counts, even when less than a millisecond is left.
func ExpireAtMs(tat int64) int64 {
	return ceilDiv(tat, nsPerMs)
}

// ceilDiv returns n / unit rounded up, for a positive unit and any n.
func ceilDiv(n, unit int64) int64 {
	quotient := n / unit
	if n%unit > 0 {
		quotient++
	}
	return quotient
}

// Millis turns nanoseconds, 0 or more, into whole milliseconds, rounded up.
func Millis(d int64) int64 { return ceilDiv(d, nsPerMs) }

// RetryMillis is Millis for a RetryAfter: NoRetry stays NoRetry.
func RetryMillis(retryAfter int64) int64 {
	if retryAfter < 0 {
		return NoRetry
	}
	return Millis(retryAfter)
}

// SecondsOfMicros is Seconds for GCRA, which counts in microseconds: what is below one is dropped, and the rest is rounded up.
func SecondsOfMicros(d int64) int64 { return ceilDiv(d/nsPerUs, usPerSecond) }
