package server

import (
	"headgate/server/config"
	"headgate/store"
)

// hyperLogLogCommands: estimates of how many different elements there are, kept as strings.
var hyperLogLogCommands = []*Command{
	{
		Name: "pfadd", Group: GroupHyperLogLog, Since: "2.8.9", Complexity: "O(1) per element",
		Summary: "Count elements in for a HyperLogLog and tell whether that changed it.",
		Arity:   -2, Flags: Write | DenyOOM | Fast, Keys: keys("RW INSERT", 1, 1, 1),
		Args: []Arg{key("key"), str("element").opt().multi()}, Reply: ReplyInteger, Handler: pfadd,
	},
	{
		Name: "pfcount", Group: GroupHyperLogLog, Since: "2.8.9", Complexity: "O(1), and O(n) for n keys, with a large constant",
		Summary: "Estimate how many different elements one HyperLogLog, or several together, have counted.",
		Arity:   -2, Flags: ReadOnly | MayReplicate, Keys: keys("RW ACCESS", 1, -1, 1),
		Args: []Arg{key("key").multi()}, Reply: ReplyInteger, Handler: pfcount,
	},
	{
		Name: "pfmerge", Group: GroupHyperLogLog, Since: "2.8.9", Complexity: "O(n) for n keys, with a large constant",
		Summary: "Make a HyperLogLog count what others have counted too.",
		Arity:   -2, Flags: Write | DenyOOM, Keys: append(keys("RW ACCESS INSERT", 1, 1, 1), keys("RO ACCESS", 2, -1, 1)...),
		Args: []Arg{key("destkey"), key("sourcekey").opt().multi()}, Reply: ReplySimple, Handler: pfmerge,
	},
}

func pfadd(c *Ctx) {
	changed, err := c.db.AddToHLL(c.key(1), c.now, c.args[2:])
	switch {
	case err != nil:
		c.fail(err)
	case changed:
		c.notify(config.EventString, "pfadd", c.args[1])
		c.reply.One()
	default:
		c.reply.Zero()
	}
}

func pfcount(c *Ctx) {
	if len(c.args) > 2 || c.core.gate.has(gateUnwritable) { // what cannot be logged is not to be kept
		if union, ok := c.readHLLs(); ok {
			c.reply.Int(int64(union.Count()))
		}
		return
	}
	e, ok := c.lookupRead(1)
	if !ok {
		c.reply.Zero()
		return
	}
	before := c.core.keys.Dirty()
	n, err := e.CountHLL()
	if err != nil {
		c.fail(err)
		return
	}
	if c.core.keys.Dirty() != before {
		c.effectVerbatim() // the estimate is kept with the value, although this is no command that writes
	}
	c.reply.Int(int64(n))
}

func pfmerge(c *Ctx) {
	union, ok := c.readHLLs()
	if !ok {
		return
	}
	if err := c.db.MergeHLL(c.key(1), c.now, union); err != nil {
		c.fail(err)
		return
	}
	c.notify(config.EventString, "pfadd", c.args[1])
	c.ok()
}

// readHLLs puts the HyperLogLogs at all of the arguments together, or sends the error and returns false.
func (c *Ctx) readHLLs() (*store.HLLUnion, bool) {
	union := &store.HLLUnion{}
	for i := 1; i < len(c.args); i++ {
		e, ok := c.lookupRead(i)
		if !ok {
			continue
		}
		if err := union.Add(&e); err != nil {
			c.fail(err)
			return nil, false
		}
	}
	return union, true
}
