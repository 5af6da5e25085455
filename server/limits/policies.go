package limits

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/store"
)

// policyCommand is for limits under a name.
func policyCommand(l *Limits) *command.Command {
	return &command.Command{
		Name: "rl.policy", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "depends on the sub-command",
		Summary: "Look after the limits that have a name.",
		Arity:   -2,
		Sub: []*command.Command{
			{
				Name: "del", Since: "headgate 0.1.0", Complexity: "O(1)",
				Summary: "Delete a policy; the state of the keys that it limited is kept.",
				Arity:   3, Flags: command.Write | command.Admin | command.Fast,
				Args: []command.Arg{policyNameArg}, Errors: []string{errFixedPolicy, command.ErrWrongType},
				Reply: command.ReplyInteger, Returns: []string{"1 if the policy was deleted, 0 if there was none"}, Handler: l.either(l.deletePolicy, l.deletePolicyElsewhere),
			},
			{
				Name: "get", Since: "headgate 0.1.0", Complexity: "O(1)",
				Summary: "Return a policy.",
				Arity:   3, Flags: command.ReadOnly | command.Fast,
				Args: []command.Arg{policyNameArg}, Errors: []string{command.ErrWrongType},
				Reply: command.ReplyBulk | command.ReplyNull, Returns: []string{"the arguments of the policy, with units; null if there is no such policy"}, Handler: l.showPolicies(l.getPolicy),
			},
			command.HelpCommand("headgate 0.1.0"),
			{
				Name: "list", Since: "headgate 0.1.0", Complexity: "O(n log n) in the number of policies",
				Summary: "Return all policies, sorted by name.",
				Arity:   2, Flags: command.ReadOnly,
				Errors: []string{command.ErrWrongType},
				Reply:  command.ReplyArray, Returns: []string{"the names of the policies, each followed by its arguments"}, Handler: l.showPolicies(l.listPolicies),
			},
			l.overrideCommand(),
			{
				Name: "set", Since: "headgate 0.1.0", Complexity: "O(1)",
				Summary: "Create or change a named limit. It applies from the next call on, and keys keep their state.",
				Arity:   -4, Flags: command.Write | command.DenyOOM | command.Admin | command.Fast,
				Args:   append([]command.Arg{policyNameArg.Fails(string(limiter.ErrName))}, l.policyArgs()...),
				Errors: slices.Concat([]string{errFixedPolicy}, l.policyErrors(), []string{errTooManyPolicies, command.ErrWrongType}),
				Reply:  command.ReplySimple, Returns: []string{"OK"}, Handler: l.either(l.setPolicy, l.setPolicyElsewhere),
			},
		},
	}
}

var policyNameArg = command.Str("name").Means("the policy's name: 1 to 64 letters, digits and `_ . : -`")

// policyArgs are the words of policies. Their errors are policyErrors.
func (l *Limits) policyArgs() []command.Arg {
	var each []command.Arg
	for _, a := range l.Algorithms.All() {
		if !a.CommandOnly {
			words := append([]command.Arg{command.Tok(a.Name)}, argsOf(a.PolicyArgs())...)
			each = append(each, command.Block(strings.ToLower(a.Name), withoutErrors(words)...))
		}
	}
	return append([]command.Arg{command.OneOf("algorithm", each...).
		Means("the limit, as the arguments of that command after its key: `GCRA 10 5 1s` limits as `RL.GCRA key 10 5 1s` does. `UNLIMITED` limits no call")}, argsOf(limiter.ClauseArgs())...)
}

// withoutErrors takes the errors out of arguments.
func withoutErrors(args []command.Arg) []command.Arg {
	for i := range args {
		args[i].Error = ""
		withoutErrors(args[i].Args)
	}
	return args
}

