package pubsub

import (
	"maps"
	"slices"
	"strings"
	"time"

	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/resp"
)

// Client-side caching. A client that tracks is told when what it may have cached changes: either keys that it has read, which the
// table here remembers, or, in broadcasting mode, all keys with certain prefixes. As in Redis the table knows keys by their names
// alone, whatever their database.

// trackingMode is what CLIENT TRACKING ON has set for one client.
type trackingMode struct {
	redirect int64 // ID of the client that is told instead; 0 = itself
	Broken   bool  // that client is gone
	Bcast    bool
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

// TrackingOf returns how a client tracks, or nil if it does not.
func TrackingOf(cl *command.Client) *trackingMode {
	mode, _ := cl.Tracking.(*trackingMode)
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
func (h *Hub) track(cl *command.Client, mode trackingMode, prefixes []string) {
	t := &h.Tracking
	if before := TrackingOf(cl); before == nil {
		t.Clients++
	} else {
		mode.listener = before.listener
	}
	cl.Tracking = &mode
	if mode.Bcast {
		if len(prefixes) == 0 {
			prefixes = []string{""}
		}
		if mode.listener == nil {
			mode.listener = &listener{table: t, client: cl, prefixes: map[string]*broadcast{}}
		}
		for _, prefix := range prefixes {
			h.Remains.Help()
			t.addPrefix(mode.listener, prefix)
		}
	}
	h.Gate.Set(command.GateTracking, t.Clients > 0)
	h.ObserveKeys(h.Config.Get())
}

// prefixes returns what the client listens to, sorted.
func (m *trackingMode) prefixes() []string {
	if m.listener == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m.listener.prefixes))
}

// Untrack ends a client's tracking. What the table knows of it is forgotten as the keys change.
func (h *Hub) Untrack(cl *command.Client) {
	mode := TrackingOf(cl)
	if mode == nil {
		return
	}
	t := &h.Tracking
	if l := mode.listener; l != nil {
		l.gone, l.prefixes = true, nil
		h.Remains.LetGo(l)
	}
	cl.Tracking = nil
	t.Clients--
	if t.Clients == 0 {
		t.Readers, t.Items, t.Names = nil, 0, 0
	}
	h.Gate.Set(command.GateTracking, t.Clients > 0)
	h.ObserveKeys(h.Config.Get())
}

// RememberKeys notes that the client has read the keys of the command that has been run. A script's reads are those of the commands
// that it calls.
func (h *Hub) RememberKeys(c *command.Ctx, cmd *command.Command, args [][]byte) {
	mode := TrackingOf(c.Client)
	if mode == nil || mode.Bcast || cmd.Flags&command.ReadOnly == 0 || cmd.Group == command.GroupScripting || (mode.optIn && !mode.caching) || (mode.optOut && mode.caching) {
		return
	}
	var room [8]int
	read := 0
	for _, k := range cmd.Keys {
		if k.Access == command.NotKey {
			continue
		}
		for _, i := range k.Find(room[:0], args) {
			h.Tracking.remember(args[i], c.Client.ID)
			read++
		}
	}
	h.LimitTracking(read + forgottenPerRead)
}

const (
	forgottenPerRead = 64 // keys beyond the table's limit that a read forgets besides as many as it has brought
	ForgottenPerLook = 64 // those that background work forgets between two looks at the clock
	ShrunkTable      = 16 // a table with one key left of so many is made anew: a map keeps its room, and to find a key in it would take long
)

// LimitTracking forgets up to n keys while there are more than the table may hold, and tells their readers that they have changed.
func (h *Hub) LimitTracking(n int) {
	t, most := &h.Tracking, h.Config.Get().TrackingTableMaxKeys
	if most == 0 || len(t.Readers) <= most {
		return
	}
	t.Peak = max(t.Peak, len(t.Readers))
	for key := range t.Readers { // in random order
		h.invalidate([]byte(key), nil)
		if n--; n <= 0 || len(t.Readers) <= most {
			break
		}
	}
	if len(t.Readers) < t.Peak/ShrunkTable {
		t.Readers, t.Peak = maps.Collect(maps.All(t.Readers)), len(t.Readers)
	}
}

// TrackingSlice does LimitTracking for as long as a slice may last, and reports whether there is more to forget.
func (h *Hub) TrackingSlice() (more bool) {
	t, most := &h.Tracking, h.Config.Get().TrackingTableMaxKeys
	for start := time.Now(); most != 0 && len(t.Readers) > most; {
		h.LimitTracking(ForgottenPerLook)
		if time.Since(start) > command.SliceTime*3/4 {
			break
		}
	}
	return most != 0 && len(t.Readers) > most
}

// KeyChanged has all that track a key hear that it changes. by is the client whose command does that, or nil.
func (h *Hub) KeyChanged(key []byte, by *command.Client) {
	if len(h.Tracking.Prefixes) > 0 {
		id := int64(0)
		if by != nil {
			id = by.ID
		}
		h.Tracking.noteChange(key, id, h.Running != nil && h.Running.Quiet)
	}
	h.invalidate(key, by)
}

// invalidate tells those who have read a key that it has changed, and forgets them. by is the client whose command changed it, or nil.
func (h *Hub) invalidate(key []byte, by *command.Client) {
	for _, id := range h.Tracking.forget(key) {
		cl := h.Clients.ByID[id]
		if cl == nil || cl.Tracking == nil {
			continue
		}
		if mode := TrackingOf(cl); mode.Bcast || (mode.noLoop && cl == by) {
			continue
		}
		h.sendInvalidation(cl, [][]byte{key})
	}
}

