package server

import (
	"cmp"
	"math"
	"slices"
	"time"

	"headgate/server/config"
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

	linearTenacity = 10                    // up to this maxmemory-eviction-tenacity is in steps of
	tenacityStep   = 50 * time.Microsecond // and beyond it each step is longer by
	tenacityGrowth = 1.15
	fullTenacity   = 100 // without end
)

// memoryLimit is what maxmemory comes to, and how far the server is from it. The executor's lock guards it.
type memoryLimit struct {
	machine uint64         // bytes that the process may have, by its container or its own limits; 0 = as many as there are
	max     uint64         // bytes that data and connections may take up; 0 = no limit
	clients uint64         // bytes that the buffers of all clients may take up together; 0 = no limit
	evict   bool           // keys may go
	how     store.Eviction // which
	slice   time.Duration  // for how long at a time

	evictedAt    int64             // ns, when it was last looked whether clients have to go
	evicting     bool              // keys are to go also without a command
	sweptAt      int64             // ns, when no key was left that was past its time
	sweepGoal    uint64            // store.Keyspace.Sweeps when such a search will be over; 0: none is under way
	since        int64             // ns since when more than max is in use without a break; 0 = it is not
	heapLimit    int64             // what the Go runtime has been told, by
	addOutside   func() uint64     // adds up Core.outside; a test may know it beforehand
	setHeapLimit func(bytes int64) // nil: it is not told
}

