package pubsub

import (
	"headgate/internal/glob"
	"headgate/server/command"
)

// Declarations are those of publish and subscribe.
func (h *Hub) Declarations() []*command.Command {
	return []*command.Command{
		{
			Name: "psubscribe", Group: command.GroupPubSub, Since: "2.0.0", Complexity: "O(n) in the number of patterns",
			Summary: "Subscribe to the channels that match patterns.",
			Arity:   -2, Flags: command.PubSub | command.NoScript | command.Loading | command.Stale | command.ForSubscribers, Channels: command.ChannelSpec{First: 1, Rest: true, Pattern: true},
			Args: []command.Arg{command.Block("pattern", command.Pattern("pattern")).Multi()}, Reply: command.ReplyPush, Handler: withKind(h.subscribe, KindPattern),
		},
		{
			Name: "publish", Group: command.GroupPubSub, Since: "2.0.0", Complexity: "O(n+m) in the number of the channel's subscribers and of all patterns",
			Summary: "Send a message to the subscribers of a channel and return how many there are.",
			Arity:   3, Flags: command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate, Channels: command.ChannelSpec{First: 1},
			Args: []command.Arg{command.Str("channel"), command.Str("message")}, Reply: command.ReplyInteger, Handler: h.publishMessage,
		},
		h.family(),
		{
			Name: "punsubscribe", Group: command.GroupPubSub, Since: "2.0.0", Complexity: "O(n) in the number of patterns",
			Summary: "End subscriptions to patterns, to all of them if none is named.",
			Arity:   -1, Flags: command.PubSub | command.NoScript | command.Loading | command.Stale | command.ForSubscribers,
			Args: []command.Arg{command.Pattern("pattern").Multi().Opt()}, Reply: command.ReplyPush, Handler: withKind(h.unsubscribe, KindPattern),
		},
		{
			Name: "spublish", Group: command.GroupPubSub, Since: "7.0.0", Complexity: "O(n) in the number of the channel's subscribers",
			Summary: "Send a message to the subscribers of a shard channel and return how many there are.",
			Arity:   3, Flags: command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate, Keys: command.Keys(command.NotKey, 1, 1, 1), Channels: command.ChannelSpec{First: 1},
			Args: []command.Arg{command.Str("shardchannel"), command.Str("message")}, Reply: command.ReplyInteger, Handler: h.publishShardMessage,
		},
		{
			Name: "ssubscribe", Group: command.GroupPubSub, Since: "7.0.0", Complexity: "O(n) in the number of channels",
			Summary: "Subscribe to shard channels.",
			Arity:   -2, Flags: command.PubSub | command.NoScript | command.Loading | command.Stale | command.ForSubscribers, Keys: command.Keys(command.NotKey, 1, -1, 1), Channels: command.ChannelSpec{First: 1, Rest: true},
			Args: []command.Arg{command.Str("shardchannel").Multi()}, Reply: command.ReplyPush, Handler: withKind(h.subscribe, KindShard),
		},
		{
			Name: "subscribe", Group: command.GroupPubSub, Since: "2.0.0", Complexity: "O(n) in the number of channels",
			Summary: "Subscribe to channels.",
			Arity:   -2, Flags: command.PubSub | command.NoScript | command.Loading | command.Stale | command.ForSubscribers, Channels: command.ChannelSpec{First: 1, Rest: true},
			Args: []command.Arg{command.Str("channel").Multi()}, Reply: command.ReplyPush, Handler: withKind(h.subscribe, KindChannel),
		},
		{
			Name: "sunsubscribe", Group: command.GroupPubSub, Since: "7.0.0", Complexity: "O(n) in the number of channels",
			Summary: "End subscriptions to shard channels, to all of them if none is named.",
			Arity:   -1, Flags: command.PubSub | command.NoScript | command.Loading | command.Stale | command.ForSubscribers, Keys: command.Keys(command.NotKey, 1, -1, 1),
			Args: []command.Arg{command.Str("shardchannel").Multi().Opt()}, Reply: command.ReplyPush, Handler: withKind(h.unsubscribe, KindShard),
		},
		{
			Name: "unsubscribe", Group: command.GroupPubSub, Since: "2.0.0", Complexity: "O(n) in the number of channels",
			Summary: "End subscriptions to channels, to all of them if none is named.",
			Arity:   -1, Flags: command.PubSub | command.NoScript | command.Loading | command.Stale | command.ForSubscribers,
			Args: []command.Arg{command.Str("channel").Multi().Opt()}, Reply: command.ReplyPush, Handler: withKind(h.unsubscribe, KindChannel),
		},
	}
}

