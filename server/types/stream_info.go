package types

import (
	"headgate/server/command"
	"headgate/store"
)

// xinfoCommand is the XINFO family.
var xinfoCommand = &command.Command{
	Name: "xinfo", Group: command.GroupStream, Since: "5.0.0", Complexity: "depends on the sub-command",
	Summary: "Look at a stream, its consumer groups and their consumers.",
	Arity:   -2,
	Sub: []*command.Command{
		{
			Name: "consumers", Since: "5.0.0", Complexity: "O(n) in the number of consumers",
			Summary: "List a group's consumers, with the pending entries and idle time of each.",
			Arity:   4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 2, 2, 1),
			Tips: command.TipVaries,
			Args: []command.Arg{command.Key("key"), command.Str("groupname")}, Reply: command.ReplyArray, Handler: xinfoConsumers,
		},
		{
			Name: "groups", Since: "5.0.0", Complexity: "O(n) in the number of groups",
			Summary: "List a stream's consumer groups, with how far each has read.",
			Arity:   3, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 2, 2, 1),
			Args: []command.Arg{command.Key("key")}, Reply: command.ReplyArray, Handler: xinfoGroups,
		},
		command.HelpCommand("5.0.0"),
		{
			Name: "stream", Since: "5.0.0", Complexity: "O(n) in the number of entries shown and of the stream's nodes",
			Summary: "Return information about a stream; with FULL also its entries, groups and consumers.",
			Arity:   -3, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 2, 2, 1),
			Args:  []command.Arg{command.Key("key"), command.Block("full_block", command.Tok("FULL"), command.Integer("count").After("COUNT").Opt()).Opt()},
			Reply: command.ReplyMap, Handler: xinfoStream,
		},
	},
}

// fullCount is how much of everything XINFO STREAM FULL shows when it is not told.
const fullCount = 10

// infoStream opens the stream at args[2], or sends the error and returns false.
func infoStream(c *command.Ctx) (store.Stream, bool) {
	s, found, ok := readStream(c, 2)
	if ok && !found {
		c.Err(command.ErrNoSuchKey)
	}
	return s, ok && found
}

func xinfoConsumers(c *command.Ctx) {
	s, ok := infoStream(c)
	if !ok {
		return
	}
	g := s.Group(c.Args[3])
	if g == nil {
		errNoGroup(c, 3, 2)
		return
	}
	c.Reply.Array(len(g.Consumers()))
	for _, consumer := range g.Consumers() {
		c.Reply.Map(3)
		c.Reply.BulkString("name")
		c.Reply.BulkString(consumer.Name())
		c.Reply.BulkString("pending")
		c.Reply.Int(int64(consumer.Pending()))
		c.Reply.BulkString("idle")
		c.Reply.Int(max(c.Now-consumer.Seen(), 0))
	}
}

func xinfoGroups(c *command.Ctx) {
	s, ok := infoStream(c)
	if !ok {
		return
	}
	c.Reply.Array(len(s.Groups()))
	for _, g := range s.Groups() {
		c.Reply.Map(6)
		c.Reply.BulkString("name")
		c.Reply.BulkString(g.Name())
		c.Reply.BulkString("consumers")
		c.Reply.Int(int64(len(g.Consumers())))
		c.Reply.BulkString("pending")
		c.Reply.Int(int64(g.Pending()))
		sendProgress(c, &s, g)
	}
}

// sendProgress sends how far a group has read, as three fields of a map.
func sendProgress(c *command.Ctx, s *store.Stream, g *store.StreamGroup) {
	c.Reply.BulkString("last-delivered-id")
	sendStreamID(c, g.Last())
	c.Reply.BulkString("entries-read")
	sendKnown(c, g.Reads(), g.Reads() != store.UnknownReads)
	c.Reply.BulkString("lag")
	lag, known := s.Lag(g)
	sendKnown(c, lag, known)
}

// sendKnown sends a number, or null if it is not known.
func sendKnown(c *command.Ctx, n int64, known bool) {
	if known {
		c.Reply.Int(n)
	} else {
		c.Reply.Null()
	}
}

