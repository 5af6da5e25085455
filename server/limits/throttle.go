package limits

import (
	"errors"
	"fmt"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/throttle"
)

// throttleCommands are redis-cell's command under its two names.
func throttleCommands(l *Limits) []*command.Command {
	return []*command.Command{
		{
			Name: "cl.throttle", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(1)",
			Summary: "Decide by GCRA whether an action is allowed now, and charge it if so. The command of redis-cell.",
			Arity:   -1, Flags: command.Write | command.DenyOOM | command.Fast | command.DecidesFirst, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
			Args:   throttleArgs,
			Errors: throttleErrors,
			Reply:  command.ReplyArray, Returns: numbersInSeconds("millisecond"), Handler: l.either(l.throttle, l.throttleElsewhere),
		},
		{
			Name: "rl.throttle", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(1)",
			Summary: "CL.THROTTLE by the name that was proposed for Valkey.",
			Arity:   -1, Flags: command.Write | command.DenyOOM | command.Fast | command.DecidesFirst, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
			Args:   throttleArgs,
			Errors: throttleErrors,
			Reply:  command.ReplyArray, Returns: numbersInSeconds("millisecond"), Handler: l.either(l.throttle, l.throttleElsewhere),
		},
	}
}

var throttleArgs = []command.Arg{
	keyArg,
	command.Integer("max-burst").Fails(errThrottleParse).Means("units that can be taken at once beyond the first, 0 or more: the limit is one higher, unless `cl-throttle-limit` says otherwise. As in redis-cell, -1 or less is no error: no call that takes units passes"),
	command.Integer("count").Fails(errThrottleParse).Means("units given back in each period, 1 or more"),
	command.Integer("period").Fails(errThrottleParse).Means("the time in which that many units are given back, in seconds, 1 or more"),
	command.Integer("quantity").Opt().Fails(errThrottleParse).Means("units to take, 1 by default; a negative number gives units back, 0 takes none"),
}

// numbersInSeconds is what limiters return that count in seconds, after they have dropped what is below a unit of time.
func numbersInSeconds(unit string) []string {
	return []string{
		fiveNumbers[0], "limit: the most units that can be taken at once, which is max-burst + 1", "remaining: units left after this call",
		"retry_after: seconds until the same call would be allowed, without what is below a " + unit + ", rounded up, and at least 1; -1 if it was allowed, or never will be",
		"reset_after: seconds until the limit is unused again, without what is below a " + unit + ", rounded up: less than a " + unit + " is 0",
	}
}

var throttleErrors = []string{errThrottleUsage, errZeroRates, command.ErrNotInteger, command.ErrWrongType}

// Errors in redis-cell's words, which its clients match on; they carry no code.
const (
	errThrottleUsage = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	errThrottleParse = "Cell error: Store error: Couldn't parse as integer: %s"
	errZeroRates     = "Cell error: Store error: Zero rates are not supported"
)

// throttle implements CL.THROTTLE key max_burst count period [quantity].
func (l *Limits) throttle(c *command.Ctx) {
	q := &recent(c).quota
	if (c.Shape == 0 || c.Shape != q.shape || c.Cfg != q.cfg) && !readQuota(c, q) {
		return
	}
	var d throttle.Decision
	if !l.decideTAT(c, &q.gcra, q.quantity, &d) {
		return
	}
	c.Reply.Array(5)
	c.Reply.Ints(oneIf(d.Limited), d.Limit, d.Remaining, throttle.RetrySeconds(d.RetryAfter), throttle.Seconds(d.ResetAfter))
}

// decideTAT has g decide about the TAT at the call's key, keeps what the decision, which is written to d, asks for, and counts it if it takes units;
// or it sends the error and returns false.
func (l *Limits) decideTAT(c *command.Ctx, g *throttle.GCRA, quantity int64, d *throttle.Decision) (ok bool) {
	k := c.Key(1)
	tat, exists, err := l.number(c, k)
	if err != nil {
		errLimiter(c, err)
		return false
	}
	if err := g.DecideTo(d, c.NowNs, tat, exists, quantity); err != nil {
		failThrottle(c, err)
		return false
	}
	if err := l.keepTAT(d); err != nil {
		errLimiter(c, err)
		return false
	}
	if quantity > 0 {
		l.decided(c, k, l.gcra, d.Limited, d.Limit, d.Remaining)
	}
	return true
}

// throttleQuota is what CL.THROTTLE's arguments after the key say. Most calls repeat those of the call before, so that a worker keeps
// the last ones.
type throttleQuota struct {
	shape    uint64         // of the command that they were read from, see command.Known; 0: none is kept
	cfg      *config.Config // they were read under
	gcra     throttle.GCRA
	quantity int64
}

// readQuota reads CL.THROTTLE's arguments after the key, or sends the error and returns false.
func readQuota(c *command.Ctx, q *throttleQuota) bool {
	q.shape = 0
	if len(c.Args) < 5 || len(c.Args) > 6 {
		c.Err(errThrottleUsage)
		return false
	}
	number := [4]int64{3: 1} // max_burst, count, period, quantity
	for i, arg := range c.Args[2:] {
		n, ok := parseSigned(arg)
		if !ok {
			c.Errf(errThrottleParse, arg)
			return false
		}
		number[i] = n
	}
	g, err := cellGCRA(c, number[0], number[1], number[2])
	if err != nil {
		failThrottle(c, err)
		return false
	}
	*q = throttleQuota{c.Shape, c.Cfg, g, number[3]}
	return true
}

// cellGCRA returns the algorithm for CL.THROTTLE's arguments, read as cl-throttle-limit says.
func cellGCRA(c *command.Ctx, burst, count, period int64) (throttle.GCRA, error) {
	if c.Cfg.CLThrottleLimit == config.LimitCapacity {
		return throttle.NewCapacityGCRA(burst, count, period)
	}
	return throttle.NewGCRA(throttle.Quota{MaxBurst: burst, Count: count, Period: period})
}

// failThrottle sends the wire form of an error from the algorithm.
func failThrottle(c *command.Ctx, err error) {
	switch {
	case errors.Is(err, throttle.ErrZeroRate):
		c.Err(errZeroRates)
	case errors.Is(err, throttle.ErrOverflow):
		c.Err(command.ErrNotInteger)
	default:
		panic(fmt.Sprintf("limits: unexpected error from throttle: %v", err))
	}
}

// maxNumberLength bounds the digits of a number argument: leading zeros may make one longer than an int64 is.
const maxNumberLength = 64

// parseSigned parses a whole decimal number with one optional sign, as redis-cell does: leading zeros are fine, spaces and
// fractions are not.
func parseSigned(b []byte) (int64, bool) {
	digits, negative := b, false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative, digits = b[0] == '-', b[1:]
	}
	if len(digits) == 0 || len(digits) > maxNumberLength {
		return 0, false
	}
	var n uint64
	for _, d := range digits {
		d -= '0'
		if d > 9 || n > (1<<63)/10 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	switch {
	case negative && n <= 1<<63:
		return -int64(n), true
	case !negative && n < 1<<63:
		return int64(n), true
	}
	return 0, false
}
