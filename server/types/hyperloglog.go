package types

import (
	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

// hyperLogLogCommands: estimates of how many different elements there are, kept as strings.
var hyperLogLogCommands = []*command.Command{
	{
		Name: "pfadd", Group: command.GroupHyperLogLog, Since: "2.8.9", Complexity: "O(1) per element",
		Summary: "Add elements to a HyperLogLog and return whether that changed it.",
		Arity:   -2, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW INSERT", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("element").Opt().Multi()}, Reply: command.ReplyInteger, Handler: pfadd,
	},
	{
		Name: "pfcount", Group: command.GroupHyperLogLog, Since: "2.8.9", Complexity: "O(1), and O(n) for n keys, with a large constant",
		Summary: "Estimate the number of different elements in one or more HyperLogLogs.",
		Arity:   -2, Flags: command.ReadOnly | command.MayReplicate, Keys: command.Keys("RW ACCESS", 1, -1, 1),
		Args: []command.Arg{command.Key("key").Multi()}, Reply: command.ReplyInteger, Handler: pfcount,
	},
	{
		Name: "pfmerge", Group: command.GroupHyperLogLog, Since: "2.8.9", Complexity: "O(n) for n keys, with a large constant",
		Summary: "Merge HyperLogLogs into one.",
		Arity:   -2, Flags: command.Write | command.DenyOOM, Keys: append(command.Keys("RW ACCESS INSERT", 1, 1, 1), command.Keys("RO ACCESS", 2, -1, 1)...),
		Args: []command.Arg{command.Key("destkey"), command.Key("sourcekey").Opt().Multi()}, Reply: command.ReplySimple, Handler: pfmerge,
	},
}

func pfadd(c *command.Ctx) {
	changed, err := c.DB.AddToHLL(c.Key(1), c.Now, c.Args[2:])
	switch {
	case err != nil:
		c.Fail(err)
	case changed:
		c.Notify(config.EventString, "pfadd", c.Args[1])
		c.Reply.One()
	default:
		c.Reply.Zero()
	}
}

func pfcount(c *command.Ctx) {
	kept := !c.Core.Gate.Has(command.GateUnwritable|command.GateReadOnly) || c.Client.Primary // what cannot be logged is not, nor what a primary does not have
	if len(c.Args) > 2 || !kept {
		if union, ok := readHLLs(c); ok {
			c.Reply.Int(int64(union.Count()))
		}
		return
	}
	e, ok := c.Find(1)
	if !ok {
		c.Reply.Zero()
		return
	}
	before := c.Core.Keys.Dirty()
	n, err := e.CountHLL()
	if err != nil {
		c.Fail(err)
		return
	}
	if c.Core.Keys.Dirty() != before {
		c.EffectVerbatim() // the estimate is kept with the value, although this is no command that writes
	}
	c.Reply.Int(int64(n))
}

func pfmerge(c *command.Ctx) {
	union, ok := readHLLs(c)
	if !ok {
		return
	}
	if err := c.DB.MergeHLL(c.Key(1), c.Now, union); err != nil {
		c.Fail(err)
		return
	}
	c.Notify(config.EventString, "pfadd", c.Args[1])
	c.OK()
}

// readHLLs puts the HyperLogLogs at all of the arguments together, or sends the error and returns false.
func readHLLs(c *command.Ctx) (*store.HLLUnion, bool) {
	union := &store.HLLUnion{}
	for i := 1; i < len(c.Args); i++ {
		e, ok := c.Find(i)
		if !ok {
			continue
		}
		if err := union.Add(&e); err != nil {
			c.Fail(err)
			return nil, false
		}
	}
	return union, true
}
