package server

import (
	"errors"

	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/store"
	"headgate/throttle"
)

// Limits are the limiters of one server: what they are, the policies, and what is counted of both. The executor's lock guards it.
type Limits struct {
	*Core

	algorithms *limiter.Table
	gcra       *limiter.Algorithm // as what CL.THROTTLE and GCRA count
	policies   policies
	top        topKeys
	counts     []decisions     // by algorithm
	unlimited  *limiter.Policy // what unknown-policy allow has a missing policy stand for

	unlogged inMemory // what was kept although nothing could be written

	// Memory for one call; commands do not run within each other here.
	state state
	asked limiter.Call
	drawn [leaseIDLength]byte // the id of the call's lease
	pairs [maxPairs]takenPair
	ids   [maxPairs][leaseIDLength]byte // of the pairs' leases
}

// newLimits returns the limiters of a server, by these algorithms.
func newLimits(core *Core, algorithms *limiter.Table) *Limits {
	if algorithms == nil {
		algorithms = limiter.Standard
	}
	l := &Limits{Core: core, algorithms: algorithms, gcra: algorithms.Find("GCRA"), counts: make([]decisions, len(algorithms.All()))}
	l.unlimited = &limiter.Policy{Algorithm: algorithms.Find("UNLIMITED"), Limit: -1}
	l.asked.Found.At, l.state.unlogged = l.state.timeOf, &l.unlogged
	return l
}

// apply takes a configuration into use. The caller holds the lock, or nothing runs yet.
func (l *Limits) apply(cfg *config.Config) {
	l.policies.apply(cfg)
	l.top.apply(cfg, l.clock.Mono())
}

// declarations are the commands of limiters: one for each algorithm, and those beside them. Documentation asks without a server.
func (l *Limits) declarations() []*Command {
	if l == nil {
		l = newLimits(nil, nil)
	}
	all := []*Command{resetCommand, topCommand(l), takeCommand(l), policyCommand(l)}
	all = append(all, throttleCommands(l)...)
	all = append(all, gcraCommand(l))
	all = append(all, leaseCommands(l)...)
	for _, a := range l.algorithms.All() {
		if !a.PolicyOnly {
			all = append(all, l.commandOf(a))
		}
	}
	return sortedByName(all)
}

// ask asks a limit about the key k. The answer is in l.asked, and nothing is kept.
func (l *Limits) ask(c *Ctx, k store.Key, p *limiter.Policy, r *limiter.Request) error {
	if p.Limit < 0 {
		l.asked.Unlimited(p, r)
		return nil
	}
	l.state.open(c, k)
	l.asked.Prepare(p, r, c.now, c.nowNs)
	if err := l.state.Load(&l.asked); err != nil {
		return err
	}
	return l.asked.Decide()
}

// decide asks a limit about the key k, and keeps the key's new state. The answer is in l.asked.
func (l *Limits) decide(c *Ctx, k store.Key, p *limiter.Policy, r *limiter.Request) error {
	if err := l.ask(c, k, p, r); err != nil {
		return err
	}
	v := &l.asked.Verdict
	if v.Draw {
		l.drawID()
	}
	if l.asked.Change.Write == throttle.Keep {
		return nil
	}
	if err := l.state.Keep(&l.asked); err != nil && !v.Limited {
		return err
	}
	return nil // one that limits does so all the same, and gets the expiry that it lacks another time
}

// number finds the number at the key k.
func (l *Limits) number(c *Ctx, k store.Key) (n int64, exists bool, err error) {
	l.state.open(c, k)
	f := &l.asked.Found
	err = l.state.loadNumber(f)
	return f.Number, f.Exists, err
}

// keepTAT does to the key of the call of number before what a decision asks for.
func (l *Limits) keepTAT(d *throttle.Decision) error {
	if d.Write == throttle.Keep {
		return nil
	}
	ch := &l.asked.Change
	l.asked.Policy, l.asked.Want.Kind = nil, limiter.Number
	ch.Write, ch.Number, ch.ExpireAtMs = d.Write, d.TAT, throttle.ExpireAtMs(d.TAT)
	return l.state.Keep(&l.asked)
}

// sendNumbers sends the five numbers of an answer.
func (c *Ctx) sendNumbers(v *throttle.Verdict) {
	c.reply.Ints(oneIf(v.Limited), v.Limit, v.Remaining, v.RetryAfter, v.ResetAfter)
}

// oneIf is 1 for true and 0 for false.
func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// errLimiter sends an error from package limiter.
func (c *Ctx) errLimiter(err error) {
	var text limiter.Error
	switch {
	case errors.Is(err, limiter.ErrSyntax):
		c.errUsage()
	case errors.As(err, &text):
		c.err(oneLine(string(text)))
	default:
		panic("server: unexpected error from a limiter: " + err.Error())
	}
}
