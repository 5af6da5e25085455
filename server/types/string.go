package types

import (
	"math"
	"slices"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

// stringCommands: strings and counters.
var stringCommands = []*command.Command{
	{
		Name: "append", Group: command.GroupString, Since: "2.0.0", Complexity: "O(n) in the length of the value appended",
		Summary: "Append to a string, which is created if it does not exist, and return its length.",
		Arity:   3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW INSERT", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("value")}, Reply: command.ReplyInteger, Handler: appendTo,
	},
	{
		Name: "decr", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Subtract one from the number at a key; a missing key counts as 0.",
		Arity:   2, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: decr,
	},
	{
		Name: "decrby", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Subtract from the number at a key; a missing key counts as 0.",
		Arity:   3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("decrement")}, Reply: command.ReplyInteger, Handler: decrBy,
	},
	{
		Name: "get", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Return the string at a key.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyBulk | command.ReplyNull, Handler: get,
	},
	{
		Name: "getdel", Group: command.GroupString, Since: "6.2.0", Complexity: "O(1)",
		Summary: "Return the string at a key and delete the key.",
		Arity:   2, Flags: command.Write | command.Fast, Keys: command.Keys("RW ACCESS DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyBulk | command.ReplyNull, Handler: getDel,
	},
	{
		Name: "getex", Group: command.GroupString, Since: "6.2.0", Complexity: "O(1)",
		Summary: "Return the string at a key, and set or remove its TTL.",
		Arity:   -2, Flags: command.Write | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args:  []command.Arg{command.Key("key"), command.OneOf("expiration", append(slices.Clone(expiryArgs), command.Tok("PERSIST"))...).Opt()},
		Reply: command.ReplyBulk | command.ReplyNull, Handler: getEx,
	},
	{
		Name: "getrange", Group: command.GroupString, Since: "2.4.0", Complexity: "O(n) in the length of the reply",
		Summary: "Return the bytes of a string between two positions; negative ones count from its end.",
		Arity:   4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("start"), command.Integer("end")}, Reply: command.ReplyBulk, Handler: getRange,
	},
	{
		Name: "getset", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Set a key to a string and return the previous one; SET with GET does the same.",
		Arity:   3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("value")}, Reply: command.ReplyBulk | command.ReplyNull, Handler: getSet,
	},
	{
		Name: "incr", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Add one to the number at a key; a missing key counts as 0.",
		Arity:   2, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: incr,
	},
	{
		Name: "incrby", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Add to the number at a key; a missing key counts as 0.",
		Arity:   3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("increment")}, Reply: command.ReplyInteger, Handler: incrBy,
	},
	{
		Name: "incrbyfloat", Group: command.GroupString, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Add a floating-point number to the number at a key; a missing key counts as 0.",
		Arity:   3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Double("increment")}, Reply: command.ReplyBulk, Handler: incrByFloat,
	},
	increxCommand,
	{
		Name: "mget", Group: command.GroupString, Since: "1.0.0", Complexity: "O(n) in the number of keys",
		Summary: "Return the strings at several keys, null for each that has none.",
		Arity:   -2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, -1, 1),
		Tips: "request_policy:multi_shard",
		Args: []command.Arg{command.Key("key").Multi()}, Reply: command.ReplyArray, Handler: mget,
	},
	{
		Name: "mset", Group: command.GroupString, Since: "1.0.1", Complexity: "O(n) in the number of keys",
		Summary: "Set several keys to strings as one unit.",
		Arity:   -3, Flags: command.Write | command.DenyOOM, Keys: command.Keys("OW UPDATE", 1, -1, 2),
		Tips: "request_policy:multi_shard response_policy:all_succeeded",
		Args: []command.Arg{command.Block("key_value", command.Key("key"), command.Str("value")).Multi()}, Reply: command.ReplySimple, Handler: mset,
	},
	{
		Name: "msetnx", Group: command.GroupString, Since: "1.0.1", Complexity: "O(n) in the number of keys",
		Summary: "Set several keys to strings as one unit, unless one of them exists.",
		Arity:   -3, Flags: command.Write | command.DenyOOM, Keys: command.Keys("OW INSERT", 1, -1, 2),
		Tips: "request_policy:multi_shard response_policy:agg_min",
		Args: []command.Arg{command.Block("key_value", command.Key("key"), command.Str("value")).Multi()}, Reply: command.ReplyInteger, Handler: msetNX,
	},
	{
		Name: "psetex", Group: command.GroupString, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Set a key to a string with a TTL in milliseconds.",
		Arity:   4, Flags: command.Write | command.DenyOOM | command.Sampled, Keys: command.Keys("OW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("milliseconds"), command.Str("value")}, Reply: command.ReplySimple, Handler: psetEx,
	},
	{
		Name: "set", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Set a key to a string, with optional conditions and TTL.",
		Arity:   -3, Flags: command.Write | command.DenyOOM | command.Sampled, Keys: command.Varying(command.Keys("RW ACCESS UPDATE", 1, 1, 1), setAccess),
		Args: []command.Arg{
			command.Key("key"), command.Str("value"), command.OneOf("condition", command.Tok("NX"), command.Tok("XX")).Opt(), command.Tok("GET").Opt(),
			command.OneOf("expiration", append(slices.Clone(expiryArgs), command.Tok("KEEPTTL"))...).Opt(),
		},
		Reply: command.ReplySimple | command.ReplyBulk | command.ReplyNull, Handler: set,
	},
	{
		Name: "setex", Group: command.GroupString, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Set a key to a string with a TTL in seconds.",
		Arity:   4, Flags: command.Write | command.DenyOOM | command.Sampled, Keys: command.Keys("OW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("seconds"), command.Str("value")}, Reply: command.ReplySimple, Handler: setEx,
	},
	{
		Name: "setnx", Group: command.GroupString, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Set a key to a string unless it exists.",
		Arity:   3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("OW INSERT", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("value")}, Reply: command.ReplyInteger, Handler: setNX,
	},
	{
		Name: "setrange", Group: command.GroupString, Since: "2.2.0", Complexity: "O(n) in the length of the value, and of the gap before it",
		Summary: "Overwrite a string from a position on, filling any gap with zero bytes, and return its length.",
		Arity:   4, Flags: command.Write | command.DenyOOM, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("offset"), command.Str("value")}, Reply: command.ReplyInteger, Handler: setRange,
	},
	{
		Name: "strlen", Group: command.GroupString, Since: "2.2.0", Complexity: "O(1)",
		Summary: "Return the length in bytes of the string at a key, 0 if there is none.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: strLen,
	},
	{
		Name: "substr", Group: command.GroupString, Since: "1.0.0", Complexity: "O(n) in the length of the reply",
		Summary: "GETRANGE by its old name.",
		Arity:   4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("start"), command.Integer("end")}, Reply: command.ReplyBulk, Handler: getRange,
	},
}

