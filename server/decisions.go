package server

import (
	"strings"

	"headgate/server/policy"
	"headgate/store"
)

// decisions counts calls of limiters by what they were answered. Calls that only ask (PEEK, or a cost of 0) and those that give back
// do not count.
type decisions struct {
	allowed uint64
	near    uint64 // of those: with no more than a tenth of the limit left
	limited uint64
}

// nearShare is the part of a limit from which on what is left of it is called near.
const nearShare = 10

// add counts a call.
func (d *decisions) add(limited bool, limit, remaining int64) {
	if limited {
		d.limited++
		return
	}
	d.allowed++
	if uint64(remaining) <= uint64(limit)/nearShare { // -1, which stands for no limit, is never near
		d.near++
	}
}

// sum adds the calls that another has counted.
func (d *decisions) sum(other *decisions) {
	d.allowed, d.near, d.limited = d.allowed+other.allowed, d.near+other.near, d.limited+other.limited
}

// leaseAlgorithm is what RL.ACQUIRE's decisions are counted as; policies know no such algorithm.
const leaseAlgorithm = policy.Unlimited + 1

// algorithmDecisions are the decisions of each algorithm.
type algorithmDecisions [leaseAlgorithm + 1]decisions

// total returns those of all algorithms.
func (d *algorithmDecisions) total() (all decisions) {
	for i := range d {
		all.sum(&d[i])
	}
	return all
}

// algorithmName is an algorithm's name in INFO and among the metrics.
func algorithmName(a policy.Algorithm) string {
	if a == leaseAlgorithm {
		return "lease"
	}
	return strings.ToLower(a.String())
}

// decided counts a decision about the key k.
func (c *Ctx) decided(k store.Key, a policy.Algorithm, limited bool, limit, remaining int64) {
	c.srv.decisions[a].add(limited, limit, remaining)
	if c.srv.top.keys > 0 {
		c.srv.top.add(k, c.db.Index(), limited)
	}
}

// knownPolicy is a limit that has a name, and what is counted of it.
type knownPolicy struct {
	*policy.Policy
	text   string // of a fixed one
	counts *decisions
}

// countedPolicy is what is counted of one name.
type countedPolicy struct {
	name string
	decisions
}

const (
	// maxCounted bounds the names that are counted one by one; more than that are counted together.
	maxCounted = 2 * maxPolicies
	// otherPolicies and missingPolicies are the names for these, and for policies that do not exist. No policy can have them.
	otherPolicies   = "(other)"
	missingPolicies = "(missing)"
)

// policyCounts are the decisions under each name, in the order in which the names were first used. Names stay when their policy is
// deleted, so that no counter goes back.
type policyCounts struct {
	list   []*countedPolicy
	byName map[string]*countedPolicy
}

// of returns what is counted of a name.
func (p *policyCounts) of(name string) *decisions {
	if p.byName == nil {
		p.byName = map[string]*countedPolicy{}
	}
	counted := p.byName[name]
	if counted == nil && name != missingPolicies && (len(p.list) >= maxCounted || policy.CheckName([]byte(name)) != nil) {
		name = otherPolicies
		counted = p.byName[name]
	}
	if counted == nil {
		counted = &countedPolicy{name: strings.Clone(name)}
		p.byName[counted.name] = counted
		p.list = append(p.list, counted)
	}
	return &counted.decisions
}

// reset has all counts begin anew.
func (p *policyCounts) reset() {
	for _, counted := range p.list {
		counted.decisions = decisions{}
	}
}
