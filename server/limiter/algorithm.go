package limiter

import (
	"fmt"
	"slices"
	"strings"

	"headgate/internal/ascii"
)

// Algorithm declares a limiter. Commands, policies, metrics and documentation derive from it. To add one is to write such a declaration, and to have
// go generate enter it in Standard.
type Algorithm struct {
	Name       string // the word that policies have for it, in upper case; RL. and this is its command
	Label      string // what INFO and metrics call it; empty: its name in lower case
	Summary    string // of its command, a sentence
	Complexity string
	Since      string
	Guarantee  string // what it promises, for the table in the documentation
	Burst      string
	Memory     string
	Seen       string // what a client sees
	Example    string // words behind the key, as headgate bench calls it
	Says       string // what these words mean

	Args    []Arg    // its syntax behind the key, without COST and PEEK, in the terms of COMMAND DOCS
	Words   int      // how many words always stand there
	Options []Option // those that may follow
	Errors  []Error  // besides those for single arguments, in the order of the checks
	NoCost  bool     // each call costs one, and COST is no option
	Costs   Error    // what CheckCost refuses a cost with

	PolicyOnly  bool // there is no command of that name
	CommandOnly bool // no policy can be of it

	Kind    Kind    // what its state is
	Beyond  Beyond  // what an answer has beyond its five numbers
	Returns Returns // what of a charge a reservation can give back: by what the state means, see there

	// Read reads the words that always stand there. Limit below 0 then means that there is no limit, and no state.
	Read func(p *Policy, words [][]byte) error
	// Text is the canonical form of the i-th of these words; nil: as it was written.
	Text func(p *Policy, i int, word []byte) string
	// Finish ends the reading, once the options are read; r is nil for a policy. It may be nil.
	Finish func(p *Policy, r *Request) error
	// CheckCost reports whether a cost is accepted; nil accepts all. It refuses costs that could be charged but should not be.
	CheckCost func(p *Policy, cost int64) bool

	// Prepare says what the decision needs to know of a state of kind Entries.
	Prepare func(c *Call)
	// Decide answers a call by what was found. It sets the Verdict, and the Change if something is to be kept.
	Decide func(c *Call) error

	index int
}

// Kind is what a limiter's state is.
type Kind uint8

// The kinds of state.
const (
	NoState Kind = iota
	Number       // one whole number that expires
	Slices       // a hash of slices of time: when each begins, in ms -> a count
	Entries      // a sorted set of entries or ids, each with a time in ms
)

// Beyond is what an answer has beyond the five numbers that all have.
type Beyond uint8

// What may follow the five numbers.
const (
	Nothing  Beyond = iota
	WaitTime        // for how many ms to hold the request back
	LeaseID         // of what the call has got, or null
)

// Arg declares an argument, in the terms of COMMAND DOCS.
type Arg struct {
	Name     string
	Type     string // string, integer, pure-token, oneof or block
	Token    string // the word before it, or that it is
	Optional bool
	Args     []Arg
	Error    string // what a value is answered with that is none; %s stands for the value
	Summary  string // what it means, with its unit and range
}

// Option is a word, or a word and a value, behind those that always stand there. Each may stand once, in any order.
type Option struct {
	Token  string
	Value  bool                 // one follows
	OfCall bool                 // it belongs to a call, and to no policy
	When   func(p *Policy) bool // it may stand there; nil: always
	Only   string               // with what it does, for the error where it may not
	Read   func(p *Policy, r *Request, value []byte) error
}

// maxOptions is how many options an algorithm may have.
const maxOptions = 8

// Arguments that several algorithms have.

func limitArg(name, summary string) Arg {
	return Arg{Name: name, Type: "integer", Error: InvalidLimit, Summary: summary + "; 0 limits every call, -1 none"}
}

func countArg(name, summary string) Arg {
	return Arg{Name: name, Type: "integer", Error: InvalidCount, Summary: summary + ", 1 or more"}
}

// periodArg is the period of a rate.
func periodArg(summary string) Arg {
	return Arg{Name: "period", Type: "string", Error: InvalidDuration, Summary: summary + ", from 1us to 36525d; a bare number is milliseconds"}
}

// durationArg is a duration that is counted in milliseconds.
func durationArg(name, summary string) Arg {
	return Arg{Name: name, Type: "string", Error: InvalidDuration, Summary: summary + DurationRange}
}

func tokenArg(token string) Arg {
	return Arg{Name: strings.ToLower(token), Type: "pure-token", Token: token}
}

func (a Arg) after(token string) Arg {
	a.Token = token
	return a
}

func (a Arg) fails(text string) Arg {
	a.Error = text
	return a
}

func (a Arg) means(summary string) Arg {
	a.Summary = summary
	return a
}

// BadArgument is what the i-th of the words behind the key, which declares an error, is answered with when it is not one of its values.
func (a *Algorithm) BadArgument(i int, word []byte) Error {
	return Quoting(a.Args[i].Error, word)
}

// Index is the algorithm's place in its table.
func (a *Algorithm) Index() int { return a.index }

// String is the algorithm's name.
func (a *Algorithm) String() string { return a.Name }

// Table is a list of algorithms. It does not change.
type Table struct{ list []*Algorithm }

// NewTable makes a table of copies of these declarations, and panics on one that cannot be right.
func NewTable(declared ...Algorithm) *Table {
	t := &Table{}
	for _, a := range declared {
		a.index = len(t.list)
		if a.Label == "" {
			a.Label = strings.ToLower(a.Name)
		}
		if t.find([]byte(a.Name)) != nil {
			panic("limiter: algorithm declared twice: " + a.Name)
		}
		a.check()
		t.list = append(t.list, &a)
	}
	return t
}

