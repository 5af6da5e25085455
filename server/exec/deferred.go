package exec

import (
	"sync/atomic"
	"time"

	"headgate/server/command"
	"headgate/server/resp"
)

// A command may be answered later, when another server has said what there is to answer. Its client goes on meanwhile: it may have many
// such commands under way, and its replies keep the order of its commands, so that one which is there too early is kept. A command that is
// answered here waits until nothing is under way before it, and its client is not read meanwhile.

const (
	// maxDeferred is how many answers a client may have to come before it is not read any more.
	maxDeferred = 1024
	// maxComing is how many bytes of replies a client may have to come, by what its last ones were like: who asks for much is not to keep the
	// servers that answer from others for long.
	maxComing = 1 << 20
	// firstDeferred is how many answers a client of which nothing is known yet may have to come.
	firstDeferred = 16
	// expectedDecay is the part of what a reply is expected to be by which that falls with each that is smaller.
	expectedDecay = 8
	// holdTime is for how long replies are held that are there before others to commands which came together with theirs: one write to
	// the client is to have them all.
	holdTime = 2 * time.Millisecond
	// holdBytes is how many bytes of replies are not held any longer.
	holdBytes = 8 << 10
	// keptReply bounds the memory for a reply that an answer keeps for its next use.
	keptReply = 4 << 10
	// deferredOverhead is about what an answer takes up beside its command and its reply, in bytes.
	deferredOverhead = 64
	// spareTold is how many answers of commands that were answered here are kept for the next ones.
	spareTold = 64
)

// Answer is the reply of a command that is answered later. It is part of what its owner knows of that command, and may be used again once
// the executor has let go of it. The executor's lock guards it.
type Answer struct {
	// Free, if there is one, is called when the executor has let go of the answer: by EndReply, or later if its reply waits for those of
	// commands before it. The executor's lock is held.
	Free func()
	// Leave, if there is one, is called when the client has gone before the reply was there. The executor's lock is held.
	Leave func()

	queue *deferred // of its client
	reply []byte    // if it is ready and others come first
	size  int       // of its command, in bytes
	burst uint64    // in which its command came
	ready bool
	muted bool // CLIENT REPLY leaves it out
	told  bool // its command was answered here, behind others that were not
	waits bool // the client's next commands wait for it
}

// Client is whose command it is, or nil if that client has gone.
func (a *Answer) Client() *command.Client { return a.queue.client }

// deferred are the answers that a client waits for, in the order of its commands.
type deferred struct {
	client *command.Client // nil: it has gone
	list   []*Answer       // from first on
	first  int
	bytes  int // of commands under way, and of replies that are kept
	rests  rest
	waits  bool // the last answer is one that the next commands wait for
	awaits Awaited

	expected int // bytes of a reply: as many as the largest of late

	held   bool  // there are replies that have not been sent yet, as others of their burst are to come
	listed bool  // it is in deferrals.holding
	heldAt int64 // since when, by the clock's monotonic time
}

// learn takes the size of a reply into account.
func (d *deferred) learn(size int) {
	size = max(size, 0) // a reply may have been cut
	if d.expected -= (d.expected - size) / expectedDecay; size > d.expected {
		d.expected = size
	}
}

// most is how many answers the client may have to come.
func (d *deferred) most() int { return max(1, min(maxDeferred, maxComing/max(d.expected, 1))) }

// rest is why a client's commands may not run yet.
type rest uint8

const (
	restNone rest = iota
	restFull      // as many of its answers are to come as may be, and it waits for half of them
	restAll       // it waits for all of them
)

// Bytes is what the answers take up, as a part of their client.
func (d *deferred) Bytes() int { return d.bytes + deferredOverhead*cap(d.list) }

// len is how many answers are to come, or are kept behind one that is.
func (d *deferred) len() int { return len(d.list) - d.first }

// keepsOpen reports whether the client is answered even if it sends nothing more: not if all it waits for is a command that makes it wait.
func (d *deferred) keepsOpen() bool { return d.len() > 1 || d.len() == 1 && !d.waits }

