package command

import (
	"slices"
	"strings"
)

// Arg declares one argument, in the terms of COMMAND DOCS.
type Arg struct {
	Name     string
	Type     string // key, string, integer, double, pattern, unix-time, pure-token, oneof, block
	Token    string // the word before it
	Optional bool
	Multiple bool
	EachTok  bool // Multiple, with the token before each
	Args     []Arg
	Error    string // what a value is answered with that is none; %s stands for the value. Only limiters declare it
	Summary  string // what it means, with its unit and range. Only commands that Redis has not declare it
}

// Key declares an argument that is a key.
func Key(name string) Arg { return Arg{Name: name, Type: "key"} }

// Str declares an argument that may be any string.
func Str(name string) Arg { return Arg{Name: name, Type: "string"} }

// Integer declares an argument that is a whole number.
func Integer(name string) Arg { return Arg{Name: name, Type: "integer"} }

// Double declares an argument that is a number.
func Double(name string) Arg { return Arg{Name: name, Type: "double"} }

// Pattern declares an argument that is a glob pattern.
func Pattern(name string) Arg { return Arg{Name: name, Type: "pattern"} }

// UnixTime declares an argument that is a time since the Unix epoch.
func UnixTime(name string) Arg { return Arg{Name: name, Type: "unix-time"} }

// Tok declares a word that stands for itself, in upper case.
func Tok(token string) Arg {
	return Arg{Name: strings.ToLower(token), Type: "pure-token", Token: token}
}

// OneOf declares a choice between arguments.
func OneOf(name string, a ...Arg) Arg { return Arg{Name: name, Type: "oneof", Args: a} }

// Block declares arguments that stand together.
func Block(name string, a ...Arg) Arg { return Arg{Name: name, Type: "block", Args: a} }

// Opt returns the argument as one that may be left out.
func (a Arg) Opt() Arg { a.Optional = true; return a }

// Multi returns the argument as one that may be repeated, behind the token if it has one.
func (a Arg) Multi() Arg { a.Multiple = true; return a }

// EachWithToken returns an argument that may be repeated as one that has its token before each.
func (a Arg) EachWithToken() Arg { a.EachTok = true; return a }

// After returns the argument as one that stands behind a word.
func (a Arg) After(token string) Arg { a.Token = token; return a }

// Fails returns the argument with the error for a value that it does not take; %s in it stands for the value.
func (a Arg) Fails(text string) Arg { a.Error = text; return a }

// Means returns the argument with a text that says what it means, and in which unit and range.
func (a Arg) Means(text string) Arg { a.Summary = text; return a }

// FlagNames returns an argument's flags as COMMAND DOCS shows them.
func (a Arg) FlagNames() []string {
	var names []string
	if a.Optional {
		names = append(names, "optional")
	}
	if a.Multiple {
		names = append(names, "multiple")
	}
	if a.EachTok {
		names = append(names, "multiple_token")
	}
	return names
}

// syntax renders an argument as documentation writes it: `[NX | XX] key value [value …]`.
func (a Arg) syntax() string {
	s := a.Name
	switch a.Type {
	case "pure-token":
		s = a.Token
	case "oneof":
		parts := make([]string, len(a.Args))
		for i, sub := range a.Args {
			parts[i] = sub.syntax()
		}
		s = strings.Join(parts, " | ")
		if !a.Optional || a.Token != "" {
			s = "<" + s + ">"
		}
	case "block":
		parts := make([]string, len(a.Args))
		for i, sub := range a.Args {
			parts[i] = sub.syntax()
		}
		s = strings.Join(parts, " ")
	}
	if a.Token != "" && a.Type != "pure-token" {
		if s == "\"\"" {
			s = a.Token
		} else {
			s = a.Token + " " + s
		}
	}
	if a.Multiple {
		rest := s
		if a.Token != "" && !a.EachTok && a.Type != "pure-token" {
			rest = strings.TrimPrefix(s, a.Token+" ")
		}
		s += " [" + rest + " …]"
	}
	if a.Optional {
		s = "[" + s + "]"
	}
	return s
}

// secretWords are those that an argument's name has if it is one to hide.
var secretWords = []string{"password", "passwd", "passphrase", "pass", "secret", "token", "credential", "credentials"}

// IsSecret reports whether a password or the like stands there, as the argument's name has it.
func (a Arg) IsSecret() bool {
	words := strings.FieldsFunc(strings.ToLower(a.Name), func(r rune) bool { return r < 'a' || r > 'z' })
	return len(a.Args) == 0 && a.Type != "pure-token" && slices.ContainsFunc(words, func(word string) bool { return slices.Contains(secretWords, word) })
}

// TakeSecrets reports whether an argument, or one within another, is one to hide by its name.
func TakeSecrets(args []Arg) bool {
	return slices.ContainsFunc(args, func(a Arg) bool { return a.IsSecret() || TakeSecrets(a.Args) })
}
