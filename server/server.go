// Package server is headgate: it assembles the packages below it (each has a comment of its own), starts them, and stops them in
// the right order. What a package needs of a higher one at run time is a func or a small interface that the lower one declares and [New] sets.
package server

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"

	"headgate/persistence"
	"headgate/persistence/check"
	"headgate/server/access"
	"headgate/server/admin"
	"headgate/server/cluster"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/exec"
	"headgate/server/front"
	"headgate/server/gateway"
	"headgate/server/host"
	"headgate/server/httpcheck"
	"headgate/server/journal"
	"headgate/server/limiter"
	"headgate/server/limits"
	"headgate/server/local"
	"headgate/server/netpoll"
	"headgate/server/observe"
	"headgate/server/pubsub"
	"headgate/server/replication"
	"headgate/server/report"
	"headgate/server/rls"
	"headgate/server/scripting"
	"headgate/server/types"
	"headgate/server/web"
	"headgate/store"
)

// Server is one headgate. Create it with [New], then [Server.Listen] and [Server.Run].
type Server struct {
	*command.Core
	*observe.Recorder
	*pubsub.Hub
	*access.Access
	*exec.Executor
	*journal.Journal
	*front.Fronts
	*limits.Limits
	Gateway *gateway.Gateway // nil: keys are kept here
	*report.Reports
	*admin.Console
	Replica *replication.Replica
	cluster *cluster.Cluster
	Checks  httpcheck.Port
	Envoy   rls.Port

	scripts *scripting.Scripts
}

// Options are the parts that a Server is given from outside; zero values are the usual ones.
type Options struct {
	Clock *command.Clock
	Log   *slog.Logger
	FS    persistence.FS // where data are kept
	Exit  func(code int) // ends the process, when it must not go on; does not return

	Algorithms *limiter.Table // the limiters that there are; nil: limiter.Standard

	Keys store.Options // where chance comes from; the rest is the configuration's

	Memory       uint64            // bytes that the process may have, see host.MemoryLimit; 0 = as many as there are
	SetHeapLimit func(bytes int64) // has the Go heap keep to a limit, as runtime/debug.SetMemoryLimit does
	SetGCPercent func(percent int) // has the collector run when the Go heap has grown by so much, as runtime/debug.SetGCPercent does
	FreeMemory   func()            // collects garbage and gives memory back to the system, as runtime/debug.FreeOSMemory does
	Inherited    []net.Listener    // listeners that somebody else has opened, for plain connections
	Ready        func()            // called once, when the data are loaded
	InheritedTLS []net.Listener    // the same for TLS
}

