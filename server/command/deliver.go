package command

import (
	"headgate/server/resp"
)

// What a client is sent that does not answer a command of its own: messages of channels, invalidations of keys that it tracks, commands
// that it monitors.

// KeptMessage bounds the buffers that are kept for the next message.
const KeptMessage = 64 << 10

// deliveryWork is what sending a client anything counts for, see Turn.Worked.
const deliveryWork = 512

// Worked is [Turn.Worked] of the command that is being run, if one is.
func (s *Core) Worked(bytes int) {
	if s.Running != nil {
		s.Running.Turn.Worked(bytes)
	}
}

// Deliver sends a client something that does not answer a command of its own, encoded in the client's protocol. The caller holds the
// executor's lock; whoever owns the connection writes it to the socket.
func (s *Core) Deliver(cl *Client, message []byte) {
	if cl.Conn.Closing() {
		return
	}
	s.Worked(deliveryWork + len(message))
	if s.IsRunning(cl) {
		cl.Pushes().Raw(message)
		return
	}
	cl.Reply.Raw(message)
	cl.Conn.Wake()
	if cl.Conn.Unsent() > s.SoftOutputLimit || cl.Reply.Over() {
		s.Hooks.LimitOutput(cl)
	}
}

// DeliverLater is Deliver, but behind the reply of the client's own command if one is running.
func (s *Core) DeliverLater(cl *Client, message []byte) {
	if s.IsRunning(cl) && s.Running.Turn.InCommand {
		t := s.Running.Turn
		if waiting := len(t.Later) + len(message); waiting > laterMax || !cl.Pushes().Allows(waiting) {
			cl.Reply.Cut()
			t.Later = nil
			return
		}
		t.Later = append(t.Later, message...)
		return
	}
	s.Deliver(cl, message)
}

// laterMax is how many bytes of messages may wait for the end of their client's command, also where its output has no limit: they are in
// nobody's buffer yet. A client that would be sent more is closed, as for its output.
const laterMax = 32 << 20

// SendLater sends the client whose command has ended what had to wait for that.
func (c *Ctx) SendLater() {
	t := c.Turn
	if len(t.Later) == 0 {
		return
	}
	if !c.Client.Conn.Closing() {
		c.Client.Pushes().Raw(t.Later)
	}
	if t.Later = t.Later[:0]; cap(t.Later) > KeptMessage {
		t.Later = nil
	}
}

// IsRunning reports whether a command of the client's is being run: its replies are sent when that has ended.
func (s *Core) IsRunning(cl *Client) bool { return s.Running != nil && s.Running.Client == cl }

// Pushes is where messages to a client belong while a command of its own runs: CLIENT REPLY does not leave them out.
func (cl *Client) Pushes() *resp.Writer {
	if cl.ReplyMode == ReplyModeOn {
		return cl.Reply
	}
	cl.Aside.SetProto(cl.Reply.Proto())
	return &cl.Aside
}

// Confined reports whether the client may run but a few commands: in RESP2 a subscriber could not tell other replies from messages.
func (cl *Client) Confined() bool {
	return cl.Subs != nil && cl.Reply.Proto() == resp.RESP2
}
