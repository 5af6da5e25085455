package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/throttle"
)

// Error is an error in the form that it has on the wire.
type Error string

func (e Error) Error() string { return string(e) }

// Errors for arguments that are wrong. Others quote the argument.
const (
	ErrLimit      = Error("ERR limit must be -1 or >= 0")
	ErrCount      = Error("ERR count must be >= 1")
	ErrNotInteger = Error("ERR value is not an integer or out of range")
	ErrSlices     = Error("ERR slices must be from 1 to 1000")
	ErrSyntax     = Error("ERR syntax error")
	ErrLogCost    = Error("ERR cost of a log must be <= 1048576")
	ErrName       = Error("ERR policy name must be 1 to 64 characters of A-Z a-z 0-9 _ . : -")
)

// MaxLogCost is how many entries one call may add to a sliding log, so that none holds up the others for long.
const MaxLogCost = 1 << 20

// defaultSlices is how many slices a sliding window has when it is not said.
const defaultSlices = 10

// maxName is the longest name of a policy, in bytes.
const maxName = 64

// Algorithm is how a policy decides.
type Algorithm uint8

// The algorithms, under the names of their commands.
const (
	GCRA Algorithm = iota + 1
	Bucket
	Queue
	Fixed
	Sliding
	Log
	Unlimited
)

var algorithmNames = [...]string{
	GCRA: "GCRA", Bucket: "BUCKET", Queue: "QUEUE", Fixed: "FIXED", Sliding: "SLIDING", Log: "LOG", Unlimited: "UNLIMITED",
}

// String is the word for the algorithm.
func (a Algorithm) String() string { return algorithmNames[a] }

// words is how many arguments always follow an algorithm.
func (a Algorithm) words() int {
	switch a {
	case GCRA, Bucket, Queue:
		return 3
	case Unlimited:
		return 0
	}
	return 2
}

// Policy is a limit. It never changes.
type Policy struct {
	Algorithm Algorithm

	// Limit is the limit or capacity; -1 means that there is none.
	Limit int64

	Rate     throttle.Rate     // of GCRA, Bucket and Queue
	Window   int64             // ms; of Log, and of Fixed unless it has a Calendar
	Aligned  bool              // of Fixed
	Calendar throttle.Calendar // of Fixed, if it counts by the calendar
	Zone     *time.Location    // of Calendar
	Sliding  throttle.Sliding
}

// IsGCRA reports whether the limit is one of a rate, which GCRA decides: not Unlimited, nor one with a Limit of -1.
func (p *Policy) IsGCRA() bool { return p.Algorithm <= Queue && p.Limit >= 0 }

// Request is what a command asks of a limit, beyond the limit itself.
type Request struct {
	Call   throttle.Call
	Member []byte // of Log, if HasMember; aliases the arguments
	HasMember,
	hasCost bool
}

// Parse reads the words after an algorithm into p. r is filled from the options of a call; it is nil for a policy that is kept, which
// has none. The error is an Error; the order of the checks is numbers, durations, options.
func Parse(p *Policy, r *Request, a Algorithm, words [][]byte) error {
	if len(words) < a.words() {
		return ErrSyntax
	}
	p.Algorithm = a
	var err error
	switch a {
	case GCRA, Bucket, Queue:
		err = p.parseRate(words)
	case Unlimited:
		p.Limit = -1
	default:
		err = p.parseWindow(words)
	}
	if err != nil {
		return err
	}
	return p.parseOptions(r, words[a.words():])
}

func (p *Policy) parseRate(words [][]byte) (err error) {
	if p.Limit, err = parseLimit(words[0]); err != nil {
		return err
	}
	count, ok := number.ParseInt(words[1])
	if !ok || count < 1 {
		return ErrCount
	}
	periodNs, err := parsePeriod(words[2])
	if err != nil || p.Limit < 0 {
		return err
	}
	if p.Rate, err = throttle.NewRate(p.Limit, count, periodNs); err != nil {
		return ErrNotInteger
	}
	return nil
}

func (p *Policy) parseWindow(words [][]byte) (err error) {
	if p.Limit, err = parseLimit(words[0]); err != nil {
		return err
	}
	if p.Algorithm == Fixed {
		if p.Calendar = parseCalendar(words[1]); p.Calendar != 0 {
			p.Zone = time.UTC
			return nil
		}
	}
	p.Window, err = ParseDuration(words[1])
	return err
}

func parseLimit(b []byte) (int64, error) {
	limit, ok := number.ParseInt(b)
	if !ok || limit < -1 {
		return 0, ErrLimit
	}
	return limit, nil
}

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