// SendBroadcasts sends what has been changed since the last time to those who track by prefix. The keys of one prefix make one
// message, which is written once for all who hear of every key.
func (h *Hub) SendBroadcasts() {
	t := &h.Tracking
	fresh := t.fresh
	t.Changed, t.fresh = false, nil
	slices.SortFunc(fresh, func(a, b *broadcast) int { return strings.Compare(a.prefix, b.prefix) })
	for _, b := range fresh {
		names := slices.Sorted(maps.Keys(b.keys))
		var whole [invalidationForms][]byte
		for _, l := range b.sorted() {
			cl := l.client
			if !cl.Guarded && !TrackingOf(cl).noLoop {
				target, form := h.hearerOf(cl)
				if whole[form] == nil {
					whole[form] = encodeInvalidation(form, allOf(names))
				}
				h.tellInvalidation(target, whole[form])
				continue
			}
			if keys := b.heardBy(cl, names); len(keys) > 0 {
				h.sendInvalidation(cl, keys)
			}
		}
		b.keys = nil
	}
}

// heardBy returns those of the changed keys that a client is told of.
func (b *broadcast) heardBy(cl *command.Client, names []string) [][]byte {
	keys := make([][]byte, 0, len(names))
	for _, name := range names {
		if (!TrackingOf(cl).noLoop || b.keys[name] != cl.ID) && mayKnow(cl, name) {
			keys = append(keys, []byte(name))
		}
	}
	return keys
}

func allOf(names []string) [][]byte {
	keys := make([][]byte, len(names))
	for i, name := range names {
		keys[i] = []byte(name)
	}
	return keys
}

// mayKnow reports whether a client that has not asked for a key may be told its name: whether its user may read it.
func mayKnow(cl *command.Client, key string) bool {
	return !cl.Guarded || cl.User.MayUse([]byte(key), acl.ReadKey)
}

// InvalidateAll tells all that track that every key has changed.
func (h *Hub) InvalidateAll() {
	t := &h.Tracking
	if t.Clients == 0 {
		return
	}
	t.Readers, t.Items, t.Names = nil, 0, 0
	for _, cl := range h.Clients.Sorted() {
		if cl.Tracking != nil {
			h.sendInvalidation(cl, nil)
		}
	}
}

// invalidationForm is how a client can be told that keys have changed.
type invalidationForm uint8

const (
	untold     invalidationForm = iota // not at all: in RESP2 only a subscriber can be told, in place of another or itself
	pushed                             // in RESP3
	subscribed                         // in RESP2
	invalidationForms
)

// hearerOf returns who is told what a client tracks: itself, or the client that it has named, and in which form. A client whose other one has gone is
// told that.
func (h *Hub) hearerOf(cl *command.Client) (target *command.Client, form invalidationForm) {
	target, mode := cl, TrackingOf(cl)
	if mode.redirect != 0 {
		if target = h.Clients.ByID[mode.redirect]; target == nil {
			mode.Broken = true
			if cl.Reply.Proto() == resp.RESP3 {
				h.DeliverLater(cl, encodeBroken(mode.redirect))
			}
			return nil, untold
		}
	}
	switch {
	case target.Reply.Proto() == resp.RESP3:
		return target, pushed
	case mode.redirect != 0 && target.Subs != nil:
		return target, subscribed
	}
	return nil, untold
}

// sendInvalidation tells a client, or the one that it has named, that keys have changed: all of them if keys is nil.
func (h *Hub) sendInvalidation(cl *command.Client, keys [][]byte) {
	target, form := h.hearerOf(cl)
	h.tellInvalidation(target, encodeInvalidation(form, keys))
}

// tellInvalidation sends a message of encodeInvalidation. The client whose command is running hears of it behind the reply.
func (h *Hub) tellInvalidation(target *command.Client, message []byte) {
	if len(message) > 0 {
		h.DeliverLater(target, message)
	}
}

// encodeInvalidation is the message that keys have changed: all if keys is nil. It is empty if nobody can be told.
func encodeInvalidation(form invalidationForm, keys [][]byte) []byte {
	var w resp.Writer
	switch form {
	case untold:
		return []byte{}
	case pushed:
		w.SetProto(resp.RESP3)
		w.Push(2)
		w.BulkString(invalidateWord)
	case subscribed:
		w.SetProto(resp.RESP2)
		w.Push(3)
		w.BulkString("message")
		w.BulkString(invalidateChannel)
	}
	if keys == nil {
		w.Null()
	} else {
		w.Array(len(keys))
		for _, key := range keys {
			w.Bulk(key)
		}
	}
	return w.Bytes()
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

// ForgetCaching ends what CLIENT CACHING has said of the one command behind it, which may be a whole transaction. cmd is nil for one that
// does not exist.
func ForgetCaching(c *command.Ctx, cmd *command.Command) {
	if mode := TrackingOf(c.Client); mode != nil && c.Client.Multi == nil && (cmd == nil || cmd.Flags&command.KeepsCaching == 0) {
		mode.caching = false
	}
}

// overlap reports whether one of two prefixes begins with the other, so that a change could be told twice.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
