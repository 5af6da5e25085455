package limiter

import "headgate/throttle"

// State is where limiters keep what they know of keys. It alone asks whether there may be written, logs what has changed, and tells of it.
//
// One whose answers come later runs the steps of a Call when they are there: a Call has all that they need.
type State interface {
	// Load finds what a call wants to know. The error is one for the client: a key of another kind, or with what no limiter writes.
	Load(c *Call) error
	// Keep does what a call's Change says. If that cannot be kept nothing is changed, and the error says why.
	Keep(c *Call) error
}

// Call is a question on its way to the answer. It is reused from call to call, so that nothing is allocated for one.
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

// Want is what a decision needs to know of a key: of a number or of slices everything. Of entries those count that are later than After, and
// not later than Until.
type Want struct {
	Kind Kind

	After, Until int64 // ms

	Member    []byte // if HasMember: the id whose time is wanted
	HasMember bool

	// Ranks are those of entries whose times the decision may ask for, counted from the newest that counts, which has 0. Where there is no
	// such entry nobody asks.
	Ranks [3]int64
}

// Forever is an instant later than all entries.
const Forever = 1 << 53

// Found is what is known of a key.
type Found struct {
	Exists     bool
	Number     int64 // of a Number
	ExpireAtMs int64 // of a Number: 0 for never

	Slices []Slice // all that the hash has

	Expired    int   // entries that come before those that count
	Used       int64 // entries that count
	MemberHeld bool
	MemberAt   int64                  // the time of the wanted member, if that is held, counting or not
	At         func(rank int64) int64 // the time of one of the wanted ranks
}

// Slice is one of a hash of slices.
type Slice struct {
	Start int64 // ms
	Count int64 // 0 in a Change: it goes
}

// Change is what a decision asks State to do with a key.
type Change struct {
	Write      throttle.Write // Keep: nothing
	ExpireAtMs int64          // with Set: when the key goes by itself; 0: that stays as it is

	Number int64

	Slices  []Slice // those to be set or taken out
	Replace bool    // and none else stays

	RemoveNewest int    // so many entries of those that count go
	Remove       []byte // if not nil: this member goes
	Trim         bool   // entries that come before those that count may go
	Add          int    // so many new entries at AddAt
	Member       []byte // if not nil: this member is at AddAt from now on
	AddAt        int64  // ms
	Drawn        bool   // Member is one that was drawn for the call, so that it may take the place of one that counts no longer
}

// Verdict is the answer to a Call.
type Verdict struct {
	throttle.Verdict
	WaitMs int64  // with WaitTime: for which to hold the request back, -1 when it is limited
	ID     []byte // with LeaseID: what the call has got; nil: nothing
	Draw   bool   // the ID is still to be drawn
}

// Prepare says what is wanted for a call at an instant.
func (c *Call) Prepare(p *Policy, r *Request, nowMs, nowNs int64) {
	c.Policy, c.Request, c.NowMs, c.NowNs = p, r, nowMs, nowNs
	c.Want.Kind = p.Algorithm.Kind
	if prepare := p.Algorithm.Prepare; prepare != nil {
		prepare(c)
	}
}

// Decide answers a call by what was found for it.
func (c *Call) Decide() error {
	c.Change.Write = throttle.Keep
	return c.Policy.Algorithm.Decide(c)
}

// set has the Verdict be what package throttle says.
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