// parseOptions reads options in any order, each once at most.
func (p *Policy) parseOptions(r *Request, words [][]byte) (err error) {
	slices, zoned := 0, false
	for i := 0; i < len(words); i++ {
		word := words[i]
		var value []byte
		if i+1 < len(words) {
			value = words[i+1]
		}
		switch last := i+1 == len(words); {
		case r != nil && !r.hasCost && !last && is(word, "COST"):
			i++
			r.hasCost = true
			if r.Call.Cost, err = parseCost(value); err != nil {
				return err
			}
		case r != nil && !r.Call.Peek && is(word, "PEEK"):
			r.Call.Peek = true
		case r != nil && p.Algorithm == Log && !r.HasMember && !last && is(word, "MEMBER"):
			i++
			r.HasMember, r.Member = true, value
		case p.Algorithm == Sliding && slices == 0 && !last && is(word, "SLICES"):
			i++
			if slices, err = parseSlices(value); err != nil {
				return err
			}
		case p.Window > 0 && p.Algorithm == Fixed && !p.Aligned && is(word, "ALIGNED"):
			p.Aligned = true
		case p.Calendar != 0 && !zoned && !last && is(word, "TZ"):
			i++
			zoned = true
			if p.Zone, err = parseZone(value); err != nil {
				return err
			}
		default:
			return ErrSyntax
		}
	}
	if p.Algorithm == Sliding && p.Limit >= 0 {
		if slices == 0 {
			slices = defaultSlices
		}
		p.Sliding = throttle.NewSliding(p.Limit, p.Window, slices)
	}
	if r != nil {
		return r.complete(p)
	}
	return nil
}

// complete fills in the cost that was not given, and refuses what does not go together.
func (r *Request) complete(p *Policy) error {
	if !r.hasCost && !r.Call.Peek {
		r.Call.Cost = 1
	}
	if r.HasMember && r.Call.Cost > 1 {
		return ErrSyntax
	}
	return p.CheckCost(r.Call.Cost)
}

// CheckCost refuses a cost that the algorithm could charge but should not.
func (p *Policy) CheckCost(cost int64) error {
	if p.Algorithm == Log && cost > MaxLogCost && cost <= p.Limit {
		return ErrLogCost
	}
	return nil
}

func parseCost(b []byte) (int64, error) {
	cost, ok := number.ParseInt(b)
	if !ok {
		return 0, ErrNotInteger
	}
	return cost, nil
}

func parseSlices(b []byte) (int, error) {
	n, ok := number.ParseInt(b)
	if !ok || n < 1 || n > throttle.MaxSlices {
		return 0, ErrSlices
	}
	return int(n), nil
}

// ParseText reads a policy as it is kept: an algorithm and its words. It returns the text in its canonical form: words in upper case,
// options in a fixed order, numbers as they were written, and durations with a unit.
func ParseText(words [][]byte) (p Policy, text string, err error) {
	a := Algorithm(0)
	if len(words) > 0 {
		a = parseAlgorithm(words[0])
	}
	if a == 0 {
		return p, "", Error(fmt.Sprintf("ERR unknown algorithm '%s'", Shown(slices.Concat(words[:min(len(words), 1)]...))))
	}
	if err = Parse(&p, nil, a, words[1:]); err != nil {
		return p, "", err
	}
	return p, p.text(words[1:]), nil
}

func parseAlgorithm(word []byte) Algorithm {
	for a, name := range algorithmNames {
		if a > 0 && is(word, name) {
			return Algorithm(a)
		}
	}
	return 0
}

// text is the canonical form of a policy that was read from the words after its algorithm.
func (p *Policy) text(words [][]byte) string {
	parts := []string{p.Algorithm.String()}
	for _, word := range words[:p.Algorithm.words()] {
		parts = append(parts, string(word))
	}
	switch last := len(parts) - 1; {
	case p.Calendar != 0:
		parts[last] = calendarNames[p.Calendar]
	case p.Algorithm != Unlimited:
		parts[last] = withUnit(parts[last])
	}
	options := words[p.Algorithm.words():]
	for i, word := range options {
		switch {
		case is(word, "ALIGNED"):
			parts = append(parts, "ALIGNED")
		case is(word, "TZ"):
			parts = append(parts, "TZ", p.Zone.String())
			return strings.Join(parts, " ")
		case is(word, "SLICES"):
			parts = append(parts, "SLICES", string(options[i+1]))
		}
	}
	return strings.Join(parts, " ")
}

// withUnit is a duration with its unit, also where that is left out.
func withUnit(duration string) string {
	if duration[len(duration)-1] <= '9' {
		return duration + "ms"
	}
	return duration
}

// Words splits a policy's text into its words.
func Words(text string) [][]byte {
	var words [][]byte
	for _, word := range strings.Fields(text) {
		words = append(words, []byte(word))
	}
	return words
}

// CheckName refuses what may not be a policy's name.
func CheckName(name []byte) error {
	for _, b := range name {
		letter := b|0x20 >= 'a' && b|0x20 <= 'z'
		if !letter && (b < '0' || b > '9') && !strings.ContainsRune("_.:-", rune(b)) {
			return ErrName
		}
	}
	if len(name) == 0 || len(name) > maxName {
		return ErrName
	}
	return nil
}

// maxShown is how much of a wrong word an error repeats, in bytes.
const maxShown = 128

// Shown is as much of a wrong word as an error repeats.
func Shown(word []byte) []byte { return word[:min(len(word), maxShown)] }

// is reports whether b is word in any case. word is in upper case.
func is(b []byte, word string) bool { return ascii.EqualFold(b, word) }
