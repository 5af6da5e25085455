package limits

import (
	"bytes"
	"math"
	"slices"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/store"
	"headgate/throttle"
)

// A block is a string beside a key (companion_keys.go) that expires. What it holds says what of that time is the block:
//
//	ban   all of it; without a TTL for ever
//	10m   it was 10 minutes long, and ended as long before the key expires: until then the next block is twice as long
//
// Neither is a whole number, so no limiter takes one for its own state.

// banText is what a block holds whose length is not remembered behind its end.
const banText = "ban"

// block is what is kept of a block.
type block struct {
	until    int64 // ms: it holds before that
	last     int64 // ms: its length, for as long as that is remembered; 0: it is not
	expireAt int64 // ms
}

// forEver is the end of a block that has none.
const forEver = math.MaxInt64

// readBlock reads what is kept of a block. It returns ok false for a key of another kind.
func (l *Limits) readBlock(e *store.Entry) (b block, ok bool) {
	if e.Kind() != store.KindString {
		return b, false
	}
	b.expireAt = e.ExpireAt()
	b.until = b.expireAt
	if b.expireAt == 0 {
		b.until = forEver
		return b, true
	}
	text := e.Bytes(l.digits[:])
	if string(text) == banText {
		return b, true
	}
	if length, err := limiter.ParseDuration(text); err == nil {
		b.until, b.last = b.expireAt-length, length
	}
	return b, true
}

// rest is for how long the block still holds, in ms; 0 and below: no longer.
func (b *block) rest(now int64) int64 {
	if b.until == forEver {
		return forEver
	}
	return b.until - now
}

// block finds the block of a pair's key, if there is one that holds or whose length is remembered.
func (l *Limits) block(c *command.Ctx, p *takenPair) (b block, found bool) {
	if !p.blocks {
		return b, false
	}
	e, exists := c.DB.Find(l.beside(BlockPrefix, p.known.Name, p.key.Name), c.Now)
	if !exists {
		return b, false
	}
	return l.readBlock(&e)
}

// longer is the larger of two times after which a call may be made again; NoRetry stands for never.
func longer(retry, rest int64) int64 {
	if retry < 0 || rest == forEver {
		return throttle.NoRetry
	}
	return max(retry, rest)
}

// askBlockable asks the limit of a pair whose policy has blocks, or is in the shadow.
func (l *Limits) askBlockable(c *command.Ctx, p *takenPair) error {
	p.shadowed, p.blocked, p.begins = false, false, 0
	b, found := l.block(c, p)
	if err := l.askLimit(c, p); err != nil {
		return err
	}
	v, cost := &p.verdict, p.request.Call.Cost
	switch rest := b.rest(c.Now); {
	case found && rest > 0 && cost >= 0:
		p.blocked = true
		if err := l.askBlocked(c, p, rest); err != nil {
			return err
		}
	case v.StartsBlock(cost) && p.policy.Block.Length > 0:
		if found && c.Now >= b.expireAt {
			b.last = 0 // it is forgotten from now on
		}
		p.begins, p.retry = p.policy.Block.Next(b.last), v.RetryAfter
		v.RetryAfter = max(v.RetryAfter, p.begins)
	}
	if v.Limited && p.policy.Shadow {
		v.Limited, v.RetryAfter, p.shadowed, p.blocked = false, throttle.NoRetry, true, false
	}
	return nil
}

// askBlocked makes the answer of the limit of a pair that of a block, which holds for so many ms more. Nothing is charged, so what remains is what
// there is.
func (l *Limits) askBlocked(c *command.Ctx, p *takenPair, rest int64) error {
	v := &p.verdict
	if !v.Limited {
		call := p.request.Call
		p.request.Call.Peek, p.request.Call.Cost = true, 0
		err := l.askLimit(c, p)
		if p.request.Call = call; err != nil {
			return err
		}
		v.RetryAfter = 0
	}
	v.Limited, v.RetryAfter, v.ID = true, longer(v.RetryAfter, rest), nil
	return nil
}

