package types

import (
	"math"

	"headgate/internal/number"
	"headgate/server/command"
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
	xackCommand = &command.Command{
		Name: "xack", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1) per ID",
		Summary: "Acknowledge entries that a consumer group has handed out, and return how many were pending.",
		Arity:   -4, Flags: command.Write | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("group"), command.Str("id").Multi()}, Reply: command.ReplyInteger, Handler: xack,
	}
	xautoClaimCommand = &command.Command{
		Name: "xautoclaim", Group: command.GroupStream, Since: "6.2.0", Complexity: "O(1) if count is small",
		Summary: "Transfer pending entries that were idle for long to a consumer and return them, incrementally.",
		Arity:   -6, Flags: command.Write | command.Fast, Keys: command.Keys("RW DELETE", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{
			command.Key("key"), command.Str("group"), command.Str("consumer"), command.Str("min_idle_time"), command.Str("start"), streamCountArg, command.Tok("JUSTID").Opt(),
		},
		Reply: command.ReplyArray, Handler: xautoClaim,
	}
	xclaimCommand = &command.Command{
		Name: "xclaim", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(log n) per ID for n pending entries",
		Summary: "Transfer pending entries that were idle for long to a consumer, and return them.",
		Arity:   -6, Flags: command.Write | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{
			command.Key("key"), command.Str("group"), command.Str("consumer"), command.Str("min_idle_time"), command.Str("id").Multi(), command.Integer("ms").After("IDLE").Opt(),
			command.UnixTime("unix_time_milliseconds").After("TIME").Opt(), command.Integer("count").After("RETRYCOUNT").Opt(), command.Tok("FORCE").Opt(),
			command.Tok("JUSTID").Opt(), command.Str("last_id").After("LASTID").Opt(),
		},
		Reply: command.ReplyArray, Handler: xclaim,
	}
	xpendingCommand = &command.Command{
		Name: "xpending", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(n) in the number of pending entries or consumers shown",
		Summary: "Return the pending entries of a consumer group: a summary, or those in a range of IDs.",
		Arity:   -3, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{
			command.Key("key"), command.Str("group"),
			command.Block("filters", command.Integer("min_idle_time").After("IDLE").Opt(), command.Str("start"), command.Str("end"), command.Integer("count"), command.Str("consumer").Opt()).Opt(),
		},
		Reply: command.ReplyArray, Handler: xpending,
	}
)

// xgroupCommand is the XGROUP family.
var xgroupCommand = &command.Command{
	Name: "xgroup", Group: command.GroupStream, Since: "5.0.0", Complexity: "depends on the sub-command",
	Summary: "Create, change and remove a stream's consumer groups and their consumers.",
	Arity:   -2,
	Sub: []*command.Command{
		{
			Name: "create", Since: "5.0.0", Complexity: "O(1)",
			Summary: "Create a consumer group that reads from an ID on, or only new entries, and with MKSTREAM the stream too.",
			Arity:   -5, Flags: command.Write | command.DenyOOM, Keys: command.Keys("RW INSERT", 2, 2, 1),
			Args:  []command.Arg{command.Key("key"), command.Str("groupname"), groupIDArg, command.Tok("MKSTREAM").Opt(), entriesReadArg},
			Reply: command.ReplySimple, Handler: xgroupCreate,
		},
		{
			Name: "createconsumer", Since: "6.2.0", Complexity: "O(1)",
			Summary: "Add a consumer to a group.",
			Arity:   5, Flags: command.Write | command.DenyOOM, Keys: command.Keys("RW INSERT", 2, 2, 1),
			Args: []command.Arg{command.Key("key"), command.Str("groupname"), command.Str("consumername")}, Reply: command.ReplyInteger, Handler: xgroupCreateConsumer,
		},
		{
			Name: "delconsumer", Since: "5.0.0", Complexity: "O(n) in the number of its pending entries",
			Summary: "Remove a consumer from a group and return the number of its pending entries.",
			Arity:   5, Flags: command.Write, Keys: command.Keys("RW DELETE", 2, 2, 1),
			Args: []command.Arg{command.Key("key"), command.Str("groupname"), command.Str("consumername")}, Reply: command.ReplyInteger, Handler: xgroupDelConsumer,
		},
		{
			Name: "destroy", Since: "5.0.0", Complexity: "O(n) in the number of its pending entries",
			Summary: "Remove a consumer group.",
			Arity:   4, Flags: command.Write, Keys: command.Keys("RW DELETE", 2, 2, 1),
			Args: []command.Arg{command.Key("key"), command.Str("groupname")}, Reply: command.ReplyInteger, Handler: xgroupDestroy,
		},
		command.HelpCommand("5.0.0"),
		{
			Name: "setid", Since: "5.0.0", Complexity: "O(1)",
			Summary: "Set the ID from which a consumer group reads on.",
			Arity:   -5, Flags: command.Write, Keys: command.Keys("RW UPDATE", 2, 2, 1),
			Args:  []command.Arg{command.Key("key"), command.Str("groupname"), groupIDArg, entriesReadArg},
			Reply: command.ReplySimple, Handler: xgroupSetID,
		},
	},
}

