package server

import (
	"math/rand/v2"
	"slices"

	"headgate/server/config"
	"headgate/store"
)

// setCommands: sets.
var setCommands = []*Command{
	{
		Name: "sadd", Group: GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members given",
		Summary: "Add members to a set and return how many are new.",
		Arity:   -3, Flags: Write | DenyOOM | Fast, Keys: keys("RW INSERT", 1, 1, 1),
		Args: []Arg{key("key"), str("member").multi()}, Reply: ReplyInteger, Handler: sadd,
	},
	{
		Name: "scard", Group: GroupSet, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Count the members of a set.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: scard,
	},
	{
		Name: "sdiff", Group: GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members of all sets",
		Summary: "Return the members of the first set that no other one has.",
		Arity:   -2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, -1, 1),
		Tips: tipUnordered,
		Args: []Arg{key("key").multi()}, Reply: ReplySet, Handler: combineSets(difference),
	},
	{
		Name: "sdiffstore", Group: GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members of all sets",
		Summary: "Keep the members of the first set that no other one has at another key, and return their number.",
		Arity:   -3, Flags: Write | DenyOOM, Keys: slices.Concat(keys("OW UPDATE", 1, 1, 1), keys("RO ACCESS", 2, -1, 1)),
		Args: []Arg{key("destination"), key("key").multi()}, Reply: ReplyInteger, Handler: combineSetsStore(difference, "sdiffstore"),
	},
	{
		Name: "sinter", Group: GroupSet, Since: "1.0.0", Complexity: "O(n * k) for n members of the smallest of k sets",
		Summary: "Return the members that all of the sets have.",
		Arity:   -2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, -1, 1),
		Tips: tipUnordered,
		Args: []Arg{key("key").multi()}, Reply: ReplySet, Handler: combineSets(intersection),
	},
	{
		Name: "sintercard", Group: GroupSet, Since: "7.0.0", Complexity: "O(n * k) for n members of the smallest of k sets",
		Summary: "Count the members that all of the sets have, up to a limit.",
		Arity:   -3, Flags: ReadOnly, Keys: countedKeys("RO ACCESS", 1),
		Args:  []Arg{integer("numkeys"), key("key").multi(), integer("limit").after("LIMIT").opt()},
		Reply: ReplyInteger, Handler: sinterCard,
	},
	{
		Name: "sinterstore", Group: GroupSet, Since: "1.0.0", Complexity: "O(n * k) for n members of the smallest of k sets",
		Summary: "Keep the members that all of the sets have at another key, and return their number.",
		Arity:   -3, Flags: Write | DenyOOM, Keys: slices.Concat(keys("RW UPDATE", 1, 1, 1), keys("RO ACCESS", 2, -1, 1)),
		Args: []Arg{key("destination"), key("key").multi()}, Reply: ReplyInteger, Handler: combineSetsStore(intersection, "sinterstore"),
	},
	{
		Name: "sismember", Group: GroupSet, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Tell whether a set has a member.",
		Arity:   3, Flags: ReadOnly | Fast, Keys: keys("RO", 1, 1, 1),
		Args: []Arg{key("key"), str("member")}, Reply: ReplyInteger, Handler: sisMember,
	},
	{
		Name: "smembers", Group: GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members",
		Summary: "Return all members of a set.",
		Arity:   2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipUnordered,
		Args: []Arg{key("key")}, Reply: ReplySet, Handler: smembers,
	},
	{
		Name: "smismember", Group: GroupSet, Since: "6.2.0", Complexity: "O(n) in the number of members named",
		Summary: "Tell for each of several members whether a set has it.",
		Arity:   -3, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), str("member").multi()}, Reply: ReplyArray, Handler: smisMember,
	},
	{
		Name: "smove", Group: GroupSet, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Take a member from one set to another, if the first has it.",
		Arity:   4, Flags: Write | Fast, Keys: movedKeys,
		Args: []Arg{key("source"), key("destination"), str("member")}, Reply: ReplyInteger, Handler: smove,
	},
	{
		Name: "spop", Group: GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members removed",
		Summary: "Remove a random member of a set, or several different ones, and return them.",
		Arity:   -2, Flags: Write | Fast, Keys: keys("RW ACCESS DELETE", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{key("key"), integer("count").opt()}, Reply: ReplyBulk | ReplySet | ReplyNull, Handler: spop,
	},
	{
		Name: "srandmember", Group: GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members returned",
		Summary: "Return a random member of a set, or several: different ones, or with repeats if the count is negative.",
		Arity:   -2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{key("key"), integer("count").opt()}, Reply: ReplyBulk | ReplyArray | ReplyNull, Handler: srandMember,
	},
	{
		Name: "srem", Group: GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members named",
		Summary: "Remove members from a set and return how many there were; a set without members is gone.",
		Arity:   -3, Flags: Write | Fast, Keys: keys("RW DELETE", 1, 1, 1),
		Args: []Arg{key("key"), str("member").multi()}, Reply: ReplyInteger, Handler: srem,
	},
	{
		Name: "sscan", Group: GroupSet, Since: "2.8.0", Complexity: "O(1) per call, O(n) in the number of members for a full iteration",
		Summary: "Go through the members of a set, a part with each call.",
		Arity:   -3, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{
			key("key"), integer("cursor"), pattern("pattern").after("MATCH").opt(), integer("count").after("COUNT").opt(),
		},
		Reply: ReplyArray, Handler: sscan,
	},
	{
		Name: "sunion", Group: GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members of all sets",
		Summary: "Return the members that any of the sets has.",
		Arity:   -2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, -1, 1),
		Tips: tipUnordered,
		Args: []Arg{key("key").multi()}, Reply: ReplySet, Handler: combineSets(union),
	},
	{
		Name: "sunionstore", Group: GroupSet, Since: "1.0.0", Complexity: "O(n) in the number of members of all sets",
		Summary: "Keep the members that any of the sets has at another key, and return their number.",
		Arity:   -3, Flags: Write | DenyOOM, Keys: slices.Concat(keys("OW UPDATE", 1, 1, 1), keys("RO ACCESS", 2, -1, 1)),
		Args: []Arg{key("destination"), key("key").multi()}, Reply: ReplyInteger, Handler: combineSetsStore(union, "sunionstore"),
	},
}