// beginBlocks begins the blocks of the pairs that have limited a call which is not asked again: the last step of such a call. A block that cannot be kept
// is left out, and the call is limited without it.
func (l *Limits) beginBlocks(c *command.Ctx, pairs []takenPair) {
	for i := range pairs {
		p := &pairs[i]
		if p.begins == 0 {
			continue
		}
		until := c.Now + p.begins
		text, expireAt := []byte(banText), until
		if p.policy.Block.Max > 0 {
			text, expireAt = limiter.FormatDuration(p.begins), until+p.begins
		}
		err := l.keepBeside(c, l.beside(BlockPrefix, p.known.Name, p.key.Name), text, expireAt, p.policy)
		switch {
		case err == nil && !p.shadowed:
			l.blocked(c, p.known, p.key.Name, until)
			l.blockBegan(c.DB, p.key)
		case err != nil:
			l.Policies.BlocksFailed++
			if !p.shadowed {
				p.verdict.RetryAfter = p.retry
			}
		}
	}
}

// blocked counts a block that has begun.
func (l *Limits) blocked(c *command.Ctx, known *KnownPolicy, key []byte, until int64) {
	known.counts.Blocks++
	l.Policies.blocked.add(known.Name, key, c.DB.Index(), c.Now, until)
}

// blockBegan has those looked at who wait for a key: they may not pass in time any more.
func (l *Limits) blockBegan(db *store.DB, k store.Key) {
	if l.Waits.Now == 0 {
		return
	}
	if q := queueOf(db, k); q != nil {
		q.blocked = true
		l.lookAt(q, 0)
	}
}

// keepBeside has a key beside a limiter's hold a text until a time in ms, or for good if that is 0. It returns why that is not possible, and then changes nothing.
// p is the policy that has it written, or nil.
func (l *Limits) keepBeside(c *command.Ctx, k store.Key, text []byte, expireAt int64, p *limiter.Policy) error {
	change := func() {
		c.DB.SetText(k, text, expireAt)
		if expireAt == 0 {
			c.Effect("SET", k.Name, text)
		} else {
			c.Effect("SET", k.Name, text, "PXAT", expireAt)
		}
		c.Notify(config.EventString, "set", k.Name)
		if expireAt != 0 {
			c.Notify(config.EventGeneric, "expire", k.Name)
		}
	}
	gate := &c.Core.Gate
	switch {
	case !gate.Has(command.GateChanges):
	case gate.Has(command.GateReadOnly) && !c.Client.Primary:
		return limiter.Error(gate.Refusal(command.GateReadOnly))
	case gate.Has(command.GateUnwritable) && !l.Unlogged.allows(c, k, p):
		return limiter.Error(gate.Unwritable())
	case lacksRoom(c, 1) && !there(c, k):
		return limiter.Error(command.ErrOOM)
	case gate.Has(command.GateUnwritable):
		l.Unlogged.keep(c, k, change)
		return nil
	}
	change()
	return nil
}

// there reports whether a key exists.
func there(c *command.Ctx, k store.Key) bool {
	_, exists := c.DB.Look(k, c.Now)
	return exists
}

var blockedArg = command.Key("key").Means("the key as calls name it together with the policy")

// blockCommands are an operator's bans.
func blockCommands(l *Limits) []*command.Command {
	return []*command.Command{
		{
			Name: "rl.block", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(1)",
			Summary: "Limit all calls that name a policy and a key for this long, replacing any current block; retry_after is the time left.",
			Arity:   4, Flags: command.Write | command.DenyOOM | command.Admin | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 2, 2, 1),
			Args:   []command.Arg{command.Str("policy").Fails(ErrNoPolicy).Means("the name of a policy"), blockedArg, durationArg("duration", "how long to limit the key")},
			Errors: errorsOf(limiter.DurationErrors...),
			Reply:  command.ReplySimple, Returns: []string{"OK"}, Handler: l.either(l.ban, l.refuseElsewhere),
		},
		{
			Name: "rl.unblock", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(1)",
			Summary: "End a block that a policy or RL.BLOCK started, and forget its length.",
			Arity:   3, Flags: command.Write | command.Admin | command.Fast, Keys: command.Keys("RW ACCESS DELETE", 2, 2, 1),
			Args:   []command.Arg{command.Str("policy").Fails(string(limiter.ErrName)).Means("the name of a policy, or of one that existed when the block began"), blockedArg},
			Errors: []string{ErrNoPolicy},
			Reply:  command.ReplyInteger, Returns: []string{"1 if the block was ended, 0 if the key was not blocked"}, Handler: l.either(l.unblock, l.refuseElsewhere),
		},
	}
}

