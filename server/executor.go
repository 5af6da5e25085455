package server

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"headgate/server/config"
	"headgate/server/netpoll"
	"headgate/server/resp"
	"headgate/server/script"
)

const (
	// batchCommands is how many commands are parsed before they are executed: enough for their memory accesses to overlap,
	// few enough for them to stay in the nearest cache (256 cost PING 5 % more in pipelines).
	batchCommands = 64
	// keptArguments bounds the argument slices that a worker keeps between batches.
	keptArguments = 64 << 10
)

// Executor runs the commands of all clients, one after the other, and the background work between them. The executor's lock guards what is
// not said to be otherwise.
type Executor struct {
	*Core
	access   *Access
	hub      *Hub
	recorder *Recorder

	// What parts above give it when the server is made.
	effectLog   effectLog
	jobs        []job
	scriptFlags func(cmd *Command, args [][]byte) (flags script.Flags, declared bool) // of the script that a command is going to run

	buffers              resp.Buffers
	limits, unauthLimits atomic.Pointer[resp.Limits] // what readers accept

	nextClientID int64
	maxClients   int // maxclients, or less if descriptors are short
	noTouchers   int // clients whose commands are no uses of keys
	pause        pause
	blocking     blocking
	spare        []*transaction // memory for the next MULTI
	queuedArgs   [][]byte       // memory for EXEC's arguments

	memory         memoryLimit
	garbage        garbage
	lazyExpireOnly bool // DEBUG SET-ACTIVE-EXPIRE 0
	cronAt         cronTimes
	wakeAt         atomic.Int64 // ns, when background work is due although nobody knew when it was last done; see tickBy

	warnedOfBrowser int64 // ns, when the log last told of one
}

// newExecutor returns the executor of a server with the given core. Its parts above are still to be set.
func newExecutor(core *Core, recorder *Recorder, hub *Hub, access *Access) *Executor {
	x := &Executor{Core: core, recorder: recorder, hub: hub, access: access}
	x.wakeAt.Store(math.MaxInt64)
	return x
}

// machine is what there is of the machine, and how the Go runtime is made to keep to it; see Options, which has the same.
type machine struct {
	memory       uint64
	setHeapLimit func(bytes int64)
	setGCPercent func(percent int)
	freeMemory   func()
}

// use gives the executor what it needs of parts above it, before it runs anything: the log of effects, what is done between batches, which
// flags the script of a command has, and how many bytes are in use beside the keyspace.
func (x *Executor) use(m machine, log effectLog, jobs []job, flags func(*Command, [][]byte) (script.Flags, bool), outside func() uint64) {
	x.effectLog, x.jobs, x.scriptFlags = log, jobs, flags
	x.memory = memoryLimit{machine: m.memory, setHeapLimit: m.setHeapLimit, addOutside: outside}
	x.garbage.free, x.garbage.setPace = m.freeMemory, m.setGCPercent
}

// apply takes the directives over that the executor obeys; others is how many descriptors are not for clients. The caller holds the lock,
// or nothing runs yet.
func (x *Executor) apply(cfg *config.Config, others int) {
	full := resp.DefaultLimits()
	full.Bulk, full.Query = cfg.ProtoMaxBulkLen, cfg.ClientQueryBufferLimit
	narrow := resp.UnauthenticatedLimits(full)
	x.limits.Store(&full)
	x.unauthLimits.Store(&narrow)
	x.maxClients = cfg.MaxClients
	if room := maxDescriptors() - others; cfg.MaxClients > room {
		x.maxClients = max(room, 1)
		x.log.Warn("maxclients lowered to what the limit on open files leaves", "maxclients", x.maxClients, "asked", cfg.MaxClients)
	}
	x.limitMemory(cfg)
}

// effectLog is where the effects of commands are kept before they are answered. The journal is it.
type effectLog interface {
	// Unwritten reports whether there are effects that are not in the log yet. The executor's lock is held.
	Unwritten() bool
	// MakeRoom has the log see to it that it can take n bytes of effects more than there are. It returns the error for commands that write if
	// it cannot. The executor's lock is free.
	MakeRoom(n int) (refusal string)
	// Commit has all effects so far in the log, and on the disk if that is asked for. It returns the error for the commands that are not
	// there after all. The executor's lock is free.
	Commit() (refusal string)
	// CommitDue is Commit for background work. The executor's lock is free.
	CommitDue()
}

