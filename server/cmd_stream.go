package server

import (
	"math"
	"strconv"

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
	streamTrimArg = block("trim", oneOf("strategy", tok("MAXLEN"), tok("MINID")),
		oneOf("operator", Arg{Name: "equal", Type: "pure-token", Token: "="}, Arg{Name: "approximately", Type: "pure-token", Token: "~"}).opt(),
		str("threshold"), integer("count").after("LIMIT").opt())
	streamCountArg = integer("count").after("COUNT").opt()
	entriesReadArg = integer("entries_read").after("ENTRIESREAD").opt()
)

// streamCommands: streams, with the consumer groups of cmd_stream_group.go.
var streamCommands = []*Command{
	xackCommand,
	{
		Name: "xadd", Group: GroupStream, Since: "5.0.0", Complexity: "O(1), and O(n) for n entries trimmed",
		Summary: "Append an entry to a stream and return its ID, and trim the stream if asked to.",
		Arity:   -5, Flags: Write | DenyOOM | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{
			key("key"), tok("NOMKSTREAM").opt(), streamTrimArg.opt(),
			oneOf("id_or_auto", Arg{Name: "auto_id", Type: "pure-token", Token: "*"}, str("id")),
			block("field_value", str("field"), str("value")).multi(),
		},
		Reply: ReplyBulk | ReplyNull, Handler: xadd,
	},
	xautoClaimCommand,
	xclaimCommand,
	{
		Name: "xdel", Group: GroupStream, Since: "5.0.0", Complexity: "O(1) per ID",
		Summary: "Remove entries from a stream and return how many there were; a stream without entries stays.",
		Arity:   -3, Flags: Write | Fast, Keys: keys("RW DELETE", 1, 1, 1),
		Args: []Arg{key("key"), str("id").multi()}, Reply: ReplyInteger, Handler: xdel,
	},
	xgroupCommand,
	xinfoCommand,
	{
		Name: "xlen", Group: GroupStream, Since: "5.0.0", Complexity: "O(1)",
		Summary: "Count the entries of a stream.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: xlen,
	},
	xpendingCommand,
	{
		Name: "xrange", Group: GroupStream, Since: "5.0.0", Complexity: "O(log n + m) for m entries returned of n",
		Summary: "Return the entries in a range of IDs.",
		Arity:   -4, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), str("start"), str("end"), streamCountArg}, Reply: ReplyArray, Handler: xrange(false),
	},
	xreadCommand,
	xreadGroupCommand,
	{
		Name: "xrevrange", Group: GroupStream, Since: "5.0.0", Complexity: "O(log n + m) for m entries returned of n",
		Summary: "Return the entries in a range of IDs from its end to its start.",
		Arity:   -4, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), str("end"), str("start"), streamCountArg}, Reply: ReplyArray, Handler: xrange(true),
	},
	{
		Name: "xsetid", Group: GroupStream, Since: "5.0.0", Complexity: "O(1)",
		Summary: "Set the last ID that a stream has used, and what it says of its past.",
		Arity:   -3, Flags: Write | DenyOOM | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{
			key("key"), str("last_id"), integer("entries_added").after("ENTRIESADDED").opt(), str("max_deleted_entry_id").after("MAXDELETEDID").opt(),
		},
		Reply: ReplySimple, Handler: xsetID,
	},
	{
		Name: "xtrim", Group: GroupStream, Since: "5.0.0", Complexity: "O(n) for n entries removed, with a small constant",
		Summary: "Remove the oldest entries of a stream, those beyond a length or before an ID, and return how many.",
		Arity:   -4, Flags: Write, Keys: keys("RW DELETE", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{key("key"), streamTrimArg}, Reply: ReplyInteger, Handler: xtrim,
	},
}

// readStream opens the stream at args[i] for reading, and counts the hit or the miss. It sends the error for another type and
// returns ok false.
func (c *Ctx) readStream(i int) (s store.Stream, found, ok bool) {
	s, found, err := c.db.Stream(c.key(i), c.now)
	c.countRead(i, found || err != nil)
	if err != nil {
		c.fail(err)
		return s, false, false
	}
	return s, found, true
}

// changeStream opens the stream at args[i] for a change. It sends the error for another type and returns ok false.
func (c *Ctx) changeStream(i int) (s store.Stream, found, ok bool) {
	s, found, err := c.db.Stream(c.key(i), c.now)
	if err != nil {
		c.fail(err)
		return s, false, false
	}
	return s, found, true
}

func xadd(c *Ctx) {
	o, ok := c.streamAddArgs(true)
	if !ok {
		return
	}
	if n := len(c.args) - o.first; n < 2 || n%2 != 0 {
		c.errArity()
		return
	}
	if o.idGiven && o.seqGiven && o.id == (store.StreamID{}) {
		c.err(errStreamZeroID)
		return
	}
	s, found, ok := c.changeStream(1)
	if !ok {
		return
	}
	if !found && o.noCreate {
		c.reply.Null()
		return
	}
	fields := c.args[o.first:]
	size := 0
	for _, f := range fields {
		size += len(f)
	}
	id, ok := c.nextStreamID(s.Info().Last, &o)
	switch {
	case s.Info().Last == store.MaxStreamID:
		c.err(errStreamExhausted)
		return
	case !ok && !(o.idGiven && !o.seqGiven && o.id.MS == s.Info().Last.MS):
		c.err(errStreamSmallID)
		return
	case !ok, size > maxStreamEntry: // the former is what Redis says when a millisecond has no number left
		c.err(errStreamTooLarge)
		return
	}
	s.Add(id, fields)
	c.notify(config.EventStream, "xadd", c.args[1])
	if o.trims && s.Trim(o.trim) > 0 {
		c.notify(config.EventStream, "xtrim", c.args[1])
	}
	c.effectXAdd(&s, &o, id, fields)
	c.sendStreamID(id)
}

