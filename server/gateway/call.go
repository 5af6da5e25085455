package gateway

import (
	"headgate/internal/respcmd"
	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/limiter/scripted"
	"headgate/server/limits"
	"headgate/server/resp"
	"headgate/server/upstream"
	"headgate/store"
)

// call is a command on its way to the answer. Calls are used again, so that none is allocated for a command. Many are under way at a time, so
// what not all of them need is elsewhere: else the processor's caches would not hold what is looked at.
type call struct {
	exec.Answer
	handler handler
	cmd     *command.Command
	db      *store.DB         // the client's, for what is decided here
	failure *upstream.Failure // why there is no reply
	again   bool              // up is to be sent once more
	quiet   bool              // nobody waits for the answer
	waits   bool              // it counts among Gateway.waiting

	// If its handler is plainLimit.
	form  limits.Form // also of other calls of a GCRA
	hash  uint64      // of the key
	plain scripted.Plain

	g     *Gateway
	limit *limitCall // nil: it asks no limit, or by plainLimit
	lease *leaseCall // nil: it charges none
	taken *takeCall  // kept for the next RL.TAKE; nil: there was none
	up    upstream.Call
	key   []byte // of other limits
	reply []byte // kept by the handler, if it keeps it
}

// handler is what makes an answer of what the upstream replies to a call.
type handler interface {
	// parseReply takes the reply, on one of the upstream's goroutines and without any lock. It reports whether the call is to be sent again, with
	// another request.
	parseReply(k *call, reply []byte) (again bool)
	// writeReply writes the answer to the context's reply. The executor's lock is held.
	writeReply(k *call, c *command.Ctx)
	// writeFailure is writeReply for a call without a reply, see call.failure.
	writeFailure(k *call, c *command.Ctx)
}

// newCall returns a call for the context's command, with an empty request.
func (g *Gateway) newCall(c *command.Ctx, what handler) *call {
	var k *call
	if last := len(g.free) - 1; last >= 0 {
		k, g.free[last] = g.free[last], nil
		g.free = g.free[:last]
	} else {
		k = &call{g: g}
		k.up.Owner = k
		k.Free = func() { g.release(k) }
	}
	k.handler, k.cmd, k.db = what, c.Cmd, c.DB
	up := &k.up
	// All of a client's calls take the connection of its protocol, so that they run in order.
	up.Slot, up.Proto, up.DB, up.User = -1, c.Reply.Proto(), int32(c.DB.Index()), g.userOf(c.Client)
	up.Request, up.Replies, up.Script, up.Headless, up.Program, up.Deadline, up.Keeps = up.Request[:0], 1, nil, false, false, 0, false
	up.At, up.Reads = g.time(), c.Cmd.Flags&command.Write == 0
	return k
}

// time is when the commands came that are being run, by upstream.Now, whose clock is read once for all of a batch.
func (g *Gateway) time() int64 {
	if mono := g.core.Clock.Mono(); mono != g.nowFor || g.now == 0 {
		g.now, g.nowFor = upstream.Now(), mono
	}
	return g.now
}

// userOf returns whose connections a client's commands take.
func (g *Gateway) userOf(cl *command.Client) *upstream.UserConn {
	if len(g.users) == 0 || cl == nil || cl.User == nil {
		return nil
	}
	return g.users[cl.User.Name()]
}

// letGo lets go of a long reply that has been told.
func (g *Gateway) letGo(k *call) {
	if k.up.Kept || cap(k.reply) > keptBytes { // one that is kept may be a small part of something large
		k.reply = nil
	}
	g.Up.Release(&k.up)
}

// release lets a call be used again.
func (g *Gateway) release(k *call) {
	if k.handler == k.taken && k.taken != nil && !k.taken.forget() {
		k.taken = nil
	}
	if k.waits {
		g.waiting--
	}
	k.handler, k.failure, k.quiet, k.waits = nil, nil, false, false
	if k.lease != nil {
		g.releaseLease(k)
	}
	if k.limit != nil {
		g.releaseLimit(k)
	}
	g.letGo(k)
	if cap(k.up.Request) > keptBytes {
		k.up.Request = nil
	}
	if len(g.free) < spareCalls && cap(k.key) <= keptBytes {
		g.free = append(g.free, k)
	}
}

// send has a call under way, or makes it part of the transaction that is put together.
func (g *Gateway) send(c *command.Ctx, k *call) {
	if g.collecting != nil {
		g.collecting.add(k)
		return
	}
	g.exec.Defer(c, &k.Answer, len(k.up.Request))
	g.Up.Send(&k.up)
}

// parseReply takes what the upstream has answered.
func (k *call) parseReply() {
	k.again = false
	switch k.failure = k.up.Err; {
	case k.failure == nil:
		reply := k.up.Reply
		if k.failure = unserved(&k.up); k.failure != nil && k.mayFallBack() {
			return
		}
		k.failure = nil
		if _, plain := k.handler.(plainLimit); !plain {
			reply = k.wholeReply()
		}
		k.again = k.handler.parseReply(k, reply)
	case k.failure.Full && k.waits: // it is asked as the others are, without waiting
		k.again = true
		k.up.Request = respcmd.Append(nil, withoutWait(argumentsOf(k.up.Request))...)
		k.up.At, k.up.Deadline, k.up.Keeps = upstream.Now(), 0, true
	}
}

// mayFallBack reports whether the call can be decided without its node.
func (k *call) mayFallBack() bool {
	switch k.handler.(type) {
	case plainLimit, leaseCharge, *takeCall:
		return true
	case askedLimit:
		return k.limit.kind != resetting && k.limit.kind != increasing
	case passedLimit:
		return k.cmd.Flags&command.DecidesFirst != 0
	}
	return false
}

// wholeReply is the reply that a call would have had by a command of its own.
func (k *call) wholeReply() []byte {
	if k.up.Common == nil {
		return k.up.Reply
	}
	k.reply = scripted.WholeReply(k.reply[:0], k.up.Common, k.up.Reply)
	return k.reply
}

// answer writes the answer of a call to w, and counts what it is.
func (g *Gateway) answer(k *call, w *resp.Writer) {
	c := &g.ctx
	c.Cmd, c.DB, c.Client, c.Reply, c.Failed = k.cmd, k.db, k.Client(), w, false
	c.Args, c.Known = nil, command.Known{}
	g.write(k, c)
	c.Client, c.Reply = nil, nil
}

// write is answer in a context that is ready.
func (g *Gateway) write(k *call, c *command.Ctx) {
	before := c.Reply.Len()
	if k.failure != nil {
		k.handler.writeFailure(k, c)
	} else {
		k.handler.writeReply(k, c)
	}
	if c.Failed {
		g.core.Stats.Commands[k.cmd.ID].Failed++
	} else if b := c.Reply.Bytes(); len(b) > before && b[before] == '-' { // an error of the upstream's, as it is
		g.core.Stats.Commands[k.cmd.ID].Failed++
		g.core.Stats.CountError(firstLine(b[before+1:]))
	}
}

// firstLine is a reply's first line, or as much of it as an error's code can be.
func firstLine(b []byte) string {
	for i, x := range b {
		if x == '\r' || i == 64 {
			return string(b[:i])
		}
	}
	return string(b)
}

// sendFailure sends why there is no reply.
func sendFailure(c *command.Ctx, f *upstream.Failure) { c.Err(command.OneLine(f.Error())) }
