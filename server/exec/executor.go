package exec

import (
	"math"
	"sync/atomic"

	"headgate/server/access"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/netpoll"
	"headgate/server/observe"
	"headgate/server/pubsub"
	"headgate/server/resp"
	"headgate/server/script"
)

// Executor runs the commands of all clients, one after the other, and the background work between them. Create it with [New], and give it
// what it needs of the packages above by [Executor.Use]. The executor's lock, which is the core's, guards what is not said to be otherwise.
type Executor struct {
	*command.Core
	Access   *access.Access    // who may run what
	Hub      *pubsub.Hub       // messages, events and invalidations for clients
	Recorder *observe.Recorder // what takes long is noted there

	above Hooks // set by Use, and the same from then on

	Pool                 resp.Buffers                // memory of connections' buffers; safe for concurrent use
	limits, unauthLimits atomic.Pointer[resp.Limits] // what readers accept

	nextClientID int64
	MaxClients   int            // maxclients, or less if descriptors are short
	noTouchers   int            // clients whose commands are no uses of keys
	Pause        pause          // what CLIENT PAUSE has set
	Blocking     blocking       // the clients that wait for a key
	apart        *Worker        // runs nothing, but has a context for what is done outside of batches; nil: not yet
	deferrals    deferrals      // what is answered later
	spare        []*transaction // memory for the next MULTI
	queuedArgs   [][]byte       // memory for EXEC's arguments
	queuedUse    argumentUse    // of queuedArgs

	Memory         memoryLimit  // the limit that maxmemory sets, and how far it is
	Garbage        Garbage      // what the Go heap holds beside what is in use
	LazyExpireOnly bool         // DEBUG SET-ACTIVE-EXPIRE 0
	own            ownExpiries  // keys that a writable replica removes itself
	CronAt         CronTimes    // when background work is due
	wakeAt         atomic.Int64 // ns, when background work is due although nobody knew when it was last done; see tickBy

	warnedOfBrowser int64 // ns, when the last warning was logged
}

// New returns the executor of a server with the given core. Use is to be called before it runs anything.
func New(core *command.Core, recorder *observe.Recorder, hub *pubsub.Hub, access *access.Access) *Executor {
	x := &Executor{Core: core, Recorder: recorder, Hub: hub, Access: access}
	x.wakeAt.Store(math.MaxInt64)
	return x
}

// ProcessMemory is what memory the process may have, and how the Go runtime is made to keep to it. Any of the funcs may be nil: then the
// runtime goes on as it is.
type ProcessMemory struct {
	Limit        uint64            // bytes; 0 = as many as there are
	SetHeapLimit func(bytes int64) // has the Go heap keep to a limit, as runtime/debug.SetMemoryLimit does
	SetGCPercent func(percent int) // has the collector run when the Go heap has grown by so much, as runtime/debug.SetGCPercent does
	Free         func()            // collects garbage and gives memory back to the system, as runtime/debug.FreeOSMemory does; called without the lock
}

// Hooks are what the executor needs of the packages above it. The server gives them once, by [Executor.Use].
type Hooks struct {
	// Log is where the effects of commands are kept.
	Log EffectLog
	// Jobs are done between batches of commands, each of them in every round.
	Jobs []Job
	// Waits are the waits of clients that are looked after elsewhere; nil: there are none.
	Waits Waits
	// ScriptFlags returns the flags of the script that a command is going to run, if it declares them. The executor's lock is held.
	ScriptFlags func(cmd *command.Command, args [][]byte) (flags script.Flags, declared bool)
	// OutsideMemory returns how many bytes are in use beside the keyspace. The executor's lock is held, or nothing runs yet.
	OutsideMemory func() uint64

	// Moved returns the error that sends a client on to the primary that is followed, or nothing. The executor's lock is held.
	Moved func(c *command.Ctx) string
	// ReplicaGone is told that a client has gone which has said that it is a replica. The executor's lock is held. nil: nobody asks.
	ReplicaGone func(cl *command.Client)

	// Overloaded reports whether so much is under way elsewhere that no more commands may be answered later for now; [Executor.Relieve] is
	// to be called when that is over. The executor's lock is held. nil: no command is answered later.
	Overloaded func() bool
	// Flush has on its way what the commands of an iteration have to say to other servers. The executor's lock is free. nil: nothing.
	Flush func()
	// Push sends replicas what they are due, and returns when to call it again at the latest, in ns; 0: whenever that is. The executor's lock is
	// free. nil: there are none.
	Push func(now int64) (next int64)
}

