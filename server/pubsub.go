package server

import (
	"maps"
	"slices"

	"headgate/server/glob"
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

// hub knows who has subscribed to what. The executor's lock guards it.
type hub struct {
	topics   [topicKinds]map[string]*topic
	patterns []*topic // those of kindPattern, in the order of their first subscription
	message  [2]resp.Writer
}

// topic is a channel or pattern with at least one subscriber, in the order in which they came.
type topic struct {
	name    string
	clients []*Client
}

// subscriptions are what one client has subscribed to.
type subscriptions [topicKinds]map[string]*topic

// count returns how many names the client has subscribed to: those of SSUBSCRIBE are counted apart from the others.
func (s *subscriptions) count(shard bool) int {
	switch {
	case s == nil:
		return 0
	case shard:
		return len(s[kindShard])
	}
	return len(s[kindChannel]) + len(s[kindPattern])
}

// total is the number of all subscriptions.
func (s *subscriptions) total() int { return s.count(true) + s.count(false) }

// of returns how many names of one kind the client has subscribed to.
func (s *subscriptions) of(kind topicKind) int {
	if s == nil {
		return 0
	}
	return len(s[kind])
}

// add subscribes a client. Doing it again changes nothing.
func (h *hub) add(cl *Client, kind topicKind, name []byte) {
	if cl.subs == nil {
		cl.subs = &subscriptions{}
		cl.limited = true
	}
	if cl.subs[kind][string(name)] != nil {
		return
	}
	t := h.topics[kind][string(name)]
	if t == nil {
		t = &topic{name: string(name)}
		if h.topics[kind] == nil {
			h.topics[kind] = map[string]*topic{}
		}
		h.topics[kind][t.name] = t
		if kind == kindPattern {
			h.patterns = append(h.patterns, t)
		}
	}
	t.clients = append(t.clients, cl)
	if cl.subs[kind] == nil {
		cl.subs[kind] = map[string]*topic{}
	}
	cl.subs[kind][t.name] = t
}

// remove ends a subscription, if there is one.
func (h *hub) remove(cl *Client, kind topicKind, name string) {
	if cl.subs == nil || cl.subs[kind][name] == nil {
		return
	}
	t := cl.subs[kind][name]
	delete(cl.subs[kind], name)
	if cl.subs.total() == 0 {
		cl.subs = nil
		cl.limited = cl.monitors
	}
	t.clients = slices.DeleteFunc(t.clients, func(other *Client) bool { return other == cl })
	if len(t.clients) > 0 {
		return
	}
	delete(h.topics[kind], name)
	if kind == kindPattern {
		h.patterns = slices.DeleteFunc(h.patterns, func(other *topic) bool { return other == t })
	}
}

// forget ends all of a client's subscriptions.
func (h *hub) forget(cl *Client) {
	for kind := range topicKinds {
		for _, name := range cl.subscribedTo(kind) {
			h.remove(cl, kind, name)
		}
	}
}

// subscribedTo returns the names of one kind that a client has subscribed to, sorted.
func (cl *Client) subscribedTo(kind topicKind) []string {
	if cl.subs == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(cl.subs[kind]))
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
		s.sendMessage(t, "message", channel, text)
		sent += len(t.clients)
	}
	for _, t := range h.patterns {
		if glob.Match([]byte(t.name), channel, false) {
			s.sendMessage(t, "pmessage", channel, text)
			sent += len(t.clients)
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
	s.sendMessage(t, "smessage", channel, text)
	return len(t.clients)
}

// keptMessage bounds the buffers that are kept for the next message.
const keptMessage = 64 << 10

// sendMessage sends a message to a topic's subscribers. It is written once for each protocol.
func (s *Server) sendMessage(t *topic, kind string, channel, text []byte) {
	var done [2]bool
	for _, cl := range t.clients {
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
	if cl.conn.Unsent() > s.softOutputLimit {
		s.checkOutput(cl, s.clock.Read())
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
