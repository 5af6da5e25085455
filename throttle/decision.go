package throttle

import "errors"

var (
	// ErrZeroRate means that a count or a period is zero, or that the rate is above one unit per nanosecond.
	ErrZeroRate = errors.New("throttle: the emission interval is zero")

	// ErrOverflow means that a value on the way to the decision does not fit into 64 bits.
	ErrOverflow = errors.New("throttle: the value leaves the 64-bit range")
)

// NoRetry stands for a retry_after that does not exist: the call was allowed, or waiting can never make it pass.
const NoRetry int64 = -1

// Write says what a decision asks the caller to do with the stored state.
type Write uint8

const (
	// Keep leaves the key as it is; an absent key stays absent.
	Keep Write = iota
	// Set stores the decision's new state, to expire as the algorithm says.
	Set
	// Delete removes the key, which exists: nothing is used any more.
	Delete
)

// Decision is the answer to one call. A limited decision always has Write Keep.
type Decision struct {
	// Limited is true when the call must not pass.
	Limited bool

	// Write says what to do with the key.
	Write Write

	// Limit is what may pass at one instant when nothing is used. It is zero or negative when the quota says so.
	Limit int64

	// Remaining is what may still pass at this instant after the call, from 0 to Limit, and 0 for a negative Limit.
	Remaining int64

	// RetryAfter is how many nanoseconds from now the same call would pass, at least 1, or NoRetry.
	RetryAfter int64

	// ResetAfter is how many nanoseconds from now nothing is used any more, at least 0.
	ResetAfter int64

	// TAT is the theoretical arrival time to store when Write is Set, always later than now; otherwise it is 0.
	TAT int64
}
