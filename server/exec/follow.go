package exec

import (
	"sync/atomic"
	"time"

	"headgate/server/command"
	"headgate/server/netpoll"
	"headgate/server/pubsub"
	"headgate/server/resp"
)

// What a primary sends is a client's input, run by the one dispatcher; but it has been decided already. So nothing of it is refused, no key
// has expired for it, and it waits rather than being turned away while a script overruns, clients are paused or the disk is full.

const (
	// followNow is the time, in ms since the Unix epoch, at which a primary's commands look for keys: so early that nothing has expired,
	// since the primary sends a DEL when a key's time is over. Times from now on are counted from Ctx.NowNs, which is the clock's.
	followNow = 1

	followSlice = time.Millisecond // of commands' time under one hold of the executor's lock; one that is longer is run whole
	followBulk  = 512 << 20        // bytes of one argument of a primary's command
	followQuery = 4 << 30          // bytes of one whole command of a primary
	keptReplies = 1 << 20          // bytes of memory for replies that is kept, though nobody reads them
)

// Hold is why a Follower does not go on.
type Hold uint8

// The reasons.
const (
	HoldNone  Hold = iota // it does: everything that has come whole has been run
	HoldBusy              // a script overruns, clients are paused, or data are loaded
	HoldDisk              // the append-only file has no room
	HoldEnded             // it was closed, or CLIENT KILL has met it, or the server ends
)

// Follower runs the commands that a primary sends, as those of a client with the letter M in CLIENT LIST. One goroutine reads and runs them;
// what is said to need the executor's lock may be called from others.
type Follower struct {
	Client *command.Client

	exec   *Executor
	worker *Worker
	conn   *netpoll.Conn
	pool   resp.Pool
	limits resp.Limits
	ends   [BatchCommands]int64 // the offsets behind the commands of worker.queue
	end    int64                // the offset behind all that has been received

	received atomic.Int64 // end, when commands were last run
	applied  atomic.Int64 // the offset behind the last command, or whole transaction, that has been run; changed with the executor's lock held
	closed   bool         // guarded by the executor's lock

	// Relay, if not nil, is given what has been run, byte for byte as the primary has sent it. It is set before anything is received, and
	// called with the executor's lock held.
	Relay   func(p []byte)
	room    []byte // what Space has returned
	unrun   []byte // received and not given to Relay yet
	relayed int64  // the offset before it
}

// NewFollower registers a primary as a client. What it sends begins behind an offset, for a database. The caller holds the executor's lock.
func (x *Executor) NewFollower(remote, local string, offset int64, db int) *Follower {
	conn := netpoll.Detached(remote, local, false)
	x.nextClientID++
	cl := &command.Client{
		ID: x.nextClientID, Conn: conn, Reply: &conn.Out, DB: x.Keys.DB(db), Created: x.Clock.Mono(), Seen: x.Clock.Mono(),
		Primary: true, NoEvict: true,
	}
	x.Access.BecomeDefault(cl)
	conn.Client = cl
	x.Clients.Add(cl)
	w := &Worker{Exec: x}
	f := &Follower{
		Client: cl, exec: x, worker: w, conn: conn, end: offset,
		limits: resp.Limits{Inline: resp.InlineMax, Multibulk: resp.MultibulkMax, Bulk: followBulk, Query: followQuery},
	}
	f.received.Store(offset)
	f.applied.Store(offset)
	f.relayed = offset
	return f
}

// Close forgets the primary's connection, and with it a transaction that has not come whole. Nothing that it has sent is run any more. The
// caller holds the executor's lock.
func (f *Follower) Close() {
	if !f.closed {
		f.closed = true
		f.exec.forget(f.Client)
	}
}

// Applied is the offset behind what has been run. It may be asked by anybody.
func (f *Follower) Applied() int64 { return f.applied.Load() }

// Received is the offset behind what has come, as of the last commands. It may be asked by anybody.
func (f *Follower) Received() int64 { return f.received.Load() }

// Space returns room to read into.
func (f *Follower) Space() []byte {
	f.room = f.conn.In.Space(&f.pool)
	return f.room
}

// Take tells that n bytes have been read into the room.
func (f *Follower) Take(n int) {
	if f.Relay != nil {
		f.unrun = append(f.unrun, f.room[:n]...)
	}
	f.conn.In.Received(n)
	f.end += int64(n)
}

// Release gives back the memory of what was read: nothing is run any more.
func (f *Follower) Release() {
	f.conn.In.Release(&f.pool)
	f.pool.Drain()
}

// Run runs the commands that have come whole, in slices between which others have their turn, and has what they change logged. What cannot
// be run yet, as the reason says, is run by the next call. The error is that of bytes which are no commands.
func (f *Follower) Run() (Hold, error) {
	for {
		err := f.parse()
		if f.worker.count == 0 {
			f.conn.In.Compact(&f.pool)
			return HoldNone, err
		}
		if why := f.runSlice(); why != HoldNone {
			return why, nil
		}
		if f.worker.logged {
			f.worker.commit()
		}
	}
}