// worker runs batches for one front. Parsing needs no lock; then the executor's lock is taken once, the keys' slots are
// touched so that their cache misses overlap, and the commands are executed in each connection's order.
type worker struct {
	exec *Executor
	ctx  Ctx
	turn
	args    [][]byte
	queue   [batchCommands]parsed
	count   int        // how many of queue are in use
	last    *Command   // the last one looked up
	shape   resp.Shape // what commands are likely to repeat
	shaped  *Command   // the command of that shape
	bytes   int        // what the queued commands have come in, and their transactions
	current int        // index of the one being run
	tick    uint32     // counts commands, to choose the timed ones

	halted *netpoll.Conn // one whose commands the last batch has rewound, since they may not run yet

	taken    int       // commands parsed of the connection whose turn it is
	runs     *Client   // whose commands were run last
	turnMark int       // the length of its output at which the client's turn is over
	mark     int       // the same at which its output is looked at
	ended    *Client   // whose turn is over, although it may have more commands in the batch
	lateFrom time.Time // since when this batch has served connections that were left over; zero: not yet

	logged   bool       // effects of this batch, or some that it may have seen, are not on the disk yet
	answered []answered // the clients of this batch, if effects are logged

	ran      bool  // a batch was executed since the last Tick, so ctx.nowNs is fresh
	ticks    bool  // Tick is called, so background work is this worker's
	helps    bool  // background work is another worker's, although Tick is called
	nextCron int64 // ns

	sink uint64 // keeps the touching loads
}

// parsed is a command read from a connection and not yet executed.
type parsed struct {
	client     *Client
	cmd        *Command // nil: unknown
	from       int      // reader offset to go back to if it cannot run yet
	begin, end int32    // its arguments, in worker.args
	broken     bool     // no command: the input broke the protocol, as Client.inputErr says
	known
}

// workerOf returns the worker that a context is of.
func workerOf(c *Ctx) *worker { return c.worker.(*worker) }

// NewWorker implements netpoll.Handler.
func (x *Executor) NewWorker() netpoll.Worker { return &worker{exec: x} }

// Buffers implements netpoll.Handler.
func (x *Executor) Buffers() *resp.Buffers { return &x.buffers }

// Opened implements netpoll.Worker.
func (w *worker) Opened(c *netpoll.Conn) { w.exec.opened(c) }

// Closed implements netpoll.Worker.
func (w *worker) Closed(c *netpoll.Conn) { w.exec.closed(c) }

// Tick implements netpoll.Worker.
func (w *worker) Tick() time.Duration {
	if w.helps {
		return maxCronPeriod
	}
	w.ticks = true
	now := w.ctx.nowNs
	if !w.ran {
		now = time.Now().UnixNano()
	}
	w.ran = false
	if now >= w.nextCron || w.nextCron-now > int64(maxCronPeriod) || now >= w.exec.wakeAt.Load() {
		w.exec.wakeAt.Store(math.MaxInt64)
		w.nextCron = now + int64(w.exec.cron())
		w.exec.effectLog.CommitDue()
	}
	return time.Duration(max(min(w.nextCron, w.exec.wakeAt.Load())-now, 0))
}

// soon has background work looked after without delay. Safe to call from anywhere.
func (x *Executor) soon() {
	x.wakeAt.Store(0)
	x.hooks.nudge()
}

// Batch implements netpoll.Worker.
func (w *worker) Batch(ready []*netpoll.Conn) (served int) {
	w.taken, w.busy, w.runs, w.ended, w.lateFrom = 0, 0, nil, nil, time.Time{}
	i := 0
	for i < len(ready) {
		if w.late(ready[i]) {
			if ready[i].Carried() && w.taken == 0 {
				break
			}
			if ready[i].Postpone(); w.taken == 0 {
				ready[i].PassOver()
			}
			i, w.taken = i+1, 0
			continue
		}
		w.count, w.args, w.bytes = 0, w.args[:0], 0
		for i < len(ready) && w.count < batchCommands {
			before := ready[i].In.Offset()
			more := w.parse(ready[i])
			if w.bytes += ready[i].In.Offset() - before; more {
				break
			}
			i, w.taken = i+1, 0
		}
		w.halted = nil
		w.execute()
		if i < len(ready) && ready[i] == w.halted {
			i, w.taken = i+1, 0 // or the same commands would be read and rewound without end
		}
	}
	switch {
	case w.logged:
		w.commit()
	case len(w.answered) > 0:
		w.release()
	}
	if cap(w.args) > keptArguments {
		w.args = nil
	}
	return i
}

