package types

import (
	"math/rand/v2"
	"slices"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

// setCommands: sets.
var setCommands = []*command.Command{
	{
		Name: "sadd", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members given",
		Summary: "Add members to a set and return how many are new.",
		Arity:   -3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW INSERT", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("member").Multi()}, Reply: command.ReplyInteger, Handler: sadd,
	},
	{
		Name: "scard", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Count the members of a set.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: scard,
	},
	{
		Name: "sdiff", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members of all sets",
		Summary: "Return the difference of sets.",
		Arity:   -2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, -1, 1),
		Tips: command.TipUnordered,
		Args: []command.Arg{command.Key("key").Multi()}, Reply: command.ReplySet, Handler: combineSets(difference),
	},
	{
		Name: "sdiffstore", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members of all sets",
		Summary: "Store the difference of sets at a key, and return the number of its members.",
		Arity:   -3, Flags: command.Write | command.DenyOOM, Keys: slices.Concat(command.Keys("OW UPDATE", 1, 1, 1), command.Keys("RO ACCESS", 2, -1, 1)),
		Args: []command.Arg{command.Key("destination"), command.Key("key").Multi()}, Reply: command.ReplyInteger, Handler: combineSetsStore(difference, "sdiffstore"),
	},
	{
		Name: "sinter", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(n * k) for n members of the smallest of k sets",
		Summary: "Return the intersection of sets.",
		Arity:   -2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, -1, 1),
		Tips: command.TipUnordered,
		Args: []command.Arg{command.Key("key").Multi()}, Reply: command.ReplySet, Handler: combineSets(intersection),
	},
	{
		Name: "sintercard", Group: command.GroupSet, Since: "7.0.0", Complexity: "O(n * k) for n members of the smallest of k sets",
		Summary: "Count the members of the intersection of sets, up to an optional limit.",
		Arity:   -3, Flags: command.ReadOnly, Keys: command.CountedKeys("RO ACCESS", 1),
		Args:  []command.Arg{command.Integer("numkeys"), command.Key("key").Multi(), command.Integer("limit").After("LIMIT").Opt()},
		Reply: command.ReplyInteger, Handler: sinterCard,
	},
	{
		Name: "sinterstore", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(n * k) for n members of the smallest of k sets",
		Summary: "Store the intersection of sets at a key, and return the number of its members.",
		Arity:   -3, Flags: command.Write | command.DenyOOM, Keys: slices.Concat(command.Keys("RW UPDATE", 1, 1, 1), command.Keys("RO ACCESS", 2, -1, 1)),
		Args: []command.Arg{command.Key("destination"), command.Key("key").Multi()}, Reply: command.ReplyInteger, Handler: combineSetsStore(intersection, "sinterstore"),
	},
	{
		Name: "sismember", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Return whether a member is in a set.",
		Arity:   3, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("member")}, Reply: command.ReplyInteger, Handler: sisMember,
	},
	{
		Name: "smembers", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members",
		Summary: "Return all members of a set.",
		Arity:   2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipUnordered,
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplySet, Handler: smembers,
	},
	{
		Name: "smismember", Group: command.GroupSet, Since: "6.2.0", Complexity: "O(n) in the number of members named",
		Summary: "Return for each of several members whether it is in a set.",
		Arity:   -3, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("member").Multi()}, Reply: command.ReplyArray, Handler: smisMember,
	},
	{
		Name: "smove", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Move a member from one set to another.",
		Arity:   4, Flags: command.Write | command.AddsKeys | command.Fast, Keys: movedKeys,
		Args: []command.Arg{command.Key("source"), command.Key("destination"), command.Str("member")}, Reply: command.ReplyInteger, Handler: smove,
	},
	{
		Name: "spop", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members removed",
		Summary: "Remove a random member of a set, or several different ones, and return them.",
		Arity:   -2, Flags: command.Write | command.Fast, Keys: command.Keys("RW ACCESS DELETE", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{command.Key("key"), command.Integer("count").Opt()}, Reply: command.ReplyBulk | command.ReplySet | command.ReplyNull, Handler: spop,
	},
	{
		Name: "srandmember", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members returned",
		Summary: "Return a random member of a set, or several: different ones, or with repeats if the count is negative.",
		Arity:   -2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{command.Key("key"), command.Integer("count").Opt()}, Reply: command.ReplyBulk | command.ReplyArray | command.ReplyNull, Handler: srandMember,
	},
	{
		Name: "srem", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members named",
		Summary: "Remove members from a set and return how many there were; a set without members is gone.",
		Arity:   -3, Flags: command.Write | command.Fast, Keys: command.Keys("RW DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("member").Multi()}, Reply: command.ReplyInteger, Handler: srem,
	},
	{
		Name: "sscan", Group: command.GroupSet, Since: "2.8.0", Complexity: "O(1) per call, O(n) in the number of members for a full iteration",
		Summary: "Iterate over the members of a set.",
		Arity:   -3, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{
			command.Key("key"), command.Integer("cursor"), command.Pattern("pattern").After("MATCH").Opt(), command.Integer("count").After("COUNT").Opt(),
		},
		Reply: command.ReplyArray, Handler: sscan,
	},
	{
		Name: "sunion", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members of all sets",
		Summary: "Return the union of sets.",
		Arity:   -2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, -1, 1),
		Tips: command.TipUnordered,
		Args: []command.Arg{command.Key("key").Multi()}, Reply: command.ReplySet, Handler: combineSets(union),
	},
	{
		Name: "sunionstore", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members of all sets",
		Summary: "Store the union of sets at a key, and return the number of its members.",
		Arity:   -3, Flags: command.Write | command.DenyOOM, Keys: slices.Concat(command.Keys("OW UPDATE", 1, 1, 1), command.Keys("RO ACCESS", 2, -1, 1)),
		Args: []command.Arg{command.Key("destination"), command.Key("key").Multi()}, Reply: command.ReplyInteger, Handler: combineSetsStore(union, "sunionstore"),
	},
}

