package server

import (
	"log/slog"
	"math"
	"sync"
	"time"

	"headgate/persistence"
	"headgate/server/acl"
	"headgate/server/config"
	"headgate/store"
)

// Version is headgate's own version.
const Version = "0.1.0"

// RedisVersion is the version that INFO and HELLO name, so that clients use what that Redis has.
const RedisVersion = "7.2.4"

// Core is what all commands of one server share, and every part of the server that looks after them.
type Core struct {
	mu       sync.Mutex // the executor's lock: guards all below that is not said to be otherwise
	keys     *store.Keyspace
	clock    *Clock
	config   *config.Live   // safe for concurrent use
	log      *slog.Logger   // safe for concurrent use
	fs       persistence.FS // the disk; safe for concurrent use
	commands *registry      // does not change once the server listens
	stats    statistics
	effects  effects
	clients  clientTable
	gate     gate // has may be asked without the lock
	remains  remains
	lifecycle
	aclScratch aclScratch
	running    *Ctx // of the batch that is being executed, or nil
	hooks      hooks

	countsUses   bool   // keys remember how often they are used, and not when
	replacing    bool   // keys that are added replace others, so that they are not new
	eventChannel []byte // memory for the name of an event's channel

	softOutputLimit int    // output length from which a client's limits are looked at
	runID           string // of this process: forty random hexadecimal digits
	started         int64  // ns since the Unix epoch
	startedMono     int64  // the same by Clock.Mono
	startMemory     uint64 // bytes in use when the server was made
	outside         uint64 // bytes in use that are not the keyspace's, when they were last added up
}

// newCore returns the core of a server. What is nil is the usual: the system's clock and files, and no log.
func newCore(live *config.Live, clock *Clock, log *slog.Logger, fs persistence.FS) *Core {
	s := &Core{
		config: live, clock: clock, log: log, fs: fs,
		clients: clientTable{byID: map[int64]*Client{}}, runID: randomHex(20), lifecycle: lifecycle{stop: make(chan struct{})},
	}
	if s.clock == nil {
		s.clock = NewClock(nil)
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.fs == nil {
		s.fs = persistence.OS{}
	}
	return s
}

// declare has the commands of all parts be the server's, and its keyspace begin empty.
func (s *Core) declare(groups [][]*Command, keys store.Options) {
	s.commands = newRegistry(groups...)
	s.stats.commands = make([]commandStats, len(s.commands.all))
	cfg := s.config.Get()
	keys.Databases, keys.Limits = cfg.Databases, encodingLimits(cfg)
	s.keys = store.New(keys)
	s.started, s.startedMono = s.clock.Read(), s.clock.Mono()
	s.keys.Tick(s.started / 1e6)
	s.startMemory = runtimeMetric(metricHeapObjects)
}

// apply takes the directives over that the keyspace and the clients' outputs obey.
func (s *Core) apply(cfg *config.Config) {
	s.keys.SetLimits(encodingLimits(cfg))
	s.softOutputLimit = min(smallestLimit(cfg.OutputLimits.Normal), smallestLimit(cfg.OutputLimits.PubSub))
}

func encodingLimits(cfg *config.Config) store.Limits {
	return store.Limits{
		HashMaxListpackEntries: cfg.HashMaxListpackEntries, HashMaxListpackValue: cfg.HashMaxListpackValue,
		ZSetMaxListpackEntries: cfg.ZSetMaxListpackEntries, ZSetMaxListpackValue: cfg.ZSetMaxListpackValue,
		HLLSparseMaxBytes:   cfg.HLLSparseMaxBytes,
		ListMaxListpackSize: cfg.ListMaxListpackSize, SetMaxIntsetEntries: cfg.SetMaxIntsetEntries,
		StreamNodeMaxBytes: cfg.StreamNodeMaxBytes, StreamNodeMaxEntries: cfg.StreamNodeMaxEntries,
	}
}

// smallestLimit returns the length below which neither of the class's limits can matter.
func smallestLimit(l config.OutputLimit) int {
	n := math.MaxInt
	if l.Hard > 0 {
		n = min(n, l.Hard)
	}
	if l.Soft > 0 {
		n = min(n, l.Soft)
	}
	return n
}

// hooks are what commands need of parts above them while they run. New sets them; they are called with the executor's lock held.
type hooks struct {
	block       func(c *Ctx, on blockOn)          // has a client wait, see Ctx.block
	publish     func(channel, message []byte) int // sends a message to a channel's subscribers
	keyChanged  func(key []byte, by *Client)      // tells those who track a key that it changes; by may be nil
	limitOutput func(cl *Client)                  // closes a client whose unsent replies are over its limits
	nudge       func()                            // has background work looked after without delay; needs no lock
}

// sliceTime is how long a slice of background work may hold the executor's lock.
const sliceTime = 100 * time.Microsecond

// Lock and Unlock are the executor's lock: it guards the keyspace, the clients and the statistics. No I/O happens under it.
func (s *Core) Lock()   { s.mu.Lock() }
func (s *Core) Unlock() { s.mu.Unlock() }

// usedMemory returns the bytes that data and connections take up: what maxmemory bounds.
func (s *Core) usedMemory() uint64 { return s.keys.Used() + s.outside }

// uptime is how long ago the server was made. The caller holds the executor's lock and has read the clock.
func (s *Core) uptime() time.Duration { return time.Duration(s.clock.Mono() - s.startedMono) }

// aclScratch is memory for the command line that package acl is asked about.
type aclScratch struct {
	call    acl.Call
	indexes []int // of its keys
}
