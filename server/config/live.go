package config

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"headgate/internal/glob"
	"headgate/internal/quoting"
)

// Live is the configuration of a running server: an immutable [Config] that is replaced as a whole. Safe for concurrent use; Get
// takes no lock.
type Live struct {
	current atomic.Pointer[Config]

	mu       sync.Mutex // serialises changes; held while hooks run
	src      *sources
	started  *Config         // what the server was started with
	base     *Config         // what the sources last gave, without what CONFIG SET has changed since
	fromFile *Config         // what the file alone last gave
	named    map[string]bool // what the file last set, when it was read or written
	ordered  map[string]bool // directives that commands of their own have changed: a value is theirs even if it is what the server was started with
	hooks    []hook
	room     func(*Config) int // for how many clients there is room; nil: for any number
}

// hook is a function that takes a change into use.
type hook struct {
	apply func(old, new *Config) error
	names []string // of the directives it is for; none = all
}

func newLive(src *sources, l *loader) *Live {
	src.host = src.host.running()
	live := &Live{src: src, started: l.config, base: l.config, fromFile: l.fromFile, named: l.named}
	live.current.Store(l.config)
	return live
}

// NewLive returns a Live over c, without a configuration file: what Reload reads again is c. It must not change any more.
func NewLive(c *Config) *Live {
	live := &Live{src: &sources{host: OSHost(), cwd: c.Dir, start: c}, started: c, base: c}
	live.current.Store(c)
	return live
}

// Get returns the configuration of this moment.
func (l *Live) Get() *Config { return l.current.Load() }

// foreignSecrets are directives of Redis whose values are secrets although they mean nothing here.
var foreignSecrets = []string{"sentinel-pass", "tls-client-key-file-pass", "tls-key-file-pass"}

// IsSecret reports whether a directive's value is to be shown to nobody, under any of its names and in any case.
func (l *Live) IsSecret(name string) bool {
	name = strings.ToLower(name)
	d := byName[name]
	return d != nil && d.Secret || slices.Contains(foreignSecrets, name)
}

// Path returns the absolute path of the configuration file, or "" if there is none.
func (l *Live) Path() string { return l.src.path }