func sadd(c *command.Ctx) {
	s, _, ok := c.ChangeSet(1)
	if !ok {
		return
	}
	added := int64(0)
	for _, member := range c.Args[2:] {
		if s.Add(member) {
			added++
		}
	}
	if added > 0 {
		c.Notify(config.EventSet, "sadd", c.Args[1])
	}
	c.Reply.Int(added)
}

func srem(c *command.Ctx) {
	s, _, ok := c.ChangeSet(1)
	if !ok {
		return
	}
	removed := int64(0)
	for _, member := range c.Args[2:] {
		if s.Remove(member) {
			removed++
		}
	}
	if removed > 0 {
		notifyRemovedFrom(c, &s, "srem", c.Args[1])
	}
	c.Reply.Int(removed)
}

// notifyRemovedFrom tells that members were removed from the set at a key, and that it is gone if there are no more.
func notifyRemovedFrom(c *command.Ctx, s *store.Set, event string, name []byte) {
	c.Notify(config.EventSet, event, name)
	c.NotifyDeleted(s.Len() == 0, name)
}

func scard(c *command.Ctx) {
	if s, _, ok := c.ReadSet(1); ok {
		c.Reply.Int(int64(s.Len()))
	}
}

func sisMember(c *command.Ctx) {
	if s, _, ok := c.ReadSet(1); ok {
		sendHas(c, &s, c.Args[2])
	}
}

func smisMember(c *command.Ctx) {
	s, _, ok := c.ReadSet(1)
	if !ok {
		return
	}
	c.Reply.Array(len(c.Args) - 2)
	for _, member := range c.Args[2:] {
		sendHas(c, &s, member)
	}
}

// sendHas sends 1 if the set has a member, else 0.
func sendHas(c *command.Ctx, s *store.Set, member []byte) {
	if s.Has(member) {
		c.Reply.One()
	} else {
		c.Reply.Zero()
	}
}

