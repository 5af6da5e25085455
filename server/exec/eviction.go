package exec

import (
	"cmp"
	"math"
	"slices"
	"time"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/host"
	"headgate/server/observe"
	"headgate/server/script"
	"headgate/store"
)

const (
	containerShare = 75                     // percent of what the process may have that maxmemory is when nobody says
	heapShare      = 90                     // percent of it that the Go heap and what lies outside it may fill together
	leastHeap      = 32 << 20               // bytes that the Go heap may always have
	heapSteps      = 64                     // the heap's limit is moved when it is off by one part in so many
	looseHeap      = 150                    // percent of maxmemory that all may fill where only that is known, and
	looseMargin    = 64 << 20               // bytes beyond that
	sweepAgain     = 100 * time.Millisecond // how soon keys past their time are looked for once more, before others go
	sweepVisits    = 1024                   // steps of that between two looks at the clock
	sweepRounds    = 2                      // times that the hand passes the last database in one, wherever it begins
	evictLooks     = 16                     // keys that go between two looks at the clock
	clientsShare   = 20                     // percent of what the process may have that maxmemory-clients is when nobody says
	evictAgain     = 10 * time.Millisecond  // how soon after some clients were closed others may be
	shortageTold   = time.Hour              // how soon the log says again that maxmemory is reached: where keys are evicted that is so all the time

	linearTenacity = 10                    // up to this maxmemory-eviction-tenacity is in steps of
	tenacityStep   = 50 * time.Microsecond // and beyond it each step is longer by
	tenacityGrowth = 1.15

	// FullTenacity is the maxmemory-eviction-tenacity at which keys go without end.
	FullTenacity = 100
)

// memoryLimit is the limit that maxmemory sets, and how far the server is from it. The executor's lock guards it.
type memoryLimit struct {
	Machine uint64         // bytes that the process may have, by its container or its own limits; 0 = as many as there are
	Max     uint64         // bytes that data and connections may take up; 0 = no limit
	clients uint64         // bytes that the buffers of all clients may take up together; 0 = no limit
	Evict   bool           // keys may go
	How     store.Eviction // which
	Slice   time.Duration  // for how long at a time

	evictedAt    int64             // ns, when it was last looked whether clients have to go
	Evicting     bool              // keys are to go also without a command
	sweptAt      int64             // ns, when no key was left that was past its time
	sweepGoal    uint64            // store.Keyspace.Sweeps when such a search will be over; 0: none is under way
	since        int64             // ns since when more than Max is in use without a break; 0 = it is not
	toldAt       int64             // ns, when the log last said so; 0 = never
	heapLimit    int64             // the limit that the Go runtime has been given, by
	AddOutside   func() uint64     // adds up Core.Outside, see Hooks.OutsideMemory; a test may know it beforehand
	SetHeapLimit func(bytes int64) // nil: the runtime's limit is left alone
}

// limitMemory takes the directives over. The caller holds the lock, or nothing runs yet.
func (x *Executor) limitMemory(cfg *config.Config) {
	m := &x.Memory
	before := m.Max
	switch {
	case cfg.MaxMemory > 0:
		m.Max = uint64(cfg.MaxMemory)
	case cfg.MaxMemory < 0:
		m.Max = share(cmp.Or(m.Machine, host.SystemMemory()), -cfg.MaxMemory)
	default:
		m.Max = share(m.Machine, containerShare)
	}
	policy := cfg.MaxMemoryPolicy
	m.Evict = policy != config.NoEviction
	m.How = store.Eviction{By: evictBy(policy), Volatile: policy.Volatile(), Samples: cfg.MaxMemorySamples}
	m.Slice = Tenacity(cfg.MaxMemoryTenacity)
	x.CountsUses = policy.CountsUses()
	if x.CountsUses {
		x.Keys.CountUses(&store.UseCounts{LogFactor: cfg.LFULogFactor, DecayMinutes: cfg.LFUDecayTime})
	} else {
		x.Keys.CountUses(nil)
	}
	m.clients = x.clientsLimit(cfg)
	x.Pool.SetLimit(int64(min(m.clients, math.MaxInt64)))
	x.WatchMemory()
	if m.Max == 0 {
		x.endShortage(x.Clock.Now)
	}
	if m.Max == 0 || m.Max == before {
		return
	}
	if cfg.MaxMemory == 0 {
		x.Logger.Info("maxmemory is a share of the memory that the process may have", "maxmemory", m.Max, "limit", m.Machine, "percent", containerShare)
	}
	if used := x.UsedMemory(); used > m.Max && !x.Gate.Has(command.GateLoading) {
		x.tellShortage(x.Clock.Now, used)
		m.Evicting = m.Evict
		x.Soon()
	}
}

// tellShortage has the log say that maxmemory is reached.
func (x *Executor) tellShortage(now int64, used uint64) {
	x.Memory.toldAt = now
	x.Logger.Warn("more memory is in use than maxmemory allows; keys are evicted or writes are refused, depending on maxmemory-policy",
		"maxmemory", x.Memory.Max, "used", used, "policy", x.Config.Get().MaxMemoryPolicy.String())
}

