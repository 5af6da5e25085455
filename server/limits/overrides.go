package limits

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/store"
)

// An override is a string beside a key (companion_keys.go) that holds the canonical text of what stands there in place of the policy's own words.

// exceptions are whether single keys of a policy have something beside them that a decision has to look at.
type exceptions struct {
	version   uint64 // of the database's reserved keys that the rest was found out about, see store.DB.ReservedVersion
	overrides bool   // some keys have overrides
	blocks    bool   // some keys may be blocked
	blockable bool   // one of these, or the policy itself says more than its limit

	parsed map[string]*limiter.Policy // by their text: what overrides stand for, nil for those that cannot be read
}

// maxParsed is how many texts of overrides are remembered for a policy.
const maxParsed = 1024

// newKnown returns a policy by its name.
func newKnown(name string, p *limiter.Policy, counts *CountedPolicy) *KnownPolicy {
	known := &KnownPolicy{Policy: p, Name: name, counts: counts}
	known.note(nil)
	return known
}

// has reports whether the policy is more than its limit for keys of the database: it says so itself, or some of its keys have overrides or blocks. For one
// that is not that costs a comparison.
func (k *KnownPolicy) has(db *store.DB) bool {
	if k.except.version != db.ReservedVersion() {
		k.note(db)
	}
	return k.except.blockable
}

// note finds out which exceptions there are in a database; nil stands for one without any.
func (k *KnownPolicy) note(db *store.DB) {
	e := &k.except
	e.version, e.overrides, e.blocks = 0, false, k.Block.Length > 0
	if db != nil {
		e.version = db.ReservedVersion()
		e.overrides = db.Reserved([]byte(OverridePrefix+k.Name)) > 0
		e.blocks = e.blocks || db.Reserved([]byte(BlockPrefix+k.Name)) > 0
	}
	e.blockable = e.overrides || e.blocks || k.Shadow
}

// override returns the policy that holds for one key: known's own, or what stands there in its place.
func (l *Limits) override(c *command.Ctx, known *KnownPolicy, key []byte) *limiter.Policy {
	if !known.except.overrides {
		return known.Policy
	}
	e, exists := c.DB.Find(l.beside(OverridePrefix, known.Name, key), c.Now)
	if !exists || e.Kind() != store.KindString {
		return known.Policy
	}
	text := e.Bytes(l.digits[:])
	if len(text) > limiter.MaxText { // it is not even to be remembered
		return known.Policy
	}
	p, found := known.except.parsed[string(text)]
	if !found {
		p = l.parseOverride(known, string(text))
		if known.except.parsed == nil || len(known.except.parsed) >= maxParsed {
			known.except.parsed = map[string]*limiter.Policy{}
		}
		known.except.parsed[string(text)] = p
	}
	if p == nil {
		return known.Policy
	}
	return p
}

// parseOverride reads what an override holds, or returns nil: then it counts as absent.
func (l *Limits) parseOverride(known *KnownPolicy, text string) *limiter.Policy {
	words, _, err := l.overrideOf(known, limiter.Words(text))
	if err != nil {
		l.Logger.Warn("an override cannot be read and counts as absent", "policy", known.Name, "text", limiter.Shown(text), "err", err)
		return nil
	}
	p := known.Instead(words)
	return &p
}

// overrideCall is what stands before an override's words in the errors for them.
const overrideCall = "RL.POLICY OVERRIDE SET policy key "

// errOverride is the error for an override of another algorithm.
const errOverride = "ERR an override must be of the policy's algorithm, %s, or UNLIMITED"

// overrideOf reads the words of an override, where the name of the policy's algorithm may be left out, and returns their canonical text.
func (l *Limits) overrideOf(known *KnownPolicy, words [][]byte) (p limiter.Policy, text string, err error) {
	own := known.Algorithm
	if p, text, err = l.Algorithms.ParseText(l.withName(own, words)); err != nil {
		return p, "", limiter.Error(strings.Replace(err.Error(), limiter.PolicyCall, overrideCall, 1))
	}
	if p.Algorithm != own && p.Algorithm != l.unlimited.Algorithm {
		return p, "", limiter.Error(fmt.Sprintf(errOverride, own.Name))
	}
	return p, text, nil
}

// withName puts an algorithm's name before the words of an override that has none.
func (l *Limits) withName(own *limiter.Algorithm, words [][]byte) [][]byte {
	if len(words) > 0 && l.Algorithms.Find(string(words[0])) == nil {
		return append([][]byte{[]byte(own.Name)}, words...)
	}
	return words
}