// groupIDArg declares where a group begins to read.
var groupIDArg = command.OneOf("id_or_new", command.Str("id"), command.Arg{Name: "new_id", Type: "pure-token", Token: "$"})

// errNoGroup sends the error for a missing group, with its name at args[group] and the key's at args[key].
func errNoGroup(c *command.Ctx, group, key int) {
	c.Errf(errNoGroupForKey, command.CutAtNUL(c.Args[group]), command.CutAtNUL(c.Args[key]))
}

// groupOptions parses XGROUP's words from args[5] on, or sends the error and returns false.
func groupOptions(c *command.Ctx, creates bool) (create bool, reads int64, ok bool) {
	reads = store.UnknownReads
	for i := 5; i < len(c.Args); i++ {
		switch {
		case creates && c.Is(i, "MKSTREAM"):
			create = true
		case i+1 < len(c.Args) && c.Is(i, "ENTRIESREAD"):
			i++
			if reads, ok = c.Integer(i); !ok {
				return false, 0, false
			}
			if reads < 0 && reads != store.UnknownReads {
				c.Err(errEntriesRead)
				return false, 0, false
			}
		default:
			c.ErrSubcommandSyntax()
			return false, 0, false
		}
	}
	return create, reads, true
}

// groupStream opens the stream at args[2] for XGROUP, and with needed the group at args[3]. It sends the error when one is missing
// and returns false.
func groupStream(c *command.Ctx, needed bool) (s store.Stream, g *store.StreamGroup, ok bool) {
	s, found, ok := changeStream(c, 2)
	switch {
	case !ok:
		return s, nil, false
	case !found:
		c.Err(errGroupNeedsKey)
		return s, nil, false
	}
	if g = s.Group(c.Args[3]); g == nil && needed {
		errNoGroup(c, 3, 2)
		return s, nil, false
	}
	return s, g, true
}

func xgroupCreate(c *command.Ctx) {
	create, reads, ok := groupOptions(c, true)
	if !ok {
		return
	}
	s, found, ok := changeStream(c, 2)
	switch {
	case !ok:
		return
	case !found && !create:
		c.Err(errGroupNeedsKey)
		return
	case len(c.Args) > 8:
		c.ErrSubcommandSyntax()
		return
	}
	last := s.Info().Last
	if string(command.CutAtNUL(c.Args[4])) != "$" {
		if last, ok = streamIDAt(c, 4); !ok {
			return
		}
	}
	s.Create()
	if !s.CreateGroup(c.Args[3], last, reads) {
		c.Err(errGroupTaken)
		return
	}
	c.Effect("XGROUP", "CREATE", c.Args[2], c.Args[3], appendStreamID(nil, last), "MKSTREAM", "ENTRIESREAD", reads)
	c.Notify(config.EventStream, "xgroup-create", c.Args[2])
	c.OK()
}

func xgroupSetID(c *command.Ctx) {
	_, reads, ok := groupOptions(c, false)
	if !ok {
		return
	}
	s, g, ok := groupStream(c, true)
	if !ok {
		return
	}
	if n := len(c.Args); n != 5 && n != 7 {
		c.ErrSubcommandSyntax()
		return
	}
	last := s.Info().Last
	if string(command.CutAtNUL(c.Args[4])) != "$" {
		if last, _, ok = parseStreamID(c.Args[4], streamIDForm{}); !ok {
			c.Err(errStreamID)
			return
		}
	}
	s.SetGroupID(g, last, reads)
	effectGroupID(c, c.Args[2], g)
	c.Notify(config.EventStream, "xgroup-setid", c.Args[2])
	c.OK()
}

