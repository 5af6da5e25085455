package server

import (
	"headgate/internal/glob"
)

// declarations are those of publish and subscribe.
func (h *Hub) declarations() []*Command {
	return []*Command{
		{
			Name: "psubscribe", Group: GroupPubSub, Since: "2.0.0", Complexity: "O(n) in the number of patterns",
			Summary: "Have the messages of all channels that match a pattern sent to this connection.",
			Arity:   -2, Flags: PubSub | NoScript | Loading | Stale | ForSubscribers, Channels: ChannelSpec{First: 1, Rest: true, Pattern: true},
			Args: []Arg{block("pattern", pattern("pattern")).multi()}, Reply: ReplyPush, Handler: withKind(h.subscribe, kindPattern),
		},
		{
			Name: "publish", Group: GroupPubSub, Since: "2.0.0", Complexity: "O(n+m) in the number of the channel's subscribers and of all patterns",
			Summary: "Send a message to the subscribers of a channel and return how many there are.",
			Arity:   3, Flags: PubSub | Loading | Stale | Fast | MayReplicate, Channels: ChannelSpec{First: 1},
			Args: []Arg{str("channel"), str("message")}, Reply: ReplyInteger, Handler: h.publishMessage,
		},
		h.family(),
		{
			Name: "punsubscribe", Group: GroupPubSub, Since: "2.0.0", Complexity: "O(n) in the number of patterns",
			Summary: "End subscriptions to patterns, to all of them if none is named.",
			Arity:   -1, Flags: PubSub | NoScript | Loading | Stale | ForSubscribers,
			Args: []Arg{pattern("pattern").multi().opt()}, Reply: ReplyPush, Handler: withKind(h.unsubscribe, kindPattern),
		},
		{
			Name: "spublish", Group: GroupPubSub, Since: "7.0.0", Complexity: "O(n) in the number of the channel's subscribers",
			Summary: "Send a message to the subscribers of a shard channel and return how many there are.",
			Arity:   3, Flags: PubSub | Loading | Stale | Fast | MayReplicate, Keys: keys(notKey, 1, 1, 1), Channels: ChannelSpec{First: 1},
			Args: []Arg{str("shardchannel"), str("message")}, Reply: ReplyInteger, Handler: h.publishShardMessage,
		},
		{
			Name: "ssubscribe", Group: GroupPubSub, Since: "7.0.0", Complexity: "O(n) in the number of channels",
			Summary: "Have the messages of shard channels sent to this connection.",
			Arity:   -2, Flags: PubSub | NoScript | Loading | Stale | ForSubscribers, Keys: keys(notKey, 1, -1, 1), Channels: ChannelSpec{First: 1, Rest: true},
			Args: []Arg{str("shardchannel").multi()}, Reply: ReplyPush, Handler: withKind(h.subscribe, kindShard),
		},
		{
			Name: "subscribe", Group: GroupPubSub, Since: "2.0.0", Complexity: "O(n) in the number of channels",
			Summary: "Have the messages of channels sent to this connection.",
			Arity:   -2, Flags: PubSub | NoScript | Loading | Stale | ForSubscribers, Channels: ChannelSpec{First: 1, Rest: true},
			Args: []Arg{str("channel").multi()}, Reply: ReplyPush, Handler: withKind(h.subscribe, kindChannel),
		},
		{
			Name: "sunsubscribe", Group: GroupPubSub, Since: "7.0.0", Complexity: "O(n) in the number of channels",
			Summary: "End subscriptions to shard channels, to all of them if none is named.",
			Arity:   -1, Flags: PubSub | NoScript | Loading | Stale | ForSubscribers, Keys: keys(notKey, 1, -1, 1),
			Args: []Arg{str("shardchannel").multi().opt()}, Reply: ReplyPush, Handler: withKind(h.unsubscribe, kindShard),
		},
		{
			Name: "unsubscribe", Group: GroupPubSub, Since: "2.0.0", Complexity: "O(n) in the number of channels",
			Summary: "End subscriptions to channels, to all of them if none is named.",
			Arity:   -1, Flags: PubSub | NoScript | Loading | Stale | ForSubscribers,
			Args: []Arg{str("channel").multi().opt()}, Reply: ReplyPush, Handler: withKind(h.unsubscribe, kindChannel),
		},
	}
}