// OnChange has apply called before each change of one of the named directives, or of any if none is named. Hooks run in the order of
// registration, one change at a time; an error refuses the change, and hooks that have accepted it are called again with old and new
// exchanged. Get still answers old while hooks run. A hook must not call Set, Reload or Rewrite. Panics on an unknown name.
func (l *Live) OnChange(apply func(old, new *Config) error, names ...string) {
	for _, name := range names {
		if byName[name] == nil {
			panic("config: OnChange for unknown directive " + name)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hooks = append(l.hooks, hook{apply: apply, names: names})
}

// Pair is a directive's name and its value as text.
type Pair struct {
	Name, Value string
}

// Match answers CONFIG GET: the directives, each once, that one of the patterns matches, in no particular order. A pattern without *,
// ? or [ is a name, and is answered in the spelling it was asked in; matched names are in lower case. Aliases are directives of their own.
func (l *Live) Match(patterns []string) []Pair {
	c := l.Get()
	var pairs []Pair
	seen := map[string]bool{}
	add := func(d *Directive, name string) {
		if lower := strings.ToLower(name); !seen[lower] {
			seen[lower] = true
			pairs = append(pairs, Pair{Name: name, Value: d.Format(c)})
		}
	}
	for _, pattern := range patterns {
		if !strings.ContainsAny(pattern, globMarks) {
			if d := byName[strings.ToLower(pattern)]; d != nil && !d.Hidden {
				add(d, pattern)
			}
			continue
		}
		for _, d := range directives {
			for _, name := range d.names() {
				if !d.Hidden && glob.Match([]byte(pattern), []byte(name), true) {
					add(d, name)
				}
			}
		}
	}
	return pairs
}

// SetError is why CONFIG SET was refused. Its text is the reply that Redis gives, ERR included. A name that is refused is in it as the
// client wrote it, and may hold any byte; where the value is refused, the name is in lower case.
type SetError struct {
	Argument string // the directive that is to blame
	Reason   string // "" = there is no such directive
}

func (e *SetError) Error() string {
	if e.Reason == "" {
		return "ERR Unknown option or number of arguments for CONFIG SET - '" + e.Argument + "'"
	}
	return "ERR CONFIG SET failed (possibly related to argument '" + e.Argument + "') - " + e.Reason
}

// Set carries out CONFIG SET: all pairs take effect at once, or none does and the error is a *SetError. local tells that the client
// came over a loopback address or a Unix socket, which enable-protected-configs may ask for.
func (l *Live) Set(pairs []Pair, local bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.Get()
	if err := admit(old, pairs, local); err != nil {
		return err
	}
	next := *old
	for _, p := range pairs {
		name := strings.ToLower(p.Name)
		if err := byName[name].apply(&next, []string{p.Value}, false, l.src.host); err != nil {
			return &SetError{name, err.Error()}
		}
	}
	if next.MaxClients != old.MaxClients && l.lowerClients(&next) {
		return &SetError{"maxclients", fmt.Sprintf("The operating system is not able to handle the specified number of clients, try with %d", next.MaxClients)}
	}
	blame, err := l.change(&next)
	if err != nil {
		return &SetError{argumentFor(pairs, blame), err.Error()}
	}
	return nil
}

// admit checks that each pair names another directive, and one that may be set.
func admit(c *Config, pairs []Pair, local bool) error {
	seen := map[string]bool{}
	for _, p := range pairs {
		name := strings.ToLower(p.Name)
		d := byName[name]
		switch {
		case d == nil || d.Hidden:
			return &SetError{Argument: p.Name}
		case !d.Settable:
			return &SetError{p.Name, "can't set immutable config"}
		case d.Guarded && !c.EnableProtectedConfigs.Allows(local):
			return &SetError{p.Name, "can't set protected config"}
		case seen[name]:
			return &SetError{p.Name, "duplicate parameter"}
		}
		seen[name] = true
	}
	return nil
}

// SetUsers has the configuration hold the users of this moment, for [Live.Rewrite].
func (l *Live) SetUsers(users []User) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := *l.Get()
	next.Users = users
	l.order("user", &next)
}

// SetReplicaOf has the configuration name the primary of this moment, for [Live.Rewrite]; the zero Address is none.
func (l *Live) SetReplicaOf(primary Address) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := *l.Get()
	next.ReplicaOf = primary
	l.order("replicaof", &next)
}

// order publishes next, in which a command of its own may have changed one directive. The caller holds the mutex.
func (l *Live) order(name string, next *Config) {
	if d := byName[name]; d.Format(next) != d.Format(l.Get()) {
		if l.ordered == nil {
			l.ordered = make(map[string]bool)
		}
		l.ordered[name] = true
	}
	l.current.Store(next)
}

// LimitClients says for how many clients the machine has room under a configuration. As in Redis, maxclients is lowered to that in what was read, now and
// by [Live.Reload], and [Live.Set] refuses more.
func (l *Live) LimitClients(room func(c *Config) int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room = room
	next, base := *l.Get(), *l.base
	l.lowerClients(&next)
	l.lowerClients(&base)
	l.current.Store(&next)
	l.base = &base
}

// lowerClients lowers maxclients to what there is room for, and reports whether that was less.
func (l *Live) lowerClients(c *Config) (lowered bool) {
	if l.room == nil {
		return false
	}
	asked := c.MaxClients
	c.MaxClients = min(asked, l.room(c))
	return c.MaxClients < asked
}

// argumentFor returns the name under which the client has set the directive to blame.
func argumentFor(pairs []Pair, d *Directive) string {
	for _, p := range pairs {
		if name := strings.ToLower(p.Name); byName[name] == d {
			return name
		}
	}
	return d.Name
}