// New returns a server for the given configuration. It opens nothing yet.
func New(live *config.Live, o Options) *Server {
	s := &Server{Core: command.NewCore(live, o.Clock, o.Log, o.FS)}
	s.Recorder = &observe.Recorder{Core: s.Core}
	s.Hub = &pubsub.Hub{Core: s.Core}
	s.Access = &access.Access{Core: s.Core, ClientLine: admin.DescribeClient}
	s.Executor = exec.New(s.Core, s.Recorder, s.Hub, s.Access)
	s.scripts = scripting.New(s.Executor)
	s.Limits = limits.New(s.Core, o.Algorithms)
	s.Journal = journal.New(s.Executor, s.Limits, s.scripts, o.Exit, func() {
		s.Logger.Info("headgate is ready", "version", command.Version, "addr", strings.Join(s.Addresses(), " "), "pid", host.Pid(), "loops", s.Plain.Count())
		s.Replica.Ready()
		if o.Ready != nil {
			o.Ready()
		}
	})
	s.Replica = replication.New(s.Executor, s.Journal)
	s.Replica.TLS = front.PrimaryTLS
	s.cluster = &cluster.Cluster{Core: s.Core, Topology: s.topology}
	s.Fronts = front.New(s.Core, front.Handlers{First: s.Executor, Others: s.WithoutBackgroundWork(), Each: s.OneOfMany()},
		o.Inherited, o.InheritedTLS)
	s.Reports = &report.Reports{
		Core: s.Core, Recorder: s.Recorder, Hub: s.Hub, Access: s.Access, Limits: s.Limits, Exec: s.Executor, Scripts: s.scripts, Journal: s.Journal, Fronts: s.Fronts,
		Replica: s.Replica, Checks: &s.Checks, Envoy: &s.Envoy,
	}
	s.Console = &admin.Console{Recorder: s.Recorder, Hub: s.Hub, Access: s.Access, Limits: s.Limits, Exec: s.Executor, Journal: s.Journal}
	s.Hooks = command.Hooks{
		Nudge: s.Plain.Nudge, LimitOutput: s.CheckOutput,
		Block: s.Block, Wait: s.Wait, ServeWaiter: s.ServeWaiter,
		Publish: s.Publish, KeyChanged: s.KeyChanged,
		Refused: s.Replica.Refused,
	}
	hooks := exec.Hooks{
		Log: s.Journal, Jobs: s.backgroundJobs(),
		Waits: s.Limits, ScriptFlags: s.scripts.DeclaredFlags,
		OutsideMemory: s.outsideMemory,
		Moved:         s.cluster.Moved,
		ReplicaGone:   s.Replica.Primary.Gone, Push: s.Replica.Primary.Push,
	}
	groups := s.CommandGroups
	if live.Get().Upstream != "" {
		s.Gateway = gateway.New(s.Executor, s.Limits)
		s.Reports.Gateway = s.Gateway
		hooks = s.Gateway.Hooks(hooks)
		groups = func() [][]*command.Command { return s.Gateway.Decorate(s.CommandGroups()) }
	}
	s.Executor.Use(exec.ProcessMemory{Limit: o.Memory, SetHeapLimit: o.SetHeapLimit, SetGCPercent: o.SetGCPercent, Free: o.FreeMemory}, hooks)
	s.Declare(groups(), o.Keys)
	s.Keys.DB(0).Follow([]byte(limits.PoliciesKey))
	for _, prefix := range []string{limits.ReservationPrefix, limits.BlockPrefix, limits.OverridePrefix} {
		s.Keys.Spare(prefix)
	}
	s.Keys.OnReplaced(func(db *store.DB) {
		s.Reservations.Replaced(db)
		s.Executor.ForgetOwnExpiries(db)
	})
	s.Keys.OnCrowded(s.Executor.KeysCrowded)
	s.Keys.Reserve(limits.LabelledPrefixes(), limits.Label)
	s.Keys.FollowReserved(limits.OverridePrefix)
	s.BeginAccess(live.Get())
	s.Apply(live.Get())
	live.LimitClients(s.clientRoom)
	s.Follow(live)
	s.Replica.Begin(live)
	return s
}

// CheckAccess returns what is wrong with the configured users and names of commands, the files for TLS and the rules of the rate limit service, if something is.
func CheckAccess(cfg *config.Config) error {
	if err := gateway.Check(cfg); err != nil {
		return err
	}
	if err := rls.Check(cfg); err != nil {
		return err
	}
	if cfg.TLSPort > 0 || cfg.RLSPort > 0 && cfg.RLSTLS {
		if err := front.CheckTLS(cfg); err != nil {
			return err
		}
	}
	s := New(config.NewLive(cfg), Options{})
	defer s.Keys.Close()
	return s.OpenAccess(cfg)
}

// Advise returns what there is to say about a configuration in which CheckAccess finds nothing wrong.
func Advise(cfg *config.Config) []config.Notice { return rls.Advise(cfg) }

// CheckData returns why a start with a configuration would end since its data could not be written to a file system, and what it would only warn of.
// It makes files in the data directory and removes them.
func CheckData(cfg *config.Config, fsys persistence.FS) ([]config.Notice, error) {
	unwritable, err := journal.CheckData(fsys, cfg)
	if err != nil || unwritable == nil {
		return nil, err
	}
	return []config.Notice{{Where: "dir " + cfg.Dir, Text: journal.Unwritable + ": " + unwritable.Error()}}, nil
}

