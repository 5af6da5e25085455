package server

import (
	"headgate/server/resp"
	"headgate/store"
)

const (
	errReadGroupOption = "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead."
	errReadNoAck       = "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead."
	errReadNeedsGroup  = "ERR Missing GROUP option for XREADGROUP"
	errReadLatest      = "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a " +
		"proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set."
	errReadUnbalanced = "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."
	errReadNew        = "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
	errReadNoGroup    = "NOGROUP No such key '%s' or consumer group '%s' in XREADGROUP with GROUP option"
)

var (
	xreadCommand = &Command{
		Name: "xread", Group: GroupStream, Since: "5.0.0", Complexity: "O(log n + m) per key, for m entries returned of n",
		Summary: "Return the entries of streams behind given IDs, and wait for some if asked to.",
		Arity:   -4, Flags: ReadOnly | Blocking, Keys: streamKeys(1),
		Args:  []Arg{streamCountArg, readBlockArg, readStreamsArg},
		Reply: ReplyArray | ReplyMap | ReplyNull, Handler: xread(false),
	}
	xreadGroupCommand = &Command{
		Name: "xreadgroup", Group: GroupStream, Since: "5.0.0", Complexity: "O(log n + m) per key, for m entries returned of n",
		Summary: "Return entries of streams as a consumer of a group: new ones, which are then pending, or those still pending.",
		Arity:   -7, Flags: Write | Blocking, Keys: streamKeys(4),
		Args: []Arg{
			block("group_block", str("group"), str("consumer")).after("GROUP"), streamCountArg, readBlockArg, tok("NOACK").opt(), readStreamsArg,
		},
		Reply: ReplyArray | ReplyMap | ReplyNull, Handler: xread(true),
	}
)

var (
	readBlockArg   = integer("milliseconds").after("BLOCK").opt()
	readStreamsArg = block("streams", key("key").multi(), str("id").multi()).after("STREAMS")
)

// streamKeys declares the keys behind STREAMS, which is searched from an argument on: half of what follows it.
func streamKeys(from int) []KeySpec {
	return []KeySpec{{Access: "RO ACCESS", Keyword: "STREAMS", Begin: from, Last: -1, Step: 1, Limit: 2}}
}

// streamRead is what XREAD and XREADGROUP are told.
type streamRead struct {
	grouped  bool
	group    []byte
	consumer []byte
	noAck    bool
	count    int64 // 0: all
	blocks   bool
	timeout  int64 // ms, 0 for none
	firstKey int   // argument index
	keys     int
	after    []streamPosition
}

// streamPosition is where reading begins.
type streamPosition struct {
	id    store.StreamID
	fresh bool // >: what the group has not handed out yet
}

// streamReadArgs parses the words up to the keys, or sends the error and returns false.
func (c *Ctx) streamReadArgs(grouped bool) (o streamRead, ok bool) {
	o.grouped = grouped
	for i := 1; i < len(c.args) && o.firstKey == 0; i++ {
		more := len(c.args) - i - 1
		switch {
		case more > 0 && c.is(i, "BLOCK"):
			if c.srv.scripts.ctx != nil {
				c.errf("ERR %s command is not allowed with BLOCK option from scripts", c.args[0])
				return o, false
			}
			i++
			o.blocks = true
			if o.timeout, ok = c.blockMillis(i); !ok {
				return o, false
			}
		case more > 0 && c.is(i, "COUNT"):
			i++
			if o.count, ok = c.integer(i); !ok {
				return o, false
			}
			o.count = max(o.count, 0)
		case more > 0 && c.is(i, "STREAMS"):
			o.firstKey, o.keys = i+1, more/2
			if more%2 != 0 {
				c.err(errReadUnbalanced)
				return o, false
			}
		case more > 1 && c.is(i, "GROUP"):
			if !grouped {
				c.err(errReadGroupOption)
				return o, false
			}
			o.group, o.consumer = c.args[i+1], c.args[i+2]
			i += 2
		case c.is(i, "NOACK"):
			if !grouped {
				c.err(errReadNoAck)
				return o, false
			}
			o.noAck = true
		default:
			c.err(errSyntax)
			return o, false
		}
	}
	switch {
	case o.firstKey == 0:
		c.err(errSyntax)
	case grouped && o.group == nil:
		c.err(errReadNeedsGroup)
	default:
		return o, c.streamPositions(&o)
	}
	return o, false
}