// family is the PUBSUB family.
func (h *Hub) family() *command.Command {
	return &command.Command{
		Name: "pubsub", Group: command.GroupPubSub, Since: "2.8.0", Complexity: "depends on the sub-command",
		Summary: "Show channels, patterns and their subscribers.",
		Arity:   -2,
		Sub: []*command.Command{
			{
				Name: "channels", Since: "2.8.0", Complexity: "O(n) in the number of channels",
				Summary: "Return the channels that have subscribers, or those of them that match the pattern.",
				Arity:   -2, Flags: command.PubSub | command.Loading | command.Stale,
				Args: []command.Arg{command.Pattern("pattern").Opt()}, Reply: command.ReplyArray, Handler: withKind(h.sendTopics, KindChannel),
			},
			command.HelpCommand("6.2.0"),
			{
				Name: "numpat", Since: "2.8.0", Complexity: "O(1)",
				Summary: "Return the number of patterns that have subscribers.",
				Arity:   2, Flags: command.PubSub | command.Loading | command.Stale, Reply: command.ReplyInteger, Handler: h.countPatterns,
			},
			{
				Name: "numsub", Since: "2.8.0", Complexity: "O(n) in the number of channels named",
				Summary: "Return the number of subscribers of channels, those of patterns left out.",
				Arity:   -2, Flags: command.PubSub | command.Loading | command.Stale,
				Args: []command.Arg{command.Str("channel").Multi().Opt()}, Reply: command.ReplyArray, Handler: withKind(h.sendAudiences, KindChannel),
			},
			{
				Name: "shardchannels", Since: "7.0.0", Complexity: "O(n) in the number of shard channels",
				Summary: "Return the shard channels that have subscribers, or those of them that match the pattern.",
				Arity:   -2, Flags: command.PubSub | command.Loading | command.Stale,
				Args: []command.Arg{command.Pattern("pattern").Opt()}, Reply: command.ReplyArray, Handler: withKind(h.sendTopics, KindShard),
			},
			{
				Name: "shardnumsub", Since: "7.0.0", Complexity: "O(n) in the number of channels named",
				Summary: "Return the number of subscribers of shard channels.",
				Arity:   -2, Flags: command.PubSub | command.Loading | command.Stale,
				Args: []command.Arg{command.Str("shardchannel").Multi().Opt()}, Reply: command.ReplyArray, Handler: withKind(h.sendAudiences, KindShard),
			},
		},
	}
}

// subscriptionWords are what SUBSCRIBE and UNSUBSCRIBE, and their kin, answer with.
var subscriptionWords = [topicKinds]struct{ subscribed, unsubscribed string }{
	KindChannel: {"subscribe", "unsubscribe"},
	KindPattern: {"psubscribe", "punsubscribe"},
	KindShard:   {"ssubscribe", "sunsubscribe"},
}

// withKind returns a handler of commands that are the same for each kind of name.
func withKind(handle func(c *command.Ctx, kind topicKind), kind topicKind) command.Handler {
	return func(c *command.Ctx) { handle(c, kind) }
}