// StartOf is a start with a configuration, as far as the data go that it finds on a file system.
func StartOf(cfg *config.Config, fsys persistence.FS) check.Start {
	return check.Start{AppendOnly: cfg.AppendOnly, Log: journal.LogOptions(fsys, cfg), Snapshot: cfg.Path(cfg.DBFilename), Truncates: cfg.AOFLoadTruncated}
}

// CommandGroups lists the declarations of all commands: one slice for each file of commands.
func (s *Server) CommandGroups() [][]*command.Command {
	return slices.Concat(types.Declarations(), [][]*command.Command{
		s.Console.ConnectionCommands(), s.Console.ServerCommands(),
		s.Executor.Declarations(),
		s.scripts.Declarations(),
		s.Recorder.Declarations(),
		s.Hub.Declarations(),
		s.Access.Declarations(),
		s.Journal.Declarations(),
		s.Replica.Declarations(), s.Replica.Primary.Declarations(),
		s.cluster.Declarations(),
		s.Limits.Declarations(),
		s.Reports.Declarations(),
	})
}

// topology is who follows whom, for clients in cluster mode. The caller holds the executor's lock.
func (s *Server) topology() cluster.Topology {
	status := s.Replica.Status()
	var replicas []cluster.Replica
	for _, r := range s.Replica.Primary.Status().Replicas {
		replicas = append(replicas, cluster.Replica{Host: r.IP, Port: r.Port, Offset: r.Offset, Online: r.Online})
	}
	return cluster.Topology{
		Replicas: replicas,
		Offset:   status.Offset, Follows: status.Following, Primary: config.Address(status.Primary), Linked: status.State == replication.StateConnected,
	}
}

// Apply derives from the configuration what the server keeps at hand. The caller holds the lock, or nothing runs yet.
func (s *Server) Apply(cfg *config.Config) {
	s.Core.Apply(cfg)
	s.Limits.Apply(cfg)
	s.Executor.Apply(cfg, s.clientRoom(cfg))
	if s.Gateway != nil {
		s.Gateway.SetWaitRoom(s.waitRoom(cfg), cfg.WaitMaxClients)
		s.Gateway.SetSharedRoom(s.sharedRoom(cfg))
	}
	s.LimitTimes(cfg)
	s.ObserveKeys(cfg)
	s.CheckSaving(cfg)
	s.Fronts.Apply(cfg)
}

// reservedDescriptors are kept for listeners, files and the runtime.
const reservedDescriptors = 64

// gatewayParts: a gateway keeps at most one of so many parts of its descriptors for calls that wait, each of which has a connection to its node for itself,
// and one for connections that calls share.
const gatewayParts = 4

// clientRoom is for how many clients the limit on open files has room.
func (s *Server) clientRoom(cfg *config.Config) int {
	return max(host.MaxDescriptors()-s.otherDescriptors(cfg)-s.waitRoom(cfg)-s.sharedRoom(cfg), 1)
}

// sharedRoom is for how many connections to nodes it has room that calls share.
func (s *Server) sharedRoom(cfg *config.Config) int {
	if s.Gateway == nil {
		return 0
	}
	return min(gateway.SharedConns, s.gatewayPart(cfg))
}

// gatewayPart is one of gatewayParts.
func (s *Server) gatewayPart(cfg *config.Config) int {
	return max(host.MaxDescriptors()-s.otherDescriptors(cfg), 0) / gatewayParts
}

// waitRoom is for how many calls that wait at an upstream it has room beside them.
func (s *Server) waitRoom(cfg *config.Config) int {
	if s.Gateway == nil {
		return 0
	}
	return min(cfg.WaitMaxClients, s.gatewayPart(cfg))
}

// otherDescriptors is how many descriptors are not for clients.
func (s *Server) otherDescriptors(cfg *config.Config) int {
	n := reservedDescriptors
	if cfg.MetricsPort > 0 {
		n += web.MaxConns
	}
	if cfg.HTTPPort > 0 || cfg.HTTPUnixSocket != "" {
		n += httpcheck.MaxConns
	}
	if cfg.RLSPort > 0 {
		n += rls.MaxConns
	}
	if cfg.TLSPort > 0 {
		n += s.TLS.Room // for handshakes, which are no clients yet
	}
	return n
}

