package types

import (
	"math"
	"strconv"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

// hashCommands: hashes.
var hashCommands = []*command.Command{
	{
		Name: "hdel", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields named",
		Summary: "Remove fields from a hash and return how many there were; a hash without fields is gone.",
		Arity:   -3, Flags: command.Write | command.Fast, Keys: command.Keys("RW DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("field").Multi()}, Reply: command.ReplyInteger, Handler: hdel,
	},
	{
		Name: "hexists", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Return whether a field exists in a hash.",
		Arity:   3, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("field")}, Reply: command.ReplyInteger, Handler: hexists,
	},
	{
		Name: "hget", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Return the value of a hash's field.",
		Arity:   3, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("field")}, Reply: command.ReplyBulk | command.ReplyNull, Handler: hget,
	},
	{
		Name: "hgetall", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields",
		Summary: "Return all fields of a hash with their values.",
		Arity:   2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipUnordered,
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyMap, Handler: hgetAll,
	},
	{
		Name: "hincrby", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Add to the number in a hash's field; a missing field counts as 0.",
		Arity:   4, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("field"), command.Integer("increment")}, Reply: command.ReplyInteger, Handler: hincrBy,
	},
	{
		Name: "hincrbyfloat", Group: command.GroupHash, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Add a floating-point number to the number in a hash's field; a missing field counts as 0.",
		Arity:   4, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("field"), command.Double("increment")}, Reply: command.ReplyBulk, Handler: hincrByFloat,
	},
	{
		Name: "hkeys", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields",
		Summary: "List the names of a hash's fields.",
		Arity:   2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipUnordered,
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyArray, Handler: hkeys,
	},
	{
		Name: "hlen", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Count the fields of a hash.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: hlen,
	},
	{
		Name: "hmget", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields named",
		Summary: "Return the values of several fields of a hash, null for each that does not exist.",
		Arity:   -3, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("field").Multi()}, Reply: command.ReplyArray, Handler: hmget,
	},
	{
		Name: "hmset", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields named",
		Summary: "Set fields of a hash. HSET does the same and counts the new ones.",
		Arity:   -4, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), fieldValueArg}, Reply: command.ReplySimple, Handler: hmset,
	},
	{
		Name: "hrandfield", Group: command.GroupHash, Since: "6.2.0", Complexity: "O(n) in the number of fields returned",
		Summary: "Return fields of a hash drawn at random: different ones, or with repeats for a negative count.",
		Arity:   -2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips:  command.TipVaries,
		Args:  []command.Arg{command.Key("key"), command.Block("options", command.Integer("count"), command.Tok("WITHVALUES").Opt()).Opt()},
		Reply: command.ReplyBulk | command.ReplyArray | command.ReplyNull, Handler: hrandField,
	},
	{
		Name: "hscan", Group: command.GroupHash, Since: "2.8.0", Complexity: "O(1) per call, O(n) in the number of fields for a full iteration",
		Summary: "Iterate over the fields of a hash and their values.",
		Arity:   -3, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{
			command.Key("key"), command.Integer("cursor"), command.Pattern("pattern").After("MATCH").Opt(), command.Integer("count").After("COUNT").Opt(),
		},
		Reply: command.ReplyArray, Handler: hscan,
	},
	{
		Name: "hset", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields named",
		Summary: "Set fields of a hash and return how many of them are new.",
		Arity:   -4, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), fieldValueArg}, Reply: command.ReplyInteger, Handler: hset,
	},
	{
		Name: "hsetnx", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Set a field of a hash unless the hash has it.",
		Arity:   4, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW INSERT", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("field"), command.Str("value")}, Reply: command.ReplyInteger, Handler: hsetNX,
	},
	{
		Name: "hstrlen", Group: command.GroupHash, Since: "3.2.0", Complexity: "O(1)",
		Summary: "Return the length in bytes of the value of a hash's field, 0 if there is none.",
		Arity:   3, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("field")}, Reply: command.ReplyInteger, Handler: hstrLen,
	},
	{
		Name: "hvals", Group: command.GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields",
		Summary: "List the values of a hash's fields.",
		Arity:   2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipUnordered,
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyArray, Handler: hvals,
	},
}

// fieldValueArg declares the pairs that HSET takes.
var fieldValueArg = command.Block("field_value", command.Str("field"), command.Str("value")).Multi()

func hget(c *command.Ctx) {
	if h, _, ok := c.ReadHash(1); ok {
		sendField(c, &h, c.Args[2])
	}
}

func hmget(c *command.Ctx) {
	h, _, ok := c.ReadHash(1)
	if !ok {
		return
	}
	c.Reply.Array(len(c.Args) - 2)
	for _, field := range c.Args[2:] {
		sendField(c, &h, field)
	}
}

// sendField sends a field's value, or null for a missing one.
func sendField(c *command.Ctx, h *store.Hash, field []byte) {
	value, ok := h.Get(field)
	if !ok {
		c.Reply.Null()
		return
	}
	c.Reply.Bulk(value)
}

func hexists(c *command.Ctx) {
	h, _, ok := c.ReadHash(1)
	if !ok {
		return
	}
	if _, has := h.Get(c.Args[2]); has {
		c.Reply.One()
	} else {
		c.Reply.Zero()
	}
}

func hstrLen(c *command.Ctx) {
	h, _, ok := c.ReadHash(1)
	if !ok {
		return
	}
	value, _ := h.Get(c.Args[2])
	c.Reply.Int(int64(len(value)))
}

