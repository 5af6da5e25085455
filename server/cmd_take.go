package server

import (
	"bytes"

	"headgate/internal/number"
	"headgate/server/config"
	"headgate/server/policy"
	"headgate/store"
	"headgate/throttle"
)

// takeCommand is part of limiterCommands.
var takeCommand = &Command{
	Name: "rl.take", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(n) in the number of pairs, each as its policy's algorithm",
	Summary: "Charge several limits at once: all of them pass, or none is charged.",
	Arity:   -4, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: []KeySpec{{Access: "RW ACCESS UPDATE", Begin: 1, KeyNum: true, Skip: 1, Step: 2}},
	Args: []Arg{
		integer("numpairs").fails(errNumPairs), block("pair", str("policy").fails(errNoPolicy), key("key")).multi(),
		oneOf("costs", integer("n").after("COST").fails(errNotInteger), integer("each").after("COSTS").multi().fails(errNotInteger)).opt(), peekArg,
	},
	Errors: []string{errFewPairs, errUsage, string(policy.ErrLogCost), errDuplicateKey, errNotInteger, errWrongType},
	Reply:  ReplyArray, Handler: rlTake,
}

// Errors of RL.TAKE.
const (
	errNumPairs     = "ERR numpairs must be from 1 to 128"
	errFewPairs     = "ERR numpairs is greater than the number of pairs"
	errDuplicateKey = "ERR duplicate key '%s'"
)

// maxPairs is how many limits one RL.TAKE may ask. Pairs are compared with each other, so the number matters squared.
const maxPairs = 128

// takenPair is one limit that RL.TAKE asks.
type takenPair struct {
	key     store.Key
	policy  *policy.Policy
	counts  *decisions
	request policy.Request
	verdict verdict
	decided throttle.Decision // by a GCRA, whose decision is kept once all limits have let the call pass
}

// unlimitedPolicy is what unknown-policy allow has a missing policy stand for.
var unlimitedPolicy = policy.Policy{Algorithm: policy.Unlimited, Limit: -1}