// backgroundJobs lists what is done between batches of commands for the parts above the executor.
func (s *Server) backgroundJobs() []exec.Job {
	return []exec.Job{
		exec.Every(exec.SamplePeriod, func(now int64) {
			traffic := s.Fronts.Traffic()
			s.Stats.Sample(s.Clock.Mono(), traffic.BytesIn, traffic.BytesOut)
			s.SavePoints(s.Clock.Mono())
			s.RetryRewrite()
			s.Unlogged.ForgetKeys(&s.Gate)
			s.Top.GoOn(s.Clock.Mono())
			s.TakeSample(now)
		}),
		s.Reservations.Slice,
		s.SnapshotSlice,
		s.Replica.Primary.Job,
		s.Replica.FailoverJob,
	}
}

// outsideMemory is what is in use beside the keyspace: the program as it began, clients, scripts, what is remembered for caches, the stream to replicas.
func (s *Server) outsideMemory() uint64 {
	scripts := s.scripts.Memory()
	_, own := s.OwnExpiries()
	stream, _ := s.Replica.Primary.Memory()
	return s.StartMemory + uint64(s.ClientMemory()+scripts.EvalBytes+scripts.FunctionBytes+s.Tracking.Memory()+s.AOF.Waiting+s.Reservations.Memory()+own) + stream
}

// Follow has the server obey changes of the configuration.
func (s *Server) Follow(live *config.Live) {
	live.OnChange(func(_, cfg *config.Config) error { s.Apply(cfg); return nil })
	if s.Gateway != nil { // before the journal, which would begin to keep data
		s.Gateway.Follow(live)
	} else {
		gateway.StayNative(live)
	}
	s.Journal.Begin(live)
	s.Fronts.Follow(live)
	s.Access.Follow(live) // behind all that may refuse a change, since ACL may have said more of the default user than requirepass does
	live.OnChange(func(_, _ *config.Config) error { s.TellAddresses(s.OpenAddresses()); return nil }, "bind", "port", "tls-port")
}

// Listen takes the data directory and opens the listeners that the configuration names; inherited ones stand in place of port and
// unixsocket. A failure leaves none open; its error says what to do.
func (s *Server) Listen() error {
	cfg := s.Config.Get()
	if err := gateway.Check(cfg); err != nil {
		return err
	}
	if err := s.OpenAccess(cfg); err != nil {
		return err
	}
	if err := s.OpenData(cfg); err != nil {
		return err
	}
	if s.Gateway != nil {
		if err := s.Gateway.Start(context.Background()); err != nil {
			s.closeGateway()
			s.Dirs.Release()
			return err
		}
	}
	err := s.Fronts.Listen(cfg, func() error {
		if err := s.HTTP.Open(s.Reports, cfg); err != nil {
			return err
		}
		if err := s.Checks.Open(s.checkOptions(), cfg); err != nil {
			return err
		}
		return s.Envoy.Open(s.envoyOptions(), cfg)
	})
	if err != nil {
		s.Envoy.Close()
		s.Checks.Close()
		s.HTTP.Close()
		s.closeGateway()
		s.Dirs.Release()
		return err
	}
	if s.Gateway != nil {
		for _, loop := range s.Plain.Watchers() {
			s.Gateway.Up.ReadOn(loop)
		}
	}
	s.TellAddresses(s.Addresses())
	return nil
}

// Addresses returns where the server listens, in the form that its start-up line shows.
func (s *Server) Addresses() []string {
	s.Lock()
	defer s.Unlock()
	return s.OpenAddresses()
}

// Run serves until Stop. Listen comes before it.
func (s *Server) Run() {
	s.HTTP.Serve()
	defer s.HTTP.Close() // at the very end, so that /readyz tells of it
	s.Checks.Serve()
	s.Envoy.Serve()
	s.Fronts.Run()
	s.Envoy.Close()
	s.Checks.Close()
	s.Replica.Close()
	s.Replica.Primary.Close()
	s.closeGateway()
	s.Journal.Finish()
}

