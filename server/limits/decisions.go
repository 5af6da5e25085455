package limits

import (
	"strings"

	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/store"
	"headgate/throttle"
)

// Decisions counts calls of limiters by what they were answered. Calls that only ask (PEEK, or a cost of 0) and those that give back
// do not count.
type Decisions struct {
	Allowed uint64
	Near    uint64 // of those: with no more than a tenth of the limit left
	Limited uint64
	Shadow  uint64 // were let pass by a policy in the shadow, which would have limited them else
	Blocks  uint64 // that were begun; of a policy's name alone
}

// nearShare is the part of a limit from which on what is left of it is called near.
const nearShare = 10

// add counts a call.
func (d *Decisions) add(limited bool, limit, remaining int64) {
	if limited {
		d.Limited++
		return
	}
	d.Allowed++
	if uint64(remaining) <= uint64(limit)/nearShare { // -1, which stands for no limit, is never near
		d.Near++
	}
}

// Sum adds the calls that another has counted.
func (d *Decisions) Sum(other *Decisions) {
	d.Allowed, d.Near, d.Limited = d.Allowed+other.Allowed, d.Near+other.Near, d.Limited+other.Limited
	d.Shadow, d.Blocks = d.Shadow+other.Shadow, d.Blocks+other.Blocks
}

// decided counts a decision about the key k that names no policy.
func (l *Limits) decided(c *command.Ctx, k store.Key, a *limiter.Algorithm, limited bool, limit, remaining int64) {
	l.Counts[a.Index()].add(limited, limit, remaining)
	if l.Top.Keys > 0 {
		l.Top.add(k, c.DB.Index(), 0, limited)
	}
}

// decidedBy counts a decision about the key k by a policy.
func (l *Limits) decidedBy(c *command.Ctx, p *CountedPolicy, k store.Key, a *limiter.Algorithm, v *throttle.Verdict) {
	l.Counts[a.Index()].add(v.Limited, v.Limit, v.Remaining)
	p.add(v.Limited, v.Limit, v.Remaining)
	if l.Top.Keys > 0 {
		l.Top.add(k, c.DB.Index(), p.label, v.Limited)
	}
}

// shadowed counts a decision about the key k that a policy in the shadow has not enforced.
func (l *Limits) shadowed(c *command.Ctx, p *CountedPolicy, k store.Key, a *limiter.Algorithm) {
	l.Counts[a.Index()].Shadow++
	p.Shadow++
	if l.Top.Keys > 0 {
		l.Top.add(k, c.DB.Index(), p.label, false)
	}
}

// Total are the decisions of all algorithms.
func (l *Limits) Total() (all Decisions) {
	for i := range l.Counts {
		all.Sum(&l.Counts[i])
	}
	return all
}

// ResetCounts has all counts begin anew.
func (l *Limits) ResetCounts() {
	clear(l.Counts)
	l.Reservations.Counts = ReservationCounts{}
	clear(l.Waits.Counts)
	l.Policies.Counts.reset()
}

// KnownPolicy is a limit that has a name, and what is counted of it.
type KnownPolicy struct {
	*limiter.Policy
	Name   string
	Text   string // of a fixed one
	counts *CountedPolicy
	except exceptions
}

// CountedPolicy is what is counted of one name.
type CountedPolicy struct {
	Name string
	Decisions
	label uint16 // of its keys among the top keys: its place in the list, from 1 on
}

const (
	// MaxCounted bounds the names that are counted one by one; more than that are counted together.
	MaxCounted = 2 * maxPolicies
	// OtherPolicies, missingPolicies and writtenPolicies are the names for these, for policies that do not exist, and for those that calls write
	// out. No policy can have them.
	OtherPolicies   = "(other)"
	missingPolicies = "(missing)"
	writtenPolicies = "(written)"
)

// PolicyCounts are the decisions under each name, in the order in which the names were first used. Names stay when their policy is
// deleted, so that no counter goes back.
type PolicyCounts struct {
	List   []*CountedPolicy
	byName map[string]*CountedPolicy
}

// Of returns what is counted of a name.
func (p *PolicyCounts) Of(name string) *CountedPolicy {
	if p.byName == nil {
		p.byName = map[string]*CountedPolicy{}
	}
	counted := p.byName[name]
	if counted == nil && name != missingPolicies && name != writtenPolicies && (len(p.List) >= MaxCounted || limiter.CheckName([]byte(name)) != nil) {
		name = OtherPolicies
		counted = p.byName[name]
	}
	if counted == nil {
		counted = &CountedPolicy{Name: strings.Clone(name)}
		p.byName[counted.Name] = counted
		p.List = append(p.List, counted)
		counted.label = uint16(len(p.List)) // of MaxCounted and two more
	}
	return counted
}

// Labelled returns the name of the policy of such a label, or nothing for keys without.
func (p *PolicyCounts) Labelled(label uint16) string {
	if label == 0 {
		return ""
	}
	return p.List[label-1].Name
}

// reset has all counts begin anew.
func (p *PolicyCounts) reset() {
	for _, counted := range p.List {
		counted.Decisions = Decisions{}
	}
}
