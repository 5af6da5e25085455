package server

import (
	"time"

	"headgate/server/script"
)

const (
	maxCronPeriod  = time.Second            // the time between two rounds at hz 1
	samplePeriod   = 100 * time.Millisecond // how often the rate of commands is sampled
	expireAgain    = time.Millisecond       // pause between slices while much is due
	ageRound       = 36_000                 // samplePeriods in which all keys are passed by for store.AgeSlice: an hour
	ageVisits      = 12                     // keys passed by in each at least
	expireVisits   = 128                    // keys looked at between two looks at the clock
	expireYield    = 10                     // a slice in which one key in so many had expired is soon followed by the next
	clientsPerTick = 200                    // clients looked at in one slice
)

// cronTimes says when each piece of background work is due, in ns.
type cronTimes struct {
	expire, clients, remains, sample int64
}

// job is a piece of background work of a part above the executor. It is called in each round, with the executor's lock held, does at most
// what sliceTime allows, and returns when it wants to be called next at the latest, in ns; 0: whenever that is.
type job func(now int64) (next int64)

// every returns the job of doing a piece of work once in a period.
func every(period time.Duration, work func(now int64)) job {
	due := int64(0)
	return func(now int64) int64 {
		if now >= due || due-now > int64(period) { // the clock was set back
			work(now)
			due = now + int64(period)
		}
		return due
	}
}

// cron does the background work that is due, in slices of at most sliceTime, and returns how long until it wants to be
// called again.
func (x *Executor) cron() time.Duration {
	x.Lock()
	defer x.Unlock()
	now := x.clock.Read()
	x.keys.Tick(now / 1e6)
	x.endPause(now)
	frozen := x.gate.has(gateFrozen) // a script that yields must find its keys as it left them, and who has paused clients all keys
	due := &x.cronAt
	period := time.Second / time.Duration(x.config.Get().Hz)
	if now >= due.expire {
		pause := period
		if !frozen && x.expireSlice(now/1e6) && !x.gate.has(gateDisk) { // or what is to be logged would pile up quickly
			pause = expireAgain
		}
		due.expire = now + int64(pause)
	}
	if now >= due.clients {
		pause := period
		if x.clientsSlice(now) {
			pause = expireAgain
		}
		due.clients = now + int64(pause)
	}
	if now >= due.remains {
		pause := period
		if x.remains.slice() {
			pause = expireAgain
		}
		due.remains = now + int64(pause)
	}
	forgets := x.hub.trackingSlice()
	if now >= due.sample {
		x.watchMemory()
		x.evictClients(now)
		x.giveBack(x.clock.Mono())
		x.keys.AgeSlice(x.keys.Stats().Keys/ageRound + ageVisits)
		x.stats.peakMemory = max(x.stats.peakMemory, x.usedMemory())
		due.sample = now + int64(samplePeriod)
	}
	if x.memory.evicting && !frozen {
		x.makeRoom(now)
	}
	if x.hub.tracking.changed {
		x.hub.sendBroadcasts()
	}
	next := min(due.expire, due.clients, due.remains, due.sample, x.endTimeouts(now))
	for _, work := range x.jobs {
		if again := work(now); again != 0 {
			next = min(next, again)
		}
	}
	if x.memory.evicting && !frozen {
		next = now
	}
	if forgets {
		next = min(next, now+int64(expireAgain))
	}
	if x.pause.until > now {
		next = min(next, x.pause.until)
	}
	return max(time.Duration(next-now), 0)
}

// expireSlice deletes keys that are past their time, and gives back the memory of flushed databases. It reports whether there is
// likely much more to do.
func (x *Executor) expireSlice(nowMs int64) (more bool) {
	if x.lazyExpireOnly {
		return false
	}
	start := time.Now()
	defer func() {
		took := time.Since(start)
		x.stats.expireNs += int64(took)
		x.recorder.watchLatency(eventExpireCycle, took)
	}()
	seen, gone := 0, 0
	for {
		visited, expired := x.keys.ExpireSlice(nowMs, expireVisits)
		seen, gone = seen+visited, gone+expired
		if visited < expireVisits {
			return x.keys.Retired() > 0
		}
		if time.Since(start) > sliceTime*3/4 {
			x.stats.expireCaps++
			return gone*expireYield >= seen
		}
	}
}

