package types

import (
	"math"
	"strconv"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

// Errors of streams that several commands have, or that are long.
const (
	errStreamZeroID     = "ERR The ID specified in XADD must be greater than 0-0"
	errStreamSmallID    = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
	errStreamExhausted  = "ERR The stream has exhausted the last possible ID, unable to add more items"
	errStreamTooLarge   = "ERR Elements are too large to be stored"
	errSetIDMaxDeleted  = "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
	errSetIDTop         = "ERR The ID specified in XSETID is smaller than the target stream top item"
	errSetIDAdded       = "ERR The entries_added specified in XSETID is smaller than the target stream length"
	errEntriesAddedSign = "ERR entries_added must be positive"
)

// maxStreamEntry is the most bytes that the fields and values of an entry may have together.
const maxStreamEntry = 1 << 30

// Arguments that several commands on streams share.
var (
	streamTrimArg = command.Block("trim", command.OneOf("strategy", command.Tok("MAXLEN"), command.Tok("MINID")),
		command.OneOf("operator", command.Arg{Name: "equal", Type: "pure-token", Token: "="}, command.Arg{Name: "approximately", Type: "pure-token", Token: "~"}).Opt(),
		command.Str("threshold"), command.Integer("count").After("LIMIT").Opt())
	streamCountArg = command.Integer("count").After("COUNT").Opt()
	entriesReadArg = command.Integer("entries_read").After("ENTRIESREAD").Opt()
)

// streamCommands: streams, with the consumer groups of stream_group.go.
var streamCommands = []*command.Command{
	xackCommand,
	{
		Name: "xadd", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1), and O(n) for n entries trimmed",
		Summary: "Append an entry to a stream and return its ID, and trim the stream if asked to.",
		Arity:   -5, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{
			command.Key("key"), command.Tok("NOMKSTREAM").Opt(), streamTrimArg.Opt(),
			command.OneOf("id_or_auto", command.Arg{Name: "auto_id", Type: "pure-token", Token: "*"}, command.Str("id")),
			command.Block("field_value", command.Str("field"), command.Str("value")).Multi(),
		},
		Reply: command.ReplyBulk | command.ReplyNull, Handler: xadd,
	},
	xautoClaimCommand,
	xclaimCommand,
	{
		Name: "xdel", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1) per ID",
		Summary: "Remove entries from a stream and return how many there were; a stream without entries stays.",
		Arity:   -3, Flags: command.Write | command.Fast, Keys: command.Keys("RW DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("id").Multi()}, Reply: command.ReplyInteger, Handler: xdel,
	},
	xgroupCommand,
	xinfoCommand,
	{
		Name: "xlen", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1)",
		Summary: "Count the entries of a stream.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: xlen,
	},
	xpendingCommand,
	{
		Name: "xrange", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(log n + m) for m entries returned of n",
		Summary: "Return the entries in a range of IDs.",
		Arity:   -4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("start"), command.Str("end"), streamCountArg}, Reply: command.ReplyArray, Handler: xrange(false),
	},
	xreadCommand,
	xreadGroupCommand,
	{
		Name: "xrevrange", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(log n + m) for m entries returned of n",
		Summary: "Return the entries in a range of IDs from its end to its start.",
		Arity:   -4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("end"), command.Str("start"), streamCountArg}, Reply: command.ReplyArray, Handler: xrange(true),
	},
	{
		Name: "xsetid", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1)",
		Summary: "Set the last ID that a stream has used, and its counters.",
		Arity:   -3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{
			command.Key("key"), command.Str("last_id"), command.Integer("entries_added").After("ENTRIESADDED").Opt(), command.Str("max_deleted_entry_id").After("MAXDELETEDID").Opt(),
		},
		Reply: command.ReplySimple, Handler: xsetID,
	},
	{
		Name: "xtrim", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(n) for n entries removed, with a small constant",
		Summary: "Remove the oldest entries of a stream, those beyond a length or before an ID, and return how many.",
		Arity:   -4, Flags: command.Write, Keys: command.Keys("RW DELETE", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{command.Key("key"), streamTrimArg}, Reply: command.ReplyInteger, Handler: xtrim,
	},
}

// readStream opens the stream at args[i] for reading, and counts the hit or the miss. It sends the error for another type and
// returns ok false.
func readStream(c *command.Ctx, i int) (s store.Stream, found, ok bool) {
	s, found, err := c.DB.Stream(c.Key(i), c.Now)
	c.CountRead(i, found || err != nil)
	if err != nil {
		c.Fail(err)
		return s, false, false
	}
	return s, found, true
}

