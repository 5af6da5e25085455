package limits

import (
	"slices"
	"strings"

	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/server/resp"
	"headgate/throttle"
)

// commandOf declares the command of an algorithm. Limiters answer in milliseconds throughout.
func (l *Limits) commandOf(a *limiter.Algorithm) *command.Command {
	args := append([]command.Arg{keyArg}, argsOf(a.Args)...)
	peek := peekArg.Means("ask whether a lease is available, without taking one")
	if !a.NoCost {
		args = append(args, costArg)
		peek = peekArg
	}
	call := &oneLimit{a}
	return &command.Command{
		Name: "rl." + strings.ToLower(a.Name), Group: command.GroupThrottle, Since: a.Since, Complexity: a.Complexity, Summary: a.Summary,
		Arity: -2 - a.Words, Flags: command.Write | command.DenyOOM | command.Fast | command.DecidesFirst, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: append(args, peek, waitArg), Errors: append(errorsOf(a.Errors...), string(limiter.ErrLongWait)),
		Reply: command.ReplyArray, Returns: returnsOf(a.Beyond), Handler: l.either(func(c *command.Ctx) { l.answer(c, call) }, func(c *command.Ctx) { l.answerElsewhere(c, call) }),
	}
}

// argsOf says package limiter's arguments in the terms of commands.
func argsOf(list []limiter.Arg) []command.Arg {
	args := make([]command.Arg, len(list))
	for i, a := range list {
		args[i] = command.Arg{Name: a.Name, Type: a.Type, Token: a.Token, Optional: a.Optional, Error: a.Error, Summary: a.Summary}
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
			texts[i] = command.ErrUsage
		}
	}
	return texts
}

// sortedByName puts commands into the order of their names.
func sortedByName(commands []*command.Command) []*command.Command {
	slices.SortFunc(commands, func(a, b *command.Command) int { return strings.Compare(a.Name, b.Name) })
	return commands
}

// Arguments that the limiters share.
var (
	keyArg  = command.Key("key").Means("the key that is limited, and under which its state is kept")
	costArg = command.Integer("n").After(limiter.CostWord).Opt().Fails(limiter.InvalidInteger(limiter.CostWord)).Means("units to take, 1 by default; a negative number gives units back, 0 takes none")
	peekArg = command.Tok("PEEK").Opt().Means("answer without charging anything; the cost is 0 unless it is given")
	waitArg = command.Str("duration").Fails(limiter.InvalidDuration).After(limiter.WaitWord).Opt().
		Means("wait for up to this long until the call is allowed, from 1ms to 1h; a bare number is milliseconds")
)

func durationArg(name, summary string) command.Arg {
	return command.Str(name).Fails(limiter.InvalidDuration).Means(summary + limiter.DurationRange)
}

// fiveNumbers is what all limiters return that count in milliseconds.
var fiveNumbers = []string{
	"limited: 0 if the call was allowed, 1 if it was limited",
	"limit: the most units that can be taken at once; -1 without a limit",
	"remaining: units left after this call; -1 without a limit",
	"retry_after: milliseconds until the same call would be allowed; -1 if it was allowed, or never will be",
	"reset_after: milliseconds until the limit is unused again",
}

// returnsOf says what an answer has beyond the five numbers.
func returnsOf(beyond limiter.Beyond) []string {
	switch beyond {
	case limiter.WaitTime:
		return append(slices.Clip(fiveNumbers), "wait: milliseconds to hold the request back; -1 if it was limited")
	case limiter.LeaseID:
		return append(slices.Clip(fiveNumbers), "id: of the lease; null if none was taken")
	}
	return fiveNumbers
}

// answer implements the commands that are called with a key and an algorithm's words.
func (l *Limits) answer(c *command.Ctx, call *oneLimit) {
	a, said := call.algorithm, &recent(c).limit
	if (c.Shape == 0 || c.Shape != said.shape) && !l.readLimit(c, said, a) {
		return
	}
	k := c.Key(1)
	if l.concernsWaits(said.Wait) {
		pairs := l.pairOf(k, said)
		l.answerInTurn(c, call, pairs, said.Call.Peek, said.Wait)
		clear(pairs)
		return
	}
	if err := l.decide(c, k, &said.Policy, &said.Request); err != nil {
		errLimiter(c, err)
		return
	}
	v := &l.Asked.Verdict
	if said.Call.Cost > 0 && !said.Call.Peek {
		l.decided(c, k, a, v.Limited, v.Limit, v.Remaining)
	}
	SendVerdict(c.Reply, a.Beyond, v)
}

// sendID sends the id of a lease, or null.
func sendID(w *resp.Writer, id []byte) {
	if id == nil {
		w.Null()
	} else {
		w.Bulk(id)
	}
}

// recentLimits are what the last limiters of a worker were called with.
type recentLimits struct {
	quota throttleQuota // by CL.THROTTLE
	limit limit         // by those of another name
	cell  throttle.GCRA // by GCRA, for Remote
}

// Bytes implements command.Sized.
func (*recentLimits) Bytes() int { return recentLimitsBytes }

// recentLimitsBytes is about what the last limits of a worker take up.
const recentLimitsBytes = 512

// recent returns the last limits of the worker that runs the command.
func recent(c *command.Ctx) *recentLimits {
	r, _ := c.Turn.Limits.(*recentLimits)
	if r == nil {
		r = &recentLimits{}
		c.Turn.Limits = r
	}
	return r
}

// limit is what a limiter's arguments after the key say. Most calls repeat those of the call before, so that a worker keeps the last ones.
type limit struct {
	shape uint64 // of the command that they were read from, see command.Known; 0: they are not to be used again
	limiter.Policy
	limiter.Request
}

// readLimit reads a limiter's arguments after the key, or sends the error and returns false.
func (l *Limits) readLimit(c *command.Ctx, said *limit, a *limiter.Algorithm) bool {
	*said = limit{}
	if err := a.ReadCall(&said.Policy, &said.Request, c.Args[2:]); err != nil {
		errLimiter(c, err)
		return false
	}
	l.watchUnits(c, a.CallDuration(c.Args[2:]))
	if !said.HasMember { // which is in the client's input buffer
		said.shape = c.Shape
	}
	return true
}
