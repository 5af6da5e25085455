package limiter

import (
	"math"

	"headgate/throttle"
)

// Returns is what of a charge comes back when a reservation turns out to have used less.
type Returns uint8

// What may come back.
const (
	ReturnNothing Returns = iota // any state: a charge stays as it is
	ReturnBacklog                // a Number that is a TAT in ns: what throttle.Reserved lets go of the time by which it lies ahead
	ReturnCount                  // a Number that counts units: the same of it, within the window that was charged
	ReturnSlice                  // Slices: units of the slice that was charged, while that counts
	ReturnEntries                // Entries: those that were added
	ReturnLease                  // Entries that are leases: the lease
)

// Boundless returns the policy under which work is charged that has been done already: the same, but for a limit that nothing exceeds.
func (p *Policy) Boundless() Policy {
	all := *p
	all.Limit = math.MaxInt64
	all.Rate = p.Rate.Boundless()
	if p.slices > 0 {
		all.Sliding = throttle.NewSliding(all.Limit, p.Window, p.slices)
	}
	return all
}
