package server

import (
	"math"
	"slices"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/config"
	"headgate/store"
)

// stringCommands: strings and counters.
var stringCommands = []*Command{
	{
		Name: "append", Group: GroupString, Since: "2.0.0", Complexity: "O(n) in the length of the value appended",
		Summary: "Add text to the end of a string, which begins empty if there is none, and return its length.",
		Arity:   3, Flags: Write | DenyOOM | Fast, Keys: keys("RW INSERT", 1, 1, 1),
		Args: []Arg{key("key"), str("value")}, Reply: ReplyInteger, Handler: appendTo,
	},
	{
		Name: "decr", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Subtract one from the number at a key; a missing key counts as 0.",
		Arity:   2, Flags: Write | DenyOOM | Fast, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: decr,
	},
	{
		Name: "decrby", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Subtract from the number at a key; a missing key counts as 0.",
		Arity:   3, Flags: Write | DenyOOM | Fast, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), integer("decrement")}, Reply: ReplyInteger, Handler: decrBy,
	},
	{
		Name: "get", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Return the string at a key.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyBulk | ReplyNull, Handler: get,
	},
	{
		Name: "getdel", Group: GroupString, Since: "6.2.0", Complexity: "O(1)",
		Summary: "Return the string at a key and delete the key.",
		Arity:   2, Flags: Write | Fast, Keys: keys("RW ACCESS DELETE", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyBulk | ReplyNull, Handler: getDel,
	},
	{
		Name: "getex", Group: GroupString, Since: "6.2.0", Complexity: "O(1)",
		Summary: "Return the string at a key, and change the key's TTL or take it away.",
		Arity:   -2, Flags: Write | Fast, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args:  []Arg{key("key"), oneOf("expiration", append(slices.Clone(expiryArgs), tok("PERSIST"))...).opt()},
		Reply: ReplyBulk | ReplyNull, Handler: getEx,
	},
	{
		Name: "getrange", Group: GroupString, Since: "2.4.0", Complexity: "O(n) in the length of the reply",
		Summary: "Return the bytes of a string between two positions; negative ones count from its end.",
		Arity:   4, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), integer("start"), integer("end")}, Reply: ReplyBulk, Handler: getRange,
	},
	{
		Name: "getset", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Set a key to a string and return the one before; SET with GET does the same.",
		Arity:   3, Flags: Write | DenyOOM | Fast, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), str("value")}, Reply: ReplyBulk | ReplyNull, Handler: getSet,
	},
	{
		Name: "incr", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Add one to the number at a key; a missing key counts as 0.",
		Arity:   2, Flags: Write | DenyOOM | Fast, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: incr,
	},
	{
		Name: "incrby", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Add to the number at a key; a missing key counts as 0.",
		Arity:   3, Flags: Write | DenyOOM | Fast, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), integer("increment")}, Reply: ReplyInteger, Handler: incrBy,
	},
	{
		Name: "incrbyfloat", Group: GroupString, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Add a fraction to the number at a key; a missing key counts as 0.",
		Arity:   3, Flags: Write | DenyOOM | Fast, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), double("increment")}, Reply: ReplyBulk, Handler: incrByFloat,
	},
	increxCommand,
	{
		Name: "mget", Group: GroupString, Since: "1.0.0", Complexity: "O(n) in the number of keys",
		Summary: "Return the strings at several keys, null for each that has none.",
		Arity:   -2, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, -1, 1),
		Tips: "request_policy:multi_shard",
		Args: []Arg{key("key").multi()}, Reply: ReplyArray, Handler: mget,
	},
	{
		Name: "mset", Group: GroupString, Since: "1.0.1", Complexity: "O(n) in the number of keys",
		Summary: "Set several keys to strings as one unit.",
		Arity:   -3, Flags: Write | DenyOOM, Keys: keys("OW UPDATE", 1, -1, 2),
		Tips: "request_policy:multi_shard response_policy:all_succeeded",
		Args: []Arg{block("key_value", key("key"), str("value")).multi()}, Reply: ReplySimple, Handler: mset,
	},
	{
		Name: "msetnx", Group: GroupString, Since: "1.0.1", Complexity: "O(n) in the number of keys",
		Summary: "Set several keys to strings as one unit, unless one of them exists.",
		Arity:   -3, Flags: Write | DenyOOM, Keys: keys("OW INSERT", 1, -1, 2),
		Tips: "request_policy:multi_shard response_policy:agg_min",
		Args: []Arg{block("key_value", key("key"), str("value")).multi()}, Reply: ReplyInteger, Handler: msetNX,
	},
	{
		Name: "psetex", Group: GroupString, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Set a key to a string that lives for so many milliseconds.",
		Arity:   4, Flags: Write | DenyOOM | Sampled, Keys: keys("OW UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), integer("milliseconds"), str("value")}, Reply: ReplySimple, Handler: psetEx,
	},
	{
		Name: "set", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Set a key to a string, on conditions and with a TTL if asked to.",
		Arity:   -3, Flags: Write | DenyOOM | Sampled, Keys: varying(keys("RW ACCESS UPDATE", 1, 1, 1), setAccess),
		Args: []Arg{
			key("key"), str("value"), oneOf("condition", tok("NX"), tok("XX")).opt(), tok("GET").opt(),
			oneOf("expiration", append(slices.Clone(expiryArgs), tok("KEEPTTL"))...).opt(),
		},
		Reply: ReplySimple | ReplyBulk | ReplyNull, Handler: set,
	},
	{
		Name: "setex", Group: GroupString, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Set a key to a string that lives for so many seconds.",
		Arity:   4, Flags: Write | DenyOOM | Sampled, Keys: keys("OW UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), integer("seconds"), str("value")}, Reply: ReplySimple, Handler: setEx,
	},
	{
		Name: "setnx", Group: GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Set a key to a string unless it exists.",
		Arity:   3, Flags: Write | DenyOOM | Fast, Keys: keys("OW INSERT", 1, 1, 1),
		Args: []Arg{key("key"), str("value")}, Reply: ReplyInteger, Handler: setNX,
	},
	{
		Name: "setrange", Group: GroupString, Since: "2.2.0", Complexity: "O(n) in the length of the value, and of the gap before it",
		Summary: "Write over a string from a position on, zero bytes filling any gap, and return its length.",
		Arity:   4, Flags: Write | DenyOOM, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), integer("offset"), str("value")}, Reply: ReplyInteger, Handler: setRange,
	},
	{
		Name: "strlen", Group: GroupString, Since: "2.2.0", Complexity: "O(1)",
		Summary: "Return the length in bytes of the string at a key, 0 if there is none.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: strLen,
	},
	{
		Name: "substr", Group: GroupString, Since: "1.0.0", Complexity: "O(n) in the length of the reply",
		Summary: "GETRANGE under its first name.",
		Arity:   4, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), integer("start"), integer("end")}, Reply: ReplyBulk, Handler: getRange,
	},
}

