package acl

import (
	"slices"
	"strings"

	"headgate/internal/glob"
)

// redisText is an error in Redis's own words and its own spelling.
type redisText string

func (t redisText) Error() string { return string(t) }

// What is wrong with a rule.
const (
	ErrSyntax           = redisText("Syntax error")
	ErrUnknownCommand   = redisText("Unknown command or category name in ACL")
	ErrAfterAllKeys     = redisText("Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns")
	ErrAfterAllChannels = redisText("Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels")
	ErrNoSuchPassword   = redisText("The password you are trying to remove from the user does not exist")
	ErrHash             = redisText("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters")
	ErrFirstArgOfSub    = redisText("Allowing first-arg of a subcommand is not supported")
	ErrTooMany          = redisText("Too many of these")
)

// Limits of what one user may be made of.
const (
	MaxPasswords = 1_000
	MaxSelectors = 1_000
	MaxPatterns  = 4_096 // of keys, and of channels, in one selector
	MaxFirstArgs = 1_000 // in one selector
)

// Access is what a command does with a key.
type Access uint8

// The kinds of access that rules tell apart.
const (
	ReadKey Access = 1 << iota
	WriteKey
	anyAccess = ReadKey | WriteKey
)

// selector is one set of rights.
type selector struct {
	table *Table

	allCommands bool // every command, the bitmap need not be asked
	future      bool // began with +@all, so it is described by what is taken away
	commands    bitmap
	firstArgs   map[int][]string // of commands that are not allowed: first arguments with which they are

	allKeys     bool
	keys        []keyPattern
	allChannels bool
	channels    []string

	described string // what describeCommands answered last; empty: it has to be asked anew
}

type keyPattern struct {
	access  Access
	pattern string
}

// String writes the pattern as a rule.
func (k keyPattern) String() string {
	switch k.access {
	case ReadKey:
		return "%R~" + k.pattern
	case WriteKey:
		return "%W~" + k.pattern
	}
	return "~" + k.pattern
}

func newSelector(t *Table, allChannels bool) *selector {
	return &selector{table: t, commands: t.newBitmap(), allChannels: allChannels}
}

func (s *selector) clone() *selector {
	own := *s
	own.commands, own.keys, own.channels = slices.Clone(s.commands), slices.Clone(s.keys), slices.Clone(s.channels)
	own.firstArgs = nil
	for id, args := range s.firstArgs {
		own.addFirstArgs(id, args...)
	}
	return &own
}

func (s *selector) addFirstArgs(id int, args ...string) {
	if s.firstArgs == nil {
		s.firstArgs = map[int][]string{}
	}
	s.firstArgs[id] = append(slices.Clip(s.firstArgs[id]), args...)
}

// apply changes the selector by one rule.
func (s *selector) apply(rule string) error {
	s.described = ""
	word := cut(rule)
	switch strings.ToLower(word) {
	case "allkeys", "~*":
		s.allKeys, s.keys = true, nil
	case "resetkeys":
		s.allKeys, s.keys = false, nil
	case "allchannels", "&*":
		s.allChannels, s.channels = true, nil
	case "resetchannels":
		s.allChannels, s.channels = false, nil
	case "allcommands", "+@all":
		s.allowAll(true)
	case "nocommands", "-@all":
		s.allowAll(false)
	default:
		return s.applyPattern(rule, word)
	}
	return nil
}

// applyPattern carries out a rule that is no fixed word.
func (s *selector) applyPattern(rule, word string) error {
	if rule == "" {
		return ErrSyntax
	}
	switch rule[0] {
	case '~', '%':
		return s.addKeys(rule)
	case '&':
		return s.addChannels(rule[1:])
	case '+', '-':
		allow := rule[0] == '+'
		if strings.HasPrefix(word[1:], "@") {
			return s.setCategory(word[2:], allow)
		}
		if allow && strings.Contains(word, "|") {
			return s.allowPart(word[1:])
		}
		id, ok := s.table.lookup(word[1:])
		if !ok {
			return ErrUnknownCommand
		}
		s.setCommand(id, allow)
		return nil
	}
	return ErrSyntax
}

func (s *selector) allowAll(allow bool) {
	s.allCommands, s.future, s.firstArgs = allow, allow, nil
	for i := range s.commands {
		s.commands[i] = 0
		if allow {
			s.commands[i] = ^uint64(0)
		}
	}
}

