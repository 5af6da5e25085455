package pubsub

import (
	"headgate/internal/glob"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/resp"
)

// topicKind is one of the three kinds of names that clients subscribe to.
type topicKind uint8

const (
	KindChannel topicKind = iota
	KindPattern
	KindShard // channels of SSUBSCRIBE, which have names of their own
	topicKinds
)

// maxSubscriptions bounds what one client may subscribe to, so that its memory has a limit.
const maxSubscriptions = 1 << 20

// SubscriptionBytes is about what a subscription takes up beside its name, the entries of the tables included.
const SubscriptionBytes = 200

// Hub knows who wants to be told of what: who has subscribed to which channels and patterns, and who tracks which keys. The executor's
// lock guards it. Taking one subscription out of it costs the same however many there are of its client, of its topic and altogether.
type Hub struct {
	*command.Core

	Topics   [topicKinds]map[string]*topic
	Patterns []*topic        // those of KindPattern
	Live     [topicKinds]int // how many topics have subscribers
	message  [2]resp.Writer  // memory for one, in either protocol

	Tracking trackingTable
}

// topic is a channel or pattern with at least one subscription.
type topic struct {
	name          string
	subscriptions []*subscription // those that have ended among them, until they are taken out
	live          int             // how many of them have not ended
	place         int             // in Hub.Patterns
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
	hub    *Hub
	client *command.Client
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
		return s.Of(KindShard)
	}
	return s.Of(KindChannel) + s.Of(KindPattern)
}

// total is the number of all subscriptions.
func (s *subscriptions) total() int { return s.count(true) + s.count(false) }

