package rls

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"context"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"headgate/server/config"
	"headgate/server/front"
	"headgate/server/local"
	"headgate/server/web"
)

// Limits of the port.
const (
	// MaxConns is how many connections there may be at a time. For one more the one gives way that has waited longest.
	MaxConns = 1024

	keptConns     = MaxConns / 2     // of those that have asked before do not give way to strangers
	maxStreams    = 1000             // requests under way on one connection, of wideConns
	streamWorkers = 64               // goroutines that answer one request after another; for requests beyond these, which wait, goroutines are made
	maxRequests   = 4096             // on all
	maxChecks     = 256              // health checks, on all
	maxWatches    = 256              // calls that watch health, and of reflection, on all
	maxRequest    = 64 << 10         // bytes of a request
	maxHeaders    = 16 << 10         // bytes of its headers, as HTTP/2 counts them
	window        = 64 << 10         // bytes of a request that are taken before they are read
	bytesAtOnce   = 4 << 10          // bytes of a connection that are read in a turn: each may carry the requests of many clients
	greetTimeout  = 5 * time.Second  // for a connection to say that it speaks HTTP/2
	silentAfter   = 2 * time.Minute  // a silent connection is asked whether it is still there
	silentTimeout = 20 * time.Second // for its answer
	minPing       = 10 * time.Second // between two pings of a client
	endTimeout    = 2 * time.Second  // for requests under way when the server ends
	watchEvery    = time.Second      // between two looks at the files
)

// Options are what the port needs of the server. The functions may be called from any goroutine.
type Options struct {
	Dial    func() local.Client                // a new client of the server
	Changes func() uint64                      // counts the changes of users
	Refuses func(peer netip.Addr) (why string) // why a peer may not ask, or ""
	Has     func(policy string) bool           // whether there is a policy of the name

	NeedsAuth func() bool   // clients that give no password may do nothing
	Unready   func() string // why the server cannot do all of its work now, or ""

	TLS func() (*front.FollowedTLS, error) // what the tls- directives say
	Log *slog.Logger
}

// Port is what rls-port opens. The zero Port serves nothing.
type Port struct {
	options   Options
	path      string
	counts    Counts
	service   *service
	wide      *grpc.Server // nil without a port
	narrow    *grpc.Server
	wideOpen  atomic.Int64 // connections to the wide one
	health    *healthServer
	listeners []net.Listener
	tls       *front.FollowedTLS // nil: the port speaks plain text
	conns     conns
	arrivals  arrivals
	serving   sync.WaitGroup
	ended     chan struct{}

	mu      sync.Mutex // for reading the rules
	seen    string     // of the files, when they were read
	checked *Rules     // those whose policies were looked for
}

// Counts returns what has become of requests. Without a port they stay 0.
func (p *Port) Counts() *Counts { return &p.counts }

// Check returns what is wrong with the configured rules, if something is. Without a port they are not read.
func Check(cfg *config.Config) error {
	_, err := rulesOf(cfg)
	return err
}

// Advise returns what a start with the configuration is to be warned of, though Check finds nothing wrong.
func Advise(cfg *config.Config) (notices []config.Notice) {
	rules, err := rulesOf(cfg)
	if rules == nil || err != nil {
		return nil
	}
	has := func(policy string) bool {
		return slices.ContainsFunc(cfg.Policies, func(p config.NamedPolicy) bool { return p.Name == policy })
	}
	for _, policy := range rules.missing(has) {
		notices = append(notices, config.Notice{Where: rules.policies[policy], Text: fmt.Sprintf(
			"the configuration has no policy '%s': requests that the rule matches fail until RL.POLICY SET has made one", policy)})
	}
	return notices
}

// missing are the policies of rules that do not exist, in the order of their names.
func (r *Rules) missing(has func(policy string) bool) (names []string) {
	for _, policy := range slices.Sorted(maps.Keys(r.policies)) {
		if !has(policy) {
			names = append(names, policy)
		}
	}
	return names
}

