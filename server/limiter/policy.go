package limiter

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/throttle"
)

// Error is an error in the form that it has on the wire.
type Error string

func (e Error) Error() string { return string(e) }

// Errors that several algorithms have. Others quote an argument, or stand beside the algorithm that has them.
const (
	ErrLimit      = Error("ERR limit must be -1 or >= 0")
	ErrCount      = Error("ERR count must be >= 1")
	ErrNotInteger = Error("ERR value is not an integer or out of range")
	ErrSyntax     = Error("ERR syntax error") // with how the command is called, which is for the server to say
	ErrWrongType  = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
	ErrName       = Error("ERR policy name must be 1 to 64 characters of A-Z a-z 0-9 _ . : -")
)

// PolicyCall is what stands before a policy's words in the errors for them.
const PolicyCall = "RL.POLICY SET name "

// maxName is the longest name of a policy, in bytes.
const maxName = 64

// Policy is a limit. It never changes. Each algorithm takes of the fields what it needs.
type Policy struct {
	Algorithm *Algorithm

	// Limit is the limit or capacity; -1 means that there is none.
	Limit int64

	Rate     throttle.Rate     // of GCRA, BUCKET and QUEUE
	Window   int64             // ms; of LOG, of FIXED unless it has a Calendar, and how long ACQUIRE's leases are
	Aligned  bool              // of FIXED
	Calendar throttle.Calendar // of FIXED, if it counts by the calendar
	Zone     *time.Location    // of Calendar
	Sliding  throttle.Sliding

	Unwritable     Unwritable // what becomes of a change while nothing can be written
	SaysUnwritable bool       // the policy says so, and not limiter-when-unwritable

	Failure     Failure // what becomes of a call whose upstream does not answer
	SaysFailure bool    // the policy says so, and not upstream-failure

	slices int // of SLIDING

	More any // what none of these can hold; a call that brings some allocates
}

// Unwritable says what becomes of a limiter's change while nothing can be written, as when the disk is full.
type Unwritable uint8

// What may become of it.
const (
	Refuse       Unwritable = iota // the call is answered with an error
	KeepInMemory                   // it is kept in memory, and a restart may forget it
)

// unwritableNames are the words for these.
var unwritableNames = [...]string{Refuse: "ERROR", KeepInMemory: "MEMORY"}

// WhenUnwritable is how a policy says what is to become of a change while nothing can be written.
var WhenUnwritable = Arg{Name: "when-unwritable", Type: "oneof", Token: "WHEN-UNWRITABLE", Optional: true, Args: []Arg{
	tokenArg(unwritableNames[Refuse]), tokenArg(unwritableNames[KeepInMemory]),
}}

// parseUnwritable reads the word for what is to become of a change.
func (p *Policy) parseUnwritable(word []byte) error {
	for u, name := range unwritableNames {
		if is(word, name) {
			p.Unwritable, p.SaysUnwritable = Unwritable(u), true
			return nil
		}
	}
	return ErrSyntax
}

// Failure says what becomes of a call whose upstream does not answer in time, where there is one.
type Failure uint8

// What may become of it.
const (
	FailError  Failure = iota // it is answered with an error
	FailOpen                  // it passes
	FailClosed                // it is limited
	FailLocal                 // this process decides by itself, with a share of the limit
	Failures   = iota         // how many there are
)

// failureNames are the words for these.
var failureNames = [...]string{FailError: "ERROR", FailOpen: "OPEN", FailClosed: "CLOSED", FailLocal: "LOCAL"}

// String returns its word in a policy.
func (f Failure) String() string { return failureNames[f] }

// WhenFailing is how a policy says what is to become of a call whose upstream does not answer.
var WhenFailing = Arg{Name: "failure", Type: "oneof", Token: "FAILURE", Optional: true, Args: []Arg{
	tokenArg(failureNames[FailError]), tokenArg(failureNames[FailOpen]), tokenArg(failureNames[FailClosed]), tokenArg(failureNames[FailLocal]),
}}

// parseFailure reads the word for what is to become of a call.
func (p *Policy) parseFailure(word []byte) error {
	for f, name := range failureNames {
		if is(word, name) {
			p.Failure, p.SaysFailure = Failure(f), true
			return nil
		}
	}
	return ErrSyntax
}

// Request is what a command asks of a limit, beyond the limit itself.
type Request struct {
	Call      throttle.Call
	Member    []byte // if HasMember; aliases the arguments
	HasMember bool
}

// memberOption is MEMBER id.
var memberOption = Option{Token: "MEMBER", Value: true, OfCall: true, Read: func(_ *Policy, r *Request, id []byte) error {
	r.HasMember, r.Member = true, id
	return nil
}}

// ReadCall reads the words after a command's key into p and r. The error is an Error; the order of the checks is numbers, durations, options.
func (a *Algorithm) ReadCall(p *Policy, r *Request, words [][]byte) error {
	_, err := a.read(p, r, words)
	return err
}

// places is where each of an algorithm's options stands among the words, counted from 1; 0: it does not.
type places [maxOptions]int

