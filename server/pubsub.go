package server

import (
	"headgate/internal/glob"
	"headgate/server/resp"
)

// topicKind is one of the three kinds of names that clients subscribe to.
type topicKind uint8

const (
	kindChannel topicKind = iota
	kindPattern
	kindShard // channels of SSUBSCRIBE, which have names of their own
	topicKinds
)

// maxSubscriptions bounds what one client may subscribe to, so that its memory has a limit.
const maxSubscriptions = 1 << 20

// subscriptionBytes is about what a subscription takes up beside its name, the entries of the tables included.
const subscriptionBytes = 200

// hub knows who has subscribed to what. The executor's lock guards it. Taking one subscription out of it costs the same however many
// there are of its client, of its topic and altogether.
type hub struct {
	topics   [topicKinds]map[string]*topic
	patterns []*topic        // those of kindPattern
	live     [topicKinds]int // how many topics have subscribers
	message  [2]resp.Writer
}

// topic is a channel or pattern with at least one subscription.
type topic struct {
	name          string
	subscriptions []*subscription // those that have ended among them, until they are taken out
	live          int             // how many of them have not ended
	place         int             // in hub.patterns
}

// subscription is one client's to one topic.
type subscription struct {
	set     *subscriptionSet
	topic   *topic
	inTopic int // place in topic.subscriptions
	inSet   int // place in subscriptionSet.list
	ended   bool
}

// subscriptionSet is what one client has subscribed to of one kind.
type subscriptionSet struct {
	client *Client
	kind   topicKind
	byName map[string]*subscription
	list   []*subscription
	gone   bool // the client has let go of all of them
	bytes  int
}

// subscriptions are what one client has subscribed to. A set that is not nil has members.
type subscriptions [topicKinds]*subscriptionSet

// count returns how many names the client has subscribed to: those of SSUBSCRIBE are counted apart from the others.
func (s *subscriptions) count(shard bool) int {
	if shard {
		return s.of(kindShard)
	}
	return s.of(kindChannel) + s.of(kindPattern)
}

// total is the number of all subscriptions.
func (s *subscriptions) total() int { return s.count(true) + s.count(false) }

// of returns how many names of one kind the client has subscribed to.
func (s *subscriptions) of(kind topicKind) int {
	if s == nil || s[kind] == nil {
		return 0
	}
	return len(s[kind].list)
}

// Bytes is about how much memory they take up.
func (s *subscriptions) Bytes() (n int) {
	for _, set := range s {
		if set != nil {
			n += set.bytes
		}
	}
	return n
}

// subscriptionsOf returns what a client has subscribed to, or nil if that is nothing.
func subscriptionsOf(cl *Client) *subscriptions {
	subs, _ := cl.subs.(*subscriptions)
	return subs
}

// add subscribes a client. Doing it again changes nothing.
func (h *hub) add(cl *Client, kind topicKind, name []byte) {
	subs := subscriptionsOf(cl)
	if subs == nil {
		subs = &subscriptions{}
		cl.subs, cl.limited = subs, true
	}
	set := subs[kind]
	if set == nil {
		set = &subscriptionSet{client: cl, kind: kind, byName: map[string]*subscription{}}
		subs[kind] = set
	}
	if set.byName[string(name)] != nil {
		return
	}
	t := h.topic(kind, name)
	sub := &subscription{set: set, topic: t, inTopic: len(t.subscriptions), inSet: len(set.list)}
	t.subscriptions = append(t.subscriptions, sub)
	set.list = append(set.list, sub)
	set.byName[t.name] = sub
	set.bytes += subscriptionBytes + len(t.name)
	if t.live++; t.live == 1 {
		h.live[kind]++
	}
}

// topic returns the topic of a name, a new one if need be.
func (h *hub) topic(kind topicKind, name []byte) *topic {
	t := h.topics[kind][string(name)]
	if t != nil {
		return t
	}
	t = &topic{name: string(name)}
	if h.topics[kind] == nil {
		h.topics[kind] = map[string]*topic{}
	}
	h.topics[kind][t.name] = t
	if kind == kindPattern {
		t.place = len(h.patterns)
		h.patterns = append(h.patterns, t)
	}
	return t
}

// remove ends a subscription, if there is one.
func (h *hub) remove(cl *Client, kind topicKind, name string) {
	subs := subscriptionsOf(cl)
	if subs == nil || subs[kind] == nil {
		return
	}
	set := subs[kind]
	sub := set.byName[name]
	if sub == nil {
		return
	}
	delete(set.byName, name)
	h.takeOut(sub)
	if len(set.list) == 0 {
		cl.dropSubscriptions(kind)
	}
}

// end has a subscription no longer count.
func (h *hub) end(sub *subscription) {
	if sub.ended {
		return
	}
	sub.ended = true
	if sub.topic.live--; sub.topic.live == 0 {
		h.live[sub.set.kind]--
	}
}

