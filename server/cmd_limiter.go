package server

import (
	"slices"
	"strings"

	"headgate/server/limiter"
)

// commandOf declares the command of an algorithm. Limiters answer in milliseconds throughout.
func (l *Limits) commandOf(a *limiter.Algorithm) *Command {
	args := append([]Arg{key("key")}, argsOf(a.Args)...)
	if !a.NoCost {
		args = append(args, costArg)
	}
	return &Command{
		Name: "rl." + strings.ToLower(a.Name), Group: GroupThrottle, Since: a.Since, Complexity: a.Complexity, Summary: a.Summary,
		Arity: -2 - a.Words, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: append(args, peekArg), Errors: errorsOf(a.Errors...),
		Reply: ReplyArray, Handler: func(c *Ctx) { l.answer(c, a) },
	}
}

// argsOf says package limiter's arguments in the terms of commands.
func argsOf(list []limiter.Arg) []Arg {
	args := make([]Arg, len(list))
	for i, a := range list {
		args[i] = Arg{Name: a.Name, Type: a.Type, Token: a.Token, Optional: a.Optional, Error: a.Error}
		if len(a.Args) > 0 {
			args[i].Args = argsOf(a.Args)
		}
	}
	return args
}

// errorsOf says package limiter's errors in the terms of commands.
func errorsOf(list ...limiter.Error) []string {
	texts := make([]string, len(list))
	for i, err := range list {
		if texts[i] = string(err); err == limiter.ErrSyntax {
			texts[i] = errUsage
		}
	}
	return texts
}

// sortedByName puts commands into the order of their names.
func sortedByName(commands []*Command) []*Command {
	slices.SortFunc(commands, func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
	return commands
}

// Arguments that the limiters share.
var (
	costArg = integer("n").after("COST").opt().fails(errNotInteger)
	peekArg = tok("PEEK").opt()
)

func durationArg(name string) Arg { return str(name).fails(limiter.InvalidDuration) }

// answer implements the commands that are called with a key and an algorithm's words.
func (l *Limits) answer(c *Ctx, a *limiter.Algorithm) {
	said := &c.recent().limit
	if (c.shape == 0 || c.shape != said.shape) && !c.readLimit(said, a) {
		return
	}
	k := c.key(1)
	if err := l.decide(c, k, &said.Policy, &said.Request); err != nil {
		c.errLimiter(err)
		return
	}
	v := &l.asked.Verdict
	if said.Call.Cost > 0 && !said.Call.Peek {
		l.decided(c, k, a, v.Limited, v.Limit, v.Remaining)
	}
	switch a.Beyond {
	case limiter.Nothing:
		c.reply.Array(5)
		c.sendNumbers(&v.Verdict)
	case limiter.WaitTime:
		c.reply.Array(6)
		c.sendNumbers(&v.Verdict)
		c.reply.Int(v.WaitMs)
	case limiter.LeaseID:
		c.reply.Array(6)
		c.sendNumbers(&v.Verdict)
		c.sendID(v.ID)
	}
}

// sendID sends the id of a lease, or null.
func (c *Ctx) sendID(id []byte) {
	if id == nil {
		c.reply.Null()
	} else {
		c.reply.Bulk(id)
	}
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
	limiter.Policy
	limiter.Request
}

// readLimit reads a limiter's arguments after the key, or sends the error and returns false.
func (c *Ctx) readLimit(said *limit, a *limiter.Algorithm) bool {
	*said = limit{}
	if err := a.ReadCall(&said.Policy, &said.Request, c.args[2:]); err != nil {
		c.errLimiter(err)
		return false
	}
	if !said.HasMember { // which is in the client's input buffer
		said.shape = c.shape
	}
	return true
}
