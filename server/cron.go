package server

import "time"

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
	x.rounds.Add(1)
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
		x.trimBuffers(x.clock.Mono())
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
