package types

import (
	"math"

	"headgate/server/command"
	"headgate/store"
)

// objectCommand is the OBJECT family.
var objectCommand = &command.Command{
	Name: "object", Group: command.GroupGeneric, Since: "2.2.3", Complexity: "O(1)",
	Summary: "Show how a key's value is stored.",
	Arity:   -2,
	Sub: []*command.Command{
		objectQuery("encoding", "2.2.3", "Return the name of the form in which a value is kept.", command.ReplyBulk|command.ReplyNull, objectEncoding),
		objectQuery("freq", "4.0.0", "Return the logarithmic counter of how often a key is used. Only under a policy that counts uses (LFU).",
			command.ReplyInteger|command.ReplyNull, objectFreq),
		command.HelpCommand("6.2.0"),
		objectQuery("idletime", "2.2.3", "Return the seconds since a key was last used. Not under a policy that counts uses (LFU).",
			command.ReplyInteger|command.ReplyNull, objectIdleTime),
		objectQuery("refcount", "2.2.3", "Return 1, or for a small whole number the largest 32-bit one, as Redis does for values that all keys share.",
			command.ReplyInteger|command.ReplyNull, objectRefCount),
	},
}

// objectQuery declares a sub-command that says something about a key, which its handler gets when it is there.
func objectQuery(name, since, summary string, reply command.Reply, handler func(*command.Ctx, *store.Entry)) *command.Command {
	return &command.Command{
		Name: name, Since: since, Complexity: "O(1)",
		Summary: summary,
		Arity:   3, Flags: command.ReadOnly, Keys: command.Keys("RO", 2, 2, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{command.Key("key")}, Reply: reply,
		Handler: func(c *command.Ctx) {
			e, ok := c.DB.Look(c.Key(2), c.Now)
			c.CountLookup(ok)
			if !ok {
				c.Reply.Null()
				return
			}
			handler(c, &e)
		},
	}
}

func objectEncoding(c *command.Ctx, e *store.Entry) { c.Reply.BulkString(e.Encoding()) }

// Errors for the one of IDLETIME and FREQ that is not kept.
const (
	errNoFreq = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. " + errSwitching
	errNoIdle = "ERR An LFU maxmemory policy is selected, idle time not tracked. " + errSwitching

	errSwitching = "Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
)

func objectFreq(c *command.Ctx, e *store.Entry) {
	if !c.Core.CountsUses {
		c.Err(errNoFreq)
		return
	}
	c.Reply.Int(int64(e.Uses()))
}

func objectIdleTime(c *command.Ctx, e *store.Entry) {
	if c.Core.CountsUses {
		c.Err(errNoIdle)
		return
	}
	c.Reply.Int(e.Idle())
}

const (
	sharedIntegers = 10_000 // Redis keeps the whole numbers from 0 up to this one once for all keys
	sharedRefCount = math.MaxInt32
)

// objectRefCount tells clients what they know from Redis, but for a copy of a small number, which Redis does not share. Here no two
// keys share a value.
func objectRefCount(c *command.Ctx, e *store.Entry) {
	if n, ok := e.Int(); ok && n >= 0 && n < sharedIntegers {
		c.Reply.Int(sharedRefCount)
		return
	}
	c.Reply.One()
}