// streamPositions parses the IDs behind the keys, or sends the error and returns false.
func (c *Ctx) streamPositions(o *streamRead) bool {
	for n := range o.keys {
		i := o.firstKey + n
		s, _, ok := c.readStream(i)
		if !ok {
			return false
		}
		if o.grouped && s.Group(o.group) == nil {
			c.errf(errReadNoGroup, cutAtNUL(c.args[i]), cutAtNUL(o.group))
			return false
		}
		var at streamPosition
		switch text := string(cutAtNUL(c.args[i+o.keys])); {
		case text == "$" && o.grouped:
			c.err(errReadLatest)
			return false
		case text == "$":
			at.id = s.Info().Last
		case text == ">" && !o.grouped:
			c.err(errReadNew)
			return false
		case text == ">":
			at.fresh = true
		default:
			if at.id, ok = c.streamID(i + o.keys); !ok {
				return false
			}
			at.fresh = o.grouped && at.id == store.MaxStreamID
		}
		o.after = append(o.after, at)
	}
	return true
}

// xread returns the handler of XREAD, or of XREADGROUP.
func xread(grouped bool) Handler {
	return func(c *Ctx) {
		o, ok := c.streamReadArgs(grouped)
		if !ok {
			return
		}
		before := c.reply.Len()
		mark, n := c.reply.Start(), 0
		for i := range o.keys {
			if c.readOneStream(&o, i) {
				n++
			}
		}
		if n > 0 {
			c.endStreams(mark, n)
			return
		}
		c.reply.Truncate(before)
		c.reply.NullArray()
	}
}

// endStreams ends the reply that begins at mark and has the entries of n streams.
func (c *Ctx) endStreams(mark resp.Mark, n int) {
	if c.reply.Proto() == resp.RESP3 {
		c.reply.EndMap(mark, n)
	} else {
		c.reply.EndArray(mark, n)
	}
}

// readOneStream sends the name of a stream and its entries, and reports false if it has none to send.
func (c *Ctx) readOneStream(o *streamRead, i int) bool {
	arg := o.firstKey + i
	s, found, err := c.db.Stream(c.key(arg), c.now)
	if err != nil || !found {
		return false
	}
	after := o.after[i]
	var g *store.StreamGroup
	if o.grouped {
		g = s.Group(o.group)
		if after.fresh {
			after.id = g.Last()
		}
	}
	history := o.grouped && !after.fresh
	if !history && (s.Len() == 0 || s.Newest().Compare(after.id) <= 0) {
		return false
	}
	from, _ := after.id.Next()
	if c.reply.Proto() != resp.RESP3 {
		c.reply.Array(2)
	}
	c.reply.Bulk(c.args[arg])
	if g == nil {
		c.sendEntries(&s, from, store.MaxStreamID, false, o.count)
		return true
	}
	consumer := c.seeConsumer(&s, g, c.args[arg], o.consumer)
	if history {
		c.sendHistory(&s, g, consumer, c.args[arg], from, o.count)
	} else {
		c.sendFresh(&s, g, consumer, c.args[arg], from, o)
	}
	return true
}

// sendFresh sends the entries that the group has not handed out yet, which are then pending for the consumer.
func (c *Ctx) sendFresh(s *store.Stream, g *store.StreamGroup, consumer *store.StreamConsumer, key []byte, from store.StreamID, o *streamRead) {
	mark, n := c.reply.Start(), 0
	s.Each(from, store.MaxStreamID, false, func(e *store.StreamEntry) bool {
		s.Advance(g, e.ID)
		c.sendEntry(e)
		if !o.noAck {
			c.effectPending(key, g, s.Assign(g, consumer, e.ID, c.now, 1))
		}
		n++
		return int64(n) != o.count
	})
	c.effectGroupID(key, g)
	c.reply.EndArray(mark, n)
}

// sendHistory sends what a consumer has pending again. An entry that its stream has no more is sent as an ID with nothing.
func (c *Ctx) sendHistory(s *store.Stream, g *store.StreamGroup, consumer *store.StreamConsumer, key []byte, from store.StreamID, count int64) {
	var ids []store.StreamID
	consumer.EachPending(from, func(p *store.Pending) bool {
		ids = append(ids, p.ID)
		return int64(len(ids)) != count
	})
	c.reply.Array(len(ids))
	for _, id := range ids {
		if !c.sendOneEntry(s, id) {
			c.reply.Array(2)
			c.sendStreamID(id)
			c.reply.NullArray()
			continue
		}
		p := g.FindPending(id)
		c.effectPending(key, g, s.Assign(g, consumer, id, c.now, p.Count+1))
	}
}

// blockMillis parses args[i] as how long to wait, in milliseconds, or sends the error and returns false.
func (c *Ctx) blockMillis(i int) (int64, bool) {
	n, ok := store.ParseInt(c.args[i])
	switch {
	case !ok:
		c.err(errTimeout)
	case n < 0:
		c.err(errTimeoutNegative)
	default:
		return n, true
	}
	return 0, false
}