// rlTake implements RL.TAKE numpairs policy key [policy key …] [COST n | COSTS n …] [PEEK].
func rlTake(c *Ctx) {
	n, ok := number.ParseInt(c.args[1])
	if !ok || n < 1 || n > maxPairs {
		c.err(errNumPairs)
		return
	}
	if len(c.args) < 2+2*int(n) {
		c.err(errFewPairs)
		return
	}
	pairs := c.srv.pairs[:n]
	defer clear(pairs) // they point into the input
	peek, ok := c.takeCosts(pairs)
	if !ok || !c.takePolicies(pairs) {
		return
	}
	limiting, ok := c.askAll(pairs, peek)
	if !ok {
		return
	}
	switch {
	case peek:
	case limiting < 0:
		if !c.haveRoom(pairs) || !c.chargeAll(pairs) {
			return
		}
	default:
		c.askAll(pairs, true) // those that let it pass have charged nothing: that is what they answer
		c.mendCounters(pairs)
	}
	if !peek {
		c.countPairs(pairs, limiting >= 0)
	}
	c.reply.Array(3)
	if limiting < 0 {
		c.reply.Zero()
	} else {
		c.reply.One()
	}
	c.reply.Int(int64(limiting))
	c.reply.Array(len(pairs))
	for i := range pairs {
		c.reply.Array(5)
		c.sendNumbers(&pairs[i].verdict.Verdict)
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
func (c *Ctx) takePolicies(pairs []takenPair) bool {
	for i := range pairs {
		pairs[i].key = c.key(3 + 2*i)
		for _, other := range pairs[:i] {
			if other.key.Hash == pairs[i].key.Hash && bytes.Equal(other.key.Name, pairs[i].key.Name) {
				c.errf(errDuplicateKey, policy.Shown(other.key.Name))
				return false
			}
		}
	}
	for i := range pairs {
		name := c.args[2+2*i]
		p, err := c.policy(name)
		switch {
		case err != nil:
			c.fail(err)
			return false
		case p == nil && c.cfg.UnknownPolicy == config.UnknownPolicyAllow:
			p = &knownPolicy{Policy: &unlimitedPolicy, counts: c.srv.policies.counts.of(missingPolicies)}
		case p == nil:
			c.errUnknownPolicy(name)
			return false
		}
		if err := p.CheckCost(pairs[i].request.Call.Cost); err != nil {
			c.errPolicy(err)
			return false
		}
		pairs[i].policy, pairs[i].counts = p.Policy, p.counts
	}
	return true
}

// askAll asks every limit without charging any, and returns the index of the first that limits, or -1. The answers are those of a
// peek, but for GCRAs that are not only peeked at. It sends the error and returns false if a key's state is none of its limit's.
func (c *Ctx) askAll(pairs []takenPair, peek bool) (limiting int, ok bool) {
	limiting = -1
	for i := range pairs {
		p := &pairs[i]
		wireError := ""
		if p.request.Call.Peek = peek || !p.policy.IsGCRA(); !p.request.Call.Peek {
			e, exists := c.db.Find(p.key, c.now)
			wireError = c.askGCRA(&e, exists, &p.policy.Rate, p.request.Call, &p.decided, &p.verdict)
		} else {
			wireError = c.decide(p.key, p.policy, &p.request, &p.verdict)
		}
		if wireError != "" {
			c.err(wireError)
			return 0, false
		}
		if p.verdict.Limited && limiting < 0 {
			limiting = i
		}
	}
	return limiting, true
}

// countPairs counts what the limits have answered. When one limits, those that would have let the call pass have decided nothing.
func (c *Ctx) countPairs(pairs []takenPair, limited bool) {
	for i := range pairs {
		p := &pairs[i]
		if v := &p.verdict; v.Limited == limited && p.request.Call.Cost > 0 {
			c.decided(p.key, p.policy.Algorithm, limited, v.Limit, v.Remaining)
			p.counts.add(limited, v.Limit, v.Remaining)
		}
	}
}

// haveRoom reports whether all limits could keep what they would be charged, or sends the error and returns false. Only where memory is
// short may one be refused after another has been charged, so that only there it looks.
func (c *Ctx) haveRoom(pairs []takenPair) bool {
	if !c.core.gate.has(gateShort) {
		return true
	}
	c.rehearses = true
	defer func() { c.rehearses = false }()
	for i := range pairs {
		p := &pairs[i]
		request := p.request
		request.Call.Peek = false
		var v verdict
		if wireError := c.decide(p.key, p.policy, &request, &v); wireError != "" && wireError != couldBeKept {
			c.err(wireError)
			return false
		}
	}
	return true
}

// chargeAll charges every limit after askAll, which none of them has limited: keys are different from each other, so the answers are
// still right. It sends the error and returns false, before anything is charged, if nothing can be kept.
func (c *Ctx) chargeAll(pairs []takenPair) bool {
	for i := range pairs {
		p := &pairs[i]
		if p.request.Call.Peek {
			p.request.Call.Peek = false
			if wireError := c.decide(p.key, p.policy, &p.request, &p.verdict); wireError != "" {
				c.err(wireError)
				return false
			}
			continue
		}
		e, exists := c.db.Find(p.key, c.now)
		if refusal := c.storeTAT(p.key, &e, exists, &p.decided); refusal != "" {
			c.err(refusal)
			return false
		}
	}
	return true
}

// mendCounters gives the counters that limit their expiry if they lack it, as RL.FIXED would: else they would limit for ever.
func (c *Ctx) mendCounters(pairs []takenPair) {
	for i := range pairs {
		if p := &pairs[i]; p.verdict.Limited && p.policy.Algorithm == policy.Fixed {
			p.request.Call.Peek = false
			_ = c.decide(p.key, p.policy, &p.request, &p.verdict)
		}
	}
}
