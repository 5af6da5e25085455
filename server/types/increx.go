package types

import (
	"math"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

// increxCommand is part of stringCommands.
var increxCommand = &command.Command{
	Name: "increx", Group: command.GroupString, Since: "8.8.0", Complexity: "O(1)",
	Summary: "Add to the number at a key if the sum stays within bounds, set its TTL with it, and return the number and what was added: with SATURATE no more than 64 bits hold, even if the number has moved further.",
	Arity:   -2, Flags: command.Write | command.DenyOOM | command.Fast | command.DecidesFirst, Categories: acl.Throttle, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
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

// increx implements INCREX key [BYINT n | BYFLOAT f] [LBOUND l] [UBOUND u] [SATURATE] [EX s | PX ms | EXAT t | PXAT t | PERSIST] [ENX].
func increx(c *command.Ctx) {
	var o increxOptions
	if !o.parse(c.Args) {
		c.Err(command.ErrSyntax)
		return
	}
	if o.byFloat != 0 {
		increxFloat(c, &o)
	} else {
		increxInt(c, &o)
	}
}

func increxInt(c *command.Ctx, o *increxOptions) {
	delta, low, high := int64(1), int64(math.MinInt64), int64(math.MaxInt64)
	for _, option := range [...]struct {
		at    int
		value *int64
	}{{o.byInt, &delta}, {o.low, &low}, {o.high, &high}} {
		if option.at == 0 {
			continue
		}
		n, ok := c.Integer(option.at)
		if !ok {
			return
		}
		*option.value = n
	}
	if low > high {
		c.Err(errBounds)
		return
	}
	at, ok := expiryTime(c, &o.expiry)
	if !ok {
		return
	}
	k := c.Key(1)
	e, found, ok := findString(c, k)
	if !ok {
		return
	}
	current := int64(0)
	if found {
		var wireError string
		if current, wireError = command.StoredInteger(&e); wireError != "" {
			c.Err(wireError)
			return
		}
	}
	sum, within := addWithin(current, delta, low, high)
	applied := sum - current
	if !within && o.saturate {
		// Two numbers of 64 bits may lie further apart than the largest of them; what is told of it is then cut too.
		applied = clampedDifference(sum, current)
	} else if !within {
		sum, applied = current, 0
	}
	if within || o.saturate {
		if !c.MayWriteNow() {
			return
		}
		expire, kept := o.newExpiry(&e, found, at)
		switch {
		case kept || expire == 0 || expire > c.Now:
			c.DB.SetInt(k, sum, expire)
			increxEffect(c, k, nil, sum, expire)
		case found:
			c.DeleteKey(k, &e)
		}
	}
	c.Reply.Array(2)
	c.Reply.Int(sum)
	c.Reply.Int(applied)
}

// addWithin returns a + b, or the bound that it is beyond.
func addWithin(a, b, low, high int64) (sum int64, within bool) {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return high, false
	case b < 0 && a < math.MinInt64-b:
		return low, false
	}
	sum = a + b
	return min(max(sum, low), high), low <= sum && sum <= high
}

func clampedDifference(a, b int64) int64 {
	switch {
	case b < 0 && a > math.MaxInt64+b:
		return math.MaxInt64
	case b > 0 && a < math.MinInt64+b:
		return math.MinInt64
	}
	return a - b
}

// newExpiry returns when the key is to expire, 0 for never, and whether that is as before.
func (o *increxOptions) newExpiry(e *store.Entry, found bool, at int64) (expire int64, kept bool) {
	present := int64(0)
	if found {
		present = e.ExpireAt()
	}
	switch {
	case o.persist:
		return 0, false
	case o.expiry.given() && (!o.enx || present == 0):
		return at, false
	}
	return present, true
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

func increxFloat(c *command.Ctx, o *increxOptions) {
	delta, ok := longDouble(c, o.byFloat)
	if !ok {
		return
	}
	if delta.IsInf() {
		c.Err(command.ErrNaN)
		return
	}
	low, high := number.MaxLongDouble().Neg(), number.MaxLongDouble()
	if o.low != 0 {
		if low, ok = longDouble(c, o.low); !ok {
			return
		}
	}
	if o.high != 0 {
		if high, ok = longDouble(c, o.high); !ok {
			return
		}
	}
	if low.Cmp(high) > 0 {
		c.Err(errBounds)
		return
	}
	at, ok := expiryTime(c, &o.expiry)
	if !ok {
		return
	}
	k := c.Key(1)
	e, found, ok := findString(c, k)
	if !ok {
		return
	}
	var current number.LongDouble
	if found {
		var digits command.IntegerText
		if current, ok = number.ParseLongDouble(e.Bytes(digits[:])); !ok || current.IsInf() {
			c.Err(command.ErrNotFloat)
			return
		}
	}
	increxStoreFloat(c, o, k, &e, found, current, delta, low, high, at)
}

// longDouble parses args[i], or sends the error and returns false.
func longDouble(c *command.Ctx, i int) (number.LongDouble, bool) {
	value, ok := number.ParseLongDouble(c.Args[i])
	if !ok {
		c.Err(command.ErrNotFloat)
	}
	return value, ok
}

func increxStoreFloat(c *command.Ctx, o *increxOptions, k store.Key, e *store.Entry, found bool, current, delta, low, high number.LongDouble, at int64) {
	sum, finite := current.Add(delta)
	within := finite && sum.Cmp(low) >= 0 && sum.Cmp(high) <= 0
	if !within {
		switch {
		case !o.saturate:
			sum = current
		case finite && sum.Cmp(low) < 0, !finite && delta.Cmp(number.LongDouble{}) < 0:
			sum = low
		default:
			sum = high
		}
		if sum.IsInf() {
			sum = current // saturated at a bound that is none
		}
	}
	applied, _ := sum.Add(current.Neg())
	c.Scratch = sum.Append(c.Scratch[:0])
	n := len(c.Scratch)
	c.Scratch = applied.Append(c.Scratch)
	text, difference := c.Scratch[:n:n], c.Scratch[n:]
	if within || o.saturate {
		if !c.MayWriteNow() {
			return
		}
		expire, kept := o.newExpiry(e, found, at)
		switch {
		case kept || expire == 0 || expire > c.Now:
			c.DB.SetText(k, text, expire)
			increxEffect(c, k, text, 0, expire)
		case found:
			c.DeleteKey(k, e)
		}
	}
	c.Reply.Array(2)
	c.Reply.LongDouble(text)
	c.Reply.LongDouble(difference)
}
