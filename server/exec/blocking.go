package exec

import (
	"container/heap"
	"math"
	"time"

	"headgate/server/command"
	"headgate/store"
)

// A client that blocks waits in the queue of each of its keys. The store reports when a key that somebody waits for has been added; the
// clients in its queue are then served in the order in which they came, after the command, transaction or script that added it,
// never in the middle. What a blocked client has sent meanwhile stays in its input.

// blocked is a client's wait while it lasts.
type blocked struct {
	command.BlockOn
	exec   *Executor // whose queues it stands in
	client *command.Client
	cmd    *command.Command
	args   [][]byte
	places []store.Wait // in the queues of its keys
	slot   int          // in blocking.timeouts, if it has a time
	held   int          // bytes, about
}

// blocking holds all clients that are blocked. What a client can wait for is bounded by what one command can name.
type blocking struct {
	Timeouts timeouts // the waits that have a time
	Clients  int      // that are blocked
	told     int      // of which so many are to be told when a key has gone
}

// ErrUnblocked is what a client is answered whom CLIENT UNBLOCK ERROR has made give up.
const ErrUnblocked = "UNBLOCKED client unblocked via CLIENT UNBLOCK"

// blockedOverhead is what a wait for one key costs beside the name, in bytes.
const blockedOverhead = 256

// Block has the context's client wait for keys: it is what commands reach as Core.Hooks.Block. The executor's lock is held.
func (x *Executor) Block(c *command.Ctx, on command.BlockOn) {
	b := &blocked{BlockOn: on, exec: x, client: c.Client, cmd: c.Cmd, args: command.CopyArgs(c.Args), held: blockedOverhead}
	for _, a := range b.args {
		b.held += len(a)
	}
	b.Keys = nil // the places have them
	places, n := make([]store.Wait, len(on.Keys)), 0
	for _, name := range on.Keys {
		x.Remains.Help()
		if places[n].By = b; c.DB.Await(x.Keys.Key(name), &places[n]) {
			b.held += blockedOverhead + len(name)
			n++
		}
	}
	b.places = places[:n]
	if b.Until != 0 {
		heap.Push(&x.Blocking.Timeouts, b)
		workerOf(c).tickBy(b.Until)
	}
	if b.Gone != "" {
		x.Blocking.told++
	}
	x.countBlocked(1)
	c.Client.Blocked = b
}

// EndWait ends a client's wait, if any. The queues may have it for longer, without effect. The caller holds the executor's lock.
func (x *Executor) EndWait(cl *command.Client) {
	if w, ok := cl.Blocked.(command.Waiter); ok {
		x.endWaiting(cl, w)
		return
	}
	b := waitOf(cl)
	if b == nil {
		return
	}
	cl.Blocked = nil
	if b.Until != 0 {
		heap.Remove(&x.Blocking.Timeouts, b.slot)
	}
	if b.Gone != "" {
		x.Blocking.told--
	}
	x.countBlocked(-1)
	x.Remains.LetGo(b)
}

// TakeOut takes the client out of up to n of the queues that it stands in, as [command.Core].Remains asks for, and returns how many.
func (b *blocked) TakeOut(n int) (taken int) {
	x := b.exec
	for ; taken < n && len(b.places) > 0; taken++ {
		last := len(b.places) - 1
		p := &b.places[last]
		b.held -= blockedOverhead + p.Awaited().NameBytes()
		p.Leave()
		b.places = b.places[:last]
	}
	if len(b.places) == 0 && x.Blocking.Clients == 0 {
		x.Keys.NextReady() // names that have become ready since are forgotten
	}
	return taken
}

// Bytes is what the wait takes up, as a part of its client.
func (b *blocked) Bytes() int { return b.held }

// waitOf returns what a client waits for, or nil.
func waitOf(cl *command.Client) *blocked {
	b, _ := cl.Blocked.(*blocked)
	return b
}

// GiveUp ends a client's wait with an error, or without one as if its time were over. The caller holds the executor's lock; now is in ns.
func (x *Executor) GiveUp(cl *command.Client, refusal string, now int64) {
	before, b := cl.Reply.Len(), waitOf(cl)
	switch {
	case refusal != "":
		x.Stats.CountError(refusal)
		cl.Reply.Error(refusal)
	case b == nil:
		x.lateReply(cl, cl.Blocked.(command.Waiter), now)
	case b.Late != nil:
		b.Late(cl.Reply)
	default:
		cl.Reply.NullArray()
	}
	x.resume(cl, before, now)
}

