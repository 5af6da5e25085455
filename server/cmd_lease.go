package server

import (
	"encoding/hex"
	"math/rand/v2"

	"headgate/server/config"
	"headgate/server/policy"
	"headgate/store"
	"headgate/throttle"
)

// leaseCommands: the concurrency limit.
var leaseCommands = []*Command{
	{
		Name: "rl.acquire", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(log n) in the number of leases",
		Summary: "Take one of so many leases, which ends by itself after a time, or renew the one that MEMBER names; the sixth element is its id.",
		Arity:   -4, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args:   []Arg{key("key"), quotaArg("limit"), durationArg("ttl"), str("id").after("MEMBER").opt(), peekArg},
		Errors: []string{policy.ShortDuration, errUsage, errWrongType},
		Reply:  ReplyArray, Handler: rlAcquire,
	},
	{
		Name: "rl.release", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(log n) in the number of leases",
		Summary: "Give a lease back; 0 when it is gone already.",
		Arity:   3, Flags: Write | Fast | DecidesFirst, Keys: keys("RW ACCESS DELETE", 1, 1, 1),
		Args:   []Arg{key("key"), str("id")},
		Errors: []string{errWrongType},
		Reply:  ReplyInteger, Handler: rlRelease,
	},
	{
		Name: "rl.renew", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(log n) in the number of leases",
		Summary: "Have a lease end after this time from now instead; 0 when it is gone already.",
		Arity:   4, Flags: Write | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args:   []Arg{key("key"), str("id"), durationArg("ttl")},
		Errors: []string{policy.ShortDuration, errWrongType},
		Reply:  ReplyInteger, Handler: rlRenew,
	},
}

// leaseIDLength is the length of the ids that we choose, in hex digits.
const leaseIDLength = 32

// leaseRequest is what RL.ACQUIRE is called with.
type leaseRequest struct {
	throttle.Leases
	id   []byte // nil when we are to choose it
	peek bool
}

// parse reads RL.ACQUIRE's arguments after its key.
func (r *leaseRequest) parse(c *Ctx) bool {
	p, words := policy.Policy{}, c.args[2:]
	// The limit and the time stand as RL.LOG's do.
	if err := policy.Parse(&p, nil, policy.Log, words[:2]); err != nil {
		c.errPolicy(err)
		return false
	}
	r.Limit, r.TTL = p.Limit, p.Window
	for i := 4; i < len(c.args); i++ {
		switch {
		case !r.peek && c.is(i, "PEEK"):
			r.peek = true
		case r.id == nil && i+1 < len(c.args) && c.is(i, "MEMBER"):
			i++
			r.id = c.args[i]
		default:
			c.errUsage()
			return false
		}
	}
	return true
}

func rlAcquire(c *Ctx) {
	var r leaseRequest
	if !r.parse(c) {
		return
	}
	v, ok := c.acquire(&r)
	if !ok {
		return
	}
	if !r.peek {
		c.decided(c.key(1), leaseAlgorithm, v.Limited, v.Limit, v.Remaining)
	}
	c.reply.Array(6)
	c.sendNumbers(&v)
	if v.Limited || r.peek {
		c.reply.Null()
	} else {
		c.reply.Bulk(r.id)
	}
}

// acquire decides about a lease and keeps it. It fills in the id if we are to choose it.
func (c *Ctx) acquire(r *leaseRequest) (v throttle.Verdict, ok bool) {
	if r.Limit < 0 {
		c.chooseID(r)
		return throttle.Unlimited, true
	}
	k := c.key(1)
	z, _, err := c.db.ZSet(k, c.now)
	if err != nil {
		c.fail(err)
		return v, false
	}
	held := z.CountAfter(c.now)
	first := z.Len() - held
	state := throttle.LeasesState{Held: int64(held)}
	if r.id != nil {
		state.MyEnd, state.Mine = leaseEnd(&z, r.id, c.now)
	}
	state.Last = lastLease(&z, held, r.id, state.Mine)
	v = r.Acquire(c.now, state, func(i int64) int64 { return timeAt(&z, first+int(i)) }, r.peek)
	if v.Write == throttle.Set {
		grows := first == 0 // an id that we draw may take the place of one that has ended
		if r.id != nil {
			grows = !has(&z, r.id)
		}
		if refusal := c.refuseState(grows); refusal != "" {
			c.err(refusal)
			return v, false
		}
		c.chooseID(r)
		c.trim(k, &z, first)
		c.setLease(k, &z, r.id, c.now+r.TTL)
	}
	return v, true
}

// chooseID draws an id unless the client has given one. It is unpredictable, so nobody gives back another one's lease by accident.
func (c *Ctx) chooseID(r *leaseRequest) {
	if r.id != nil || r.peek {
		return
	}
	var random [leaseIDLength / 2]byte
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	c.scratch = hex.AppendEncode(c.scratch[:0], random[:])
	r.id = c.scratch
}

// leaseEnd returns when a lease ends, if it has not ended yet.
func leaseEnd(z *store.ZSet, id []byte, now int64) (end int64, alive bool) {
	score, held := z.Score(id)
	if !held || score <= float64(now) {
		return 0, false
	}
	return scoreTime(score), true
}

// lastLease returns when the last lease ends of those held, leaving out that of id if it is one of them; 0 for none.
func lastLease(z *store.ZSet, held int, id []byte, mine bool) int64 {
	if held == 0 {
		return 0
	}
	last := z.Len() - 1
	if member, _ := z.AtRank(last); mine && string(member) == string(id) {
		if held == 1 {
			return 0
		}
		last--
	}
	return timeAt(z, last)
}

// setLease has a lease end at a time, and the key with its last lease.
func (c *Ctx) setLease(k store.Key, z *store.ZSet, id []byte, end int64) {
	z.Add(float64(end), id)
	if c.logs() {
		c.effect("ZADD", k.Name, end, id)
	}
	c.notify(config.EventZSet, "zadd", k.Name)
	c.expireState(k, z.Entry(), timeAt(z, z.Len()-1))
}

// aliveLease opens the leases at args[1] for a change of the one at args[2], and reports whether that is alive and may be changed; if
// not, the reply has been sent.
func (c *Ctx) aliveLease() (k store.Key, z store.ZSet, alive bool) {
	k = c.key(1)
	z, _, err := c.db.ZSet(k, c.now)
	if err != nil {
		c.fail(err)
		return k, z, false
	}
	if _, alive = leaseEnd(&z, c.args[2], c.now); !alive {
		c.reply.Zero()
		return k, z, false
	}
	if refusal := c.refuseState(false); refusal != "" {
		c.err(refusal)
		return k, z, false
	}
	return k, z, true
}

func rlRelease(c *Ctx) {
	k, z, alive := c.aliveLease()
	if !alive {
		return
	}
	held := z.CountAfter(c.now)
	if held == 1 {
		c.deleteState(k, z.Entry()) // what is left beside this one has ended
	} else {
		z.Remove(c.args[2])
		c.effect("ZREM", k.Name, c.args[2])
		c.notify(config.EventZSet, "zrem", k.Name)
		c.trim(k, &z, z.Len()-held+1)
		c.expireState(k, z.Entry(), timeAt(&z, z.Len()-1))
	}
	c.reply.One()
}

func rlRenew(c *Ctx) {
	ttl, err := policy.ParseDuration(c.args[3])
	if err != nil {
		c.errPolicy(err)
		return
	}
	k, z, alive := c.aliveLease()
	if !alive {
		return
	}
	c.trim(k, &z, z.Len()-z.CountAfter(c.now))
	c.setLease(k, &z, c.args[2], c.now+ttl)
	c.reply.One()
}
