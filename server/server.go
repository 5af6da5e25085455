// Package server is the Redis-protocol server: connections, the command table, and the executor that runs every command.
//
// One executor owns the keyspace. Fronts (package netpoll) read sockets and hand batches of connections to workers; a worker
// parses all complete commands, takes the executor's lock once, and runs them in each connection's order. See dispatch.go for
// the one order of checks, and the cmd_*.go files for the commands: each declares its entries on top and its handlers below.
package server

import (
	"log/slog"
	"net"
	"slices"
	"strings"

	"headgate/persistence"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/web"
	"headgate/store"
)

// Server is one headgate. Create it with [New], then [Server.Listen] and [Server.Run].
type Server struct {
	*Core
	*Recorder
	*Hub
	*Access
	*Executor
	*Journal
	*Fronts
	*Limits
	*Reports
	*Console

	scripts *Scripts
}

// Options are the parts that a Server is given from outside; zero values are the usual ones.
type Options struct {
	Clock *Clock
	Log   *slog.Logger
	FS    persistence.FS // where data are kept
	Exit  func(code int) // ends the process, when it must not go on; does not return

	Algorithms *limiter.Table // the limiters that there are; nil: limiter.Standard

	Keys store.Options // where chance comes from; the rest is the configuration's

	Memory       uint64            // bytes that the process may have, see MemoryLimit; 0 = as many as there are
	SetHeapLimit func(bytes int64) // has the Go heap keep to a limit, as runtime/debug.SetMemoryLimit does
	SetGCPercent func(percent int) // has the collector run when the Go heap has grown by so much, as runtime/debug.SetGCPercent does
	FreeMemory   func()            // collects garbage and gives memory back to the system, as runtime/debug.FreeOSMemory does
	Inherited    []net.Listener    // listeners that somebody else has opened, for plain connections
	Ready        func()            // called once, when the data are loaded
	InheritedTLS []net.Listener    // the same for TLS
}

// New returns a server for the given configuration. It opens nothing yet.
func New(live *config.Live, o Options) *Server {
	s := &Server{Core: newCore(live, o.Clock, o.Log, o.FS)}
	s.Recorder = &Recorder{Core: s.Core}
	s.Hub = &Hub{Core: s.Core}
	s.Access = &Access{Core: s.Core, clientLine: describeClient}
	s.Executor = newExecutor(s.Core, s.Recorder, s.Hub, s.Access)
	s.scripts = newScripts(s.Executor)
	s.Limits = newLimits(s.Core, o.Algorithms)
	s.Journal = newJournal(s.Executor, s.Limits, s.scripts, o.Exit, o.Ready)
	s.Fronts = newFronts(s.Core, s.Executor, helper{Executor: s.Executor}, o.Inherited, o.InheritedTLS)
	s.Reports = &Reports{
		Core: s.Core, recorder: s.Recorder, hub: s.Hub, access: s.Access, limits: s.Limits, exec: s.Executor, scripts: s.scripts, journal: s.Journal, fronts: s.Fronts,
	}
	s.Console = &Console{recorder: s.Recorder, hub: s.Hub, access: s.Access, limits: s.Limits, exec: s.Executor, journal: s.Journal}
	s.hooks = hooks{nudge: s.plain.nudge, block: s.block, publish: s.publish, keyChanged: s.keyChanged, limitOutput: s.checkOutput}
	own := machine{memory: o.Memory, setHeapLimit: o.SetHeapLimit, setGCPercent: o.SetGCPercent, freeMemory: o.FreeMemory}
	s.Executor.use(own, s.Journal, s.backgroundJobs(), s.scripts.declared, s.outsideMemory)
	s.declare(s.commandGroups(), o.Keys)
	s.keys.OnExpired(s.keyExpired)
	s.keys.DB(0).Follow([]byte(policiesKey))
	s.beginAccess(live.Get())
	s.apply(live.Get())
	s.follow(live)
	return s
}

// CheckAccess returns what is wrong with the configured users and names of commands, if something is.
func CheckAccess(cfg *config.Config) error {
	s := New(config.NewLive(cfg), Options{})
	defer s.keys.Close()
	return s.openAccess(cfg)
}

