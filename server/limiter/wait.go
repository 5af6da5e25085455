package limiter

import (
	"headgate/server/waitqueue"
	"headgate/throttle"
)

// WaitWord stands before how long a call would rather wait than be limited.
const WaitWord = "WAIT"

const (
	// MaxWait is the longest that a call may say, in ms: an hour. Connections that are silent for longer are cut by much that lies between.
	MaxWait = 60 * 60 * 1000
	// ErrLongWait is what a longer one is answered with.
	ErrLongWait = Error("ERR WAIT must not be longer than 1h")
)

// ParseWait reads the duration behind WaitWord, in ms. The error is an Error.
func ParseWait(word []byte) (ms int64, err error) {
	if ms, err = ParseDuration(word); err == nil && ms > MaxWait {
		return 0, ErrLongWait
	}
	return ms, err
}

// Inside reports whether what a call asks for is its own already: a lease that it renews, or an id that counts. Then it takes nothing from
// anybody. The call has been decided.
func (c *Call) Inside() bool {
	w, f := &c.Want, &c.Found
	return w.Kind == Entries && w.HasMember && f.MemberHeld && f.MemberAt > w.After && f.MemberAt <= w.Until
}

// Pace returns how long the limit keeps the call waiting behind others, and the TAT that it has found, 0 if it is no rate. holds is true for a
// queue that lets a call go when everything charged before is paid off. The call has been decided.
func (c *Call) Pace(holds bool) (pace waitqueue.Pace, tat int64) {
	switch p := c.Policy; {
	case p.Algorithm.Beyond == LeaseID:
		pace.Open = true
	case p.Rate != throttle.Rate{}:
		terms, ok := p.Rate.Terms(c.Request.Call.Cost)
		if !ok || terms.Charge == 0 { // it has been decided with an error, or charges nothing
			return pace, 0
		}
		if pace.Charge, pace.Tolerance = terms.Charge, terms.Tolerance; holds && p.Algorithm.Beyond == WaitTime {
			pace.Tolerance = pace.Charge
		}
		if c.Found.Exists {
			tat = c.Found.Number
		}
	}
	return pace, tat
}