func xinfoStream(c *command.Ctx) {
	s, ok := infoStream(c)
	if !ok {
		return
	}
	full, count := len(c.Args) > 3, int64(fullCount)
	if full {
		if n := len(c.Args); (n != 4 && n != 6) || !c.Is(3, "FULL") || (n == 6 && !c.Is(4, "COUNT")) {
			c.ErrSubcommandSyntax()
			return
		}
		if len(c.Args) == 6 {
			if count, ok = c.Integer(5); !ok {
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
	c.Reply.Map(fields)
	info := s.Info()
	c.Reply.BulkString("length")
	c.Reply.Int(int64(s.Len()))
	c.Reply.BulkString("radix-tree-keys")
	c.Reply.Int(int64(s.Nodes()))
	c.Reply.BulkString("radix-tree-nodes")
	c.Reply.Int(int64(s.RadixNodes()))
	c.Reply.BulkString("last-generated-id")
	sendStreamID(c, info.Last)
	c.Reply.BulkString("max-deleted-entry-id")
	sendStreamID(c, info.MaxDeleted)
	c.Reply.BulkString("entries-added")
	c.Reply.Int(int64(info.Added))
	c.Reply.BulkString("recorded-first-entry-id")
	sendStreamID(c, info.First)
	if full {
		c.Reply.BulkString("entries")
		sendEntries(c, &s, store.StreamID{}, store.MaxStreamID, false, count)
		c.Reply.BulkString("groups")
		c.Reply.Array(len(s.Groups()))
		for _, g := range s.Groups() {
			sendGroup(c, &s, g, count)
		}
		return
	}
	c.Reply.BulkString("groups")
	c.Reply.Int(int64(len(s.Groups())))
	c.Reply.BulkString("first-entry")
	sendEdge(c, &s, false)
	c.Reply.BulkString("last-entry")
	sendEdge(c, &s, true)
}

// sendEdge sends the first entry, or the last, or null if there is none.
func sendEdge(c *command.Ctx, s *store.Stream, last bool) {
	if s.Len() == 0 {
		c.Reply.Null()
		return
	}
	s.Each(store.StreamID{}, store.MaxStreamID, last, func(e *store.StreamEntry) bool {
		sendEntry(c, e)
		return false
	})
}

// sendGroup sends all that there is to know of a group, and of what is pending at most count entries, or all if that is 0.
func sendGroup(c *command.Ctx, s *store.Stream, g *store.StreamGroup, count int64) {
	c.Reply.Map(7)
	c.Reply.BulkString("name")
	c.Reply.BulkString(g.Name())
	sendProgress(c, s, g)
	c.Reply.BulkString("pel-count")
	c.Reply.Int(int64(g.Pending()))
	c.Reply.BulkString("pending")
	mark, n := c.Reply.Start(), 0
	g.EachPending(store.StreamID{}, func(p *store.Pending) bool {
		c.Reply.Array(4)
		sendStreamID(c, p.ID)
		c.Reply.BulkString(p.Consumer().Name())
		c.Reply.Int(p.Delivered)
		c.Reply.Int(p.Count)
		n++
		return int64(n) != count
	})
	c.Reply.EndArray(mark, n)
	c.Reply.BulkString("consumers")
	c.Reply.Array(len(g.Consumers()))
	for _, consumer := range g.Consumers() {
		sendConsumer(c, consumer, count)
	}
}

func sendConsumer(c *command.Ctx, consumer *store.StreamConsumer, count int64) {
	c.Reply.Map(4)
	c.Reply.BulkString("name")
	c.Reply.BulkString(consumer.Name())
	c.Reply.BulkString("seen-time")
	c.Reply.Int(consumer.Seen())
	c.Reply.BulkString("pel-count")
	c.Reply.Int(int64(consumer.Pending()))
	c.Reply.BulkString("pending")
	mark, n := c.Reply.Start(), 0
	consumer.EachPending(store.StreamID{}, func(p *store.Pending) bool {
		c.Reply.Array(3)
		sendStreamID(c, p.ID)
		c.Reply.Int(p.Delivered)
		c.Reply.Int(p.Count)
		n++
		return int64(n) != count
	})
	c.Reply.EndArray(mark, n)
}
