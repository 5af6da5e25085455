package server

import (
	"math"

	"headgate/internal/number"
	"headgate/throttle"
)

// gcraCommand is the command that Redis's developers previewed before 8.8, which client libraries have kept.
func gcraCommand(l *Limits) *Command {
	return &Command{
		Name: "gcra", Group: GroupThrottle, Since: "8.8.0 (preview)", Complexity: "O(1)",
		Summary: "CL.THROTTLE with a period that may be a fraction of a second, counted in microseconds.",
		Arity:   -5, Flags: Write | DenyOOM | Fast | DecidesFirst, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{
			key("key"), integer("max-burst").fails(errNotInteger), integer("tokens-per-period").fails(errNotInteger),
			double("period").fails(errNotFloat), integer("count").after("TOKENS").opt().fails(errNotInteger),
		},
		Errors: []string{errNotPositive, errNotOneOrMore, errGCRAPeriod, errSyntax, errMissingTokens, errNotZeroOrMore, errWrongType},
		Reply:  ReplyArray, Handler: l.decideGCRA,
	}
}

// Errors of GCRA.
const (
	errGCRAPeriod    = "ERR period must be > 0 and < 1e12"
	errMissingTokens = "ERR Missing TOKENS value"
	errNotZeroOrMore = "ERR value is out of range, value must between 0 and 9223372036854775807"
	errNotOneOrMore  = "ERR value is out of range, value must between 1 and 9223372036854775807"
)

const (
	maxGCRAPeriod = 1e12 // seconds
	usPerSecond   = 1e6
	nsPerUs       = 1000
)

// decideGCRA implements GCRA key max-burst tokens-per-period period [TOKENS count].
func (l *Limits) decideGCRA(c *Ctx) {
	g, tokens, ok := c.gcraArgs()
	if !ok {
		return
	}
	k := c.key(1)
	tat, exists, err := l.number(c, k)
	if err != nil {
		c.errLimiter(err)
		return
	}
	var d throttle.Decision
	if g.DecideTo(&d, c.nowNs, tat, exists, tokens) != nil {
		c.err(errNotInteger)
		return
	}
	if err := l.keepTAT(&d); err != nil {
		c.errLimiter(err)
		return
	}
	if tokens > 0 {
		l.decided(c, k, l.gcra, d.Limited, d.Limit, d.Remaining)
	}
	c.reply.Array(5)
	retry := throttle.NoRetry
	if d.RetryAfter >= 0 {
		retry = max(1, throttle.SecondsOfMicros(d.RetryAfter))
	}
	c.sendNumbers(&throttle.Verdict{
		Limited: d.Limited, Limit: d.Limit, Remaining: d.Remaining,
		RetryAfter: retry, ResetAfter: throttle.SecondsOfMicros(d.ResetAfter),
	})
}

// gcraArgs reads GCRA's arguments after the key, or sends the error and returns false.
func (c *Ctx) gcraArgs() (g throttle.GCRA, tokens int64, ok bool) {
	burst, ok := c.integerFrom(2, 0, errNotPositive)
	if !ok {
		return g, 0, false
	}
	perPeriod, ok := c.integerFrom(3, 1, errNotOneOrMore)
	if !ok {
		return g, 0, false
	}
	period, ok := number.ParseFloat(c.args[4])
	switch {
	case !ok:
		c.err(errNotFloat)
		return g, 0, false
	case period <= 0 || period >= maxGCRAPeriod:
		c.err(errGCRAPeriod)
		return g, 0, false
	}
	if tokens, ok = c.gcraTokens(); !ok {
		return g, 0, false
	}
	interval := max(1, math.Floor(period*usPerSecond/float64(perPeriod)+0.5))
	if interval >= math.MaxInt64/nsPerUs {
		c.err(errNotInteger)
		return g, 0, false
	}
	g, err := throttle.NewIntervalGCRA(burst, int64(interval)*nsPerUs)
	if err != nil {
		c.err(errNotInteger)
		return g, 0, false
	}
	return g, tokens, true
}

// gcraTokens reads TOKENS and its value, 1 when there is none, or sends the error and returns false.
func (c *Ctx) gcraTokens() (tokens int64, ok bool) {
	switch {
	case len(c.args) == 5:
		return 1, true
	case !c.is(5, "TOKENS"):
		c.err(errSyntax)
	case len(c.args) == 6:
		c.err(errMissingTokens)
	case len(c.args) > 7:
		c.err(errSyntax)
	default:
		return c.integerFrom(6, 0, errNotZeroOrMore)
	}
	return 0, false
}

// integerFrom parses args[i] as a whole number of at least low, or sends the error, which for a lower number is tooLow, and returns
// false.
func (c *Ctx) integerFrom(i int, low int64, tooLow string) (int64, bool) {
	n, ok := number.ParseInt(c.args[i])
	switch {
	case !ok:
		c.err(errNotInteger)
	case n < low:
		c.err(tooLow)
	default:
		return n, true
	}
	return 0, false
}