// commandGroups lists the declarations of all commands: one slice for each cmd_*.go file.
func (s *Server) commandGroups() [][]*Command {
	return slices.Concat(typeDeclarations(), [][]*Command{
		s.Console.connectionCommands(), s.Console.serverCommands(),
		s.Executor.declarations(),
		s.scripts.declarations(),
		s.Recorder.declarations(),
		s.Hub.declarations(),
		s.Access.declarations(),
		s.Journal.declarations(),
		s.Limits.declarations(),
		s.Reports.declarations(),
	})
}

// apply derives from the configuration what the server keeps at hand. The caller holds the lock, or nothing runs yet.
func (s *Server) apply(cfg *config.Config) {
	s.Core.apply(cfg)
	s.Limits.apply(cfg)
	s.Executor.apply(cfg, s.otherDescriptors(cfg))
	s.limitTimes(cfg)
	s.observeKeys(cfg)
	s.checkSaving(cfg)
	s.Fronts.apply(cfg)
}

// reservedDescriptors are kept for listeners, files and the runtime.
const reservedDescriptors = 64

// otherDescriptors is how many descriptors are not for clients.
func (s *Server) otherDescriptors(cfg *config.Config) int {
	n := reservedDescriptors
	if cfg.MetricsPort > 0 {
		n += web.MaxConns
	}
	if cfg.TLSPort > 0 {
		n += s.tls.room // for handshakes, which are no clients yet
	}
	return n
}

// backgroundJobs lists what is done between batches of commands for the parts above the executor.
func (s *Server) backgroundJobs() []job {
	return []job{
		every(samplePeriod, func(now int64) {
			traffic := s.Fronts.traffic()
			s.stats.sample(s.clock.Mono(), traffic.BytesIn, traffic.BytesOut)
			s.savePoints(s.clock.Mono())
			s.retryRewrite()
			s.top.goOn(s.clock.Mono())
			s.takeSample(now)
		}),
		s.snapshotSlice,
	}
}

// outsideMemory is what is in use beside the keyspace: the program as it began, clients, scripts, what is remembered for caches.
func (s *Server) outsideMemory() uint64 {
	scripts := s.scripts.memory()
	return s.startMemory + uint64(s.clientMemory()+scripts.evalBytes+scripts.functionBytes+s.tracking.memory())
}

// follow has the server obey changes of the configuration.
func (s *Server) follow(live *config.Live) {
	live.OnChange(func(_, cfg *config.Config) error { s.apply(cfg); return nil })
	s.Journal.begin(live)
	s.Access.follow(live)
	s.Fronts.follow(live)
	live.OnChange(func(_, _ *config.Config) error { s.dirs.tell(holderText(s.addresses())); return nil }, "bind", "port", "tls-port")
}

// Listen takes the data directory and opens the listeners that the configuration names; inherited ones stand in place of port and
// unixsocket. A failure leaves none open; its error says what to do.
func (s *Server) Listen() error {
	cfg := s.config.Get()
	if err := s.openAccess(cfg); err != nil {
		return err
	}
	if err := s.openData(cfg); err != nil {
		return err
	}
	err := s.Fronts.listen(cfg, func() error { return s.http.open(s.Reports, cfg) })
	if err != nil {
		s.http.close()
		s.dirs.release()
		return err
	}
	s.dirs.tell(holderText(s.Addresses()))
	return nil
}

// Addresses returns where the server listens, in the form that its start-up line shows.
func (s *Server) Addresses() []string {
	s.Lock()
	defer s.Unlock()
	return s.addresses()
}

// Run serves until Stop. Listen comes before it.
func (s *Server) Run() {
	s.log.Info("headgate is ready", "version", Version, "addr", strings.Join(s.Addresses(), " "), "pid", pid(), "loops", s.plain.count())
	s.http.serve()
	defer s.http.close() // at the very end, so that /readyz tells of it
	s.Fronts.run()
	s.Journal.finish()
}

// Reload re-reads the configuration file's settable directives. After an error nothing has changed.
func (s *Server) Reload() ([]config.Notice, error) {
	s.Lock()
	defer s.Unlock()
	return s.config.Reload()
}
