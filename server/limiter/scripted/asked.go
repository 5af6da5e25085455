package scripted

import (
	"headgate/internal/number"
	"headgate/server/limiter"
	"headgate/throttle"
)

// PoliciesKey is the key that is never a limiter's, since policies are kept there.
const PoliciesKey = "rl:policies"

// MaxLogCost is how many entries one call may add to a sliding log, so that no script holds its server up for long.
const MaxLogCost = 10_000

// ErrLogCost is what a call is answered with that would add more.
const ErrLogCost = limiter.Error("ERR cost of a log must be <= 10000 while the upstream is a Redis")

// family is which script decides the calls of an algorithm.
type family uint8

const (
	ofNone family = iota // the general way
	ofRate               // of one TAT
	ofCounter
	ofSlices
	ofLog
	ofLease
	ofIncrex
)

// familyOf returns the family of an algorithm, by the name that policies have for it.
func familyOf(a *limiter.Algorithm) family {
	switch a.Name {
	case "GCRA", "BUCKET", "QUEUE":
		return ofRate
	case "FIXED":
		return ofCounter
	case "SLIDING":
		return ofSlices
	case "LOG":
		return ofLog
	case "ACQUIRE":
		return ofLease
	}
	return ofNone
}

// part is what the scripts call a family.
var parts = [...]string{ofRate: "rate", ofCounter: "counter", ofSlices: "slices", ofLog: "log", ofLease: "lease"}

// script is which script decides a single call of a family.
var familyScripts = [...]*Script{ofRate: rateScript, ofCounter: counterScript, ofSlices: slicesScript, ofLog: logScript, ofLease: leaseScript, ofIncrex: increxScript}

// What became of a call, as scripts say it.
const (
	codePasses  = 0
	codeCharged = 1
	codeLeft    = 2 // to the caller
	codeLimited = 3
	codeMended  = 4 // limited, and something was written all the same
)

// maxExact bounds the numbers that scripts are given. Up to 2^53 doubles are exact, and a sum of two of these and what a state may hold is below
// that.
const maxExact = 1_000_000_000_000_000

// action is what a call of the lease family does.
type action uint8

const (
	acquire action = iota
	renew
	release
)

var actionNames = [...]string{acquire: "acquire", renew: "renew", release: "release"}

// asked is one key's call on its way, and what was found of the key.
type asked struct {
	call *limiter.Call
	key  []byte
	family
	exact bool // a script may decide it

	terms    throttle.Terms // of ofRate
	certain  bool           // the terms are known; otherwise every state leads to an error
	cell     throttle.GCRA  // of a call that has no policy: CL.THROTTLE or GCRA
	quantity int64
	decision throttle.Decision // of such a call

	increx    *limiter.Increx
	fraction  number.LongDouble // what it has found, if it is of fractions
	increased Increased

	action action // of ofLease
	ttl    int64  // of renew, ms
	held   bool   // renew or release has found the lease
	drawn  [limiter.DrawnIDLength]byte

	ranks   []rank // what was found of entries
	unknown bool   // the decision has asked for a rank that was not found
	first   int64  // the numbers of the first and the last stamp that were added
	last    int64

	code   int64
	wrote  bool   // the script has written
	digest []byte // of the state that was loaded
	state  []entry
	newest int // place of the newest of the entries that count
}

// rank is the time of an entry, by its rank from the newest that counts.
type rank struct{ rank, at int64 }

// entry is a member of a sorted set.
type entry struct {
	member []byte
	at     int64 // ms
}

// begin has a be about a key.
func (a *asked) begin(call *limiter.Call, key []byte) {
	a.call, a.key = call, append(a.key[:0], key...)
	a.family, a.exact, a.certain, a.action, a.held = ofNone, false, false, acquire, false
	a.increx = nil
	a.ranks, a.unknown, a.first, a.last, a.code, a.wrote = a.ranks[:0], false, 0, -1, codePasses, false
	if call.Found.At == nil {
		call.Found.At = a.timeOf
	}
	call.Change.Write = throttle.Keep
}

// askLimiter has a be a call of a limiter that has a limit.
func (a *asked) askLimiter(p *limiter.Policy, r *limiter.Request) {
	c := a.call
	c.Policy, c.Request = p, r
	cost := r.Call.Cost
	a.family = familyOf(p.Algorithm)
	a.exact = a.family != ofNone && (cost <= maxExact || cost > p.Limit) && string(a.key) != PoliciesKey
	if a.family == ofRate {
		a.terms, a.certain = p.Rate.Terms(cost)
	}
	if p.Algorithm.Beyond == limiter.LeaseID && !r.HasMember {
		a.draw()
	}
}

// refusal is the error for a call that scripts do not take on at all, or nil.
func refusal(p *limiter.Policy, r *limiter.Request) error {
	if familyOf(p.Algorithm) == ofLog && r.Call.Cost > MaxLogCost && r.Call.Cost <= p.Limit {
		return ErrLogCost
	}
	return nil
}

// draw chooses the id of a lease, as a native server does.
func (a *asked) draw() { limiter.AppendDrawnID(a.drawn[:0]) }

// timeOf is the time of an entry that counts, by its rank from the newest.
func (a *asked) timeOf(wanted int64) int64 {
	for _, r := range a.ranks {
		if r.rank == wanted {
			return r.at
		}
	}
	if place := int64(a.newest) - wanted; place >= 0 && place < int64(len(a.state)) {
		return a.state[place].at
	}
	a.unknown = true
	return 0
}

