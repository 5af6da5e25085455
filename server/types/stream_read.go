package types

import (
	"slices"

	"headgate/internal/ascii"
	"headgate/server/command"
	"headgate/server/resp"
	"headgate/store"
)

const (
	errReadGroupOption = "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead."
	errReadNoAck       = "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead."
	errReadNeedsGroup  = "ERR Missing GROUP option for XREADGROUP"
	errReadLatest      = "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a " +
		"proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set."
	errReadGroupGone  = "NOGROUP the consumer group this client was blocked on no longer exists"
	errReadKeyGone    = "UNBLOCKED the stream key no longer exists"
	errReadUnbalanced = "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."
	errReadNew        = "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
	errReadNoGroup    = "NOGROUP No such key '%s' or consumer group '%s' in XREADGROUP with GROUP option"
)

// blockedStreamCount is how many entries a client that has waited gets at once if it has not said.
const blockedStreamCount = 1000

var (
	xreadCommand = &command.Command{
		Name: "xread", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(log n + m) per key, for m entries returned of n",
		Summary: "Return the entries of streams after the given IDs, and optionally wait for some.",
		Arity:   -4, Flags: command.ReadOnly | command.Blocking, Keys: streamKeys(1),
		Args:  []command.Arg{streamCountArg, readBlockArg, readStreamsArg},
		Reply: command.ReplyArray | command.ReplyMap | command.ReplyNull, Handler: xread(false),
	}
	xreadGroupCommand = &command.Command{
		Name: "xreadgroup", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(log n + m) per key, for m entries returned of n",
		Summary: "Return entries of streams as a consumer of a group: new ones, which are then pending, or those still pending.",
		Arity:   -7, Flags: command.Write | command.Blocking, Keys: streamKeys(4),
		Args: []command.Arg{
			command.Block("group_block", command.Str("group"), command.Str("consumer")).After("GROUP"), streamCountArg, readBlockArg, command.Tok("NOACK").Opt(), readStreamsArg,
		},
		Reply: command.ReplyArray | command.ReplyMap | command.ReplyNull, Handler: xread(true),
	}
)

var (
	readBlockArg   = command.Integer("milliseconds").After("BLOCK").Opt()
	readStreamsArg = command.Block("streams", command.Key("key").Multi(), command.Str("id").Multi()).After("STREAMS")
)

// streamKeys declares the keys behind STREAMS, which clients are told to search from an argument on: half of what follows it.
func streamKeys(from int) []command.KeySpec {
	return []command.KeySpec{{Access: "RO ACCESS", Keyword: "STREAMS", Begin: from, Behind: behindStreams, Last: -1, Step: 1, Limit: 2}}
}

// readWord is a word of the options of XREAD and XREADGROUP.
type readWord uint8

const (
	readNoWord readWord = iota
	readBlock
	readCount
	readStreams
	readGroup
	readNoAck
)

// readWordAt returns the word at args[i], whose values follow it, and where the next one stands, or for STREAMS the first key. It is
// the only one that knows what in a line is a word and what a value: both the handler and the search for keys take their steps from it.
func readWordAt(args [][]byte, i int) (word readWord, next int) {
	more := len(args) - i - 1
	switch a := args[i]; {
	case more > 0 && ascii.EqualFold(a, "BLOCK"):
		return readBlock, i + 2
	case more > 0 && ascii.EqualFold(a, "COUNT"):
		return readCount, i + 2
	case more > 0 && ascii.EqualFold(a, "STREAMS"):
		return readStreams, i + 1
	case more > 1 && ascii.EqualFold(a, "GROUP"):
		return readGroup, i + 3
	case ascii.EqualFold(a, "NOACK"):
		return readNoAck, i + 1
	}
	return readNoWord, i + 1
}

// behindStreams finds the first key, or returns 0 if there is none, or a word before it that the handler refuses.
func behindStreams(args [][]byte) int {
	for i := 1; i < len(args); {
		word, next := readWordAt(args, i)
		switch word {
		case readStreams:
			return next
		case readNoWord:
			return 0
		}
		i = next
	}
	return 0
}

