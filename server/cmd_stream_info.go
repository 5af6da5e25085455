package server

import "headgate/store"

// xinfoCommand is the XINFO family.
var xinfoCommand = &Command{
	Name: "xinfo", Group: GroupStream, Since: "5.0.0", Complexity: "depends on the sub-command",
	Summary: "Look at a stream, its consumer groups and their consumers.",
	Arity:   -2,
	Sub: []*Command{
		{
			Name: "consumers", Since: "5.0.0", Complexity: "O(n) in the number of consumers",
			Summary: "List a group's consumers, with how much each has pending and how long ago it was heard of.",
			Arity:   4, Flags: ReadOnly, Keys: keys("RO ACCESS", 2, 2, 1),
			Tips: tipVaries,
			Args: []Arg{key("key"), str("groupname")}, Reply: ReplyArray, Handler: xinfoConsumers,
		},
		{
			Name: "groups", Since: "5.0.0", Complexity: "O(n) in the number of groups",
			Summary: "List a stream's consumer groups, with how far each has read.",
			Arity:   3, Flags: ReadOnly, Keys: keys("RO ACCESS", 2, 2, 1),
			Args: []Arg{key("key")}, Reply: ReplyArray, Handler: xinfoGroups,
		},
		helpCommand("5.0.0"),
		{
			Name: "stream", Since: "5.0.0", Complexity: "O(n) in the number of entries shown and of the stream's nodes",
			Summary: "Return what there is to know of a stream; with FULL also its entries, groups and consumers.",
			Arity:   -3, Flags: ReadOnly, Keys: keys("RO ACCESS", 2, 2, 1),
			Args:  []Arg{key("key"), block("full_block", tok("FULL"), integer("count").after("COUNT").opt()).opt()},
			Reply: ReplyMap, Handler: xinfoStream,
		},
	},
}

// fullCount is how much of everything XINFO STREAM FULL shows when it is not told.
const fullCount = 10

// infoStream opens the stream at args[2], or sends the error and returns false.
func (c *Ctx) infoStream() (store.Stream, bool) {
	s, found, ok := c.readStream(2)
	if ok && !found {
		c.err(errNoSuchKey)
	}
	return s, ok && found
}

func xinfoConsumers(c *Ctx) {
	s, ok := c.infoStream()
	if !ok {
		return
	}
	g := s.Group(c.args[3])
	if g == nil {
		c.errNoGroup(3, 2)
		return
	}
	c.reply.Array(len(g.Consumers()))
	for _, consumer := range g.Consumers() {
		c.reply.Map(3)
		c.reply.BulkString("name")
		c.reply.BulkString(consumer.Name())
		c.reply.BulkString("pending")
		c.reply.Int(int64(consumer.Pending()))
		c.reply.BulkString("idle")
		c.reply.Int(max(c.now-consumer.Seen(), 0))
	}
}

func xinfoGroups(c *Ctx) {
	s, ok := c.infoStream()
	if !ok {
		return
	}
	c.reply.Array(len(s.Groups()))
	for _, g := range s.Groups() {
		c.reply.Map(6)
		c.reply.BulkString("name")
		c.reply.BulkString(g.Name())
		c.reply.BulkString("consumers")
		c.reply.Int(int64(len(g.Consumers())))
		c.reply.BulkString("pending")
		c.reply.Int(int64(g.Pending()))
		c.sendProgress(&s, g)
	}
}

// sendProgress sends how far a group has read, as three fields of a map.
func (c *Ctx) sendProgress(s *store.Stream, g *store.StreamGroup) {
	c.reply.BulkString("last-delivered-id")
	c.sendStreamID(g.Last())
	c.reply.BulkString("entries-read")
	c.sendKnown(g.Reads(), g.Reads() != store.UnknownReads)
	c.reply.BulkString("lag")
	lag, known := s.Lag(g)
	c.sendKnown(lag, known)
}

// sendKnown sends a number, or null if it is not known.
func (c *Ctx) sendKnown(n int64, known bool) {
	if known {
		c.reply.Int(n)
	} else {
		c.reply.Null()
	}
}

