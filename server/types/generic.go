package types

import (
	"math/rand/v2"
	"slices"

	"headgate/internal/glob"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

// genericCommands: keys of any type, with the handlers of move.go and the family of object.go.
var genericCommands = []*command.Command{
	{
		Name: "copy", Group: command.GroupGeneric, Since: "6.2.0", Complexity: "O(n) in the number of elements of the value",
		Summary: "Copy a value and its TTL to another key, in this database or another.",
		Arity:   -3, Flags: command.Write | command.DenyOOM, Keys: slices.Concat(command.Keys("RO ACCESS", 1, 1, 1), command.Keys("OW UPDATE", 2, 2, 1)),
		Args: []command.Arg{
			command.Key("source"), command.Key("destination"), command.Integer("destination-db").After("DB").Opt(), command.Tok("REPLACE").Opt(),
		},
		Reply: command.ReplyInteger, Handler: copyKey,
	},
	{
		Name: "del", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(n) in the number of keys, and of elements in their values",
		Summary: "Delete keys and return how many there were.",
		Arity:   -2, Flags: command.Write, Keys: command.Keys("RM DELETE", 1, -1, 1),
		Tips: "request_policy:multi_shard response_policy:agg_sum",
		Args: []command.Arg{command.Key("key").Multi()}, Reply: command.ReplyInteger, Handler: del,
	},
	{
		Name: "dump", Group: command.GroupGeneric, Since: "2.6.0", Complexity: "O(n) in the size of the value",
		Summary: "Return the value as a payload for RESTORE.",
		Arity:   2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyBulk | command.ReplyNull, Handler: dump,
	},
	{
		Name: "exists", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(n) in the number of keys",
		Summary: "Count the keys that exist; one named twice counts twice.",
		Arity:   -2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO", 1, -1, 1),
		Tips: "request_policy:multi_shard response_policy:agg_sum",
		Args: []command.Arg{command.Key("key").Multi()}, Reply: command.ReplyInteger, Handler: exists,
	},
	{
		Name: "expire", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Set a key's TTL in seconds.",
		Arity:   -3, Flags: command.Write | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("seconds"), expireConditionArg}, Reply: command.ReplyInteger, Handler: expire,
	},
	{
		Name: "expireat", Group: command.GroupGeneric, Since: "1.2.0", Complexity: "O(1)",
		Summary: "Set a key's expiry as a Unix time in seconds.",
		Arity:   -3, Flags: command.Write | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.UnixTime("unix-time-seconds"), expireConditionArg}, Reply: command.ReplyInteger, Handler: expireAt,
	},
	{
		Name: "expiretime", Group: command.GroupGeneric, Since: "7.0.0", Complexity: "O(1)",
		Summary: "Return the Unix time in seconds at which a key expires.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: expireTime,
	},
	{
		Name: "keys", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(n) in the number of keys in the database",
		Summary: "List all keys whose names match a pattern.",
		Arity:   2, Flags: command.ReadOnly, Categories: acl.Dangerous,
		Tips: "request_policy:all_shards nondeterministic_output_order",
		Args: []command.Arg{command.Pattern("pattern")}, Reply: command.ReplyArray, Handler: keysMatching,
	},
	{
		Name: "move", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Move a key to another database, unless it exists there.",
		Arity:   3, Flags: command.Write | command.AddsKeys | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("db")}, Reply: command.ReplyInteger, Handler: move,
	},
	objectCommand,
	{
		Name: "persist", Group: command.GroupGeneric, Since: "2.2.0", Complexity: "O(1)",
		Summary: "Remove a key's TTL.",
		Arity:   2, Flags: command.Write | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: persist,
	},
	{
		Name: "pexpire", Group: command.GroupGeneric, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Set a key's TTL in milliseconds.",
		Arity:   -3, Flags: command.Write | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("milliseconds"), expireConditionArg}, Reply: command.ReplyInteger, Handler: pexpire,
	},
	{
		Name: "pexpireat", Group: command.GroupGeneric, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Set a key's expiry as a Unix time in milliseconds.",
		Arity:   -3, Flags: command.Write | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.UnixTime("unix-time-milliseconds"), expireConditionArg}, Reply: command.ReplyInteger, Handler: pexpireAt,
	},
	{
		Name: "pexpiretime", Group: command.GroupGeneric, Since: "7.0.0", Complexity: "O(1)",
		Summary: "Return the Unix time in milliseconds at which a key expires.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: pexpireTime,
	},
	{
		Name: "pttl", Group: command.GroupGeneric, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Return how many milliseconds a key has left to live.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: pttl,
	},
	{
		Name: "randomkey", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Return the name of a key drawn at random.",
		Arity:   1, Flags: command.ReadOnly,
		Tips:  "request_policy:all_shards nondeterministic_output",
		Reply: command.ReplyBulk | command.ReplyNull, Handler: randomKey,
	},
	{
		Name: "rename", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Rename a key, replacing any key of the new name.",
		Arity:   3, Flags: command.Write | command.AddsKeys, Keys: slices.Concat(command.Keys("RW ACCESS DELETE", 1, 1, 1), command.Keys("OW UPDATE", 2, 2, 1)),
		Args: []command.Arg{command.Key("key"), command.Key("newkey")}, Reply: command.ReplySimple, Handler: rename,
	},
	{
		Name: "renamenx", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Rename a key, unless the new name exists.",
		Arity:   3, Flags: command.Write | command.AddsKeys | command.Fast, Keys: slices.Concat(command.Keys("RW ACCESS DELETE", 1, 1, 1), command.Keys("OW INSERT", 2, 2, 1)),
		Args: []command.Arg{command.Key("key"), command.Key("newkey")}, Reply: command.ReplyInteger, Handler: renameNX,
	},
	{
		Name: "restore", Group: command.GroupGeneric, Since: "2.6.0", Complexity: "O(n log n) in the elements of the value",
		Summary: "Create a key from a payload that DUMP has returned. Off unless enable-restore-command says otherwise.",
		Arity:   -4, Flags: command.Write | command.DenyOOM, Categories: acl.Dangerous, Keys: command.Keys("OW UPDATE", 1, 1, 1),
		Args: []command.Arg{
			command.Key("key"), command.Integer("ttl"), command.Str("serialized-value"), command.Tok("REPLACE").Opt(), command.Tok("ABSTTL").Opt(),
			command.Integer("seconds").After("IDLETIME").Opt(), command.Integer("frequency").After("FREQ").Opt(),
		},
		Reply: command.ReplySimple, Handler: restore,
	},
	{
		Name: "scan", Group: command.GroupGeneric, Since: "2.8.0", Complexity: "O(1) per call, O(n) in the number of keys for a full iteration",
		Summary: "Iterate over the keys of the database.",
		Arity:   -2, Flags: command.ReadOnly,
		Tips: "nondeterministic_output request_policy:special",
		Args: []command.Arg{
			command.Integer("cursor"), command.Pattern("pattern").After("MATCH").Opt(), command.Integer("count").After("COUNT").Opt(),
			command.Str("type").After("TYPE").Opt(),
		},
		Reply: command.ReplyArray, Handler: scan,
	},
	{
		Name: "touch", Group: command.GroupGeneric, Since: "3.2.1", Complexity: "O(n) in the number of keys",
		Summary: "Update the last access of keys and return how many of them exist.",
		Arity:   -2, Flags: command.ReadOnly | command.Fast | command.CountsUses, Keys: command.Keys("RO", 1, -1, 1),
		Tips: "request_policy:multi_shard response_policy:agg_sum",
		Args: []command.Arg{command.Key("key").Multi()}, Reply: command.ReplyInteger, Handler: touch,
	},
	{
		Name: "ttl", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Return how many seconds a key has left to live.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: ttl,
	},
	{
		Name: "type", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Return the type of the value at a key.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplySimple, Handler: typeOf,
	},
	{
		Name: "unlink", Group: command.GroupGeneric, Since: "4.0.0", Complexity: "O(n) in the number of keys",
		Summary: "Delete keys and return how many there were; the same as DEL here.",
		Arity:   -2, Flags: command.Write | command.Fast, Keys: command.Keys("RM DELETE", 1, -1, 1),
		Tips: "request_policy:multi_shard response_policy:agg_sum",
		Args: []command.Arg{command.Key("key").Multi()}, Reply: command.ReplyInteger, Handler: unlink,
	},
}