// changeStream opens the stream at args[i] for a change. It sends the error for another type and returns ok false.
func changeStream(c *command.Ctx, i int) (s store.Stream, found, ok bool) {
	s, found, err := c.DB.Stream(c.Key(i), c.Now)
	if err != nil {
		c.Fail(err)
		return s, false, false
	}
	return s, found, true
}

func xadd(c *command.Ctx) {
	o, ok := streamAddArgs(c, true)
	if !ok {
		return
	}
	if n := len(c.Args) - o.first; n < 2 || n%2 != 0 {
		c.ErrArity()
		return
	}
	if o.idGiven && o.seqGiven && o.id == (store.StreamID{}) {
		c.Err(errStreamZeroID)
		return
	}
	s, found, ok := changeStream(c, 1)
	if !ok {
		return
	}
	if !found && o.noCreate {
		c.Reply.Null()
		return
	}
	fields := c.Args[o.first:]
	size := 0
	for _, f := range fields {
		size += len(f)
	}
	id, ok := nextStreamID(c, s.Info().Last, &o)
	switch {
	case s.Info().Last == store.MaxStreamID:
		c.Err(errStreamExhausted)
		return
	case !ok && !(o.idGiven && !o.seqGiven && o.id.MS == s.Info().Last.MS):
		c.Err(errStreamSmallID)
		return
	case !ok, size > maxStreamEntry: // the former is what Redis says when a millisecond has no number left
		c.Err(errStreamTooLarge)
		return
	}
	s.Add(id, fields)
	c.Notify(config.EventStream, "xadd", c.Args[1])
	if o.trims && s.Trim(o.trim) > 0 {
		c.Notify(config.EventStream, "xtrim", c.Args[1])
	}
	effectXAdd(c, &s, &o, id, fields)
	sendStreamID(c, id)
}

// nextStreamID returns the ID for a new entry, or false when the one asked for is not above the last one.
func nextStreamID(c *command.Ctx, last store.StreamID, o *streamAdd) (id store.StreamID, ok bool) {
	switch now := uint64(c.Now); {
	case !o.idGiven && now > last.MS:
		return store.StreamID{MS: now}, true
	case !o.idGiven:
		return last.Next()
	case !o.seqGiven && o.id.MS == last.MS:
		if last.Seq == math.MaxUint64 {
			return id, false
		}
		return last.Next()
	}
	return o.id, o.id.Compare(last) > 0
}

// effectXAdd declares an entry under the ID that it got, and what is left of the stream in exact terms.
func effectXAdd(c *command.Ctx, s *store.Stream, o *streamAdd, id store.StreamID, fields [][]byte) {
	if !c.Logs() || (o.idGiven && o.seqGiven && !o.trim.Approx) {
		return
	}
	call := append(make([]any, 0, len(fields)+6), "XADD", c.Args[1])
	if o.trims {
		call = append(call, streamTrimWords(s, o.trim)...)
	}
	call = append(call, appendStreamID(nil, id))
	for _, f := range fields {
		call = append(call, f)
	}
	c.Effect(call...)
}

// streamTrimWords are the options that trim a stream to what it is now.
func streamTrimWords(s *store.Stream, t store.StreamTrim) []any {
	if t.ByID && s.Len() > 0 {
		return []any{"MINID", "=", appendStreamID(nil, s.Info().First)}
	}
	return []any{"MAXLEN", "=", s.Len()}
}

func appendStreamID(dst []byte, id store.StreamID) []byte {
	dst = strconv.AppendUint(dst, id.MS, 10)
	return strconv.AppendUint(append(dst, '-'), id.Seq, 10)
}

func sendStreamID(c *command.Ctx, id store.StreamID) {
	c.Scratch = appendStreamID(c.Scratch[:0], id)
	c.Reply.Bulk(c.Scratch)
}

// sendEntry sends an entry: its ID, and its fields and values by turns.
func sendEntry(c *command.Ctx, e *store.StreamEntry) {
	c.Reply.Array(2)
	sendStreamID(c, e.ID)
	c.Reply.Array(2 * e.Len())
	e.Each(func(field, value []byte) {
		c.Reply.Bulk(field)
		c.Reply.Bulk(value)
	})
}