func xgroupDestroy(c *command.Ctx) {
	s, _, ok := groupStream(c, false)
	if !ok {
		return
	}
	if !s.DestroyGroup(c.Args[3]) {
		c.Reply.Zero()
		return
	}
	c.Notify(config.EventStream, "xgroup-destroy", c.Args[2])
	c.Reply.One()
}

func xgroupCreateConsumer(c *command.Ctx) {
	s, g, ok := groupStream(c, true)
	if !ok {
		return
	}
	if g.Consumer(c.Args[4]) != nil {
		c.Reply.Zero()
		return
	}
	seeConsumer(c, &s, g, c.Args[2], c.Args[4])
	c.Reply.One()
}

func xgroupDelConsumer(c *command.Ctx) {
	s, g, ok := groupStream(c, true)
	if !ok {
		return
	}
	pending, found := s.DeleteConsumer(g, c.Args[4])
	if found {
		c.Notify(config.EventStream, "xgroup-delconsumer", c.Args[2])
	}
	c.Reply.Int(int64(pending))
}

func xack(c *command.Ctx) {
	s, _, ok := readStream(c, 1)
	if !ok {
		return
	}
	g := s.Group(c.Args[2])
	if g == nil {
		c.Reply.Zero()
		return
	}
	ids, ok := streamIDs(c, 3)
	if !ok {
		return
	}
	acknowledged := int64(0)
	for _, id := range ids {
		if s.Acknowledge(g, id) {
			acknowledged++
		}
	}
	c.Reply.Int(acknowledged)
}

// pendingArgs is what XPENDING is told of a range.
type pendingArgs struct {
	from, to store.StreamID
	count    int64
	minIdle  int64
	consumer []byte // nil: any
}

// parsePendingArgs parses the range from args[3] on, or sends the error and returns false.
func parsePendingArgs(c *command.Ctx) (p pendingArgs, ok bool) {
	if n := len(c.Args); n < 6 || n > 9 {
		c.Err(command.ErrSyntax)
		return p, false
	}
	i := 3
	if c.Is(3, "IDLE") {
		if p.minIdle, ok = c.Integer(4); !ok {
			return p, false
		}
		if len(c.Args) < 8 {
			c.Err(command.ErrSyntax)
			return p, false
		}
		i = 5
	}
	if p.count, ok = c.Integer(i + 2); !ok {
		return p, false
	}
	if p.from, ok = streamStart(c, i); !ok {
		return p, false
	}
	if p.to, ok = streamEnd(c, i+1); !ok {
		return p, false
	}
	if i+3 < len(c.Args) {
		p.consumer = c.Args[i+3]
	}
	return p, true
}

func xpending(c *command.Ctx) {
	summary := len(c.Args) == 3
	var p pendingArgs
	if !summary {
		var ok bool
		if p, ok = parsePendingArgs(c); !ok {
			return
		}
	}
	s, _, ok := readStream(c, 1)
	if !ok {
		return
	}
	g := s.Group(c.Args[2])
	switch {
	case g == nil:
		c.Errf(errNoGroupOrKey, command.CutAtNUL(c.Args[1]), command.CutAtNUL(c.Args[2]))
	case summary:
		sendPendingSummary(c, g)
	default:
		sendPending(c, g, p)
	}
}

func sendPendingSummary(c *command.Ctx, g *store.StreamGroup) {
	c.Reply.Array(4)
	c.Reply.Int(int64(g.Pending()))
	if g.Pending() == 0 {
		c.Reply.Null()
		c.Reply.Null()
		c.Reply.NullArray()
		return
	}
	first, last := g.PendingBounds()
	sendStreamID(c, first)
	sendStreamID(c, last)
	mark, n := c.Reply.Start(), 0
	for _, consumer := range g.Consumers() {
		if consumer.Pending() > 0 {
			c.Reply.Array(2)
			c.Reply.BulkString(consumer.Name())
			c.Reply.BulkInt(int64(consumer.Pending()))
			n++
		}
	}
	c.Reply.EndArray(mark, n)
}