func sadd(c *Ctx) {
	s, _, ok := c.changeSet(1)
	if !ok {
		return
	}
	added := int64(0)
	for _, member := range c.args[2:] {
		if s.Add(member) {
			added++
		}
	}
	if added > 0 {
		c.notify(config.EventSet, "sadd", c.args[1])
	}
	c.reply.Int(added)
}

func srem(c *Ctx) {
	s, _, ok := c.changeSet(1)
	if !ok {
		return
	}
	removed := int64(0)
	for _, member := range c.args[2:] {
		if s.Remove(member) {
			removed++
		}
	}
	if removed > 0 {
		c.notifyRemovedFrom(&s, "srem", c.args[1])
	}
	c.reply.Int(removed)
}

// notifyRemovedFrom tells that members were removed from the set at a key, and that it is gone if there are no more.
func (c *Ctx) notifyRemovedFrom(s *store.Set, event string, name []byte) {
	c.notify(config.EventSet, event, name)
	c.notifyDeleted(s.Len() == 0, name)
}

func scard(c *Ctx) {
	if s, _, ok := c.readSet(1); ok {
		c.reply.Int(int64(s.Len()))
	}
}

func sisMember(c *Ctx) {
	if s, _, ok := c.readSet(1); ok {
		c.sendHas(&s, c.args[2])
	}
}

func smisMember(c *Ctx) {
	s, _, ok := c.readSet(1)
	if !ok {
		return
	}
	c.reply.Array(len(c.args) - 2)
	for _, member := range c.args[2:] {
		c.sendHas(&s, member)
	}
}