// share is so many percent of a number.
func share(n uint64, percent int) uint64 { return n / 100 * uint64(percent) }

func evictBy(policy config.EvictionPolicy) store.EvictBy {
	switch policy {
	case config.VolatileLFU, config.AllKeysLFU:
		return store.EvictRare
	case config.VolatileRandom, config.AllKeysRandom:
		return store.EvictRandom
	case config.VolatileTTL:
		return store.EvictSoon
	default:
		return store.EvictIdle
	}
}

// Tenacity is for how long keys may go at a time, by maxmemory-eviction-tenacity.
func Tenacity(n int) time.Duration {
	switch {
	case n >= FullTenacity:
		return math.MaxInt64
	case n <= linearTenacity:
		return time.Duration(n) * tenacityStep
	}
	return time.Duration(float64(linearTenacity*tenacityStep) * math.Pow(tenacityGrowth, float64(n-linearTenacity)))
}

// WatchMemory adds up what is in use beside the keyspace, and has the Go runtime know what it may have. It is called ten times a second,
// with the executor's lock held.
func (x *Executor) WatchMemory() {
	m := &x.Memory
	stats := x.Keys.Stats()
	x.Outside = m.AddOutside()
	crowded := x.Keys.Crowded()
	x.Gate.Set(command.GateCrowded, crowded)
	limited := m.Max > 0 || crowded
	x.Gate.Set(command.GateMemory, limited)
	if !limited {
		x.Gate.Set(command.GateShort, false)
	}
	x.limitHeap(stats.ArenaResident + uint64(x.Pool.Used()))
}

// limitHeap has the Go runtime collect garbage more often when memory is short. It does not see what lies outside its heap.
func (x *Executor) limitHeap(outside uint64) {
	m := &x.Memory
	budget := share(m.Machine, heapShare)
	if m.Max > 0 {
		loose := share(m.Max, looseHeap) + looseMargin
		budget = min(cmp.Or(budget, loose), loose)
	}
	limit := int64(math.MaxInt64)
	if budget > 0 {
		limit = max(int64(budget)-int64(outside), leastHeap)
	}
	if m.SetHeapLimit == nil || limit == m.heapLimit || m.heapLimit != 0 && max(limit, m.heapLimit)-min(limit, m.heapLimit) < m.heapLimit/heapSteps {
		return
	}
	m.SetHeapLimit(limit)
	m.heapLimit = limit
}

// lacksMemory makes room before a command runs, and reports whether the command has to be refused because there is none.
func (x *Executor) lacksMemory(c *command.Ctx) bool {
	if x.Gate.Has(command.GateFrozen) {
		return false
	}
	short := x.Gate.Has(command.GateCrowded) && x.Keys.Full(demand(c)) || x.Memory.Max > 0 && !x.makeRoom(c.NowNs)
	x.Gate.Set(command.GateShort, short)
	if !short {
		return false
	}
	if c.Cmd.Flags&command.RunsQueue != 0 {
		return c.Client.Multi != nil && TransactionOf(c.Client).grows
	}
	return x.needsMemory(c) || c.Client.Multi != nil && c.Cmd.Flags&command.DropsQueue == 0 && !mayBeQueued(c)
}

// KeysCrowded has each command asked how many addresses it may need, as the store wants it to. The caller holds the lock.
func (x *Executor) KeysCrowded() {
	x.Gate.Set(command.GateCrowded, true)
	x.Gate.Set(command.GateMemory, true)
}

// demand is how many chunks of the keyspace's addresses a command may need; those of a transaction's commands together.
func demand(c *command.Ctx) int {
	if c.Cmd.Flags&command.RunsQueue != 0 && c.Client.Multi != nil {
		return TransactionOf(c.Client).demand.Chunks()
	}
	var d store.Demand
	d.Add(c.Args)
	return d.Chunks()
}

// refusesToAdd refuses a command that may add more keys than the keyspace has addresses for, whoever sends it: nothing can be added then,
// neither by a script that has begun to write nor by a primary. The caller sees to it that this is asked whenever it may be so, which is where
// GateCrowded holds, or the command has very many arguments.
func (x *Executor) refusesToAdd(c *command.Ctx) bool {
	if !c.Cmd.WantsAddresses() || !x.Keys.Full(demand(c)) {
		return false
	}
	c.Err(command.ErrOOM)
	return true
}

// queuedWithoutRoom is how many bytes of limiters' calls a transaction may queue while no memory is left.
const queuedWithoutRoom = 64 << 10

// mayBeQueued reports whether the command may wait for EXEC though no memory is left, as limiters may, within bounds.
func mayBeQueued(c *command.Ctx) bool {
	return c.Cmd.AsksForRoom() && c.Client.Multi.Bytes() <= queuedWithoutRoom
}

