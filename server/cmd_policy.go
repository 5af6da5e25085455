package server

import (
	"maps"
	"slices"

	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/store"
)

// policyCommand is for limits under a name.
func policyCommand(l *Limits) *Command {
	return &Command{
		Name: "rl.policy", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "depends on the sub-command",
		Summary: "Look after the limits that have a name.",
		Arity:   -2,
		Sub: []*Command{
			{
				Name: "del", Since: "headgate 0.1.0", Complexity: "O(1)",
				Summary: "Forget a policy; the state of keys that it limited stays.",
				Arity:   3, Flags: Write | Admin | Fast,
				Args: []Arg{str("name")}, Errors: []string{errFixedPolicy, errWrongType},
				Reply: ReplyInteger, Handler: l.deletePolicy,
			},
			{
				Name: "get", Since: "headgate 0.1.0", Complexity: "O(1)",
				Summary: "Return what a policy says.",
				Arity:   3, Flags: ReadOnly | Fast,
				Args: []Arg{str("name")}, Errors: []string{errWrongType},
				Reply: ReplyBulk | ReplyNull, Handler: l.getPolicy,
			},
			helpCommand("headgate 0.1.0"),
			{
				Name: "list", Since: "headgate 0.1.0", Complexity: "O(n log n) in the number of policies",
				Summary: "Return the names of all policies, in order, each with what it says.",
				Arity:   2, Flags: ReadOnly,
				Errors: []string{errWrongType},
				Reply:  ReplyArray, Handler: l.listPolicies,
			},
			{
				Name: "set", Since: "headgate 0.1.0", Complexity: "O(1)",
				Summary: "Keep a limit under a name, or change it: it holds from the next decision on, and all keys keep their state.",
				Arity:   -4, Flags: Write | DenyOOM | Admin | Fast,
				Args: []Arg{
					str("name").fails(string(limiter.ErrName)), str("algorithm").fails("ERR unknown algorithm '%s'"), str("arg").opt().multi(),
				},
				Errors: slices.Concat([]string{errFixedPolicy, errUsage}, l.policyErrors(), []string{errTooManyPolicies, errWrongType}),
				Reply:  ReplySimple, Handler: l.setPolicy,
			},
		},
	}
}

