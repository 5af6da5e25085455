package exec

import (
	"headgate/server/command"
)

// CheckOutput closes a client whose unsent replies are over the hard limit, or have been over the soft one for its time. The
// caller holds the executor's lock.
func (x *Executor) CheckOutput(cl *command.Client) {
	now := x.Clock.Mono()
	limit := x.Config.Get().OutputLimits.Normal
	if cl.Type() == command.ClientTypePubSub {
		limit = x.Config.Get().OutputLimits.PubSub
	}
	unsent := cl.Conn.Unsent()
	switch {
	case cl.Conn.ClosingNow():
	case cl.Reply.Over(), limit.Hard > 0 && unsent > limit.Hard, unsent > unauthenticatedOutput && x.MustAuthenticate(cl):
		x.closeForOutput(cl, unsent)
	case limit.Soft == 0 || unsent <= limit.Soft:
		cl.SoftFrom = 0
	case cl.SoftFrom == 0:
		cl.SoftFrom = now
	case now-cl.SoftFrom > int64(limit.SoftTime):
		x.closeForOutput(cl, unsent)
	}
}

func (x *Executor) closeForOutput(cl *command.Client, unsent int) {
	if cl.Reply.Refused() {
		x.closeForMemory(cl, uint64(unsent))
		return
	}
	x.Stats.OutputLimited++
	args := []any{"client", cl.ID, "addr", cl.Conn.Remote, "unsent", unsent}
	switch {
	case cl.Reply.Over():
		args = append(args, "why", "the reply that was being made would have exceeded it")
	case x.MustAuthenticate(cl):
		args = append(args, "why", "a client that has not authenticated may leave 64 KiB unread, whatever the limit")
	}
	x.Logger.Warn("client closed: its replies exceed client-output-buffer-limit", args...)
	cl.Conn.CloseNow()
}

// limitReplies has a client's replies keep to its limit while they are made. Its own worker calls it before it runs the client's commands.
func limitReplies(c *command.Ctx, cl *command.Client) {
	hard := c.Cfg.OutputLimits.Normal.Hard
	if cl.Subs != nil {
		hard = c.Cfg.OutputLimits.PubSub.Hard
	}
	if hard > 0 {
		hard = max(hard-cl.Conn.Staged(), 1)
	}
	cl.Reply.SetLimit(hard)
	cl.Aside.SetLimit(hard)
}

// unauthenticatedOutput is how much a client may leave unread before it has authenticated.
const unauthenticatedOutput = 64 << 10