// readString finds the string at args[i] for reading. It sends the error for another type and returns ok false.
// setAccess is what SET does with its key: it only writes, unless GET is among the arguments.
func setAccess(args [][]byte) string {
	if slices.ContainsFunc(args[min(3, len(args)):], func(a []byte) bool { return ascii.EqualFold(a, "GET") }) {
		return "RW ACCESS UPDATE"
	}
	return "OW UPDATE"
}

func (c *Ctx) readString(i int) (e store.Entry, found, ok bool) {
	e, found = c.lookupRead(i)
	return e, found, c.expectString(&e, found)
}

// findString finds the string at a key for a change. It sends the error for another type and returns ok false.
func (c *Ctx) findString(k store.Key) (e store.Entry, found, ok bool) {
	e, found = c.db.Find(k, c.now)
	return e, found, c.expectString(&e, found)
}

func (c *Ctx) expectString(e *store.Entry, found bool) bool {
	if found && e.Kind() != store.KindString {
		c.err(errWrongType)
		return false
	}
	return true
}

// sendString sends a string value as a bulk string.
func (c *Ctx) sendString(e *store.Entry) {
	if n, ok := e.Int(); ok {
		c.reply.BulkInt(n)
		return
	}
	c.reply.Bulk(e.Bytes(nil))
}