// change runs the hooks and publishes next. On error it returns one of the directives that the refusing hook is for. The caller
// holds the mutex.
func (l *Live) change(next *Config) (blame *Directive, err error) {
	old := l.Get()
	changed := differing(old, next)
	if len(changed) == 0 {
		return nil, nil
	}
	var accepted []hook
	for _, h := range l.hooks {
		i := slices.IndexFunc(changed, func(d *Directive) bool { return len(h.names) == 0 || h.isFor(d) })
		if i < 0 {
			continue
		}
		if err := h.apply(old, next); err != nil {
			return changed[i], rollBack(err, accepted, old, next)
		}
		accepted = append(accepted, h)
	}
	l.current.Store(next)
	return nil, nil
}

// rollBack has hooks return from a refused configuration to the old one, the last first. It returns why it was refused.
func rollBack(cause error, accepted []hook, old, refused *Config) error {
	for _, h := range slices.Backward(accepted) {
		if err := h.apply(refused, old); err != nil {
			cause = fmt.Errorf("%w, and the old value could not be restored: %w", cause, err)
		}
	}
	return cause
}

func (h hook) isFor(d *Directive) bool {
	return slices.ContainsFunc(d.names(), func(name string) bool { return slices.Contains(h.names, name) })
}

// differing returns the directives whose values in a and b differ, in the order of the table.
func differing(a, b *Config) []*Directive {
	var list []*Directive
	for _, d := range directives {
		if d.Format(a) != d.Format(b) {
			list = append(list, d)
		}
	}
	return list
}

// remember keeps what the sources have given, for the next Reload. The caller holds the mutex.
func (l *Live) remember(fresh *loader) {
	l.base, l.fromFile, l.named = fresh.config, fresh.fromFile, fresh.named
}

// Reload answers SIGHUP: it reads the configuration file again, and sets those directives that it names, or named when it was last read or
// written, or that differ from the last reading, as far as they can change while the server runs; a notice names the others. Environment and flags still win over the file,
// which a notice tells where the file has changed, and what CONFIG SET changed stays unless the file names it. On error nothing has changed.
func (l *Live) Reload() ([]Notice, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh, err := l.src.load()
	if err != nil {
		return nil, err
	}
	l.lowerClients(fresh.config)
	next := *l.Get()
	var notices []Notice
	for _, d := range directives {
		if l.overridden(d, fresh) {
			notices = append(notices, Notice{Where: l.src.path, Text: d.Name + " in the file is overridden by " + fresh.later[d.Name]})
		}
		concerned := fresh.named[d.Name] || l.named[d.Name] || d.Format(fresh.config) != d.Format(l.base)
		if !concerned || d.Format(fresh.config) == d.Format(&next) {
			continue
		}
		if !d.Settable {
			notices = append(notices, Notice{Where: l.src.path, Text: d.Name + " has changed; it takes effect at the next start"})
			continue
		}
		if err := copyValue(d, &next, fresh.config, l.src.host); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	if blame, err := l.change(&next); err != nil {
		return nil, fmt.Errorf("%s: %w", blame.Name, err)
	}
	l.remember(fresh)
	return append(fresh.notices, notices...), nil
}

// overridden reports whether a flag or a variable keeps a directive from what the file says, and that is news: the file has said something else
// so far, or CONFIG SET has done what it says until now.
func (l *Live) overridden(d *Directive, fresh *loader) bool {
	if !fresh.named[d.Name] || fresh.later[d.Name] == "" {
		return false
	}
	inFile, value := d.Format(fresh.fromFile), d.Format(fresh.config)
	if value == inFile || value != d.Format(l.base) { // where flags add to the file's values, a change of these is seen in the sum
		return false
	}
	return inFile != d.Format(l.fromFile) || value != d.Format(l.Get())
}

// copyValue sets one directive in to as it is in from, through the text that the file would have.
func copyValue(d *Directive, to, from *Config, h *Host) error {
	for i, line := range d.kind.lines(from) {
		words, err := quoting.Split(line)
		if err == nil {
			err = d.apply(to, words, i > 0, h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