// push adds an answer at the end.
func (d *deferred) push(a *Answer) {
	if d.first > 0 && len(d.list) == cap(d.list) {
		n := copy(d.list, d.list[d.first:])
		clear(d.list[n:])
		d.list, d.first = d.list[:n], 0
	}
	d.list = append(d.list, a)
	d.bytes += a.size
}

// pop takes the first answer out.
func (d *deferred) pop() {
	d.bytes -= d.list[d.first].size
	d.list[d.first] = nil
	if d.first++; d.first == len(d.list) {
		d.list, d.first = d.list[:0], 0
	}
}

// deferrals is what the executor knows of all answers to come.
type deferrals struct {
	underWay int               // answers to come, those for clients that have gone included
	held     []*command.Client // those whose commands wait since too much is under way in all
	early    resp.Writer       // where a reply is written that others come before
	before   int               // the length of what BeginReply has returned
	spare    []*Answer         // for commands that are answered here
	holding  []*deferred       // some of which may be held no longer
	holdEnd  atomic.Int64      // ns, when they are to be looked at; 0: there are none
}

// deferredOf returns the answers that a client waits for, or nil if it has never waited for one.
func deferredOf(cl *command.Client) *deferred {
	d, _ := cl.Deferred.(*deferred)
	return d
}

// Defer has the context's command be answered later by a: its handler sends nothing. size is about what the command takes up until then,
// in bytes. [Executor.BeginReply] and [Executor.EndReply] follow, once. The executor's lock is held.
func (x *Executor) Defer(c *command.Ctx, a *Answer, size int) {
	d := deferredOf(c.Client)
	if d == nil {
		d = &deferred{client: c.Client, expected: maxComing / firstDeferred}
		c.Client.Deferred = d
	}
	a.queue, a.size, a.ready, a.muted, a.told, a.waits = d, size, false, c.Client.ReplyMode != command.ReplyModeOn, false, false
	a.burst = burstOf(c)
	if d.push(a); d.len() == 1 {
		c.Client.Conn.AwaitReplies(true)
	}
	x.deferrals.underWay++
	x.Gate.Set(command.GateDeferred, true)
}

// Awaited is what a client waits for elsewhere, and until when at the latest, in ns by the server's clock.
type Awaited struct {
	What  string
	Until int64
}

// AwaitedBy returns what a client waits for that has a command deferred by DeferWaiting, and reports whether it does. The executor's lock is held.
func AwaitedBy(cl *command.Client) (Awaited, bool) {
	if d := deferredOf(cl); d != nil && d.waits {
		return d.awaits, true
	}
	return Awaited{}, false
}

// DeferWaiting is Defer for a command that makes its client wait: its next commands run when a has been answered, and a client that sends
// nothing more has gone, as one that blocks has.
func (x *Executor) DeferWaiting(c *command.Ctx, a *Answer, size int, awaits Awaited) {
	x.Defer(c, a, size)
	a.waits, a.queue.waits, a.queue.awaits = true, true, awaits
	c.Client.Conn.AwaitReplies(a.queue.keepsOpen())
}

// burstOf numbers the commands that a worker has found together: those of one iteration.
func burstOf(c *command.Ctx) uint64 {
	if w, ok := c.Worker.(*Worker); ok {
		return w.batches
	}
	return 0
}

// BeginReply returns where the reply of a is to be written, in the client's protocol. Nothing else is to be done with a client's replies
// until EndReply. The executor's lock is held.
func (x *Executor) BeginReply(a *Answer) *resp.Writer {
	d := a.queue
	if d.client != nil && !a.muted && d.list[d.first] == a {
		x.deferrals.before = d.client.Reply.Len()
		return d.client.Reply
	}
	x.deferrals.before = 0
	early := &x.deferrals.early
	early.Reset()
	early.SetProto(resp.RESP2)
	if d.client != nil {
		early.SetProto(d.client.Reply.Proto())
		early.SetLimit(x.Config.Get().OutputLimits.Normal.Hard)
	}
	return early
}

