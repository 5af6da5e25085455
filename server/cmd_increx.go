package server

import (
	"math"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/config"
	"headgate/store"
)

// increxCommand is part of stringCommands.
var increxCommand = &Command{
	Name: "increx", Group: GroupString, Since: "8.8.0", Complexity: "O(1)",
	Summary: "Add to the number at a key if the sum stays within bounds, set its TTL with it, and return the number and what was added: with SATURATE no more than 64 bits hold, even if the number has moved further.",
	Arity:   -2, Flags: Write | DenyOOM | Fast | DecidesFirst, Categories: acl.Throttle, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
	Args: []Arg{
		key("key"), oneOf("increment", integer("integer").after("BYINT").fails(errNotInteger), double("float").after("BYFLOAT").fails(errNotFloat)).opt(),
		str("lowerbound").after("LBOUND").opt().fails(errNotInteger), str("upperbound").after("UBOUND").opt().fails(errNotInteger), tok("SATURATE").opt(),
		oneOf("expiration", append(expiryArgs[:len(expiryArgs):len(expiryArgs)], tok("PERSIST"))...).opt(), tok("ENX").opt(),
	},
	Errors: []string{errSyntax, errNaN, errBounds, "ERR invalid expire time in 'increx' command", errNotInteger, errNotFloat, errWrongType},
	Reply:  ReplyArray, Handler: increx,
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
func increx(c *Ctx) {
	var o increxOptions
	if !o.parse(c.args) {
		c.err(errSyntax)
		return
	}
	if o.byFloat != 0 {
		c.increxFloat(&o)
	} else {
		c.increxInt(&o)
	}
}

func (c *Ctx) increxInt(o *increxOptions) {
	delta, low, high := int64(1), int64(math.MinInt64), int64(math.MaxInt64)
	for _, option := range [...]struct {
		at    int
		value *int64
	}{{o.byInt, &delta}, {o.low, &low}, {o.high, &high}} {
		if option.at == 0 {
			continue
		}
		n, ok := c.integer(option.at)
		if !ok {
			return
		}
		*option.value = n
	}
	if low > high {
		c.err(errBounds)
		return
	}
	at, ok := c.expiryTime(&o.expiry)
	if !ok {
		return
	}
	k := c.key(1)
	e, found, ok := c.findString(k)
	if !ok {
		return
	}
	current := int64(0)
	if found {
		var wireError string
		if current, wireError = storedInteger(&e); wireError != "" {
			c.err(wireError)
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
		if !c.mayWriteNow() {
			return
		}
		expire, kept := o.newExpiry(&e, found, at)
		switch {
		case kept || expire == 0 || expire > c.now:
			c.db.SetInt(k, sum, expire)
			c.increxEffect(k, nil, sum, expire)
		case found:
			c.deleteState(k, &e)
		}
	}
	c.reply.Array(2)
	c.reply.Int(sum)
	c.reply.Int(applied)
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
func (c *Ctx) increxEffect(k store.Key, text []byte, n, expire int64) {
	c.notify(config.EventString, "increx", k.Name)
	switch {
	case !c.logs():
	case text == nil && expire == 0:
		c.effect("SET", k.Name, n)
	case text == nil:
		c.effect("SET", k.Name, n, "PXAT", expire)
	case expire == 0:
		c.effect("SET", k.Name, text)
	default:
		c.effect("SET", k.Name, text, "PXAT", expire)
	}
}

func (c *Ctx) increxFloat(o *increxOptions) {
	delta, ok := c.longDouble(o.byFloat)
	if !ok {
		return
	}
	if delta.IsInf() {
		c.err(errNaN)
		return
	}
	low, high := number.MaxLongDouble().Neg(), number.MaxLongDouble()
	if o.low != 0 {
		if low, ok = c.longDouble(o.low); !ok {
			return
		}
	}
	if o.high != 0 {
		if high, ok = c.longDouble(o.high); !ok {
			return
		}
	}
	if low.Cmp(high) > 0 {
		c.err(errBounds)
		return
	}
	at, ok := c.expiryTime(&o.expiry)
	if !ok {
		return
	}
	k := c.key(1)
	e, found, ok := c.findString(k)
	if !ok {
		return
	}
	var current number.LongDouble
	if found {
		var digits integerText
		if current, ok = number.ParseLongDouble(e.Bytes(digits[:])); !ok || current.IsInf() {
			c.err(errNotFloat)
			return
		}
	}
	c.increxStoreFloat(o, k, &e, found, current, delta, low, high, at)
}

// longDouble parses args[i], or sends the error and returns false.
func (c *Ctx) longDouble(i int) (number.LongDouble, bool) {
	value, ok := number.ParseLongDouble(c.args[i])
	if !ok {
		c.err(errNotFloat)
	}
	return value, ok
}

func (c *Ctx) increxStoreFloat(o *increxOptions, k store.Key, e *store.Entry, found bool, current, delta, low, high number.LongDouble, at int64) {
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
	c.scratch = sum.Append(c.scratch[:0])
	n := len(c.scratch)
	c.scratch = applied.Append(c.scratch)
	text, difference := c.scratch[:n:n], c.scratch[n:]
	if within || o.saturate {
		if !c.mayWriteNow() {
			return
		}
		expire, kept := o.newExpiry(e, found, at)
		switch {
		case kept || expire == 0 || expire > c.now:
			c.db.SetText(k, text, expire)
			c.increxEffect(k, text, 0, expire)
		case found:
			c.deleteState(k, e)
		}
	}
	c.reply.Array(2)
	c.reply.LongDouble(text)
	c.reply.LongDouble(difference)
}
