package server

import (
	"math"
	"strconv"

	"headgate/internal/number"
	"headgate/server/config"
	"headgate/store"
)

// hashCommands: hashes.
var hashCommands = []*Command{
	{
		Name: "hdel", Group: GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields named",
		Summary: "Remove fields from a hash and return how many there were; a hash without fields is gone.",
		Arity:   -3, Flags: Write | Fast, Keys: keys("RW DELETE", 1, 1, 1),
		Args: []Arg{key("key"), str("field").multi()}, Reply: ReplyInteger, Handler: hdel,
	},
	{
		Name: "hexists", Group: GroupHash, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Tell whether a hash has a field.",
		Arity:   3, Flags: ReadOnly | Fast, Keys: keys("RO", 1, 1, 1),
		Args: []Arg{key("key"), str("field")}, Reply: ReplyInteger, Handler: hexists,
	},
	{
		Name: "hget", Group: GroupHash, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Return the value of a hash's field.",
		Arity:   3, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), str("field")}, Reply: ReplyBulk | ReplyNull, Handler: hget,
	},
	{
		Name: "hgetall", Group: GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields",
		Summary: "Return all fields of a hash with their values.",
		Arity:   2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipUnordered,
		Args: []Arg{key("key")}, Reply: ReplyMap, Handler: hgetAll,
	},
	{
		Name: "hincrby", Group: GroupHash, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Add to the number in a hash's field; a missing field counts as 0.",
		Arity:   4, Flags: Write | DenyOOM | Fast, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), str("field"), integer("increment")}, Reply: ReplyInteger, Handler: hincrBy,
	},
	{
		Name: "hincrbyfloat", Group: GroupHash, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Add a fraction to the number in a hash's field; a missing field counts as 0.",
		Arity:   4, Flags: Write | DenyOOM | Fast, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), str("field"), double("increment")}, Reply: ReplyBulk, Handler: hincrByFloat,
	},
	{
		Name: "hkeys", Group: GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields",
		Summary: "List the names of a hash's fields.",
		Arity:   2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipUnordered,
		Args: []Arg{key("key")}, Reply: ReplyArray, Handler: hkeys,
	},
	{
		Name: "hlen", Group: GroupHash, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Count the fields of a hash.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: hlen,
	},
	{
		Name: "hmget", Group: GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields named",
		Summary: "Return the values of several fields of a hash, null for each that it has not.",
		Arity:   -3, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), str("field").multi()}, Reply: ReplyArray, Handler: hmget,
	},
	{
		Name: "hmset", Group: GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields named",
		Summary: "Set fields of a hash; HSET does the same and counts the new ones.",
		Arity:   -4, Flags: Write | DenyOOM | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), fieldValueArg}, Reply: ReplySimple, Handler: hmset,
	},
	{
		Name: "hrandfield", Group: GroupHash, Since: "6.2.0", Complexity: "O(n) in the number of fields returned",
		Summary: "Return fields of a hash drawn at random: different ones, or with repeats for a negative count.",
		Arity:   -2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips:  tipVaries,
		Args:  []Arg{key("key"), block("options", integer("count"), tok("WITHVALUES").opt()).opt()},
		Reply: ReplyBulk | ReplyArray | ReplyNull, Handler: hrandField,
	},
	{
		Name: "hscan", Group: GroupHash, Since: "2.8.0", Complexity: "O(1) per call, O(n) in the number of fields for a full iteration",
		Summary: "Go through the fields of a hash with their values, a part with each call.",
		Arity:   -3, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{
			key("key"), integer("cursor"), pattern("pattern").after("MATCH").opt(), integer("count").after("COUNT").opt(),
		},
		Reply: ReplyArray, Handler: hscan,
	},
	{
		Name: "hset", Group: GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields named",
		Summary: "Set fields of a hash and return how many of them are new.",
		Arity:   -4, Flags: Write | DenyOOM | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), fieldValueArg}, Reply: ReplyInteger, Handler: hset,
	},
	{
		Name: "hsetnx", Group: GroupHash, Since: "2.0.0", Complexity: "O(1)",
		Summary: "Set a field of a hash unless the hash has it.",
		Arity:   4, Flags: Write | DenyOOM | Fast, Keys: keys("RW INSERT", 1, 1, 1),
		Args: []Arg{key("key"), str("field"), str("value")}, Reply: ReplyInteger, Handler: hsetNX,
	},
	{
		Name: "hstrlen", Group: GroupHash, Since: "3.2.0", Complexity: "O(1)",
		Summary: "Return the length in bytes of the value of a hash's field, 0 if there is none.",
		Arity:   3, Flags: ReadOnly | Fast, Keys: keys("RO", 1, 1, 1),
		Args: []Arg{key("key"), str("field")}, Reply: ReplyInteger, Handler: hstrLen,
	},
	{
		Name: "hvals", Group: GroupHash, Since: "2.0.0", Complexity: "O(n) in the number of fields",
		Summary: "List the values of a hash's fields.",
		Arity:   2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipUnordered,
		Args: []Arg{key("key")}, Reply: ReplyArray, Handler: hvals,
	},
}

// fieldValueArg declares the pairs that HSET takes.
var fieldValueArg = block("field_value", str("field"), str("value")).multi()

func hget(c *Ctx) {
	if h, _, ok := c.readHash(1); ok {
		c.sendField(&h, c.args[2])
	}
}

func hmget(c *Ctx) {
	h, _, ok := c.readHash(1)
	if !ok {
		return
	}
	c.reply.Array(len(c.args) - 2)
	for _, field := range c.args[2:] {
		c.sendField(&h, field)
	}
}

// sendField sends a field's value, or null for a missing one.
func (c *Ctx) sendField(h *store.Hash, field []byte) {
	value, ok := h.Get(field)
	if !ok {
		c.reply.Null()
		return
	}
	c.reply.Bulk(value)
}

