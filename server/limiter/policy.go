package limiter

import (
	"errors"
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

// Errors that several algorithms have. Others stand beside the algorithm that has them.
const (
	ErrNotInteger = Error("ERR value is not an integer or out of range")
	ErrSyntax     = Error("ERR syntax error")                                     // with how the command is called, which is for the server to say
	ErrForeign    = Error("ERR the key holds a value that is no limiter's state") // of the type that the state has
	ErrWrongType  = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
	ErrName       = Error("ERR policy name must be 1 to 64 characters of A-Z a-z 0-9 _ . : -")
)

// What a word is answered with that is no limit, or no count; %s stands for the word.
const (
	InvalidLimit = "ERR limit must be -1 or >= 0, not '%s'"
	InvalidCount = "ERR count must be >= 1, not '%s'"
)

// InvalidInteger is what a word behind a token is answered with that is no number of 64 bits; %s stands for the word.
func InvalidInteger(token string) string {
	return "ERR " + token + " must be an integer of 64 bits, not '%s'"
}

// PolicyCall is what stands before a policy's words in the errors for them.
const PolicyCall = "RL.POLICY SET name "

// MaxName is the longest name of a policy, in bytes.
const MaxName = 64

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

	Shadow bool  // it limits nobody, and what it would have done is counted
	Block  Block // for how long whoever is limited stays so

	Unwritable     Unwritable // what becomes of a change while nothing can be written
	SaysUnwritable bool       // the policy says so, and not limiter-when-unwritable

	Failure     Failure // what becomes of a call whose upstream does not answer
	SaysFailure bool    // the policy says so, and not upstream-failure

	Leasing Leasing // whether a gateway may decide by itself

	slices int // of SLIDING

	Words string // what a policy says, in its canonical form; empty for what a command says of its own

	More any // what none of these can hold; a call that brings some allocates
}

// Request is what a command asks of a limit, beyond the limit itself.
type Request struct {
	Call      throttle.Call
	Member    []byte // if HasMember; aliases the arguments
	HasMember bool
	Wait      int64 // ms that the call would rather wait than be limited; 0: it does not
}

// CostWord stands before how many units a call takes.
const CostWord = "COST"

// memberOption is MEMBER id.
var memberOption = Option{Token: "MEMBER", Value: true, OfCall: true, Read: func(_ *Policy, r *Request, id []byte) error {
	r.HasMember, r.Member = true, id
	return nil
}}

// ReadCall reads the words after a command's key into p and r. The error is an Error; the order of the checks is numbers, durations, options.
func (a *Algorithm) ReadCall(p *Policy, r *Request, words [][]byte) error {
	_, err := a.read(p, r, words, nil)
	return err
}

// places is where each of an algorithm's options stands among the words, counted from 1; 0: it does not.
type places [maxOptions]int

