package limiter

import (
	"fmt"
	"slices"
	"strings"

	"headgate/internal/ascii"
)

// A clause is what a policy of any algorithm with state may say behind the words of its own: a word, and what follows it. The parser, the
// canonical text, COMMAND DOCS and the syntax in errors derive from its declaration. A policy says each at most once, in any order.
type clause struct {
	arg    Arg     // its syntax, which begins with a token or is a choice of them
	errors []Error // besides those of its arguments; %s stands for the algorithm
	// argOf is the syntax for one algorithm, if that differs; nil: it never does.
	argOf func(a *Algorithm) Arg
	// read reads a clause into p from its token on, which is words[0], and returns how many of the words are its.
	read func(p *Policy, words [][]byte) (n int, err error)
	// named tells that only a policy with a name may say it.
	named bool
}

// clauses are in the order in which a canonical text has them.
var clauses = [...]clause{
	{arg: optional(tokenArg(wordShadow)).means("a dry run: the policy limits no call, and only counts those that it would have limited"), read: readShadow},
	{arg: blockArg, errors: []Error{ErrDouble}, read: readBlock, named: true},
	{arg: WhenUnwritable, read: readUnwritable},
	{arg: WhenFailing, read: readFailure},
	{arg: leaseArg, argOf: leaseArgOf, errors: []Error{errNotLeased}, read: readLeasing},
}

// clauseTexts are the canonical texts of the clauses that a policy has; empty for those that it has not.
type clauseTexts [len(clauses)]string

// ClauseArgs is the syntax of what a policy of any algorithm with state may say behind the words of its own.
func ClauseArgs() []Arg {
	args := make([]Arg, len(clauses))
	for i := range clauses {
		args[i] = clauses[i].arg
	}
	return args
}

// ClauseErrors are the errors of these besides those of their arguments.
func ClauseErrors() (all []Error) {
	for i := range clauses {
		all = append(all, clauses[i].errors...)
	}
	return all
}

// syntax is how policies of an algorithm write the clause.
func (c *clause) syntax(a *Algorithm) string {
	if c.argOf != nil {
		arg := c.argOf(a)
		return arg.syntax()
	}
	return c.arg.syntax()
}

// HomeOnly returns the word of a policy's first clause that makes sense only where the keys are kept, which no Redis can have a script decide; or nothing.
func (p *Policy) HomeOnly() string {
	switch {
	case p.Shadow:
		return wordShadow
	case p.Block != (Block{}):
		return blockArg.Token
	}
	return ""
}

// begins reports whether a word begins the clause.
func (c *clause) begins(word []byte) bool {
	if c.arg.Token != "" {
		return is(word, c.arg.Token)
	}
	return slices.ContainsFunc(c.arg.Args, func(a Arg) bool { return is(word, a.Token) })
}

// tokens are the words that begin the clause.
func (c *clause) tokens() (list []string) {
	if c.arg.Token != "" {
		return []string{c.arg.Token}
	}
	for _, a := range c.arg.Args {
		list = append(list, a.Token)
	}
	return list
}

// readClause reads the clause that words begin with into p, unless said has it already, and returns how many of them are its; 0: they begin with none.
func (p *Policy) readClause(words [][]byte, said *clauseTexts) (n int, err error) {
	for i := range clauses {
		if said[i] != "" || !clauses[i].begins(words[0]) {
			continue
		}
		if n, err = clauses[i].read(p, words); err == nil {
			said[i] = clauseText(words[:n])
		}
		return n, err
	}
	return 0, nil
}

// clauseText is the canonical form of a clause: durations with a unit, all other words in upper case.
func clauseText(words [][]byte) string {
	texts := make([]string, len(words))
	for i, word := range words {
		if word[0] >= '0' && word[0] <= '9' {
			texts[i] = withUnit(word)
		} else {
			texts[i] = ascii.Upper(string(word))
		}
	}
	return strings.Join(texts, " ")
}

// chosen returns which of some names the word behind a clause's token is.
func chosen(names []string, words [][]byte) (choice int, err error) {
	token := ascii.Upper(string(words[0]))
	if len(words) == 1 {
		return 0, LacksValue(token)
	}
	for i, name := range names {
		if is(words[1], name) {
			return i, nil
		}
	}
	return 0, Hint("%s must be %s, not '%s'", token, orList(names), Shown(words[1]))
}

// wordShadow is how a policy says that it limits nobody, and only counts whom it would have limited.
const wordShadow = "SHADOW"

func readShadow(p *Policy, _ [][]byte) (n int, err error) {
	p.Shadow = true
	return 1, nil
}

// Block is for how long whoever is limited stays so. The zero value is for not longer than the limit itself says.
type Block struct {
	Length int64 // ms
	Max    int64 // ms; each block is twice as long as the one before it, and at most so long; 0: all are of one length
}

