package server

import (
	"bytes"
	"slices"

	"headgate/internal/number"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/store"
	"headgate/throttle"
)

func takeCommand(l *Limits) *Command {
	return &Command{
		Name: "rl.take", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(n) in the number of pairs, each as its policy's algorithm",
		Summary: "Charge several limits at once: all of them pass, or none is charged. If leases are among them, a fourth element has their ids.",
		Arity:   -4, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: []KeySpec{{Access: "RW ACCESS UPDATE", Begin: 1, KeyNum: true, Skip: 1, Step: 2}},
		Args: []Arg{
			integer("numpairs").fails(errNumPairs), block("pair", str("policy").fails(errNoPolicy), key("key")).multi(),
			oneOf("costs", integer("n").after("COST").fails(errNotInteger), integer("each").after("COSTS").multi().fails(errNotInteger)).opt(), peekArg,
		},
		Errors: slices.Concat([]string{errFewPairs, errUsage}, l.costErrors(), []string{errDuplicateKey, errNotInteger, errWrongType}),
		Reply:  ReplyArray, Handler: l.take,
	}
}

// Errors of RL.TAKE.
const (
	errNumPairs     = "ERR numpairs must be from 1 to 128"
	errFewPairs     = "ERR numpairs is greater than the number of pairs"
	errDuplicateKey = "ERR duplicate key '%s'"
)

// maxPairs is how many limits one RL.TAKE may ask. Pairs are compared with each other, so the number matters squared.
const maxPairs = 128

// costErrors are those with which policies refuse a cost.
func (l *Limits) costErrors() (texts []string) {
	for _, a := range l.algorithms.All() {
		if a.Costs != "" && !a.CommandOnly {
			texts = append(texts, string(a.Costs))
		}
	}
	return texts
}

// takenPair is one limit that RL.TAKE asks.
type takenPair struct {
	key     store.Key
	policy  *limiter.Policy
	counts  *decisions
	request limiter.Request
	verdict limiter.Verdict

	// What is to be kept of a limit whose state is a number, once all limits have let the call pass. Others are asked again then.
	write            throttle.Write
	number, expireAt int64
}

// take implements RL.TAKE numpairs policy key [policy key …] [COST n | COSTS n …] [PEEK].
func (l *Limits) take(c *Ctx) {
	n, ok := number.ParseInt(c.args[1])
	if !ok || n < 1 || n > maxPairs {
		c.err(errNumPairs)
		return
	}
	if len(c.args) < 2+2*int(n) {
		c.err(errFewPairs)
		return
	}
	pairs := l.pairs[:n]
	defer clear(pairs) // they point into the input
	peek, ok := c.takeCosts(pairs)
	if !ok || !l.takePolicies(c, pairs) {
		return
	}
	limiting, err := l.askAll(c, pairs, peek)
	switch {
	case err != nil || peek:
	case limiting >= 0:
		err = l.lookAtOthers(c, pairs)
	default:
		if err = l.refusalOfAny(c, pairs); err == nil {
			err = l.chargeAll(c, pairs)
		}
	}
	if err != nil {
		c.errLimiter(err)
		return
	}
	if !peek {
		l.countPairs(c, pairs, limiting >= 0)
	}
	c.sendPairs(pairs, limiting)
}

// sendPairs sends what the limits have answered. limiting is the index of the first that limits, or -1.
func (c *Ctx) sendPairs(pairs []takenPair, limiting int) {
	leases := false
	for i := range pairs {
		leases = leases || pairs[i].policy.Algorithm.Beyond == limiter.LeaseID
	}
	c.reply.Array(3 + int(oneIf(leases)))
	c.reply.Int(oneIf(limiting >= 0))
	c.reply.Int(int64(limiting))
	c.reply.Array(len(pairs))
	for i := range pairs {
		c.reply.Array(5)
		c.sendNumbers(&pairs[i].verdict.Verdict)
	}
	if !leases {
		return
	}
	c.reply.Array(len(pairs))
	for i := range pairs {
		c.sendID(pairs[i].verdict.ID)
	}
}

// takeCosts reads what stands behind the pairs, or sends the error and returns false.
func (c *Ctx) takeCosts(pairs []takenPair) (peek, ok bool) {
	given := false
	for i := 2 + 2*len(pairs); i < len(c.args); i++ {
		each := 0
		switch {
		case !peek && c.is(i, "PEEK"):
			peek = true
			continue
		case !given && c.is(i, "COST"):
		case !given && c.is(i, "COSTS"):
			each = 1
		default:
			c.errUsage()
			return false, false
		}
		given = true
		if i+1+each*(len(pairs)-1) >= len(c.args) {
			c.errUsage()
			return false, false
		}
		for p := range pairs {
			cost, ok := c.integer(i + 1 + each*p)
			if !ok {
				return false, false
			}
			pairs[p].request.Call.Cost = cost
		}
		i += 1 + each*(len(pairs)-1)
	}
	for p := range pairs {
		if !given {
			pairs[p].request.Call.Cost = 1
			if peek {
				pairs[p].request.Call.Cost = 0
			}
		}
	}
	return peek, true
}