// late reports whether this iteration has no time left for a connection. Of those that were left over by earlier ones, one is served in
// any case: their time begins with its first command, for what is before that, as waiting for the executor's lock, may take long each time.
func (w *worker) late(conn *netpoll.Conn) bool {
	if !conn.Carried() {
		return w.busy > batchTime
	}
	return !w.lateFrom.IsZero() && time.Since(w.lateFrom) > carriedTime
}

// parse reads commands from a connection's buffer into the queue. It reports whether there may be more for a next round:
// before authentication that is after each command, since it may change what the next one is allowed to be.
func (w *worker) parse(conn *netpoll.Conn) (more bool) {
	if conn.Gone() {
		return false
	}
	cl := conn.Client.(*Client)
	if cl.multi != nil {
		w.bytes += cl.multi.Bytes()
	}
	room := min(batchCommands-w.count, turnCommands-w.taken)
	limits := w.exec.readLimits(cl)
	if limits.MultibulkUnauth > 0 {
		room = 1
	}
	for range room {
		from, begin := conn.In.Offset(), len(w.args)
		if args, ok := conn.In.Repeat(&w.shape, w.args, limits); ok {
			w.args = args
			p := &w.queue[w.count]
			w.count++
			p.client, p.from, p.begin, p.end, p.broken = cl, from, int32(begin), int32(len(args)), false
			w.take(p, w.shaped, args[begin:])
			p.shape = w.shape.Number()
			continue
		}
		args, ok, err := conn.In.Next(w.args, limits)
		if !ok && err == nil {
			if n := conn.In.Buffered(); n > 0 || cl.hasInput {
				cl.noteInput(n)
			}
			return false
		}
		w.args = args
		p := &w.queue[w.count]
		w.count++
		p.client, p.from, p.begin, p.end = cl, from, int32(begin), int32(len(args))
		if p.broken = err != nil; p.broken {
			cl.inputErr = err
			p.cmd, p.known = nil, known{}
			return false
		}
		w.prepare(p, args[begin:])
		if conn.In.Learn(&w.shape, from, args[begin:], limits) {
			w.shaped = p.cmd
		}
	}
	if w.taken += room; w.taken >= turnCommands {
		conn.Postpone()
		return false
	}
	return true
}

// Position implements ctxWorker.
func (w *worker) Position() int { return w.queue[w.current].from }

// prepare looks the command up and hashes its first key. Most commands are the same as the one before.
func (w *worker) prepare(p *parsed, args [][]byte) {
	if w.last == nil || w.last.upper != string(args[0]) {
		w.last = w.exec.commands.lookup(args[0])
	}
	w.take(p, w.last, args)
}

// take has a command be the one that is to be run, and hashes its first key.
func (w *worker) take(p *parsed, cmd *Command, args [][]byte) {
	p.cmd, p.known = cmd, known{}
	if cmd != nil && cmd.firstKey > 0 && cmd.firstKey < len(args) {
		p.hash, p.hashed = w.exec.keys.Key(args[cmd.firstKey]).Hash, true
	}
}

// execute runs the queued commands under one hold of the lock.
func (w *worker) execute() {
	if w.count == 0 {
		return
	}
	x := w.exec
	x.Lock()
	defer x.Unlock()
	if x.effects.on {
		if refusal := w.makeRoom(); refusal != "" {
			x.gate.refuse(gateDisk, refusal)
			defer x.gate.refuse(gateDisk, "") // for less there is room
		}
	}
	if x.stats.beginBatch() {
		start := time.Now()
		defer func() { x.stats.endBatch(time.Since(start)) }()
	}
	w.touch()
	w.ran, w.ended = true, nil
	c := &w.ctx
	c.core, c.worker, c.turn, c.cfg = x.Core, w, &w.turn, x.config.Get()
	outer := x.running // of a command that yields to this batch
	x.running = c
	c.nowNs = x.clock.Read()
	c.now = c.nowNs / 1e6
	x.keys.Tick(c.now)
	var current *Client
	skip := false
	for i := 0; i < w.count; i++ { // a command that yields shortens the queue
		p := &w.queue[i]
		if p.client != current {
			current, skip = p.client, false
			current.conn.Begin()
			current.seen = c.core.clock.Mono()
			c.client, c.reply = current, current.reply
			c.limitReplies(current)
			begins := current != w.runs
			late := w.late(current.conn)
			if begins && !late {
				w.beginTurn(current, p.cmd)
			}
			if x.effects.on {
				w.note(current)
			}
			if late {
				w.ended = current
				if begins {
					current.conn.PassOver()
				}
			}
		}
		if skip || current.conn.Closing() {
			continue
		}
		if current == w.ended {
			w.rewind(p)
			current.conn.Postpone()
			skip = true
			continue
		}
		if x.gate.has(gateHolds) && (current.blocked != nil || x.holdsBack(current, p.cmd, w.args[p.begin:p.end], c.nowNs)) {
			w.rewind(p)
			current.conn.Rest(c.cfg.ClientQueryBufferLimit)
			skip = true
			continue
		}
		w.current = i
		w.run(p)
		if x.gate.has(gateBlocked) {
			x.serveReady(c)
		}
	}
	c.client, c.args = nil, nil
	x.running = outer
	if x.hub.tracking.changed {
		x.hub.sendBroadcasts()
	}
	if x.buffers.Crowded() {
		x.evictClients(c.nowNs)
	}
	w.logged = w.logged || x.effects.on && x.effectLog.Unwritten()
}

