package server

import (
	"maps"
	"slices"
	"strings"
	"time"

	"headgate/server/acl"
	"headgate/server/resp"
)

// Client-side caching. A client that tracks is told when what it may have cached changes: either keys that it has read, which the
// table here remembers, or, in broadcasting mode, all keys with certain prefixes. As in Redis the table knows keys by their names
// alone, whatever their database.

// trackingMode is what CLIENT TRACKING ON has set for one client.
type trackingMode struct {
	redirect int64 // ID of the client that is told instead; 0 = itself
	broken   bool  // that client is gone
	bcast    bool
	optIn    bool
	optOut   bool
	noLoop   bool      // it is not told of its own changes
	caching  bool      // CLIENT CACHING was called for the next command
	listener *listener // nil without bcast
}

// Bytes is about how much memory the prefixes take up.
func (m *trackingMode) Bytes() int {
	if m.listener == nil {
		return 0
	}
	return m.listener.bytes
}

// trackingOf returns how a client tracks, or nil if it does not.
func trackingOf(cl *Client) *trackingMode {
	mode, _ := cl.tracking.(*trackingMode)
	return mode
}

const (
	invalidateWord    = "invalidate"
	invalidateChannel = "__redis__:invalidate" // where subscribers in RESP2 are told
	trackingBroken    = "tracking-redir-broken"
)

// maxTrackingPrefixes bounds the prefixes of one client: a change looks at all there are.
const maxTrackingPrefixes = 1024

// track turns tracking on for a client, or changes how it is done.
func (h *Hub) track(cl *Client, mode trackingMode, prefixes []string) {
	t := &h.tracking
	if before := trackingOf(cl); before == nil {
		t.clients++
	} else {
		mode.listener = before.listener
	}
	cl.tracking = &mode
	if mode.bcast {
		if len(prefixes) == 0 {
			prefixes = []string{""}
		}
		if mode.listener == nil {
			mode.listener = &listener{table: t, client: cl, prefixes: map[string]*broadcast{}}
		}
		for _, prefix := range prefixes {
			h.remains.help()
			t.addPrefix(mode.listener, prefix)
		}
	}
	h.gate.set(gateTracking, t.clients > 0)
	h.observeKeys(h.config.Get())
}

// prefixes returns what the client listens to, sorted.
func (m *trackingMode) prefixes() []string {
	if m.listener == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m.listener.prefixes))
}

// untrack ends a client's tracking. What the table knows of it is forgotten as the keys change.
func (h *Hub) untrack(cl *Client) {
	mode := trackingOf(cl)
	if mode == nil {
		return
	}
	t := &h.tracking
	if l := mode.listener; l != nil {
		l.gone, l.prefixes = true, nil
		h.remains.letGo(l)
	}
	cl.tracking = nil
	t.clients--
	if t.clients == 0 {
		t.readers, t.items, t.names = nil, 0, 0
	}
	h.gate.set(gateTracking, t.clients > 0)
	h.observeKeys(h.config.Get())
}

// rememberKeys notes that the client has read the keys of the command that has been run. A script's reads are those of the commands
// that it calls.
func (h *Hub) rememberKeys(c *Ctx, cmd *Command, args [][]byte) {
	mode := trackingOf(c.client)
	if mode == nil || mode.bcast || cmd.Flags&ReadOnly == 0 || cmd.Group == GroupScripting || (mode.optIn && !mode.caching) || (mode.optOut && mode.caching) {
		return
	}
	var room [8]int
	read := 0
	for _, k := range cmd.Keys {
		if k.Access == notKey {
			continue
		}
		for _, i := range k.find(room[:0], args) {
			h.tracking.remember(args[i], c.client.id)
			read++
		}
	}
	h.limitTracking(read + forgottenPerRead)
}

const (
	forgottenPerRead = 64 // keys beyond the table's limit that a read forgets besides as many as it has brought
	forgottenPerLook = 64 // those that background work forgets between two looks at the clock
	shrunkTable      = 16 // a table with one key left of so many is made anew: a map keeps its room, and to find a key in it would take long
)

// limitTracking forgets up to n keys while there are more than the table may hold, and tells their readers that they have changed.
func (h *Hub) limitTracking(n int) {
	t, most := &h.tracking, h.config.Get().TrackingTableMaxKeys
	if most == 0 || len(t.readers) <= most {
		return
	}
	t.peak = max(t.peak, len(t.readers))
	for key := range t.readers { // in random order
		h.invalidate([]byte(key), nil)
		if n--; n <= 0 || len(t.readers) <= most {
			break
		}
	}
	if len(t.readers) < t.peak/shrunkTable {
		t.readers, t.peak = maps.Collect(maps.All(t.readers)), len(t.readers)
	}
}