func hlen(c *command.Ctx) {
	if h, _, ok := c.ReadHash(1); ok {
		c.Reply.Int(int64(h.Len()))
	}
}

func hgetAll(c *command.Ctx) {
	h, _, ok := c.ReadHash(1)
	if !ok {
		return
	}
	c.Reply.Map(h.Len())
	h.Each(func(field, value []byte) bool {
		c.Reply.Bulk(field)
		c.Reply.Bulk(value)
		return true
	})
}

func hkeys(c *command.Ctx) {
	h, _, ok := c.ReadHash(1)
	if !ok {
		return
	}
	c.Reply.Array(h.Len())
	h.Each(func(field, _ []byte) bool {
		c.Reply.Bulk(field)
		return true
	})
}

func hvals(c *command.Ctx) {
	h, _, ok := c.ReadHash(1)
	if !ok {
		return
	}
	c.Reply.Array(h.Len())
	h.Each(func(_, value []byte) bool {
		c.Reply.Bulk(value)
		return true
	})
}

func hset(c *command.Ctx) {
	if created, ok := setFields(c); ok {
		c.Reply.Int(created)
	}
}

func hmset(c *command.Ctx) {
	if _, ok := setFields(c); ok {
		c.OK()
	}
}

// setFields sets the fields among the arguments to the values that follow them. It returns how many are new, or sends the error and
// returns false.
func setFields(c *command.Ctx) (created int64, ok bool) {
	if len(c.Args)%2 != 0 {
		c.ErrArity()
		return 0, false
	}
	h, ok := c.ChangeHash(1)
	if !ok {
		return 0, false
	}
	for i := 2; i < len(c.Args); i += 2 {
		if h.Set(c.Args[i], c.Args[i+1]) {
			created++
		}
	}
	c.Notify(config.EventHash, "hset", c.Args[1])
	return created, true
}

func hsetNX(c *command.Ctx) {
	h, ok := c.ChangeHash(1)
	if !ok {
		return
	}
	if _, has := h.Get(c.Args[2]); has {
		c.Reply.Zero()
		return
	}
	h.Set(c.Args[2], c.Args[3])
	c.Notify(config.EventHash, "hset", c.Args[1])
	c.Reply.One()
}

func hdel(c *command.Ctx) {
	h, ok := c.ChangeHash(1)
	if !ok {
		return
	}
	deleted := int64(0)
	for i := 2; i < len(c.Args) && h.Len() > 0; i++ {
		if h.Delete(c.Args[i]) {
			deleted++
		}
	}
	if deleted > 0 {
		c.Notify(config.EventHash, "hdel", c.Args[1])
		c.NotifyDeleted(h.Len() == 0, c.Args[1])
	}
	c.Reply.Int(deleted)
}

func hincrBy(c *command.Ctx) {
	delta, ok := c.Integer(3)
	if !ok {
		return
	}
	h, ok := c.ChangeHash(1)
	if !ok {
		return
	}
	n, field := int64(0), c.Args[2]
	if value, has := h.Get(field); has {
		if n, ok = number.ParseInt(value); !ok {
			c.Err(command.ErrHashNotInteger)
			return
		}
	}
	if (delta > 0 && n > math.MaxInt64-delta) || (delta < 0 && n < math.MinInt64-delta) {
		c.Err(command.ErrOverflow)
		return
	}
	n += delta
	var digits command.IntegerText
	h.Set(field, strconv.AppendInt(digits[:0], n, 10))
	c.Notify(config.EventHash, "hincrby", c.Args[1])
	c.Reply.Int(n)
}

func hincrByFloat(c *command.Ctx) {
	delta, ok := number.ParseLongDouble(c.Args[3])
	switch {
	case !ok:
		c.Err(command.ErrNotFloat)
		return
	case delta.IsInf():
		c.Err("ERR value is NaN or Infinity")
		return
	}
	h, ok := c.ChangeHash(1)
	if !ok {
		return
	}
	var n number.LongDouble
	field := c.Args[2]
	if value, has := h.Get(field); has {
		if n, ok = number.ParseLongDouble(value); !ok {
			c.Err(command.ErrHashNotFloat)
			return
		}
	}
	sum, finite := n.Add(delta)
	if !finite {
		c.Err(command.ErrNaN)
		return
	}
	c.Scratch = sum.Append(c.Scratch[:0])
	h.Set(field, c.Scratch)
	c.Effect("HSET", c.Args[1], field, c.Scratch)
	c.Notify(config.EventHash, "hincrbyfloat", c.Args[1])
	c.Reply.Bulk(c.Scratch)
}

func hrandField(c *command.Ctx) {
	count, values := int64(1), false
	single := len(c.Args) == 2
	if !single {
		var ok bool
		if count, values, ok = randomArgs(c, "WITHVALUES"); !ok {
			return
		}
	}
	h, found, ok := c.ReadHash(1)
	switch {
	case !ok:
	case single:
		sendOneRandom(c, &hashFields{h}, found)
	default:
		sendRandom(c, &hashFields{h}, count, values)
	}
}

func hscan(c *command.Ctx) {
	cursor, ok := scanCursor(c, 2)
	if !ok {
		return
	}
	h, found, ok := c.ReadHash(1)
	if !ok {
		return
	}
	o, ok := elementOptions(c, found)
	if !ok {
		return
	}
	var elements [][]byte
	next := h.Scan(cursor, o.count, func(field, value []byte) {
		if o.matches(field) {
			elements = append(elements, field, value)
		}
	})
	sendScan(c, next, elements)
}