// read reads words into p, and into r the options of a call. For a policy, which has none of these, r is nil, and said is given what the clauses say;
// for a call that is nil.
func (a *Algorithm) read(p *Policy, r *Request, words [][]byte, said *clauseTexts) (at places, err error) {
	if len(words) < a.Words {
		return at, ErrSyntax
	}
	p.Algorithm = a
	if err = a.Read(p, words); err != nil {
		return at, err
	}
	hasCost := a.NoCost
	for i := a.Words; i < len(words); i++ {
		if said != nil && a.Kind != NoState {
			n, err := p.readClause(words[i:], said)
			if err != nil {
				return at, err
			}
			if n > 0 {
				i += n - 1
				continue
			}
		}
		var value []byte
		last := i+1 == len(words)
		if !last {
			value = words[i+1]
		}
		switch {
		case r != nil && !hasCost && !last && is(words[i], CostWord):
			i++
			hasCost = true
			if r.Call.Cost, err = parseCost(value); err != nil {
				return at, err
			}
		case r != nil && !r.Call.Peek && is(words[i], "PEEK"):
			r.Call.Peek = true
		case r != nil && r.Wait == 0 && !last && is(words[i], WaitWord):
			i++
			if r.Wait, err = ParseWait(value); err != nil {
				return at, err
			}
		default:
			n := a.option(p, r != nil, words[i], last, &at)
			if n < 0 {
				return at, a.strayWord(p, words[i], last, r != nil)
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
	if err = p.readLimit(words[0]); err != nil {
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

// readLimit reads the limit or capacity, which is the first of an algorithm's words.
func (p *Policy) readLimit(word []byte) error {
	limit, ok := number.ParseInt(word)
	if !ok || limit < -1 {
		return p.Algorithm.BadArgument(0, word)
	}
	p.Limit = limit
	return nil
}

func parseCost(b []byte) (int64, error) {
	cost, ok := number.ParseInt(b)
	if !ok {
		return 0, Quoting(InvalidInteger(CostWord), b)
	}
	return cost, nil
}

// ParseText reads a policy as it is kept: an algorithm and its words. It returns the text in its canonical form: words in upper case,
// options in a fixed order, numbers as they were written, and durations with a unit.
func (t *Table) ParseText(words [][]byte) (p Policy, text string, err error) {
	a, p, err := t.parseText(words)
	if errors.Is(err, ErrSyntax) {
		return Policy{}, "", UsageError(err, PolicyCall+a.PolicySyntax())
	}
	return p, p.Words, err
}

// WordName stands before the name under which the calls of a limit are counted that a call writes out. It is the last but one of its words.
const WordName = "NAME"

// ErrBlockWithoutName is what a limit with BLOCK is refused with that a call writes out: blocks are kept by the name of their policy.
const ErrBlockWithoutName = Error("ERR a policy with BLOCK needs a name, see RL.POLICY SET")

// ParseWritten reads a limit that a call writes out in place of the name of a policy: an algorithm and its words, without BLOCK, and at the end
// possibly NAME with a name, which is returned; empty: there is none.
func (t *Table) ParseWritten(words [][]byte) (p Policy, name string, err error) {
	at := slices.IndexFunc(words, func(word []byte) bool { return is(word, WordName) })
	limit, names := words, [][]byte(nil)
	if at > 0 {
		limit, names = words[:at], words[at+1:]
	}
	a, p, err := t.parseText(limit)
	switch {
	case err != nil || at <= 0:
	case len(names) == 0:
		err = LacksValue(WordName)
	case len(names) > 1:
		err = Hint("%s takes one name, as the last word", WordName)
	default:
		name, err = string(names[0]), CheckName(names[0])
	}
	switch {
	case errors.Is(err, ErrSyntax):
		err = UsageError(err, a.WrittenSyntax())
	case err == nil && p.Block.Length > 0:
		err = ErrBlockWithoutName
	}
	if err != nil {
		return Policy{}, "", err
	}
	return p, name, nil
}

// parseText reads an algorithm and its words. Errors of syntax are as they were found: [UsageError] says what it is for them.
func (t *Table) parseText(words [][]byte) (a *Algorithm, p Policy, err error) {
	var name []byte
	if len(words) > 0 {
		name = words[0]
	}
	if a = t.find(name); a == nil || a.CommandOnly {
		return nil, p, Error(fmt.Sprintf(t.UnknownAlgorithm(), Shown(name)))
	}
	var said clauseTexts
	at, err := a.read(&p, nil, words[1:], &said)
	if err != nil {
		return a, Policy{}, err
	}
	p.Words = p.text(words[1:], &at, &said)
	return a, p, nil
}

// text is the canonical form of a policy that was read from the words after its algorithm, with its options at these places and these clauses.
func (p *Policy) text(words [][]byte, at *places, said *clauseTexts) string {
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
	for _, text := range said {
		if text != "" {
			parts = append(parts, text)
		}
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

// MaxText is how long a policy's text may be, in bytes: several times as long as one of which each word is as long as it may be.
const MaxText = 1 << 10

// Words splits a policy's text into its words. A text that is longer than MaxText is none, and has none: whoever may write a key can bring one of
// hundreds of megabytes.
func Words(text string) [][]byte {
	if len(text) > MaxText {
		return nil
	}
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
	if len(name) == 0 || len(name) > MaxName {
		return ErrName
	}
	return nil
}

// maxShown is how much of a wrong word an error repeats, in bytes.
const maxShown = 128

// Shown is as much of a wrong word as an error repeats.
func Shown[text ~string | ~[]byte](word text) text { return word[:min(len(word), maxShown)] }

// Quoting is an error for a wrong word; %s stands for that in its text.
func Quoting(text string, word []byte) Error {
	return Error(strings.ReplaceAll(text, "%s", string(Shown(word))))
}

// is reports whether b is word in any case. word is in upper case.
func is(b []byte, word string) bool { return ascii.EqualFold(b, word) }
