package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"

	"headgate/internal/quoting"
)

// User is somebody who may use the server. Clients point to theirs, so that changes hold for them at once.
type User struct {
	name      string
	enabled   bool
	noPass    bool
	sanitize  sanitizing
	passwords []string // SHA-256 of each, in hexadecimal
	selectors []*selector
	defaults  *Defaults
	table     *Table
}

// Defaults are what the configuration says of users that are made or reset. They may change.
type Defaults struct {
	AllChannels bool // as acl-pubsub-default has it
}

// sanitizing is whether payloads of RESTORE are to be checked in depth; here they always are.
type sanitizing uint8

const (
	sanitizeUnsaid sanitizing = iota
	sanitizeSkipped
	sanitizeAlways
)

func newUser(name string, t *Table, d *Defaults) *User {
	return &User{name: name, table: t, defaults: d, selectors: []*selector{newSelector(t, d.AllChannels)}}
}

// Name returns the user's name.
func (u *User) Name() string { return u.name }

// Enabled reports whether clients can authenticate as this user.
func (u *User) Enabled() bool { return u.enabled }

// NoPass reports whether any password will do.
func (u *User) NoPass() bool { return u.noPass }

// Open reports whether clients are this user without having to authenticate, if it is the default one.
func (u *User) Open() bool { return u.enabled && u.noPass }

// Passwords returns the hashes of the user's passwords.
func (u *User) Passwords() []string { return u.passwords }

// MayAll reports whether nothing that the user could do needs a second look.
func (u *User) MayAll() bool {
	return slices.ContainsFunc(u.selectors, func(s *selector) bool { return s.allCommands && s.allKeys && s.allChannels })
}

// MayAllWithKeys reports whether the user may run every command with every key, whatever the channels.
func (u *User) MayAllWithKeys() bool {
	return slices.ContainsFunc(u.selectors, func(s *selector) bool { return s.allCommands && s.allKeys })
}

// Flags returns the user's flags, under Redis's names.
func (u *User) Flags() []string {
	flags := []string{"off"}
	if u.enabled {
		flags[0] = "on"
	}
	if u.noPass {
		flags = append(flags, "nopass")
	}
	switch u.sanitize {
	case sanitizeSkipped:
		flags = append(flags, "skip-sanitize-payload")
	case sanitizeAlways:
		flags = append(flags, "sanitize-payload")
	}
	return flags
}

// Rights are a selector's rules by what they are about.
type Rights struct {
	Commands, Keys, Channels string
}

// Rights returns the rules of each of the user's selectors, the root's first.
func (u *User) Rights() []Rights {
	list := make([]Rights, len(u.selectors))
	for i, s := range u.selectors {
		list[i] = Rights{s.describeCommands(), s.describeKeys(), s.describeChannels()}
	}
	return list
}

// Line writes the user as a line of the configuration or ACL file.
func (u *User) Line() string { return "user " + u.name + " " + u.Rules() }

// Rules writes the rules that make the user.
func (u *User) Rules() string {
	parts := u.Flags()
	for _, hash := range u.passwords {
		parts = append(parts, "#"+hash)
	}
	for i, s := range u.selectors {
		if i == 0 {
			parts = append(parts, s.describe())
		} else {
			parts = append(parts, "("+s.describe()+")")
		}
	}
	return strings.Join(parts, " ")
}

// clone returns a user that shares nothing with this one.
func (u *User) clone() *User {
	own := *u
	own.passwords = slices.Clone(u.passwords)
	own.selectors = make([]*selector, len(u.selectors))
	for i, s := range u.selectors {
		own.selectors[i] = s.clone()
	}
	return &own
}

// become makes the user what another is, its name aside.
func (u *User) become(other *User) {
	name := u.name
	*u = *other.clone()
	u.name = name
}

// Disarm takes everything from a user who is deleted: whoever still points to it may do nothing.
func (u *User) Disarm() { u.become(newUser(u.name, u.table, &Defaults{})) }

// apply changes the user by one rule. After an error some of it may be done.
func (u *User) apply(rule string) error {
	if rule == "" {
		return nil
	}
	switch strings.ToLower(cut(rule)) {
	case "on":
		u.enabled = true
	case "off":
		u.enabled = false
	case "skip-sanitize-payload":
		u.sanitize = sanitizeSkipped
	case "sanitize-payload":
		u.sanitize = sanitizeAlways
	case "nopass":
		u.noPass, u.passwords = true, nil
	case "resetpass":
		u.noPass, u.passwords = false, nil
	case "clearselectors":
		u.selectors = u.selectors[:1:1]
	case "reset":
		*u = *newUser(u.name, u.table, u.defaults)
		u.sanitize = sanitizeAlways
	default:
		return u.applyOther(rule)
	}
	return nil
}

// applyOther carries out a rule that is no fixed word of users.
func (u *User) applyOther(rule string) error {
	switch {
	case rule[0] == '>':
		return u.addPassword(hashPassword([]byte(rule[1:])))
	case rule[0] == '<':
		return u.removePassword(hashPassword([]byte(rule[1:])))
	case rule[0] == '#' || rule[0] == '!':
		hash := rule[1:]
		if !isHash(hash) {
			return ErrHash
		}
		if rule[0] == '#' {
			return u.addPassword(hash)
		}
		return u.removePassword(hash)
	case rule[0] == '(' && strings.HasSuffix(rule, ")"):
		return u.addSelector(rule[1 : len(rule)-1])
	}
	return u.selectors[0].apply(rule)
}