// policyErrors are those of the words of policies, in the order of the algorithms and of the checks.
func (l *Limits) policyErrors() (texts []string) {
	texts = append(texts, l.Algorithms.UnknownAlgorithm())
	for _, a := range l.Algorithms.All() {
		if !a.CommandOnly {
			texts = append(texts, string(a.PolicySyntaxError()))
		}
	}
	add := func(text string) {
		if text != "" && text != command.ErrUsage && !slices.Contains(texts, text) {
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
	for _, a := range l.Algorithms.All() {
		if a.CommandOnly {
			continue
		}
		addArguments(a.Args)
		for _, text := range errorsOf(a.PolicyErrors()...) {
			add(text)
		}
	}
	addArguments(limiter.ClauseArgs())
	for _, err := range limiter.ClauseErrors() {
		add(string(err))
	}
	return texts
}

// Errors of policies.
const (
	errFixedPolicy     = "ERR policy '%s' is fixed by the configuration file"
	ErrNoPolicy        = "ERR no such policy '%s'"
	errTooManyPolicies = "ERR too many policies"
)

const (
	// PoliciesKey is the hash of database 0 that holds the policies: name -> text.
	PoliciesKey = "rl:policies"
	// maxPolicies is how many policies RL.POLICY SET keeps, and how many names are remembered with what they stand for.
	maxPolicies = 10_000
)

// Policies finds limits by their names without parsing them at each call.
type Policies struct {
	Fixed   map[string]*KnownPolicy // of the configuration
	Parsed  map[string]*KnownPolicy // of the hash; nil for a name that it has not, or that does not parse; only names that a policy may have
	changes uint64                  // of the hash, when Parsed was begun
	written map[string]*KnownPolicy // of what calls write out
	Counts  PolicyCounts

	writtenNames int // that are counted because calls that write policies out have brought them

	blocked      lastBlocked
	BlocksFailed uint64 // that could not be kept
}

// apply takes the policies of a configuration into use.
func (p *Policies) apply(cfg *config.Config) {
	p.Fixed = make(map[string]*KnownPolicy, len(cfg.Policies))
	for i := range cfg.Policies {
		named := &cfg.Policies[i]
		known := newKnown(named.Name, &named.Policy, p.Counts.Of(named.Name))
		known.Text = named.Text
		p.Fixed[named.Name] = known
	}
}

// policy returns the limit of a name, or nil.
func (l *Limits) policy(c *command.Ctx, name []byte) (p *KnownPolicy, err error) {
	known := &l.Policies
	if fixed := known.Fixed[string(name)]; fixed != nil {
		return fixed, nil
	}
	if changes := c.Core.Keys.DB(0).FollowedChanges(); changes != known.changes || known.Parsed == nil || len(known.Parsed) > maxPolicies {
		known.changes, known.Parsed = changes, make(map[string]*KnownPolicy)
	}
	if p, found := known.Parsed[string(name)]; found {
		return p, nil
	}
	if limiter.CheckName(name) != nil {
		return l.writtenPolicy(c, name)
	}
	h, err := policiesHash(c)
	if err != nil {
		return nil, err
	}
	if text, found := h.Get(name); found {
		parsed, _, err := l.Algorithms.ParseText(limiter.Words(string(text)))
		if err == nil {
			p = newKnown(string(name), &parsed, known.Counts.Of(string(name)))
		} else {
			c.Core.Logger.Warn("a policy cannot be read and counts as absent", "policy", string(name), "text", string(limiter.Shown(text)), "err", err)
		}
	}
	known.Parsed[string(name)] = p
	return p, nil
}

// HasPolicy reports whether there is a policy of the name. The caller holds the executor's lock.
func (l *Limits) HasPolicy(name string, now int64) bool {
	if l.Policies.Fixed[name] != nil {
		return true
	}
	h, found, err := l.Keys.DB(0).Hash(l.Keys.Key([]byte(PoliciesKey)), now)
	if err != nil || !found {
		return false
	}
	_, found = h.Get([]byte(name))
	return found
}

// policiesHash opens the hash of policies, whatever the client's database.
func policiesHash(c *command.Ctx) (store.Hash, error) {
	return c.Core.Keys.DB(0).HashCreate(c.Core.Keys.Key([]byte(PoliciesKey)), c.Now)
}

// policyEffect declares an effect on the hash of policies.
func policyEffect(c *command.Ctx, args ...any) {
	db := c.DB
	c.DB = c.Core.Keys.DB(0)
	c.Effect(args...)
	c.DB = db
}

// changeablePolicy opens the hash for a change of the policy at args[2], or sends the error and returns false.
func (l *Limits) changeablePolicy(c *command.Ctx) (h store.Hash, ok bool) {
	if l.Policies.Fixed[string(c.Args[2])] != nil {
		c.Errf(errFixedPolicy, c.Args[2])
		return h, false
	}
	h, err := policiesHash(c)
	if err != nil {
		c.Fail(err)
		return h, false
	}
	return h, true
}

// setPolicy implements RL.POLICY SET name ALGORITHM args….
func (l *Limits) setPolicy(c *command.Ctx) {
	name := c.Args[2]
	_, text, ok := l.policyText(c)
	if !ok {
		return
	}
	h, ok := l.changeablePolicy(c)
	if !ok {
		return
	}
	if _, found := h.Get(name); !found && h.Len() >= maxPolicies {
		c.Err(errTooManyPolicies)
		return
	}
	h.Set(name, []byte(text))
	policyEffect(c, "HSET", PoliciesKey, name, text)
	c.NotifyIn(c.Core.Keys.DB(0), config.EventHash, "hset", []byte(PoliciesKey))
	c.OK()
}

// policyText reads the name and the words of RL.POLICY SET, or sends the error and returns false.
func (l *Limits) policyText(c *command.Ctx) (p limiter.Policy, text string, ok bool) {
	words := c.Args[3:]
	if len(words) == 1 && len(words[0]) <= limiter.MaxText { // in quotes, as RL.TAKE takes a limit
		words = limiter.Words(string(words[0]))
	}
	err := limiter.CheckName(c.Args[2])
	if err == nil {
		p, text, err = l.Algorithms.ParseText(words)
	}
	if err != nil {
		errLimiter(c, err)
		return p, "", false
	}
	l.watchUnits(c, p.PolicyDurations(words)...)
	return p, text, true
}

func (l *Limits) deletePolicy(c *command.Ctx) {
	h, ok := l.changeablePolicy(c)
	switch {
	case !ok:
	case h.Delete(c.Args[2]):
		policyEffect(c, "HDEL", PoliciesKey, c.Args[2])
		c.NotifyIn(c.Core.Keys.DB(0), config.EventHash, "hdel", []byte(PoliciesKey))
		c.Reply.One()
	default:
		c.Reply.Zero()
	}
}

func (l *Limits) getPolicy(c *command.Ctx) {
	if fixed := l.Policies.Fixed[string(c.Args[2])]; fixed != nil {
		c.Reply.BulkString(fixed.Text)
		return
	}
	h, err := policiesHash(c)
	if err != nil {
		c.Fail(err)
		return
	}
	if kept, found := h.Get(c.Args[2]); found {
		if _, text, err := l.Algorithms.ParseText(limiter.Words(string(kept))); err == nil {
			c.Reply.BulkString(text)
			return
		}
	}
	c.Reply.Null()
}

func (l *Limits) listPolicies(c *command.Ctx) {
	h, err := policiesHash(c)
	if err != nil {
		c.Fail(err)
		return
	}
	texts := make(map[string]string)
	h.Each(func(name, kept []byte) bool {
		if _, text, err := l.Algorithms.ParseText(limiter.Words(string(kept))); err == nil {
			texts[string(name)] = text
		}
		return true
	})
	for name, fixed := range l.Policies.Fixed {
		texts[name] = fixed.Text
	}
	c.Reply.Array(2 * len(texts))
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		c.Reply.BulkString(name)
		c.Reply.BulkString(texts[name])
	}
}

// errUnknownPolicy sends the error for a policy that does not exist.
func errUnknownPolicy(c *command.Ctx, name []byte) { c.Errf(ErrNoPolicy, limiter.Shown(name)) }

// NamedOrWritten is the limit of a name, or one that is written out.
func (l *Limits) NamedOrWritten(c *command.Ctx, limit string) (*limiter.Policy, error) {
	known, err := l.policy(c, []byte(limit))
	switch {
	case err != nil:
		return nil, err
	case known != nil:
		return known.Policy, nil
	}
	words := limiter.Words(limit)
	if len(words) == 1 && l.Algorithms.Find(limit) == nil {
		return nil, limiter.Error(fmt.Sprintf(ErrNoPolicy, limiter.Shown(words[0])))
	}
	p, _, err := l.Algorithms.ParseWritten(words)
	if err != nil {
		return nil, err
	}
	return &p, nil
}
