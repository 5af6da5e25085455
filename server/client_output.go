package server

// checkOutput closes a client whose unsent replies are over the hard limit, or have been over the soft one for its time.
func (x *Executor) checkOutput(cl *Client) {
	now := x.clock.Mono()
	limit := x.config.Get().OutputLimits.Normal
	if cl.class() == typePubSub {
		limit = x.config.Get().OutputLimits.PubSub
	}
	unsent := cl.conn.Unsent()
	switch {
	case cl.conn.ClosingNow():
	case cl.reply.Over(), limit.Hard > 0 && unsent > limit.Hard, unsent > unauthenticatedOutput && x.mustAuthenticate(cl):
		x.closeForOutput(cl, unsent)
	case limit.Soft == 0 || unsent <= limit.Soft:
		cl.softFrom = 0
	case cl.softFrom == 0:
		cl.softFrom = now
	case now-cl.softFrom > int64(limit.SoftTime):
		x.closeForOutput(cl, unsent)
	}
}

func (x *Executor) closeForOutput(cl *Client, unsent int) {
	if cl.reply.Refused() {
		x.closeForMemory(cl, uint64(unsent))
		return
	}
	x.stats.outputLimited++
	args := []any{"client", cl.id, "addr", cl.conn.Remote, "unsent", unsent}
	if cl.reply.Over() {
		args = append(args, "why", "the reply that was being made would have exceeded it")
	}
	x.log.Warn("client closed: its replies exceed client-output-buffer-limit", args...)
	cl.conn.CloseNow()
}

// limitReplies has a client's replies keep to its limit while they are made. Its own worker calls it before it runs the client's commands.
func (c *Ctx) limitReplies(cl *Client) {
	hard := c.cfg.OutputLimits.Normal.Hard
	if cl.subs != nil {
		hard = c.cfg.OutputLimits.PubSub.Hard
	}
	if hard > 0 {
		hard = max(hard-cl.conn.Staged(), 1)
	}
	cl.reply.SetLimit(hard)
	cl.aside.SetLimit(hard)
}

// unauthenticatedOutput is how much a client may leave unread before it has authenticated.
const unauthenticatedOutput = 64 << 10
