package server

import (
	"container/heap"
	"container/list"
	"math"
	"time"

	"headgate/internal/shrinkmap"
	"headgate/store"
)

// A client that blocks waits in the queue of each of its keys. store tells when a key that somebody waits for has been added; the
// clients in its queue are then served in the order in which they came, after the command, transaction or script that added it,
// never in the middle. What a blocked client has sent meanwhile stays in its input.

// blocked is a client's wait while it lasts.
type blocked struct {
	blockOn
	exec   *Executor // whose queues it stands in
	client *Client
	cmd    *Command
	args   [][]byte
	places []place
	slot   int // in blocking.timeouts, if it has a time
	held   int // bytes, about
}

// place is where a client stands in the queue for one key.
type place struct {
	key     *store.Awaited
	element *list.Element
}

// blocking holds all clients that are blocked. What a client can wait for is bounded by what one command can name.
type blocking struct {
	queues   shrinkmap.Map[*store.Awaited, *list.List] // of *blocked, first come first
	timeouts timeouts
	clients  int
}

const errUnblocked = "UNBLOCKED client unblocked via CLIENT UNBLOCK"

// blockedOverhead is what a wait for one key costs beside the name, in bytes.
const blockedOverhead = 256

// block is Ctx.block.
func (x *Executor) block(c *Ctx, on blockOn) {
	b := &blocked{blockOn: on, exec: x, client: c.client, cmd: c.cmd, held: blockedOverhead}
	b.args = make([][]byte, len(c.args))
	for i, a := range c.args {
		b.args[i] = append([]byte(nil), a...)
		b.held += len(a)
	}
	b.keys = nil // the places have them
	seen := make(map[*store.Awaited]bool, len(on.keys))
	for _, name := range on.keys {
		x.remains.help()
		key := c.db.Await(x.keys.Key(name))
		if seen[key] {
			key.Release()
			continue
		}
		seen[key] = true
		queue := x.blocking.queues.Entries()[key]
		if queue == nil {
			queue = list.New()
			x.blocking.queues.Set(key, queue)
		}
		b.places = append(b.places, place{key, queue.PushBack(b)})
		b.held += blockedOverhead + key.NameBytes()
	}
	if b.until != 0 {
		heap.Push(&x.blocking.timeouts, b)
		workerOf(c).tickBy(b.until)
	}
	x.blocking.clients++
	x.gate.set(gateBlocked, x.blocking.clients > 0)
	c.client.blocked = b
}

// endWait ends a client's wait, if any. The queues may have it for longer, without effect.
func (x *Executor) endWait(cl *Client) {
	b := waitOf(cl)
	if b == nil {
		return
	}
	cl.blocked = nil
	if b.until != 0 {
		heap.Remove(&x.blocking.timeouts, b.slot)
	}
	x.blocking.clients--
	x.gate.set(gateBlocked, x.blocking.clients > 0)
	x.remains.letGo(b)
}

// TakeOut implements leftover: it takes the client out of the queues that it stands in.
func (b *blocked) TakeOut(n int) (taken int) {
	x := b.exec
	for ; taken < n && len(b.places) > 0; taken++ {
		last := len(b.places) - 1
		p := b.places[last]
		b.places[last] = place{}
		b.places = b.places[:last]
		b.held -= blockedOverhead + p.key.NameBytes()
		queue := x.blocking.queues.Entries()[p.key]
		queue.Remove(p.element)
		if queue.Len() == 0 {
			x.blocking.queues.Delete(p.key)
		}
		p.key.Release()
	}
	if len(b.places) == 0 && x.blocking.clients == 0 {
		x.keys.NextReady() // names that have become ready since are forgotten
	}
	return taken
}

// Bytes is what the wait takes up, as a part of its client.
func (b *blocked) Bytes() int { return b.held }

// waitOf returns what a client waits for, or nil.
func waitOf(cl *Client) *blocked {
	b, _ := cl.blocked.(*blocked)
	return b
}

// giveUp ends a client's wait with an error, or without one as if its time were over.
func (x *Executor) giveUp(cl *Client, refusal string, now int64) {
	before, b := cl.reply.Len(), waitOf(cl)
	switch {
	case refusal != "":
		x.stats.countError(refusal)
		cl.reply.Error(refusal)
	case b.late != nil:
		b.late(cl.reply)
	default:
		cl.reply.NullArray()
	}
	x.resume(cl, before, now)
}