// parse reads commands into the worker's queue.
func (f *Follower) parse() error {
	w, in := f.worker, &f.conn.In
	w.count, w.args, w.bytes = 0, w.argsUse.fit(w.args)[:0], 0
	for w.count < BatchCommands {
		from, begin := in.Offset(), len(w.args)
		args, ok, err := in.Next(w.args, &f.limits)
		if err != nil || !ok {
			return err
		}
		w.args = args
		p := &w.queue[w.count]
		p.Client, p.from, p.Begin, p.End, p.broken = f.Client, from, int32(begin), int32(len(args)), false
		if cmd := f.exec.Commands.ByOwnName(args[begin]); cmd != nil { // whatever clients have to call it by
			w.take(p, cmd, args[begin:])
		} else {
			w.prepare(p, args[begin:])
		}
		f.ends[w.count] = f.end - int64(in.Buffered())
		w.bytes += in.Offset() - from
		w.count++
	}
	return nil
}

// runSlice runs queued commands under one hold of the executor's lock; those for which there is no time left are parsed anew.
func (f *Follower) runSlice() Hold {
	w, x := f.worker, f.exec
	x.Lock()
	defer x.Unlock()
	if why := f.holds(); why != HoldNone {
		f.conn.In.Rewind(w.queue[0].from)
		return why
	}
	f.received.Store(f.end)
	w.touch()
	w.Turn.Pause()
	w.Turn.Next()
	c, cl := &w.Ctx, f.Client
	c.Core, c.Worker, c.Turn, c.Cfg, c.Client, c.Reply = x.Core, w, &w.Turn, x.Config.Get(), cl, cl.Reply
	c.NowNs = x.Clock.Read()
	x.Keys.Tick(c.NowNs / 1e6)
	cl.Seen = x.Clock.Mono()
	x.Running = c
	for i := 0; i < w.count; i++ {
		w.current = i
		f.run(&w.queue[i])
		if cl.Multi == nil {
			f.applied.Store(f.ends[i])
		}
		if x.Gate.Has(command.GateBlocked) {
			x.serveReady(c)
		}
		if i+1 < w.count && (w.Spent > int64(followSlice) || f.conn.Closing() || f.closed) {
			f.conn.In.Rewind(w.queue[i+1].from)
			break
		}
	}
	x.Running, c.Client, c.Args = nil, nil, nil
	f.relay()
	if x.Hub.Tracking.Changed {
		x.Hub.SendBroadcasts()
	}
	w.logged = x.Effects.Logged && x.above.Log.Unwritten() || len(w.answered) > 0
	return HoldNone
}

// relay gives Relay what has been run since the last time.
func (f *Follower) relay() {
	n := int(f.applied.Load() - f.relayed)
	if f.Relay == nil || n == 0 {
		return
	}
	f.Relay(f.unrun[:n])
	f.relayed += int64(n)
	if f.unrun = append(f.unrun[:0], f.unrun[n:]...); cap(f.unrun) > keptReplies && len(f.unrun) == 0 {
		f.unrun = nil
	}
}

// holds returns why no commands may be run now.
func (f *Follower) holds() Hold {
	x := f.exec
	if f.mayGo() && x.Effects.Logged && (x.Gate.Has(command.GateDisk) || f.worker.makeRoom() != "") {
		return HoldDisk
	}
	switch { // making room may have let others have the lock
	case f.closed || f.conn.Closing() || x.IsStopping():
		return HoldEnded
	case x.Gate.Has(command.GateHalts):
		return HoldBusy
	}
	return HoldNone
}

// mayGo reports whether nothing but the disk may be in the way.
func (f *Follower) mayGo() bool {
	return !f.closed && !f.conn.Closing() && !f.exec.IsStopping() && !f.exec.Gate.Has(command.GateHalts)
}

// run runs one command. Nobody reads its reply.
func (f *Follower) run(p *parsed) {
	w, x, cl := f.worker, f.exec, f.Client
	c := &w.Ctx
	c.Cmd, c.DB, c.Now = p.Cmd, cl.DB, followNow
	c.Args, c.Known, c.Failed = w.args[p.Begin:p.End], p.Known, false
	w.tick++
	w.InCommand = true
	x.dispatch(c, w.tick%command.TimedEvery == 0)
	w.InCommand = false
	if x.Gate.Has(command.GateAttended) || len(w.Later) > 0 {
		pubsub.ForgetCaching(c, p.Cmd)
		c.SendLater()
	}
	if cl.Reply.Reset(); cl.Reply.Cap() > keptReplies {
		cl.Reply.SetBuffer(nil)
	}
	if cap(c.Scratch) > maxScratch {
		c.Scratch = nil
	}
}
