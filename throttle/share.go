package throttle

import "math"

// ShareOf returns the share, above 0 and at most 1, of a limit, rounded down: at least 1, unless the limit is 0 or less.
func ShareOf(limit int64, share float64) int64 {
	if limit <= 0 || share >= 1 {
		return limit
	}
	return max(1, int64(float64(limit)*share))
}

// slower returns how long is waited for a share of the rate at which something comes every interval, which is above 0.
func slower(interval int64, share float64) int64 {
	longer := math.Ceil(float64(interval) / share)
	if longer >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(int64(longer), interval)
}

// Share returns the GCRA of a share of the limit and of the rate. It returns ErrOverflow when the tolerance leaves int64.
func (g GCRA) Share(share float64) (GCRA, error) {
	if g.interval < 0 { // limits everything
		return g, nil
	}
	return newGCRA(slower(g.interval, share), ShareOf(g.limit, share))
}

// Share returns the Rate of a share of the capacity and of the rate. It returns ErrOverflow when the tolerance leaves int64.
func (r Rate) Share(share float64) (Rate, error) {
	return NewRate(ShareOf(r.capacity, share), int64(r.count), slower(int64(r.period), share))
}
