package types

import (
	"math"

	"headgate/internal/ascii"
	"headgate/server/command"
)

// Milliseconds in the units that commands give times in.
const (
	milliseconds = 1
	seconds      = 1000
)

// expiryWord declares one of the options with which SET and GETEX are told when a key is to expire.
type expiryWord struct {
	word     string
	unit     int64 // ms
	absolute bool  // the time is one since the Unix epoch, not one from now
}

var expiryWords = [...]expiryWord{
	{"EX", seconds, false}, {"PX", milliseconds, false}, {"EXAT", seconds, true}, {"PXAT", milliseconds, true},
}

// expiryArgs declares the options of expiryWords as a command's arguments.
var expiryArgs = []command.Arg{
	command.Integer("seconds").After("EX"), command.Integer("milliseconds").After("PX"),
	command.UnixTime("unix-time-seconds").After("EXAT"), command.UnixTime("unix-time-milliseconds").After("PXAT"),
}

// expiryOption is one of expiryWords as a client gave it. The zero value is none.
type expiryOption struct {
	*expiryWord
	time int // index of the argument with the time
}

// given reports whether there is one.
func (o *expiryOption) given() bool { return o.expiryWord != nil }

// take reads args[i] and the time behind it. It reports false if args[i] is not such an option, has no time behind it, or does
// not go with another one given before; the same one may be repeated, and the last counts.
func (o *expiryOption) take(args [][]byte, i int) bool {
	for w := range expiryWords {
		word := &expiryWords[w]
		if !ascii.EqualFold(args[i], word.word) {
			continue
		}
		if i+1 == len(args) || (o.given() && o.expiryWord != word) {
			return false
		}
		o.expiryWord, o.time = word, i+1
		return true
	}
	return false
}

// expiryTime returns the time that the option stands for in ms since the Unix epoch, and 0 for no option; or it sends the error
// and returns false.
func expiryTime(c *command.Ctx, o *expiryOption) (at int64, ok bool) {
	if !o.given() {
		return 0, true
	}
	return futureTime(c, o.time, o.unit, o.absolute)
}

// futureTime parses args[i] as a time that has to be positive, in units of unit ms, from now or absolute. It returns it in ms
// since the Unix epoch, or sends the error and returns false. An absolute time may have passed already.
func futureTime(c *command.Ctx, i int, unit int64, absolute bool) (at int64, ok bool) {
	at, ok = c.Integer(i)
	if !ok {
		return 0, false
	}
	base := c.NowNs / 1e6 // not now, which stands still while a log is replayed
	if absolute {
		base = 0
	}
	if at <= 0 || at > math.MaxInt64/unit || at*unit > math.MaxInt64-base {
		c.ErrExpire()
		return 0, false
	}
	return at*unit + base, true
}

// signedTime parses args[i] as a time that may also be negative, in units of unit ms from base. It returns it in ms since the
// Unix epoch, or sends the error and returns false.
func signedTime(c *command.Ctx, i int, unit, base int64) (at int64, ok bool) {
	at, ok = c.Integer(i)
	if !ok {
		return 0, false
	}
	if at > math.MaxInt64/unit || at < math.MinInt64/unit || at*unit > math.MaxInt64-base {
		c.ErrExpire()
		return 0, false
	}
	return at*unit + base, true
}

// expireCondition says which keys the EXPIRE family is to touch. All that are set have to hold.
type expireCondition struct {
	nx, xx bool // only a key without a TTL; only one with a TTL
	gt, lt bool // only if the new time is later than the present one; only if earlier. No TTL counts as infinitely late.
}

// expireConditionArg declares the conditions as a command's argument.
var expireConditionArg = command.OneOf("condition", command.Tok("NX"), command.Tok("XX"), command.Tok("GT"), command.Tok("LT")).Opt()

// Errors for conditions that do not go together.
const (
	errExpireNX   = "ERR NX and XX, GT or LT options at the same time are not compatible"
	errExpireGTLT = "ERR GT and LT options at the same time are not compatible"
)

// parseExpireCondition parses the conditions from args[i] on, or sends the error and returns false.
func parseExpireCondition(c *command.Ctx, i int) (cond expireCondition, ok bool) {
	for ; i < len(c.Args); i++ {
		switch {
		case c.Is(i, "NX"):
			cond.nx = true
		case c.Is(i, "XX"):
			cond.xx = true
		case c.Is(i, "GT"):
			cond.gt = true
		case c.Is(i, "LT"):
			cond.lt = true
		default:
			c.Errf("ERR Unsupported option %s", command.CutAtNUL(c.Args[i]))
			return cond, false
		}
	}
	switch {
	case cond.nx && (cond.xx || cond.gt || cond.lt):
		c.Err(errExpireNX)
		return cond, false
	case cond.gt && cond.lt:
		c.Err(errExpireGTLT)
		return cond, false
	}
	return cond, true
}

// holds reports whether a key that expires at present (0: never) is to expire at the given time instead.
func (cond expireCondition) holds(present, at int64) bool {
	switch {
	case cond.nx && present != 0, cond.xx && present == 0:
		return false
	case cond.gt && (present == 0 || at <= present), cond.lt && present != 0 && at >= present:
		return false
	}
	return true
}
