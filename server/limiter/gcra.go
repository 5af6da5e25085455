package limiter

import (
	"slices"

	"headgate/internal/number"
	"headgate/throttle"
)

// GCRA under its three names. The state is the theoretical arrival time in ns, which CL.THROTTLE and GCRA keep too.

var gcra = Algorithm{
	Name: "GCRA", Since: "headgate 0.1.0", Complexity: "O(1)",
	Summary:   "Decide by GCRA: a capacity that can be used at once and is refilled at a steady rate.",
	Guarantee: "within any time t at most capacity + count · t / period pass (less than one more where the count does not divide the period); `CL.THROTTLE` and `GCRA` decide alike",
	Burst:     "up to the capacity, whenever that much has been saved up", Memory: "55 bytes",
	Seen:    "a burst, then one request per period / count; it may retry soon, since capacity comes back steadily",
	Example: "1000 1000 60s", Says: "1,000 per minute",
	Args: []Arg{
		limitArg("capacity", "the most units that can be taken at once"), countArg("count", "units given back in each period"),
		periodArg("the time in which that many units are given back"),
	}, Words: 3,
	Errors: rateErrors, Kind: Number, Returns: ReturnBacklog,
	Read: readRate, Text: textOfRate, Decide: decideRate,
}

var bucket = Algorithm{
	Name: "BUCKET", Since: "headgate 0.1.0", Complexity: "O(1)",
	Summary:   "Take tokens from a bucket that is refilled at a steady rate. Decides as RL.GCRA does, in the terms of a token bucket.",
	Guarantee: "the same, as a token bucket: within any time t at most capacity + refill · t / period pass",
	Burst:     "up to the capacity", Memory: "55 bytes",
	Seen:    "the same",
	Example: "100 100 1s", Says: "100 tokens, 100 per second",
	Args: []Arg{
		limitArg("capacity", "the most tokens that the bucket holds"), countArg("refill", "tokens added in each period"),
		periodArg("the time in which that many tokens are added"),
	}, Words: 3,
	Errors: rateErrors, Kind: Number, Returns: ReturnBacklog,
	Read: readRate, Text: textOfRate, Decide: decideRate,
}

var queue = Algorithm{
	Name: "QUEUE", Since: "headgate 0.1.0", Complexity: "O(1)",
	Summary:   "Decide as RL.GCRA does, for a queue that releases requests at a steady rate: a sixth number says for how many milliseconds to delay this one.",
	Guarantee: "the same at the door of a leaky bucket that is a queue; what lies behind it sees at most one request per period / count",
	Burst:     "none behind it; the capacity is the length of the queue", Memory: "55 bytes",
	Seen:    "a sixth number: how long to hold the request back",
	Example: "100 100 1s", Says: "a queue of 100, 100 per second",
	Args: []Arg{
		limitArg("capacity", "the most units that can wait in the queue"), countArg("count", "units that leave the queue in each period"),
		periodArg("the time in which that many units leave"),
	}, Words: 3,
	Errors: rateErrors, Kind: Number, Beyond: WaitTime, Returns: ReturnBacklog,
	Read: readRate, Text: textOfRate, Decide: decideQueue,
}

// numberErrors are those of limiters whose state holds numbers: for options that are none, stand twice or do not go together; for a product
// beyond 64 bits; for a key's text that is no number, and for a key of another kind.
var numberErrors = []Error{ErrSyntax, ErrNotInteger, ErrForeign, ErrWrongType}

// rateErrors are those of limiters with a period.
var rateErrors = slices.Concat(periodErrors, numberErrors)

func readRate(p *Policy, words [][]byte) (err error) {
	if err = p.readLimit(words[0]); err != nil {
		return err
	}
	count, ok := number.ParseInt(words[1])
	if !ok || count < 1 {
		return p.Algorithm.BadArgument(1, words[1])
	}
	periodNs, err := parsePeriod(words[2])
	if err != nil || p.Limit < 0 {
		return err
	}
	if p.Rate, err = throttle.NewRate(p.Limit, count, periodNs); err != nil {
		return ErrNotInteger
	}
	return nil
}

func textOfRate(_ *Policy, i int, word []byte) string {
	if i == 2 {
		return withUnit(word)
	}
	return string(word)
}

func decideRate(c *Call) error {
	var d throttle.Decision
	if c.Policy.Rate.ChargeTo(&d, c.NowNs, c.Found.Number, c.Found.Exists, c.Request.Call) != nil {
		return ErrNotInteger
	}
	v := &c.Verdict
	v.Limited, v.Limit, v.Remaining = d.Limited, d.Limit, d.Remaining
	v.RetryAfter, v.ResetAfter = throttle.RetryMillis(d.RetryAfter), throttle.Millis(d.ResetAfter)
	v.ID, v.Draw = nil, false
	if d.Write != throttle.Keep {
		c.Change.Write, c.Change.Number, c.Change.ExpireAtMs = d.Write, d.TAT, throttle.ExpireAtMs(d.TAT)
	}
	return nil
}

func decideQueue(c *Call) error {
	if err := decideRate(c); err != nil {
		return err
	}
	c.Verdict.WaitMs = throttle.NoRetry
	if !c.Verdict.Limited {
		c.Verdict.WaitMs = throttle.Millis(c.Policy.Rate.Wait(c.NowNs, c.Found.Number, c.Found.Exists))
	}
	return nil
}