// setCommand allows or forbids a command, with all of its sub-commands if it has some.
func (s *selector) setCommand(id int, allow bool) {
	s.allCommands = s.allCommands && allow
	s.commands.set(id, allow)
	delete(s.firstArgs, id)
	for _, sub := range s.table.subs[id] {
		s.commands.set(sub, allow)
	}
}

func (s *selector) setCategory(name string, allow bool) error {
	category := CategoryByName(name)
	if category == 0 {
		return ErrUnknownCommand
	}
	for id, cmd := range s.table.commands {
		if cmd.Categories&category != 0 {
			s.setCommand(id, allow)
		}
	}
	return nil
}

// allowPart allows a sub-command, or a command with a certain first argument.
func (s *selector) allowPart(rule string) error {
	at := strings.LastIndexByte(rule, '|')
	name, part := rule[:at], rule[at+1:]
	id, ok := s.table.lookup(name)
	switch {
	case !ok:
		return ErrUnknownCommand
	case s.table.commands[id].Parent >= 0:
		return ErrFirstArgOfSub
	case part == "":
		return ErrSyntax
	case s.table.containers[id]:
		if id, ok = s.table.lookup(rule); !ok {
			return ErrUnknownCommand
		}
		s.setCommand(id, true)
		return nil
	}
	if slices.ContainsFunc(s.firstArgs[id], func(known string) bool { return strings.EqualFold(known, part) }) {
		return nil
	}
	total := 0
	for _, args := range s.firstArgs {
		total += len(args)
	}
	if total >= MaxFirstArgs {
		return ErrTooMany
	}
	s.addFirstArgs(id, part)
	return nil
}

// addKeys adds a pattern of keys: ~pattern, or %R~, %W~ and %RW~ before it.
func (s *selector) addKeys(rule string) error {
	if s.allKeys {
		return ErrAfterAllKeys
	}
	marks, pattern, _ := strings.Cut(rule, "~")
	access := anyAccess
	if marks != "" {
		access = 0
		for _, mark := range []byte(marks[1:]) {
			one := ReadKey
			if mark|0x20 == 'w' {
				one = WriteKey
			}
			if mark|0x20 != 'r' && one == ReadKey || access&one != 0 {
				return ErrSyntax
			}
			access |= one
		}
	}
	if access == 0 || hasBlanks(pattern) {
		return ErrSyntax
	}
	i := slices.IndexFunc(s.keys, func(k keyPattern) bool { return k.pattern == pattern })
	switch {
	case i >= 0:
		s.keys[i].access |= access
	case len(s.keys) >= MaxPatterns:
		return ErrTooMany
	default:
		s.keys = append(s.keys, keyPattern{access, pattern})
	}
	return nil
}

func (s *selector) addChannels(pattern string) error {
	switch {
	case s.allChannels:
		return ErrAfterAllChannels
	case hasBlanks(pattern):
		return ErrSyntax
	case slices.Contains(s.channels, pattern):
	case len(s.channels) >= MaxPatterns:
		return ErrTooMany
	default:
		s.channels = append(s.channels, pattern)
	}
	return nil
}

// hasBlanks reports whether text could not stand in a line of rules.
func hasBlanks(s string) bool { return strings.ContainsAny(s, " \t\n\v\f\r\x00") }

// judge decides about a call. arg is the index of the argument to blame.
func (s *selector) judge(c *Call) (denial Denial, arg int) {
	if !s.allCommands && !s.table.commands[c.Command].Always && !s.commands.has(c.Command) && !s.allowsFirstArg(c) {
		return DeniedCommand, 0
	}
	if !s.allKeys {
		for _, k := range c.Keys {
			if !s.allowsKey(c.Args[k.Arg], k.Access) {
				return DeniedKey, k.Arg
			}
		}
	}
	if !s.allChannels {
		for _, ch := range c.Channels {
			if !s.allowsChannel(c.Args[ch.Arg], ch.Pattern) {
				return DeniedChannel, ch.Arg
			}
		}
	}
	return Allowed, 0
}

func (s *selector) allowsFirstArg(c *Call) bool {
	return len(c.Args) > 1 && slices.ContainsFunc(s.firstArgs[c.Command], func(arg string) bool {
		return strings.EqualFold(arg, cut(string(c.Args[1])))
	})
}