func xinfoStream(c *Ctx) {
	s, ok := c.infoStream()
	if !ok {
		return
	}
	full, count := len(c.args) > 3, int64(fullCount)
	if full {
		if n := len(c.args); (n != 4 && n != 6) || !c.is(3, "FULL") || (n == 6 && !c.is(4, "COUNT")) {
			c.errSubcommandSyntax()
			return
		}
		if len(c.args) == 6 {
			if count, ok = c.integer(5); !ok {
				return
			}
			if count < 0 {
				count = fullCount
			}
		}
	}
	fields := 10
	if full {
		fields = 9
	}
	c.reply.Map(fields)
	info := s.Info()
	c.reply.BulkString("length")
	c.reply.Int(int64(s.Len()))
	c.reply.BulkString("radix-tree-keys")
	c.reply.Int(int64(s.Nodes()))
	c.reply.BulkString("radix-tree-nodes")
	c.reply.Int(int64(s.RadixNodes()))
	c.reply.BulkString("last-generated-id")
	c.sendStreamID(info.Last)
	c.reply.BulkString("max-deleted-entry-id")
	c.sendStreamID(info.MaxDeleted)
	c.reply.BulkString("entries-added")
	c.reply.Int(int64(info.Added))
	c.reply.BulkString("recorded-first-entry-id")
	c.sendStreamID(info.First)
	if full {
		c.reply.BulkString("entries")
		c.sendEntries(&s, store.StreamID{}, store.MaxStreamID, false, count)
		c.reply.BulkString("groups")
		c.reply.Array(len(s.Groups()))
		for _, g := range s.Groups() {
			c.sendGroup(&s, g, count)
		}
		return
	}
	c.reply.BulkString("groups")
	c.reply.Int(int64(len(s.Groups())))
	c.reply.BulkString("first-entry")
	c.sendEdge(&s, false)
	c.reply.BulkString("last-entry")
	c.sendEdge(&s, true)
}

// sendEdge sends the first entry, or the last, or null if there is none.
func (c *Ctx) sendEdge(s *store.Stream, last bool) {
	if s.Len() == 0 {
		c.reply.Null()
		return
	}
	s.Each(store.StreamID{}, store.MaxStreamID, last, func(e *store.StreamEntry) bool {
		c.sendEntry(e)
		return false
	})
}

// sendGroup sends all that there is to know of a group, and of what is pending at most count entries, or all if that is 0.
func (c *Ctx) sendGroup(s *store.Stream, g *store.StreamGroup, count int64) {
	c.reply.Map(7)
	c.reply.BulkString("name")
	c.reply.BulkString(g.Name())
	c.sendProgress(s, g)
	c.reply.BulkString("pel-count")
	c.reply.Int(int64(g.Pending()))
	c.reply.BulkString("pending")
	mark, n := c.reply.Start(), 0
	g.EachPending(store.StreamID{}, func(p *store.Pending) bool {
		c.reply.Array(4)
		c.sendStreamID(p.ID)
		c.reply.BulkString(p.Consumer().Name())
		c.reply.Int(p.Delivered)
		c.reply.Int(p.Count)
		n++
		return int64(n) != count
	})
	c.reply.EndArray(mark, n)
	c.reply.BulkString("consumers")
	c.reply.Array(len(g.Consumers()))
	for _, consumer := range g.Consumers() {
		c.sendConsumer(consumer, count)
	}
}

func (c *Ctx) sendConsumer(consumer *store.StreamConsumer, count int64) {
	c.reply.Map(4)
	c.reply.BulkString("name")
	c.reply.BulkString(consumer.Name())
	c.reply.BulkString("seen-time")
	c.reply.Int(consumer.Seen())
	c.reply.BulkString("pel-count")
	c.reply.Int(int64(consumer.Pending()))
	c.reply.BulkString("pending")
	mark, n := c.reply.Start(), 0
	consumer.EachPending(store.StreamID{}, func(p *store.Pending) bool {
		c.reply.Array(3)
		c.sendStreamID(p.ID)
		c.reply.Int(p.Delivered)
		c.reply.Int(p.Count)
		n++
		return int64(n) != count
	})
	c.reply.EndArray(mark, n)
}