func (u *User) addPassword(hash string) error {
	u.noPass = false
	switch {
	case slices.Contains(u.passwords, hash):
	case len(u.passwords) >= MaxPasswords:
		return ErrTooMany
	default:
		u.passwords = append(u.passwords, hash)
	}
	return nil
}

func (u *User) removePassword(hash string) error {
	i := slices.Index(u.passwords, hash)
	if i < 0 {
		return ErrNoSuchPassword
	}
	u.passwords = slices.Delete(u.passwords, i, i+1)
	return nil
}

// addSelector adds the selector that a list of rules makes. As in Redis, a list whose quotes do not match makes an empty one.
func (u *User) addSelector(rules string) error {
	if len(u.selectors) > MaxSelectors {
		return ErrTooMany
	}
	s := newSelector(u.table, u.defaults.AllChannels)
	words, _ := quoting.Split(cut(rules))
	for _, rule := range words {
		if err := s.apply(rule); err != nil {
			return err
		}
	}
	u.selectors = append(u.selectors, s)
	return nil
}

// setPassword makes one password the user's only one; an empty one lets everybody in.
func (u *User) setPassword(password string) {
	u.noPass, u.passwords = password == "", nil
	if password != "" {
		u.passwords = []string{hashPassword([]byte(password))}
	}
}

// accepts reports whether a password is the user's. The time that it takes tells nothing of the password.
func (u *User) accepts(password []byte) bool {
	hash := []byte(hashPassword(password))
	found := 0
	for _, known := range u.passwords {
		found |= subtle.ConstantTimeCompare(hash, []byte(known))
	}
	return found == 1 || u.noPass
}

func hashPassword(password []byte) string {
	sum := sha256.Sum256(password)
	return hex.EncodeToString(sum[:])
}

func isHash(s string) bool {
	return len(s) == hex.EncodedLen(sha256.Size) && strings.Trim(s, "0123456789abcdef") == ""
}

// Denial is why a call is not allowed.
type Denial uint8

// The denials. Of several the last one counts.
const (
	Allowed Denial = iota
	DeniedCommand
	DeniedKey
	DeniedAuth // a password was wrong
	DeniedChannel
)

// String returns the denial's name in the log.
func (d Denial) String() string {
	return [...]string{"allowed", "command", "key", "auth", "channel"}[d]
}

// Call is a command line that is to be judged.
type Call struct {
	Command  int // its index in the table
	Args     [][]byte
	Keys     []Key
	Channels []Channel
}

// Key is an argument that is a key.
type Key struct {
	Arg    int
	Access Access
}

// Channel is an argument that is a channel, or a pattern of channels.
type Channel struct {
	Arg     int
	Pattern bool
}

// Judge decides whether the user may make a call, and if not which argument is to blame: of the selectors, that of the one that came
// furthest.
func (u *User) Judge(c *Call) (denial Denial, arg int) {
	denial = DeniedCommand
	for _, s := range u.selectors {
		d, at := s.judge(c)
		if d == Allowed {
			return Allowed, 0
		}
		if d > denial || d == denial && at > arg {
			denial, arg = d, at
		}
	}
	return denial, arg
}

// MayWithEveryKey reports whether the user may make a call that turns out to use keys which nobody could tell before.
func (u *User) MayWithEveryKey(c *Call, access Access) bool {
	return slices.ContainsFunc(u.selectors, func(s *selector) bool {
		d, _ := s.judge(c)
		return d == Allowed && s.allowsEveryKey(access)
	})
}

// MayUse reports whether the user may use a key so, by some command.
func (u *User) MayUse(key []byte, access Access) bool {
	return slices.ContainsFunc(u.selectors, func(s *selector) bool { return s.allowsKey(key, access) })
}

// MayWithKey reports whether the user may make a call that turns out to use a certain key which nobody could tell before.
func (u *User) MayWithKey(c *Call, key []byte, access Access) bool {
	return slices.ContainsFunc(u.selectors, func(s *selector) bool {
		d, _ := s.judge(c)
		return d == Allowed && s.allowsKey(key, access)
	})
}

// Subscription is a channel, or a pattern of channels, that a client has subscribed to.
type Subscription struct {
	Name    string
	Pattern bool
}

// revokedBy reports whether somebody who is subscribed to such names loses one when the user becomes another: if that one has no
// right to all channels, and not to each pattern that the user had. As in Redis, selectors are seen as one here.
func (u *User) revokedBy(next *User, subscribed []Subscription) bool {
	var upcoming []string
	for _, s := range next.selectors {
		if s.allChannels {
			return false
		}
		upcoming = append(upcoming, s.channels...)
	}
	kept := true
	for _, s := range u.selectors {
		for _, pattern := range s.channels {
			kept = kept && slices.Contains(upcoming, pattern)
		}
	}
	if kept && !u.allChannels() {
		return false
	}
	return slices.ContainsFunc(subscribed, func(s Subscription) bool { return !matchesChannel(upcoming, []byte(s.Name), s.Pattern) })
}

func (u *User) allChannels() bool {
	return slices.ContainsFunc(u.selectors, func(s *selector) bool { return s.allChannels })
}