// What RL.POLICY OVERRIDE is called with, in the order of the arguments: the action, the policy, the key.
const (
	overrideAction = 2 + iota
	overridePolicy
	overrideKey
	overrideWords // and what else there is
)

// overrideCommand is the sub-command of RL.POLICY for the words of single keys.
func (l *Limits) overrideCommand() *command.Command {
	policy, key := command.Str("policy").Fails(ErrNoPolicy).Means("the name of a policy"), command.Key("key").Means("the key as calls name it together with the policy")
	return &command.Command{
		Name: "override", Since: "headgate 0.1.0", Complexity: "O(1); LIST: O(n) in the number of keys that it looks at",
		Summary: "Set, show, delete or list overrides of a policy: other arguments of the same algorithm for one key, or no limit (UNLIMITED).",
		Arity:   -4, Flags: command.Write | command.Admin,
		Keys: []command.KeySpec{{Access: "RW ACCESS UPDATE", Begin: overrideKey, Step: 1, Other: overriddenKeys}},
		Args: []command.Arg{command.OneOf("action",
			command.Block("set", command.Tok("SET"), policy, key, command.Str("words").Multi().Means("the limit as RL.POLICY SET takes it, with or without the algorithm's name; or UNLIMITED"), command.Integer("seconds").After("EX").Opt().Means("end the override after this many seconds, from 1 to 3155760000")),
			command.Block("get", command.Tok("GET"), policy, key),
			command.Block("del", command.Tok("DEL"), policy, key),
			command.Block("list", command.Tok("LIST"), policy, command.Str("cursor").After("CURSOR").Opt().Means("where to continue: 0, or the cursor that the previous call has returned"), command.Integer("n").After("COUNT").Opt().Means("how many keys of the database to look at, from 1 to 100000; 1000 by default")),
		)},
		Errors: []string{command.ErrUsage, errOverride, command.ErrInvalidCursor, limiter.InvalidCount, command.ErrNotInteger, "ERR invalid expire time in 'rl.policy|override' command"},
		Reply:  command.ReplySimple | command.ReplyInteger | command.ReplyBulk | command.ReplyNull | command.ReplyArray, Returns: []string{
			"SET: OK", "GET: the arguments of the override; null if there is none", "DEL: 1 if there was an override, else 0",
			"LIST: the cursor to continue with, 0 at the end, and an array of keys, each followed by its override",
		}, Handler: l.either(l.overrideOrShow, l.refuseElsewhere),
	}
}

// overriddenKeys finds the key of RL.POLICY OVERRIDE, which LIST has not.
func overriddenKeys(indexes []int, args [][]byte) []int {
	if len(args) > overrideKey && !isList(args[overrideAction]) {
		return append(indexes, overrideKey)
	}
	return indexes
}

// overrideOrShow implements RL.POLICY OVERRIDE.
func (l *Limits) overrideOrShow(c *command.Ctx) {
	known, n := (*KnownPolicy)(nil), len(c.Args)
	list := isList(c.Args[overrideAction])
	switch {
	case list:
	case c.Is(overrideAction, "SET") && n > overrideWords:
	case (c.Is(overrideAction, "GET") || c.Is(overrideAction, "DEL")) && n == overrideWords:
	default:
		c.ErrUsage()
		return
	}
	known, ok := l.existing(c, c.Args[overridePolicy])
	switch {
	case !ok:
	case list:
		l.listOverrides(c, known)
	case c.Is(overrideAction, "SET"):
		l.setOverride(c, known)
	case c.Is(overrideAction, "GET"):
		l.getOverride(c, known)
	default:
		l.deleteOverride(c, known)
	}
}

// maxOverrideSeconds is the longest time after which an override ends by itself: 100 years, as durations.
const maxOverrideSeconds = 36525 * 24 * 60 * 60

func isList(word []byte) bool { return ascii.EqualFold(word, "LIST") }

// setOverride implements RL.POLICY OVERRIDE SET policy key words… [EX seconds].
func (l *Limits) setOverride(c *command.Ctx, known *KnownPolicy) {
	words, expireAt := c.Args[overrideWords:], int64(0)
	if n := len(words); n > 2 && c.Is(len(c.Args)-2, "EX") {
		seconds, ok := c.Integer(len(c.Args) - 1)
		if !ok {
			return
		}
		if seconds <= 0 || seconds > maxOverrideSeconds {
			c.ErrExpire()
			return
		}
		words, expireAt = words[:n-2], c.Now+seconds*1000
	}
	p, text, err := l.overrideOf(known, words)
	if err == nil {
		l.watchUnits(c, p.PolicyDurations(l.withName(known.Algorithm, words))...)
	}
	if err == nil && lacksRoom(c, 1) {
		err = limiter.Error(command.ErrOOM)
	}
	if err == nil {
		err = l.keepBeside(c, l.beside(OverridePrefix, known.Name, c.Args[overrideKey]), []byte(text), expireAt, known.Policy)
	}
	if err != nil {
		errLimiter(c, err)
		return
	}
	l.exceptionsChanged()
	c.OK()
}