func sendPending(c *command.Ctx, g *store.StreamGroup, p pendingArgs) {
	each := g.EachPending
	if p.consumer != nil {
		consumer := g.Consumer(p.consumer)
		if consumer == nil {
			c.Reply.EmptyArray()
			return
		}
		each = consumer.EachPending
	}
	mark, n := c.Reply.Start(), 0
	if p.count > 0 {
		each(p.from, func(entry *store.Pending) bool {
			idle := c.Now - entry.Delivered
			switch {
			case entry.ID.Compare(p.to) > 0:
				return false
			case p.minIdle != 0 && idle < p.minIdle:
				return true
			}
			c.Reply.Array(4)
			sendStreamID(c, entry.ID)
			c.Reply.BulkString(entry.Consumer().Name())
			c.Reply.Int(max(idle, 0))
			c.Reply.Int(entry.Count)
			n++
			return int64(n) < p.count
		})
	}
	c.Reply.EndArray(mark, n)
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
func claimArgs(c *command.Ctx) (k claim, ids []store.StreamID, last store.StreamID, ok bool) {
	k = claim{delivered: -1, retries: -1}
	if k.minIdle, ok = integerOr(c, 4, math.MinInt64, errClaimMinIdle); !ok {
		return k, nil, last, false
	}
	i := 5
	for ; i < len(c.Args); i++ {
		id, _, ok := parseStreamID(c.Args[i], streamIDForm{strict: true})
		if !ok {
			break
		}
		ids = append(ids, id)
	}
	for ; i < len(c.Args); i++ {
		more := i+1 < len(c.Args)
		switch ok = true; {
		case c.Is(i, "FORCE"):
			k.force = true
		case c.Is(i, "JUSTID"):
			k.justID = true
		case more && c.Is(i, "IDLE"):
			i++
			k.delivered, ok = integerOr(c, i, math.MinInt64, errClaimIdle)
			k.delivered = clockMs(c) - k.delivered
		case more && c.Is(i, "TIME"):
			i++
			k.delivered, ok = integerOr(c, i, math.MinInt64, errClaimTime)
		case more && c.Is(i, "RETRYCOUNT"):
			i++
			k.retries, ok = integerOr(c, i, math.MinInt64, errClaimRetry)
		case more && c.Is(i, "LASTID"):
			i++
			last, ok = streamIDAt(c, i)
		default:
			c.Errf("ERR Unrecognized XCLAIM option '%s'", command.CutAtNUL(c.Args[i]))
			ok = false
		}
		if !ok {
			return k, nil, last, false
		}
	}
	if k.delivered < 0 || k.delivered > clockMs(c) {
		k.delivered = clockMs(c)
	}
	return k, ids, last, true
}

// claimGroup opens the group at args[2] of the stream at args[1], or sends the error and returns false.
func claimGroup(c *command.Ctx) (s store.Stream, g *store.StreamGroup, ok bool) {
	s, _, ok = readStream(c, 1)
	if !ok {
		return s, nil, false
	}
	if g = s.Group(c.Args[2]); g == nil {
		c.Errf(errNoGroupOrKey, command.CutAtNUL(c.Args[1]), command.CutAtNUL(c.Args[2]))
		return s, nil, false
	}
	return s, g, true
}

func xclaim(c *command.Ctx) {
	s, g, ok := claimGroup(c)
	if !ok {
		return
	}
	k, ids, last, ok := claimArgs(c)
	if !ok {
		return
	}
	if last.Compare(g.Last()) > 0 {
		s.SetGroupID(g, last, g.Reads())
		effectGroupID(c, c.Args[1], g)
	}
	mark, n := c.Reply.Start(), 0
	for _, id := range ids {
		p := g.FindPending(id)
		switch {
		case !s.Has(id):
			if p != nil {
				dropPending(c, &s, g, id)
			}
			continue
		case p == nil && !k.force, p != nil && k.minIdle > 0 && c.Now-p.Delivered < k.minIdle:
			continue
		}
		claimEntry(c, &s, g, id, p, &k)
		n++
	}
	c.Reply.EndArray(mark, n)
}

// claimEntry gives an entry to the consumer at args[3], who is added if need be, and sends it. p is the pending one, nil if it is not
// pending.
func claimEntry(c *command.Ctx, s *store.Stream, g *store.StreamGroup, id store.StreamID, p *store.Pending, k *claim) {
	if k.consumer == nil {
		k.consumer = seeConsumer(c, s, g, c.Args[1], c.Args[3])
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
	effectPending(c, c.Args[1], g, p)
	if k.justID {
		sendStreamID(c, id)
	} else {
		sendOneEntry(c, s, id)
	}
}

// dropPending forgets a pending entry whose stream has it no more.
func dropPending(c *command.Ctx, s *store.Stream, g *store.StreamGroup, id store.StreamID) {
	s.Acknowledge(g, id)
	c.Effect("XACK", c.Args[1], g.Name(), appendStreamID(nil, id))
}

func xautoClaim(c *command.Ctx) {
	k := claim{delivered: clockMs(c), retries: -1}
	var ok bool
	if k.minIdle, ok = integerOr(c, 4, math.MinInt64, errAutoMinIdle); !ok {
		return
	}
	from, ok := streamStart(c, 5)
	if !ok {
		return
	}
	count := int64(autoClaimCount)
	for i := 6; i < len(c.Args); i++ {
		switch {
		case i+1 < len(c.Args) && c.Is(i, "COUNT"):
			i++
			if count, ok = number.ParseInt(c.Args[i]); !ok || count < 1 || count > autoClaimMaxCount {
				c.Err(errAutoCount)
				return
			}
		case c.Is(i, "JUSTID"):
			k.justID = true
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	s, g, ok := claimGroup(c)
	if !ok {
		return
	}
	candidates, next := autoClaimCandidates(c, &s, g, from, k.minIdle, count)
	c.Reply.Array(3)
	sendStreamID(c, next)
	mark, n := c.Reply.Start(), 0
	var gone []store.StreamID
	for _, p := range candidates {
		if !s.Has(p.ID) {
			gone = append(gone, p.ID)
			dropPending(c, &s, g, p.ID)
			continue
		}
		claimEntry(c, &s, g, p.ID, p, &k)
		n++
	}
	c.Reply.EndArray(mark, n)
	c.Reply.Array(len(gone))
	for _, id := range gone {
		sendStreamID(c, id)
	}
}

// lookedAtWork is what looking for a pending entry in its stream counts for, see command.Turn.Worked.
const lookedAtWork = 1 << 10

// autoClaimCandidates returns the pending entries from an ID on that are to be claimed, or forgotten because the stream has them no
// more, and the ID to go on from, zero at the end.
func autoClaimCandidates(c *command.Ctx, s *store.Stream, g *store.StreamGroup, from store.StreamID, minIdle, count int64) (found []*store.Pending, next store.StreamID) {
	attempts := count * autoClaimAttempts
	defer func(most int64) { c.Core.Worked(int(most-attempts) * lookedAtWork) }(attempts)
	g.EachPending(from, func(p *store.Pending) bool {
		if attempts == 0 || int64(len(found)) == count {
			next = p.ID
			return false
		}
		attempts--
		if minIdle <= 0 || c.Now-p.Delivered >= minIdle || !s.Has(p.ID) {
			found = append(found, p)
		}
		return true
	})
	return found, next
}

// seeConsumer returns the group's consumer of a name, added if need be.
func seeConsumer(c *command.Ctx, s *store.Stream, g *store.StreamGroup, key, name []byte) *store.StreamConsumer {
	consumer, created := s.See(g, name, clockMs(c))
	if created {
		c.Notify(config.EventStream, "xgroup-createconsumer", key)
		c.Effect("XGROUP", "CREATECONSUMER", key, g.Name(), name)
	}
	return consumer
}

// clockMs is the time at which something is delivered, in ms since the Unix epoch: not Ctx.Now, which stands still for what repeats.
func clockMs(c *command.Ctx) int64 { return c.NowNs / 1e6 }

// effectPending declares who has a pending entry, and since when.
func effectPending(c *command.Ctx, key []byte, g *store.StreamGroup, p *store.Pending) {
	if c.Logs() {
		c.Effect("XCLAIM", key, g.Name(), p.Consumer().Name(), claimForEffect, appendStreamID(nil, p.ID),
			"TIME", p.Delivered, "RETRYCOUNT", p.Count, "FORCE", "JUSTID")
	}
}

// effectGroupID declares how far a group has read.
func effectGroupID(c *command.Ctx, key []byte, g *store.StreamGroup) {
	if c.Logs() {
		c.Effect("XGROUP", "SETID", key, g.Name(), appendStreamID(nil, g.Last()), "ENTRIESREAD", g.Reads())
	}
}