// setAccess is what SET does with its key: it only writes, unless GET is among the arguments.
func setAccess(args [][]byte) string {
	if slices.ContainsFunc(args[min(3, len(args)):], func(a []byte) bool { return ascii.EqualFold(a, "GET") }) {
		return "RW ACCESS UPDATE"
	}
	return "OW UPDATE"
}

// readString finds the string at args[i] for reading. It sends the error for another type and returns ok false.
func readString(c *command.Ctx, i int) (e store.Entry, found, ok bool) {
	e, found = c.Find(i)
	return e, found, expectString(c, &e, found)
}

// findString finds the string at a key for a change. It sends the error for another type and returns ok false.
func findString(c *command.Ctx, k store.Key) (e store.Entry, found, ok bool) {
	e, found = c.DB.Find(k, c.Now)
	return e, found, expectString(c, &e, found)
}

func expectString(c *command.Ctx, e *store.Entry, found bool) bool {
	if found && e.Kind() != store.KindString {
		c.Err(command.ErrWrongType)
		return false
	}
	return true
}

// sendString sends a string value as a bulk string.
func sendString(c *command.Ctx, e *store.Entry) {
	if n, ok := e.Int(); ok {
		c.Reply.BulkInt(n)
		return
	}
	c.Reply.Bulk(e.Bytes(nil))
}

