package acl

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DefaultName is the user that every client is until it authenticates as another.
const DefaultName = "default"

// MaxUsers bounds how many users there are.
const MaxUsers = 10_000

// Users is the set of all users. Make it with [NewUsers].
type Users struct {
	table    *Table
	defaults Defaults
	byName   map[string]*User
	def      *User
}

// NewUsers returns a set with nobody in it but the default user, who may do everything without a password.
func NewUsers(t *Table) *Users {
	us := &Users{table: t, byName: map[string]*User{}}
	us.def = us.newDefault()
	us.byName[DefaultName] = us.def
	return us
}

func (us *Users) newDefault() *User {
	u := newUser(DefaultName, us.table, &us.defaults)
	u.enabled, u.noPass = true, true
	root := u.selectors[0]
	root.allowAll(true)
	root.allKeys, root.allChannels = true, true
	return u
}

// Default returns the default user: always the same one.
func (us *Users) Default() *User { return us.def }

// SetDefaults says what holds for users that are made or reset from now on.
func (us *Users) SetDefaults(d Defaults) { us.defaults = d }

// Get returns the user of a name, or nil.
func (us *Users) Get(name string) *User { return us.byName[name] }

// All returns the users, sorted by name.
func (us *Users) All() []*User {
	list := make([]*User, 0, len(us.byName))
	for _, name := range slices.Sorted(maps.Keys(us.byName)) {
		list = append(list, us.byName[name])
	}
	return list
}

// SetDefaultPassword gives the default user one password, as requirepass does; an empty one lets everybody in.
func (us *Users) SetDefaultPassword(password string) { us.def.setPassword(password) }

// Authenticate returns the user whose password is right, or nil.
func (us *Users) Authenticate(name, password []byte) *User {
	u := us.byName[string(name)]
	if u == nil {
		hashPassword(password) // so that the time does not tell that there is no such user
		return nil
	}
	if !u.accepts(password) || !u.enabled {
		return nil
	}
	return u
}

// RuleError is the rule that a user could not be made with.
type RuleError struct {
	Rule string
	Err  error
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("Error in ACL SETUSER modifier '%s': %s", cut(e.Rule), e.Err)
}
func (e *RuleError) Unwrap() error { return e.Err }

// UnmatchedError is a parenthesis that is never closed.
type UnmatchedError struct {
	Rule string // that begins with it
}

func (e *UnmatchedError) Error() string {
	return "Unmatched parenthesis in acl selector starting at '" + cut(e.Rule) + "'."
}

// Why a user cannot be made.
const (
	ErrUserName     = redisText("Usernames can't contain spaces or null characters")
	ErrTooManyUsers = redisText("There are too many users")
)

// Change is what a list of rules would make of a user. Nothing has happened before Apply.
type Change struct {
	users *Users
	user  *User // nil: it is new
	next  *User
}

// Change works out what rules make of a user, who may be new.
func (us *Users) Change(name string, rules []string) (*Change, error) {
	if hasBlanks(name) {
		return nil, ErrUserName
	}
	rules, err := joinSelectors(rules)
	if err != nil {
		return nil, err
	}
	c := &Change{users: us, user: us.byName[name]}
	switch {
	case c.user != nil:
		c.next = c.user.clone()
	case len(us.byName) >= MaxUsers:
		return nil, ErrTooManyUsers
	default:
		c.next = newUser(name, us.table, &us.defaults)
	}
	for _, rule := range rules {
		if err := c.next.apply(rule); err != nil {
			return nil, &RuleError{rule, err}
		}
	}
	return c, nil
}

// User returns the user whom the change is about, or nil if it is new.
func (c *Change) User() *User { return c.user }

// Revokes reports whether a client of the user's that is subscribed to such names loses the right to one of them.
func (c *Change) Revokes(subscribed []Subscription) bool {
	return c.user.revokedBy(c.next, subscribed)
}

// Apply makes the change, and returns the user.
func (c *Change) Apply() *User {
	if c.user == nil {
		c.users.byName[c.next.name] = c.next
		return c.next
	}
	c.user.become(c.next)
	return c.user
}