// getOverride implements RL.POLICY OVERRIDE GET policy key.
func (l *Limits) getOverride(c *command.Ctx, known *KnownPolicy) {
	e, exists := c.DB.Find(l.beside(OverridePrefix, known.Name, c.Args[overrideKey]), c.Now)
	if text, ok := l.overrideText(known, &e, exists); ok {
		c.Reply.BulkString(text)
	} else {
		c.Reply.Null()
	}
}

// overrideText is the canonical text of an override, or ok false for what counts as none.
func (l *Limits) overrideText(known *KnownPolicy, e *store.Entry, exists bool) (text string, ok bool) {
	if !exists || e.Kind() != store.KindString {
		return "", false
	}
	_, text, err := l.overrideOf(known, limiter.Words(string(e.Bytes(nil))))
	return text, err == nil
}

// deleteOverride implements RL.POLICY OVERRIDE DEL policy key.
func (l *Limits) deleteOverride(c *command.Ctx, known *KnownPolicy) {
	k := l.beside(OverridePrefix, known.Name, c.Args[overrideKey])
	e, exists := c.DB.Find(k, c.Now)
	if exists {
		c.DeleteKey(k, &e)
		l.exceptionsChanged()
	}
	c.Reply.Int(oneIf(exists))
}

const (
	defaultOverrides = 1000   // keys of the database that one LIST looks at, unless COUNT says otherwise,
	maxOverrides     = 100000 // and at most
)

// listOverrides implements RL.POLICY OVERRIDE LIST policy [CURSOR n] [COUNT n], which goes on as SCAN does: a call looks at some of the database's keys, and
// the cursor 0 stands for the beginning and for the end.
func (l *Limits) listOverrides(c *command.Ctx, known *KnownPolicy) {
	cursor, count, ok := listArgs(c)
	if !ok {
		return
	}
	found := map[string]string{}
	if c.DB.Reserved([]byte(OverridePrefix+known.Name)) > 0 {
		call, user := c.ACLCall(c.Cmd, c.Args), c.Client.User
		cursor = c.DB.Scan(cursor, c.Now, count, func(e *store.Entry) {
			policy, key, ok := besideOf(OverridePrefix, e.Name())
			if !ok || policy != known.Name || c.Client.Guarded && !user.MayWithKey(call, key, acl.ReadKey) {
				return
			}
			if text, ok := l.overrideText(known, e, true); ok {
				found[string(key)] = text
			}
		})
	} else {
		cursor = 0
	}
	c.Reply.Array(2)
	c.Reply.BulkString(strconv.FormatUint(cursor, 10))
	c.Reply.Array(2 * len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		c.Reply.BulkString(key)
		c.Reply.BulkString(found[key])
	}
}

// listArgs reads what stands behind the policy of LIST, or sends the error and returns false.
func listArgs(c *command.Ctx) (cursor uint64, count int, ok bool) {
	count = defaultOverrides
	hasCursor, hasCount := false, false
	for i := overridePolicy + 1; i < len(c.Args); i += 2 {
		switch {
		case i+1 == len(c.Args):
			c.ErrUsage()
			return 0, 0, false
		case !hasCursor && c.Is(i, "CURSOR"):
			hasCursor = true
			var err error
			if cursor, err = strconv.ParseUint(string(limiter.Shown(c.Args[i+1])), 10, 64); err != nil {
				c.Err(command.ErrInvalidCursor)
				return 0, 0, false
			}
		case !hasCount && c.Is(i, "COUNT"):
			hasCount = true
			n, ok := number.ParseInt(c.Args[i+1])
			if !ok || n < 1 {
				errLimiter(c, limiter.Quoting(limiter.InvalidCount, c.Args[i+1]))
				return 0, 0, false
			}
			count = int(min(n, maxOverrides))
		default:
			c.ErrUsage()
			return 0, 0, false
		}
	}
	return cursor, count, true
}

// NotServed is the error for a command or a word that no gateway serves, whatever its upstream is.
func NotServed(what string) string { return "ERR '" + what + "' is not served while upstream is set" }

// NotServedByRedis is the error for a command or a word that a gateway serves only before a headgate.
func NotServedByRedis(what string) string {
	return "ERR '" + what + "' is not served while the upstream is a Redis"
}
