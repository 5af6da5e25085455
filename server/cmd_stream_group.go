package server

import (
	"math"

	"headgate/internal/number"
	"headgate/server/config"
	"headgate/store"
)

// Errors of consumer groups.
const (
	errGroupNeedsKey = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option " +
		"to create an empty stream automatically."
	errGroupTaken    = "BUSYGROUP Consumer Group name already exists"
	errEntriesRead   = "ERR value for ENTRIESREAD must be positive or -1"
	errClaimMinIdle  = "ERR Invalid min-idle-time argument for XCLAIM"
	errAutoMinIdle   = "ERR Invalid min-idle-time argument for XAUTOCLAIM"
	errClaimIdle     = "ERR Invalid IDLE option argument for XCLAIM"
	errClaimTime     = "ERR Invalid TIME option argument for XCLAIM"
	errClaimRetry    = "ERR Invalid RETRYCOUNT option argument for XCLAIM"
	errAutoCount     = "ERR COUNT must be > 0"
	errNoGroupOrKey  = "NOGROUP No such key '%s' or consumer group '%s'"
	errNoGroupForKey = "NOGROUP No such consumer group '%s' for key name '%s'"
)

// What XAUTOCLAIM does in one call.
const (
	autoClaimCount    = 100                // entries claimed when it is not told
	autoClaimMaxCount = math.MaxInt64 / 16 // the largest count
	autoClaimAttempts = 10                 // entries looked at for each that may be claimed
	claimForEffect    = "0"                // least idle time of an XCLAIM in the log
)

var (
	xackCommand = &Command{
		Name: "xack", Group: GroupStream, Since: "5.0.0", Complexity: "O(1) per ID",
		Summary: "Acknowledge entries that a consumer group has handed out, and return how many were pending.",
		Arity:   -4, Flags: Write | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), str("group"), str("id").multi()}, Reply: ReplyInteger, Handler: xack,
	}
	xautoClaimCommand = &Command{
		Name: "xautoclaim", Group: GroupStream, Since: "6.2.0", Complexity: "O(1) if count is small",
		Summary: "Give pending entries that were idle for long to a consumer, and return them, a part with each call.",
		Arity:   -6, Flags: Write | Fast, Keys: keys("RW DELETE", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{
			key("key"), str("group"), str("consumer"), str("min_idle_time"), str("start"), streamCountArg, tok("JUSTID").opt(),
		},
		Reply: ReplyArray, Handler: xautoClaim,
	}
	xclaimCommand = &Command{
		Name: "xclaim", Group: GroupStream, Since: "5.0.0", Complexity: "O(log n) per ID for n pending entries",
		Summary: "Give pending entries that were idle for long to a consumer, and return them.",
		Arity:   -6, Flags: Write | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{
			key("key"), str("group"), str("consumer"), str("min_idle_time"), str("id").multi(), integer("ms").after("IDLE").opt(),
			unixTime("unix_time_milliseconds").after("TIME").opt(), integer("count").after("RETRYCOUNT").opt(), tok("FORCE").opt(),
			tok("JUSTID").opt(), str("last_id").after("LASTID").opt(),
		},
		Reply: ReplyArray, Handler: xclaim,
	}
	xpendingCommand = &Command{
		Name: "xpending", Group: GroupStream, Since: "5.0.0", Complexity: "O(n) in the number of pending entries or consumers shown",
		Summary: "Tell what a consumer group has handed out that is not acknowledged: a summary, or the entries in a range of IDs.",
		Arity:   -3, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{
			key("key"), str("group"),
			block("filters", integer("min_idle_time").after("IDLE").opt(), str("start"), str("end"), integer("count"), str("consumer").opt()).opt(),
		},
		Reply: ReplyArray, Handler: xpending,
	}
)