// readFound reads what a script has found.
func (a *asked) readFound(r *reply) error {
	f := &a.call.Found
	switch a.family {
	case ofRate:
		return a.foundNumber(r.text(), 0)
	case ofCounter:
		text := r.text()
		return a.foundNumber(text, r.number())
	case ofIncrex:
		text := r.text()
		return a.foundIncrex(text, r.number())
	case ofSlices:
		f.Slices = f.Slices[:0]
		words := r.text()
		for len(words) > 0 {
			var start, count int64
			start, words = nextNumber(words)
			count, words = nextNumber(words)
			f.Slices = append(f.Slices, limiter.Slice{Start: start, Count: count})
		}
		f.Exists = len(f.Slices) > 0
	default:
		a.foundEntries(r)
	}
	return nil
}

// nextNumber reads a number of decimal digits, and returns what follows the space behind it.
func nextNumber(words []byte) (n int64, rest []byte) {
	for i, b := range words {
		if b == ' ' {
			return n, words[i+1:]
		}
		n = n*10 + int64(b-'0')
	}
	return n, nil
}

// foundNumber takes the text of a key, nil for none, and when it expires: -1 for never, -2 for a key that has gone meanwhile.
func (a *asked) foundNumber(text []byte, at int64) error {
	f := &a.call.Found
	f.Exists = text != nil && at != -2
	f.ExpireAtMs, f.Number = max(at, 0), 0
	if !f.Exists {
		return nil
	}
	n, ok := number.ParseInt(text)
	switch {
	case ok:
	case a.call.Policy == nil: // CL.THROTTLE and GCRA, in Redis's words
		return limiter.ErrNotInteger
	default:
		return limiter.ErrForeign
	}
	f.Number = n
	return nil
}

// foundEntries reads what was found of a sorted set: how many entries count, how many come before them, the time of the id, or null, and
// ranks with their times, up to the array's end.
func (a *asked) foundEntries(r *reply) {
	f := &a.call.Found
	a.ranks, a.state = a.ranks[:0], a.state[:0]
	f.Used = r.number()
	f.Expired = int(r.number())
	f.MemberAt = 0
	held := r.text()
	if f.MemberHeld = held != nil; f.MemberHeld {
		f.MemberAt, _ = number.ParseInt(held)
	}
	f.Exists = f.Used+int64(f.Expired) > 0
}

// readRanks reads so many elements that follow, each a rank and its time.
func (a *asked) readRanks(r *reply, elements int) {
	for ; elements > 1 && !r.bad; elements -= 2 {
		n := r.number()
		a.ranks = append(a.ranks, rank{n, r.number()})
	}
}

// readPart reads what a part has found, an array.
func (a *asked) readPart(r *reply) error {
	n := r.array()
	err := a.readFound(r)
	if a.family == ofLog || a.family == ofLease {
		a.readRanks(r, n-3)
	}
	return err
}

// readStamps reads the numbers of the first and the last stamp, if there are any.
func (a *asked) readStamps(r *reply) {
	if r.array() == 2 {
		a.first = r.number()
		a.last = r.number()
	}
}

// setNow has the call be of an instant.
func (a *asked) setNow(ns int64) { a.call.NowNs, a.call.NowMs = ns, floorMs(ns) }

// floorMs is an instant, 0 or later, in ms.
func floorMs(ns int64) int64 { return ns / 1_000_000 }

// prepare says what is wanted for the call at an instant.
func (a *asked) prepare(ns int64) {
	c := a.call
	switch {
	case a.action != acquire:
		c.PrepareLease(c.Want.Member, floorMs(ns), ns)
	case c.Policy == nil:
		c.Want.Kind = limiter.Number
		a.setNow(ns)
	default:
		c.Prepare(c.Policy, c.Request, floorMs(ns), ns)
	}
}

// decide answers the call by what was found.
func (a *asked) decide() error {
	c := a.call
	switch {
	case a.increx != nil:
		a.decideIncrex()
		return nil
	case !c.Found.Exists && string(a.key) == PoliciesKey:
		return limiter.ErrWrongType
	case a.action == renew:
		c.Change.Write = throttle.Keep
		a.held = c.Renew(a.ttl)
		return nil
	case a.action == release:
		c.Change.Write = throttle.Keep
		a.held = c.Release()
		return nil
	case c.Policy == nil:
		return a.decideCell()
	}
	if err := c.Decide(); err != nil {
		return err
	}
	if c.Verdict.Draw {
		c.Verdict.ID, c.Change.Member = a.drawn[:], a.drawn[:]
	}
	return nil
}

// decideCell is decide for CL.THROTTLE and GCRA.
func (a *asked) decideCell() error {
	c, d := a.call, &a.decision
	c.Change.Write = throttle.Keep
	if a.cell.DecideTo(d, c.NowNs, c.Found.Number, c.Found.Exists, a.quantity) != nil {
		return limiter.ErrNotInteger // a GCRA that there is has no other error
	}
	c.Change.Write, c.Change.Number, c.Change.ExpireAtMs = d.Write, d.TAT, throttle.ExpireAtMs(d.TAT)
	c.Verdict.Limited = d.Limited
	return nil
}

// agrees reports whether the decision is the script's, after a call that may have been charged.
func (a *asked) agrees() bool {
	limited := a.code == codeLimited || a.code == codeMended
	writes := a.code == codeCharged || a.code == codeMended
	c := a.call
	if a.action != acquire {
		return !a.unknown && a.held == writes
	}
	return !a.unknown && c.Verdict.Limited == limited && (c.Change.Write != throttle.Keep) == writes
}

// follow has the answer be the script's, since what it has written stands.
func (a *asked) follow() {
	limited := a.code == codeLimited || a.code == codeMended
	a.call.Verdict.Limited, a.decision.Limited = limited, limited
	a.held = a.code == codeCharged
}
