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
	sliceTime      = 100 * time.Microsecond // how long a slice of background work may hold the lock
	expireVisits   = 128                    // keys looked at between two looks at the clock
	expireYield    = 10                     // a slice in which one key in so many had expired is soon followed by the next
	clientsPerTick = 200                    // clients looked at in one slice
)

// cronTimes says when each piece of background work is due, in ns.
type cronTimes struct {
	expire, clients, remains, sample int64
}

// cron does the background work that is due, in slices of at most sliceTime, and returns how long until it wants to be
// called again.
func (s *Server) cron() time.Duration {
	s.Lock()
	defer s.Unlock()
	now := s.clock.Read()
	s.keys.Tick(now / 1e6)
	s.endPause(now)
	frozen := s.gate.has(gateFrozen) // a script that yields must find its keys as it left them, and who has paused clients all keys
	due := &s.cronAt
	period := time.Second / time.Duration(s.config.Get().Hz)
	if now >= due.expire {
		pause := period
		if !frozen && s.expireSlice(now/1e6) && !s.gate.has(gateDisk) { // or what is to be logged would pile up quickly
			pause = expireAgain
		}
		due.expire = now + int64(pause)
	}
	if now >= due.clients {
		pause := period
		if s.clientsSlice(now) {
			pause = expireAgain
		}
		due.clients = now + int64(pause)
	}
	if now >= due.remains {
		pause := period
		if s.remains.slice() {
			pause = expireAgain
		}
		due.remains = now + int64(pause)
	}
	forgets := s.trackingSlice()
	if now >= due.sample {
		s.watchMemory()
		s.evictClients(now)
		s.giveBack(s.clock.Mono())
		s.keys.AgeSlice(s.keys.Stats().Keys/ageRound + ageVisits)
		traffic := s.traffic()
		s.stats.sample(s.clock.Mono(), traffic.BytesIn, traffic.BytesOut)
		s.savePoints(s.clock.Mono())
		s.retryRewrite()
		s.top.goOn(s.clock.Mono())
		s.takeSample(now)
		s.stats.peakMemory = max(s.stats.peakMemory, s.usedMemory())
		due.sample = now + int64(samplePeriod)
	}
	if s.memory.evicting && !frozen {
		s.makeRoom(now)
	}
	if s.tracking.changed {
		s.sendBroadcasts()
	}
	next := min(due.expire, due.clients, due.remains, due.sample, s.endTimeouts(now))
	if again := s.snapshotSlice(now); again != 0 {
		next = min(next, again)
	}
	if s.memory.evicting && !frozen {
		next = now
	}
	if forgets {
		next = min(next, now+int64(expireAgain))
	}
	if s.pause.until > now {
		next = min(next, s.pause.until)
	}
	return max(time.Duration(next-now), 0)
}

// expireSlice deletes keys that are past their time, and gives back the memory of flushed databases. It reports whether there is
// likely much more to do.
func (s *Server) expireSlice(nowMs int64) (more bool) {
	if s.lazyExpireOnly {
		return false
	}
	start := time.Now()
	defer func() {
		took := time.Since(start)
		s.stats.expireNs += int64(took)
		s.watchLatency(eventExpireCycle, took)
	}()
	seen, gone := 0, 0
	for {
		visited, expired := s.keys.ExpireSlice(nowMs, expireVisits)
		seen, gone = seen+visited, gone+expired
		if visited < expireVisits {
			return s.keys.Retired() > 0
		}
		if time.Since(start) > sliceTime*3/4 {
			s.stats.expireCaps++
			return gone*expireYield >= seen
		}
	}
}

// clientsSlice looks after a part of the clients: those idle for too long, and those whose output stays too long. It reports
// whether this round has more clients to come.
func (s *Server) clientsSlice(now int64) (more bool) {
	t := &s.clients
	cfg := s.config.Get()
	begin := min(t.hand, len(t.list))
	end := min(begin+clientsPerTick, len(t.list))
	for _, cl := range t.list[begin:end] {
		if cfg.Timeout > 0 && s.clock.Mono()-cl.seen > int64(cfg.Timeout) && !cl.held && cl.blocked == nil && cl.subs == nil {
			s.stats.timedOut++
			cl.conn.CloseNow()
			continue
		}
		if cl.softFrom != 0 || cl.conn.Unsent() > s.softOutputLimit {
			s.checkOutput(cl)
		}
	}
	if t.hand = end; end == len(t.list) {
		t.hand = 0 // now, or a growing list would keep the hand at its end
		return false
	}
	return true
}

// checkOutput closes a client whose unsent replies are over the hard limit, or have been over the soft one for its time.
func (s *Server) checkOutput(cl *Client) {
	now := s.clock.Mono()
	limit := s.config.Get().OutputLimits.Normal
	if cl.class() == typePubSub {
		limit = s.config.Get().OutputLimits.PubSub
	}
	unsent := cl.conn.Unsent()
	switch {
	case cl.conn.ClosingNow():
	case cl.reply.Over(), limit.Hard > 0 && unsent > limit.Hard, unsent > unauthenticatedOutput && s.mustAuthenticate(cl):
		s.closeForOutput(cl, unsent)
	case limit.Soft == 0 || unsent <= limit.Soft:
		cl.softFrom = 0
	case cl.softFrom == 0:
		cl.softFrom = now
	case now-cl.softFrom > int64(limit.SoftTime):
		s.closeForOutput(cl, unsent)
	}
}

func (s *Server) closeForOutput(cl *Client, unsent int) {
	if cl.reply.Refused() {
		s.closeForMemory(cl, uint64(unsent))
		return
	}
	s.stats.outputLimited++
	args := []any{"client", cl.id, "addr", cl.conn.Remote, "unsent", unsent}
	if cl.reply.Over() {
		args = append(args, "why", "the reply that was being made would have exceeded it")
	}
	s.log.Warn("client closed: its replies exceed client-output-buffer-limit", args...)
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
func (s *Server) holdsBack(cl *Client, cmd *Command, args [][]byte, now int64) bool {
	p := &s.pause
	if p.until == 0 || now >= p.until || cmd == nil || !cmd.arityOK(len(args)) {
		return false
	}
	if p.writes && !s.mayWrite(cl, cmd, args) {
		return false
	}
	if !cl.held {
		cl.held, cl.heldAt = true, len(p.held)
		p.held = append(p.held, cl)
	}
	return true
}

// mayWrite reports whether a command can change the keyspace, or have it changed once it is queued; for EXEC that is what was queued.
func (s *Server) mayWrite(cl *Client, cmd *Command, args [][]byte) bool {
	if cmd.Flags&RunsQueue != 0 {
		return cl.multi != nil && transactionOf(cl).writes
	}
	if cmd.Sub != nil && len(args) > 1 {
		if sub := cmd.sub(args[1]); sub != nil {
			cmd = sub
		}
	}
	if flags, declared := s.scripts.declared(cmd, args); declared {
		return flags&script.NoWrites == 0
	}
	return cmd.Flags&(Write|MayReplicate) != 0
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
func (s *Server) endPause(now int64) {
	p := &s.pause
	if p.until == 0 || now < p.until {
		return
	}
	held := p.held
	*p = pause{}
	s.gate.set(gatePaused, false)
	for _, cl := range held {
		cl.held = false
		if cl.conn.Client != nil && !cl.conn.Closing() {
			cl.conn.Resume()
		}
	}
}
