package throttle

import "time"

// Calendar is a unit of the calendar in which Fixed may count.
type Calendar uint8

// The units. Weeks begin on Monday.
const (
	Minute Calendar = iota + 1
	Hour
	Day
	Week
	Month
	Year
)

// Length is how long the unit is in milliseconds but for changes of the clocks, or 0 for those of which one is longer than another.
func (u Calendar) Length() int64 {
	switch u {
	case Minute:
		return 60 * msPerSecond
	case Hour:
		return 3600 * msPerSecond
	case Day:
		return 24 * 3600 * msPerSecond
	case Week:
		return 7 * 24 * 3600 * msPerSecond
	}
	return 0
}

// maxTransitions bounds how many changes of a zone's offset End looks past. None has had more than a few in any year.
const maxTransitions = 64

// End returns when the unit ends that now (Unix milliseconds) lies in, by the clocks of the zone, in Unix milliseconds and later than
// now: the first instant at which they show the next unit's beginning or a later time. So a day ends once even where midnight
// comes twice or not at all, and an hour that clocks show twice counts as one. A minute ends within 60 s: the one before clocks are set
// back would else last as long as all that they show twice.
func (u Calendar) End(now int64, zone *time.Location) int64 {
	at := time.UnixMilli(now).In(zone)
	next := u.next(at)
	begins, end := wall(next, at)
	for i := 0; u != Minute && i < maxTransitions && !end.IsZero() && begins >= end.UnixMilli(); i++ {
		at = end
		begins, end = wall(next, at)
	}
	// Where a transition has skipped the unit's beginning, the transition is where it begins.
	return max(begins, at.UnixMilli(), now+1)
}

// wall returns when the clocks show a time, in ms, if they keep the offset that they have at an instant, and until when they do.
func wall(shown int64, at time.Time) (ms int64, end time.Time) {
	_, offset := at.Zone()
	_, end = at.ZoneBounds()
	return shown - int64(offset)*msPerSecond, end
}

// next returns what the clocks show at the next unit's beginning, as if they were in UTC, in Unix milliseconds.
func (u Calendar) next(at time.Time) int64 {
	year, month, day := at.Date()
	hour, minute := 0, 0
	switch u {
	case Minute:
		hour, minute = at.Hour(), at.Minute()+1
	case Hour:
		hour = at.Hour() + 1
	case Day:
		day++
	case Week:
		day += 7 - (int(at.Weekday())+6)%7
	case Month:
		month, day = month+1, 1
	default:
		year, month, day = year+1, time.January, 1
	}
	return time.Date(year, month, day, hour, minute, 0, 0, time.UTC).UnixMilli()
}