// sendStringOrNull sends a string value, or null for a missing key.
func (c *Ctx) sendStringOrNull(e *store.Entry, found bool) {
	if !found {
		c.reply.Null()
		return
	}
	c.sendString(e)
}

// fitsString reports whether a string may have from+more bytes, or sends the error and returns false.
func (c *Ctx) fitsString(from int64, more int) bool {
	if from > int64(c.cfg.ProtoMaxBulkLen)-int64(more) {
		c.err(errStringTooLong)
		return false
	}
	return true
}

func get(c *Ctx) {
	e, found, ok := c.readString(1)
	if !ok {
		return
	}
	c.sendStringOrNull(&e, found)
}

func getDel(c *Ctx) {
	e, found, ok := c.readString(1)
	if !ok {
		return
	}
	c.sendStringOrNull(&e, found)
	if found {
		e.Delete()
		c.effect("DEL", c.args[1])
		c.notify(config.EventGeneric, "del", c.args[1])
	}
}

func getEx(c *Ctx) {
	expiry, persist, ok := c.parseGetExOptions()
	if !ok {
		return
	}
	e, found, ok := c.readString(1)
	if !ok {
		return
	}
	if !found {
		c.reply.Null()
		return
	}
	at, ok := c.expiryTime(&expiry)
	if !ok {
		return
	}
	c.sendString(&e)
	switch {
	case expiry.given() && at <= c.now:
		e.Delete()
		c.effect("DEL", c.args[1])
		c.notify(config.EventGeneric, "del", c.args[1])
	case expiry.given():
		e.SetExpireAt(at)
		c.effect("PEXPIREAT", c.args[1], at)
		c.notify(config.EventGeneric, "expire", c.args[1])
	case persist && e.ExpireAt() != 0:
		e.SetExpireAt(0)
		c.effect("PERSIST", c.args[1])
		c.notify(config.EventGeneric, "persist", c.args[1])
	}
}

func (c *Ctx) parseGetExOptions() (expiry expiryOption, persist, ok bool) {
	for i := 2; i < len(c.args); i++ {
		switch {
		case c.is(i, "PERSIST") && !expiry.given():
			persist = true
		case !persist && expiry.take(c.args, i):
			i++
		default:
			c.err(errSyntax)
			return expiry, persist, false
		}
	}
	return expiry, persist, true
}

func getSet(c *Ctx) {
	e, found, ok := c.readString(1)
	if !ok {
		return
	}
	c.sendStringOrNull(&e, found)
	c.db.SetString(c.key(1), c.args[2], 0)
	c.effect("SET", c.args[1], c.args[2])
	c.notify(config.EventString, "set", c.args[1])
}

func getRange(c *Ctx) {
	first, ok := c.integer(2)
	if !ok {
		return
	}
	last, ok := c.integer(3)
	if !ok {
		return
	}
	e, found, ok := c.readString(1)
	switch {
	case !ok:
		return
	case !found:
		c.reply.EmptyBulk()
		return
	}
	var digits integerText
	c.reply.Bulk(cutRange(e.Bytes(digits[:]), first, last))
}

// cutRange returns the bytes of text from position first to last, both included. Negative positions count from the end.
func cutRange(text []byte, first, last int64) []byte {
	n := int64(len(text))
	if first < 0 && last < 0 && first > last {
		return nil
	}
	if first < 0 {
		first = max(first+n, 0)
	}
	if last < 0 {
		last = max(last+n, 0)
	}
	last = min(last, n-1)
	if first > last {
		return nil
	}
	return text[first : last+1]
}

func strLen(c *Ctx) {
	e, found, ok := c.readString(1)
	switch {
	case !ok:
	case !found:
		c.reply.Zero()
	default:
		c.reply.Int(int64(e.StrLen()))
	}
}

func mget(c *Ctx) {
	c.reply.Array(len(c.args) - 1)
	for i := 1; i < len(c.args); i++ {
		e, found := c.lookupRead(i)
		c.sendStringOrNull(&e, found && e.Kind() == store.KindString)
	}
}

