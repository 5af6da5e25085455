package exec

import (
	"math"
	"time"

	"headgate/server/command"
	"headgate/server/netpoll"
	"headgate/server/pubsub"
	"headgate/server/resp"
	"headgate/store"
)

const (
	// BatchCommands is how many commands are parsed before they are executed: enough for their memory accesses to overlap,
	// few enough for them to stay in the nearest cache (256 cost PING 5 % more in pipelines).
	BatchCommands = 64
	// touchedKeys is how many keys of a batch are touched beside the first of each command.
	touchedKeys = 128
	// touchedArguments is the length of the longest command whose other keys are touched.
	touchedArguments = 64
	// keptArguments bounds the argument slices that are kept between batches, and between transactions.
	keptArguments = 64 << 10
	// usualArguments is the capacity up to which such a slice is always kept. A larger one is
	// dropped after more than longUnused uses in a row that did not need it.
	usualArguments = 8 << 10
	longUnused     = 1000
)

// argumentUse is what is known of a slice that is kept for the next arguments. The zero value is ready.
type argumentUse struct {
	unused int // how often in a row it was longer than it had to be
}

// fit returns the slice to keep for the next use, or nil if it is too large, or has been larger than needed for too long.
func (u *argumentUse) fit(args [][]byte) [][]byte {
	switch u.unused++; {
	case cap(args) <= usualArguments || len(args) > usualArguments && cap(args) <= keptArguments:
		u.unused = 0
	case cap(args) > keptArguments || u.unused > longUnused:
		u.unused = 0
		return nil
	}
	return args
}

// Worker runs batches for one front. Parsing needs no lock; then the executor's lock is taken once, the keys' slots are
// touched so that their cache misses overlap, and the commands are executed in each connection's order.
type Worker struct {
	Exec         *Executor             // which runs the commands
	Ctx          command.Ctx           // of the command that is being run
	command.Turn                       // of the client whose commands are being run
	args         [][]byte              // of all queued commands, one after the other
	argsUse      argumentUse           // of args
	queue        [BatchCommands]parsed // commands that were read and have not been run
	count        int                   // how many of queue are in use

	others []otherKey            // the keys behind the first of each queued command, as many as are touched
	beside [touchedKeys]otherKey // memory for them
	places []int                 // memory for finding them

	last    *command.Command // the last one looked up
	shape   resp.Shape       // what commands are likely to repeat
	shaped  *command.Command // the command of that shape
	bytes   int              // what the queued commands have come in, and their transactions
	current int              // index of the one being run
	tick    uint32           // counts commands, to choose the timed ones

	halted *netpoll.Conn // one whose commands the last batch has rewound, since they may not run yet

	taken    int             // commands parsed of the connection whose turn it is
	runs     *command.Client // whose commands were run last
	turnMark int             // the length of its output at which the client's turn is over
	mark     int             // the same at which its output is looked at
	ended    *command.Client // whose turn is over, although it may have more commands in the batch
	lateFrom time.Time       // since when this batch has served connections that were left over; zero: not yet

	logged   bool       // effects of this batch, or some that it may have seen, are not on the disk yet
	answered []answered // the clients of this batch, and those that it has served in their waits, if effects are logged
	noted    int        // which of them is the one whose commands are being run
	holding  bool       // replies of some of them are held

	batches uint64 // that were begun, from 1 on

	ran       bool // a batch was executed since the last Tick, so Ctx.NowNs is fresh
	oneOfMany bool // it takes the executor's lock as one of many

	ticks    bool  // Tick is called, so background work is this worker's
	helps    bool  // background work is another worker's, although Tick is called
	nextCron int64 // ns

	sink uint64 // keeps the touching loads
}

// otherKey is one behind a command's first.
type otherKey struct {
	db   *store.DB
	hash uint64
}

// parsed is a command read from a connection and not yet executed.
type parsed struct {
	Client     *command.Client  // who has sent it
	Cmd        *command.Command // nil: unknown
	from       int              // reader offset to go back to if it cannot run yet
	Begin, End int32            // its arguments, in Worker.args
	broken     bool             // no command: the input broke the protocol, as Client.InputErr says
	command.Known
}