// otherPorts are the open ports beside those of Redis's protocol, for the log.
func otherPorts(cfg *config.Config) (attrs []any) {
	for _, port := range []struct {
		directive string
		number    int
	}{{"metrics-port", cfg.MetricsPort}, {"http-port", cfg.HTTPPort}, {"rls-port", cfg.RLSPort}} {
		if port.number > 0 {
			attrs = append(attrs, port.directive, port.number)
		}
	}
	if cfg.HTTPUnixSocket != "" {
		attrs = append(attrs, "http-unixsocket", cfg.Path(cfg.HTTPUnixSocket))
	}
	return attrs
}

// checkOptions are what the HTTP check needs of the server.
func (s *Server) checkOptions() httpcheck.Options {
	return httpcheck.Options{Dial: s.dialAsOneOfMany, Changes: s.UserChanges, NeedsAuth: s.needsAuth, Refuses: s.refusesPeer, Log: s.Logger}
}

// envoyOptions are what Envoy's rate limit service needs of the server.
func (s *Server) envoyOptions() rls.Options {
	return rls.Options{
		Dial: s.dial, Changes: s.UserChanges, Refuses: s.refusesPeer, Has: s.hasPolicy, Log: s.Logger, NeedsAuth: s.needsAuth, Unready: s.Reports.NotReady,
		TLS: func() (*front.FollowedTLS, error) { return front.FollowTLS(s.Config.Get) },
	}
}

func (s *Server) hasPolicy(name string) bool {
	s.Lock()
	defer s.Unlock()
	return s.Limits.HasPolicy(name, s.Clock.Now/1e6)
}

// dial returns a client within the process.
func (s *Server) dial() local.Client {
	return netpoll.NewInner(s.WithoutBackgroundWork(), innerAddress, innerAddress)
}

// dialAsOneOfMany is dial for a crowd that is to stand behind others. Of thousands of short calls at a time, as of the rate limit service, hardly one
// finds the executor's lock taken, and to wait for a place in front of it would cost more than it spares others.
func (s *Server) dialAsOneOfMany() local.Client {
	return netpoll.NewInner(s.OneOfMany(), innerAddress, innerAddress)
}

// innerAddress is where clients within the process come from, as CLIENT LIST shows them.
const innerAddress = "127.0.0.1:0"

// needsAuth reports whether whoever gives no password may do nothing.
func (s *Server) needsAuth() bool { return s.Gate.Has(command.GatePassword) }

// refusesPeer says why a peer may not ask without a password: it could not over the Redis protocol either.
func (s *Server) refusesPeer(peer netip.Addr) (why string) {
	if s.Config.Get().ProtectedMode && peer.IsValid() && !peer.IsLoopback() {
		return "protected-mode refuses clients of other machines while there is no password: set one, or protected-mode no"
	}
	return ""
}

// mode is what the process is, for the log.
func (s *Server) mode() string {
	if s.Gateway == nil {
		return "native"
	}
	return "gateway to " + s.Gateway.Describe()
}

func (s *Server) closeGateway() {
	if s.Gateway != nil {
		s.Gateway.Close()
	}
}

// Load loads the data, unless they lie with an upstream. Connections have been accepted since Listen, and the log says so before it says that the data are
// there.
func (s *Server) Load() {
	s.Logger.Info("headgate accepts connections", append([]any{"addr", strings.Join(s.Addresses(), " "), "mode", s.mode()}, otherPorts(s.Config.Get())...)...)
	if s.Gateway != nil {
		s.Journal.LoadNothing()
		return
	}
	s.Journal.Load()
}

// Reload re-reads the configuration file's settable directives, after an error of which nothing has changed, and the rules of Envoy's rate limit
// service.
func (s *Server) Reload() ([]config.Notice, error) {
	s.Envoy.Reload() // files may be large, and clients do not wait for them
	s.Lock()
	defer s.Unlock()
	return s.Config.Reload()
}