// EffectLog is where the effects of commands are kept before they are answered. The journal is it.
type EffectLog interface {
	// Unwritten reports whether there are effects that are not in the log yet. The executor's lock is held.
	Unwritten() bool
	// MakeRoom has the log see to it that it can take n bytes of effects more than there are. It returns the error for commands that write if
	// it cannot. The executor's lock is free.
	MakeRoom(n int) (refusal string)
	// Commit has all effects so far in the log, and on the disk if that is asked for. It returns the error for the commands that are not
	// there after all. The executor's lock is free.
	Commit() (refusal string)
	// CommitDue is Commit for background work. The executor's lock is free.
	CommitDue()
}

// Use gives the executor what it needs of the process and of the packages above it, before it runs anything.
func (x *Executor) Use(memory ProcessMemory, above Hooks) {
	x.above = above
	x.Memory = memoryLimit{Machine: memory.Limit, SetHeapLimit: memory.SetHeapLimit, AddOutside: above.OutsideMemory}
	x.Garbage.Free, x.Garbage.SetPace = memory.Free, memory.SetGCPercent
}

// Apply takes over the directives that the executor obeys; room is for how many clients there are descriptors. The caller holds the lock, or nothing runs
// yet.
func (x *Executor) Apply(cfg *config.Config, room int) {
	full := resp.DefaultLimits()
	full.Bulk, full.Query = cfg.ProtoMaxBulkLen, cfg.ClientQueryBufferLimit
	narrow := resp.UnauthenticatedLimits(full)
	x.limits.Store(&full)
	x.unauthLimits.Store(&narrow)
	if x.MaxClients = min(cfg.MaxClients, room); x.MaxClients < cfg.MaxClients {
		x.Logger.Warn("maxclients lowered to what the limit on open files leaves", "maxclients", x.MaxClients, "asked", cfg.MaxClients)
	}
	x.limitMemory(cfg)
}

// NewWorker implements netpoll.Handler.
func (x *Executor) NewWorker() netpoll.Worker { return &Worker{Exec: x} }

// WithoutBackgroundWork returns the executor as it is served by loops that leave the background work to the first.
func (x *Executor) WithoutBackgroundWork() netpoll.Handler { return helper{x} }

// helper is what WithoutBackgroundWork returns.
type helper struct{ *Executor }

// NewWorker implements netpoll.Handler.
func (h helper) NewWorker() netpoll.Worker { return &Worker{Exec: h.Executor, helps: true} }

// OneOfMany returns the executor as it is served by fronts of a single connection.
func (x *Executor) OneOfMany() netpoll.Handler { return oneOfMany{x} }

// oneOfMany is what OneOfMany returns.
type oneOfMany struct{ *Executor }

// Lock implements sync.Locker.
func (o oneOfMany) Lock() { o.LockAsOneOfMany() }

// NewWorker implements netpoll.Handler.
func (o oneOfMany) NewWorker() netpoll.Worker { return &Worker{Exec: o.Executor, oneOfMany: true} }

// Buffers implements netpoll.Handler.
func (x *Executor) Buffers() *resp.Buffers { return &x.Pool }

// Soon has background work looked after without delay. Safe to call from anywhere.
func (x *Executor) Soon() {
	x.wakeAt.Store(0)
	x.Hooks.Nudge()
}

// Yield serves other connections once while the context's command takes long. The executor's lock is free meanwhile, so the
// command must be at a point where nothing that it holds depends on the keyspace; and the gate must have GateBusy as a reason, so that
// most commands are refused.
func (x *Executor) Yield(c *command.Ctx) {
	w := workerOf(c)
	w.setAside()
	conn := c.Client.Conn
	conn.Keep(true)
	certain := len(w.answered) == 0 || w.answered[len(w.answered)-1].certain
	x.Unlock()
	w.commit() // what others were answered in this batch may go out now
	conn.Yield()
	x.Lock()
	conn.Keep(false)
	c.Core.Rounds.Add(1)
	if x.Effects.Logged {
		w.note(c.Client)
		again := &w.answered[len(w.answered)-1]
		again.certain = again.certain && certain // what the command has changed so far is not in the log yet
	}
}