// family is the PUBSUB family.
func (h *Hub) family() *Command {
	return &Command{
		Name: "pubsub", Group: GroupPubSub, Since: "2.8.0", Complexity: "depends on the sub-command",
		Summary: "Look at who has subscribed to what.",
		Arity:   -2,
		Sub: []*Command{
			{
				Name: "channels", Since: "2.8.0", Complexity: "O(n) in the number of channels",
				Summary: "Return the channels that have subscribers, or those of them that match the pattern.",
				Arity:   -2, Flags: PubSub | Loading | Stale,
				Args: []Arg{pattern("pattern").opt()}, Reply: ReplyArray, Handler: withKind(h.sendTopics, kindChannel),
			},
			helpCommand("6.2.0"),
			{
				Name: "numpat", Since: "2.8.0", Complexity: "O(1)",
				Summary: "Return the number of patterns that have subscribers.",
				Arity:   2, Flags: PubSub | Loading | Stale, Reply: ReplyInteger, Handler: h.countPatterns,
			},
			{
				Name: "numsub", Since: "2.8.0", Complexity: "O(n) in the number of channels named",
				Summary: "Return the number of subscribers of channels, those of patterns left out.",
				Arity:   -2, Flags: PubSub | Loading | Stale,
				Args: []Arg{str("channel").multi().opt()}, Reply: ReplyArray, Handler: withKind(h.sendAudiences, kindChannel),
			},
			{
				Name: "shardchannels", Since: "7.0.0", Complexity: "O(n) in the number of shard channels",
				Summary: "Return the shard channels that have subscribers, or those of them that match the pattern.",
				Arity:   -2, Flags: PubSub | Loading | Stale,
				Args: []Arg{pattern("pattern").opt()}, Reply: ReplyArray, Handler: withKind(h.sendTopics, kindShard),
			},
			{
				Name: "shardnumsub", Since: "7.0.0", Complexity: "O(n) in the number of channels named",
				Summary: "Return the number of subscribers of shard channels.",
				Arity:   -2, Flags: PubSub | Loading | Stale,
				Args: []Arg{str("shardchannel").multi().opt()}, Reply: ReplyArray, Handler: withKind(h.sendAudiences, kindShard),
			},
		},
	}
}

// subscriptionWords are what SUBSCRIBE and UNSUBSCRIBE, and their kin, answer with.
var subscriptionWords = [topicKinds]struct{ subscribed, unsubscribed string }{
	kindChannel: {"subscribe", "unsubscribe"},
	kindPattern: {"psubscribe", "punsubscribe"},
	kindShard:   {"ssubscribe", "sunsubscribe"},
}

// withKind returns a handler of commands that are the same for each kind of name.
func withKind(handle func(c *Ctx, kind topicKind), kind topicKind) Handler {
	return func(c *Ctx) { handle(c, kind) }
}

// subscribe subscribes the client to the names among the arguments. Each is confirmed by a message of its own: this is the one family
// of commands that may answer with several.
func (h *Hub) subscribe(c *Ctx, kind topicKind) {
	if subscriptionsOf(c.client).total()+len(c.args)-1 > maxSubscriptions {
		c.err("ERR too many subscriptions")
		return
	}
	for _, name := range c.args[1:] {
		h.remains.help()
		h.join(c.client, kind, name)
		c.confirm(kind, subscriptionWords[kind].subscribed, name, subscriptionsOf(c.client).count(kind == kindShard))
	}
}

// unsubscribe ends the client's subscriptions to the names among the arguments, or to all of a kind.
func (h *Hub) unsubscribe(c *Ctx, kind topicKind) {
	word := subscriptionWords[kind].unsubscribed
	for _, name := range c.args[1:] {
		h.leave(c.client, kind, string(name))
		c.confirm(kind, word, name, subscriptionsOf(c.client).count(kind == kindShard))
	}
	if len(c.args) == 1 {
		h.unsubscribeAll(c, kind, word)
	}
}

// unsubscribeAll ends the client's subscriptions of a kind, those that it had first before the others. They no longer count when it is
// told so; the hub may have them for longer.
func (h *Hub) unsubscribeAll(c *Ctx, kind topicKind, word string) {
	left := subscriptionsOf(c.client).count(kind == kindShard)
	if subscriptionsOf(c.client).of(kind) == 0 {
		c.confirm(kind, word, nil, left)
		return
	}
	for _, sub := range subscriptionsOf(c.client)[kind].list {
		h.retire(sub)
		left--
		w := c.client.pushes()
		w.Push(3)
		w.BulkString(word)
		w.BulkString(sub.topic.name)
		w.Int(int64(left))
	}
	h.endSubscriptions(c.client, kind)
}

// confirm tells the client of a subscription's beginning or end, and how many it has now. A nil name stands for none.
func (c *Ctx) confirm(kind topicKind, word string, name []byte, left int) {
	w := c.client.pushes()
	w.Push(3)
	w.BulkString(word)
	if name == nil {
		w.Null()
	} else {
		w.Bulk(name)
	}
	w.Int(int64(left))
}

func (h *Hub) publishMessage(c *Ctx)      { c.reply.Int(int64(h.publish(c.args[1], c.args[2]))) }
func (h *Hub) publishShardMessage(c *Ctx) { c.reply.Int(int64(h.publishShard(c.args[1], c.args[2]))) }
func (h *Hub) countPatterns(c *Ctx)       { c.reply.Int(int64(h.live[kindPattern])) }

// sendTopics sends the names of one kind that have subscribers, or those of them that match the pattern at args[2].
func (h *Hub) sendTopics(c *Ctx, kind topicKind) {
	if len(c.args) > 3 {
		c.errSubcommandSyntax()
		return
	}
	mark, n := c.reply.Start(), 0
	for name, t := range h.topics[kind] {
		if t.live == 0 || len(c.args) == 3 && !glob.Match(c.args[2], []byte(name), false) {
			continue
		}
		c.reply.BulkString(name)
		n++
	}
	c.reply.EndArray(mark, n)
}

// sendAudiences sends the names among the arguments, each with the number of its subscribers.
func (h *Hub) sendAudiences(c *Ctx, kind topicKind) {
	c.reply.Array(2 * (len(c.args) - 2))
	for _, name := range c.args[2:] {
		n := 0
		if t := h.topics[kind][string(name)]; t != nil {
			n = t.live
		}
		c.reply.Bulk(name)
		c.reply.Int(int64(n))
	}
}