// sendOneEntry sends the entry of an ID, and reports false when it is not there.
func sendOneEntry(c *command.Ctx, s *store.Stream, id store.StreamID) (sent bool) {
	s.Each(id, id, false, func(e *store.StreamEntry) bool {
		sendEntry(c, e)
		sent = true
		return false
	})
	return sent
}

// sendEntries sends the entries in a range of IDs, at most count of them or with 0 all.
func sendEntries(c *command.Ctx, s *store.Stream, from, to store.StreamID, reverse bool, count int64) {
	mark, n := c.Reply.Start(), 0
	s.Each(from, to, reverse, func(e *store.StreamEntry) bool {
		sendEntry(c, e)
		n++
		return int64(n) != count
	})
	c.Reply.EndArray(mark, n)
}

func xlen(c *command.Ctx) {
	if s, _, ok := readStream(c, 1); ok {
		c.Reply.Int(int64(s.Len()))
	}
}

// xrange returns the handler of XRANGE, or of XREVRANGE, which is given the end first.
func xrange(reverse bool) command.Handler {
	return func(c *command.Ctx) {
		low, high := 2, 3
		if reverse {
			low, high = 3, 2
		}
		from, ok := streamStart(c, low)
		if !ok {
			return
		}
		to, ok := streamEnd(c, high)
		if !ok {
			return
		}
		count := int64(-1)
		for i := 4; i < len(c.Args); i += 2 {
			if i+1 == len(c.Args) || !c.Is(i, "COUNT") {
				c.Err(command.ErrSyntax)
				return
			}
			if count, ok = c.Integer(i + 1); !ok {
				return
			}
			count = max(count, 0)
		}
		s, found, ok := readStream(c, 1)
		switch {
		case !ok:
		case !found:
			c.Reply.EmptyArray()
		case count == 0:
			c.Reply.NullArray()
		default:
			sendEntries(c, &s, from, to, reverse, max(count, 0))
		}
	}
}

func xdel(c *command.Ctx) {
	s, found, ok := changeStream(c, 1)
	switch {
	case !ok:
		return
	case !found:
		c.Reply.Zero()
		return
	}
	ids, ok := streamIDs(c, 2)
	if !ok {
		return
	}
	removed := int64(0)
	for _, id := range ids {
		if s.Delete(id) {
			removed++
		}
	}
	if removed > 0 {
		c.Notify(config.EventStream, "xdel", c.Args[1])
	}
	c.Reply.Int(removed)
}

func xtrim(c *command.Ctx) {
	o, ok := streamAddArgs(c, false)
	if !ok {
		return
	}
	s, _, ok := changeStream(c, 1)
	if !ok {
		return
	}
	removed := s.Trim(o.trim)
	if removed > 0 {
		c.Notify(config.EventStream, "xtrim", c.Args[1])
		if o.trim.Approx && c.Logs() {
			c.Effect(append([]any{"XTRIM", c.Args[1]}, streamTrimWords(&s, o.trim)...)...)
		}
	}
	c.Reply.Int(removed)
}

func xsetID(c *command.Ctx) {
	last, ok := streamIDAt(c, 2)
	if !ok {
		return
	}
	var maxDeleted store.StreamID
	added := int64(-1)
	for i := 3; i < len(c.Args); i += 2 {
		switch {
		case i+1 < len(c.Args) && c.Is(i, "ENTRIESADDED"):
			if added, ok = c.Integer(i + 1); !ok {
				return
			}
			if added < 0 {
				c.Err(errEntriesAddedSign)
				return
			}
		case i+1 < len(c.Args) && c.Is(i, "MAXDELETEDID"):
			if maxDeleted, ok = streamIDAt(c, i+1); !ok {
				return
			}
			if last.Compare(maxDeleted) < 0 {
				c.Err(errSetIDMaxDeleted)
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	s, found, ok := changeStream(c, 1)
	if !ok {
		return
	}
	info := s.Info()
	switch {
	case !found:
		c.Err(command.ErrNoSuchKey)
		return
	case s.Len() > 0 && last.Compare(s.Newest()) < 0:
		c.Err(errSetIDTop)
		return
	case s.Len() > 0 && added != -1 && int64(s.Len()) > added:
		c.Err(errSetIDAdded)
		return
	}
	info.Last = last
	if added != -1 {
		info.Added = uint64(added)
	}
	if maxDeleted != (store.StreamID{}) {
		info.MaxDeleted = maxDeleted
	}
	s.SetInfo(info)
	c.Notify(config.EventStream, "xsetid", c.Args[1])
	c.OK()
}