// trackingSlice does limitTracking for as long as a slice may last, and reports whether there is more to forget.
func (h *Hub) trackingSlice() (more bool) {
	t, most := &h.tracking, h.config.Get().TrackingTableMaxKeys
	for start := time.Now(); most != 0 && len(t.readers) > most; {
		h.limitTracking(forgottenPerLook)
		if time.Since(start) > sliceTime*3/4 {
			break
		}
	}
	return most != 0 && len(t.readers) > most
}

// keyChanged has all that track a key hear that it changes. by is the client whose command does that, or nil.
func (h *Hub) keyChanged(key []byte, by *Client) {
	if len(h.tracking.prefixes) > 0 {
		id := int64(0)
		if by != nil {
			id = by.id
		}
		h.tracking.noteChange(key, id, h.running != nil && h.running.quiet)
	}
	h.invalidate(key, by)
}

// invalidate tells those who have read a key that it has changed, and forgets them. by is the client whose command changed it, or nil.
func (h *Hub) invalidate(key []byte, by *Client) {
	for _, id := range h.tracking.forget(key) {
		cl := h.clients.byID[id]
		if cl == nil || cl.tracking == nil {
			continue
		}
		if mode := trackingOf(cl); mode.bcast || (mode.noLoop && cl == by) {
			continue
		}
		h.sendInvalidation(cl, [][]byte{key})
	}
}

// sendBroadcasts sends what has been changed since the last time to those who track by prefix. The keys of one prefix make one
// message.
func (h *Hub) sendBroadcasts() {
	t := &h.tracking
	fresh := t.fresh
	t.changed, t.fresh = false, nil
	slices.SortFunc(fresh, func(a, b *broadcast) int { return strings.Compare(a.prefix, b.prefix) })
	for _, b := range fresh {
		names := slices.Sorted(maps.Keys(b.keys))
		for _, l := range b.sorted() {
			keys := make([][]byte, 0, len(names))
			for _, name := range names {
				if (!trackingOf(l.client).noLoop || b.keys[name] != l.client.id) && mayKnow(l.client, name) {
					keys = append(keys, []byte(name))
				}
			}
			if len(keys) > 0 {
				h.sendInvalidation(l.client, keys)
			}
		}
		b.keys = nil
	}
}

// mayKnow reports whether a client that has not asked for a key may be told its name: whether its user may read it.
func mayKnow(cl *Client, key string) bool {
	return !cl.guarded || cl.user.MayUse([]byte(key), acl.ReadKey)
}

// invalidateAll tells all that track that every key has changed.
func (h *Hub) invalidateAll() {
	t := &h.tracking
	if t.clients == 0 {
		return
	}
	t.readers, t.items, t.names = nil, 0, 0
	for _, cl := range h.clients.sorted() {
		if cl.tracking != nil {
			h.sendInvalidation(cl, nil)
		}
	}
}

// sendInvalidation tells a client, or the one that it has named, that keys have changed: all of them if keys is nil. The client whose
// command is running hears of it behind the reply. In RESP2 only a subscriber can be told.
func (h *Hub) sendInvalidation(cl *Client, keys [][]byte) {
	target, mode := cl, trackingOf(cl)
	if mode.redirect != 0 {
		if target = h.clients.byID[mode.redirect]; target == nil {
			mode.broken = true
			if cl.reply.Proto() == resp.RESP3 {
				h.deliverLater(cl, encodeBroken(mode.redirect))
			}
			return
		}
	}
	var w resp.Writer
	w.SetProto(target.reply.Proto())
	switch {
	case w.Proto() == resp.RESP3:
		w.Push(2)
		w.BulkString(invalidateWord)
	case target != cl && target.subs != nil:
		w.Push(3)
		w.BulkString("message")
		w.BulkString(invalidateChannel)
	default:
		return
	}
	if keys == nil {
		w.Null()
	} else {
		w.Array(len(keys))
		for _, key := range keys {
			w.Bulk(key)
		}
	}
	h.deliverLater(target, w.Bytes())
}

// encodeBroken is the message for a client whose redirection leads nowhere.
func encodeBroken(id int64) []byte {
	var w resp.Writer
	w.SetProto(resp.RESP3)
	w.Push(2)
	w.BulkString(trackingBroken)
	w.Int(id)
	return w.Bytes()
}

// forgetCaching ends what CLIENT CACHING has said of the one command behind it, which may be a whole transaction. cmd is nil for one that
// does not exist.
func (c *Ctx) forgetCaching(cmd *Command) {
	if mode := trackingOf(c.client); mode != nil && c.client.multi == nil && (cmd == nil || cmd.Flags&KeepsCaching == 0) {
		mode.caching = false
	}
}

// overlap reports whether one of two prefixes begins with the other, so that a change could be told twice.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