// resume ends the wait of a client that has got its reply, and has its further input looked at. before is the output's length before
// the reply.
func (x *Executor) resume(cl *command.Client, before int, now int64) {
	x.EndWait(cl)
	if cl.ReplyMode != command.ReplyModeOn {
		cl.SuppressReply(before)
	}
	if cl.Reply.Len() > x.SoftOutputLimit || cl.Reply.Over() {
		x.CheckOutput(cl)
	}
	cl.Seen = x.Clock.Mono()
	cl.Conn.Resume()
}

// serveReady serves those who wait for keys that have become ready. What one client is served may make another key ready: each
// turn ends a wait or a key's readiness, so there is an end. While a script yields, it waits until the script is done.
func (x *Executor) serveReady(c *command.Ctx) {
	if x.Gate.Has(command.GateBusy) {
		return
	}
	key := x.Keys.NextReady()
	if key == nil {
		return
	}
	outer := *c
	for ; key != nil; key = x.Keys.NextReady() {
		x.serveQueue(c, key)
	}
	outer.Scratch = c.Scratch
	*c = outer
}

// serveQueue serves the clients that wait for a key until its value is used up. Those who cannot use it go to the end of the queue, so that
// everybody is looked at once, and keep their order, as in Redis: in the end they stand before those who have not been looked at.
func (x *Executor) serveQueue(c *command.Ctx, key *store.Awaited) {
	k, passed := key.Key(), 0
	for range key.Waits() {
		e, ok := key.DB().Find(k, c.Now)
		if !ok && x.Blocking.told == 0 {
			key.Return(passed)
			return
		}
		first := key.First()
		b := first.By.(*blocked)
		switch there := ok && b.Kind == e.Kind(); {
		case b.client.Blocked != b || b.client.Conn.Closing():
		case !there && b.Gone != "":
			x.GiveUp(b.client, b.Gone, c.NowNs)
		case there:
			x.serve(c, b, k)
		}
		if key.First() == first { // one that was answered may be taken out later
			first.ToBack()
			passed++
		}
	}
}

// serve has a blocked client try a key, and reports whether its wait is over.
func (x *Executor) serve(c *command.Ctx, b *blocked, k store.Key) (served bool) {
	changes := x.Keys.Changes()
	c.Quiet = b.Quiet
	served = x.attempt(c, b.client, b.cmd, b.args, func(c *command.Ctx) bool { return b.Serve(c, k) })
	c.Quiet = false
	if served && b.Quiet {
		x.Keys.Discount(x.Keys.Changes() - changes)
	}
	return served
}

// endTimeouts answers the clients that have waited for long enough, or as many of them as a slice allows, and returns when the next one will
// have, in ns.
func (x *Executor) endTimeouts(now int64) (next int64) {
	start := time.Now()
	for ended := 1; len(x.Blocking.Timeouts) > 0; ended++ {
		b := x.Blocking.Timeouts[0]
		if b.Until >= now/1e6 {
			return timeoutAt(b.Until)
		}
		x.GiveUp(b.client, "", now)
		if ended%timeoutsLook == 0 && time.Since(start) > command.SliceTime*3/4 {
			return now
		}
	}
	return math.MaxInt64
}

// timeoutsLook is how many clients are answered between two looks at the clock.
const timeoutsLook = 16

// timeoutAt is when a wait that lasts until a time in ms is over, in ns.
func timeoutAt(until int64) int64 {
	if until >= math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return (until + 1) * int64(time.Millisecond)
}

// tickBy has background work done when a wait is over, by whichever worker does that.
func (w *Worker) tickBy(until int64) {
	w.tickAt(timeoutAt(until))
}

// timeouts is a heap of the waits that have a time, the one that is over first on top.
type timeouts []*blocked

// Len implements heap.Interface.
func (t timeouts) Len() int { return len(t) }

// Less implements heap.Interface.
func (t timeouts) Less(i, j int) bool { return t[i].Until < t[j].Until }

// Swap implements heap.Interface.
func (t timeouts) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].slot, t[j].slot = i, j
}

// Push implements heap.Interface.
func (t *timeouts) Push(x any) {
	b := x.(*blocked)
	b.slot = len(*t)
	*t = append(*t, b)
}

// Pop implements heap.Interface.
func (t *timeouts) Pop() any {
	last := len(*t) - 1
	b := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return b
}
