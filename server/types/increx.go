package types

import (
	"math"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/store"
)

// increxCommand is part of stringCommands.
var increxCommand = &command.Command{
	Name: "increx", Group: command.GroupString, Since: "8.8.0", Complexity: "O(1)",
	Summary: "Add to the number at a key if the sum stays within bounds, set its TTL with it, and return the number and what was added: with SATURATE no more than 64 bits hold, even if the number has moved further.",
	Arity:   -2, Flags: command.Write | command.DenyOOM | command.Fast | command.DecidesFirst | command.UnknownUpstream, Categories: acl.Throttle, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
	Args: []command.Arg{
		command.Key("key"), command.OneOf("increment", command.Integer("integer").After("BYINT").Fails(command.ErrNotInteger), command.Double("float").After("BYFLOAT").Fails(command.ErrNotFloat)).Opt(),
		command.Str("lowerbound").After("LBOUND").Opt().Fails(command.ErrNotInteger), command.Str("upperbound").After("UBOUND").Opt().Fails(command.ErrNotInteger), command.Tok("SATURATE").Opt(),
		command.OneOf("expiration", append(expiryArgs[:len(expiryArgs):len(expiryArgs)], command.Tok("PERSIST"))...).Opt(), command.Tok("ENX").Opt(),
	},
	Errors: []string{command.ErrSyntax, command.ErrNaN, errBounds, "ERR invalid expire time in 'increx' command", command.ErrNotInteger, command.ErrNotFloat, command.ErrWrongType},
	Reply:  command.ReplyArray, Handler: increx,
}

const errBounds = "ERR LBOUND can't be greater than UBOUND"

// increxOptions are INCREX's options: indexes of the arguments with their values, 0 for those that were not given.
type increxOptions struct {
	byInt, byFloat, low, high int
	saturate, persist, enx    bool
	expiry                    expiryOption
}

// parse reads the options from args[2] on. It reports false for one that is none, stands twice, lacks its value or does not go with
// another.
func (o *increxOptions) parse(args [][]byte) bool {
	for i := 2; i < len(args); i++ {
		value := 0
		if i+1 < len(args) {
			value = i + 1
		}
		option := o.valued(args[i])
		switch {
		case option != nil:
			if *option != 0 || value == 0 {
				return false
			}
			*option = value
			i++
		case !o.saturate && ascii.EqualFold(args[i], "SATURATE"):
			o.saturate = true
		case !o.persist && ascii.EqualFold(args[i], "PERSIST"):
			o.persist = true
		case !o.enx && ascii.EqualFold(args[i], "ENX"):
			o.enx = true
		case !o.expiry.given() && o.expiry.take(args, i):
			i++
		default:
			return false
		}
	}
	return (o.byInt == 0 || o.byFloat == 0) && (!o.persist || !o.expiry.given()) && (!o.enx || o.expiry.given())
}

// valued returns where the place of an option's value is kept, or nil for a word that is no such option.
func (o *increxOptions) valued(word []byte) *int {
	switch {
	case ascii.EqualFold(word, "BYINT"):
		return &o.byInt
	case ascii.EqualFold(word, "BYFLOAT"):
		return &o.byFloat
	case ascii.EqualFold(word, "LBOUND"):
		return &o.low
	case ascii.EqualFold(word, "UBOUND"):
		return &o.high
	}
	return nil
}

// ReadIncrex reads INCREX's arguments after the key into x, which is all zero, or sends the error and returns false.
func ReadIncrex(c *command.Ctx, x *limiter.Increx) bool {
	var o increxOptions
	if !o.parse(c.Args) {
		c.Err(command.ErrSyntax)
		return false
	}
	x.Float = o.byFloat != 0
	if x.Float && !o.readFloats(c, x) || !x.Float && !o.readIntegers(c, x) {
		return false
	}
	at, ok := expiryTime(c, &o.expiry)
	if !ok {
		return false
	}
	x.Saturate, x.Persist, x.Absent = o.saturate, o.persist, o.enx
	if x.Expires = o.expiry.given(); x.Expires {
		if x.TimeMs, x.Relative = at, !o.expiry.absolute; x.Relative {
			x.TimeMs -= c.NowNs / 1e6
		}
	}
	return true
}

// readIntegers reads what is added and its bounds, or sends the error and returns false.
func (o *increxOptions) readIntegers(c *command.Ctx, x *limiter.Increx) bool {
	x.Delta, x.Low, x.High = 1, math.MinInt64, math.MaxInt64
	for _, option := range [...]struct {
		at    int
		value *int64
	}{{o.byInt, &x.Delta}, {o.low, &x.Low}, {o.high, &x.High}} {
		if option.at == 0 {
			continue
		}
		n, ok := c.Integer(option.at)
		if !ok {
			return false
		}
		*option.value = n
	}
	if x.Low > x.High {
		c.Err(errBounds)
		return false
	}
	return true
}