// takeOut takes a subscription out of its topic and of its client's set, and a topic that had no other out of the hub.
func (h *hub) takeOut(sub *subscription) {
	h.end(sub)
	set, t := sub.set, sub.topic
	set.bytes -= subscriptionBytes + len(t.name)
	set.list = swapOut(set.list, sub.inSet)
	if sub.inSet < len(set.list) {
		set.list[sub.inSet].inSet = sub.inSet
	}
	t.subscriptions = swapOut(t.subscriptions, sub.inTopic)
	if sub.inTopic < len(t.subscriptions) {
		t.subscriptions[sub.inTopic].inTopic = sub.inTopic
	}
	if len(t.subscriptions) > 0 {
		return
	}
	delete(h.topics[set.kind], t.name)
	if len(h.topics[set.kind]) == 0 {
		h.topics[set.kind] = nil // a map keeps the room for as many as it has had
	}
	if set.kind != kindPattern {
		return
	}
	h.patterns = swapOut(h.patterns, t.place)
	if t.place < len(h.patterns) {
		h.patterns[t.place].place = t.place
	}
}

// swapOut removes list[i] by putting the last one into its place.
func swapOut[T any](list []*T, i int) []*T {
	last := len(list) - 1
	list[i] = list[last]
	list[last] = nil
	if last == 0 {
		return nil
	}
	return list[:last]
}

// takeOut implements leftover.
func (set *subscriptionSet) takeOut(s *Server, n int) (taken int) {
	for ; taken < n && len(set.list) > 0; taken++ {
		s.hub.takeOut(set.list[len(set.list)-1])
	}
	return taken
}

// size implements leftover.
func (set *subscriptionSet) size() int { return set.bytes }

// dropSubscriptions has a client no longer have those of one kind.
func (cl *Client) dropSubscriptions(kind topicKind) {
	subs := subscriptionsOf(cl)
	subs[kind] = nil
	if subs.total() == 0 {
		cl.subs = nil
		cl.limited = cl.monitors
	}
}

// endSubscriptions ends a client's subscriptions of one kind.
func (s *Server) endSubscriptions(cl *Client, kind topicKind) {
	subs := subscriptionsOf(cl)
	if subs == nil || subs[kind] == nil {
		return
	}
	set := subs[kind]
	cl.dropSubscriptions(kind)
	set.gone, set.byName = true, nil
	s.letGo(set)
}

// endAllSubscriptions ends all of a client's subscriptions.
func (s *Server) endAllSubscriptions(cl *Client) {
	for kind := range topicKinds {
		s.endSubscriptions(cl, kind)
	}
}

// confined reports whether the client may run but a few commands: in RESP2 a subscriber could not tell other replies from messages.
func (cl *Client) confined() bool {
	return cl.subs != nil && cl.reply.Proto() == resp.RESP2
}

// publish sends a message to the subscribers of a channel, and to those of the patterns that it matches, and returns how many
// copies that makes. The subscribers of a pattern get the pattern as well.
func (s *Server) publish(channel, text []byte) int {
	h := &s.hub
	sent := 0
	if t := h.topics[kindChannel][string(channel)]; t != nil {
		sent += s.sendMessage(t, "message", channel, text)
	}
	for _, t := range h.patterns {
		if glob.Match([]byte(t.name), channel, false) {
			sent += s.sendMessage(t, "pmessage", channel, text)
		}
	}
	return sent
}

// publishShard is publish for the channels of SSUBSCRIBE.
func (s *Server) publishShard(channel, text []byte) int {
	t := s.hub.topics[kindShard][string(channel)]
	if t == nil {
		return 0
	}
	return s.sendMessage(t, "smessage", channel, text)
}

// keptMessage bounds the buffers that are kept for the next message.
const keptMessage = 64 << 10

// sendMessage sends a message to a topic's subscribers, and returns how many there are. It is written once for each protocol.
func (s *Server) sendMessage(t *topic, kind string, channel, text []byte) (sent int) {
	var done [2]bool
	for _, sub := range t.subscriptions {
		if sub.ended || sub.set.gone {
			continue
		}
		sent++
		cl := sub.set.client
		i := cl.reply.Proto() - resp.RESP2
		w := &s.hub.message[i]
		if !done[i] {
			done[i] = true
			w.Reset()
			w.SetProto(cl.reply.Proto())
			if kind == "pmessage" {
				w.Push(4)
				w.BulkString(kind)
				w.BulkString(t.name)
			} else {
				w.Push(3)
				w.BulkString(kind)
			}
			w.Bulk(channel)
			w.Bulk(text)
		}
		s.deliver(cl, w.Bytes())
	}
	for i := range s.hub.message {
		if w := &s.hub.message[i]; w.Cap() > keptMessage {
			w.SetBuffer(nil)
		}
	}
	return sent
}

// deliver sends a client something that does not answer a command of its own, encoded in the client's protocol. The caller holds the
// executor's lock; whoever owns the connection writes it to the socket.
func (s *Server) deliver(cl *Client, message []byte) {
	if cl.conn.Closing() {
		return
	}
	if s.isRunning(cl) {
		cl.pushes().Raw(message)
		return
	}
	cl.reply.Raw(message)
	cl.conn.Wake()
	if cl.conn.Unsent() > s.softOutputLimit || cl.reply.Over() {
		s.checkOutput(cl)
	}
}

// isRunning reports whether a command of the client's is being run: its replies are sent when that has ended.
func (s *Server) isRunning(cl *Client) bool { return s.running != nil && s.running.client == cl }

// pushes is where messages to a client belong while a command of its own runs: CLIENT REPLY does not leave them out.
func (cl *Client) pushes() *resp.Writer {
	if cl.replyMode == replyOn {
		return cl.reply
	}
	cl.aside.SetProto(cl.reply.Proto())
	return &cl.aside
}