const (
	// argumentRoom is what an argument takes up in the log beside its bytes.
	argumentRoom = 16
	// effectRoom is how much longer the effects of the queued commands may get than the commands before it is not certain any more that they
	// can be logged.
	effectRoom = 1 << 20
	// roomTries is how often a worker asks for room that others take at once.
	roomTries = 4
)

// makeRoom sees to it that the log can take the effects of the queued commands before any of them runs. It returns the error for those that
// write if it cannot. The executor's lock, which the caller holds, may be free meanwhile.
func (w *worker) makeRoom() (refusal string) {
	x := w.exec
	need := w.bytes + argumentRoom*len(w.args) + effectRoom
	for range roomTries {
		if x.effects.roomFor(need) || x.gate.has(gateDisk) {
			return ""
		}
		if refusal != "" {
			return refusal
		}
		x.Unlock()
		refusal = x.effectLog.MakeRoom(need)
		x.Lock()
	}
	return refusal
}

// rewind leaves a command, and what its client has sent after it, in the input until the client's connection is resumed.
func (w *worker) rewind(p *parsed) {
	conn := p.client.conn
	conn.In.Rewind(p.from)
	w.halted = conn
	n := conn.In.Buffered()
	if n > w.ctx.cfg.ClientQueryBufferLimit {
		conn.CloseNow() // it keeps sending what may not run yet
	}
	if n > 0 || p.client.hasInput {
		p.client.noteInput(n)
	}
}

// touch loads the slots of all keys of the batch, then their records, so that the misses overlap instead of adding up.
func (w *worker) touch() {
	if w.count < 2 {
		return
	}
	sum := w.sink
	for i := range w.queue[:w.count] {
		if p := &w.queue[i]; p.hashed {
			sum += p.client.db.TouchBucket(p.hash)
		}
	}
	for i := range w.queue[:w.count] {
		if p := &w.queue[i]; p.hashed {
			sum += p.client.db.TouchRecord(p.hash)
		}
	}
	w.sink = sum
}

// run executes one command and looks after its reply's size.
func (w *worker) run(p *parsed) {
	c, cl := &w.ctx, p.client
	c.cmd, c.db = p.cmd, cl.db
	c.args, c.known, c.failed = w.args[p.begin:p.end], p.known, false
	if p.broken {
		w.exec.protocolError(c, cl.inputErr)
		return
	}
	sent := cl.reply.Len()
	w.tick++
	w.inCommand = true
	w.exec.dispatch(c, w.tick%timedEvery == 0)
	w.inCommand = false
	if c.core.gate.has(gateAttended) || len(w.later) > 0 {
		c.forgetCaching(p.cmd)
		c.sendLater()
	}
	if cl.replyMode != replyOn && cl.blocked == nil {
		cl.suppressReply(sent)
	}
	if len(w.answered) > 0 && cl.reply.Len() > sent {
		w.answered[len(w.answered)-1].replies++
	}
	if cl.reply.Len() > w.mark || cl.reply.Over() || w.spent > turnTime {
		w.look(cl)
	}
	if cap(c.scratch) > maxScratch {
		c.scratch = nil
	}
}

// beginTurn begins a client's turn in this batch, with a command that may be nil.
func (w *worker) beginTurn(cl *Client, first *Command) {
	held := cl.reply.Len()
	w.runs, w.spent, w.turnMark = cl, 0, held+turnReplies
	if first != nil && first.Flags&NoAuth == 0 { // AUTH says nothing of how long the client's turns will take
		cl.conn.BeginTurn()
	}
	if cl.conn.Carried() && w.lateFrom.IsZero() {
		w.lateFrom = time.Now()
	}
	w.mark = min(w.turnMark, max(w.exec.softOutputLimit, held))
	if !cl.authenticated {
		w.mark = min(w.mark, max(unauthenticatedOutput, held))
	}
}