// EndReply tells that the reply of a is written. It goes to the client with those behind it that were ready, or is kept until those before it
// are. The executor's lock is held.
func (x *Executor) EndReply(a *Answer) {
	d := a.queue
	if a.waits {
		d.waits, d.awaits = false, Awaited{}
	}
	x.deferrals.underWay--
	x.Gate.Set(command.GateDeferred, x.deferrals.underWay > 0)
	switch {
	case d.client == nil:
		x.forgetEarly()
		a.free()
	case d.list[d.first] != a:
		d.learn(x.deferrals.early.Len())
		x.keepReply(a)
	default:
		if a.muted {
			d.learn(x.deferrals.early.Len())
			x.forgetEarly()
		} else {
			d.learn(d.client.Reply.Len() - x.deferrals.before)
		}
		burst := a.burst
		d.pop()
		a.free()
		x.sendReady(d, burst)
	}
}

// free tells the owner of an answer that it may be used again.
func (a *Answer) free() {
	a.Leave = nil
	if a.queue = nil; a.Free != nil {
		a.Free()
	}
}

// forgetEarly lets go of the memory of an uncommonly long reply.
func (x *Executor) forgetEarly() {
	if early := &x.deferrals.early; early.Cap() > keptReply || early.Over() {
		*early = resp.Writer{}
	}
}

// keepReply keeps what was written for an answer until it is the first.
func (x *Executor) keepReply(a *Answer) {
	d, early := a.queue, &x.deferrals.early
	if early.Over() { // it alone is beyond client-output-buffer-limit
		x.closeForOutput(d.client, d.bytes)
	}
	a.ready = true
	switch {
	case a.muted:
		a.reply = a.reply[:0]
	case early.Len() > keptReply: // it is not copied
		a.reply, *early = early.Bytes(), resp.Writer{}
	default:
		a.reply = append(a.reply[:0], early.Bytes()...)
	}
	x.forgetEarly()
	d.bytes += len(a.reply) - a.size
	a.size = len(a.reply)
	if hard := x.Config.Get().OutputLimits.Normal.Hard; hard > 0 && d.bytes > hard && !d.client.Conn.ClosingNow() {
		x.closeForOutput(d.client, d.bytes)
	}
}

// sendReady sends the replies that wait for nothing any more, and has the client's further input looked at if it was for that. burst is that
// of the one before them.
func (x *Executor) sendReady(d *deferred, burst uint64) {
	cl := d.client
	for d.len() > 0 && d.list[d.first].ready {
		a := d.list[d.first]
		if !cl.Conn.Closing() {
			cl.Reply.Raw(a.reply)
		}
		d.pop()
		burst = a.burst
		if a.reply = a.reply[:0]; cap(a.reply) > keptReply {
			a.reply = nil
		}
		if a.told && len(x.deferrals.spare) < spareTold {
			x.deferrals.spare = append(x.deferrals.spare, a)
		}
		a.free()
	}
	if cl.Reply.Len() > x.SoftOutputLimit || cl.Reply.Over() {
		x.CheckOutput(cl)
	}
	cl.Seen = x.Clock.Mono()
	cl.Conn.AwaitReplies(d.keepsOpen())
	switch {
	case d.rests == restAll && d.len() == 0, d.rests == restFull && d.len() <= d.most()/2:
		d.rests, d.held = restNone, false
		cl.Conn.Resume()
	case d.len() > 0 && d.list[d.first].burst == burst && cl.Reply.Len() < holdBytes:
		x.hold(d)
	default:
		d.held = false
		cl.Conn.Wake()
	}
}

// hold leaves replies unsent until the others of their burst are there.
func (x *Executor) hold(d *deferred) {
	if d.held {
		return
	}
	if d.held, d.heldAt = true, x.Clock.Mono(); !d.listed {
		d.listed = true
		x.deferrals.holding = append(x.deferrals.holding, d)
	}
	if x.deferrals.holdEnd.Load() == 0 {
		x.deferrals.holdEnd.Store(x.Clock.Now + int64(holdTime))
		x.Hooks.Nudge() // the worker that looks at them may sleep, and this be another goroutine
	}
}