// rulesOf reads the configured rules, nil without a port.
func rulesOf(cfg *config.Config) (*Rules, error) {
	switch {
	case cfg.RLSPort == 0:
		return nil, nil
	case cfg.RLSConfig == "":
		return nil, errors.New("rls-port: there are no rules: set rls-config to a file of envoyproxy/ratelimit, or to a directory of such files")
	}
	rules, err := Read(cfg.Path(cfg.RLSConfig))
	if err != nil {
		return nil, fmt.Errorf("rls-config: %w", err)
	}
	return rules, nil
}

// Open reads the rules and opens the listeners that the configuration names, if any. Nothing is answered before Serve.
func (p *Port) Open(o Options, cfg *config.Config) error {
	rules, err := rulesOf(cfg)
	if rules == nil || err != nil {
		return err
	}
	p.options, p.path = o, cfg.Path(cfg.RLSConfig)
	p.service = &service{
		sessions: local.Sessions{Dial: o.Dial, Changes: o.Changes}, as: local.Credentials{User: cfg.RLSUser, Password: cfg.RLSPassword}, headers: cfg.RLSResponseHeaders,
		counts: &p.counts,
	}
	if cfg.RLSPassword == "" {
		p.service.as = local.Credentials{}
	}
	p.service.refusals.log, p.service.refusals.user = o.Log, cfg.RLSUser
	p.use(rules)
	p.seen = fingerprint(p.path)
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxHeaderListSize(maxHeaders), grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window),
		grpc.ConnectionTimeout(greetTimeout), grpc.InTapHandle(p.arrivals.admit),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: silentAfter, Timeout: silentTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(p.admit),
	}
	if cfg.RLSTLS {
		if p.tls, err = o.TLS(); err != nil {
			return fmt.Errorf("rls-tls: %w", err)
		}
		options = append(options, grpc.Creds(credentials.NewTLS(p.tls.Config("h2"))))
	}
	if p.listeners, err = front.ListenOn(cfg.RLSBind, cfg.RLSPort, "--rls-port"); err != nil {
		return fmt.Errorf("rls-port: %w", err)
	}
	if len(p.listeners) == 0 {
		return errors.New("rls-port: this machine has none of its addresses: correct --rls-bind")
	}
	p.conns = conns{web.NewConns(MaxConns, keptConns, bytesAtOnce)}
	p.conns.OnlyPresent() // a call whose peer hangs up is cancelled
	p.health, p.ended = newHealth(o.Unready), make(chan struct{})
	p.wide = p.server(slices.Concat(options, []grpc.ServerOption{grpc.MaxConcurrentStreams(maxStreams)}))
	p.narrow = p.server(slices.Concat(options, []grpc.ServerOption{grpc.MaxConcurrentStreams(fewStreams)}))
	return nil
}

// server returns a server of all that the port answers.
func (p *Port) server(options []grpc.ServerOption) *grpc.Server {
	s := grpc.NewServer(options...)
	s.RegisterService(p.description(), p.service)
	healthpb.RegisterHealthServer(s, p.health)
	reflection.Register(s)
	return s
}

// description is that of the rate limit service, with its method as the port answers it.
func (p *Port) description() *grpc.ServiceDesc {
	d := rls.RateLimitService_ServiceDesc
	d.Methods = []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: p.shouldRateLimit}}
	return &d
}

