package limiter

import (
	"math"

	"headgate/internal/number"
	"headgate/throttle"
)

// sliding counts in a hash of slices.
var sliding = Algorithm{
	Name: "SLIDING", Since: "headgate 0.1.0", Complexity: "O(n) in the number of slices",
	Summary:   "Count calls in a sliding window that is divided into slices; the oldest slice fades out gradually, so that reset_after is up to a slice longer than the window.",
	Guarantee: "at most limit in the newest whole slices; elsewhere wrong by at most what one slice has admitted, which is a tenth of the window or what `SLICES` says; slices are whole milliseconds, rounded up",
	Burst:     "the whole limit at once", Memory: "71 to 327 bytes with 10 slices",
	Seen:    "much like a log; a retry time that holds",
	Example: "100 10s", Says: "100 per 10 s",
	Args: []Arg{
		limitArg("limit", "the most units that can be taken within any window"), durationArg("window", "the length of the window"),
		{Name: "slices", Type: "integer", Token: "SLICES", Optional: true, Error: invalidSlices, Summary: "how many slices the window is cut into, from 1 to 1000; 10 by default"},
	}, Words: 2,
	Options: []Option{{Token: "SLICES", Value: true, Read: func(p *Policy, _ *Request, value []byte) error {
		n, ok := number.ParseInt(value)
		if !ok || n < 1 || n > throttle.MaxSlices {
			return Quoting(invalidSlices, value)
		}
		p.slices = int(n)
		return nil
	}}},
	Errors: windowErrors, Kind: Slices, Returns: ReturnSlice,
	Read: readWindow, Text: textOfWindow, Finish: finishSliding, Decide: decideSliding,
}

// invalidSlices is what a word is answered with that is no number of slices; %s stands for the word.
const invalidSlices = "ERR slices must be from 1 to 1000, not '%s'"

// defaultSlices is how many slices a sliding window has when it is not said.
const defaultSlices = 10

func finishSliding(p *Policy, _ *Request) error {
	if p.slices == 0 {
		p.slices = defaultSlices
	}
	p.slices = int(min(int64(p.slices), p.Window)) // a slice is a millisecond at least, and more of them would count for longer than the window
	if p.Limit >= 0 {
		p.Sliding = throttle.NewSliding(p.Limit, p.Window, p.slices)
	}
	return nil
}

// maxForgotten is how many slices that count no longer one call takes out, so that no call takes long however many these are. It is
// above what a call adds, so the hash shrinks.
const maxForgotten = 8

func decideSliding(c *Call) error {
	w := c.Policy.Sliding
	counts := c.countsOf(w)
	changed := c.Change.Slices[:0]
	foreign := false // slices of another length count among these
	for _, s := range c.Found.Slices {
		i, counting := w.Index(c.NowMs, s.Start)
		switch {
		case counting:
			if counts[i] += s.Count; counts[i] < 0 {
				counts[i] = math.MaxInt64
			}
			foreign = foreign || s.Start != w.StartOf(c.NowMs, i)
		case s.Start > c.NowMs: // which stays until it counts, if the key lives so long
		case len(changed) < maxForgotten:
			changed = append(changed, Slice{Start: s.Start})
		}
	}
	d := w.Decide(c.NowMs, counts, c.Request.Call)
	c.set(&d.Verdict)
	if d.Write != throttle.Keep {
		c.Change.Write, c.Change.ExpireAtMs, c.Change.Replace = d.Write, d.ExpireAtMs, foreign
		if foreign {
			// The slices of another length are summed up in ours: those alone stay. What is of the future goes too.
			changed, d.LastChanged = changed[:0], len(counts)-1
		}
		for i, count := range counts[:d.LastChanged+1] {
			if count > 0 || !foreign {
				changed = append(changed, Slice{Start: w.StartOf(c.NowMs, i), Count: count})
			}
		}
	}
	c.Change.Slices = changed
	return nil
}

// countsOf is memory for the counts of a sliding window, all of them 0.
func (c *Call) countsOf(w throttle.Sliding) []int64 {
	if n := w.Counts(); cap(c.counts) < n {
		c.counts = make([]int64, n)
	}
	c.counts = c.counts[:w.Counts()]
	clear(c.counts)
	return c.counts
}