// resume ends the wait of a client that has got its reply, and has its further input looked at. before is the output's length before
// the reply.
func (x *Executor) resume(cl *Client, before int, now int64) {
	x.endWait(cl)
	if cl.replyMode != replyOn {
		cl.suppressReply(before)
	}
	if cl.reply.Len() > x.softOutputLimit || cl.reply.Over() {
		x.checkOutput(cl)
	}
	cl.seen = x.clock.Mono()
	cl.conn.Resume()
}

// serveReady serves those who wait for keys that have become ready. What one client is served may make another key ready: each
// turn ends a wait or a key's readiness, so there is an end. While a script yields, it waits until the script is done.
func (x *Executor) serveReady(c *Ctx) {
	if x.gate.has(gateBusy) {
		return
	}
	key := x.keys.NextReady()
	if key == nil {
		return
	}
	outer := *c
	for ; key != nil; key = x.keys.NextReady() {
		x.serveQueue(c, key)
	}
	outer.scratch = c.scratch
	*c = outer
}

// serveQueue serves the clients that wait for a key until its value is used up. Those who cannot use it go to the end of the queue,
// as in Redis, so that everybody is looked at once.
func (x *Executor) serveQueue(c *Ctx, key *store.Awaited) {
	k, queue := key.Key(), x.blocking.queues.Entries()[key]
	for range queue.Len() {
		e, ok := key.DB().Find(k, c.now)
		first := queue.Front()
		b := first.Value.(*blocked)
		switch there := ok && b.kind == e.Kind(); {
		case b.client.blocked != b || b.client.conn.Closing():
			queue.MoveToBack(first)
		case !there && b.gone != "":
			x.giveUp(b.client, b.gone, c.nowNs)
		case !there || !x.serve(c, b, k):
			queue.MoveToBack(first)
		}
	}
}

// serve has a blocked client try a key, and reports whether its wait is over.
func (x *Executor) serve(c *Ctx, b *blocked, k store.Key) bool {
	cl := b.client
	before := cl.reply.Len()
	c.client, c.reply, c.cmd, c.args, c.db = cl, cl.reply, b.cmd, b.args, cl.db
	c.known, c.failed = known{}, false
	keys := x.keys
	changes := keys.Changes()
	c.turn.inCommand, c.quiet = true, b.quiet // so that what the client is told of its own changes follows the reply
	served := c.serveWithEffects(b, k)
	c.turn.inCommand, c.quiet = false, false
	if !served {
		return false
	}
	if b.quiet {
		keys.Discount(keys.Changes() - changes)
	}
	c.sendLater()
	if c.failed {
		x.stats.commands[c.cmd.id].failed++
	}
	x.resume(cl, before, c.nowNs)
	return true
}

// serveWithEffects has what a blocked client is served be a unit by itself, after that of the command which made it possible.
func (c *Ctx) serveWithEffects(b *blocked, k store.Key) (served bool) {
	if !c.core.effects.on {
		return b.serve(c, k)
	}
	before := c.core.effects.begin(c.core.keys, c.db)
	served = b.serve(c, k)
	c.endEffects(b.cmd, before)
	return served
}

// endTimeouts answers the clients that have waited for long enough, and returns when the next one will have, in ns.
func (x *Executor) endTimeouts(now int64) (next int64) {
	for len(x.blocking.timeouts) > 0 {
		b := x.blocking.timeouts[0]
		if b.until >= now/1e6 {
			return timeoutAt(b.until)
		}
		x.giveUp(b.client, "", now)
	}
	return math.MaxInt64
}

// timeoutAt is when a wait that lasts until a time in ms is over, in ns.
func timeoutAt(until int64) int64 {
	if until >= math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return (until + 1) * int64(time.Millisecond)
}

// tickBy has background work done when a wait is over, by whichever worker does that.
func (w *worker) tickBy(until int64) {
	x := w.exec
	x.wakeAt.Store(min(x.wakeAt.Load(), timeoutAt(until)))
	if !w.ticks {
		x.hooks.nudge()
	}
}

// timeouts is a heap of the waits that have a time, the one that is over first on top.
type timeouts []*blocked

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (t timeouts) Len() int           { return len(t) }
func (t timeouts) Less(i, j int) bool { return t[i].until < t[j].until }

func (t timeouts) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].slot, t[j].slot = i, j
}

func (t *timeouts) Push(x any) {
	b := x.(*blocked)
	b.slot = len(*t)
	*t = append(*t, b)
}

func (t *timeouts) Pop() any {
	last := len(*t) - 1
	b := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return b
}
