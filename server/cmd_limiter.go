package server

import (
	"errors"

	"headgate/server/policy"
)

// limiterCommands: one command for each algorithm, in milliseconds throughout.
var limiterCommands = []*Command{
	{
		Name: "rl.bucket", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(1)",
		Summary: "Take tokens from a bucket that is refilled at a steady rate; RL.GCRA under the token bucket's words.",
		Arity:   -5, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args:   []Arg{key("key"), quotaArg("capacity"), rateArg("refill"), durationArg("period"), costArg, peekArg},
		Errors: limiterErrors,
		Reply:  ReplyArray, Handler: rlBucket,
	},
	{
		Name: "rl.fixed", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(1)",
		Summary: "Count within a window that begins with its first call, or that is aligned with the epoch or with a calendar.",
		Arity:   -4, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{
			key("key"), quotaArg("limit"),
			oneOf("window", block("period", durationArg("window"), tok("ALIGNED").opt()),
				block("calendar", oneOf("unit", tok("MINUTE"), tok("HOUR"), tok("DAY"), tok("WEEK"), tok("MONTH"), tok("YEAR")),
					str("zone").after("TZ").opt().fails("ERR unknown time zone '%s'"))),
			costArg, peekArg,
		},
		Errors: windowErrors,
		Reply:  ReplyArray, Handler: rlFixed,
	},
	{
		Name: "rl.gcra", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(1)",
		Summary: "Decide by GCRA: a capacity that may be used at once, given back at a steady rate.",
		Arity:   -5, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args:   []Arg{key("key"), quotaArg("capacity"), rateArg("count"), durationArg("period"), costArg, peekArg},
		Errors: limiterErrors,
		Reply:  ReplyArray, Handler: rlGCRA,
	},
	{
		Name: "rl.log", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(log n + cost) in the number of entries",
		Summary: "Admit by a list of what passed within the window, exactly; with MEMBER, by a list of different ids.",
		Arity:   -4, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args:   []Arg{key("key"), quotaArg("limit"), durationArg("window"), str("id").after("MEMBER").opt(), costArg, peekArg},
		Errors: []string{policy.ShortDuration, errUsage, string(policy.ErrLogCost), errWrongType},
		Reply:  ReplyArray, Handler: rlLog,
	},
	{
		Name: "rl.queue", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(1)",
		Summary: "RL.GCRA for a queue that lets requests out evenly: a sixth number tells for how many milliseconds to hold this one back.",
		Arity:   -5, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args:   []Arg{key("key"), quotaArg("capacity"), rateArg("count"), durationArg("period"), costArg, peekArg},
		Errors: limiterErrors,
		Reply:  ReplyArray, Handler: rlQueue,
	},
	resetCommand,
	{
		Name: "rl.sliding", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(n) in the number of slices",
		Summary: "Count within a sliding window that is cut into slices, of which the oldest is forgotten gradually.",
		Arity:   -4, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{
			key("key"), quotaArg("limit"), durationArg("window"),
			integer("slices").after("SLICES").opt().fails(string(policy.ErrSlices)), costArg, peekArg,
		},
		Errors: windowErrors,
		Reply:  ReplyArray, Handler: rlSliding,
	},
	takeCommand,
	topCommand,
}

// Arguments that the limiters share.
var (
	costArg = integer("n").after("COST").opt().fails(errNotInteger)
	peekArg = tok("PEEK").opt()
)

// limiterErrors are those of every limiter whose state holds numbers: for options that are none, stand twice or do not go together;
// for a product beyond 64 bits, and a key's text that is no number; and for a key of another kind.
var limiterErrors = []string{errUsage, errNotInteger, errWrongType}

// windowErrors are those of limiters that count within windows, whose length is in milliseconds.
var windowErrors = append([]string{policy.ShortDuration}, limiterErrors...)

func quotaArg(name string) Arg    { return integer(name).fails(string(policy.ErrLimit)) }
func rateArg(name string) Arg     { return integer(name).fails(string(policy.ErrCount)) }
func durationArg(name string) Arg { return str(name).fails(policy.InvalidDuration) }

func rlBucket(c *Ctx)  { c.limiter(policy.Bucket) }
func rlFixed(c *Ctx)   { c.limiter(policy.Fixed) }
func rlGCRA(c *Ctx)    { c.limiter(policy.GCRA) }
func rlLog(c *Ctx)     { c.limiter(policy.Log) }
func rlQueue(c *Ctx)   { c.limiter(policy.Queue) }
func rlSliding(c *Ctx) { c.limiter(policy.Sliding) }

// limiter implements the commands that are called with a key and an algorithm's words.
func (c *Ctx) limiter(a policy.Algorithm) {
	l := &c.recent().limit
	if (c.shape == 0 || c.shape != l.shape) && !c.readLimit(l, a) {
		return
	}
	var v verdict
	k := c.key(1)
	if wireError := c.decide(k, &l.Policy, &l.Request, &v); wireError != "" {
		c.err(wireError)
		return
	}
	if l.Call.Cost > 0 && !l.Call.Peek {
		c.decided(k, a, v.Limited, v.Limit, v.Remaining)
	}
	if a == policy.Queue {
		c.reply.Array(6)
		c.sendNumbers(&v.Verdict)
		c.reply.Int(v.wait)
		return
	}
	c.reply.Array(5)
	c.sendNumbers(&v.Verdict)
}

// recentLimits are what the last limiters of a worker were called with.
type recentLimits struct {
	quota throttleQuota // by CL.THROTTLE
	limit limit         // by those of another name
}

// Bytes implements sized.
func (*recentLimits) Bytes() int { return recentLimitsBytes }

// recentLimitsBytes is about what the last limits of a worker take up.
const recentLimitsBytes = 512

// recent returns the last limits of the worker that runs the command.
func (c *Ctx) recent() *recentLimits {
	r, _ := c.turn.limits.(*recentLimits)
	if r == nil {
		r = &recentLimits{}
		c.turn.limits = r
	}
	return r
}

// limit is what a limiter's arguments after the key say. Most calls repeat those of the call before, so that a worker keeps the last ones.
type limit struct {
	shape uint64 // of the command that they were read from, see known; 0: they are not to be used again
	policy.Policy
	policy.Request
}

// readLimit reads a limiter's arguments after the key, or sends the error and returns false.
func (c *Ctx) readLimit(l *limit, a policy.Algorithm) bool {
	*l = limit{}
	if err := policy.Parse(&l.Policy, &l.Request, a, c.args[2:]); err != nil {
		c.errPolicy(err)
		return false
	}
	if !l.HasMember { // which is in the client's input buffer
		l.shape = c.shape
	}
	return true
}

// errPolicy sends an error from package policy.
func (c *Ctx) errPolicy(err error) {
	var text policy.Error
	switch {
	case errors.Is(err, policy.ErrSyntax):
		c.errUsage()
	case errors.As(err, &text):
		c.err(oneLine(string(text)))
	default:
		panic("server: unexpected error from policy: " + err.Error())
	}
}
