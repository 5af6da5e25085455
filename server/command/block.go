package command

import (
	"math"

	"headgate/internal/number"
	"headgate/server/resp"
	"headgate/store"
)

// BlockOn is what a command blocks for.
type BlockOn struct {
	Kind  store.Kind // of the values that can serve it
	Keys  [][]byte   // copied; names may repeat
	Until int64      // Unix ms after which it is over; 0: never

	// Serve is called when there is a value of the kind at a key, with the context of the blocked command: its arguments,
	// client and database. It sends the reply and returns true, or sends nothing, and the client goes on waiting.
	Serve func(c *Ctx, k store.Key) bool

	// Quiet: what the wait is served changes nothing of its own, but belongs to the change that it waited for, as in Redis. It does
	// not count towards save points, and clients that track by prefix hear of the key as that change has it.
	Quiet bool

	// Late sends the reply when the time is over; nil: a null array.
	Late func(reply *resp.Writer)

	// Gone is the error that ends the wait when there is no such value any more; empty: the client goes on waiting.
	Gone string
}

// MayBlock reports whether the command may make its client wait. In a transaction or a script it answers at once instead, as if
// its time were over, and so it does for a primary.
func (c *Ctx) MayBlock() bool { return c.Client.Multi == nil && c.Script == nil && !c.Client.Primary }

// Block has the client wait, in place of a reply, where MayBlock allows it. Its next commands wait too.
func (c *Ctx) Block(on BlockOn) { c.Core.Hooks.Block(c, on) }

// Errors of the timeouts of blocking commands.
const (
	errTimeout         = "ERR timeout is not an integer or out of range"
	errTimeoutNegative = "ERR timeout is negative"
)

// TimeoutUnit is what the timeout of a blocking command is counted in.
type TimeoutUnit uint8

// The units of timeouts.
const (
	TimeoutSeconds TimeoutUnit = iota // may have a fraction
	TimeoutMs
)

// Timeout parses args[i] as how long a command may block, or sends the error and returns false. until is when that is over, in
// Unix ms; 0 stands for never.
func (c *Ctx) Timeout(i int, unit TimeoutUnit) (until int64, ok bool) {
	var ms int64
	if unit == TimeoutMs {
		if ms, ok = number.ParseInt(c.Args[i]); !ok {
			c.Err(errTimeout)
			return 0, false
		}
	} else {
		seconds, ok := number.ParseLongDouble(c.Args[i])
		if !ok {
			c.Err("ERR timeout is not a float or out of range")
			return 0, false
		}
		ms = seconds.TimesRoundedUp(1000)
	}
	switch {
	case ms < 0: // which too many seconds come out as
		c.Err(errTimeoutNegative)
		return 0, false
	case ms == 0 || ms > math.MaxInt64-c.Now:
		return 0, true
	}
	return c.Now + ms, true
}