// xgroupCommand is the XGROUP family.
var xgroupCommand = &Command{
	Name: "xgroup", Group: GroupStream, Since: "5.0.0", Complexity: "depends on the sub-command",
	Summary: "Create, change and remove a stream's consumer groups and their consumers.",
	Arity:   -2,
	Sub: []*Command{
		{
			Name: "create", Since: "5.0.0", Complexity: "O(1)",
			Summary: "Create a consumer group that reads on from an ID, or from what comes next, and with MKSTREAM the stream too.",
			Arity:   -5, Flags: Write | DenyOOM, Keys: keys("RW INSERT", 2, 2, 1),
			Args:  []Arg{key("key"), str("groupname"), groupIDArg, tok("MKSTREAM").opt(), entriesReadArg},
			Reply: ReplySimple, Handler: xgroupCreate,
		},
		{
			Name: "createconsumer", Since: "6.2.0", Complexity: "O(1)",
			Summary: "Add a consumer to a group.",
			Arity:   5, Flags: Write | DenyOOM, Keys: keys("RW INSERT", 2, 2, 1),
			Args: []Arg{key("key"), str("groupname"), str("consumername")}, Reply: ReplyInteger, Handler: xgroupCreateConsumer,
		},
		{
			Name: "delconsumer", Since: "5.0.0", Complexity: "O(n) in the number of its pending entries",
			Summary: "Remove a consumer from a group with what it has pending, and return how much that was.",
			Arity:   5, Flags: Write, Keys: keys("RW DELETE", 2, 2, 1),
			Args: []Arg{key("key"), str("groupname"), str("consumername")}, Reply: ReplyInteger, Handler: xgroupDelConsumer,
		},
		{
			Name: "destroy", Since: "5.0.0", Complexity: "O(n) in the number of its pending entries",
			Summary: "Remove a consumer group.",
			Arity:   4, Flags: Write, Keys: keys("RW DELETE", 2, 2, 1),
			Args: []Arg{key("key"), str("groupname")}, Reply: ReplyInteger, Handler: xgroupDestroy,
		},
		helpCommand("5.0.0"),
		{
			Name: "setid", Since: "5.0.0", Complexity: "O(1)",
			Summary: "Have a consumer group read on from another ID.",
			Arity:   -5, Flags: Write, Keys: keys("RW UPDATE", 2, 2, 1),
			Args:  []Arg{key("key"), str("groupname"), groupIDArg, entriesReadArg},
			Reply: ReplySimple, Handler: xgroupSetID,
		},
	},
}

// groupIDArg declares where a group begins to read.
var groupIDArg = oneOf("id_or_new", str("id"), Arg{Name: "new_id", Type: "pure-token", Token: "$"})

// errNoGroup sends the error for a missing group, with its name at args[group] and the key's at args[key].
func (c *Ctx) errNoGroup(group, key int) {
	c.errf(errNoGroupForKey, cutAtNUL(c.args[group]), cutAtNUL(c.args[key]))
}

// groupOptions parses XGROUP's words from args[5] on, or sends the error and returns false.
func (c *Ctx) groupOptions(creates bool) (create bool, reads int64, ok bool) {
	reads = store.UnknownReads
	for i := 5; i < len(c.args); i++ {
		switch {
		case creates && c.is(i, "MKSTREAM"):
			create = true
		case i+1 < len(c.args) && c.is(i, "ENTRIESREAD"):
			i++
			if reads, ok = c.integer(i); !ok {
				return false, 0, false
			}
			if reads < 0 && reads != store.UnknownReads {
				c.err(errEntriesRead)
				return false, 0, false
			}
		default:
			c.errSubcommandSyntax()
			return false, 0, false
		}
	}
	return create, reads, true
}

// groupStream opens the stream at args[2] for XGROUP, and with needed the group at args[3]. It sends the error when one is missing
// and returns false.
func (c *Ctx) groupStream(needed bool) (s store.Stream, g *store.StreamGroup, ok bool) {
	s, found, ok := c.changeStream(2)
	switch {
	case !ok:
		return s, nil, false
	case !found:
		c.err(errGroupNeedsKey)
		return s, nil, false
	}
	if g = s.Group(c.args[3]); g == nil && needed {
		c.errNoGroup(3, 2)
		return s, nil, false
	}
	return s, g, true
}

func xgroupCreate(c *Ctx) {
	create, reads, ok := c.groupOptions(true)
	if !ok {
		return
	}
	s, found, ok := c.changeStream(2)
	switch {
	case !ok:
		return
	case !found && !create:
		c.err(errGroupNeedsKey)
		return
	case len(c.args) > 8:
		c.errSubcommandSyntax()
		return
	}
	last := s.Info().Last
	if string(cutAtNUL(c.args[4])) != "$" {
		if last, ok = c.streamIDAt(4); !ok {
			return
		}
	}
	s.Create()
	if !s.CreateGroup(c.args[3], last, reads) {
		c.err(errGroupTaken)
		return
	}
	c.effect("XGROUP", "CREATE", c.args[2], c.args[3], appendStreamID(nil, last), "MKSTREAM", "ENTRIESREAD", reads)
	c.notify(config.EventStream, "xgroup-create", c.args[2])
	c.ok()
}