// ReadBlocks reports whether XREAD or XREADGROUP waits for entries if there are none. ok is false if the words before the keys are not all
// known here, so that nobody can tell which the keys are.
func ReadBlocks(args [][]byte) (blocks, ok bool) {
	for i := 1; i < len(args); {
		word, next := readWordAt(args, i)
		switch word {
		case readBlock:
			blocks = true
		case readStreams:
			return blocks, true
		case readNoWord:
			return blocks, false
		}
		i = next
	}
	return blocks, false
}

// streamRead is what XREAD and XREADGROUP are told.
type streamRead struct {
	grouped  bool
	group    int // argument index of the group's name, which the consumer's follows; 0: none
	noAck    bool
	count    int64 // 0: all
	blocks   bool
	until    int64 // Unix ms, 0 for no end
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
func streamReadArgs(c *command.Ctx, grouped bool) (o streamRead, ok bool) {
	o.grouped = grouped
	for i := 1; i < len(c.Args) && o.firstKey == 0; {
		word, next := readWordAt(c.Args, i)
		switch word {
		case readBlock:
			if c.Script != nil {
				c.Errf("ERR %s command is not allowed with BLOCK option from scripts", c.Args[0])
				return o, false
			}
			o.blocks = true
			if o.until, ok = c.Timeout(i+1, command.TimeoutMs); !ok {
				return o, false
			}
		case readCount:
			if o.count, ok = c.Integer(i + 1); !ok {
				return o, false
			}
			o.count = max(o.count, 0)
		case readStreams:
			behind := len(c.Args) - next
			o.firstKey, o.keys = next, behind/2
			if behind%2 != 0 {
				c.Err(errReadUnbalanced)
				return o, false
			}
		case readGroup:
			if !grouped {
				c.Err(errReadGroupOption)
				return o, false
			}
			o.group = i + 1
		case readNoAck:
			if !grouped {
				c.Err(errReadNoAck)
				return o, false
			}
			o.noAck = true
		default:
			c.Err(command.ErrSyntax)
			return o, false
		}
		i = next
	}
	switch {
	case o.firstKey == 0:
		c.Err(command.ErrSyntax)
	case grouped && o.group == 0:
		c.Err(errReadNeedsGroup)
	default:
		return o, streamPositions(c, &o)
	}
	return o, false
}

// streamPositions parses the IDs behind the keys, or sends the error and returns false.
func streamPositions(c *command.Ctx, o *streamRead) bool {
	for n := range o.keys {
		i := o.firstKey + n
		s, _, ok := readStream(c, i)
		if !ok {
			return false
		}
		if o.grouped && s.Group(c.Args[o.group]) == nil {
			c.Errf(errReadNoGroup, command.CutAtNUL(c.Args[i]), command.CutAtNUL(c.Args[o.group]))
			return false
		}
		var at streamPosition
		switch text := string(command.CutAtNUL(c.Args[i+o.keys])); {
		case text == "$" && o.grouped:
			c.Err(errReadLatest)
			return false
		case text == "$":
			at.id = s.Info().Last
		case text == ">" && !o.grouped:
			c.Err(errReadNew)
			return false
		case text == ">":
			at.fresh = true
		default:
			if at.id, ok = streamIDAt(c, i+o.keys); !ok {
				return false
			}
			at.fresh = o.grouped && at.id == store.MaxStreamID
		}
		o.after = append(o.after, at)
	}
	return true
}

// xread returns the handler of XREAD, or of XREADGROUP.
func xread(grouped bool) command.Handler {
	return func(c *command.Ctx) {
		o, ok := streamReadArgs(c, grouped)
		if !ok {
			return
		}
		before := c.Reply.Len()
		mark, n := c.Reply.Start(), 0
		for i := range o.keys {
			if readOneStream(c, &o, i) {
				n++
			}
		}
		if n > 0 {
			endStreams(c, mark, n)
			return
		}
		c.Reply.Truncate(before)
		if !o.blocks || !c.MayBlock() {
			c.Reply.NullArray()
			return
		}
		blockOnStreams(c, o)
	}
}

// blockOnStreams has the client wait until one of the streams has entries for it, or its group is gone.
func blockOnStreams(c *command.Ctx, o streamRead) {
	if o.count == 0 {
		o.count = blockedStreamCount
	}
	on := command.BlockOn{Kind: store.KindStream, Keys: c.Args[o.firstKey : o.firstKey+o.keys], Until: o.until}
	if o.grouped {
		on.Gone, on.Quiet = errReadKeyGone, true
	}
	on.Serve = func(c *command.Ctx, k store.Key) bool { return serveStream(c, o, k) }
	c.Block(on)
}

// serveStream sends a client that has waited what has come, from one stream, and reports false if that is nothing for it.
func serveStream(c *command.Ctx, o streamRead, k store.Key) bool {
	i := slices.IndexFunc(c.Args[o.firstKey:o.firstKey+o.keys], func(name []byte) bool { return string(name) == string(k.Name) })
	s, _, err := c.DB.Stream(k, c.Now)
	if err != nil {
		return false
	}
	after := o.after[i].id
	if o.grouped {
		g := s.Group(c.Args[o.group])
		if g == nil {
			c.Err(errReadGroupGone)
			return true
		}
		after = g.Last()
	}
	if s.Info().Last.Compare(after) <= 0 {
		return false
	}
	if c.Reply.Proto() == resp.RESP3 {
		c.Reply.Map(1)
	} else {
		c.Reply.Array(1)
	}
	sendStream(c, &s, &o, i, after)
	return true
}

// endStreams ends the reply that begins at mark and has the entries of n streams.
func endStreams(c *command.Ctx, mark resp.Mark, n int) {
	if c.Reply.Proto() == resp.RESP3 {
		c.Reply.EndMap(mark, n)
	} else {
		c.Reply.EndArray(mark, n)
	}
}

// readOneStream sends the name of a stream and its entries, and reports false if it has none to send.
func readOneStream(c *command.Ctx, o *streamRead, i int) bool {
	arg := o.firstKey + i
	s, found, ok := readStream(c, arg)
	if !ok || !found {
		return false
	}
	after := o.after[i]
	if o.grouped && after.fresh {
		after.id = s.Group(c.Args[o.group]).Last()
	}
	history := o.grouped && !after.fresh
	if !history && (s.Len() == 0 || s.Newest().Compare(after.id) <= 0) {
		return false
	}
	sendStream(c, &s, o, i, after.id)
	return true
}

// sendStream sends the name of a stream and its entries behind an ID.
func sendStream(c *command.Ctx, s *store.Stream, o *streamRead, i int, after store.StreamID) {
	from, _ := after.Next()
	name := c.Args[o.firstKey+i]
	if c.Reply.Proto() != resp.RESP3 {
		c.Reply.Array(2)
	}
	c.Reply.Bulk(name)
	if !o.grouped {
		sendEntries(c, s, from, store.MaxStreamID, false, o.count)
		return
	}
	g := s.Group(c.Args[o.group])
	consumer := seeConsumer(c, s, g, name, c.Args[o.group+1])
	if o.after[i].fresh {
		sendFresh(c, s, g, consumer, name, from, o)
	} else {
		sendHistory(c, s, g, consumer, name, from, o.count)
	}
}

// sendFresh sends the entries that the group has not handed out yet, which are then pending for the consumer.
func sendFresh(c *command.Ctx, s *store.Stream, g *store.StreamGroup, consumer *store.StreamConsumer, key []byte, from store.StreamID, o *streamRead) {
	mark, n := c.Reply.Start(), 0
	s.Each(from, store.MaxStreamID, false, func(e *store.StreamEntry) bool {
		s.Advance(g, e.ID)
		sendEntry(c, e)
		if !o.noAck {
			effectPending(c, key, g, s.Assign(g, consumer, e.ID, clockMs(c), 1))
		}
		n++
		return int64(n) != o.count
	})
	effectGroupID(c, key, g)
	c.Reply.EndArray(mark, n)
}

// sendHistory sends what a consumer has pending again. An entry that its stream has no more is sent as an ID with nothing.
func sendHistory(c *command.Ctx, s *store.Stream, g *store.StreamGroup, consumer *store.StreamConsumer, key []byte, from store.StreamID, count int64) {
	var ids []store.StreamID
	consumer.EachPending(from, func(p *store.Pending) bool {
		ids = append(ids, p.ID)
		return int64(len(ids)) != count
	})
	c.Reply.Array(len(ids))
	for _, id := range ids {
		if !sendOneEntry(c, s, id) {
			c.Reply.Array(2)
			sendStreamID(c, id)
			c.Reply.NullArray()
			continue
		}
		p := g.FindPending(id)
		effectPending(c, key, g, s.Assign(g, consumer, id, clockMs(c), p.Count+1))
	}
}
