package limiter

import (
	"errors"
	"fmt"
	"strings"

	"headgate/internal/ascii"
	"headgate/internal/spelling"
)

// syntaxHint is the ErrSyntax of which it is known what is wrong.
type syntaxHint struct{ text string }

func (e *syntaxHint) Error() string { return string(ErrSyntax) + e.suffix() }

// suffix is what stands behind how the call should look.
func (e *syntaxHint) suffix() string { return " (" + e.text + ")" }

// Is has errors.Is take it for ErrSyntax.
func (e *syntaxHint) Is(target error) bool { return target == ErrSyntax }

// Hint returns an ErrSyntax that says what is wrong.
func Hint(format string, args ...any) error { return &syntaxHint{fmt.Sprintf(format, args...)} }

// UsageError is the form on the wire of an ErrSyntax that was found in a call, or in a policy, which should look like syntax.
func UsageError(err error, syntax string) Error {
	text := string(ErrSyntax) + ", try " + syntax
	if hint := (*syntaxHint)(nil); errors.As(err, &hint) {
		text += hint.suffix()
	}
	return Error(text)
}

// Expected is a word that may stand once among options and clauses.
type Expected struct {
	Token string
	Value bool   // a value follows
	Only  string // where it may stand; empty: anywhere
	Or    string // another word that would stand in its place; empty: there is none
}

// CallWords are the options of the calls of every limiter.
var CallWords = []Expected{{Token: CostWord, Value: true}, {Token: "PEEK"}, {Token: WaitWord, Value: true}}

// StrayWord is the error for a word that cannot stand where one of those expected is: last if none follows, and behind what place says, which may be
// empty.
func StrayWord(word []byte, last bool, place string, expected []Expected) error {
	shown := string(Shown(word))
	text := ascii.Upper(shown)
	known := make([]string, len(expected))
	for i, e := range expected {
		switch known[i] = e.Token; {
		case e.Token != text:
		case e.Only != "":
			return Hint("%s goes only with %s", e.Token, e.Only)
		case e.Value && last:
			return LacksValue(e.Token)
		case e.Or != "":
			return Hint("%s or %s is given twice", e.Token, e.Or)
		default:
			return Hint("%s is given twice", e.Token)
		}
	}
	if near := spelling.Nearest(text, known...); near != "" {
		return Hint("unknown word '%s'%s, did you mean %s?", shown, place, near)
	}
	return Hint("unknown word '%s'%s", shown, place)
}

// LacksValue is the error for a token behind which a value is missing.
func LacksValue(token string) error { return Hint("%s needs a value", token) }

// strayWord is StrayWord for a word where an option of a call, or a policy's clause, is expected.
func (a *Algorithm) strayWord(p *Policy, word []byte, last, called bool) error {
	var expected []Expected
	for i := range a.Options {
		if o := &a.Options[i]; called || !o.OfCall {
			e := Expected{Token: o.Token, Value: o.Value}
			if o.When != nil && !o.When(p) {
				e.Only = o.Only
			}
			expected = append(expected, e)
		}
	}
	switch {
	case called && a.NoCost:
		expected = append(expected, CallWords[1:]...)
	case called:
		expected = append(expected, CallWords...)
	case a.Kind != NoState:
		for i := range clauses {
			switch tokens := clauses[i].tokens(); len(tokens) {
			case 2:
				expected = append(expected, Expected{Token: tokens[0], Or: tokens[1]}, Expected{Token: tokens[1], Or: tokens[0]})
			default:
				expected = append(expected, Expected{Token: tokens[0]})
			}
		}
	}
	return StrayWord(word, last, "", expected)
}

// orList lists words with "or" before the last.
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