// read reads words into p, and into r the options of a call; r is nil for a policy, which has none.
func (a *Algorithm) read(p *Policy, r *Request, words [][]byte) (at places, err error) {
	if len(words) < a.Words {
		return at, ErrSyntax
	}
	p.Algorithm = a
	if err = a.Read(p, words); err != nil {
		return at, err
	}
	hasCost := a.NoCost
	for i := a.Words; i < len(words); i++ {
		var value []byte
		last := i+1 == len(words)
		if !last {
			value = words[i+1]
		}
		switch {
		case r != nil && !hasCost && !last && is(words[i], "COST"):
			i++
			hasCost = true
			if r.Call.Cost, err = parseCost(value); err != nil {
				return at, err
			}
		case r != nil && !r.Call.Peek && is(words[i], "PEEK"):
			r.Call.Peek = true
		case r == nil && !p.SaysUnwritable && a.Kind != NoState && !last && is(words[i], WhenUnwritable.Token):
			i++
			if err = p.parseUnwritable(value); err != nil {
				return at, err
			}
		case r == nil && !p.SaysFailure && a.Kind != NoState && !last && is(words[i], WhenFailing.Token):
			i++
			if err = p.parseFailure(value); err != nil {
				return at, err
			}
		default:
			n := a.option(p, r != nil, words[i], last, &at)
			if n < 0 {
				return at, ErrSyntax
			}
			at[n] = i + 1
			if a.Options[n].Value {
				i++
			}
			if err = a.Options[n].Read(p, r, value); err != nil {
				return at, err
			}
		}
	}
	return at, a.complete(p, r, hasCost)
}

// option returns which option a word is that may stand there, or -1.
func (a *Algorithm) option(p *Policy, called bool, word []byte, last bool, at *places) int {
	for n := range a.Options {
		o := &a.Options[n]
		if at[n] == 0 && (called || !o.OfCall) && (!last || !o.Value) && (o.When == nil || o.When(p)) && is(word, o.Token) {
			return n
		}
	}
	return -1
}

// complete fills in the cost that was not given, and refuses what does not go together.
func (a *Algorithm) complete(p *Policy, r *Request, hasCost bool) error {
	if r != nil && (a.NoCost || !hasCost) {
		r.Call.Cost = a.CostUnsaid(r.Call.Peek)
	}
	if a.Finish != nil {
		if err := a.Finish(p, r); err != nil {
			return err
		}
	}
	if r != nil {
		return p.RefuseCost(r.Call.Cost)
	}
	return nil
}

// CostUnsaid is the cost of a call that names none: 1, but for a look 0. A look at an algorithm without COST asks whether a call would pass.
func (a *Algorithm) CostUnsaid(peek bool) int64 {
	if peek && !a.NoCost {
		return 0
	}
	return 1
}

// RefuseCost returns the error for a cost that could be charged, but should not, or nil.
func (p *Policy) RefuseCost(cost int64) error {
	if check := p.Algorithm.CheckCost; check != nil && !check(p, cost) {
		return p.Algorithm.Costs
	}
	return nil
}

// readWindow reads a limit and a duration in ms.
func readWindow(p *Policy, words [][]byte) (err error) {
	if p.Limit, err = parseLimit(words[0]); err != nil {
		return err
	}
	p.Window, err = ParseDuration(words[1])
	return err
}

// textOfWindow is the canonical form of a limit and a duration.
func textOfWindow(_ *Policy, i int, word []byte) string {
	if i == 1 {
		return withUnit(word)
	}
	return string(word)
}

func parseLimit(b []byte) (int64, error) {
	limit, ok := number.ParseInt(b)
	if !ok || limit < -1 {
		return 0, ErrLimit
	}
	return limit, nil
}

func parseCost(b []byte) (int64, error) {
	cost, ok := number.ParseInt(b)
	if !ok {
		return 0, ErrNotInteger
	}
	return cost, nil
}

// ParseText reads a policy as it is kept: an algorithm and its words. It returns the text in its canonical form: words in upper case,
// options in a fixed order, numbers as they were written, and durations with a unit.
func (t *Table) ParseText(words [][]byte) (p Policy, text string, err error) {
	var name []byte
	if len(words) > 0 {
		name = words[0]
	}
	a := t.find(name)
	if a == nil || a.CommandOnly {
		return p, "", Error(fmt.Sprintf(t.UnknownAlgorithm(), Shown(name)))
	}
	at, err := a.read(&p, nil, words[1:])
	switch {
	case errors.Is(err, ErrSyntax):
		return Policy{}, "", a.PolicySyntaxError()
	case err != nil:
		return Policy{}, "", err
	}
	return p, p.text(words[1:], &at), nil
}

// text is the canonical form of a policy that was read from the words after its algorithm, with its options at these places.
func (p *Policy) text(words [][]byte, at *places) string {
	a := p.Algorithm
	parts := []string{a.Name}
	for i, word := range words[:a.Words] {
		if a.Text != nil {
			parts = append(parts, a.Text(p, i, word))
		} else {
			parts = append(parts, string(word))
		}
	}
	for n, o := range a.Options {
		if at[n] == 0 {
			continue
		}
		parts = append(parts, o.Token)
		if o.Value {
			parts = append(parts, string(words[at[n]]))
		}
	}
	if p.SaysUnwritable {
		parts = append(parts, WhenUnwritable.Token, unwritableNames[p.Unwritable])
	}
	if p.SaysFailure {
		parts = append(parts, WhenFailing.Token, failureNames[p.Failure])
	}
	return strings.Join(parts, " ")
}

// withUnit is a duration with its unit, also where that is left out.
func withUnit(duration []byte) string {
	if duration[len(duration)-1] <= '9' {
		return string(duration) + "ms"
	}
	return string(duration)
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
