package server

import "headgate/server/resp"

// What a client is sent that does not answer a command of its own: messages of channels, invalidations of keys that it tracks, commands
// that it monitors.

// keptMessage bounds the buffers that are kept for the next message.
const keptMessage = 64 << 10

// deliver sends a client something that does not answer a command of its own, encoded in the client's protocol. The caller holds the
// executor's lock; whoever owns the connection writes it to the socket.
func (s *Core) deliver(cl *Client, message []byte) {
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
		s.hooks.limitOutput(cl)
	}
}

// deliverLater is deliver, but behind the reply of the client's own command if one is running.
func (s *Core) deliverLater(cl *Client, message []byte) {
	if s.isRunning(cl) && s.running.turn.inCommand {
		t := s.running.turn
		t.later = append(t.later, message...)
		return
	}
	s.deliver(cl, message)
}

// sendLater sends the client whose command has ended what had to wait for that.
func (c *Ctx) sendLater() {
	t := c.turn
	if len(t.later) == 0 {
		return
	}
	if !c.client.conn.Closing() {
		c.client.pushes().Raw(t.later)
	}
	if t.later = t.later[:0]; cap(t.later) > keptMessage {
		t.later = nil
	}
}

// isRunning reports whether a command of the client's is being run: its replies are sent when that has ended.
func (s *Core) isRunning(cl *Client) bool { return s.running != nil && s.running.client == cl }

// pushes is where messages to a client belong while a command of its own runs: CLIENT REPLY does not leave them out.
func (cl *Client) pushes() *resp.Writer {
	if cl.replyMode == replyOn {
		return cl.reply
	}
	cl.aside.SetProto(cl.reply.Proto())
	return &cl.aside
}

// confined reports whether the client may run but a few commands: in RESP2 a subscriber could not tell other replies from messages.
func (cl *Client) confined() bool {
	return cl.subs != nil && cl.reply.Proto() == resp.RESP2
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

// suppressReply drops what a command has answered when CLIENT REPLY says so. before is the output's length before it.
func (cl *Client) suppressReply(before int) {
	switch cl.replyMode {
	case replySkipNext:
		cl.replyMode = replySkip
		cl.reply.Truncate(before)
	case replySkip:
		cl.replyMode = replyOn
		cl.reply.Truncate(before)
	case replyOff:
		cl.reply.Truncate(before)
	}
	cl.sendAside()
}

// sendAside sends the messages that came during a command whose replies are left out.
func (cl *Client) sendAside() {
	cl.reply.Raw(cl.aside.Bytes())
	cl.aside.SetBuffer(nil)
}