func (s *selector) allowsKey(key []byte, access Access) bool {
	return s.allKeys || slices.ContainsFunc(s.keys, func(k keyPattern) bool {
		return k.access&access == access && glob.Match([]byte(k.pattern), key, false)
	})
}

// allowsEveryKey reports whether there is no key that cannot be used so.
func (s *selector) allowsEveryKey(access Access) bool {
	return s.allKeys || slices.ContainsFunc(s.keys, func(k keyPattern) bool { return k.access&access == access && k.pattern == "*" })
}

// allowsChannel reports whether a channel may be used. A pattern of channels has to be among the selector's as it stands.
func (s *selector) allowsChannel(name []byte, isPattern bool) bool {
	return s.allChannels || matchesChannel(s.channels, name, isPattern)
}

func matchesChannel(allowed []string, name []byte, isPattern bool) bool {
	return slices.ContainsFunc(allowed, func(pattern string) bool {
		if isPattern {
			return pattern == string(name)
		}
		return glob.Match([]byte(pattern), name, false)
	})
}

// describeKeys writes the rules on keys.
func (s *selector) describeKeys() string {
	if s.allKeys {
		return "~*"
	}
	rules := make([]string, len(s.keys))
	for i, k := range s.keys {
		rules[i] = k.String()
	}
	return strings.Join(rules, " ")
}

func (s *selector) describeChannels() string {
	if s.allChannels {
		return "&*"
	}
	rules := make([]string, len(s.channels))
	for i, pattern := range s.channels {
		rules[i] = "&" + pattern
	}
	return strings.Join(rules, " ")
}

// describe writes all rules that make the selector.
func (s *selector) describe() string {
	var parts []string
	if keys := s.describeKeys(); keys != "" {
		parts = append(parts, keys)
	}
	if !s.allChannels {
		parts = append(parts, "resetchannels")
	}
	if channels := s.describeChannels(); channels != "" {
		parts = append(parts, channels)
	}
	return strings.Join(append(parts, s.describeCommands()), " ")
}

// describeCommands writes the rules on commands. Only what they allow is known, not how they were put, so the fewest categories that
// come near to it are looked for, and then the commands that make the difference.
func (s *selector) describeCommands() string {
	if s.described == "" {
		s.described = strings.Join(s.commandRules(), " ")
	}
	return s.described
}

func (s *selector) commandRules() []string {
	t := s.table
	made := newSelector(t, false) // by the rules so far
	rest := newSelector(t, false) // what they leave to be said
	copy(rest.commands, s.commands)
	rules := []string{"-@all"}
	if s.future {
		rules[0] = "+@all"
	}
	made.allowAll(s.future)
	sign, inverse := "+", false
	if s.future {
		sign, inverse = "-", true
	}
	var used Categories
	for {
		best := rest.nearestCategory(used, s.future)
		if best < 0 {
			break
		}
		used |= 1 << best
		name := categoryNames[best]
		_ = made.setCategory(name, !inverse) // the name is known
		_ = rest.setCategory(name, inverse)
		rules = append(rules, sign+"@"+name)
	}
	return append(rules, s.singleRules(made)...)
}

// nearestCategory returns the category, but for those used, that has the fewest commands that differ from what is to be said, and among
// these the one with the most that agree; -1 if in none more agree than differ. What is to be said is which commands are allowed or, if
// inverse, forbidden.
func (s *selector) nearestCategory(used Categories, inverse bool) int {
	best, fewest, most := -1, len(s.table.commands)+1, 0
	for i, size := range s.table.sizes {
		if used&(1<<i) != 0 {
			continue
		}
		same := s.commands.common(s.table.members[i])
		if inverse {
			same = size - same
		}
		differ := size - same
		if same > differ && (differ < fewest || differ == fewest && same > most) {
			best, fewest, most = i, differ, same
		}
	}
	return best
}

// singleRules returns the rules for single commands that turn made into the selector.
func (s *selector) singleRules(made *selector) (rules []string) {
	for id, cmd := range s.table.commands {
		allowed := s.commands.has(id)
		if allowed != made.commands.has(id) {
			sign := "-"
			if allowed {
				sign = "+"
			}
			rules = append(rules, sign+cmd.Name)
			made.setCommand(id, allowed)
		}
		if !allowed {
			for _, arg := range s.firstArgs[id] {
				rules = append(rules, "+"+cmd.Name+"|"+arg)
			}
		}
	}
	return rules
}
