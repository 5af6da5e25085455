package limiter

import "headgate/throttle"

// Share returns the policy of a share, above 0 and at most 1, of a limit and of its rate: the limit is rounded down, and at least 1. What
// cannot be divided, as a limit of 0 or none, stays as it is. It returns ErrNotInteger for numbers beyond 64 bits.
func (p *Policy) Share(share float64) (Policy, error) {
	part := *p
	if p.Limit <= 0 {
		return part, nil
	}
	part.Limit = throttle.ShareOf(p.Limit, share)
	if p.Rate != (throttle.Rate{}) {
		var err error
		if part.Rate, err = p.Rate.Share(share); err != nil {
			return Policy{}, ErrNotInteger
		}
	}
	if p.slices > 0 {
		part.Sliding = throttle.NewSliding(part.Limit, p.Window, p.slices)
	}
	return part, nil
}