// setOptions are the words after SET's value.
type setOptions struct {
	nx, xx, get, keepTTL bool
	expiry               expiryOption
}

// parseSetOptions reads the words after SET's value, or sends the error and returns false.
func (c *Ctx) parseSetOptions(o *setOptions) bool {
	for i := 3; i < len(c.args); i++ {
		switch {
		case c.is(i, "NX") && !o.xx:
			o.nx = true
		case c.is(i, "XX") && !o.nx:
			o.xx = true
		case c.is(i, "GET"):
			o.get = true
		case c.is(i, "KEEPTTL") && !o.expiry.given():
			o.keepTTL = true
		case !o.keepTTL && o.expiry.take(c.args, i):
			i++
		default:
			c.err(errSyntax)
			return false
		}
	}
	return true
}

// unconditional reports whether nothing of the key's present state matters.
func (o *setOptions) unconditional() bool { return !o.nx && !o.xx && !o.get && !o.keepTTL }

func set(c *Ctx) {
	var o setOptions
	if !c.parseSetOptions(&o) {
		return
	}
	at, ok := c.expiryTime(&o.expiry)
	switch {
	case !ok:
	case o.unconditional():
		k := c.key(1)
		c.settle(k)
		c.db.SetString(k, c.args[2], at)
		if at != 0 && c.logs() {
			c.effect("SET", c.args[1], c.args[2], "PXAT", at)
		}
		c.notifySet(at)
		c.ok()
	default:
		c.setIf(&o, at)
	}
}

// notifySet tells of a new value at args[1] that expires at the given time, if it does.
func (c *Ctx) notifySet(at int64) {
	c.notify(config.EventString, "set", c.args[1])
	if at != 0 {
		c.notify(config.EventGeneric, "expire", c.args[1])
	}
}

// setIf carries out a SET for which the key's present state matters. at is when the new value is to expire.
func (c *Ctx) setIf(o *setOptions, at int64) {
	e, found, ok := c.findForSet(o)
	if !ok {
		return
	}
	refused := (o.nx && found) || (o.xx && !found)
	switch {
	case o.get:
		c.sendStringOrNull(&e, found)
	case refused:
		c.reply.Null()
	default:
		c.ok()
	}
	if refused {
		return
	}
	stays := at
	if o.keepTTL && found {
		stays = e.ExpireAt()
	}
	c.db.SetString(c.key(1), c.args[2], stays)
	switch {
	case stays != 0 && !o.keepTTL:
		c.effect("SET", c.args[1], c.args[2], "PXAT", stays)
	case stays != 0 && o.get:
		c.effect("SET", c.args[1], c.args[2], "KEEPTTL")
	case o.get:
		c.effect("SET", c.args[1], c.args[2])
	}
	c.notifySet(at)
}

// findForSet finds SET's key, which with GET has to hold a string.
func (c *Ctx) findForSet(o *setOptions) (e store.Entry, found, ok bool) {
	if o.get {
		return c.readString(1)
	}
	e, found = c.db.Find(c.key(1), c.now)
	return e, found, true
}

func setNX(c *Ctx) {
	k := c.key(1)
	if _, found := c.db.Find(k, c.now); found {
		c.reply.Zero()
		return
	}
	c.db.SetString(k, c.args[2], 0)
	c.notify(config.EventString, "set", c.args[1])
	c.reply.One()
}

func setEx(c *Ctx)  { c.setFor(seconds) }
func psetEx(c *Ctx) { c.setFor(milliseconds) }

// setFor sets the key at args[1] to args[3] for the time in args[2], in units of unit ms.
func (c *Ctx) setFor(unit int64) {
	at, ok := c.futureTime(2, unit, false)
	if !ok {
		return
	}
	k := c.key(1)
	c.settle(k)
	c.db.SetString(k, c.args[3], at)
	c.effect("SET", c.args[1], c.args[3], "PXAT", at)
	c.notifySet(at)
	c.ok()
}

func mset(c *Ctx) {
	if len(c.args)%2 == 0 {
		c.errArity()
		return
	}
	c.setPairs()
	c.ok()
}