// nextStreamID returns the ID for a new entry, or false when the one asked for is not above the last one.
func (c *Ctx) nextStreamID(last store.StreamID, o *streamAdd) (id store.StreamID, ok bool) {
	switch now := uint64(c.now); {
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
func (c *Ctx) effectXAdd(s *store.Stream, o *streamAdd, id store.StreamID, fields [][]byte) {
	if !c.logs() || (o.idGiven && o.seqGiven && !o.trim.Approx) {
		return
	}
	call := append(make([]any, 0, len(fields)+6), "XADD", c.args[1])
	if o.trims {
		call = append(call, streamTrimWords(s, o.trim)...)
	}
	call = append(call, appendStreamID(nil, id))
	for _, f := range fields {
		call = append(call, f)
	}
	c.effect(call...)
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

func (c *Ctx) sendStreamID(id store.StreamID) {
	c.scratch = appendStreamID(c.scratch[:0], id)
	c.reply.Bulk(c.scratch)
}

// sendEntry sends an entry: its ID, and its fields and values by turns.
func (c *Ctx) sendEntry(e *store.StreamEntry) {
	c.reply.Array(2)
	c.sendStreamID(e.ID)
	c.reply.Array(2 * e.Len())
	e.Each(func(field, value []byte) {
		c.reply.Bulk(field)
		c.reply.Bulk(value)
	})
}

// sendOneEntry sends the entry of an ID, and reports false when it is not there.
func (c *Ctx) sendOneEntry(s *store.Stream, id store.StreamID) (sent bool) {
	s.Each(id, id, false, func(e *store.StreamEntry) bool {
		c.sendEntry(e)
		sent = true
		return false
	})
	return sent
}

// sendEntries sends the entries in a range of IDs, at most count of them or with 0 all.
func (c *Ctx) sendEntries(s *store.Stream, from, to store.StreamID, reverse bool, count int64) {
	mark, n := c.reply.Start(), 0
	s.Each(from, to, reverse, func(e *store.StreamEntry) bool {
		c.sendEntry(e)
		n++
		return int64(n) != count
	})
	c.reply.EndArray(mark, n)
}

func xlen(c *Ctx) {
	if s, _, ok := c.readStream(1); ok {
		c.reply.Int(int64(s.Len()))
	}
}

// xrange returns the handler of XRANGE, or of XREVRANGE, which is given the end first.
func xrange(reverse bool) Handler {
	return func(c *Ctx) {
		low, high := 2, 3
		if reverse {
			low, high = 3, 2
		}
		from, ok := c.streamStart(low)
		if !ok {
			return
		}
		to, ok := c.streamEnd(high)
		if !ok {
			return
		}
		count := int64(-1)
		for i := 4; i < len(c.args); i += 2 {
			if i+1 == len(c.args) || !c.is(i, "COUNT") {
				c.err(errSyntax)
				return
			}
			if count, ok = c.integer(i + 1); !ok {
				return
			}
			count = max(count, 0)
		}
		s, found, ok := c.readStream(1)
		switch {
		case !ok:
		case !found:
			c.reply.EmptyArray()
		case count == 0:
			c.reply.NullArray()
		default:
			c.sendEntries(&s, from, to, reverse, max(count, 0))
		}
	}
}

func xdel(c *Ctx) {
	s, found, ok := c.changeStream(1)
	switch {
	case !ok:
		return
	case !found:
		c.reply.Zero()
		return
	}
	ids, ok := c.streamIDs(2)
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
		c.notify(config.EventStream, "xdel", c.args[1])
	}
	c.reply.Int(removed)
}

func xtrim(c *Ctx) {
	o, ok := c.streamAddArgs(false)
	if !ok {
		return
	}
	s, _, ok := c.changeStream(1)
	if !ok {
		return
	}
	removed := s.Trim(o.trim)
	if removed > 0 {
		c.notify(config.EventStream, "xtrim", c.args[1])
		if o.trim.Approx && c.logs() {
			c.effect(append([]any{"XTRIM", c.args[1]}, streamTrimWords(&s, o.trim)...)...)
		}
	}
	c.reply.Int(removed)
}

func xsetID(c *Ctx) {
	last, ok := c.streamIDAt(2)
	if !ok {
		return
	}
	var maxDeleted store.StreamID
	added := int64(-1)
	for i := 3; i < len(c.args); i += 2 {
		switch {
		case i+1 < len(c.args) && c.is(i, "ENTRIESADDED"):
			if added, ok = c.integer(i + 1); !ok {
				return
			}
			if added < 0 {
				c.err(errEntriesAddedSign)
				return
			}
		case i+1 < len(c.args) && c.is(i, "MAXDELETEDID"):
			if maxDeleted, ok = c.streamIDAt(i + 1); !ok {
				return
			}
			if last.Compare(maxDeleted) < 0 {
				c.err(errSetIDMaxDeleted)
				return
			}
		default:
			c.err(errSyntax)
			return
		}
	}
	s, found, ok := c.changeStream(1)
	if !ok {
		return
	}
	info := s.Info()
	switch {
	case !found:
		c.err(errNoSuchKey)
		return
	case s.Len() > 0 && last.Compare(s.Newest()) < 0:
		c.err(errSetIDTop)
		return
	case s.Len() > 0 && added != -1 && int64(s.Len()) > added:
		c.err(errSetIDAdded)
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
	c.notify(config.EventStream, "xsetid", c.args[1])
	c.ok()
}
