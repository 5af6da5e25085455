package limiter

import "headgate/throttle"

// WindowMs is the time in milliseconds that a policy's limit is of: its window, or how long a bucket takes to fill. It is 0 where there is none, as
// without a limit, or where it differs from time to time, as that of months.
func (p *Policy) WindowMs() int64 {
	switch {
	case p.Limit < 0:
		return 0
	case p.Rate != (throttle.Rate{}):
		return (p.Rate.FillTime() + 1e6 - 1) / 1e6
	case p.Calendar != 0:
		return p.Calendar.Length()
	}
	return p.Window
}
