package server

import (
	"encoding/hex"
	"math/rand/v2"

	"headgate/server/limiter"
)

// leaseCommands are those beside RL.ACQUIRE, for a lease that there is.
func leaseCommands(l *Limits) []*Command {
	return []*Command{
		{
			Name: "rl.release", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(log n) in the number of leases",
			Summary: "Give a lease back; 0 when it is gone already.",
			Arity:   3, Flags: Write | Fast | DecidesFirst, Keys: keys("RW ACCESS DELETE", 1, 1, 1),
			Args:   []Arg{key("key"), str("id")},
			Errors: []string{errWrongType},
			Reply:  ReplyInteger, Handler: l.release,
		},
		{
			Name: "rl.renew", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(log n) in the number of leases",
			Summary: "Have a lease end after this time from now instead; 0 when it is gone already.",
			Arity:   4, Flags: Write | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
			Args:   []Arg{key("key"), str("id"), durationArg("ttl")},
			Errors: errorsOf(limiter.ShortDuration, limiter.ErrWrongType),
			Reply:  ReplyInteger, Handler: l.renew,
		},
	}
}

// leaseIDLength is the length of the ids that we choose, in hex digits.
const leaseIDLength = 32

// drawID chooses the id of the call's lease. It is unpredictable, so nobody gives back another one's lease by accident.
func (l *Limits) drawID() {
	var random [leaseIDLength / 2]byte
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	id := hex.AppendEncode(l.drawn[:0], random[:])
	l.asked.Verdict.ID, l.asked.Change.Member = id, id
}

// findLease finds the lease at args[2], or sends the error and returns false.
func (l *Limits) findLease(c *Ctx) bool {
	l.state.open(c, c.key(1))
	l.asked.PrepareLease(c.args[2], c.now, c.nowNs)
	if err := l.state.Load(&l.asked); err != nil {
		c.errLimiter(err)
		return false
	}
	return true
}

// release implements RL.RELEASE key id.
func (l *Limits) release(c *Ctx) {
	if l.findLease(c) {
		l.changeLease(c, l.asked.Release())
	}
}

// renew implements RL.RENEW key id ttl.
func (l *Limits) renew(c *Ctx) {
	ttl, err := limiter.ParseDuration(c.args[3])
	if err != nil {
		c.errLimiter(err)
		return
	}
	if l.findLease(c) {
		l.changeLease(c, l.asked.Renew(ttl))
	}
}

// changeLease keeps what is to become of a lease, if there is one, and answers.
func (l *Limits) changeLease(c *Ctx, held bool) {
	if !held {
		c.reply.Zero()
		return
	}
	if err := l.state.Keep(&l.asked); err != nil {
		c.errLimiter(err)
		return
	}
	c.reply.One()
}