// policyErrors are those of the words of policies, in the order of the algorithms and of the checks.
func (l *Limits) policyErrors() (texts []string) {
	add := func(text string) {
		if text != "" && text != errUsage && text != errWrongType && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	var addArguments func(args []limiter.Arg)
	addArguments = func(args []limiter.Arg) {
		for _, arg := range args {
			add(arg.Error)
			addArguments(arg.Args)
		}
	}
	for _, a := range l.algorithms.All() {
		if a.CommandOnly {
			continue
		}
		addArguments(a.Args)
		for _, text := range errorsOf(a.Errors...) {
			if text != string(a.Costs) {
				add(text)
			}
		}
	}
	return texts
}

// Errors of policies.
const (
	errFixedPolicy     = "ERR policy '%s' is fixed by the configuration file"
	errNoPolicy        = "ERR no such policy '%s'"
	errTooManyPolicies = "ERR too many policies"
)

const (
	// policiesKey is the hash of database 0 that holds the policies: name -> text.
	policiesKey = "rl:policies"
	// maxPolicies is how many policies RL.POLICY SET keeps, and how many names are remembered with what they stand for.
	maxPolicies = 10_000
)

// policies finds limits by their names without parsing them at each call.
type policies struct {
	fixed   map[string]*knownPolicy // of the configuration
	parsed  map[string]*knownPolicy // of the hash; nil for a name that it has not, or that does not parse; only names that a policy may have
	changes uint64                  // of the hash, when parsed was begun
	counts  policyCounts
}

// apply takes the policies of a configuration into use.
func (p *policies) apply(cfg *config.Config) {
	p.fixed = make(map[string]*knownPolicy, len(cfg.Policies))
	for i := range cfg.Policies {
		named := &cfg.Policies[i]
		p.fixed[named.Name] = &knownPolicy{Policy: &named.Policy, text: named.Text, counts: p.counts.of(named.Name)}
	}
}

// policy returns the limit of a name, or nil.
func (l *Limits) policy(c *Ctx, name []byte) (p *knownPolicy, err error) {
	known := &l.policies
	if fixed := known.fixed[string(name)]; fixed != nil {
		return fixed, nil
	}
	if changes := c.core.keys.DB(0).FollowedChanges(); changes != known.changes || known.parsed == nil || len(known.parsed) > maxPolicies {
		known.changes, known.parsed = changes, make(map[string]*knownPolicy)
	}
	if p, found := known.parsed[string(name)]; found {
		return p, nil
	}
	if limiter.CheckName(name) != nil {
		return nil, nil // strangers choose such a name, as long as they like: it is not looked up and not remembered
	}
	h, err := c.policiesHash()
	if err != nil {
		return nil, err
	}
	if text, found := h.Get(name); found {
		parsed, _, err := l.algorithms.ParseText(limiter.Words(string(text)))
		if err == nil {
			p = &knownPolicy{Policy: &parsed, counts: known.counts.of(string(name))}
		} else {
			c.core.log.Warn("a policy cannot be read and counts as absent", "policy", string(name), "text", string(text), "err", err)
		}
	}
	known.parsed[string(name)] = p
	return p, nil
}

// policiesHash opens the hash of policies, whatever the client's database.
func (c *Ctx) policiesHash() (store.Hash, error) {
	return c.core.keys.DB(0).HashCreate(c.core.keys.Key([]byte(policiesKey)), c.now)
}

// policyEffect declares an effect on the hash of policies.
func (c *Ctx) policyEffect(args ...any) {
	db := c.db
	c.db = c.core.keys.DB(0)
	c.effect(args...)
	c.db = db
}

// changeablePolicy opens the hash for a change of the policy at args[2], or sends the error and returns false.
func (l *Limits) changeablePolicy(c *Ctx) (h store.Hash, ok bool) {
	if l.policies.fixed[string(c.args[2])] != nil {
		c.errf(errFixedPolicy, c.args[2])
		return h, false
	}
	h, err := c.policiesHash()
	if err != nil {
		c.fail(err)
		return h, false
	}
	return h, true
}

// setPolicy implements RL.POLICY SET name ALGORITHM args….
func (l *Limits) setPolicy(c *Ctx) {
	name := c.args[2]
	if err := limiter.CheckName(name); err != nil {
		c.errLimiter(err)
		return
	}
	_, text, err := l.algorithms.ParseText(c.args[3:])
	if err != nil {
		c.errLimiter(err)
		return
	}
	h, ok := l.changeablePolicy(c)
	if !ok {
		return
	}
	if _, found := h.Get(name); !found && h.Len() >= maxPolicies {
		c.err(errTooManyPolicies)
		return
	}
	h.Set(name, []byte(text))
	c.policyEffect("HSET", policiesKey, name, text)
	c.notifyIn(c.core.keys.DB(0), config.EventHash, "hset", []byte(policiesKey))
	c.ok()
}

func (l *Limits) deletePolicy(c *Ctx) {
	h, ok := l.changeablePolicy(c)
	switch {
	case !ok:
	case h.Delete(c.args[2]):
		c.policyEffect("HDEL", policiesKey, c.args[2])
		c.notifyIn(c.core.keys.DB(0), config.EventHash, "hdel", []byte(policiesKey))
		c.reply.One()
	default:
		c.reply.Zero()
	}
}

func (l *Limits) getPolicy(c *Ctx) {
	if fixed := l.policies.fixed[string(c.args[2])]; fixed != nil {
		c.reply.BulkString(fixed.text)
		return
	}
	h, err := c.policiesHash()
	if err != nil {
		c.fail(err)
		return
	}
	if kept, found := h.Get(c.args[2]); found {
		if _, text, err := l.algorithms.ParseText(limiter.Words(string(kept))); err == nil {
			c.reply.BulkString(text)
			return
		}
	}
	c.reply.Null()
}

func (l *Limits) listPolicies(c *Ctx) {
	h, err := c.policiesHash()
	if err != nil {
		c.fail(err)
		return
	}
	texts := make(map[string]string)
	h.Each(func(name, kept []byte) bool {
		if _, text, err := l.algorithms.ParseText(limiter.Words(string(kept))); err == nil {
			texts[string(name)] = text
		}
		return true
	})
	for name, fixed := range l.policies.fixed {
		texts[name] = fixed.text
	}
	c.reply.Array(2 * len(texts))
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		c.reply.BulkString(name)
		c.reply.BulkString(texts[name])
	}
}

// errUnknownPolicy sends the error for a policy that does not exist.
func (c *Ctx) errUnknownPolicy(name []byte) { c.errf(errNoPolicy, limiter.Shown(name)) }

// namedOrWritten is the limit of a name, or one that is written out.
func (l *Limits) namedOrWritten(c *Ctx, limit string) (*limiter.Policy, error) {
	known, err := l.policy(c, []byte(limit))
	switch {
	case err != nil:
		return nil, err
	case known != nil:
		return known.Policy, nil
	}
	p, _, err := l.algorithms.ParseText(limiter.Words(limit))
	if err != nil {
		return nil, err
	}
	return &p, nil
}