// workerOf returns the worker that a context is of.
func workerOf(c *command.Ctx) *Worker { return c.Worker.(*Worker) }

// Opened implements netpoll.Worker.
func (w *Worker) Opened(c *netpoll.Conn) {
	w.lock()
	defer w.Exec.Unlock()
	w.Exec.opened(c)
}

// Closed implements netpoll.Worker.
func (w *Worker) Closed(c *netpoll.Conn) {
	w.lock()
	defer w.Exec.Unlock()
	w.Exec.forget(c.Client.(*command.Client))
}

// Tick implements netpoll.Worker.
func (w *Worker) Tick() time.Duration {
	now := w.Ctx.NowNs
	if !w.ran {
		now = time.Now().UnixNano()
	}
	w.ran = false
	if w.helps {
		return time.Duration(w.push(now, now+int64(MaxCronPeriod)) - now)
	}
	w.ticks = true
	if now >= w.nextCron || w.nextCron-now > int64(MaxCronPeriod) || now >= w.Exec.wakeAt.Load() {
		w.Exec.wakeAt.Store(math.MaxInt64)
		w.nextCron = now + int64(w.Exec.Cron())
		w.Exec.commitApart()
		w.Exec.above.Log.CommitDue()
	}
	next := w.push(now, min(w.nextCron, w.Exec.wakeAt.Load(), w.sendHeld(now)))
	return time.Duration(max(next-now, 0))
}

// sendHeld sends replies that have been held for long enough, and returns when there may be some again.
func (w *Worker) sendHeld(now int64) (next int64) {
	end := &w.Exec.deferrals.holdEnd
	if at := end.Load(); at != 0 && (now >= at || at-now > int64(holdTime)) { // else the wall's clock has been set back
		w.Exec.sendHeld()
	}
	if at := end.Load(); at != 0 {
		return at
	}
	return math.MaxInt64
}

// push sends what replicas are due, and returns when the worker has something to do again, which is next or earlier.
func (w *Worker) push(now, next int64) int64 {
	if push := w.Exec.above.Push; push != nil {
		if again := push(now); again != 0 {
			return min(next, again)
		}
	}
	return next
}