func smembers(c *command.Ctx) {
	if s, _, ok := c.ReadSet(1); ok {
		sendMembers(c, &s)
	}
}

// sendMembers sends a whole set.
func sendMembers(c *command.Ctx, s *store.Set) {
	c.Reply.Set(s.Len())
	s.Each(func(member []byte) bool {
		c.Reply.Bulk(member)
		return true
	})
}

func smove(c *command.Ctx) {
	source, found, ok := c.ChangeSet(1)
	if !ok {
		return
	}
	if !found {
		c.Reply.Zero()
		return
	}
	target, _, ok := c.ChangeSet(2)
	if !ok {
		return
	}
	member := c.Args[3]
	if string(c.Args[1]) == string(c.Args[2]) {
		sendHas(c, &target, member)
		return
	}
	// Finding the destination may have removed a key that was past its time, so the source is looked up anew, and so is the
	// destination once the source has changed.
	source, _, _ = c.ChangeSet(1)
	if !source.Remove(member) {
		c.Reply.Zero()
		return
	}
	notifyRemovedFrom(c, &source, "srem", c.Args[1])
	target, _, _ = c.ChangeSet(2)
	if target.Add(member) {
		c.Notify(config.EventSet, "sadd", c.Args[2])
	}
	c.Reply.One()
}

func spop(c *command.Ctx) {
	count, counted := int64(1), len(c.Args) > 2
	if len(c.Args) > 3 {
		c.Err(command.ErrSyntax)
		return
	}
	if counted {
		var ok bool
		if count, ok = integerOr(c, 2, 0, command.ErrNotPositive); !ok {
			return
		}
	}
	s, found, ok := c.ChangeSet(1)
	switch {
	case !ok:
	case !found && !counted:
		c.Reply.Null()
	case !counted:
		popRandom(c, &s, 1)
	case !found || count == 0:
		c.Reply.Set(0)
	case count >= int64(s.Len()):
		sendMembers(c, &s)
		c.Notify(config.EventSet, "spop", c.Args[1])
		s.Entry().Delete()
		c.NotifyDeleted(true, c.Args[1])
		c.Effect("DEL", c.Args[1])
	default:
		c.Reply.Set(int(count))
		popRandom(c, &s, int(count))
	}
}

// popRandom removes n random members of the set at args[1], which has as many, and sends them.
func popRandom(c *command.Ctx, s *store.Set, n int) {
	effect := []any{"SREM", c.Args[1]}
	for range n {
		member := s.At(rand.IntN(s.Len()))
		c.Reply.Bulk(member)
		if c.Logs() {
			effect = append(effect, slices.Clone(member))
		}
		s.Remove(member)
	}
	notifyRemovedFrom(c, s, "spop", c.Args[1])
	c.Effect(effect...)
}

func srandMember(c *command.Ctx) {
	count := int64(1)
	single := len(c.Args) == 2
	if !single {
		if len(c.Args) > 3 {
			c.Err(command.ErrSyntax)
			return
		}
		var ok bool
		if count, _, ok = randomArgs(c, ""); !ok {
			return
		}
	}
	s, found, ok := c.ReadSet(1)
	switch {
	case !ok:
	case single:
		sendOneRandom(c, &setMembers{s}, found)
	default:
		sendRandom(c, &setMembers{s}, count, false)
	}
}

func sscan(c *command.Ctx) {
	cursor, ok := scanCursor(c, 2)
	if !ok {
		return
	}
	s, found, ok := c.ReadSet(1)
	if !ok {
		return
	}
	o, ok := elementOptions(c, found)
	if !ok {
		return
	}
	var elements [][]byte
	next := s.Scan(cursor, o.count, func(member []byte) {
		if o.matches(member) {
			elements = append(elements, keptMember(&s, member))
		}
	})
	sendScan(c, next, elements)
}
