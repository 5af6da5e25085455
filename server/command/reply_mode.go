package command

// ReplyMode is what CLIENT REPLY has set.
type ReplyMode uint8

// The modes of CLIENT REPLY.
const (
	ReplyModeOn ReplyMode = iota
	ReplyModeOff
	ReplyModeSkipNext // the next command's reply is left out
	replyModeSkip     // this command's reply is left out
)

// EndReplyMode undoes CLIENT REPLY, but for what that says of the command that is being run.
func (cl *Client) EndReplyMode() {
	if cl.ReplyMode != replyModeSkip {
		cl.ReplyMode = ReplyModeOn
	}
}

// SuppressReply drops what a command has answered when CLIENT REPLY says so. before is the output's length before it.
func (cl *Client) SuppressReply(before int) {
	switch cl.ReplyMode {
	case ReplyModeSkipNext:
		cl.ReplyMode = replyModeSkip
		cl.Reply.Truncate(before)
	case replyModeSkip:
		cl.ReplyMode = ReplyModeOn
		cl.Reply.Truncate(before)
	case ReplyModeOff:
		cl.Reply.Truncate(before)
	}
	cl.SendAside()
}

// SendAside sends the messages that came during a command whose replies are left out. Where they were too many the client's output is cut, as
// if they had been sent at once.
func (cl *Client) SendAside() {
	if cl.Aside.Over() {
		cl.Reply.Cut()
	}
	cl.Reply.Raw(cl.Aside.Bytes())
	cl.Aside.Reset()
	cl.Aside.SetBuffer(nil)
}