func del(c *command.Ctx) { deleteKeys(c, false) }

// unlink is del, but values of many parts count as freed beside the command's own time, as in Redis.
func unlink(c *command.Ctx) { deleteKeys(c, true) }

// lazyParts is from how many parts on a value counts for lazyfreed_objects when UNLINK deletes it.
const lazyParts = 65

// deleteKeys deletes the keys among the arguments and sends how many there were.
func deleteKeys(c *command.Ctx, lazily bool) {
	deleted := int64(0)
	for i := 1; i < len(c.Args); i++ {
		if e, ok := c.DB.Find(c.Key(i), c.Now); ok {
			if lazily && e.Parts() >= lazyParts {
				c.Core.Stats.LazyFreed++
			}
			e.Delete()
			c.Notify(config.EventGeneric, "del", c.Args[i])
			deleted++
		}
	}
	c.Reply.Int(deleted)
}

func exists(c *command.Ctx) {
	found := int64(0)
	for i := 1; i < len(c.Args); i++ {
		if _, ok := c.Look(i); ok {
			found++
		}
	}
	c.Reply.Int(found)
}

func touch(c *command.Ctx) {
	found := int64(0)
	for i := 1; i < len(c.Args); i++ {
		if _, ok := c.Find(i); ok {
			found++
		}
	}
	c.Reply.Int(found)
}

