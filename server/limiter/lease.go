package limiter

import "headgate/throttle"

// Leases reports whether a gateway may decide calls by leases: what they charge is a number, or numbers by time, and they answer nothing beside it.
func (a *Algorithm) Leases() bool {
	return (a.Kind == Number || a.Kind == Slices) && a.Beyond == Nothing
}

// LeaseTerms returns what leases of the limit are like, see throttle.QuotaLease; of limits that cannot have any the zero value.
func (p *Policy) LeaseTerms(o throttle.LeaseOptions) throttle.LeaseTerms {
	switch {
	case p.Limit < 1 || !p.Algorithm.Leases():
		return throttle.LeaseTerms{}
	case p.Rate != (throttle.Rate{}):
		return p.Rate.LeaseTerms(o)
	case p.Algorithm.Kind == Slices:
		return throttle.WindowLeaseTerms(p.Limit, p.Window, o)
	case p.Algorithm.Kind == Number:
		return throttle.WindowLeaseTerms(p.Limit, p.leastWindow(), o)
	}
	return throttle.LeaseTerms{}
}

// leastWindow is how long a window of FIXED is, in ms; one by the calendar so long at least, but for days that begin late, and for an hour in which the
// clock is set forward by less than one, as by 30 minutes on Lord Howe.
func (p *Policy) leastWindow() int64 {
	switch p.Calendar {
	case 0:
		return p.Window
	case throttle.Minute:
		return minute / millisecond
	case throttle.Hour:
		return hour / millisecond
	}
	return day / millisecond
}

// WithLimit returns the policy of the same rate, or window, with another limit of at least 0. It returns ErrNotInteger for numbers beyond 64 bits.
func (p *Policy) WithLimit(limit int64) (Policy, error) {
	other := *p
	other.Limit = limit
	if p.Rate != (throttle.Rate{}) {
		var err error
		if other.Rate, err = p.Rate.WithLimit(limit); err != nil {
			return Policy{}, ErrNotInteger
		}
	}
	if p.slices > 0 {
		other.Sliding = throttle.NewSliding(limit, p.Window, p.slices)
	}
	return other, nil
}

// SameLimit reports whether two policies limit alike: by the same algorithm and numbers, so that they share the state of a key.
func (p *Policy) SameLimit(other *Policy) bool {
	return p.Algorithm == other.Algorithm && p.Limit == other.Limit && p.Rate == other.Rate && p.Window == other.Window &&
		p.Aligned == other.Aligned && p.Calendar == other.Calendar && p.Zone == other.Zone && p.Sliding == other.Sliding
}