// ban implements RL.BLOCK policy key duration.
func (l *Limits) ban(c *command.Ctx) {
	known, ok := l.existing(c, c.Args[1])
	if !ok {
		return
	}
	length, err := limiter.ParseDuration(c.Args[3])
	if err != nil {
		errLimiter(c, err)
		return
	}
	l.watchUnits(c, c.Args[3])
	until := c.Now + length
	if err := l.keepBeside(c, l.beside(BlockPrefix, known.Name, c.Args[2]), []byte(banText), until, known.Policy); err != nil {
		errLimiter(c, err)
		return
	}
	if !known.Shadow {
		l.blocked(c, known, c.Args[2], until)
	}
	l.exceptionsChanged()
	c.OK()
}

// exceptionsChanged has all who wait be read anew, since what holds for the keys of a policy may have changed.
func (l *Limits) exceptionsChanged() {
	if l.Waits.Now > 0 {
		l.policiesChanged()
	}
}

// existing returns the policy of a name, or sends the error and returns false.
func (l *Limits) existing(c *command.Ctx, name []byte) (known *KnownPolicy, ok bool) {
	if limiter.CheckName(name) != nil { // one that is written out has nothing beside its keys
		errUnknownPolicy(c, name)
		return nil, false
	}
	known, err := l.policy(c, name)
	switch {
	case err != nil:
		c.Fail(err)
	case known == nil:
		errUnknownPolicy(c, name)
	default:
		return known, true
	}
	return nil, false
}

// unblock implements RL.UNBLOCK policy key. The policy need not exist any more if it has left a block.
func (l *Limits) unblock(c *command.Ctx) {
	if err := limiter.CheckName(c.Args[1]); err != nil {
		errLimiter(c, err)
		return
	}
	k := l.beside(BlockPrefix, string(c.Args[1]), c.Args[2])
	e, exists := c.DB.Find(k, c.Now)
	if !exists {
		if _, ok := l.existing(c, c.Args[1]); ok {
			c.Reply.Zero()
		}
		return
	}
	b, ok := l.readBlock(&e)
	c.DeleteKey(k, &e)
	l.exceptionsChanged()
	l.Policies.blocked.forget(string(c.Args[1]), c.Args[2], c.DB.Index())
	c.Reply.Int(oneIf(ok && b.rest(c.Now) > 0))
}

// BlockedKey is a key that was blocked.
type BlockedKey struct {
	Policy    string
	Key       []byte // at most maxBlockedName bytes of it
	Long      bool   // it goes on
	DB        int
	At, Until int64 // ms
}

const (
	// keptBlocked is how many of the keys that were blocked last are remembered.
	keptBlocked = 20
	// maxBlockedName is how much of each one's name, in bytes.
	maxBlockedName = 128
)

// lastBlocked are the keys that were blocked last. The zero value has none.
type lastBlocked struct {
	ring [keptBlocked]BlockedKey
	next int
}

// cutName is as much of a key's name as is remembered.
func cutName(key []byte) (cut []byte, long bool) {
	return key[:min(len(key), maxBlockedName)], len(key) > maxBlockedName
}

// add remembers a key that is blocked now.
func (b *lastBlocked) add(policy string, key []byte, db int, now, until int64) {
	r := &b.ring[b.next]
	b.next = (b.next + 1) % keptBlocked
	r.Policy, r.DB, r.At, r.Until = policy, db, now, until
	key, r.Long = cutName(key)
	r.Key = append(r.Key[:0], key...)
}

// forget forgets a key whose block has been ended. Names that are only partly remembered may stand for another key, too.
func (b *lastBlocked) forget(policy string, key []byte, db int) {
	key, long := cutName(key)
	for i := range b.ring {
		if r := &b.ring[i]; r.Policy == policy && r.DB == db && r.Long == long && bytes.Equal(r.Key, key) {
			r.At = 0
		}
	}
}

// LastBlocked returns the keys that were blocked last, the last one first: not those whose blocks have been taken away before their time. The
// caller holds the executor's lock. What is returned is not changed by later blocks.
func (l *Limits) LastBlocked() (list []BlockedKey) {
	b, now := &l.Policies.blocked, l.Clock.Read()/1e6
	for i := range b.ring {
		r := &b.ring[(b.next-1-i+2*keptBlocked)%keptBlocked]
		if r.At != 0 && !r.Long && now < r.Until {
			if _, exists := l.Keys.DB(r.DB).Look(l.beside(BlockPrefix, r.Policy, r.Key), now); !exists {
				r.At = 0 // by DEL, FLUSHALL and their like
			}
		}
		if r.At != 0 {
			kept := *r
			kept.Key = slices.Clone(r.Key)
			list = append(list, kept)
		}
	}
	return list
}
