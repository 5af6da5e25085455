package config

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of what may be repeated.
const (
	maxUsers   = 10_000
	maxRenames = 1_024
)

// User is an ACL user of the configuration: a name and rules, as they were written. The rules may hold passwords.
type User struct {
	Name  string
	Rules []string
	Where string // where the configuration has it, such as "redis.conf:12", "--user" or "HEADGATE_USER"; empty: it was made since
}

// OfEnvironment reports whether a variable gave the user.
func (u User) OfEnvironment() bool { return u.Where == variableOf("user") }

// usersKind is user: a name and rules. The first user of a source replaces what was there, later ones add to it, and an empty one
// clears it. In one text, as a variable has it, line ends stand between several.
type usersKind struct{ list }

func (usersKind) parse(c *Config, args []string, more bool) error {
	var all []User
	if more && len(args) > 0 {
		all = slices.Clone(c.Users)
	}
	for _, words := range splitUsers(args) {
		user := User{Name: words[0], Rules: slices.Clone(words[1:])}
		switch {
		case slices.ContainsFunc(all, func(u User) bool { return u.Name == user.Name }):
			return redisText("Duplicate user found. A user can only be defined once in config files")
		case len(all) == maxUsers:
			return fmt.Errorf("there must be at most %d users", maxUsers)
		}
		all = append(all, user)
	}
	c.Users = all
	return nil
}

// placeUsers notes where the users stand that were read last.
func placeUsers(c *Config, where string) {
	for i := range c.Users {
		if c.Users[i].Where == "" {
			c.Users[i].Where = where
		}
	}
}

// takesText implements textTaker.
func (usersKind) takesText() {}

// splitUsers returns the words of each user: several words are one user's, whatever is in them, and a text has a user in each of its lines, whose
// words spaces divide, as in an ACL file.
func splitUsers(args []string) (users [][]string) {
	switch len(args) {
	case 0:
		return nil
	case 1:
		for line := range strings.Lines(args[0]) {
			if words := strings.FieldsFunc(strings.TrimSpace(line), func(r rune) bool { return r == ' ' }); len(words) > 0 {
				users = append(users, words)
			}
		}
		return users
	}
	return [][]string{args}
}

func (k usersKind) format(c *Config) string {
	if len(c.Users) == 0 {
		return ""
	}
	return strings.Join(k.lines(c), "\n")
}

func (usersKind) lines(c *Config) []string {
	lines := make([]string, len(c.Users))
	for i, u := range c.Users {
		words := []string{quoteIfNeeded(u.Name)}
		for _, rule := range u.Rules {
			words = append(words, quoteIfNeeded(rule))
		}
		lines[i] = strings.Join(words, " ")
	}
	return lines
}

func (usersKind) syntax() string { return `"", or name and rules; repeatable` }

// Rename gives a command another name; an empty one takes it away.
type Rename struct {
	From, To string
}

// renamesKind is rename-command: pairs of names. The first of a source replaces what was there, later ones add to it, and an empty one
// clears it.
type renamesKind struct{ list }

func (renamesKind) parse(c *Config, args []string, more bool) error {
	var all []Rename
	if more && len(args) > 0 {
		all = slices.Clone(c.Renames)
	}
	if len(args)%2 != 0 {
		return errArguments
	}
	for pair := range slices.Chunk(args, 2) {
		if len(all) == maxRenames {
			return fmt.Errorf("there must be at most %d of them", maxRenames)
		}
		all = append(all, Rename{From: pair[0], To: pair[1]})
	}
	c.Renames = all
	return nil
}

func (k renamesKind) format(c *Config) string {
	if len(c.Renames) == 0 {
		return ""
	}
	return strings.Join(k.lines(c), " ")
}

func (renamesKind) lines(c *Config) []string {
	if len(c.Renames) == 0 {
		return []string{`""`}
	}
	lines := make([]string, len(c.Renames))
	for i, r := range c.Renames {
		lines[i] = quoteIfNeeded(r.From) + " " + quoteIfNeeded(r.To)
	}
	return lines
}

func (renamesKind) syntax() string {
	return `"", or a command's name and its new one, "" for none; repeatable`
}
