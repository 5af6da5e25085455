package server

import (
	"math/rand/v2"
	"slices"

	"headgate/internal/glob"
	"headgate/server/acl"
	"headgate/server/config"
	"headgate/store"
)

// genericCommands: keys of any type, with the handlers of cmd_move.go and the family of cmd_object.go.
var genericCommands = []*Command{
	{
		Name: "copy", Group: GroupGeneric, Since: "6.2.0", Complexity: "O(n) in the number of elements of the value",
		Summary: "Copy a value and its TTL to another key, in this database or another.",
		Arity:   -3, Flags: Write | DenyOOM, Keys: slices.Concat(keys("RO ACCESS", 1, 1, 1), keys("OW UPDATE", 2, 2, 1)),
		Args: []Arg{
			key("source"), key("destination"), integer("destination-db").after("DB").opt(), tok("REPLACE").opt(),
		},
		Reply: ReplyInteger, Handler: copyKey,
	},
	{
		Name: "del", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(n) in the number of keys, and of elements in their values",
		Summary: "Delete keys and return how many there were.",
		Arity:   -2, Flags: Write, Keys: keys("RM DELETE", 1, -1, 1),
		Tips: "request_policy:multi_shard response_policy:agg_sum",
		Args: []Arg{key("key").multi()}, Reply: ReplyInteger, Handler: del,
	},
	{
		Name: "dump", Group: GroupGeneric, Since: "2.6.0", Complexity: "O(n) in the size of the value",
		Summary: "Return the value as a payload for RESTORE.",
		Arity:   2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{key("key")}, Reply: ReplyBulk | ReplyNull, Handler: dump,
	},
	{
		Name: "exists", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(n) in the number of keys",
		Summary: "Count the keys that exist; one named twice counts twice.",
		Arity:   -2, Flags: ReadOnly | Fast, Keys: keys("RO", 1, -1, 1),
		Tips: "request_policy:multi_shard response_policy:agg_sum",
		Args: []Arg{key("key").multi()}, Reply: ReplyInteger, Handler: exists,
	},
	{
		Name: "expire", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Let a key live for so many seconds from now.",
		Arity:   -3, Flags: Write | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), integer("seconds"), expireConditionArg}, Reply: ReplyInteger, Handler: expire,
	},
	{
		Name: "expireat", Group: GroupGeneric, Since: "1.2.0", Complexity: "O(1)",
		Summary: "Let a key live until a Unix time in seconds.",
		Arity:   -3, Flags: Write | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), unixTime("unix-time-seconds"), expireConditionArg}, Reply: ReplyInteger, Handler: expireAt,
	},
	{
		Name: "expiretime", Group: GroupGeneric, Since: "7.0.0", Complexity: "O(1)",
		Summary: "Return the Unix time in seconds at which a key expires.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: expireTime,
	},
	{
		Name: "keys", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(n) in the number of keys in the database",
		Summary: "List all keys whose names match a pattern.",
		Arity:   2, Flags: ReadOnly, Categories: acl.Dangerous,
		Tips: "request_policy:all_shards nondeterministic_output_order",
		Args: []Arg{pattern("pattern")}, Reply: ReplyArray, Handler: keysMatching,
	},
	{
		Name: "move", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Move a key to another database, unless that has a key of the name.",
		Arity:   3, Flags: Write | Fast, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), integer("db")}, Reply: ReplyInteger, Handler: move,
	},
	objectCommand,
	{
		Name: "persist", Group: GroupGeneric, Since: "2.2.0", Complexity: "O(1)",
		Summary: "Take a key's TTL away, so that it lives until it is deleted.",
		Arity:   2, Flags: Write | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: persist,
	},
	{
		Name: "pexpire", Group: GroupGeneric, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Let a key live for so many milliseconds from now.",
		Arity:   -3, Flags: Write | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), integer("milliseconds"), expireConditionArg}, Reply: ReplyInteger, Handler: pexpire,
	},
	{
		Name: "pexpireat", Group: GroupGeneric, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Let a key live until a Unix time in milliseconds.",
		Arity:   -3, Flags: Write | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), unixTime("unix-time-milliseconds"), expireConditionArg}, Reply: ReplyInteger, Handler: pexpireAt,
	},
	{
		Name: "pexpiretime", Group: GroupGeneric, Since: "7.0.0", Complexity: "O(1)",
		Summary: "Return the Unix time in milliseconds at which a key expires.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: pexpireTime,
	},
	{
		Name: "pttl", Group: GroupGeneric, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Return how many milliseconds a key has left to live.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: pttl,
	},
	{
		Name: "randomkey", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Return the name of a key drawn at random.",
		Arity:   1, Flags: ReadOnly,
		Tips:  "request_policy:all_shards nondeterministic_output",
		Reply: ReplyBulk | ReplyNull, Handler: randomKey,
	},
	{
		Name: "rename", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Give a key another name, replacing the key that has it.",
		Arity:   3, Flags: Write, Keys: slices.Concat(keys("RW ACCESS DELETE", 1, 1, 1), keys("OW UPDATE", 2, 2, 1)),
		Args: []Arg{key("key"), key("newkey")}, Reply: ReplySimple, Handler: rename,
	},
	{
		Name: "renamenx", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Give a key another name, unless a key has it already.",
		Arity:   3, Flags: Write | Fast, Keys: slices.Concat(keys("RW ACCESS DELETE", 1, 1, 1), keys("OW INSERT", 2, 2, 1)),
		Args: []Arg{key("key"), key("newkey")}, Reply: ReplyInteger, Handler: renameNX,
	},
	{
		Name: "restore", Group: GroupGeneric, Since: "2.6.0", Complexity: "O(n log n) in the elements of the value",
		Summary: "Create a key from a payload that DUMP has returned. Off unless enable-restore-command says otherwise.",
		Arity:   -4, Flags: Write | DenyOOM, Categories: acl.Dangerous, Keys: keys("OW UPDATE", 1, 1, 1),
		Args: []Arg{
			key("key"), integer("ttl"), str("serialized-value"), tok("REPLACE").opt(), tok("ABSTTL").opt(),
			integer("seconds").after("IDLETIME").opt(), integer("frequency").after("FREQ").opt(),
		},
		Reply: ReplySimple, Handler: restore,
	},
	{
		Name: "scan", Group: GroupGeneric, Since: "2.8.0", Complexity: "O(1) per call, O(n) in the number of keys for a full iteration",
		Summary: "Go through the keys of the database, a part with each call.",
		Arity:   -2, Flags: ReadOnly,
		Tips: "nondeterministic_output request_policy:special",
		Args: []Arg{
			integer("cursor"), pattern("pattern").after("MATCH").opt(), integer("count").after("COUNT").opt(),
			str("type").after("TYPE").opt(),
		},
		Reply: ReplyArray, Handler: scan,
	},
	{
		Name: "touch", Group: GroupGeneric, Since: "3.2.1", Complexity: "O(n) in the number of keys",
		Summary: "Count the keys that exist, and have them seen as just used.",
		Arity:   -2, Flags: ReadOnly | Fast | CountsUses, Keys: keys("RO", 1, -1, 1),
		Tips: "request_policy:multi_shard response_policy:agg_sum",
		Args: []Arg{key("key").multi()}, Reply: ReplyInteger, Handler: touch,
	},
	{
		Name: "ttl", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Return how many seconds a key has left to live.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: ttl,
	},
	{
		Name: "type", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Return the type of the value at a key.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplySimple, Handler: typeOf,
	},
	{
		Name: "unlink", Group: GroupGeneric, Since: "4.0.0", Complexity: "O(n) in the number of keys",
		Summary: "Delete keys and return how many there were; the same as DEL here.",
		Arity:   -2, Flags: Write | Fast, Keys: keys("RM DELETE", 1, -1, 1),
		Tips: "request_policy:multi_shard response_policy:agg_sum",
		Args: []Arg{key("key").multi()}, Reply: ReplyInteger, Handler: unlink,
	},
	{
		Name: "wait", Group: GroupGeneric, Since: "3.0.0", Complexity: "O(1)",
		Summary: "Wait for replicas to have all writes so far, and return 0 when the time is over: headgate does not replicate.",
		Arity:   3, Flags: NoScript | NotKeyspace, Categories: acl.Connection,
		Tips: "request_policy:all_shards response_policy:agg_min",
		Args: []Arg{integer("numreplicas"), integer("timeout")}, Reply: ReplyInteger, Handler: wait,
	},
}

