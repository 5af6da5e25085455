package server

import (
	"math"

	"headgate/store"
)

// objectCommand is the OBJECT family.
var objectCommand = &Command{
	Name: "object", Group: GroupGeneric, Since: "2.2.3", Complexity: "O(1)",
	Summary: "Look at how a key's value is kept.",
	Arity:   -2,
	Sub: []*Command{
		objectQuery("encoding", "2.2.3", "Return the name of the form in which a value is kept.", ReplyBulk|ReplyNull, objectEncoding),
		objectQuery("freq", "4.0.0", "Answer the error of a server that does not count how often keys are used.",
			ReplySimple|ReplyNull, objectFreq),
		helpCommand("6.2.0"),
		objectQuery("idletime", "2.2.3", "Return 0 for a key that is there: when it was last used is not kept.",
			ReplyInteger|ReplyNull, objectIdleTime),
		objectQuery("refcount", "2.2.3", "Return 1, or for a small whole number the largest 32-bit one, as Redis does for values that all keys share.",
			ReplyInteger|ReplyNull, objectRefCount),
	},
}

// objectQuery declares a sub-command that says something about a key, which its handler gets when it is there.
func objectQuery(name, since, summary string, reply Reply, handler func(*Ctx, *store.Entry)) *Command {
	return &Command{
		Name: name, Since: since, Complexity: "O(1)",
		Summary: summary,
		Arity:   3, Flags: ReadOnly, Keys: keys("RO", 2, 2, 1),
		Args: []Arg{key("key")}, Reply: reply,
		Handler: func(c *Ctx) {
			e, ok := c.db.Find(c.key(2), c.now)
			c.countLookup(ok)
			if !ok {
				c.reply.Null()
				return
			}
			handler(c, &e)
		},
	}
}

func objectEncoding(c *Ctx, e *store.Entry) { c.reply.BulkString(e.Encoding()) }

func objectFreq(c *Ctx, _ *store.Entry) {
	c.err("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between " +
		"policies at runtime LRU and LFU data will take some time to adjust.")
}

// objectIdleTime answers with the one bound that is known. A record has 16 bits to spare, which as a clock of seconds would begin
// again every 18 hours: the keys that somebody looks for with this command would then pass for recently used at random.
// 0 at least never has anybody take a key for forgotten.
func objectIdleTime(c *Ctx, _ *store.Entry) { c.reply.Zero() }

const (
	sharedIntegers = 10_000 // Redis keeps the whole numbers from 0 up to this one once for all keys
	sharedRefCount = math.MaxInt32
)

// objectRefCount tells clients what they know from Redis, but for a copy of a small number, which Redis does not share. Here no two
// keys share a value.
func objectRefCount(c *Ctx, e *store.Entry) {
	if n, ok := e.Int(); ok && n >= 0 && n < sharedIntegers {
		c.reply.Int(sharedRefCount)
		return
	}
	c.reply.One()
}