// needsMemory reports whether the command may need more memory. A script that declares its flags says so itself.
func (x *Executor) needsMemory(c *command.Ctx) bool {
	flags, declared := x.declaredFlags(c.Cmd, c.Args)
	return c.Cmd.WantsMemory() || declared && flags&(script.AllowOOM|script.NoWrites) == 0
}

// makeRoom has keys go while more memory is in use than maxmemory, for as long as maxmemory-eviction-tenacity allows at a time. It
// returns false if there are none left that may go. Keys past their time go first.
func (x *Executor) makeRoom(now int64) bool {
	m := &x.Memory
	if x.UsedMemory() <= m.Max {
		x.endShortage(now)
		return true
	}
	if m.since == 0 {
		m.since = now
		if m.toldAt == 0 || now >= m.toldAt+int64(shortageTold) {
			x.tellShortage(now, x.UsedMemory())
		}
	}
	start := time.Now()
	defer x.Recorder.WatchLatencySince(observe.EventEvictionCycle, start)
	late := func() bool { return time.Since(start) >= m.Slice }
	for !x.LazyExpireOnly && now >= m.sweptAt+int64(sweepAgain) {
		if m.sweepGoal == 0 {
			m.sweepGoal = x.Keys.Sweeps() + sweepRounds
		}
		if x.Keys.ExpireSlice(now/1e6, 0, sweepVisits); x.Keys.Sweeps() >= m.sweepGoal {
			m.sweptAt, m.sweepGoal = now, 0
		}
		if x.UsedMemory() <= m.Max {
			x.endShortage(now)
			return true
		}
		if late() {
			return x.continueEvicting()
		}
	}
	if !m.Evict {
		m.Evicting = false
		return false
	}
	for n := 1; x.UsedMemory() > m.Max; n++ {
		if !x.Keys.Evict(m.How, now/1e6, x.keyEvicted) {
			m.Evicting = false
			return false
		}
		if n%evictLooks == 0 && late() {
			return x.continueEvicting()
		}
	}
	x.endShortage(now)
	return true
}

// continueEvicting has the rest go between batches.
func (x *Executor) continueEvicting() bool {
	if !x.Memory.Evicting {
		x.Memory.Evicting = true
		x.Soon()
	}
	return true
}

// endShortage notes that no more memory is in use than may be.
func (x *Executor) endShortage(now int64) {
	m := &x.Memory
	m.Evicting = false
	if m.since != 0 {
		x.Stats.EvictingNs += now - m.since
		m.since = 0
	}
}

// Shortage is for how long more than maxmemory has been in use at a time in ns; 0: there is no shortage.
func (m *memoryLimit) Shortage(now int64) time.Duration {
	if m.since == 0 {
		return 0
	}
	return time.Duration(now - m.since)
}

// keyEvicted is called for every key that is evicted.
func (x *Executor) keyEvicted(db *store.DB, name []byte) { x.PropagateGone(db, name) }

// clientsLimit returns how many bytes the buffers of all clients may take up together, or 0 if nothing bounds them.
func (x *Executor) clientsLimit(cfg *config.Config) (bytes uint64) {
	switch n := cfg.MaxMemoryClients; {
	case n > 0:
		return uint64(n)
	case n < 0:
		bytes = share(x.Memory.Max, -n)
	}
	return cmp.Or(bytes, share(cmp.Or(x.Memory.Machine, host.SystemMemory()), clientsShare))
}

// evictClients closes the largest clients while all take up more than they may.
func (x *Executor) evictClients(now int64) {
	limit := x.Memory.clients
	if limit == 0 || now < x.Memory.evictedAt+int64(evictAgain) {
		return
	}
	x.Memory.evictedAt = now
	used := uint64(0) // what remains of those that are gone or go already nobody else has to make up for
	largest := make([]sizedClient, 0, len(x.Clients.List))
	for _, cl := range x.Clients.List {
		if cl.Conn.ClosingNow() {
			continue
		}
		size := uint64(cl.Memory())
		used += size
		if !cl.NoEvict && !cl.Replicates {
			largest = append(largest, sizedClient{cl, size})
		}
	}
	if used <= limit {
		return
	}
	slices.SortFunc(largest, func(a, b sizedClient) int { return cmp.Compare(b.size, a.size) })
	for _, cl := range largest {
		if used <= limit {
			return
		}
		used -= min(cl.size, used)
		x.closeForMemory(cl.Client, cl.size)
	}
}

// closeForMemory closes a client because all of them take up too much.
func (x *Executor) closeForMemory(cl *command.Client, bytes uint64) {
	x.Stats.EvictedClients++
	x.Logger.Warn("client closed: the buffers of all clients exceed maxmemory-clients", "client", cl.ID, "addr", cl.Conn.Remote, "bytes", bytes)
	cl.Conn.CloseNow()
}

// sizedClient is a client with what its buffers take up.
type sizedClient struct {
	*command.Client
	size uint64
}
