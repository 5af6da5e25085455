package server

import (
	"math"

	"headgate/internal/number"
	"headgate/server/resp"
	"headgate/store"
)

// blockOn is what a command blocks for.
type blockOn struct {
	kind  store.Kind // of the values that can serve it
	keys  [][]byte   // copied; names may repeat
	until int64      // Unix ms after which it is over; 0: never

	// serve is called when there is a value of the kind at a key, with the context of the blocked command: its arguments,
	// client and database. It sends the reply and returns true, or sends nothing, and the client goes on waiting.
	serve func(c *Ctx, k store.Key) bool

	// quiet: what the wait is served changes nothing of its own, but belongs to the change that it waited for, as in Redis. It does
	// not count towards save points, and clients that track by prefix hear of the key as that change has it.
	quiet bool

	// late sends the reply when the time is over; nil: a null array.
	late func(reply *resp.Writer)

	// gone is the error that ends the wait when there is no such value any more; empty: the client goes on waiting.
	gone string
}

// mayBlock reports whether the command may make its client wait. In a transaction or a script it answers at once instead, as if
// its time were over.
func (c *Ctx) mayBlock() bool { return c.client.multi == nil && c.script == nil }

// block has the client wait, in place of a reply; see mayBlock. Its next commands wait too.
func (c *Ctx) block(on blockOn) { c.core.hooks.block(c, on) }

// Errors of the timeouts of blocking commands.
const (
	errTimeout         = "ERR timeout is not an integer or out of range"
	errTimeoutNegative = "ERR timeout is negative"
)

// Units of the timeouts of blocking commands.
type timeoutUnit uint8

const (
	timeoutSeconds timeoutUnit = iota // may have a fraction
	timeoutMs
)

// timeout parses args[i] as how long a command may block, or sends the error and returns false. until is when that is over, in
// Unix ms; 0 stands for never.
func (c *Ctx) timeout(i int, unit timeoutUnit) (until int64, ok bool) {
	var ms int64
	if unit == timeoutMs {
		if ms, ok = number.ParseInt(c.args[i]); !ok {
			c.err(errTimeout)
			return 0, false
		}
	} else {
		seconds, ok := number.ParseLongDouble(c.args[i])
		if !ok {
			c.err("ERR timeout is not a float or out of range")
			return 0, false
		}
		ms = seconds.TimesRoundedUp(1000)
	}
	switch {
	case ms < 0: // which too many seconds come out as
		c.err(errTimeoutNegative)
		return 0, false
	case ms == 0 || ms > math.MaxInt64-c.now:
		return 0, true
	}
	return c.now + ms, true
}