// Of returns how many names of one kind the client has subscribed to.
func (s *subscriptions) Of(kind topicKind) int {
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

// List returns what the client has subscribed to.
func (s *subscriptions) List() []acl.Subscription {
	var list []acl.Subscription
	for kind := range topicKinds {
		if s[kind] == nil {
			continue
		}
		for _, sub := range s[kind].list {
			list = append(list, acl.Subscription{Name: sub.topic.name, Pattern: kind == KindPattern})
		}
	}
	return list
}

// SubscriptionsOf returns what a client has subscribed to, or nil if that is nothing.
func SubscriptionsOf(cl *command.Client) *subscriptions {
	subs, _ := cl.Subs.(*subscriptions)
	return subs
}

// join subscribes a client. Doing it again changes nothing.
func (h *Hub) join(cl *command.Client, kind topicKind, name []byte) {
	subs := SubscriptionsOf(cl)
	if subs == nil {
		subs = &subscriptions{}
		cl.Subs, cl.Limited = subs, true
	}
	set := subs[kind]
	if set == nil {
		set = &subscriptionSet{hub: h, client: cl, kind: kind, byName: map[string]*subscription{}}
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
	set.bytes += SubscriptionBytes + len(t.name)
	if t.live++; t.live == 1 {
		h.Live[kind]++
	}
}

// topic returns the topic of a name, a new one if need be.
func (h *Hub) topic(kind topicKind, name []byte) *topic {
	t := h.Topics[kind][string(name)]
	if t != nil {
		return t
	}
	t = &topic{name: string(name)}
	if h.Topics[kind] == nil {
		h.Topics[kind] = map[string]*topic{}
	}
	h.Topics[kind][t.name] = t
	if kind == KindPattern {
		t.place = len(h.Patterns)
		h.Patterns = append(h.Patterns, t)
	}
	return t
}

// leave ends a subscription, if there is one.
func (h *Hub) leave(cl *command.Client, kind topicKind, name string) {
	subs := SubscriptionsOf(cl)
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
		dropSubscriptions(cl, kind)
	}
}

// retire has a subscription no longer count.
func (h *Hub) retire(sub *subscription) {
	if sub.ended {
		return
	}
	sub.ended = true
	if sub.topic.live--; sub.topic.live == 0 {
		h.Live[sub.set.kind]--
	}
}

// takeOut takes a subscription out of its topic and of its client's set, and a topic that had no other out of the hub.
func (h *Hub) takeOut(sub *subscription) {
	h.retire(sub)
	set, t := sub.set, sub.topic
	set.bytes -= SubscriptionBytes + len(t.name)
	set.list = command.SwapOut(set.list, sub.inSet)
	if sub.inSet < len(set.list) {
		set.list[sub.inSet].inSet = sub.inSet
	}
	t.subscriptions = command.SwapOut(t.subscriptions, sub.inTopic)
	if sub.inTopic < len(t.subscriptions) {
		t.subscriptions[sub.inTopic].inTopic = sub.inTopic
	}
	if len(t.subscriptions) > 0 {
		return
	}
	delete(h.Topics[set.kind], t.name)
	if len(h.Topics[set.kind]) == 0 {
		h.Topics[set.kind] = nil // a map keeps the room for as many as it has had
	}
	if set.kind != KindPattern {
		return
	}
	h.Patterns = command.SwapOut(h.Patterns, t.place)
	if t.place < len(h.Patterns) {
		h.Patterns[t.place].place = t.place
	}
}

// TakeOut implements command.Leftover.
func (set *subscriptionSet) TakeOut(n int) (taken int) {
	for ; taken < n && len(set.list) > 0; taken++ {
		set.hub.takeOut(set.list[len(set.list)-1])
	}
	return taken
}

// Bytes implements command.Leftover.
func (set *subscriptionSet) Bytes() int { return set.bytes }

// dropSubscriptions has a client no longer have those of one kind.
func dropSubscriptions(cl *command.Client, kind topicKind) {
	subs := SubscriptionsOf(cl)
	subs[kind] = nil
	if subs.total() == 0 {
		cl.Subs = nil
		cl.Limited = cl.Monitors || cl.Replicates
	}
}

// endSubscriptions ends a client's subscriptions of one kind.
func (h *Hub) endSubscriptions(cl *command.Client, kind topicKind) {
	subs := SubscriptionsOf(cl)
	if subs == nil || subs[kind] == nil {
		return
	}
	set := subs[kind]
	dropSubscriptions(cl, kind)
	set.gone, set.byName = true, nil
	h.Remains.LetGo(set)
}

// EndAllSubscriptions ends all of a client's subscriptions.
func (h *Hub) EndAllSubscriptions(cl *command.Client) {
	for kind := range topicKinds {
		h.endSubscriptions(cl, kind)
	}
}

// patternWork is what comparing a channel with a pattern counts for, see Turn.Worked.
const patternWork = 128

// Publish sends a message to the subscribers of a channel, and to those of the patterns that it matches, and returns how many
// copies that makes. The subscribers of a pattern get the pattern as well.
func (h *Hub) Publish(channel, text []byte) int {
	sent := 0
	if t := h.Topics[KindChannel][string(channel)]; t != nil {
		sent += h.sendMessage(t, "message", channel, text)
	}
	h.Worked(len(h.Patterns) * patternWork)
	for _, t := range h.Patterns {
		if glob.Match([]byte(t.name), channel, false) {
			sent += h.sendMessage(t, "pmessage", channel, text)
		}
	}
	return sent
}

// publishShard is Publish for the channels of SSUBSCRIBE.
func (h *Hub) publishShard(channel, text []byte) int {
	t := h.Topics[KindShard][string(channel)]
	if t == nil {
		return 0
	}
	return h.sendMessage(t, "smessage", channel, text)
}

// sendMessage sends a message to a topic's subscribers, and returns how many there are. It is written once for each protocol.
func (h *Hub) sendMessage(t *topic, kind string, channel, text []byte) (sent int) {
	var done [2]bool
	for _, sub := range t.subscriptions {
		cl := sub.set.client
		if sub.ended || sub.set.gone || cl.Conn.ClosingNow() { // one that was killed hears nothing more
			continue
		}
		sent++
		i := cl.Reply.Proto() - resp.RESP2
		w := &h.message[i]
		if !done[i] {
			done[i] = true
			w.Reset()
			w.SetProto(cl.Reply.Proto())
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
		h.Deliver(cl, w.Bytes())
	}
	for i := range h.message {
		if w := &h.message[i]; w.Cap() > command.KeptMessage {
			w.SetBuffer(nil)
		}
	}
	return sent
}
