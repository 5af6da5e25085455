package exec

import (
	"math"

	"headgate/server/command"
)

// A client may also wait for what another part of the server looks after, as limiters do: for that part's own queues and times. It is blocked
// like one that waits for a key, and is served after a batch of commands, or by background work.

// Waits are the waits of clients that a part above the executor looks after. Its methods are called with the executor's lock held.
type Waits interface {
	// ServeWaits serves those whose time has come, for at most command.SliceTime, and returns when it wants to be called next, in ns:
	// math.MaxInt64 if that is not before something has happened.
	ServeWaits(c *command.Ctx) (next int64)
}

// Wait has the context's client wait: it is what parts reach as Core.Hooks.Wait. The executor's lock is held.
func (x *Executor) Wait(c *command.Ctx, w command.Waiter) {
	c.Client.Blocked = w
	x.countBlocked(1)
}

// countBlocked adds to how many clients are blocked.
func (x *Executor) countBlocked(n int) {
	x.Blocking.Clients += n
	x.Gate.Set(command.GateBlocked, x.Blocking.Clients > 0)
}

// endWaiting ends a wait that another part looks after.
func (x *Executor) endWaiting(cl *command.Client, w command.Waiter) {
	cl.Blocked = nil
	x.countBlocked(-1)
	w.Over()
}

// ServeWaiter is what parts reach as Core.Hooks.ServeWaiter, see command.Serving. The executor's lock is held.
func (x *Executor) ServeWaiter(c *command.Ctx, s command.Serving) bool {
	cmd, args := s.Waiter.Call()
	return x.attempt(c, s.Client, cmd, args, s.Try)
}

// attempt is one at serving a client that waits, in the context of the command that waits. try sends the reply and returns true, which ends the
// wait; or it sends nothing. The context is afterwards that of nobody.
func (x *Executor) attempt(c *command.Ctx, cl *command.Client, cmd *command.Command, args [][]byte, try func(c *command.Ctx) bool) (served bool) {
	before := cl.Reply.Len()
	c.Client, c.Reply, c.Cmd, c.Args, c.DB = cl, cl.Reply, cmd, args, cl.DB
	c.Known, c.Failed = command.Known{}, false
	c.Turn.InCommand = true // so that what the client is told of its own changes follows the reply
	served = tryWithEffects(c, cmd, try)
	c.Turn.InCommand = false
	if served {
		c.SendLater()
		if c.Failed {
			x.Stats.Commands[cmd.ID].Failed++
		}
		x.resume(cl, before, c.NowNs)
		workerOf(c).noteServed(cl, before)
	}
	c.Client, c.Args = nil, nil
	return served
}

// tryWithEffects has what a client is served be a unit by itself, after that of the command which made it possible.
func tryWithEffects(c *command.Ctx, cmd *command.Command, try func(c *command.Ctx) bool) (served bool) {
	if !c.Core.Effects.On {
		return try(c)
	}
	before := c.Core.Effects.Begin(c.Core.Keys, c.DB)
	served = try(c)
	c.EndEffects(cmd, before)
	return served
}

// serveWaits has those served whose time has come, if keys may change now, and returns when that is to be done next, in ns.
func (x *Executor) serveWaits(c *command.Ctx) (next int64) {
	if x.above.Waits == nil || x.Gate.Has(command.GateHalts) {
		return math.MaxInt64
	}
	outer := *c
	next = x.above.Waits.ServeWaits(c)
	outer.Scratch = c.Scratch
	*c = outer
	return next
}

// serveWaitsOfBatch is serveWaits behind a batch of commands.
func (w *Worker) serveWaitsOfBatch(c *command.Ctx) {
	if next := w.Exec.serveWaits(c); next < math.MaxInt64 {
		w.tickAt(next)
	}
}

// serveWaitsApart is serveWaits for background work.
func (x *Executor) serveWaitsApart(now int64) (next int64) {
	if !x.Gate.Has(command.GateBlocked) {
		return math.MaxInt64
	}
	c := x.contextApart(now)
	outer := x.Running
	x.Running = c
	next = x.serveWaits(c)
	x.Running = outer
	return next
}

// commitApart has what was done for clients outside of batches be logged, and lets their replies go. The executor's lock is free.
func (x *Executor) commitApart() {
	x.Lock()
	w := x.apart
	served := w != nil && len(w.answered) > 0
	x.Unlock()
	if served {
		w.commit()
	}
}

// contextApart returns a context for what is done for clients outside of batches. It is the same each time.
func (x *Executor) contextApart(now int64) *command.Ctx {
	if x.apart == nil {
		x.apart = &Worker{Exec: x, helps: true}
	}
	w := x.apart
	c := &w.Ctx
	c.Core, c.Worker, c.Turn, c.Cfg = x.Core, w, &w.Turn, x.Config.Get()
	c.NowNs, c.Now = now, now/1e6
	return c
}

// lateReply has a client whose wait is ended from outside be answered.
func (x *Executor) lateReply(cl *command.Client, w command.Waiter, now int64) {
	c := x.contextApart(now)
	c.Client, c.Reply, c.DB = cl, cl.Reply, cl.DB
	c.Cmd, c.Args = w.Call()
	c.Known, c.Failed = command.Known{}, false
	w.Late(c)
	c.Client, c.Reply, c.Args = nil, nil, nil
}

// tickAt has background work done at a time in ns, by whichever worker does that.
func (w *Worker) tickAt(at int64) {
	x := w.Exec
	if at >= x.wakeAt.Load() {
		return
	}
	x.wakeAt.Store(at)
	if !w.ticks {
		x.Hooks.Nudge()
	}
}
