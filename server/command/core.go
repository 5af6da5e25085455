package command

import (
	"log/slog"
	"math"
	"time"

	"headgate/persistence"
	"headgate/server/config"
	"headgate/server/host"
	"headgate/store"
)

// Version is headgate's own version.
const Version = "0.1.0"

// RedisVersion is the version that INFO and HELLO name, so that clients use what that Redis has.
const RedisVersion = "7.2.4"

// LevelVerbose is the level of loglevel verbose, which lies between slog's debug and info.
const LevelVerbose = slog.LevelDebug + 2

// Core is what all commands of one server share, and every part of the server that looks after them.
type Core struct {
	executorLock // guards all below that is not said to be otherwise
	Keys         *store.Keyspace
	Clock        *Clock
	Config       *config.Live   // safe for concurrent use
	Logger       *slog.Logger   // safe for concurrent use
	FS           persistence.FS // the disk; safe for concurrent use
	Commands     *Registry      // does not change once the server listens
	Stats        Statistics
	Effects      Effects
	Clients      ClientTable
	Gate         Gate // Has may be asked without the lock
	Remains      Remains
	Lifecycle
	Running *Ctx // of the batch that is being executed, or nil
	Hooks   Hooks

	aclScratch aclScratch

	CountsUses   bool   // keys remember how often they are used, and not when
	replacing    bool   // keys that are added replace others, so that they are not new
	eventChannel []byte // memory for the name of an event's channel

	SoftOutputLimit int    // output length from which a client's limits are looked at
	RunID           string // of this process: forty random hexadecimal digits
	Started         int64  // ns since the Unix epoch
	StartedMono     int64  // the same by Clock.Mono
	StartMemory     uint64 // bytes in use when the server was made
	Outside         uint64 // bytes in use that are not the keyspace's, when they were last added up
}

// NewCore returns the core of a server, which has no commands and no keys before Declare. What is nil is the usual: the system's clock and files, and no log.
func NewCore(live *config.Live, clock *Clock, log *slog.Logger, fs persistence.FS) *Core {
	s := &Core{
		executorLock: newExecutorLock(live.Get().IOThreads),
		Config:       live, Clock: clock, Logger: log, FS: fs,
		Clients: ClientTable{ByID: map[int64]*Client{}}, RunID: RandomHex(20), Lifecycle: Lifecycle{ended: make(chan struct{})},
	}
	if s.Clock == nil {
		s.Clock = NewClock(nil)
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.FS == nil {
		s.FS = persistence.OS{RegularOnly: true} // a start would wait for the other end of a pipe
	}
	return s
}

// Declare has the commands of all parts be the server's, and its keyspace begin empty. It panics on a declaration that cannot be right, as
// NewRegistry does.
func (s *Core) Declare(groups [][]*Command, keys store.Options) {
	s.Commands = NewRegistry(groups...)
	s.Stats.Commands = make([]Counters, len(s.Commands.All))
	cfg := s.Config.Get()
	keys.Databases, keys.Limits = cfg.Databases, encodingLimits(cfg)
	s.Keys = store.New(keys)
	s.Keys.OnExpired(s.keyExpired)
	s.Started, s.StartedMono = s.Clock.Read(), s.Clock.Mono()
	s.Keys.Tick(s.Started / 1e6)
	s.StartMemory = host.RuntimeMetric(host.MetricHeapObjects)
}

// Apply takes the directives over that the keyspace and the clients' outputs obey.
func (s *Core) Apply(cfg *config.Config) {
	s.Keys.SetLimits(encodingLimits(cfg))
	s.SoftOutputLimit = min(smallestLimit(cfg.OutputLimits.Normal), smallestLimit(cfg.OutputLimits.PubSub))
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

// Hooks are what commands need of parts above them while they run. New sets them; they are called with the executor's lock held.
type Hooks struct {
	Block       func(c *Ctx, on BlockOn)          // has a client wait, see Ctx.Block
	Wait        func(c *Ctx, w Waiter)            // has a client wait, see Ctx.Wait
	ServeWaiter func(c *Ctx, s Serving) bool      // see Serving
	Publish     func(channel, message []byte) int // sends a message to a channel's subscribers
	KeyChanged  func(key []byte, by *Client)      // sends invalidations to the clients that track the key; by is the client that changes it, or nil
	LimitOutput func(cl *Client)                  // closes a client whose unsent replies are over its limits
	Refused     func(c *Ctx, text string)         // is told of an error that a primary's command is answered with
	Nudge       func()                            // has background work looked after without delay; needs no lock
}

// SliceTime is how long a slice of background work may hold the executor's lock.
const SliceTime = 100 * time.Microsecond

// UsedMemory returns the bytes that data and connections take up: what maxmemory bounds.
func (s *Core) UsedMemory() uint64 { return s.Keys.Used() + s.Outside }

// Uptime is how long ago the server was made. The caller holds the executor's lock and has read the clock.
func (s *Core) Uptime() time.Duration { return time.Duration(s.Clock.Mono() - s.StartedMono) }
