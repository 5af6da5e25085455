package limits

import (
	"math"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/throttle"
)

// gcraCommand is the command that Redis's developers previewed before 8.8, which client libraries have kept.
func gcraCommand(l *Limits) *command.Command {
	return &command.Command{
		Name: "gcra", Group: command.GroupThrottle, Since: "8.8.0 (preview)", Complexity: "O(1)",
		Summary: "CL.THROTTLE with a period that may have fractions of a second, to the microsecond.",
		Arity:   -5, Flags: command.Write | command.DenyOOM | command.Fast | command.DecidesFirst, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{
			keyArg,
			command.Integer("max-burst").Fails(command.ErrNotInteger).Means("units that can be taken at once beyond the first, 0 or more: the limit is one higher"),
			command.Integer("tokens-per-period").Fails(command.ErrNotInteger).Means("units given back in each period, 1 or more"),
			command.Double("period").Fails(command.ErrNotFloat).Means("the time in which that many units are given back, in seconds, above 0 and below 1e12; fractions of a second are counted in microseconds"),
			command.Integer("count").After("TOKENS").Opt().Fails(command.ErrNotInteger).Means("units to take, 0 or more; 1 by default"),
		},
		Errors: []string{command.ErrNotPositive, errNotOneOrMore, errGCRAPeriod, command.ErrSyntax, errMissingTokens, errNotZeroOrMore, command.ErrWrongType},
		Reply:  command.ReplyArray, Returns: numbersInSeconds("microsecond"), Handler: l.either(l.decideGCRA, l.decideGCRAElsewhere),
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
func (l *Limits) decideGCRA(c *command.Ctx) {
	g, tokens, ok := gcraArgs(c)
	if !ok {
		return
	}
	var d throttle.Decision
	if !l.decideTAT(c, &g, tokens, &d) {
		return
	}
	var v throttle.Verdict
	inSecondsOfMicros.Write(&v, &d)
	SendNumbers(c.Reply, &v)
}

// gcraArgs reads GCRA's arguments after the key, or sends the error and returns false.
func gcraArgs(c *command.Ctx) (g throttle.GCRA, tokens int64, ok bool) {
	burst, ok := integerFrom(c, 2, 0, command.ErrNotPositive)
	if !ok {
		return g, 0, false
	}
	perPeriod, ok := integerFrom(c, 3, 1, errNotOneOrMore)
	if !ok {
		return g, 0, false
	}
	period, ok := number.ParseFloat(c.Args[4])
	switch {
	case !ok:
		c.Err(command.ErrNotFloat)
		return g, 0, false
	case period <= 0 || period >= maxGCRAPeriod:
		c.Err(errGCRAPeriod)
		return g, 0, false
	}
	if tokens, ok = gcraTokens(c); !ok {
		return g, 0, false
	}
	interval := max(1, math.Floor(period*usPerSecond/float64(perPeriod)+0.5))
	if interval >= math.MaxInt64/nsPerUs {
		c.Err(command.ErrNotInteger)
		return g, 0, false
	}
	g, err := throttle.NewIntervalGCRA(burst, int64(interval)*nsPerUs)
	if err != nil {
		c.Err(command.ErrNotInteger)
		return g, 0, false
	}
	return g, tokens, true
}

// gcraTokens reads TOKENS and its value, 1 when there is none, or sends the error and returns false.
func gcraTokens(c *command.Ctx) (tokens int64, ok bool) {
	switch {
	case len(c.Args) == 5:
		return 1, true
	case !c.Is(5, "TOKENS"):
		c.Err(command.ErrSyntax)
	case len(c.Args) == 6:
		c.Err(errMissingTokens)
	case len(c.Args) > 7:
		c.Err(command.ErrSyntax)
	default:
		return integerFrom(c, 6, 0, errNotZeroOrMore)
	}
	return 0, false
}

// integerFrom parses args[i] as a whole number of at least low, or sends the error, which for a lower number is tooLow, and returns
// false.
func integerFrom(c *command.Ctx, i int, low int64, tooLow string) (int64, bool) {
	n, ok := number.ParseInt(c.Args[i])
	switch {
	case !ok:
		c.Err(command.ErrNotInteger)
	case n < low:
		c.Err(tooLow)
	default:
		return n, true
	}
	return 0, false
}