func del(c *Ctx) { c.deleteKeys(false) }

// unlink is del, but values of many parts count as freed beside the command's own time, as in Redis.
func unlink(c *Ctx) { c.deleteKeys(true) }

// lazyParts is from how many parts on a value counts for lazyfreed_objects when UNLINK deletes it.
const lazyParts = 65

// deleteKeys deletes the keys among the arguments and sends how many there were.
func (c *Ctx) deleteKeys(lazily bool) {
	deleted := int64(0)
	for i := 1; i < len(c.args); i++ {
		if e, ok := c.db.Find(c.key(i), c.now); ok {
			if lazily && e.Parts() >= lazyParts {
				c.core.stats.lazyFreed++
			}
			e.Delete()
			c.notify(config.EventGeneric, "del", c.args[i])
			deleted++
		}
	}
	c.reply.Int(deleted)
}

func exists(c *Ctx) {
	found := int64(0)
	for i := 1; i < len(c.args); i++ {
		if _, ok := c.lookUp(i); ok {
			found++
		}
	}
	c.reply.Int(found)
}

func touch(c *Ctx) {
	found := int64(0)
	for i := 1; i < len(c.args); i++ {
		if _, ok := c.lookupRead(i); ok {
			found++
		}
	}
	c.reply.Int(found)
}

