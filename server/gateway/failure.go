package gateway

import (
	"crypto/sha256"
	"encoding/hex"

	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/server/limits"
	"headgate/server/upstream"
	"headgate/throttle"
)

// What limiters answer without their node. The calls that fail are noted in Gateway.failing.

// modeOf is what becomes of a call by a policy, which may be nil, and counts it.
func (g *Gateway) modeOf(c *command.Ctx, p *limiter.Policy) limiter.Failure {
	mode := modeBy(c, p)
	g.Counts.Fallbacks[mode].Add(1)
	return mode
}

func modeBy(c *command.Ctx, p *limiter.Policy) limiter.Failure {
	if p != nil && p.SaysFailure {
		return p.Failure
	}
	return c.Cfg.UpstreamFailure
}

// unserved returns a failure if a node has answered a call that it serves none at present; nil if it serves it.
func unserved(up *upstream.Call) *upstream.Failure {
	if !upstream.Incapable(up.Reply) {
		return nil
	}
	return &upstream.Failure{Kind: upstream.Unreachable, Node: up.Node, Detail: firstLine(up.Reply[1:])}
}

// modesOf adds what becomes of pairs of RL.TAKE to modes, by where they stand, and counts those that have a limit. It reports false, and counts
// that instead, if the whole call is an error since one of them is.
func (g *Gateway) modesOf(c *command.Ctx, pairs []limits.Pair, unanswered []int) (modes map[int]limiter.Failure, ok bool) {
	modes = make(map[int]limiter.Failure, len(unanswered))
	for _, i := range unanswered {
		modes[i] = limiter.FailOpen
		if p := pairs[i].Policy; p.Limit >= 0 {
			modes[i] = modeBy(c, p)
		}
		if modes[i] == limiter.FailError {
			g.Counts.Fallbacks[limiter.FailError].Add(1)
			return nil, false
		}
	}
	for i, mode := range modes {
		if pairs[i].Policy.Limit >= 0 {
			g.Counts.Fallbacks[mode].Add(1)
		}
	}
	return modes, true
}

// fallBackPolicy answers a call of a limit.
func (g *Gateway) fallBackPolicy(c *command.Ctx, key []byte, p *limiter.Policy, r *limiter.Request) {
	mode := g.modeOf(c, p)
	if mode == limiter.FailError {
		sendFailure(c, g.failing.failure)
		return
	}
	v, err := g.withoutNode(c, key, p, r, mode)
	if err != nil {
		sendError(c, err)
		return
	}
	if r.Call.Cost > 0 && !r.Call.Peek {
		g.limits.Count(c, key, p.Algorithm, &v.Verdict)
	}
	limits.SendVerdict(c.Reply, p.Algorithm.Beyond, &v)
}

// withoutNode decides a call of a limit by its mode, which is not FailError.
func (g *Gateway) withoutNode(c *command.Ctx, key []byte, p *limiter.Policy, r *limiter.Request, mode limiter.Failure) (v limiter.Verdict, err error) {
	if mode == limiter.FailLocal {
		part, err := p.Share(c.Cfg.UpstreamLocalShare)
		if err == nil {
			err = g.limits.DecideHere(c, key, &part, r)
		}
		return g.limits.Asked.Verdict, err
	}
	v.Limit = p.Limit
	if mode == limiter.FailClosed {
		v.Limited, v.RetryAfter, v.WaitMs = true, c.Cfg.UpstreamRest.Milliseconds(), throttle.NoRetry
		return v, nil
	}
	v.Remaining, v.RetryAfter = p.Limit, throttle.NoRetry
	if p.Algorithm.Beyond == limiter.LeaseID && r.Call.Cost > 0 && !r.Call.Peek {
		if v.ID = r.Member; !r.HasMember {
			v.ID = openLease()
		}
	}
	return v, nil
}

// fallBackGCRA answers CL.THROTTLE and GCRA.
func (g *Gateway) fallBackGCRA(c *command.Ctx, key []byte, cell *throttle.GCRA, quantity int64, form limits.Form) {
	d := throttle.Decision{Limit: cell.Limit()}
	switch g.modeOf(c, nil) {
	case limiter.FailError:
		sendFailure(c, g.failing.failure)
		return
	case limiter.FailOpen:
		d.Remaining, d.RetryAfter = d.Limit, throttle.NoRetry
	case limiter.FailClosed:
		d.Limited, d.RetryAfter = true, int64(c.Cfg.UpstreamRest)
	case limiter.FailLocal:
		part, err := cell.Share(c.Cfg.UpstreamLocalShare)
		if err == nil {
			d, err = g.limits.ThrottleHere(c, key, &part, quantity)
		} else {
			err = limiter.ErrNotInteger
		}
		if err != nil {
			sendError(c, err)
			return
		}
	}
	var v throttle.Verdict
	form.Write(&v, &d)
	if quantity > 0 {
		g.limits.Count(c, key, g.limits.GCRA(), &v)
	}
	limits.SendNumbers(c.Reply, &v)
}

// fallBackLease answers RL.RELEASE and RL.RENEW. Closed has no meaning for what takes nothing, and so is an error.
func (g *Gateway) fallBackLease(c *command.Ctx, kind limitKind, key, id []byte, ttl int64) {
	switch g.modeOf(c, nil) {
	case limiter.FailOpen:
		c.Reply.One()
	case limiter.FailLocal:
		held, err := g.limits.LeaseHere(c, key, id, kind == renewing, ttl)
		if err != nil {
			sendError(c, err)
			return
		}
		sendHeld(c, held)
	default:
		sendFailure(c, g.failing.failure)
	}
}

// A lease that was had while its node did not answer is in no state. Its id tells so itself, so that giving it back needs no memory here,
// whichever gateway is asked: its second half is made of the first.
const (
	leaseHalf    = limiter.DrawnIDLength / 4 // bytes
	openLeaseKey = "lease without upstream"
)

// openLease draws such an id.
func openLease() []byte {
	id := limiter.AppendDrawnID(nil)
	var half [leaseHalf]byte
	_, _ = hex.Decode(half[:], id[:2*leaseHalf]) // hex digits
	return hex.AppendEncode(id[:2*leaseHalf], secondHalf(half))
}

func secondHalf(half [leaseHalf]byte) []byte {
	sum := sha256.Sum256(append([]byte(openLeaseKey), half[:]...))
	return sum[:leaseHalf]
}

// isOpenLease reports whether an id is one of openLease.
func isOpenLease(id []byte) bool {
	var both [2 * leaseHalf]byte
	if len(id) != hex.EncodedLen(len(both)) {
		return false
	}
	if _, err := hex.Decode(both[:], id); err != nil {
		return false
	}
	return string(secondHalf([leaseHalf]byte(both[:leaseHalf]))) == string(both[leaseHalf:])
}