// takePolicies finds the pairs' limits and keys, or sends the error and returns false.
func (l *Limits) takePolicies(c *Ctx, pairs []takenPair) bool {
	for i := range pairs {
		pairs[i].key = c.key(3 + 2*i)
		for _, other := range pairs[:i] {
			if other.key.Hash == pairs[i].key.Hash && bytes.Equal(other.key.Name, pairs[i].key.Name) {
				c.errf(errDuplicateKey, limiter.Shown(other.key.Name))
				return false
			}
		}
	}
	for i := range pairs {
		name := c.args[2+2*i]
		p, err := l.policy(c, name)
		switch {
		case err != nil:
			c.fail(err)
			return false
		case p == nil && c.cfg.UnknownPolicy == config.UnknownPolicyAllow:
			p = &knownPolicy{Policy: l.unlimited, counts: l.policies.counts.of(missingPolicies)}
		case p == nil:
			c.errUnknownPolicy(name)
			return false
		}
		if err := p.RefuseCost(pairs[i].request.Call.Cost); err != nil {
			c.errLimiter(err)
			return false
		}
		pairs[i].policy, pairs[i].counts = p.Policy, p.counts
	}
	return true
}

// askAll asks every limit without charging any, and returns the index of the first that limits, or -1. The answers are those of a peek, but
// for numbers that are not only peeked at.
func (l *Limits) askAll(c *Ctx, pairs []takenPair, peek bool) (limiting int, err error) {
	limiting = -1
	for i := range pairs {
		p := &pairs[i]
		p.request.Call.Peek = peek || p.policy.Algorithm.Kind != limiter.Number
		if err := l.askPair(c, p); err != nil {
			return 0, err
		}
		if p.verdict.Limited && limiting < 0 {
			limiting = i
		}
	}
	return limiting, nil
}

// askPair asks a limit, and notes what it answers.
func (l *Limits) askPair(c *Ctx, p *takenPair) error {
	if err := l.ask(c, p.key, p.policy, &p.request); err != nil {
		return err
	}
	ch := &l.asked.Change
	p.verdict = l.asked.Verdict
	p.write, p.number, p.expireAt = ch.Write, ch.Number, ch.ExpireAtMs
	return nil
}

// countPairs counts what the limits have answered. When one limits, those that would have let the call pass have decided nothing.
func (l *Limits) countPairs(c *Ctx, pairs []takenPair, limited bool) {
	for i := range pairs {
		p := &pairs[i]
		if v := &p.verdict; v.Limited == limited && p.request.Call.Cost > 0 {
			l.decided(c, p.key, p.policy.Algorithm, limited, v.Limit, v.Remaining)
			p.counts.add(limited, v.Limit, v.Remaining)
		}
	}
}

// refusalOfAny returns why one of the limits could not keep what it would be charged, or nil. Only where memory is short, or the disk, may one be
// refused after another has been charged, so that only there it looks.
func (l *Limits) refusalOfAny(c *Ctx, pairs []takenPair) error {
	if !c.core.gate.has(gateShort | gateUnwritable) {
		return nil
	}
	for i := range pairs {
		p := &pairs[i]
		request := p.request
		request.Call.Peek = false
		if err := l.ask(c, p.key, p.policy, &request); err != nil {
			return err
		}
		if refusal := l.state.refusal(&l.asked); refusal != nil {
			return refusal
		}
	}
	return nil
}

// chargeAll charges every limit after askAll, which none of them has limited: keys are different from each other, so the answers are
// still right. It returns an error, before anything is charged, if nothing can be kept.
func (l *Limits) chargeAll(c *Ctx, pairs []takenPair) error {
	for i := range pairs {
		p := &pairs[i]
		if p.request.Call.Peek {
			p.request.Call.Peek = false
			if err := l.decide(c, p.key, p.policy, &p.request); err != nil {
				return err
			}
			if p.verdict = l.asked.Verdict; p.verdict.Draw {
				p.verdict.ID = append(l.ids[i][:0], p.verdict.ID...)
			}
			continue
		}
		if err := l.keepPair(c, p); err != nil {
			return err
		}
	}
	return nil
}

// keepPair keeps what the decision on a number has noted.
func (l *Limits) keepPair(c *Ctx, p *takenPair) error {
	if p.write == throttle.Keep {
		return nil
	}
	l.state.open(c, p.key)
	l.asked.Policy, l.asked.Want.Kind = p.policy, limiter.Number
	l.state.find(&l.asked.Found)
	ch := &l.asked.Change
	ch.Write, ch.Number, ch.ExpireAtMs = p.write, p.number, p.expireAt
	return l.state.Keep(&l.asked)
}

// lookAtOthers has the limits that do not limit answer as to a peek, since they have charged nothing. Those that do may have something to
// keep all the same: counters get the expiry that they lack, or they would limit for ever.
func (l *Limits) lookAtOthers(c *Ctx, pairs []takenPair) error {
	for i := range pairs {
		p := &pairs[i]
		if p.verdict.Limited {
			_ = l.keepPair(c, p) // another time
			continue
		}
		p.request.Call.Peek = true
		if err := l.askPair(c, p); err != nil {
			return err
		}
	}
	return nil
}