// shouldRateLimit answers a request whose headers have come. It is called before the message has, so that those that do not come are counted.
func (p *Port) shouldRateLimit(_ any, ctx context.Context, receive func(message any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	from, err := p.admitted(ctx)
	if err != nil {
		return nil, err
	}
	defer from.over(ctx)
	if !p.arrivals.beginRequest() {
		return nil, errCrowded
	}
	defer p.arrivals.endRequest()
	request := &rls.RateLimitRequest{}
	if err := receive(request); err != nil {
		return nil, err
	}
	p.conns.begin(from)
	defer p.conns.end(from)
	return p.service.ShouldRateLimit(ctx, request)
}

// admit has the other calls that have one answer be refused to whoever may not ask.
func (p *Port) admit(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	from, err := p.admitted(ctx)
	if err != nil {
		return nil, err
	}
	p.conns.begin(from)
	defer p.conns.end(from)
	return handle(ctx, request)
}

// admitted returns where a call comes from, or why it is refused.
func (p *Port) admitted(ctx context.Context) (from peerAddr, err error) {
	known, _ := peer.FromContext(ctx)
	from = known.Addr.(peerAddr) // as all connections have it that the port accepts
	if p.service.as == (local.Credentials{}) {
		if why := p.options.Refuses(from.ip); why != "" {
			return from, status.Error(codes.PermissionDenied, why)
		}
	}
	return from, nil
}

// Serve begins to answer, and to look after the files.
func (p *Port) Serve() {
	if p.wide == nil {
		return
	}
	for _, ln := range p.listeners {
		narrow := newLane(ln.Addr())
		p.serving.Go(func() { _ = p.wide.Serve(wideListener{p.conns.listener(ln), &p.wideOpen, narrow}) }) // it ends with Close
		p.serving.Go(func() { _ = p.narrow.Serve(narrow) })
	}
	p.serving.Go(p.watch)
}

// Close ends all that Open and Serve have begun. Requests under way are answered, if that does not take long. It may be called again.
func (p *Port) Close() {
	for _, ln := range p.listeners {
		ln.Close()
	}
	p.listeners = nil
	if p.wide == nil {
		return
	}
	close(p.ended)
	p.health.Shutdown()
	for _, s := range []*grpc.Server{p.wide, p.narrow} {
		p.serving.Go(func() {
			late := time.AfterFunc(endTimeout, s.Stop)
			s.GracefulStop()
			late.Stop()
		})
	}
	p.serving.Wait()
	p.service.sessions.End()
	p.wide, p.narrow = nil, nil
}

// watch reads the rules anew when their files have changed, and those for TLS.
func (p *Port) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	p.checkLogin()
	for {
		select {
		case <-p.ended:
			return
		case <-tick.C:
			p.mu.Lock()
			if now := fingerprint(p.path); now != p.seen {
				p.read(now)
			}
			p.lookForPolicies()
			p.mu.Unlock()
			p.refreshTLS()
			p.health.look()
		}
	}
}

// refreshTLS uses the files for TLS anew if they have changed. Only watch calls it.
func (p *Port) refreshTLS() {
	if p.tls == nil {
		return
	}
	changed, err := p.tls.Refresh()
	switch {
	case err != nil:
		p.options.Log.Error("the TLS files have changed and cannot be used by the rate limit service; those from before stay in use", "err", err)
	case changed:
		p.options.Log.Info("the TLS files have changed and are in use by the rate limit service")
	}
}

// Reload reads the rules anew.
func (p *Port) Reload() {
	if p.service == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read(fingerprint(p.path))
}

// read reads the rules anew. After a mistake those before stay. The caller holds mu.
func (p *Port) read(seen string) {
	p.seen = seen
	rules, err := Read(p.path)
	if err != nil {
		p.counts.FailedReloads.Add(1)
		p.options.Log.Error("the rules of the rate limit service stay as they were", "err", err)
		return
	}
	p.use(rules)
	p.counts.Reloads.Add(1)
	p.options.Log.Info("the rules of the rate limit service were read", "path", p.path, "domains", len(rules.domains), "limits", rules.count)
}

// maxMissing is how many missing policies the log names.
const maxMissing = 20

// lookForPolicies warns, once for each reading of the rules, of policies that they name and that do not exist. It does so at the first look at the
// files rather than at the start, when an upstream or a primary has not told its policies yet. The caller holds mu.
func (p *Port) lookForPolicies() {
	rules := p.service.rules.Load()
	if rules == p.checked {
		return
	}
	p.checked = rules
	missing := rules.missing(p.options.Has)
	for _, policy := range missing[:min(len(missing), maxMissing)] {
		p.options.Log.Warn("a rule of the rate limit service names a policy that does not exist: requests that it matches fail until it does",
			"policy", policy, "at", rules.policies[policy], "missing", len(missing))
	}
}

// use has requests answered by these rules from now on.
func (p *Port) use(rules *Rules) {
	p.service.rules.Store(rules)
	p.counts.Limits.Store(int64(rules.count))
}

// fingerprint tells whether files have changed: by their names, sizes and times.
func fingerprint(path string) string {
	files, err := filesOf(path)
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			text += fmt.Sprintf("%s %d %d\n", filepath.Base(name), info.Size(), info.ModTime().UnixNano())
		}
	}
	return text
}
