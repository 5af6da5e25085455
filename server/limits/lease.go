package limits

import (
	"slices"

	"headgate/server/command"
	"headgate/server/limiter"
)

// leaseCommands are those beside RL.ACQUIRE, for a lease that there is. They are declared here, and do not derive from an algorithm, since they
// are no limiters: they decide nothing, have no limit and no policy, and answer with one number.
func leaseCommands(l *Limits) []*command.Command {
	return []*command.Command{
		{
			Name: "rl.release", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(log n) in the number of leases",
			Summary: "Give a lease back. Under a limit of -1 nothing is stored, so the reply is 0.",
			Arity:   3, Flags: command.Write | command.Fast | command.DecidesFirst, Keys: command.Keys("RW ACCESS DELETE", 1, 1, 1),
			Args:   []command.Arg{leasesArg, leaseIDArg},
			Errors: []string{command.ErrWrongType},
			Reply:  command.ReplyInteger, Returns: []string{"1 if the lease was given back, 0 if it was gone already"}, Handler: l.either(l.release, l.releaseElsewhere),
		},
		{
			Name: "rl.renew", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(log n) in the number of leases",
			Summary: "Extend a lease to this long from now. Under a limit of -1 nothing is stored, so the reply is 0.",
			Arity:   4, Flags: command.Write | command.Fast | command.DecidesFirst, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
			Args:   []command.Arg{leasesArg, leaseIDArg, durationArg("ttl", "how long from now the lease lasts")},
			Errors: errorsOf(append(slices.Clip(limiter.DurationErrors), limiter.ErrWrongType)...),
			Reply:  command.ReplyInteger, Returns: []string{"1 if the lease was renewed, 0 if it was gone already"}, Handler: l.either(l.renew, l.renewElsewhere),
		},
	}
}

// Arguments of these commands.
var (
	leasesArg  = command.Key("key").Means("the key that RL.ACQUIRE was called with")
	leaseIDArg = command.Str("id").Means("the id of the lease, which RL.ACQUIRE has returned")
)

// drawID chooses the id of the call's lease.
func (l *Limits) drawID() {
	id := limiter.AppendDrawnID(l.drawn[:0])
	l.Asked.Verdict.ID, l.Asked.Change.Member = id, id
}

// findLease finds the lease at args[2], or sends the error and returns false.
func (l *Limits) findLease(c *command.Ctx) bool {
	l.state.open(c, c.Key(1))
	l.Asked.PrepareLease(c.Args[2], c.Now, c.NowNs)
	if err := l.state.Load(&l.Asked); err != nil {
		errLimiter(c, err)
		return false
	}
	return true
}

// release implements RL.RELEASE key id.
func (l *Limits) release(c *command.Ctx) {
	if l.findLease(c) {
		l.changeLease(c, l.Asked.Release())
	}
}

// renew implements RL.RENEW key id ttl.
func (l *Limits) renew(c *command.Ctx) {
	ttl, err := limiter.ParseDuration(c.Args[3])
	if err != nil {
		errLimiter(c, err)
		return
	}
	l.watchUnits(c, c.Args[3])
	if l.findLease(c) {
		l.changeLease(c, l.Asked.Renew(ttl))
	}
}

// changeLease keeps what is to become of a lease, if there is one, and answers.
func (l *Limits) changeLease(c *command.Ctx, held bool) {
	if !held {
		c.Reply.Zero()
		return
	}
	if err := l.state.Keep(&l.Asked); err != nil {
		errLimiter(c, err)
		return
	}
	c.Reply.One()
}