// readFloats is readIntegers for fractions.
func (o *increxOptions) readFloats(c *command.Ctx, x *limiter.Increx) (ok bool) {
	if x.FloatDelta, ok = longDouble(c, o.byFloat); !ok {
		return false
	}
	if x.FloatDelta.IsInf() {
		c.Err(command.ErrNaN)
		return false
	}
	x.FloatLow, x.FloatHigh = number.MaxLongDouble().Neg(), number.MaxLongDouble()
	if o.low != 0 {
		if x.FloatLow, ok = longDouble(c, o.low); !ok {
			return false
		}
	}
	if o.high != 0 {
		if x.FloatHigh, ok = longDouble(c, o.high); !ok {
			return false
		}
	}
	if x.FloatLow.Cmp(x.FloatHigh) > 0 {
		c.Err(errBounds)
		return false
	}
	return true
}

// longDouble parses args[i], or sends the error and returns false.
func longDouble(c *command.Ctx, i int) (number.LongDouble, bool) {
	value, ok := number.ParseLongDouble(c.Args[i])
	if !ok {
		c.Err(command.ErrNotFloat)
	}
	return value, ok
}

// increx implements INCREX key [BYINT n | BYFLOAT f] [LBOUND l] [UBOUND u] [SATURATE] [EX s | PX ms | EXAT t | PXAT t | PERSIST] [ENX].
func increx(c *command.Ctx) {
	var x limiter.Increx
	if !ReadIncrex(c, &x) {
		return
	}
	k := c.Key(1)
	e, found, ok := findString(c, k)
	switch {
	case !ok:
	case x.Float:
		increxFloat(c, &x, k, &e, found)
	default:
		increxInt(c, &x, k, &e, found)
	}
}

func increxInt(c *command.Ctx, x *limiter.Increx, k store.Key, e *store.Entry, found bool) {
	current := int64(0)
	if found {
		var wireError string
		if current, wireError = command.StoredInteger(e); wireError != "" {
			c.Err(wireError)
			return
		}
	}
	sum, applied, write := x.Add(current)
	if write && !increxStore(c, x, k, e, found, nil, sum) {
		return
	}
	c.Reply.Array(2)
	c.Reply.Int(sum)
	c.Reply.Int(applied)
}

func increxFloat(c *command.Ctx, x *limiter.Increx, k store.Key, e *store.Entry, found bool) {
	var current number.LongDouble
	if found {
		var digits command.IntegerText
		var ok bool
		if current, ok = number.ParseLongDouble(e.Bytes(digits[:])); !ok || current.IsInf() {
			c.Err(command.ErrNotFloat)
			return
		}
	}
	sum, applied, write := x.AddFloat(current)
	c.Scratch = sum.Append(c.Scratch[:0])
	n := len(c.Scratch)
	c.Scratch = applied.Append(c.Scratch)
	text, difference := c.Scratch[:n:n], c.Scratch[n:]
	if write && !increxStore(c, x, k, e, found, text, 0) {
		return
	}
	c.Reply.Array(2)
	c.Reply.LongDouble(text)
	c.Reply.LongDouble(difference)
}

// increxStore makes the key a text, or a number where that is nil, with the expiry that x has it; or sends the error and returns false.
func increxStore(c *command.Ctx, x *limiter.Increx, k store.Key, e *store.Entry, found bool, text []byte, n int64) bool {
	if !c.MayWriteNow() {
		return false
	}
	present := int64(0)
	if found {
		present = e.ExpireAt()
	}
	expire, kept := x.Expiry(present, c.NowNs/1e6)
	switch {
	case !kept && expire != 0 && expire <= c.Now:
		if found {
			c.DeleteKey(k, e)
		}
		return true
	case text == nil:
		c.DB.SetInt(k, n, expire)
	default:
		c.DB.SetText(k, text, expire)
	}
	increxEffect(c, k, text, n, expire)
	return true
}

// increxEffect tells what INCREX has made of the key: the text, or the number when text is nil.
func increxEffect(c *command.Ctx, k store.Key, text []byte, n, expire int64) {
	c.Notify(config.EventString, "increx", k.Name)
	switch {
	case !c.Logs():
	case text == nil && expire == 0:
		c.Effect("SET", k.Name, n)
	case text == nil:
		c.Effect("SET", k.Name, n, "PXAT", expire)
	case expire == 0:
		c.Effect("SET", k.Name, text)
	default:
		c.Effect("SET", k.Name, text, "PXAT", expire)
	}
}