// sendHas sends 1 if the set has a member, else 0.
func (c *Ctx) sendHas(s *store.Set, member []byte) {
	if s.Has(member) {
		c.reply.One()
	} else {
		c.reply.Zero()
	}
}

func smembers(c *Ctx) {
	if s, _, ok := c.readSet(1); ok {
		c.sendMembers(&s)
	}
}

// sendMembers sends a whole set.
func (c *Ctx) sendMembers(s *store.Set) {
	c.reply.Set(s.Len())
	s.Each(func(member []byte) bool {
		c.reply.Bulk(member)
		return true
	})
}

func smove(c *Ctx) {
	source, found, ok := c.changeSet(1)
	if !ok {
		return
	}
	if !found {
		c.reply.Zero()
		return
	}
	target, _, ok := c.changeSet(2)
	if !ok {
		return
	}
	member := c.args[3]
	if string(c.args[1]) == string(c.args[2]) {
		c.sendHas(&target, member)
		return
	}
	// Finding the destination may have removed a key that was past its time, so the source is looked up anew, and so is the
	// destination once the source has changed.
	source, _, _ = c.changeSet(1)
	if !source.Remove(member) {
		c.reply.Zero()
		return
	}
	c.notifyRemovedFrom(&source, "srem", c.args[1])
	target, _, _ = c.changeSet(2)
	if target.Add(member) {
		c.notify(config.EventSet, "sadd", c.args[2])
	}
	c.reply.One()
}

func spop(c *Ctx) {
	count, counted := int64(1), len(c.args) > 2
	if len(c.args) > 3 {
		c.err(errSyntax)
		return
	}
	if counted {
		var ok bool
		if count, ok = c.integerOr(2, 0, errNotPositive); !ok {
			return
		}
	}
	s, found, ok := c.changeSet(1)
	switch {
	case !ok:
	case !found && !counted:
		c.reply.Null()
	case !counted:
		c.popRandom(&s, 1)
	case !found || count == 0:
		c.reply.Set(0)
	case count >= int64(s.Len()):
		c.sendMembers(&s)
		c.notify(config.EventSet, "spop", c.args[1])
		s.Entry().Delete()
		c.notifyDeleted(true, c.args[1])
		c.effect("DEL", c.args[1])
	default:
		c.reply.Set(int(count))
		c.popRandom(&s, int(count))
	}
}

// popRandom removes n random members of the set at args[1], which has as many, and sends them.
func (c *Ctx) popRandom(s *store.Set, n int) {
	effect := []any{"SREM", c.args[1]}
	for range n {
		member := s.At(rand.IntN(s.Len()))
		c.reply.Bulk(member)
		if c.logs() {
			effect = append(effect, slices.Clone(member))
		}
		s.Remove(member)
	}
	c.notifyRemovedFrom(s, "spop", c.args[1])
	c.effect(effect...)
}

func srandMember(c *Ctx) {
	count := int64(1)
	single := len(c.args) == 2
	if !single {
		if len(c.args) > 3 {
			c.err(errSyntax)
			return
		}
		var ok bool
		if count, _, ok = c.randomArgs(""); !ok {
			return
		}
	}
	s, found, ok := c.readSet(1)
	switch {
	case !ok:
	case single:
		c.sendOneRandom(&setMembers{s}, found)
	default:
		c.sendRandom(&setMembers{s}, count, false)
	}
}

func sscan(c *Ctx) {
	cursor, ok := c.scanCursor(2)
	if !ok {
		return
	}
	s, found, ok := c.readSet(1)
	if !ok {
		return
	}
	o, ok := c.elementOptions(found)
	if !ok {
		return
	}
	var elements [][]byte
	next := s.Scan(cursor, o.count, func(member []byte) {
		if o.matches(member) {
			elements = append(elements, keptMember(&s, member))
		}
	})
	c.sendScan(next, elements)
}
