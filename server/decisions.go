package server

import (
	"strings"

	"headgate/server/limiter"
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

// decided counts a decision about the key k.
func (l *Limits) decided(c *Ctx, k store.Key, a *limiter.Algorithm, limited bool, limit, remaining int64) {
	l.counts[a.Index()].add(limited, limit, remaining)
	if l.top.keys > 0 {
		l.top.add(k, c.db.Index(), limited)
	}
}

// total are the decisions of all algorithms.
func (l *Limits) total() (all decisions) {
	for i := range l.counts {
		all.sum(&l.counts[i])
	}
	return all
}

// resetCounts has all counts begin anew.
func (l *Limits) resetCounts() {
	clear(l.counts)
	l.policies.counts.reset()
}

// knownPolicy is a limit that has a name, and what is counted of it.
type knownPolicy struct {
	*limiter.Policy
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
	if counted == nil && name != missingPolicies && (len(p.list) >= maxCounted || limiter.CheckName([]byte(name)) != nil) {
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
