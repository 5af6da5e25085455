package limiter

import (
	"slices"
	"time"

	"headgate/throttle"
)

// fixed counts in a string with an expiry, which is what INCR and EXPIRE leave.
var fixed = Algorithm{
	Name: "FIXED", Since: "headgate 0.1.0", Complexity: "O(1)",
	Summary:   "Count calls in a window that starts with its first call, or is aligned to the Unix epoch or to a calendar.",
	Guarantee: "at most limit in each window, and up to twice that around a boundary; the same for the calendar's windows",
	Burst:     "the whole limit at once", Memory: "55 bytes",
	Seen:    "nothing passes until the window ends, then everything again; easiest to explain and to bill by: a quota \"per month\" ends when the customer's month does",
	Example: "100 10s", Says: "100 per 10 s",
	Args: []Arg{
		limitArg("limit", "the most units that can be taken in one window"),
		{Name: "window", Type: "oneof", Args: []Arg{
			{Name: "period", Type: "block", Args: []Arg{
				durationArg("window", "the length of a window").fails(invalidWindow),
				optional(tokenArg("ALIGNED")).means("windows begin at whole multiples of their length since the Unix epoch, not with a key's first call"),
			}},
			{Name: "calendar", Type: "block", Args: []Arg{
				{Name: "unit", Type: "oneof", Summary: "the window is the current minute, hour, day, week (from Monday on), month or year", Args: []Arg{
					tokenArg("MINUTE"), tokenArg("HOUR"), tokenArg("DAY"), tokenArg("WEEK"), tokenArg("MONTH"), tokenArg("YEAR"),
				}},
				{Name: "zone", Type: "string", Token: "TZ", Optional: true, Error: invalidZone, Summary: "the time zone of the calendar, such as `Europe/Berlin`; `UTC` by default"},
			}},
		}},
	}, Words: 2,
	Options: []Option{
		{Token: "ALIGNED", When: func(p *Policy) bool { return p.Window > 0 }, Only: "a window of a duration", Read: func(p *Policy, _ *Request, _ []byte) error {
			p.Aligned = true
			return nil
		}},
		{Token: "TZ", Value: true, When: func(p *Policy) bool { return p.Calendar != 0 }, Only: "a window of the calendar, such as DAY", Read: func(p *Policy, _ *Request, name []byte) (err error) {
			p.Zone, err = parseZone(name)
			return err
		}},
	},
	Errors: windowErrors, Kind: Number, Returns: ReturnCount,
	Read: readFixed, Text: textOfFixed, Decide: decideFixed,
}

// windowErrors are those of limiters that count within windows, whose length is in milliseconds.
var windowErrors = slices.Concat(DurationErrors, numberErrors)

func readFixed(p *Policy, words [][]byte) (err error) {
	if err = p.readLimit(words[0]); err != nil {
		return err
	}
	if p.Calendar = parseCalendar(words[1]); p.Calendar != 0 {
		p.Zone = time.UTC
		return nil
	}
	if p.Window, err = ParseDuration(words[1]); err != nil {
		if _, _, none := parseDuration(words[1]); none != nil {
			return refuseDuration(words[1], invalidWindow)
		}
	}
	return err
}

// invalidWindow is what a word is answered with that is neither a duration nor a unit of the calendar; %s stands for the word.
const invalidWindow = InvalidDuration + ", or one of MINUTE, HOUR, DAY, WEEK, MONTH, YEAR"

// parseCalendar returns the unit of the calendar that a word names, or 0.
func parseCalendar(word []byte) throttle.Calendar {
	if len(word) == 0 || word[0] <= '9' {
		return 0 // spares durations the comparisons
	}
	for unit, name := range calendarNames {
		if unit > 0 && is(word, name) {
			return throttle.Calendar(unit)
		}
	}
	return 0
}

var calendarNames = [...]string{
	throttle.Minute: "MINUTE", throttle.Hour: "HOUR", throttle.Day: "DAY", throttle.Week: "WEEK", throttle.Month: "MONTH", throttle.Year: "YEAR",
}

func textOfFixed(p *Policy, i int, word []byte) string {
	if i == 1 && p.Calendar != 0 {
		return calendarNames[p.Calendar]
	}
	return textOfWindow(p, i, word)
}

func decideFixed(c *Call) error {
	p := c.Policy
	f := throttle.Fixed{Limit: p.Limit}
	switch {
	case p.Calendar != 0:
		f.EndMs = p.Calendar.End(c.NowMs, p.Zone)
	case p.Aligned:
		f.EndMs = throttle.AlignedEnd(c.NowMs, p.Window)
	default:
		f.EndMs = c.NowMs + p.Window
	}
	d := f.Decide(c.NowMs, throttle.FixedState{Count: c.Found.Number, ExpireAtMs: c.Found.ExpireAtMs, Exists: c.Found.Exists}, c.Request.Call)
	c.set(&d.Verdict)
	if d.Write != throttle.Keep {
		c.Change.Write, c.Change.Number, c.Change.ExpireAtMs = d.Write, d.Count, d.ExpireAtMs
	}
	return nil
}