func msetNX(c *Ctx) {
	if len(c.args)%2 == 0 {
		c.errArity()
		return
	}
	for i := 1; i < len(c.args); i += 2 {
		if _, found := c.db.Find(c.key(i), c.now); found {
			c.reply.Zero()
			return
		}
	}
	c.setPairs()
	c.reply.One()
}

// setPairs sets the keys among the arguments to the values that follow them.
func (c *Ctx) setPairs() {
	for i := 1; i < len(c.args); i += 2 {
		k := c.key(i)
		c.settle(k)
		c.db.SetString(k, c.args[i+1], 0)
		c.notify(config.EventString, "set", k.Name)
	}
}

func appendTo(c *Ctx) {
	k, tail := c.key(1), c.args[2]
	e, found, ok := c.findString(k)
	if !ok || (found && !c.fitsString(int64(e.StrLen()), len(tail))) {
		return
	}
	n, err := c.db.AppendTo(k, c.now, tail)
	if err != nil {
		c.fail(err)
		return
	}
	c.notify(config.EventString, "append", c.args[1])
	c.reply.Int(int64(n))
}

func setRange(c *Ctx) {
	offset, ok := c.integer(2)
	if !ok {
		return
	}
	if offset < 0 {
		c.err(errOffsetRange)
		return
	}
	k, value := c.key(1), c.args[3]
	if _, _, ok := c.findString(k); !ok || (len(value) > 0 && !c.fitsString(offset, len(value))) {
		return
	}
	n, err := c.db.SetRange(k, c.now, int(offset), value)
	if err != nil {
		c.fail(err)
		return
	}
	if len(value) > 0 {
		c.notify(config.EventString, "setrange", c.args[1])
	}
	c.reply.Int(int64(n))
}

func incr(c *Ctx) { c.addInteger(1) }
func decr(c *Ctx) { c.addInteger(-1) }

func incrBy(c *Ctx) {
	if delta, ok := c.integer(2); ok {
		c.addInteger(delta)
	}
}

func decrBy(c *Ctx) {
	delta, ok := c.integer(2)
	switch {
	case !ok:
	case delta == math.MinInt64:
		c.err("ERR decrement would overflow")
	default:
		c.addInteger(-delta)
	}
}

// addInteger adds to the number at args[1], keeping its TTL, and sends the sum.
func (c *Ctx) addInteger(delta int64) {
	k := c.key(1)
	e, found, ok := c.findString(k)
	if !ok {
		return
	}
	if !found {
		c.db.SetInt(k, delta, 0)
		c.notify(config.EventString, "incrby", c.args[1])
		c.reply.Int(delta)
		return
	}
	n, isInt := e.Int()
	if !isInt {
		if n, isInt = number.ParseInt(e.Bytes(nil)); !isInt {
			c.err(errNotInteger)
			return
		}
	}
	if (delta > 0 && n > math.MaxInt64-delta) || (delta < 0 && n < math.MinInt64-delta) {
		c.err(errOverflow)
		return
	}
	e.SetInt(n + delta)
	c.notify(config.EventString, "incrby", c.args[1])
	c.reply.Int(n + delta)
}

func incrByFloat(c *Ctx) {
	k := c.key(1)
	e, found, ok := c.findString(k)
	if !ok {
		return
	}
	var value number.LongDouble
	at := int64(0)
	if found {
		var digits integerText
		if value, ok = number.ParseLongDouble(e.Bytes(digits[:])); !ok {
			c.err(errNotFloat)
			return
		}
		at = e.ExpireAt()
	}
	delta, ok := number.ParseLongDouble(c.args[2])
	if !ok {
		c.err(errNotFloat)
		return
	}
	sum, finite := value.Add(delta)
	if !finite {
		c.err(errNaN)
		return
	}
	c.scratch = sum.Append(c.scratch[:0])
	c.db.SetText(k, c.scratch, at)
	c.effect("SET", k.Name, c.scratch, "KEEPTTL")
	c.notify(config.EventString, "incrbyfloat", c.args[1])
	c.reply.Bulk(c.scratch)
}