func hexists(c *Ctx) {
	h, _, ok := c.readHash(1)
	if !ok {
		return
	}
	if _, has := h.Get(c.args[2]); has {
		c.reply.One()
	} else {
		c.reply.Zero()
	}
}

func hstrLen(c *Ctx) {
	h, _, ok := c.readHash(1)
	if !ok {
		return
	}
	value, _ := h.Get(c.args[2])
	c.reply.Int(int64(len(value)))
}

func hlen(c *Ctx) {
	if h, _, ok := c.readHash(1); ok {
		c.reply.Int(int64(h.Len()))
	}
}

func hgetAll(c *Ctx) {
	h, _, ok := c.readHash(1)
	if !ok {
		return
	}
	c.reply.Map(h.Len())
	h.Each(func(field, value []byte) bool {
		c.reply.Bulk(field)
		c.reply.Bulk(value)
		return true
	})
}

func hkeys(c *Ctx) {
	h, _, ok := c.readHash(1)
	if !ok {
		return
	}
	c.reply.Array(h.Len())
	h.Each(func(field, _ []byte) bool {
		c.reply.Bulk(field)
		return true
	})
}

func hvals(c *Ctx) {
	h, _, ok := c.readHash(1)
	if !ok {
		return
	}
	c.reply.Array(h.Len())
	h.Each(func(_, value []byte) bool {
		c.reply.Bulk(value)
		return true
	})
}

func hset(c *Ctx) {
	if created, ok := c.setFields(); ok {
		c.reply.Int(created)
	}
}

func hmset(c *Ctx) {
	if _, ok := c.setFields(); ok {
		c.ok()
	}
}

// setFields sets the fields among the arguments to the values that follow them. It returns how many are new, or sends the error and
// returns false.
func (c *Ctx) setFields() (created int64, ok bool) {
	if len(c.args)%2 != 0 {
		c.errArity()
		return 0, false
	}
	h, ok := c.changeHash(1)
	if !ok {
		return 0, false
	}
	for i := 2; i < len(c.args); i += 2 {
		if h.Set(c.args[i], c.args[i+1]) {
			created++
		}
	}
	c.notify(config.EventHash, "hset", c.args[1])
	return created, true
}

func hsetNX(c *Ctx) {
	h, ok := c.changeHash(1)
	if !ok {
		return
	}
	if _, has := h.Get(c.args[2]); has {
		c.reply.Zero()
		return
	}
	h.Set(c.args[2], c.args[3])
	c.notify(config.EventHash, "hset", c.args[1])
	c.reply.One()
}

func hdel(c *Ctx) {
	h, ok := c.changeHash(1)
	if !ok {
		return
	}
	deleted := int64(0)
	for i := 2; i < len(c.args) && h.Len() > 0; i++ {
		if h.Delete(c.args[i]) {
			deleted++
		}
	}
	if deleted > 0 {
		c.notify(config.EventHash, "hdel", c.args[1])
		c.notifyDeleted(h.Len() == 0, c.args[1])
	}
	c.reply.Int(deleted)
}

func hincrBy(c *Ctx) {
	delta, ok := c.integer(3)
	if !ok {
		return
	}
	h, ok := c.changeHash(1)
	if !ok {
		return
	}
	n, field := int64(0), c.args[2]
	if value, has := h.Get(field); has {
		if n, ok = number.ParseInt(value); !ok {
			c.err(errHashNotInteger)
			return
		}
	}
	if (delta > 0 && n > math.MaxInt64-delta) || (delta < 0 && n < math.MinInt64-delta) {
		c.err(errOverflow)
		return
	}
	n += delta
	var digits integerText
	h.Set(field, strconv.AppendInt(digits[:0], n, 10))
	c.notify(config.EventHash, "hincrby", c.args[1])
	c.reply.Int(n)
}

func hincrByFloat(c *Ctx) {
	delta, ok := number.ParseLongDouble(c.args[3])
	switch {
	case !ok:
		c.err(errNotFloat)
		return
	case delta.IsInf():
		c.err("ERR value is NaN or Infinity")
		return
	}
	h, ok := c.changeHash(1)
	if !ok {
		return
	}
	var n number.LongDouble
	field := c.args[2]
	if value, has := h.Get(field); has {
		if n, ok = number.ParseLongDouble(value); !ok {
			c.err(errHashNotFloat)
			return
		}
	}
	sum, finite := n.Add(delta)
	if !finite {
		c.err(errNaN)
		return
	}
	c.scratch = sum.Append(c.scratch[:0])
	h.Set(field, c.scratch)
	c.effect("HSET", c.args[1], field, c.scratch)
	c.notify(config.EventHash, "hincrbyfloat", c.args[1])
	c.reply.Bulk(c.scratch)
}

func hrandField(c *Ctx) {
	count, values := int64(1), false
	single := len(c.args) == 2
	if !single {
		var ok bool
		if count, values, ok = c.randomArgs("WITHVALUES"); !ok {
			return
		}
	}
	h, found, ok := c.readHash(1)
	switch {
	case !ok:
	case single:
		c.sendOneRandom(&hashFields{h}, found)
	default:
		c.sendRandom(&hashFields{h}, count, values)
	}
}

func hscan(c *Ctx) {
	cursor, ok := c.scanCursor(2)
	if !ok {
		return
	}
	h, found, ok := c.readHash(1)
	if !ok {
		return
	}
	o, ok := c.elementOptions(found)
	if !ok {
		return
	}
	var elements [][]byte
	next := h.Scan(cursor, o.count, func(field, value []byte) {
		if o.matches(field) {
			elements = append(elements, field, value)
		}
	})
	c.sendScan(next, elements)
}