func xgroupSetID(c *Ctx) {
	_, reads, ok := c.groupOptions(false)
	if !ok {
		return
	}
	s, g, ok := c.groupStream(true)
	if !ok {
		return
	}
	if n := len(c.args); n != 5 && n != 7 {
		c.errSubcommandSyntax()
		return
	}
	last := s.Info().Last
	if string(cutAtNUL(c.args[4])) != "$" {
		if last, _, ok = parseStreamID(c.args[4], streamIDForm{}); !ok {
			c.err(errStreamID)
			return
		}
	}
	s.SetGroupID(g, last, reads)
	c.effectGroupID(c.args[2], g)
	c.notify(config.EventStream, "xgroup-setid", c.args[2])
	c.ok()
}

func xgroupDestroy(c *Ctx) {
	s, _, ok := c.groupStream(false)
	if !ok {
		return
	}
	if !s.DestroyGroup(c.args[3]) {
		c.reply.Zero()
		return
	}
	c.notify(config.EventStream, "xgroup-destroy", c.args[2])
	c.reply.One()
}

func xgroupCreateConsumer(c *Ctx) {
	s, g, ok := c.groupStream(true)
	if !ok {
		return
	}
	if g.Consumer(c.args[4]) != nil {
		c.reply.Zero()
		return
	}
	c.seeConsumer(&s, g, c.args[2], c.args[4])
	c.reply.One()
}

func xgroupDelConsumer(c *Ctx) {
	s, g, ok := c.groupStream(true)
	if !ok {
		return
	}
	pending, found := s.DeleteConsumer(g, c.args[4])
	if found {
		c.notify(config.EventStream, "xgroup-delconsumer", c.args[2])
	}
	c.reply.Int(int64(pending))
}

func xack(c *Ctx) {
	s, _, ok := c.readStream(1)
	if !ok {
		return
	}
	g := s.Group(c.args[2])
	if g == nil {
		c.reply.Zero()
		return
	}
	ids, ok := c.streamIDs(3)
	if !ok {
		return
	}
	acknowledged := int64(0)
	for _, id := range ids {
		if s.Acknowledge(g, id) {
			acknowledged++
		}
	}
	c.reply.Int(acknowledged)
}

// pendingArgs is what XPENDING is told of a range.
type pendingArgs struct {
	from, to store.StreamID
	count    int64
	minIdle  int64
	consumer []byte // nil: any
}

// parsePendingArgs parses the range from args[3] on, or sends the error and returns false.
func (c *Ctx) parsePendingArgs() (p pendingArgs, ok bool) {
	if n := len(c.args); n < 6 || n > 9 {
		c.err(errSyntax)
		return p, false
	}
	i := 3
	if c.is(3, "IDLE") {
		if p.minIdle, ok = c.integer(4); !ok {
			return p, false
		}
		if len(c.args) < 8 {
			c.err(errSyntax)
			return p, false
		}
		i = 5
	}
	if p.count, ok = c.integer(i + 2); !ok {
		return p, false
	}
	if p.from, ok = c.streamStart(i); !ok {
		return p, false
	}
	if p.to, ok = c.streamEnd(i + 1); !ok {
		return p, false
	}
	if i+3 < len(c.args) {
		p.consumer = c.args[i+3]
	}
	return p, true
}

func xpending(c *Ctx) {
	summary := len(c.args) == 3
	var p pendingArgs
	if !summary {
		var ok bool
		if p, ok = c.parsePendingArgs(); !ok {
			return
		}
	}
	s, _, ok := c.readStream(1)
	if !ok {
		return
	}
	g := s.Group(c.args[2])
	switch {
	case g == nil:
		c.errf(errNoGroupOrKey, cutAtNUL(c.args[1]), cutAtNUL(c.args[2]))
	case summary:
		c.sendPendingSummary(g)
	default:
		c.sendPending(g, p)
	}
}

func (c *Ctx) sendPendingSummary(g *store.StreamGroup) {
	c.reply.Array(4)
	c.reply.Int(int64(g.Pending()))
	if g.Pending() == 0 {
		c.reply.Null()
		c.reply.Null()
		c.reply.NullArray()
		return
	}
	first, last := g.PendingBounds()
	c.sendStreamID(first)
	c.sendStreamID(last)
	mark, n := c.reply.Start(), 0
	for _, consumer := range g.Consumers() {
		if consumer.Pending() > 0 {
			c.reply.Array(2)
			c.reply.BulkString(consumer.Name())
			c.reply.BulkInt(int64(consumer.Pending()))
			n++
		}
	}
	c.reply.EndArray(mark, n)
}