// sendStringOrNull sends a string value, or null for a missing key.
func sendStringOrNull(c *command.Ctx, e *store.Entry, found bool) {
	if !found {
		c.Reply.Null()
		return
	}
	sendString(c, e)
}

// fitsString reports whether a string may have from+more bytes, or sends the error and returns false.
func fitsString(c *command.Ctx, from int64, more int) bool {
	if from > int64(c.Cfg.ProtoMaxBulkLen)-int64(more) {
		c.Err(command.ErrStringTooLong)
		return false
	}
	return true
}

func get(c *command.Ctx) {
	e, found, ok := readString(c, 1)
	if !ok {
		return
	}
	sendStringOrNull(c, &e, found)
}

func getDel(c *command.Ctx) {
	e, found, ok := readString(c, 1)
	if !ok {
		return
	}
	sendStringOrNull(c, &e, found)
	if found {
		e.Delete()
		c.Effect("DEL", c.Args[1])
		c.Notify(config.EventGeneric, "del", c.Args[1])
	}
}

func getEx(c *command.Ctx) {
	expiry, persist, ok := parseGetExOptions(c)
	if !ok {
		return
	}
	e, found, ok := readString(c, 1)
	if !ok {
		return
	}
	if !found {
		c.Reply.Null()
		return
	}
	at, ok := expiryTime(c, &expiry)
	if !ok {
		return
	}
	sendString(c, &e)
	switch {
	case expiry.given() && at <= c.Now:
		e.Delete()
		c.Effect("DEL", c.Args[1])
		c.Notify(config.EventGeneric, "del", c.Args[1])
	case expiry.given():
		e.SetExpireAt(at)
		c.Effect("PEXPIREAT", c.Args[1], at)
		c.Notify(config.EventGeneric, "expire", c.Args[1])
	case persist && e.ExpireAt() != 0:
		e.SetExpireAt(0)
		c.Effect("PERSIST", c.Args[1])
		c.Notify(config.EventGeneric, "persist", c.Args[1])
	}
}

func parseGetExOptions(c *command.Ctx) (expiry expiryOption, persist, ok bool) {
	for i := 2; i < len(c.Args); i++ {
		switch {
		case c.Is(i, "PERSIST") && !expiry.given():
			persist = true
		case !persist && expiry.take(c.Args, i):
			i++
		default:
			c.Err(command.ErrSyntax)
			return expiry, persist, false
		}
	}
	return expiry, persist, true
}

func getSet(c *command.Ctx) {
	e, found, ok := readString(c, 1)
	if !ok {
		return
	}
	sendStringOrNull(c, &e, found)
	c.DB.SetString(c.Key(1), c.Args[2], 0)
	c.Effect("SET", c.Args[1], c.Args[2])
	c.Notify(config.EventString, "set", c.Args[1])
}