// limitMemory takes the directives over. The caller holds the lock, or nothing runs yet.
func (x *Executor) limitMemory(cfg *config.Config) {
	m := &x.memory
	before := m.max
	switch {
	case cfg.MaxMemory > 0:
		m.max = uint64(cfg.MaxMemory)
	case cfg.MaxMemory < 0:
		m.max = share(cmp.Or(m.machine, systemMemory()), -cfg.MaxMemory)
	default:
		m.max = share(m.machine, containerShare)
	}
	policy := cfg.MaxMemoryPolicy
	m.evict = policy != config.NoEviction
	m.how = store.Eviction{By: evictBy(policy), Volatile: policy.Volatile(), Samples: cfg.MaxMemorySamples}
	m.slice = tenacity(cfg.MaxMemoryTenacity)
	x.countsUses = policy.CountsUses()
	if x.countsUses {
		x.keys.CountUses(&store.UseCounts{LogFactor: cfg.LFULogFactor, DecayMinutes: cfg.LFUDecayTime})
	} else {
		x.keys.CountUses(nil)
	}
	m.clients = x.clientsLimit(cfg)
	x.buffers.SetLimit(int64(min(m.clients, math.MaxInt64)))
	x.watchMemory()
	if m.max == 0 || m.max == before {
		return
	}
	if cfg.MaxMemory == 0 {
		x.log.Info("maxmemory is a share of the memory that the process may have", "maxmemory", m.max, "limit", m.machine, "percent", containerShare)
	}
	if used := x.usedMemory(); used > m.max && !x.gate.has(gateLoading) {
		x.log.Warn("more memory is in use than maxmemory allows; keys go or writes are refused, as maxmemory-policy says",
			"maxmemory", m.max, "used", used, "policy", policy.String())
		m.evicting = m.evict
		x.soon()
	}
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

// tenacity is how long keys may go at a time.
func tenacity(n int) time.Duration {
	switch {
	case n >= fullTenacity:
		return math.MaxInt64
	case n <= linearTenacity:
		return time.Duration(n) * tenacityStep
	}
	return time.Duration(float64(linearTenacity*tenacityStep) * math.Pow(tenacityGrowth, float64(n-linearTenacity)))
}

// watchMemory adds up what is in use beside the keyspace, and has the Go runtime know what it may have. It is called ten times a second.
func (x *Executor) watchMemory() {
	m := &x.memory
	stats := x.keys.Stats()
	x.outside = m.addOutside()
	limited := m.max > 0 || x.keys.Full() // soon
	x.gate.set(gateMemory, limited)
	if !limited {
		x.gate.set(gateShort, false)
	}
	x.limitHeap(stats.ArenaResident + uint64(x.buffers.Used()))
}

// limitHeap has the Go runtime collect garbage more often when memory is short. It does not see what lies outside its heap.
func (x *Executor) limitHeap(outside uint64) {
	m := &x.memory
	budget := share(m.machine, heapShare)
	if m.max > 0 {
		loose := share(m.max, looseHeap) + looseMargin
		budget = min(cmp.Or(budget, loose), loose)
	}
	limit := int64(math.MaxInt64)
	if budget > 0 {
		limit = max(int64(budget)-int64(outside), leastHeap)
	}
	if m.setHeapLimit == nil || limit == m.heapLimit || m.heapLimit != 0 && max(limit, m.heapLimit)-min(limit, m.heapLimit) < m.heapLimit/heapSteps {
		return
	}
	m.setHeapLimit(limit)
	m.heapLimit = limit
}

// lacksMemory makes room before a command runs, and reports whether the command has to be refused because there is none.
func (x *Executor) lacksMemory(c *Ctx) bool {
	if x.gate.has(gateFrozen) {
		return false
	}
	short := x.keys.Full() || x.memory.max > 0 && !x.makeRoom(c.nowNs)
	x.gate.set(gateShort, short)
	if !short {
		return false
	}
	if c.cmd.Flags&RunsQueue != 0 {
		return c.client.multi != nil && transactionOf(c.client).grows
	}
	return x.needsMemory(c) || c.client.multi != nil && c.cmd.Flags&DropsQueue == 0 && !c.mayBeQueued()
}

// queuedWithoutRoom is how many bytes of limiters' calls a transaction may queue while no memory is left.
const queuedWithoutRoom = 64 << 10

// mayBeQueued reports whether the command may wait for EXEC though no memory is left, as limiters may, within bounds.
func (c *Ctx) mayBeQueued() bool {
	return c.cmd.asksForRoom() && c.client.multi.Bytes() <= queuedWithoutRoom
}

// needsMemory reports whether the command may need more memory. A script that declares its flags says so itself.
func (x *Executor) needsMemory(c *Ctx) bool {
	flags, declared := x.declaredFlags(c.cmd, c.args)
	return c.cmd.wantsMemory() || declared && flags&(script.AllowOOM|script.NoWrites) == 0
}

// makeRoom has keys go while more memory is in use than maxmemory, for as long as maxmemory-eviction-tenacity allows at a time. It
// returns false if there are none left that may go. Keys past their time go first.
func (x *Executor) makeRoom(now int64) bool {
	m := &x.memory
	if x.usedMemory() <= m.max {
		m.evicting = false
		x.endShortage(now)
		return true
	}
	if m.since == 0 {
		m.since = now
	}
	start := time.Now()
	defer x.recorder.watchLatencySince(eventEvictionCycle, start)
	late := func() bool { return time.Since(start) >= m.slice }
	for !x.lazyExpireOnly && now >= m.sweptAt+int64(sweepAgain) {
		if m.sweepGoal == 0 {
			m.sweepGoal = x.keys.Sweeps() + sweepRounds
		}
		if x.keys.ExpireSlice(now/1e6, sweepVisits); x.keys.Sweeps() >= m.sweepGoal {
			m.sweptAt, m.sweepGoal = now, 0
		}
		if x.usedMemory() <= m.max {
			return true
		}
		if late() {
			return x.continueEvicting()
		}
	}
	if !m.evict {
		return false
	}
	for n := 1; x.usedMemory() > m.max; n++ {
		if !x.keys.Evict(m.how, now/1e6, x.keyEvicted) {
			m.evicting = false
			return false
		}
		if n%evictLooks == 0 && late() {
			return x.continueEvicting()
		}
	}
	m.evicting = false
	x.endShortage(now)
	return true
}

// continueEvicting has the rest go between batches.
func (x *Executor) continueEvicting() bool {
	if !x.memory.evicting {
		x.memory.evicting = true
		x.soon()
	}
	return true
}

// endShortage notes that no more memory is in use than may be.
func (x *Executor) endShortage(now int64) {
	if m := &x.memory; m.since != 0 {
		x.stats.evictingNs += now - m.since
		m.since = 0
	}
}

// shortage is for how long more than maxmemory has been in use.
func (m *memoryLimit) shortage(now int64) time.Duration {
	if m.since == 0 {
		return 0
	}
	return time.Duration(now - m.since)
}

// keyEvicted is told of every key that goes because memory is short.
func (x *Executor) keyEvicted(db *store.DB, name []byte) { x.propagate(db, "DEL", name) }

// clientsLimit returns how many bytes the buffers of all clients may take up together, or 0 if nothing bounds them.
func (x *Executor) clientsLimit(cfg *config.Config) (bytes uint64) {
	switch n := cfg.MaxMemoryClients; {
	case n > 0:
		return uint64(n)
	case n < 0:
		bytes = share(x.memory.max, -n)
	}
	return cmp.Or(bytes, share(cmp.Or(x.memory.machine, systemMemory()), clientsShare))
}

// evictClients closes the largest clients while all take up more than they may.
func (x *Executor) evictClients(now int64) {
	limit := x.memory.clients
	if limit == 0 || now < x.memory.evictedAt+int64(evictAgain) {
		return
	}
	x.memory.evictedAt = now
	used := uint64(0) // what remains of those that are gone or go already nobody else has to make up for
	largest := make([]sizedClient, 0, len(x.clients.list))
	for _, cl := range x.clients.list {
		if cl.conn.ClosingNow() {
			continue
		}
		size := uint64(cl.memory())
		used += size
		if !cl.noEvict {
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
func (x *Executor) closeForMemory(cl *Client, bytes uint64) {
	x.stats.evictedClients++
	x.log.Warn("client closed: clients take up more than maxmemory-clients", "client", cl.id, "addr", cl.conn.Remote, "bytes", bytes)
	cl.conn.CloseNow()
}

// sizedClient is a client with what its buffers take up.
type sizedClient struct {
	*Client
	size uint64
}