// clientsSlice looks after a part of the clients: those idle for too long, and those whose output stays too long. It reports
// whether this round has more clients to come.
func (x *Executor) clientsSlice(now int64) (more bool) {
	t := &x.clients
	cfg := x.config.Get()
	begin := min(t.hand, len(t.list))
	end := min(begin+clientsPerTick, len(t.list))
	for _, cl := range t.list[begin:end] {
		if cfg.Timeout > 0 && x.clock.Mono()-cl.seen > int64(cfg.Timeout) && !cl.held && cl.blocked == nil && cl.subs == nil {
			x.stats.timedOut++
			cl.conn.CloseNow()
			continue
		}
		if cl.softFrom != 0 || cl.conn.Unsent() > x.softOutputLimit {
			x.checkOutput(cl)
		}
	}
	if t.hand = end; end == len(t.list) {
		t.hand = 0 // now, or a growing list would keep the hand at its end
		return false
	}
	return true
}

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

// pause is what CLIENT PAUSE has set.
type pause struct {
	until  int64 // ns; 0 = not paused
	writes bool  // only commands that may write are held back
	held   []*Client
}

// holdsBack reports whether a client's command has to wait for the end of a pause. The client goes on when it ends. A command that
// will be refused does not wait for that.
func (x *Executor) holdsBack(cl *Client, cmd *Command, args [][]byte, now int64) bool {
	p := &x.pause
	if p.until == 0 || now >= p.until || cmd == nil || !cmd.arityOK(len(args)) {
		return false
	}
	if p.writes && !x.mayWrite(cl, cmd, args) {
		return false
	}
	if !cl.held {
		cl.held, cl.heldAt = true, len(p.held)
		p.held = append(p.held, cl)
	}
	return true
}

// mayWrite reports whether a command can change the keyspace, or have it changed once it is queued; for EXEC that is what was queued.
func (x *Executor) mayWrite(cl *Client, cmd *Command, args [][]byte) bool {
	if cmd.Flags&RunsQueue != 0 {
		return cl.multi != nil && transactionOf(cl).writes
	}
	if cmd.Sub != nil && len(args) > 1 {
		if sub := cmd.subcommand(args[1]); sub != nil {
			cmd = sub
		}
	}
	if flags, declared := x.declaredFlags(cmd, args); declared {
		return flags&script.NoWrites == 0
	}
	return cmd.Flags&(Write|MayReplicate) != 0
}

// declaredFlags returns the flags of the script that a command is going to run, if it is one that declares them.
func (x *Executor) declaredFlags(cmd *Command, args [][]byte) (flags script.Flags, declared bool) {
	if cmd.Runs == 0 {
		return 0, false
	}
	return x.scriptFlags(cmd, args)
}

// release forgets a client that waits for the end of the pause, since it goes.
func (p *pause) release(cl *Client) {
	if !cl.held {
		return
	}
	cl.held = false
	p.held = swapOut(p.held, cl.heldAt)
	if cl.heldAt < len(p.held) {
		p.held[cl.heldAt].heldAt = cl.heldAt
	}
}

// endPause lets the clients go on when a pause is over.
func (x *Executor) endPause(now int64) {
	p := &x.pause
	if p.until == 0 || now < p.until {
		return
	}
	held := p.held
	*p = pause{}
	x.gate.set(gatePaused, false)
	for _, cl := range held {
		cl.held = false
		if cl.conn.Client != nil && !cl.conn.Closing() {
			cl.conn.Resume()
		}
	}
}