// ErrDouble is the error for blocks that would become shorter.
const ErrDouble = Error("ERR DOUBLE must be at least as long as BLOCK")

// blockArg is how a policy says for how long.
var blockArg = Arg{Name: "block", Type: "block", Token: "BLOCK", Optional: true, Args: []Arg{
	durationArg("length", "how long a key stays limited once it is limited"), optional(durationArg("max", "each block is twice as long as the one before it, and at most this long").after("DOUBLE")),
}}

func readBlock(p *Policy, words [][]byte) (n int, err error) {
	if len(words) < 2 {
		return 0, LacksValue("BLOCK")
	}
	if p.Block.Length, err = ParseDuration(words[1]); err != nil {
		return 0, err
	}
	if len(words) < 3 || !is(words[2], "DOUBLE") {
		return 2, nil
	}
	if len(words) < 4 {
		return 0, LacksValue("DOUBLE")
	}
	if p.Block.Max, err = ParseDuration(words[3]); err != nil {
		return 0, err
	}
	if p.Block.Max < p.Block.Length {
		return 0, ErrDouble
	}
	return 4, nil
}

// Next is how long the next block is, in ms: last is the length of the one before it, or 0 if there was none or it is forgotten.
func (b Block) Next(last int64) int64 {
	if b.Max == 0 {
		return b.Length
	}
	return min(max(2*last, b.Length), b.Max)
}

// Instead returns the policy of one key for which other words of the algorithm stand in place of p's: the clauses that they do not have are p's.
func (p *Policy) Instead(words Policy) Policy {
	if words.Algorithm.Kind == NoState { // nothing that a clause could be about
		words.Shadow = p.Shadow
		return words
	}
	words.Shadow = words.Shadow || p.Shadow
	if words.Block == (Block{}) {
		words.Block = p.Block
	}
	if !words.SaysUnwritable {
		words.Unwritable, words.SaysUnwritable = p.Unwritable, p.SaysUnwritable
	}
	if !words.SaysFailure {
		words.Failure, words.SaysFailure = p.Failure, p.SaysFailure
	}
	if words.Leasing == LeaseUnsaid {
		words.Leasing = p.Leasing
	}
	return words
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
var WhenUnwritable = Arg{Name: "when-unwritable", Type: "oneof", Token: "WHEN-UNWRITABLE", Optional: true, Summary: "what happens to a call while nothing can be written, for example when the disk is full: an error, or a change in memory only; `limiter-when-unwritable` by default", Args: []Arg{
	tokenArg(unwritableNames[Refuse]), tokenArg(unwritableNames[KeepInMemory]),
}}

func readUnwritable(p *Policy, words [][]byte) (n int, err error) {
	choice, err := chosen(unwritableNames[:], words)
	p.Unwritable, p.SaysUnwritable = Unwritable(choice), true
	return 2, err
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
var WhenFailing = Arg{Name: "failure", Type: "oneof", Token: "FAILURE", Optional: true, Summary: "how a gateway answers while the upstream does not: with an error, allowed, limited, or by a local count with a share of the limit; `upstream-failure` by default", Args: []Arg{
	tokenArg(failureNames[FailError]), tokenArg(failureNames[FailOpen]), tokenArg(failureNames[FailClosed]), tokenArg(failureNames[FailLocal]),
}}

func readFailure(p *Policy, words [][]byte) (n int, err error) {
	choice, err := chosen(failureNames[:], words)
	p.Failure, p.SaysFailure = Failure(choice), true
	return 2, err
}

// Leasing says whether a gateway may decide calls of a policy by itself, from what it has charged upstream ahead of them.
type Leasing uint8

// What a policy may say about it.
const (
	LeaseUnsaid Leasing = iota // nothing: upstream-lease holds
	LeaseYes
	LeaseNo
)

// leaseArg is how a policy says whether there may be leases.
var leaseArg = Arg{Name: "lease", Type: "oneof", Optional: true, Summary: "whether a gateway may decide calls for hot keys locally, from units that it has charged upstream in advance; `upstream-lease` by default", Args: []Arg{tokenArg("LEASE"), tokenArg("NOLEASE")}}

// leaseArgOf is leaseArg without what an algorithm does not have.
func leaseArgOf(a *Algorithm) Arg {
	if a.Leases() {
		return leaseArg
	}
	return optional(tokenArg("NOLEASE"))
}

// errNotLeased is the error for LEASE where there are never leases.
const errNotLeased = Error("ERR LEASE is not possible with %s, use NOLEASE or leave it out")

func readLeasing(p *Policy, words [][]byte) (n int, err error) {
	switch {
	case !is(words[0], "LEASE"):
		p.Leasing = LeaseNo
	case !p.Algorithm.Leases():
		return 0, Error(fmt.Sprintf(string(errNotLeased), p.Algorithm.Name))
	default:
		p.Leasing = LeaseYes
	}
	return 1, nil
}