// sendHeld sends the replies that have been held for long enough.
func (x *Executor) sendHeld() {
	x.Lock()
	defer x.Unlock()
	wall := x.Clock.Read()
	now, end, kept := x.Clock.Mono(), int64(0), x.deferrals.holding[:0]
	for _, d := range x.deferrals.holding {
		rest := d.heldAt + int64(holdTime) - now
		if d.held && rest > 0 {
			if kept = append(kept, d); end == 0 || wall+rest < end {
				end = wall + rest
			}
			continue
		}
		if d.listed = false; d.held {
			d.held = false
			d.client.Conn.Wake()
		}
	}
	clear(x.deferrals.holding[len(kept):])
	x.deferrals.holding = kept
	x.deferrals.holdEnd.Store(end)
}

// queueReply has what a command was answered here follow the answers that come before it; sent is the length of the output before that.
func (x *Executor) queueReply(cl *command.Client, sent int) {
	d := deferredOf(cl)
	if d == nil || d.len() == 0 || cl.Reply.Len() <= sent || cl.ReplyMode != command.ReplyModeOn {
		return
	}
	var a *Answer
	if last := len(x.deferrals.spare) - 1; last >= 0 {
		a, x.deferrals.spare = x.deferrals.spare[last], x.deferrals.spare[:last]
	} else {
		a = &Answer{}
	}
	a.queue, a.ready, a.muted, a.told = d, true, false, true
	a.burst = d.list[len(d.list)-1].burst // as if it had come together with the one before
	a.reply = append(a.reply[:0], cl.Reply.Bytes()[sent:]...)
	a.size = len(a.reply)
	cl.Reply.Truncate(sent)
	d.push(a)
}

// waitsForAnswers reports whether a client's command has to wait: for the answers before it, if it is answered here or so many are to come,
// or for those of others, if too much is under way in all. The client goes on when they are there.
func (x *Executor) waitsForAnswers(cl *command.Client, p *parsed) bool {
	deferring := p.Cmd != nil && p.Cmd.Flags&command.Deferring != 0
	if d := deferredOf(cl); d != nil && d.len() > 0 {
		switch {
		case !deferring, d.waits:
			d.rests = restAll
			return true
		case d.len() >= d.most():
			d.rests = restFull
			return true
		}
	}
	if deferring && x.above.Overloaded != nil && x.above.Overloaded() {
		x.deferrals.held = append(x.deferrals.held, cl)
		return true
	}
	return false
}

// waitsForOne reports whether a client waits for a command that makes it wait.
func waitsForOne(cl *command.Client) bool {
	d := deferredOf(cl)
	return d != nil && d.waits
}

// Relieve has the clients go on whose commands have waited since too much was under way. The executor's lock is held.
func (x *Executor) Relieve() {
	for i, cl := range x.deferrals.held {
		x.deferrals.held[i] = nil
		if cl.Conn.Client == cl && !cl.Conn.Closing() {
			cl.Conn.Resume()
		}
	}
	x.deferrals.held = x.deferrals.held[:0]
}

// forgetAnswers has the answers that a client waits for go to nobody, since it has gone.
func (x *Executor) forgetAnswers(cl *command.Client) {
	d := deferredOf(cl)
	if d == nil {
		return
	}
	cl.Deferred = nil
	for _, a := range d.list[d.first:] {
		if a.ready {
			a.free()
		} else if a.Leave != nil {
			a.Leave()
		}
	}
	*d = deferred{}
}

// AnswersToCome is how many commands are to be answered later. Tests ask, of other packages too, whether all have been answered or given up. The
// executor's lock is held.
func (x *Executor) AnswersToCome() int { return x.deferrals.underWay }

// awaitsAnswer reports whether an answer is to come for a client.
func awaitsAnswer(cl *command.Client) bool {
	d := deferredOf(cl)
	return d != nil && d.len() > 0
}
