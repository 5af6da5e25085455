package limiter

import (
	"bytes"
	"slices"
	"strconv"
)

// maxDuration is the longest duration, in us: 100 years of 365.25 days.
const maxDuration = 36525 * day

// The units of durations, in us.
const (
	millisecond = 1000
	second      = 1000 * millisecond
	minute      = 60 * second
	hour        = 60 * minute
	day         = 24 * hour
	week        = 7 * day
)

// What a word is answered with that is no duration, one outside the range of all of them, or one that is too short or too exact for windows and
// leases, which are counted in milliseconds; %s stands for the word.
const (
	InvalidDuration    = "ERR invalid duration '%s', use a number with us, ms, s, m, h, d or w (none: ms)"
	ZeroDuration       = "ERR duration '%s' must be above 0"
	LongDuration       = "ERR duration '%s' must be at most 36525d"
	ShortDuration      = "ERR duration '%s' is below 1ms"
	FractionalDuration = "ERR duration '%s' is not a whole number of milliseconds"
)

// periodErrors are what a period is answered with besides InvalidDuration.
var periodErrors = []Error{ZeroDuration, LongDuration}

// DurationErrors are what a duration in milliseconds is answered with besides InvalidDuration.
var DurationErrors = append(slices.Clip(periodErrors), ShortDuration, FractionalDuration)

// DurationRange is what the summary of a duration in milliseconds ends with.
const DurationRange = ", from 1ms to 36525d; a bare number is milliseconds"

// ParseDuration reads a duration as the RL.* commands take it, and returns it in milliseconds: digits of which the first is not 0,
// and ms, s, m, h, d or w; without a unit they are milliseconds. One in us is taken if it is a whole number of milliseconds.
func ParseDuration(b []byte) (ms int64, err error) {
	n, unit, err := parseDuration(b)
	switch {
	case err != nil:
		return 0, err
	case n*unit < millisecond:
		return 0, Quoting(ShortDuration, b)
	case n*unit%millisecond != 0:
		return 0, Quoting(FractionalDuration, b)
	}
	return n * unit / millisecond, nil
}

// parsePeriod reads the period of a rate, a duration that may also be in us, and returns it in nanoseconds, of which 64 bits hold the longest.
func parsePeriod(b []byte) (ns int64, err error) {
	const nsPerUs = 1000
	n, unit, err := parseDuration(b)
	return n * unit * nsPerUs, err
}

// parseDuration reads a number and its unit in us. Their product is not above maxDuration.
func parseDuration(b []byte) (n, unit int64, err error) {
	i := 0
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if n = n*10 + int64(b[i]-'0'); n == 0 || n > maxDuration {
			return 0, 0, refuseDuration(b, InvalidDuration)
		}
	}
	unit = durationUnit(b[i:])
	if i == 0 || unit == 0 || n > maxDuration/unit {
		return 0, 0, refuseDuration(b, InvalidDuration)
	}
	return n, unit, nil
}

// durationUnit returns what a unit stands for in us, or 0 for what is none.
func durationUnit(b []byte) int64 {
	switch len(b) {
	case 0:
		return millisecond
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
		case 'w':
			return week
		}
	case 2:
		switch string(b) {
		case "ms":
			return millisecond
		case "us":
			return 1
		}
	}
	return 0
}

// FormatDuration writes so many ms, at least 1, as the shortest text that ParseDuration reads as the same.
func FormatDuration(ms int64) []byte {
	for _, unit := range [...]struct {
		us   int64
		name string
	}{{week, "w"}, {day, "d"}, {hour, "h"}, {minute, "m"}, {second, "s"}} {
		if each := unit.us / millisecond; ms%each == 0 {
			return append(strconv.AppendInt(nil, ms/each, 10), unit.name...)
		}
	}
	return append(strconv.AppendInt(nil, ms, 10), "ms"...)
}

// refuseDuration is the error for a word that parseDuration does not take: invalid, unless it is but outside the range.
func refuseDuration(b []byte, invalid string) error {
	digits, negative := bytes.CutPrefix(b, []byte("-"))
	unit := bytes.TrimLeft(digits, "0123456789")
	digits = digits[:len(digits)-len(unit)]
	switch {
	case len(digits) == 0 || durationUnit(unit) == 0:
	case negative || len(bytes.Trim(digits, "0")) == 0:
		invalid = ZeroDuration
	case digits[0] != '0':
		invalid = LongDuration
	}
	return Quoting(invalid, b)
}