// Delete removes a user, and returns who that was, or nil. The default user stays.
func (us *Users) Delete(name string) *User {
	u := us.byName[name]
	if u == nil || u == us.def {
		return nil
	}
	delete(us.byName, name)
	return u
}

// joinSelectors puts together what was one selector in parentheses before it was split at its spaces. As in Redis, one that opens within
// another takes its place.
func joinSelectors(rules []string) ([]string, error) {
	var joined []string
	open := -1
	var selector strings.Builder
	for i, rule := range rules {
		switch {
		case strings.HasPrefix(rule, "(") && !strings.HasSuffix(rule, ")"):
			open = i
			selector.Reset()
			selector.WriteString(rule)
		case open >= 0:
			selector.WriteString(" " + cut(rule))
			if strings.HasSuffix(rule, ")") {
				open = -1
				joined = append(joined, selector.String())
			}
		default:
			joined = append(joined, rule)
		}
	}
	if open >= 0 {
		return nil, &UnmatchedError{rules[open]}
	}
	return joined, nil
}

// Lines writes all users, one a line, as [Users.Load] reads them.
func (us *Users) Lines() []string {
	all := us.All()
	lines := make([]string, len(all))
	for i, u := range all {
		lines[i] = u.Line()
	}
	return lines
}

// loadRefused ends the text of an error with which a file was refused.
const loadRefused = "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"

// Load replaces all users by those of a file's text; without a default user in it, that one is as at first. It returns the users who
// are gone: all but the default one, even where the file has others of the same names. On error, whose text tells of each wrong line
// after the file's name, nothing has changed.
func (us *Users) Load(name, text string) (gone []*User, err error) {
	next := &Users{table: us.table, defaults: us.defaults, byName: map[string]*User{}}
	var wrong strings.Builder
	for i, line := range strings.Split(text, "\n") {
		line = strings.Trim(line, " \t\r\n")
		if line == "" {
			continue
		}
		if problem := next.loadLine(fmt.Sprintf("%s:%d", name, i+1), i+1, strings.Split(line, " ")); problem != "" {
			wrong.WriteString(problem)
		}
	}
	if wrong.Len() > 0 {
		return nil, fmt.Errorf("%s%s", wrong.String(), loadRefused)
	}
	for _, u := range us.All() {
		if u != us.def {
			gone = append(gone, u)
		}
	}
	if u := next.byName[DefaultName]; u != nil {
		us.def.become(u)
	} else {
		us.def.become(us.newDefault())
	}
	next.byName[DefaultName] = us.def
	for _, u := range next.byName {
		u.defaults = &us.defaults
	}
	us.byName = next.byName
	return gone, nil
}

// loadLine adds the user of one line, or returns what is wrong with it.
func (us *Users) loadLine(where string, line int, words []string) (problem string) {
	switch {
	case words[0] != "user" || len(words) < 2:
		return where + " should start with user keyword followed by the username. "
	case hasBlanks(words[1]):
		return fmt.Sprintf("'%s: username '%s' contains invalid characters. ", where, words[1])
	case us.byName[words[1]] != nil:
		return fmt.Sprintf("WARNING: Duplicate user '%s' found on line %d. ", words[1], line)
	case len(us.byName) >= MaxUsers:
		return where + ": " + ErrTooManyUsers.Error() + ". "
	}
	u := newUser(words[1], us.table, &us.defaults)
	us.byName[u.name] = u
	rules, err := joinSelectors(words[2:])
	if err != nil {
		return where + ": Unmatched parenthesis in selector definition."
	}
	refused := false
	for _, rule := range rules {
		rule = strings.Trim(rule, "\t\r\n")
		switch err := u.apply(rule); {
		case err == ErrUnknownCommand:
			problem += fmt.Sprintf("%s: Error in applying operation '%s': %s. ", where, cut(rule), err)
		case err != nil && !refused: // what follows it may be wrong for that alone; and it may be a password, which is not shown
			problem += where + ": " + err.Error() + ". "
			refused = true
		}
	}
	return problem
}