func typeOf(c *Ctx) {
	kind := store.KindNone
	if e, ok := c.lookUp(1); ok {
		kind = e.Kind()
	}
	c.reply.Simple(kind.String())
}

func expire(c *Ctx)    { c.setExpiry(seconds, c.nowNs/1e6) }
func pexpire(c *Ctx)   { c.setExpiry(milliseconds, c.nowNs/1e6) }
func expireAt(c *Ctx)  { c.setExpiry(seconds, 0) }
func pexpireAt(c *Ctx) { c.setExpiry(milliseconds, 0) }

// setExpiry has the key at args[1] expire at the time in args[2], in units of unit ms from base, if the conditions hold. A
// time that has passed deletes it.
func (c *Ctx) setExpiry(unit, base int64) {
	cond, ok := c.parseExpireCondition(3)
	if !ok {
		return
	}
	at, ok := c.signedTime(2, unit, base)
	if !ok {
		return
	}
	e, ok := c.db.Find(c.key(1), c.now)
	switch {
	case !ok || !cond.holds(e.ExpireAt(), at):
		c.reply.Zero()
		return
	case at <= c.now:
		e.Delete()
		c.effect("DEL", c.args[1])
		c.notify(config.EventGeneric, "del", c.args[1])
	default:
		e.SetExpireAt(at)
		c.effect("PEXPIREAT", c.args[1], at)
		c.notify(config.EventGeneric, "expire", c.args[1])
	}
	c.reply.One()
}

func persist(c *Ctx) {
	e, ok := c.db.Find(c.key(1), c.now)
	if !ok || e.ExpireAt() == 0 {
		c.reply.Zero()
		return
	}
	e.SetExpireAt(0)
	c.notify(config.EventGeneric, "persist", c.args[1])
	c.reply.One()
}

func ttl(c *Ctx)         { c.sendExpiry(seconds, c.now) }
func pttl(c *Ctx)        { c.sendExpiry(milliseconds, c.now) }
func expireTime(c *Ctx)  { c.sendExpiry(seconds, 0) }
func pexpireTime(c *Ctx) { c.sendExpiry(milliseconds, 0) }

// What TTL and its like answer for a key that has no TTL, and for one that is not there.
const (
	noTTL = -1
	noKey = -2
)

// sendExpiry sends when the key at args[1] expires, in units of unit ms from base, rounded to the nearest.
func (c *Ctx) sendExpiry(unit, base int64) {
	e, ok := c.lookUp(1)
	switch {
	case !ok:
		c.reply.Int(noKey)
	case e.ExpireAt() == 0:
		c.reply.Int(noTTL)
	default:
		c.reply.Int(roundTo(e.ExpireAt()-base, unit))
	}
}

// roundTo returns the number of units in ms, rounded to the nearest, halves up. ms is not negative.
func roundTo(ms, unit int64) int64 {
	n := ms / unit
	if ms%unit >= unit-unit/2 {
		n++
	}
	return n
}

func keysMatching(c *Ctx) {
	all := string(c.args[1]) == "*"
	list, n := c.reply.Start(), 0
	c.db.Each(c.now, func(e *store.Entry) bool {
		if all || glob.Match(c.args[1], e.Name(), false) {
			c.reply.Bulk(e.Name())
			n++
		}
		return true
	})
	c.reply.EndArray(list, n)
}

func randomKey(c *Ctx) {
	name, ok := c.db.Random(c.now, rand.IntN)
	if !ok {
		c.reply.Null()
		return
	}
	c.reply.Bulk(name)
}

func rename(c *Ctx) {
	if !c.renameKey(c.key(1), c.key(2)) {
		c.err(errNoSuchKey)
		return
	}
	c.ok()
}

// renameKey renames a key, if it is there. Under the same name it stays what it was.
func (c *Ctx) renameKey(from, to store.Key) bool {
	if !c.db.Rename(from, to, c.now) {
		return false
	}
	if string(from.Name) != string(to.Name) {
		c.notify(config.EventGeneric, "rename_from", from.Name)
		c.notify(config.EventGeneric, "rename_to", to.Name)
	}
	return true
}

func renameNX(c *Ctx) {
	from, to := c.key(1), c.key(2)
	if _, ok := c.db.Find(from, c.now); !ok {
		c.err(errNoSuchKey)
		return
	}
	if _, taken := c.db.Find(to, c.now); taken {
		c.reply.Zero()
		return
	}
	c.renameKey(from, to)
	c.reply.One()
}

func scan(c *Ctx) {
	cursor, ok := c.scanCursor(1)
	if !ok {
		return
	}
	o, ok := c.parseScanOptions(2, true)
	if !ok {
		return
	}
	var names [][]byte
	next := c.db.Scan(cursor, c.now, o.count, func(e *store.Entry) {
		if o.matches(e.Name()) && (o.kind == "" || o.kind == e.Kind().String()) {
			names = append(names, e.Name())
		}
	})
	c.sendScan(next, names)
}
