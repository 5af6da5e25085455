package exec

import (
	"time"

	"headgate/server/command"
	"headgate/server/observe"
	"headgate/store"
)

const (
	// MaxCronPeriod is the time between two rounds at hz 1.
	MaxCronPeriod = time.Second
	// SamplePeriod is how often the rate of commands is sampled.
	SamplePeriod = 100 * time.Millisecond

	expireAgain    = time.Millisecond // pause between slices while much is due
	ageRound       = 36_000           // SamplePeriods in which all keys are passed by for store.AgeSlice: an hour
	ageVisits      = 12               // keys passed by in each at least
	expireVisits   = 128              // keys looked at between two looks at the clock
	expireYield    = 10               // a slice in which one key in so many had expired is soon followed by the next
	clientsPerTick = 200              // clients looked at in one slice
)

// CronTimes says when each piece of the executor's own background work is due, in ns; zero: at once. The executor's lock guards it.
type CronTimes struct {
	Expire, clients, Remains, sample int64
}

// Job is a piece of background work of a part above the executor. It is called in each round, with the executor's lock held, does at most
// what command.SliceTime allows, and returns when it wants to be called next at the latest, in ns; 0: whenever that is.
type Job func(now int64) (next int64)

// Every returns the job of doing a piece of work once in a period.
func Every(period time.Duration, work func(now int64)) Job {
	due := int64(0)
	return func(now int64) int64 {
		if now >= due || due-now > int64(period) { // the clock was set back
			work(now)
			due = now + int64(period)
		}
		return due
	}
}

// Cron does the background work that is due, in slices of at most command.SliceTime, and returns how long until it wants to be
// called again. Eviction may take longer: as long as maxmemory-eviction-tenacity allows. Cron takes the executor's lock.
func (x *Executor) Cron() time.Duration {
	x.Lock()
	defer x.Unlock()
	x.Rounds.Add(1)
	now := x.Clock.Read()
	x.Keys.Tick(now / 1e6)
	x.EndPause(now)
	frozen := x.Gate.Has(command.GateFrozen) // a script that yields must find its keys as it left them, and who has paused clients all keys
	due := &x.CronAt
	period := time.Second / time.Duration(x.Config.Get().Hz)
	if now >= due.Expire {
		pause := period
		if !frozen && x.ExpireSlice(now/1e6) && !x.Gate.Has(command.GateDisk) { // or what is to be logged would pile up quickly
			pause = expireAgain
		}
		if x.expireOwn(now / 1e6) {
			pause = expireAgain
		}
		due.Expire = now + int64(pause)
	}
	if now >= due.clients {
		pause := period
		if x.ClientsSlice(now) {
			pause = expireAgain
		}
		due.clients = now + int64(pause)
	}
	if now >= due.Remains {
		pause := period
		if x.Remains.Slice() {
			pause = expireAgain
		}
		due.Remains = now + int64(pause)
	}
	forgets := x.Hub.TrackingSlice()
	if now >= due.sample {
		x.WatchMemory()
		x.evictClients(now)
		x.trim(x.Clock.Mono())
		x.giveBack(x.Clock.Mono())
		x.Keys.AgeSlice(x.Keys.Stats().Keys/ageRound + ageVisits)
		x.Stats.PeakMemory = max(x.Stats.PeakMemory, x.UsedMemory())
		due.sample = now + int64(SamplePeriod)
	}
	if x.Memory.Evicting && !frozen {
		x.makeRoom(now)
	}
	if x.Hub.Tracking.Changed {
		x.Hub.SendBroadcasts()
	}
	next := min(due.Expire, due.clients, due.Remains, due.sample, x.endTimeouts(now), x.serveWaitsApart(now))
	for _, work := range x.above.Jobs {
		if again := work(now); again != 0 {
			next = min(next, again)
		}
	}
	if x.Memory.Evicting && !frozen {
		next = now
	}
	if forgets {
		next = min(next, now+int64(expireAgain))
	}
	if x.Pause.Until > now {
		next = min(next, x.Pause.Until)
	}
	x.Effects.Feed()
	return max(time.Duration(next-now), 0)
}

// ExpireSlice deletes keys that are past their time, and gives back the memory of flushed databases. It reports whether there is
// likely much more to do. The caller holds the executor's lock.
func (x *Executor) ExpireSlice(nowMs int64) (more bool) {
	if x.LazyExpireOnly {
		return false
	}
	start := time.Now()
	defer func() {
		took := time.Since(start)
		x.Stats.ExpireNs += int64(took)
		x.Recorder.WatchLatency(observe.EventExpireCycle, took)
	}()
	seen, gone := 0, 0
	for {
		visited, expired := x.Keys.ExpireSlice(nowMs, store.MaxGrace, expireVisits)
		seen, gone = seen+visited, gone+expired
		if visited < expireVisits {
			return x.Keys.Retired() > 0
		}
		if time.Since(start) > command.SliceTime*3/4 {
			x.Stats.ExpireCaps++
			return gone*expireYield >= seen
		}
	}
}

// idle reports whether a client has done nothing for longer than a time in ns, and waits for nothing. One that receives a long reply, or sends a
// long command, does something.
func (x *Executor) idle(cl *command.Client, timeout int64) bool {
	if moved := [2]int{cl.Waiting(), cl.Conn.Unsent()}; moved != cl.Moved {
		cl.Moved, cl.Seen = moved, x.Clock.Mono()
	}
	waits := cl.Held || cl.Blocked != nil || cl.Subs != nil || cl.Monitors || cl.Primary || cl.Replicates || awaitsAnswer(cl)
	return !waits && x.Clock.Mono()-cl.Seen > timeout
}

// ClientsSlice looks after a part of the clients: those idle for too long, and those whose output stays too long. It reports
// whether this round has more clients to come. The caller holds the executor's lock; now is in ns.
func (x *Executor) ClientsSlice(now int64) (more bool) {
	t := &x.Clients
	cfg := x.Config.Get()
	begin := min(t.Hand, len(t.List))
	end := min(begin+clientsPerTick, len(t.List))
	for _, cl := range t.List[begin:end] {
		if cfg.Timeout > 0 && x.idle(cl, int64(cfg.Timeout)) {
			x.Stats.TimedOut++
			cl.Conn.CloseNow()
			continue
		}
		if cl.SoftFrom != 0 || cl.Conn.Unsent() > x.SoftOutputLimit {
			x.CheckOutput(cl)
		}
	}
	if t.Hand = end; end == len(t.List) {
		t.Hand = 0 // now, or a growing list would keep the hand at its end
		return false
	}
	return true
}