func (c *Ctx) sendPending(g *store.StreamGroup, p pendingArgs) {
	each := g.EachPending
	if p.consumer != nil {
		consumer := g.Consumer(p.consumer)
		if consumer == nil {
			c.reply.EmptyArray()
			return
		}
		each = consumer.EachPending
	}
	mark, n := c.reply.Start(), 0
	if p.count > 0 {
		each(p.from, func(entry *store.Pending) bool {
			idle := c.now - entry.Delivered
			switch {
			case entry.ID.Compare(p.to) > 0:
				return false
			case p.minIdle != 0 && idle < p.minIdle:
				return true
			}
			c.reply.Array(4)
			c.sendStreamID(entry.ID)
			c.reply.BulkString(entry.Consumer().Name())
			c.reply.Int(max(idle, 0))
			c.reply.Int(entry.Count)
			n++
			return int64(n) < p.count
		})
	}
	c.reply.EndArray(mark, n)
}

// claim is what XCLAIM and XAUTOCLAIM do with an entry.
type claim struct {
	minIdle   int64
	delivered int64 // Unix milliseconds
	retries   int64 // how often it counts as delivered; negative: once more than before
	force     bool  // take entries that are not pending too
	justID    bool
	consumer  *store.StreamConsumer // nil until it gets an entry
}

// claimArgs parses XCLAIM's arguments from the least idle time on, or sends the error and returns false. The group's last ID moves
// up to last.
func (c *Ctx) claimArgs() (k claim, ids []store.StreamID, last store.StreamID, ok bool) {
	k = claim{delivered: -1, retries: -1}
	if k.minIdle, ok = c.integerOr(4, math.MinInt64, errClaimMinIdle); !ok {
		return k, nil, last, false
	}
	i := 5
	for ; i < len(c.args); i++ {
		id, _, ok := parseStreamID(c.args[i], streamIDForm{strict: true})
		if !ok {
			break
		}
		ids = append(ids, id)
	}
	for ; i < len(c.args); i++ {
		more := i+1 < len(c.args)
		switch ok = true; {
		case c.is(i, "FORCE"):
			k.force = true
		case c.is(i, "JUSTID"):
			k.justID = true
		case more && c.is(i, "IDLE"):
			i++
			k.delivered, ok = c.integerOr(i, math.MinInt64, errClaimIdle)
			k.delivered = c.now - k.delivered
		case more && c.is(i, "TIME"):
			i++
			k.delivered, ok = c.integerOr(i, math.MinInt64, errClaimTime)
		case more && c.is(i, "RETRYCOUNT"):
			i++
			k.retries, ok = c.integerOr(i, math.MinInt64, errClaimRetry)
		case more && c.is(i, "LASTID"):
			i++
			last, ok = c.streamIDAt(i)
		default:
			c.errf("ERR Unrecognized XCLAIM option '%s'", cutAtNUL(c.args[i]))
			ok = false
		}
		if !ok {
			return k, nil, last, false
		}
	}
	if k.delivered < 0 || k.delivered > c.now {
		k.delivered = c.now
	}
	return k, ids, last, true
}

// claimGroup opens the group at args[2] of the stream at args[1], or sends the error and returns false.
func (c *Ctx) claimGroup() (s store.Stream, g *store.StreamGroup, ok bool) {
	s, _, ok = c.readStream(1)
	if !ok {
		return s, nil, false
	}
	if g = s.Group(c.args[2]); g == nil {
		c.errf(errNoGroupOrKey, cutAtNUL(c.args[1]), cutAtNUL(c.args[2]))
		return s, nil, false
	}
	return s, g, true
}

func xclaim(c *Ctx) {
	s, g, ok := c.claimGroup()
	if !ok {
		return
	}
	k, ids, last, ok := c.claimArgs()
	if !ok {
		return
	}
	if last.Compare(g.Last()) > 0 {
		s.SetGroupID(g, last, g.Reads())
		c.effectGroupID(c.args[1], g)
	}
	mark, n := c.reply.Start(), 0
	for _, id := range ids {
		p := g.FindPending(id)
		switch {
		case !s.Has(id):
			if p != nil {
				c.dropPending(&s, g, id)
			}
			continue
		case p == nil && !k.force, p != nil && k.minIdle > 0 && c.now-p.Delivered < k.minIdle:
			continue
		}
		c.claimEntry(&s, g, id, p, &k)
		n++
	}
	c.reply.EndArray(mark, n)
}