// Batch implements netpoll.Worker.
func (w *Worker) Batch(ready []*netpoll.Conn) (served int) {
	w.taken, w.Busy, w.runs, w.ended, w.lateFrom = 0, 0, nil, nil, time.Time{}
	w.batches++
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
		w.count, w.args, w.bytes, w.others = 0, w.args[:0], 0, w.beside[:0]
		for i < len(ready) && w.count < BatchCommands {
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
	if flush := w.Exec.above.Flush; flush != nil {
		flush()
	}
	switch {
	case w.logged:
		w.commit()
	case len(w.answered) > 0:
		w.release()
	}
	w.args = w.argsUse.fit(w.args)
	return i
}

// late reports whether this iteration has no time left for a connection. Of those that were left over by earlier ones, one is served in
// any case: their time begins with its first command, for what is before that, as waiting for the executor's lock, may take long each time.
func (w *Worker) late(conn *netpoll.Conn) bool {
	if !conn.Carried() {
		return w.Busy > batchTime
	}
	return !w.lateFrom.IsZero() && time.Since(w.lateFrom) > carriedTime
}

// parse reads commands from a connection's buffer into the queue. It reports whether there may be more for a next round:
// before authentication that is after each command, since it may change what the next one is allowed to be.
func (w *Worker) parse(conn *netpoll.Conn) (more bool) {
	if conn.Gone() {
		return false
	}
	cl := conn.Client.(*command.Client)
	if cl.Multi != nil {
		w.bytes += cl.Multi.Bytes()
	}
	room := min(BatchCommands-w.count, turnCommands-w.taken)
	limits := w.Exec.readLimits(cl)
	if limits.MultibulkUnauth > 0 {
		room = 1
	}
	for range room {
		from, begin := conn.In.Offset(), len(w.args)
		if args, ok := conn.In.Repeat(&w.shape, w.args, limits); ok {
			w.args = args
			p := &w.queue[w.count]
			w.count++
			p.Client, p.from, p.Begin, p.End, p.broken = cl, from, int32(begin), int32(len(args)), false
			w.take(p, w.shaped, args[begin:])
			p.Shape = w.shape.Number()
			continue
		}
		args, ok, err := conn.In.Next(w.args, limits)
		if !ok && err == nil {
			if n := conn.In.Buffered(); n > 0 || cl.HasInput {
				cl.NoteInput(n)
			}
			if conn.In.Offset() > from && cl.Replicates {
				cl.Pinged.Store(true)
			}
			return false
		}
		w.args = args
		p := &w.queue[w.count]
		w.count++
		p.Client, p.from, p.Begin, p.End = cl, from, int32(begin), int32(len(args))
		if p.broken = err != nil; p.broken {
			cl.InputErr = err
			p.Cmd, p.Known = nil, command.Known{}
			return false
		}
		w.prepare(p, args[begin:])
		if conn.In.Learn(&w.shape, from, args[begin:], limits) {
			w.shaped = p.Cmd
		}
	}
	if w.taken += room; w.taken >= turnCommands {
		conn.Postpone()
		return false
	}
	return true
}

// Position is where the command that is being run begins, as an offset of its client's reader.
func (w *Worker) Position() int { return w.queue[w.current].from }

// prepare looks the command up and hashes its first key. Most commands are the same as the one before.
func (w *Worker) prepare(p *parsed, args [][]byte) {
	if w.last == nil || w.last.Upper != string(args[0]) {
		w.last = w.Exec.Commands.Lookup(args[0])
	}
	w.take(p, w.last, args)
}

// take has a command be the one that is to be run, and hashes its first key.
func (w *Worker) take(p *parsed, cmd *command.Command, args [][]byte) {
	p.Cmd, p.Known = cmd, command.Known{}
	if cmd != nil && cmd.FirstKey > 0 && cmd.FirstKey < len(args) {
		p.Hash, p.Hashed = w.Exec.Keys.Key(args[cmd.FirstKey]).Hash, true
		if cmd.SeveralKeys && len(args) <= touchedArguments {
			w.takeOthers(p.Client.DB, cmd, args)
		}
	}
}

// takeOthers hashes the keys behind a command's first one, as many as are touched.
func (w *Worker) takeOthers(db *store.DB, cmd *command.Command, args [][]byte) {
	w.places = cmd.Keys[0].Find(w.places[:0], args)
	for i := 1; i < len(w.places) && len(w.others) < cap(w.others); i++ {
		w.others = append(w.others, otherKey{db, w.Exec.Keys.Key(args[w.places[i]]).Hash})
	}
}

// lock takes the executor's lock.
func (w *Worker) lock() {
	if w.oneOfMany {
		w.Exec.LockAsOneOfMany()
	} else {
		w.Exec.Lock()
	}
}

// execute runs the queued commands under one hold of the lock.
func (w *Worker) execute() {
	if w.count == 0 {
		return
	}
	x := w.Exec
	w.lock()
	defer x.Unlock()
	refusal := ""
	if x.Effects.Logged {
		if refusal = w.makeRoom(); refusal != "" {
			defer x.Gate.Refuse(command.GateRoom, x.Gate.Refusal(command.GateRoom)) // that of a command which yields to this batch, or nothing
		}
	}
	if x.Stats.BeginBatch() {
		start := time.Now()
		defer func() { x.Stats.EndBatch(time.Since(start)) }()
	}
	w.touch()
	w.ran, w.ended = true, nil
	w.Turn.Pause() // it has waited for the lock
	c := &w.Ctx
	c.Core, c.Worker, c.Turn, c.Cfg = x.Core, w, &w.Turn, x.Config.Get()
	outer := x.Running // of a command that yields to this batch
	x.Running = c
	c.NowNs = x.Clock.Read()
	c.Now = c.NowNs / 1e6
	x.Keys.Tick(c.Now)
	var current *command.Client
	skip := false
	for i := 0; i < w.count; i++ { // a command that yields shortens the queue
		p := &w.queue[i]
		if p.Client != current {
			current, skip = p.Client, false
			w.turnTo(current, p.Cmd)
		}
		if skip || current.Conn.Closing() {
			continue
		}
		if current == w.ended {
			w.rewind(p)
			current.Conn.Postpone()
			skip = true
			continue
		}
		if x.Gate.Has(command.GateHolds) && w.holds(p) {
			skip = true
			continue
		}
		if refusal != "" {
			w.refuseWithoutRoom(p, refusal)
		}
		w.current = i
		w.run(p)
		if x.Gate.Has(command.GateBlocked) {
			x.serveReady(c)
		}
	}
	if x.Gate.Has(command.GateBlocked) {
		w.serveWaitsOfBatch(c)
	}
	c.Client, c.Args = nil, nil
	x.Running = outer
	if x.Hub.Tracking.Changed {
		x.Hub.SendBroadcasts()
	}
	if x.Pool.Crowded() {
		x.evictClients(c.NowNs)
	}
	if x.Effects.On {
		x.Effects.Feed()
		w.logged = w.logged || x.Effects.Logged && x.above.Log.Unwritten()
	}
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

// makeRoom sees to it that the log can take the effects of all queued commands before any of them runs. It returns an error if it cannot: then
// each of them is asked for by itself. The executor's lock, which the caller holds, may be free meanwhile.
func (w *Worker) makeRoom() (refusal string) {
	x := w.Exec
	need := w.bytes + argumentRoom*len(w.args) + effectRoom
	for range roomTries {
		if x.Effects.RoomFor(need) || x.Gate.Has(command.GateDisk) {
			return ""
		}
		if refusal != "" {
			return refusal
		}
		x.Unlock()
		refusal = x.above.Log.MakeRoom(need)
		w.lock()
	}
	return refusal
}

// holds reports whether a command may not run yet. Then it stays in its client's input, with what follows, and its client rests.
func (w *Worker) holds(p *parsed) bool {
	x, c, cl := w.Exec, &w.Ctx, p.Client
	switch {
	case cl.Blocked != nil || x.holdsBack(cl, p.Cmd, w.args[p.Begin:p.End], c.NowNs):
		w.rewind(p)
		cl.Conn.Rest(c.Cfg.ClientQueryBufferLimit)
	case x.waitsForAnswers(cl, p):
		w.rewind(p)
		if waitsForOne(cl) { // that it has gone must be seen
			cl.Conn.Rest(c.Cfg.ClientQueryBufferLimit)
		} else {
			cl.Conn.RestUnread()
		}
	default:
		return false
	}
	return true
}

// refuseWithoutRoom has a command refused, if it writes, unless the log can take the effects of this one alone: what one client writes at
// once is not to keep others from writing.
func (w *Worker) refuseWithoutRoom(p *parsed, refusal string) {
	need := effectRoom
	if p.Client.Multi != nil {
		need += p.Client.Multi.Bytes()
	}
	for _, arg := range w.args[p.Begin:p.End] {
		need += len(arg) + argumentRoom
	}
	if w.Exec.Effects.RoomFor(need) {
		refusal = ""
	}
	w.Exec.Gate.Refuse(command.GateRoom, refusal)
}

// rewind leaves a command, and what its client has sent after it, in the input until the client's connection is resumed.
func (w *Worker) rewind(p *parsed) {
	conn := p.Client.Conn
	conn.In.Rewind(p.from)
	w.halted = conn
	n := conn.In.Buffered()
	if n > w.Ctx.Cfg.ClientQueryBufferLimit {
		conn.CloseNow() // it keeps sending what may not run yet
	}
	if n > 0 || p.Client.HasInput {
		p.Client.NoteInput(n)
	}
}

// touch loads the slots of all keys of the batch, then their records, so that the misses overlap instead of adding up.
func (w *Worker) touch() {
	if w.count+len(w.others) < 2 {
		return
	}
	sum := w.sink
	for i := range w.queue[:w.count] {
		if p := &w.queue[i]; p.Hashed {
			sum += p.Client.DB.TouchBucket(p.Hash)
		}
	}
	for i := range w.others {
		sum += w.others[i].db.TouchBucket(w.others[i].hash)
	}
	for i := range w.queue[:w.count] {
		if p := &w.queue[i]; p.Hashed {
			sum += p.Client.DB.TouchRecord(p.Hash)
		}
	}
	for i := range w.others {
		sum += w.others[i].db.TouchRecord(w.others[i].hash)
	}
	w.sink = sum
}

// run executes one command and looks after its reply's size.
func (w *Worker) run(p *parsed) {
	c, cl := &w.Ctx, p.Client
	c.Cmd, c.DB = p.Cmd, cl.DB
	c.Args, c.Known, c.Failed = w.args[p.Begin:p.End], p.Known, false
	if p.broken {
		w.Exec.protocolError(c, cl.InputErr)
		return
	}
	sent := cl.Reply.Len()
	w.tick++
	w.InCommand = true
	w.Exec.dispatch(c, w.tick%command.TimedEvery == 0)
	w.InCommand = false
	if c.Core.Gate.Has(command.GateAttended|command.GateDeferred) || len(w.Later) > 0 {
		pubsub.ForgetCaching(c, p.Cmd)
		c.SendLater()
		w.Exec.queueReply(cl, sent)
	}
	if cl.ReplyMode != command.ReplyModeOn && cl.Blocked == nil {
		if cl.Replicates && cl.Reply.Len()+cl.Aside.Len() > sent {
			w.Exec.endReplica(c)
		}
		cl.SuppressReply(sent)
	}
	if len(w.answered) > 0 && cl.Reply.Len() > sent {
		w.answered[w.noted].replies++
	}
	if w.Work += workOfCommand + max(0, cl.Reply.Len()-sent); w.Work >= workUntimed {
		w.Turn.Look(time.Now(), 0)
	}
	if cl.Reply.Len() > w.mark || cl.Reply.Over() || w.Spent > turnTime {
		w.look(cl)
	}
	if cap(c.Scratch) > maxScratch {
		c.Scratch = nil
	}
}

// turnTo has the commands that follow be a client's, of which the first may be nil. If the iteration has no time left for it, its turn is over.
func (w *Worker) turnTo(cl *command.Client, first *command.Command) {
	c := &w.Ctx
	cl.Conn.Begin()
	cl.Seen = c.Core.Clock.Mono()
	c.Client, c.Reply = cl, cl.Reply
	limitReplies(c, cl)
	begins := cl != w.runs
	late := w.late(cl.Conn)
	if begins && !late {
		w.beginTurn(cl, first)
	}
	if w.Exec.Effects.Logged {
		w.note(cl)
	}
	if late {
		w.ended = cl
		if begins {
			cl.Conn.PassOver()
		}
	}
}

// beginTurn begins a client's turn in this batch, with a command that may be nil.
func (w *Worker) beginTurn(cl *command.Client, first *command.Command) {
	held := cl.Reply.Len()
	w.runs, w.turnMark = cl, held+turnReplies
	w.Turn.Next()
	if first != nil && first.Flags&command.NoAuth == 0 { // AUTH says nothing of how long the client's turns will take
		cl.Conn.BeginTurn()
	}
	if cl.Conn.Carried() && w.lateFrom.IsZero() {
		w.lateFrom = time.Now()
	}
	w.mark = min(w.turnMark, max(w.Exec.SoftOutputLimit, held))
	if !cl.Authenticated {
		w.mark = min(w.mark, max(unauthenticatedOutput, held))
	}
}

// look has the rest of a client's commands wait for the next iteration if its turn is over, and looks at how much it has still to read.
func (w *Worker) look(cl *command.Client) {
	w.Exec.CheckOutput(cl)
	if cl.Reply.Len() <= w.turnMark && w.Spent <= turnTime && !cl.Reply.Over() {
		w.mark = w.turnMark
		return
	}
	w.ended, w.halted = cl, cl.Conn
	if w.Spent > turnTime {
		cl.Conn.TookLong(time.Duration(w.Spent), time.Duration(turnTime))
	}
	if cl.Conn.In.Buffered() > 0 {
		cl.Conn.Postpone()
	}
}

// setAside takes the other clients' commands that have not been run out of the queue: they are parsed anew when it is their turn.
func (w *Worker) setAside() {
	own := w.queue[w.current].Client
	end := w.current + 1
	for end < w.count && w.queue[end].Client == own {
		end++
	}
	previous := own
	for _, p := range w.queue[end:w.count] {
		if p.Client != previous {
			p.Client.Conn.In.Rewind(p.from)
			previous = p.Client
		}
	}
	w.count = end
}

// maxScratch bounds the buffer that a worker keeps for rendering values.
const maxScratch = 1 << 20