// look has the rest of a client's commands wait for the next iteration if its turn is over, and looks at how much it has still to read.
func (w *worker) look(cl *Client) {
	w.exec.checkOutput(cl)
	if cl.reply.Len() <= w.turnMark && w.spent <= turnTime && !cl.reply.Over() {
		w.mark = w.turnMark
		return
	}
	w.ended, w.halted = cl, cl.conn
	if w.spent > turnTime {
		cl.conn.TookLong(time.Duration(w.spent))
	}
	if cl.conn.In.Buffered() > 0 {
		cl.conn.Postpone()
	}
}

// yield serves other connections once while the context's command takes long. The executor's lock is free meanwhile, so the
// command must be at a point where nothing that it holds depends on the keyspace; and the gate must have gateBusy as a reason, so that
// most commands are refused.
func (x *Executor) yield(c *Ctx) {
	w := workerOf(c)
	w.setAside()
	conn := c.client.conn
	conn.Keep(true)
	x.Unlock()
	w.commit() // what others were answered in this batch may go out now
	conn.Yield()
	x.Lock()
	conn.Keep(false)
	c.core.rounds.Add(1)
	if c.logs() {
		w.note(c.client)
	}
}

// answered is a client whose commands a worker has run in this batch, with effects being logged.
type answered struct {
	client  *Client
	before  int // length of its output before
	replies int
	certain bool // nothing could be written when they were run, so what they were told is in the log already
}

// note adds a client to those of the batch. Its replies stay here until the batch is committed: a loop sends nothing before
// that, and other fronts are told. The caller holds the executor's lock.
func (w *worker) note(cl *Client) {
	w.answered = append(w.answered, answered{client: cl, before: cl.reply.Len(), certain: w.exec.gate.has(gateDisk)})
	if cl.conn.FD < 0 {
		cl.conn.Hold()
	}
}

// release lets the replies of a batch go that has nothing to log.
func (w *worker) release() {
	if w.answered[0].client.conn.FD < 0 {
		w.exec.Lock()
		defer w.exec.Unlock()
		w.answered[0].client.conn.Release() // such a front has one connection
	}
	clear(w.answered)
	w.answered = w.answered[:0]
}

// commit has the batch's effects logged and lets its replies go. If they cannot be logged, each reply becomes the error: a client is
// told of nothing that is not in the log. What was run after that was known has changed nothing but for keys past their time, which is
// no news to anybody. The executor's lock is free.
func (w *worker) commit() {
	refusal := w.exec.effectLog.Commit()
	w.exec.Lock()
	defer w.exec.Unlock()
	for i, a := range w.answered {
		if refusal != "" && !a.certain && !w.answeredBefore(i) {
			a.client.reply.Truncate(a.before)
			for range w.replies(i) {
				a.client.reply.Error(refusal)
			}
		}
		a.client.conn.Release()
	}
	clear(w.answered)
	w.answered, w.logged = w.answered[:0], false
}

// answeredBefore reports whether the client of w.answered[i] stands there earlier too, with replies that are not certain.
func (w *worker) answeredBefore(i int) bool {
	return slices.ContainsFunc(w.answered[:i], func(a answered) bool { return a.client == w.answered[i].client && !a.certain })
}

// replies counts the replies of w.answered[i] and of the same client after that.
func (w *worker) replies(i int) (n int) {
	for _, a := range w.answered[i:] {
		if a.client == w.answered[i].client {
			n += a.replies
		}
	}
	return n
}

// setAside takes the other clients' commands that have not been run out of the queue: they are parsed anew when it is their turn.
func (w *worker) setAside() {
	own := w.queue[w.current].client
	end := w.current + 1
	for end < w.count && w.queue[end].client == own {
		end++
	}
	previous := own
	for _, p := range w.queue[end:w.count] {
		if p.client != previous {
			p.client.conn.In.Rewind(p.from)
			previous = p.client
		}
	}
	w.count = end
}

// maxScratch bounds the buffer that a worker keeps for rendering values.
const maxScratch = 1 << 20

// helper is the Executor as a loop sees it that leaves the background work to the first.
type helper struct{ *Executor }

// NewWorker implements netpoll.Handler.
func (h helper) NewWorker() netpoll.Worker { return &worker{exec: h.Executor, helps: true} }
