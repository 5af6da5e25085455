package limiter

import "headgate/throttle"

// State is where limiters keep the state of keys. Nothing else checks whether data may be written, logs changes and publishes key-space
// events.
//
// An implementation whose answers arrive later runs the remaining steps of a Call when they do: a Call carries all that they need.
type State interface {
	// Load finds what a call wants to know. The error is one for the client: a key of another kind, or with what no limiter writes.
	Load(c *Call) error
	// Keep does what a call's Change says. If that cannot be kept nothing is changed, and the error says why.
	Keep(c *Call) error
}

// Call is one request to a limiter, from the question to the answer. It is reused from call to call, so that a call allocates nothing.
type Call struct {
	Policy  *Policy // nil for what changes a lease
	Request *Request
	NowMs   int64 // Unix time
	NowNs   int64 // the same instant

	Want    Want
	Found   Found
	Verdict Verdict
	Change  Change

	counts []int64 // memory for a sliding window's decision
}

// Want is what a decision needs to know about a key. A number or slices are loaded whole. Of entries, those later than After and not later
// than Until count.
type Want struct {
	Kind Kind

	After, Until int64 // ms

	Member    []byte // if HasMember: the id whose time is wanted
	HasMember bool

	// Ranks names the entries whose times the decision may ask for: 0 is the newest one that counts. It asks for none that does not exist.
	Ranks [3]int64
}

// Forever is an instant later than all entries.
const Forever = 1 << 53

// Found is what was found out about a key.
type Found struct {
	Exists     bool
	Number     int64 // of a Number
	ExpireAtMs int64 // of a Number: 0 for never

	Slices []Slice // the whole hash

	Expired    int   // entries that come before those that count
	Used       int64 // entries that count
	MemberHeld bool
	MemberAt   int64                  // the time of the wanted member, if that is held, counting or not
	At         func(rank int64) int64 // the time of one of the wanted ranks
}

// Slice is one of a hash of slices.
type Slice struct {
	Start int64 // ms
	Count int64 // in a Change, 0 removes the slice
}

// Change is what a decision asks State to do with a key.
type Change struct {
	Write      throttle.Write // Keep: nothing
	ExpireAtMs int64          // with Set: when the key expires; 0: its expiry stays as it is

	Number int64

	Slices  []Slice // those to set or to remove
	Replace bool    // all other slices are removed

	RemoveNewest int    // how many of the newest entries that count are removed
	Remove       []byte // if not nil: this member is removed
	Trim         bool   // entries that no longer count may be removed
	Add          int    // how many entries are added at AddAt
	Member       []byte // if not nil: this member is set to AddAt
	AddAt        int64  // ms
	Drawn        bool   // Member was drawn for this call, so it takes no more room than an entry that no longer counts
}

// Verdict is the answer to a Call.
type Verdict struct {
	throttle.Verdict
	WaitMs int64  // with WaitTime: how long to hold the request back, -1 when it is limited
	ID     []byte // with LeaseID: the lease that the call has taken, or nil
	Draw   bool   // the ID is still to be drawn
}

// StartsBlock reports whether a call of a cost has exceeded the limit, so that a policy with BLOCK blocks its key. A cost that can never pass has not: the
// caller's other calls, which may be within the limit, would be blocked for it.
func (v *Verdict) StartsBlock(cost int64) bool {
	return v.Limited && cost > 0 && v.RetryAfter != throttle.NoRetry
}

// Prepare sets the Want of a call at an instant.
func (c *Call) Prepare(p *Policy, r *Request, nowMs, nowNs int64) {
	c.Policy, c.Request, c.NowMs, c.NowNs = p, r, nowMs, nowNs
	c.Want.Kind = p.Algorithm.Kind
	if prepare := p.Algorithm.Prepare; prepare != nil {
		prepare(c)
	}
}

// Decide sets the Verdict and the Change of a call from what was found.
func (c *Call) Decide() error {
	c.Change.Write = throttle.Keep
	return c.Policy.Algorithm.Decide(c)
}

// set copies the verdict of package throttle, and clears the rest.
func (c *Call) set(v *throttle.Verdict) {
	c.Verdict = Verdict{Verdict: *v}
}

// Unlimited answers a call of a policy without a limit, which has no state.
func (c *Call) Unlimited(p *Policy, r *Request) {
	c.Verdict = Verdict{Verdict: throttle.Unlimited}
	c.Change.Write = throttle.Keep
	if p.Algorithm.Beyond == LeaseID && !r.Call.Peek && r.Call.Cost > 0 {
		c.Verdict.ID, c.Verdict.Draw = r.Member, !r.HasMember
	}
}
