package policy

import "fmt"

// maxDuration is the longest duration, in ms: 100 years of 365.25 days.
const maxDuration = 36525 * day

// The units of durations, in ms.
const (
	second = 1000
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// ParseDuration reads a duration as the RL.* commands take it, and returns it in milliseconds: digits of which the first is not 0,
// and ms, s, m, h or d; without a unit they are milliseconds.
func ParseDuration(b []byte) (ms int64, err error) {
	n, i := int64(0), 0
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if n = n*10 + int64(b[i]-'0'); n == 0 || n > maxDuration {
			return 0, durationError(b)
		}
	}
	unit := durationUnit(b[i:])
	if i == 0 || unit == 0 || n > maxDuration/unit {
		return 0, durationError(b)
	}
	return n * unit, nil
}

// durationUnit returns what a unit stands for in ms, or 0 for what is none.
func durationUnit(b []byte) int64 {
	switch len(b) {
	case 0:
		return 1
	case 1:
		switch b[0] {
		case 's':
			return second
		case 'm':
			return minute
		case 'h':
			return hour
		case 'd':
			return day
		}
	case 2:
		if b[0] == 'm' && b[1] == 's' {
			return 1
		}
	}
	return 0
}

func durationError(b []byte) error { return Error(fmt.Sprintf("ERR invalid duration '%s'", Shown(b))) }