// subscribe subscribes the client to the names among the arguments. Each is confirmed by a message of its own: this is the one family
// of commands that may answer with several.
func (h *Hub) subscribe(c *command.Ctx, kind topicKind) {
	if SubscriptionsOf(c.Client).total()+len(c.Args)-1 > maxSubscriptions {
		c.Err("ERR too many subscriptions")
		return
	}
	for _, name := range c.Args[1:] {
		h.Remains.Help()
		h.join(c.Client, kind, name)
		confirm(c, kind, subscriptionWords[kind].subscribed, name, SubscriptionsOf(c.Client).count(kind == KindShard))
	}
}

// unsubscribe ends the client's subscriptions to the names among the arguments, or to all of a kind.
func (h *Hub) unsubscribe(c *command.Ctx, kind topicKind) {
	word := subscriptionWords[kind].unsubscribed
	for _, name := range c.Args[1:] {
		h.leave(c.Client, kind, string(name))
		confirm(c, kind, word, name, SubscriptionsOf(c.Client).count(kind == KindShard))
	}
	if len(c.Args) == 1 {
		h.unsubscribeAll(c, kind, word)
	}
}

// unsubscribeAll ends the client's subscriptions of a kind, those that it had first before the others. They no longer count when it is
// told so; the hub may have them for longer.
func (h *Hub) unsubscribeAll(c *command.Ctx, kind topicKind, word string) {
	left := SubscriptionsOf(c.Client).count(kind == KindShard)
	if SubscriptionsOf(c.Client).Of(kind) == 0 {
		confirm(c, kind, word, nil, left)
		return
	}
	for _, sub := range SubscriptionsOf(c.Client)[kind].list {
		h.retire(sub)
		left--
		w := c.Client.Pushes()
		w.Push(3)
		w.BulkString(word)
		w.BulkString(sub.topic.name)
		w.Int(int64(left))
	}
	h.endSubscriptions(c.Client, kind)
}

// confirm tells the client of a subscription's beginning or end, and how many it has now. A nil name stands for none.
func confirm(c *command.Ctx, kind topicKind, word string, name []byte, left int) {
	w := c.Client.Pushes()
	w.Push(3)
	w.BulkString(word)
	if name == nil {
		w.Null()
	} else {
		w.Bulk(name)
	}
	w.Int(int64(left))
}

func (h *Hub) publishMessage(c *command.Ctx) {
	c.Reply.Int(int64(h.Publish(c.Args[1], c.Args[2])))
	c.EffectAside("PUBLISH", c.Args[1], c.Args[2])
}

func (h *Hub) publishShardMessage(c *command.Ctx) {
	c.Reply.Int(int64(h.publishShard(c.Args[1], c.Args[2])))
	c.EffectAside("SPUBLISH", c.Args[1], c.Args[2])
}

func (h *Hub) countPatterns(c *command.Ctx) { c.Reply.Int(int64(h.Live[KindPattern])) }

// sendTopics sends the names of one kind that have subscribers, or those of them that match the pattern at args[2].
func (h *Hub) sendTopics(c *command.Ctx, kind topicKind) {
	if len(c.Args) > 3 {
		c.ErrSubcommandSyntax()
		return
	}
	mark, n := c.Reply.Start(), 0
	for name, t := range h.Topics[kind] {
		if t.live == 0 || len(c.Args) == 3 && !glob.Match(c.Args[2], []byte(name), false) {
			continue
		}
		c.Reply.BulkString(name)
		n++
	}
	c.Reply.EndArray(mark, n)
}

// sendAudiences sends the names among the arguments, each with the number of its subscribers.
func (h *Hub) sendAudiences(c *command.Ctx, kind topicKind) {
	c.Reply.Array(2 * (len(c.Args) - 2))
	for _, name := range c.Args[2:] {
		n := 0
		if t := h.Topics[kind][string(name)]; t != nil {
			n = t.live
		}
		c.Reply.Bulk(name)
		c.Reply.Int(int64(n))
	}
}
