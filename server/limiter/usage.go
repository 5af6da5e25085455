package limiter

import (
	"errors"
	"fmt"
	"slices"

	"headgate/internal/ascii"
	"headgate/internal/spelling"
)

// unknownWord is the ErrSyntax for a word that may stand nowhere among the options and clauses.
type unknownWord struct {
	word string // as much of it as is shown
	near string // the one that it probably means; empty: none is close
}

func (e *unknownWord) Error() string { return string(ErrSyntax) + e.hint() }

// hint says which word it is, and which it might be, behind how the call should look.
func (e *unknownWord) hint() string {
	if e.near == "" {
		return fmt.Sprintf(" (unknown word '%s')", e.word)
	}
	return fmt.Sprintf(" (unknown word '%s', did you mean %s?)", e.word, e.near)
}

// Is has errors.Is take it for ErrSyntax.
func (e *unknownWord) Is(target error) bool { return target == ErrSyntax }

// UsageError is the form on the wire of an ErrSyntax that was found in a call, or in a policy, which should look like syntax.
func UsageError(err error, syntax string) Error {
	text := string(ErrSyntax) + ", try " + syntax
	if unknown := (*unknownWord)(nil); errors.As(err, &unknown) {
		text += unknown.hint()
	}
	return Error(text)
}

// strayWord is the error for a word that cannot stand where an option, or a policy's clause, is expected.
func (a *Algorithm) strayWord(word []byte, called bool) error {
	var known []string
	for _, o := range a.Options {
		if called || !o.OfCall {
			known = append(known, o.Token)
		}
	}
	switch {
	case called:
		known = append(known, CostWord, "PEEK", WaitWord)
	case a.Kind != NoState:
		for i := range clauses {
			known = append(known, clauses[i].tokens()...)
		}
	}
	shown := string(Shown(word))
	text := ascii.Upper(shown)
	if slices.Contains(known, text) { // it stands there twice, lacks its value or does not go with the others
		return ErrSyntax
	}
	return &unknownWord{shown, spelling.Nearest(text, known...)}
}