func typeOf(c *command.Ctx) {
	kind := store.KindNone
	if e, ok := c.Look(1); ok {
		kind = e.Kind()
	}
	c.Reply.Simple(kind.String())
}

func expire(c *command.Ctx)    { setExpiry(c, seconds, c.NowNs/1e6) }
func pexpire(c *command.Ctx)   { setExpiry(c, milliseconds, c.NowNs/1e6) }
func expireAt(c *command.Ctx)  { setExpiry(c, seconds, 0) }
func pexpireAt(c *command.Ctx) { setExpiry(c, milliseconds, 0) }

// setExpiry has the key at args[1] expire at the time in args[2], in units of unit ms from base, if the conditions hold. A
// time that has passed deletes it.
func setExpiry(c *command.Ctx, unit, base int64) {
	cond, ok := parseExpireCondition(c, 3)
	if !ok {
		return
	}
	at, ok := signedTime(c, 2, unit, base)
	if !ok {
		return
	}
	e, ok := c.DB.Find(c.Key(1), c.Now)
	switch {
	case !ok || !cond.holds(e.ExpireAt(), at):
		c.Reply.Zero()
		return
	case at <= c.Now:
		e.Delete()
		c.Effect("DEL", c.Args[1])
		c.Notify(config.EventGeneric, "del", c.Args[1])
	default:
		e.SetExpireAt(at)
		c.Effect("PEXPIREAT", c.Args[1], at)
		c.Notify(config.EventGeneric, "expire", c.Args[1])
	}
	c.Reply.One()
}

func persist(c *command.Ctx) {
	e, ok := c.DB.Find(c.Key(1), c.Now)
	if !ok || e.ExpireAt() == 0 {
		c.Reply.Zero()
		return
	}
	e.SetExpireAt(0)
	c.Notify(config.EventGeneric, "persist", c.Args[1])
	c.Reply.One()
}

func ttl(c *command.Ctx)         { sendExpiry(c, seconds, c.Now) }
func pttl(c *command.Ctx)        { sendExpiry(c, milliseconds, c.Now) }
func expireTime(c *command.Ctx)  { sendExpiry(c, seconds, 0) }
func pexpireTime(c *command.Ctx) { sendExpiry(c, milliseconds, 0) }

// What TTL and its like answer for a key that has no TTL, and for one that is not there.
const (
	noTTL = -1
	noKey = -2
)

// sendExpiry sends when the key at args[1] expires, in units of unit ms from base, rounded to the nearest.
func sendExpiry(c *command.Ctx, unit, base int64) {
	e, ok := c.Look(1)
	switch {
	case !ok:
		c.Reply.Int(noKey)
	case e.ExpireAt() == 0:
		c.Reply.Int(noTTL)
	default:
		c.Reply.Int(roundTo(e.ExpireAt()-base, unit)) // Look returns no key past its time: this is not negative
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

func keysMatching(c *command.Ctx) {
	all := string(c.Args[1]) == "*"
	list, n := c.Reply.Start(), 0
	c.DB.Each(c.Now, func(e *store.Entry) bool {
		if all || glob.Match(c.Args[1], e.Name(), false) {
			c.Reply.Bulk(e.Name())
			n++
		}
		return true
	})
	c.Reply.EndArray(list, n)
}

func randomKey(c *command.Ctx) {
	name, ok := c.DB.Random(c.Now, rand.IntN)
	if !ok {
		c.Reply.Null()
		return
	}
	c.Reply.Bulk(name)
}

func rename(c *command.Ctx) {
	if !renameKey(c, c.Key(1), c.Key(2)) {
		c.Err(command.ErrNoSuchKey)
		return
	}
	c.OK()
}

// renameKey renames a key, if it is there. Under the same name it stays what it was.
func renameKey(c *command.Ctx, from, to store.Key) bool {
	if !c.DB.Rename(from, to, c.Now) {
		return false
	}
	if string(from.Name) != string(to.Name) {
		c.Notify(config.EventGeneric, "rename_from", from.Name)
		c.Notify(config.EventGeneric, "rename_to", to.Name)
	}
	return true
}

func renameNX(c *command.Ctx) {
	from, to := c.Key(1), c.Key(2)
	if _, ok := c.DB.Find(from, c.Now); !ok {
		c.Err(command.ErrNoSuchKey)
		return
	}
	if _, taken := c.DB.Find(to, c.Now); taken {
		c.Reply.Zero()
		return
	}
	renameKey(c, from, to)
	c.Reply.One()
}

func scan(c *command.Ctx) {
	cursor, ok := scanCursor(c, 1)
	if !ok {
		return
	}
	o, ok := parseScanOptions(c, 2, true)
	if !ok {
		return
	}
	var names [][]byte
	next := c.DB.Scan(cursor, c.Now, o.count, func(e *store.Entry) {
		if o.matches(e.Name()) && (o.kind == "" || o.kind == e.Kind().String()) {
			names = append(names, e.Name())
		}
	})
	sendScan(c, next, names)
}
