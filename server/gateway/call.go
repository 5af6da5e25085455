package gateway

import (
	"strconv"

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
	about   about
	cmd     *command.Command
	db      *store.DB         // the client's, for what is decided here
	failure *upstream.Failure // why there is no reply
	again   bool              // way is to be sent once more
	quiet   bool              // nobody waits for the answer
	waits   bool              // it counts among Gateway.waiting

	// If it is about a plainLimit.
	form  limits.Form // also of other calls of a GCRA
	hash  uint64      // of the key
	plain scripted.Plain

	g     *Gateway
	limit *limitCall // nil: it is about no limit, or a plainLimit
	lease *leaseCall // nil: it charges none
	taken *takeCall  // kept for the next RL.TAKE; nil: there was none
	way   upstream.Call
	key   []byte // of other limits
	reply []byte // kept by what the call is about, if it does
}

// about is what a call asks.
type about interface {
	// hear takes the reply, on one of the upstream's goroutines and without any lock. It reports whether the call is to be sent again, with
	// another request.
	hear(k *call, reply []byte) (again bool)
	// tell writes the answer to the context's reply. The executor's lock is held.
	tell(k *call, c *command.Ctx)
	// fail is tell for a call without a reply, see call.failure.
	fail(k *call, c *command.Ctx)
}

// newCall returns a call for the context's command, with an empty request.
func (g *Gateway) newCall(c *command.Ctx, what about) *call {
	var k *call
	if last := len(g.free) - 1; last >= 0 {
		k, g.free[last] = g.free[last], nil
		g.free = g.free[:last]
	} else {
		k = &call{g: g}
		k.way.Owner = k
		k.Free = func() { g.release(k) }
	}
	k.about, k.cmd, k.db = what, c.Cmd, c.DB
	way := &k.way
	// All of a client's calls take the connection of its protocol, so that they run in order.
	way.Slot, way.Proto, way.DB, way.User = -1, c.Reply.Proto(), int32(c.DB.Index()), g.userOf(c.Client)
	way.Request, way.Replies, way.Script, way.Headless, way.Program, way.Deadline, way.Keeps = way.Request[:0], 1, nil, false, false, 0, false
	way.At, way.Reads = g.time(), c.Cmd.Flags&command.Write == 0
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
	if k.way.Kept || cap(k.reply) > keptBytes { // one that is kept may be a small part of something large
		k.reply = nil
	}
	g.Up.Release(&k.way)
}

// release lets a call be used again.
func (g *Gateway) release(k *call) {
	if k.about == k.taken && k.taken != nil && !k.taken.forget() {
		k.taken = nil
	}
	if k.waits {
		g.waiting--
	}
	k.about, k.failure, k.quiet, k.waits = nil, nil, false, false
	if k.lease != nil {
		g.releaseLease(k)
	}
	if k.limit != nil {
		g.releaseLimit(k)
	}
	g.letGo(k)
	if cap(k.way.Request) > keptBytes {
		k.way.Request = nil
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
	g.exec.Defer(c, &k.Answer, len(k.way.Request))
	g.Up.Send(&k.way)
}

// hear takes what the upstream has answered.
func (k *call) hear() {
	k.again = false
	switch k.failure = k.way.Err; {
	case k.failure == nil:
		reply := k.way.Reply
		if k.failure = unserved(&k.way); k.failure != nil && k.mayFallBack() {
			return
		}
		k.failure = nil
		if _, plain := k.about.(plainLimit); !plain {
			reply = k.wholeReply()
		}
		k.again = k.about.hear(k, reply)
	case k.failure.Full && k.waits: // it is asked as the others are, without waiting
		k.again = true
		k.way.Request = appendCommand(nil, withoutWait(argumentsOf(k.way.Request))...)
		k.way.At, k.way.Deadline, k.way.Keeps = upstream.Now(), 0, true
	}
}

// mayFallBack reports whether the call can be decided without its node.
func (k *call) mayFallBack() bool {
	switch k.about.(type) {
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
	if k.way.Common == nil {
		return k.way.Reply
	}
	k.reply = scripted.WholeReply(k.reply[:0], k.way.Common, k.way.Reply)
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
		k.about.fail(k, c)
	} else {
		k.about.tell(k, c)
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

// appendCommand appends a command to a request.
func appendCommand(dst []byte, args ...[]byte) []byte {
	dst = appendHeader(dst, '*', len(args))
	for _, arg := range args {
		dst = appendHeader(dst, '$', len(arg))
		dst = append(dst, arg...)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

func appendHeader(dst []byte, kind byte, n int) []byte {
	dst = append(dst, kind)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}