// With returns a table of the same algorithms and one more.
func (t *Table) With(a Algorithm) *Table {
	var declared []Algorithm
	for _, known := range t.list {
		declared = append(declared, *known)
	}
	return NewTable(append(declared, a)...)
}

// check panics when the declaration contradicts itself.
func (a *Algorithm) check() {
	fail := func(what string) { panic("limiter: algorithm " + a.Name + ": " + what) }
	switch {
	case a.Name == "" || a.Name != ascii.Upper(a.Name):
		fail("name must be in upper case")
	case !a.PolicyOnly && (!strings.HasSuffix(a.Summary, ".") || a.Complexity == "" || a.Since == ""):
		fail("summary, complexity or since missing")
	case a.Guarantee == "" || !a.PolicyOnly && a.Example == "":
		fail("guarantee or example missing")
	case (a.CheckCost != nil) != (a.Costs != ""):
		fail("a check of costs without its error, or the other way round")
	case a.Read == nil || (a.Decide == nil) != (a.Kind == NoState) || (a.Prepare != nil) != (a.Kind == Entries):
		fail("a step is missing, or one too many")
	case slices.ContainsFunc(a.Options, func(o Option) bool { return (o.When == nil) != (o.Only == "") }):
		fail("an option that may not always stand there, and does not say where, or the other way round")
	case len(a.Options) > maxOptions:
		fail("too many options")
	case a.Words > len(a.Args):
		fail("more words than arguments")
	}
}

// All lists the algorithms.
func (t *Table) All() []*Algorithm { return slices.Clip(t.list) }

// Find returns the algorithm of a name, in any case, or nil.
func (t *Table) Find(name string) *Algorithm { return t.find([]byte(name)) }

func (t *Table) find(word []byte) *Algorithm {
	for _, a := range t.list {
		if is(word, a.Name) {
			return a
		}
	}
	return nil
}

// Markdown is the table of the algorithms, as documentation holds it: the tests that write and check docs/algorithms.md call it.
func (t *Table) Markdown() string {
	var b strings.Builder
	b.WriteString("| command | what it guarantees | burst | memory per key | what a client sees |\n|---|---|---|---|---|\n")
	for _, a := range t.list {
		if !a.PolicyOnly {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", strings.ReplaceAll(a.Syntax(), "|", `\|`), a.Guarantee, a.Burst, a.Memory, a.Seen)
		}
	}
	return b.String()
}

func optional(a Arg) Arg {
	a.Optional = true
	return a
}

// syntax renders an argument as documentation writes it.
func (a Arg) syntax() string {
	parts := make([]string, len(a.Args))
	for i, inner := range a.Args {
		parts[i] = inner.syntax()
	}
	text := a.Name
	switch a.Type {
	case "pure-token":
		text = a.Token
	case "oneof":
		text = "<" + strings.Join(parts, " | ") + ">"
	case "block":
		text = strings.Join(parts, " ")
	}
	if a.Token != "" && a.Type != "pure-token" {
		text = a.Token + " " + text
	}
	if a.Optional {
		return "[" + text + "]"
	}
	return text
}

// PolicyArgs is the algorithm's syntax behind its name in a policy, which has no words of a single call.
func (a *Algorithm) PolicyArgs() []Arg {
	return slices.DeleteFunc(slices.Clone(a.Args), func(arg Arg) bool {
		return slices.ContainsFunc(a.Options, func(o Option) bool { return o.OfCall && o.Token == arg.Token })
	})
}

// PolicySyntax is how a policy of this algorithm is written.
func (a *Algorithm) PolicySyntax() string { return a.policySyntax(true) }

// WrittenSyntax is how a call writes out a limit of this algorithm, in place of the name of a policy.
func (a *Algorithm) WrittenSyntax() string { return a.policySyntax(false) + " [" + WordName + " name]" }

func (a *Algorithm) policySyntax(named bool) string {
	parts := []string{a.Name}
	for _, arg := range a.PolicyArgs() {
		parts = append(parts, arg.syntax())
	}
	if a.Kind != NoState {
		for i := range clauses {
			if named || !clauses[i].named {
				parts = append(parts, clauses[i].syntax(a))
			}
		}
	}
	return strings.Join(parts, " ")
}

// PolicySyntaxError is what a policy is answered with whose words are not those of its algorithm.
func (a *Algorithm) PolicySyntaxError() Error {
	return UsageError(ErrSyntax, PolicyCall+a.PolicySyntax())
}

// PolicyErrors are those of Errors that a policy is refused with. The others are for a call's cost and MEMBER, or for what its key holds.
func (a *Algorithm) PolicyErrors() []Error {
	return slices.DeleteFunc(slices.Clone(a.Errors), func(err Error) bool {
		return err == a.Costs || err == errMemberCost || err == ErrForeign || err == ErrWrongType
	})
}

// UnknownAlgorithm is what a policy is answered with whose algorithm there is not; %s stands for that.
func (t *Table) UnknownAlgorithm() string {
	var names []string
	for _, a := range t.list {
		if !a.CommandOnly {
			names = append(names, a.Name)
		}
	}
	return "ERR unknown algorithm '%s', use " + orList(names)
}

// Syntax is how the algorithm's command is called, without COST and PEEK.
func (a *Algorithm) Syntax() string {
	parts := []string{"RL." + a.Name, "key"}
	for _, arg := range a.Args {
		parts = append(parts, arg.syntax())
	}
	return strings.Join(parts, " ")
}
