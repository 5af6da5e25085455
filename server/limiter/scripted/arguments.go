package scripted

import (
	"headgate/internal/respcmd"
	"headgate/server/limiter"
	"headgate/throttle"
)

const nsPerSecond = 1_000_000_000

// split returns a number of ns as whole seconds, rounded down, and the rest, from 0 to 999,999,999 ns.
func split(ns int64) (seconds, rest int64) {
	seconds, rest = ns/nsPerSecond, ns%nsPerSecond
	if rest < 0 {
		seconds, rest = seconds-1, rest+nsPerSecond
	}
	return seconds, rest
}

// appendTerms appends the arguments of the rate family.
func appendTerms(dst []byte, t throttle.Terms) []byte {
	for _, ns := range [2]int64{t.Charge, t.Tolerance} {
		seconds, rest := split(ns)
		dst = appendNumber(dst, seconds)
		dst = appendNumber(dst, rest)
	}
	return dst
}

// rateArguments is how many these are.
const rateArguments = 4

// decides reports whether terms have rate.lua decide. By others nothing is written, whatever is stored.
func decides(t throttle.Terms) bool { return t.Charge != 0 && t.Tolerance >= 0 }

// look are terms by which rate.lua changes nothing.
var look = throttle.Terms{Tolerance: -nsPerSecond}

// arguments is how many arguments the call has for its part.
func (a *asked) arguments() int {
	switch p := a.call.Policy; a.family {
	case ofCounter:
		if p.Calendar != 0 {
			return 3 + calendarEnds
		}
		return 4
	case ofLog:
		if a.call.Request.HasMember {
			return 5
		}
		return 4
	case ofLease:
		return 6
	case ofIncrex:
		return 7
	}
	return 4
}

// appendArguments appends these. nowMs is about the time, for windows by the calendar.
func (a *asked) appendArguments(dst []byte, nowMs int64) []byte {
	if a.family == ofRate {
		return appendTerms(dst, a.terms)
	}
	if a.family == ofIncrex {
		return appendIncrex(dst, a.increx)
	}
	if a.action != acquire {
		return a.appendLease(dst, 1, 0, a.ttl, a.call.Want.Member, true)
	}
	p, r := a.call.Policy, a.call.Request
	cost, room := costs(p, r)
	switch a.family {
	case ofCounter:
		dst = appendNumber(dst, cost)
		dst = appendNumber(dst, room)
		return appendWindow(dst, p, nowMs)
	case ofSlices:
		dst = appendNumber(dst, cost)
		dst = appendNumber(dst, room)
		dst = appendNumber(dst, p.Sliding.Length())
		return appendNumber(dst, int64(p.Sliding.Counts()-1))
	case ofLog:
		dst = appendNumber(dst, cost)
		dst = appendNumber(dst, room)
		dst = appendNumber(dst, p.Window)
		dst = appendFlag(dst, r.HasMember)
		if r.HasMember {
			dst = respcmd.AppendBulk(dst, r.Member)
		}
		return dst
	}
	id := a.drawn[:]
	if r.HasMember {
		id = r.Member
	}
	return a.appendLease(dst, cost, room, p.Window, id, r.HasMember)
}

// appendLease appends the arguments of the lease family.
func (a *asked) appendLease(dst []byte, cost, room, ttl int64, id []byte, named bool) []byte {
	dst = respcmd.AppendBulk(dst, actionNames[a.action])
	dst = appendNumber(dst, cost)
	dst = appendNumber(dst, room)
	dst = appendNumber(dst, ttl)
	dst = respcmd.AppendBulk(dst, id)
	return appendFlag(dst, named)
}

// appendFlag appends 1 or 0.
func appendFlag(dst []byte, set bool) []byte {
	if set {
		return respcmd.AppendBulk(dst, "1")
	}
	return respcmd.AppendBulk(dst, "0")
}

// costs returns what a call costs, and how much may be used for it to pass, both cut to what doubles are exact with: no state that a script
// decides on holds as much, so the comparisons come out the same.
func costs(p *limiter.Policy, r *limiter.Request) (cost, room int64) {
	const most = 10 * maxExact
	cost = max(r.Call.Cost, -most)
	room = p.Limit
	if cost > 0 {
		room -= cost // fits: neither is below 0
		cost = min(cost, most)
	}
	return cost, max(-most, min(room, most))
}

// calendarEnds is how many ends of windows a script is given, from before the last one to after the next one, so that it finds the window of its
// own time whether that is a little behind ours or ahead.
const calendarEnds = 4

// appendWindow appends how the windows of a counter end.
func appendWindow(dst []byte, p *limiter.Policy, nowMs int64) []byte {
	switch {
	case p.Calendar != 0:
		dst = respcmd.AppendBulk(dst, "ends")
		for _, end := range endsAround(p, nowMs) {
			dst = appendNumber(dst, end)
		}
		return dst
	case p.Aligned:
		dst = respcmd.AppendBulk(dst, "aligned")
	default:
		dst = respcmd.AppendBulk(dst, "first")
	}
	return appendNumber(dst, p.Window)
}

// unitLengths are how long the calendar's units are at most, in ms, but for what clocks that are set back add.
var unitLengths = [...]int64{
	throttle.Minute: 60_000, throttle.Hour: 3_600_000, throttle.Day: 86_400_000, throttle.Week: 7 * 86_400_000,
	throttle.Month: 31 * 86_400_000, throttle.Year: 366 * 86_400_000,
}

// maxUnitSteps bounds the windows that endsAround looks at. Two units lie in less than three of the longest and a day.
const maxUnitSteps = 64

// endsAround returns two ends of windows in a row that are not after an instant, and two that are.
func endsAround(p *limiter.Policy, nowMs int64) (ends [calendarEnds]int64) {
	at := nowMs - 3*unitLengths[p.Calendar]
	for range maxUnitSteps {
		at = p.Calendar.End(at, p.Zone)
		copy(ends[:], ends[1:])
		ends[calendarEnds-1] = at
		if ends[calendarEnds-2] > nowMs {
			break
		}
	}
	return ends
}
