package limiter

import (
	"slices"

	"headgate/throttle"
)

// log keeps entries, or ids, with their times.
var log = Algorithm{
	Name: "LOG", Since: "headgate 0.1.0", Complexity: "O(log n + cost) in the number of entries",
	Summary:   "Count calls in a sliding window exactly, by a log of those that were allowed; with MEMBER, count different ids.",
	Guarantee: "never more than limit in any window, exactly",
	Burst:     "the whole limit at once", Memory: "27 bytes per admitted request up to 128, some 3 to 6 beyond",
	Seen:    "passes again exactly when its oldest request leaves the window",
	Example: "10 1s", Says: "10 per second",
	Args: []Arg{
		limitArg("limit", "the most units, or different ids, within any window"), durationArg("window", "the length of the window"),
		{Name: "id", Type: "string", Token: "MEMBER", Optional: true, Summary: "count different ids instead of calls: one that was counted within the window passes without a charge; a cost of -1 removes it, and one above 1 is refused"},
	}, Words: 2,
	Options: []Option{memberOption},
	Errors:  slices.Concat(DurationErrors, []Error{ErrSyntax, errMemberCost, ErrLogCost, ErrWrongType}), Kind: Entries, Returns: ReturnEntries,
	Read: readWindow, Text: textOfWindow, Finish: finishLog, Costs: ErrLogCost, CheckCost: checkLogCost,
	Prepare: prepareLog, Decide: decideLog,
}

// errMemberCost is what a cost is answered with that one id cannot have.
const errMemberCost = Error("ERR with MEMBER the cost must be 1 or less")

// ErrLogCost is what a cost above MaxLogCost is answered with.
const ErrLogCost = Error("ERR cost of a log must be <= 100000, for all logs of a call together")

// MaxLogCost is how many entries one call may add to sliding logs, so that none holds up the others for long: with an append-only file each
// costs about a microsecond.
const MaxLogCost = 100_000

func checkLogCost(p *Policy, cost int64) bool { return cost <= MaxLogCost || cost > p.Limit }

func finishLog(_ *Policy, r *Request) error {
	if r != nil && r.HasMember && r.Call.Cost > 1 {
		return errMemberCost
	}
	return nil
}

func logOf(p *Policy) throttle.Log { return throttle.Log{Limit: p.Limit, Window: p.Window} }

func prepareLog(c *Call) {
	cost := c.Request.Call.Cost
	c.Want.After, c.Want.Until = logOf(c.Policy).Since(c.NowMs), c.NowMs
	c.Want.Member, c.Want.HasMember = c.Request.Member, c.Request.HasMember
	// The newest of those that stay, which are fewer by one when a member is given back, and the last of those that have to leave for the
	// cost to fit.
	c.Want.Ranks = [3]int64{0, max(1, -max(cost, -Forever)), c.Policy.Limit - max(cost, 0)}
}

func decideLog(c *Call) error {
	f, r, call := &c.Found, c.Request, c.Request.Call
	l := logOf(c.Policy)
	inside := r.HasMember && f.MemberHeld && f.MemberAt > c.Want.After && f.MemberAt <= c.Want.Until
	switch {
	case inside && call.Cost >= 0: // an id that is already counted is allowed again without a charge, and a peek answers the same
		c.look(l, f.Used, 0)
		return nil
	case r.HasMember && call.Cost < 0:
		c.forget(l, inside)
		return nil
	}
	d := l.Decide(c.NowMs, f.Used, func(i int64) int64 { return f.At(f.Used - 1 - i) }, call)
	c.set(&d.Verdict)
	if d.Write == throttle.Keep {
		return nil
	}
	c.Change = Change{
		Write: d.Write, ExpireAtMs: d.ExpireAtMs, Slices: c.Change.Slices,
		RemoveNewest: int(d.Remove), Trim: true, Add: int(d.Add), AddAt: c.NowMs,
	}
	if r.HasMember && d.Add > 0 {
		c.Change.Add, c.Change.Member = 0, r.Member
	}
	return nil
}

// look answers a call that passes in any case: so many entries are used, of which the newest has a rank.
func (c *Call) look(l throttle.Log, used, newest int64) (d throttle.LogDecision) {
	d = l.Decide(c.NowMs, used, func(int64) int64 { return c.Found.At(newest) }, throttle.Call{Peek: true})
	c.set(&d.Verdict)
	c.Verdict.Limited, c.Verdict.RetryAfter = false, throttle.NoRetry
	return d
}

// forget gives the call's id back, if it is inside.
func (c *Call) forget(l throttle.Log, inside bool) {
	f := &c.Found
	if !inside || c.Request.Call.Peek {
		c.look(l, f.Used, 0)
		return
	}
	newest := int64(0)
	if f.Used > 1 && f.At(0) == f.MemberAt {
		newest = 1 // or the id is that, and both are of the same time
	}
	d := c.look(l, f.Used-1, newest)
	c.Change = Change{Write: throttle.Set, Remove: c.Request.Member, Slices: c.Change.Slices}
	if f.Used > 1 {
		c.Change.ExpireAtMs = d.ExpireAtMs
	}
}
