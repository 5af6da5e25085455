package server

import (
	"errors"
	"fmt"

	"headgate/server/config"
	"headgate/throttle"
)

// throttleCommands are redis-cell's command under its two names.
func throttleCommands(l *Limits) []*Command {
	return []*Command{
		{
			Name: "cl.throttle", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(1)",
			Summary: "Decide by GCRA whether an action may happen now, and charge it if so; redis-cell's command.",
			Arity:   -1, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
			Args:   throttleArgs,
			Errors: throttleErrors,
			Reply:  ReplyArray, Handler: l.throttle,
		},
		{
			Name: "rl.throttle", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(1)",
			Summary: "CL.THROTTLE under the name proposed for Valkey.",
			Arity:   -1, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
			Args:   throttleArgs,
			Errors: throttleErrors,
			Reply:  ReplyArray, Handler: l.throttle,
		},
	}
}

var throttleArgs = []Arg{
	key("key"), integer("max-burst").fails(errThrottleParse), integer("count").fails(errThrottleParse),
	integer("period").fails(errThrottleParse), integer("quantity").opt().fails(errThrottleParse),
}

var throttleErrors = []string{errThrottleUsage, errZeroRates, errNotInteger, errWrongType}

// Errors in redis-cell's words, which its clients match on; they carry no code.
const (
	errThrottleUsage = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	errThrottleParse = "Cell error: Store error: Couldn't parse as integer: %s"
	errZeroRates     = "Cell error: Store error: Zero rates are not supported"
)

// throttle implements CL.THROTTLE key max_burst count period [quantity].
func (l *Limits) throttle(c *Ctx) {
	q := &c.recent().quota
	if (c.shape == 0 || c.shape != q.shape || c.cfg != q.cfg) && !c.readQuota(q) {
		return
	}
	k := c.key(1)
	tat, exists, err := l.number(c, k)
	if err != nil {
		c.errLimiter(err)
		return
	}
	var d throttle.Decision
	if err := q.gcra.DecideTo(&d, c.nowNs, tat, exists, q.quantity); err != nil {
		c.failThrottle(err)
		return
	}
	if err := l.keepTAT(&d); err != nil {
		c.errLimiter(err)
		return
	}
	if q.quantity > 0 {
		l.decided(c, k, l.gcra, d.Limited, d.Limit, d.Remaining)
	}
	c.reply.Array(5)
	c.reply.Ints(oneIf(d.Limited), d.Limit, d.Remaining, throttle.RetrySeconds(d.RetryAfter), throttle.Seconds(d.ResetAfter))
}

// throttleQuota is what CL.THROTTLE's arguments after the key say. Most calls repeat those of the call before, so that a worker keeps
// the last ones.
type throttleQuota struct {
	shape    uint64         // of the command that they were read from, see known; 0: none is kept
	cfg      *config.Config // they were read under
	gcra     throttle.GCRA
	quantity int64
}

// readQuota reads CL.THROTTLE's arguments after the key, or sends the error and returns false.
func (c *Ctx) readQuota(q *throttleQuota) bool {
	q.shape = 0
	if len(c.args) < 5 || len(c.args) > 6 {
		c.err(errThrottleUsage)
		return false
	}
	number := [4]int64{3: 1} // max_burst, count, period, quantity
	for i, arg := range c.args[2:] {
		n, ok := parseSigned(arg)
		if !ok {
			c.errf(errThrottleParse, arg)
			return false
		}
		number[i] = n
	}
	g, err := c.cellGCRA(number[0], number[1], number[2])
	if err != nil {
		c.failThrottle(err)
		return false
	}
	*q = throttleQuota{c.shape, c.cfg, g, number[3]}
	return true
}

// cellGCRA returns the algorithm for CL.THROTTLE's arguments, read as cl-throttle-limit says.
func (c *Ctx) cellGCRA(burst, count, period int64) (throttle.GCRA, error) {
	if c.cfg.CLThrottleLimit == config.LimitCapacity {
		return throttle.NewCapacityGCRA(burst, count, period)
	}
	return throttle.NewGCRA(throttle.Quota{MaxBurst: burst, Count: count, Period: period})
}

// failThrottle sends the wire form of an error from the algorithm.
func (c *Ctx) failThrottle(err error) {
	switch {
	case errors.Is(err, throttle.ErrZeroRate):
		c.err(errZeroRates)
	case errors.Is(err, throttle.ErrOverflow):
		c.err(errNotInteger)
	default:
		panic(fmt.Sprintf("server: unexpected error from throttle: %v", err))
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