// claimEntry gives an entry to the consumer at args[3], who is added if need be, and sends it. p is the pending one, nil if it is not
// pending.
func (c *Ctx) claimEntry(s *store.Stream, g *store.StreamGroup, id store.StreamID, p *store.Pending, k *claim) {
	if k.consumer == nil {
		k.consumer = c.seeConsumer(s, g, c.args[1], c.args[3])
	}
	count := int64(1)
	if p != nil {
		count = p.Count
	}
	switch {
	case k.retries >= 0:
		count = k.retries
	case !k.justID:
		count++
	}
	p = s.Assign(g, k.consumer, id, k.delivered, count)
	c.effectPending(c.args[1], g, p)
	if k.justID {
		c.sendStreamID(id)
	} else {
		c.sendOneEntry(s, id)
	}
}

// dropPending forgets a pending entry whose stream has it no more.
func (c *Ctx) dropPending(s *store.Stream, g *store.StreamGroup, id store.StreamID) {
	s.Acknowledge(g, id)
	c.effect("XACK", c.args[1], g.Name(), appendStreamID(nil, id))
}

func xautoClaim(c *Ctx) {
	k := claim{delivered: c.now, retries: -1}
	var ok bool
	if k.minIdle, ok = c.integerOr(4, math.MinInt64, errAutoMinIdle); !ok {
		return
	}
	from, ok := c.streamStart(5)
	if !ok {
		return
	}
	count := int64(autoClaimCount)
	for i := 6; i < len(c.args); i++ {
		switch {
		case i+1 < len(c.args) && c.is(i, "COUNT"):
			i++
			if count, ok = number.ParseInt(c.args[i]); !ok || count < 1 || count > autoClaimMaxCount {
				c.err(errAutoCount)
				return
			}
		case c.is(i, "JUSTID"):
			k.justID = true
		default:
			c.err(errSyntax)
			return
		}
	}
	s, g, ok := c.claimGroup()
	if !ok {
		return
	}
	candidates, next := c.autoClaimCandidates(&s, g, from, k.minIdle, count)
	c.reply.Array(3)
	c.sendStreamID(next)
	mark, n := c.reply.Start(), 0
	var gone []store.StreamID
	for _, p := range candidates {
		if !s.Has(p.ID) {
			gone = append(gone, p.ID)
			c.dropPending(&s, g, p.ID)
			continue
		}
		c.claimEntry(&s, g, p.ID, p, &k)
		n++
	}
	c.reply.EndArray(mark, n)
	c.reply.Array(len(gone))
	for _, id := range gone {
		c.sendStreamID(id)
	}
}

// autoClaimCandidates returns the pending entries from an ID on that are to be claimed, or forgotten because the stream has them no
// more, and the ID to go on from, zero at the end.
func (c *Ctx) autoClaimCandidates(s *store.Stream, g *store.StreamGroup, from store.StreamID, minIdle, count int64) (found []*store.Pending, next store.StreamID) {
	attempts := count * autoClaimAttempts
	g.EachPending(from, func(p *store.Pending) bool {
		if attempts == 0 || int64(len(found)) == count {
			next = p.ID
			return false
		}
		attempts--
		if minIdle <= 0 || c.now-p.Delivered >= minIdle || !s.Has(p.ID) {
			found = append(found, p)
		}
		return true
	})
	return found, next
}

// seeConsumer returns the group's consumer of a name, added if need be.
func (c *Ctx) seeConsumer(s *store.Stream, g *store.StreamGroup, key, name []byte) *store.StreamConsumer {
	consumer, created := s.See(g, name, c.now)
	if created {
		c.notify(config.EventStream, "xgroup-createconsumer", key)
		c.effect("XGROUP", "CREATECONSUMER", key, g.Name(), name)
	}
	return consumer
}

// effectPending declares who has a pending entry, and since when.
func (c *Ctx) effectPending(key []byte, g *store.StreamGroup, p *store.Pending) {
	if c.logs() {
		c.effect("XCLAIM", key, g.Name(), p.Consumer().Name(), claimForEffect, appendStreamID(nil, p.ID),
			"TIME", p.Delivered, "RETRYCOUNT", p.Count, "FORCE", "JUSTID")
	}
}

// effectGroupID declares how far a group has read.
func (c *Ctx) effectGroupID(key []byte, g *store.StreamGroup) {
	if c.logs() {
		c.effect("XGROUP", "SETID", key, g.Name(), appendStreamID(nil, g.Last()), "ENTRIESREAD", g.Reads())
	}
}