func getRange(c *command.Ctx) {
	first, ok := c.Integer(2)
	if !ok {
		return
	}
	last, ok := c.Integer(3)
	if !ok {
		return
	}
	e, found, ok := readString(c, 1)
	switch {
	case !ok:
		return
	case !found:
		c.Reply.EmptyBulk()
		return
	}
	var digits command.IntegerText
	c.Reply.Bulk(cutRange(e.Bytes(digits[:]), first, last))
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

func strLen(c *command.Ctx) {
	e, found, ok := readString(c, 1)
	switch {
	case !ok:
	case !found:
		c.Reply.Zero()
	default:
		c.Reply.Int(int64(e.StrLen()))
	}
}

func mget(c *command.Ctx) {
	c.Reply.Array(len(c.Args) - 1)
	for i := 1; i < len(c.Args); i++ {
		e, found := c.Find(i)
		sendStringOrNull(c, &e, found && e.Kind() == store.KindString)
	}
}

// setOptions are the words after SET's value.
type setOptions struct {
	nx, xx, get, keepTTL bool
	expiry               expiryOption
}

// parseSetOptions reads the words after SET's value, or sends the error and returns false.
func parseSetOptions(c *command.Ctx, o *setOptions) bool {
	for i := 3; i < len(c.Args); i++ {
		switch {
		case c.Is(i, "NX") && !o.xx:
			o.nx = true
		case c.Is(i, "XX") && !o.nx:
			o.xx = true
		case c.Is(i, "GET"):
			o.get = true
		case c.Is(i, "KEEPTTL") && !o.expiry.given():
			o.keepTTL = true
		case !o.keepTTL && o.expiry.take(c.Args, i):
			i++
		default:
			c.Err(command.ErrSyntax)
			return false
		}
	}
	return true
}

// unconditional reports whether nothing of the key's present state matters.
func (o *setOptions) unconditional() bool { return !o.nx && !o.xx && !o.get && !o.keepTTL }

func set(c *command.Ctx) {
	var o setOptions
	if !parseSetOptions(c, &o) {
		return
	}
	at, ok := expiryTime(c, &o.expiry)
	switch {
	case !ok:
	case o.unconditional():
		k := c.Key(1)
		c.Settle(k)
		c.DB.SetString(k, c.Args[2], at)
		if at != 0 && c.Logs() {
			c.Effect("SET", c.Args[1], c.Args[2], "PXAT", at)
		}
		notifySet(c, at)
		c.OK()
	default:
		setIf(c, &o, at)
	}
}

// notifySet tells of a new value at args[1] that expires at the given time, if it does.
func notifySet(c *command.Ctx, at int64) {
	c.Notify(config.EventString, "set", c.Args[1])
	if at != 0 {
		c.Notify(config.EventGeneric, "expire", c.Args[1])
	}
}

// setIf carries out a SET for which the key's present state matters. at is when the new value is to expire.
func setIf(c *command.Ctx, o *setOptions, at int64) {
	e, found, ok := findForSet(c, o)
	if !ok {
		return
	}
	refused := (o.nx && found) || (o.xx && !found)
	switch {
	case o.get:
		sendStringOrNull(c, &e, found)
	case refused:
		c.Reply.Null()
	default:
		c.OK()
	}
	if refused {
		return
	}
	stays := at
	if o.keepTTL && found {
		stays = e.ExpireAt()
	}
	c.DB.SetString(c.Key(1), c.Args[2], stays)
	switch {
	case stays != 0 && !o.keepTTL:
		c.Effect("SET", c.Args[1], c.Args[2], "PXAT", stays)
	case stays != 0 && o.get:
		c.Effect("SET", c.Args[1], c.Args[2], "KEEPTTL")
	case o.get:
		c.Effect("SET", c.Args[1], c.Args[2])
	}
	notifySet(c, at)
}

// findForSet finds SET's key, which with GET has to hold a string.
func findForSet(c *command.Ctx, o *setOptions) (e store.Entry, found, ok bool) {
	if o.get {
		return readString(c, 1)
	}
	e, found = c.DB.Find(c.Key(1), c.Now)
	return e, found, true
}

func setNX(c *command.Ctx) {
	k := c.Key(1)
	if _, found := c.DB.Find(k, c.Now); found {
		c.Reply.Zero()
		return
	}
	c.DB.SetString(k, c.Args[2], 0)
	c.Notify(config.EventString, "set", c.Args[1])
	c.Reply.One()
}

func setEx(c *command.Ctx)  { setFor(c, seconds) }
func psetEx(c *command.Ctx) { setFor(c, milliseconds) }

// setFor sets the key at args[1] to args[3] for the time in args[2], in units of unit ms.
func setFor(c *command.Ctx, unit int64) {
	at, ok := futureTime(c, 2, unit, false)
	if !ok {
		return
	}
	k := c.Key(1)
	c.Settle(k)
	c.DB.SetString(k, c.Args[3], at)
	c.Effect("SET", c.Args[1], c.Args[3], "PXAT", at)
	notifySet(c, at)
	c.OK()
}

func mset(c *command.Ctx) {
	if len(c.Args)%2 == 0 {
		c.ErrArity()
		return
	}
	setPairs(c)
	c.OK()
}

func msetNX(c *command.Ctx) {
	if len(c.Args)%2 == 0 {
		c.ErrArity()
		return
	}
	for i := 1; i < len(c.Args); i += 2 {
		if _, found := c.DB.Find(c.Key(i), c.Now); found {
			c.Reply.Zero()
			return
		}
	}
	setPairs(c)
	c.Reply.One()
}

// setPairs sets the keys among the arguments to the values that follow them.
func setPairs(c *command.Ctx) {
	for i := 1; i < len(c.Args); i += 2 {
		k := c.Key(i)
		c.Settle(k)
		c.DB.SetString(k, c.Args[i+1], 0)
		c.Notify(config.EventString, "set", k.Name)
	}
}

func appendTo(c *command.Ctx) {
	k, tail := c.Key(1), c.Args[2]
	e, found, ok := findString(c, k)
	if !ok || (found && !fitsString(c, int64(e.StrLen()), len(tail))) {
		return
	}
	n, err := c.DB.AppendTo(k, c.Now, tail)
	if err != nil {
		c.Fail(err)
		return
	}
	c.Notify(config.EventString, "append", c.Args[1])
	c.Reply.Int(int64(n))
}

func setRange(c *command.Ctx) {
	offset, ok := c.Integer(2)
	if !ok {
		return
	}
	if offset < 0 {
		c.Err(command.ErrOffsetRange)
		return
	}
	k, value := c.Key(1), c.Args[3]
	if _, _, ok := findString(c, k); !ok || (len(value) > 0 && !fitsString(c, offset, len(value))) {
		return
	}
	n, err := c.DB.SetRange(k, c.Now, int(offset), value)
	if err != nil {
		c.Fail(err)
		return
	}
	if len(value) > 0 {
		c.Notify(config.EventString, "setrange", c.Args[1])
	}
	c.Reply.Int(int64(n))
}

func incr(c *command.Ctx) { addInteger(c, 1) }
func decr(c *command.Ctx) { addInteger(c, -1) }

func incrBy(c *command.Ctx) {
	if delta, ok := c.Integer(2); ok {
		addInteger(c, delta)
	}
}

func decrBy(c *command.Ctx) {
	delta, ok := c.Integer(2)
	switch {
	case !ok:
	case delta == math.MinInt64:
		c.Err("ERR decrement would overflow")
	default:
		addInteger(c, -delta)
	}
}

// addInteger adds to the number at args[1], keeping its TTL, and sends the sum.
func addInteger(c *command.Ctx, delta int64) {
	k := c.Key(1)
	e, found, ok := findString(c, k)
	if !ok {
		return
	}
	if !found {
		c.DB.SetInt(k, delta, 0)
		c.Notify(config.EventString, "incrby", c.Args[1])
		c.Reply.Int(delta)
		return
	}
	n, isInt := e.Int()
	if !isInt {
		if n, isInt = number.ParseInt(e.Bytes(nil)); !isInt {
			c.Err(command.ErrNotInteger)
			return
		}
	}
	if (delta > 0 && n > math.MaxInt64-delta) || (delta < 0 && n < math.MinInt64-delta) {
		c.Err(command.ErrOverflow)
		return
	}
	e.SetInt(n + delta)
	c.Notify(config.EventString, "incrby", c.Args[1])
	c.Reply.Int(n + delta)
}

func incrByFloat(c *command.Ctx) {
	k := c.Key(1)
	e, found, ok := findString(c, k)
	if !ok {
		return
	}
	var value number.LongDouble
	at := int64(0)
	if found {
		var digits command.IntegerText
		if value, ok = number.ParseLongDouble(e.Bytes(digits[:])); !ok {
			c.Err(command.ErrNotFloat)
			return
		}
		at = e.ExpireAt()
	}
	delta, ok := number.ParseLongDouble(c.Args[2])
	if !ok {
		c.Err(command.ErrNotFloat)
		return
	}
	sum, finite := value.Add(delta)
	if !finite {
		c.Err(command.ErrNaN)
		return
	}
	c.Scratch = sum.Append(c.Scratch[:0])
	c.DB.SetText(k, c.Scratch, at)
	c.Effect("SET", k.Name, c.Scratch, "KEEPTTL")
	c.Notify(config.EventString, "incrbyfloat", c.Args[1])
	c.Reply.Bulk(c.Scratch)
}
