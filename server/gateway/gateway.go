package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/exec"
	"headgate/server/limiter"
	"headgate/server/limiter/scripted"
	"headgate/server/limits"
	"headgate/server/upstream"
)

const (
	// tellsPerHold is how many answers are told under one hold of the executor's lock.
	tellsPerHold = 128
	// spareCalls is how many calls are kept for the next commands.
	spareCalls = 4096
	// keptBytes bounds the memory for a request or a reply that a call keeps for its next use.
	keptBytes = 4 << 10
	// startPatience is how long the start waits for the upstream's topology.
	startPatience = 5 * time.Second
)

// Gateway answers commands by an upstream. Create it with [New]. The executor's lock guards what is not said to be otherwise.
type Gateway struct {
	core   *command.Core
	exec   *exec.Executor
	limits *limits.Limits
	Up     *upstream.Upstream // safe for concurrent use

	scripts map[*scripted.Script]*upstream.Script // does not change
	kept    keptScripts
	users   map[string]*upstream.UserConn
	files   tlsFiles // that the configuration in use was made of

	free        []*call
	spareLimits []*limitCall
	plain       scripted.PlainWriter
	plainScript *upstream.Script

	ctx        command.Ctx  // for answers
	turn       command.Turn // of ctx
	collecting *transaction // while a transaction is put together
	failing    *call        // the call whose command is answered without the upstream

	policies policies
	leases   leaseBook
	returns  sync.WaitGroup // what was left of leases, under way

	warnedOfDisagreement time.Time

	Counts Counts

	waitRoom  int // how many calls may wait at the upstream
	waitAsked int // of how many that wait-max-clients asks for
	waiting   int // how many do

	now    int64 // upstream.Now when the commands came that are being run
	nowFor int64 // the executor's time of that

	some  atomic.Bool      // heard is not empty
	mu    sync.Mutex       // guards what follows
	heard []*upstream.Call // whose answers are to be told, beside those that the upstream gives

	unflushed atomic.Bool // something was sent while answers were heard or told

	stop context.CancelFunc
	ends sync.WaitGroup
}

// Counts is what a gateway counts beside what its upstream does. It is safe for concurrent use.
type Counts struct {
	Disagreements atomic.Uint64                   // calls about which script and this process disagreed
	NotGivenBack  atomic.Uint64                   // charges that RL.TAKE could not give back, so that they stay
	Retries       atomic.Uint64                   // calls that needed another round trip
	Fallbacks     [limiter.Failures]atomic.Uint64 // calls of limiters without an answer in time, by what was made of them
}

// New returns the gateway of an executor, as the configuration has it, which Check has found right. It connects nothing yet.
func New(x *exec.Executor, l *limits.Limits) *Gateway {
	g := &Gateway{core: x.Core, exec: x, limits: l, scripts: map[*scripted.Script]*upstream.Script{}, waitRoom: notSet}
	cfg := x.Config.Get()
	c, err := g.upstreamConfig(cfg)
	if err != nil { // the start says so before anything is asked
		x.Logger.Error("the upstream cannot be used", "err", err)
	}
	for _, s := range scripted.Scripts() {
		script := ownScript(s)
		if j := s.Joint(); j != nil {
			script.Joint = &upstream.Joint{Script: ownScript(j.Script), Head: j.Head, Words: j.Words, Looks: j.Looks}
		}
		g.scripts[s] = script
	}
	g.plainScript = g.scripts[scripted.PlainScript()]
	g.users = usersOf(cfg)
	g.Up = upstream.New(c, x.Logger)
	g.Up.OnAnswered, g.Up.OnDrained, g.Up.OnRelieved = g.answered, g.drained, g.relieved
	l.Remote = g
	g.leases.apply(g, cfg)
	return g
}

func ownScript(s *scripted.Script) *upstream.Script {
	return &upstream.Script{Name: s.Name, Own: true, Text: s.Text(), SHA: s.SHA()}
}

// Hooks returns what the executor needs of the gateway.
func (g *Gateway) Hooks(h exec.Hooks) exec.Hooks {
	h.Overloaded, h.Flush = g.Up.Overloaded, g.Up.Flush
	return h
}

// SharedConns is how many connections to a node calls share at most.
const SharedConns = upstream.LinksMax

// notSet is waitRoom before it is told of.
const notSet = -1

// SetWaitRoom says how many calls may wait at the upstream, of those that wait-max-clients asks for: there are descriptors for no more. The caller holds the
// executor's lock, or nothing runs yet.
func (g *Gateway) SetWaitRoom(room, asked int) {
	if room < asked && (room != g.waitRoom || asked != g.waitAsked) {
		level := slog.LevelWarn
		if asked == config.Default().WaitMaxClients { // most likely it was not asked for, and it is far more than most need
			level = slog.LevelInfo
		}
		g.core.Logger.Log(context.Background(), level, "wait-max-clients lowered to what the limit on open files leaves", "wait-max-clients", room, "asked", asked)
	}
	g.waitRoom, g.waitAsked = room, asked
	g.Up.BoundAlones(room)
}

// SetSharedRoom says how many connections to a node there are descriptors for that calls share.
func (g *Gateway) SetSharedRoom(room int) { g.Up.BoundLinks(room) }

// Waiting returns how many calls wait at the upstream. The caller holds the executor's lock.
func (g *Gateway) Waiting() int { return g.waiting }

// WaitingMax returns how many may. The caller holds the executor's lock.
func (g *Gateway) WaitingMax() int { return g.waitRoom }

// Start looks at the upstream, and goes on looking until Close. The error is one that waiting will not mend.
func (g *Gateway) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	err := g.Up.Start(ctx)
	if upstream.IsLasting(err) {
		g.Up.Close()
		return fmt.Errorf("the upstream cannot be used: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if refused := g.checkPolicies(); refused != nil { // before the policies are looked at, which logs that of an upstream that came later
		return refused
	}
	if err != nil {
		g.core.Logger.Warn("the upstream does not answer yet; until it does, limiters answer as upstream-failure says", "err", err)
	} else {
		g.lookAtPolicies()
	}
	background, stop := context.WithCancel(context.Background())
	g.stop = stop
	g.ends.Go(func() { g.followPolicies(background) })
	g.ends.Go(func() { g.followFiles(background) })
	g.ends.Go(func() { g.followLeases(background) })
	return nil
}

// Close gives back what is left of leases, and ends all connections.
func (g *Gateway) Close() {
	if g.stop != nil {
		g.stop()
	}
	g.returnLeases()
	g.Up.Close()
	g.ends.Wait()
}

// relieved has the clients go on that have waited since too much was under way.
func (g *Gateway) relieved() {
	g.core.Lock()
	defer g.core.Unlock()
	g.exec.Relieve()
}

// answered hears what the upstream has answered, and tells it. It is called on the upstream's goroutines.
func (g *Gateway) answered(calls []*upstream.Call) {
	for _, c := range calls {
		c.Owner.(*call).parseReply()
	}
	g.tellAll(calls)
}

// drained tells the answers of calls that consist of several of the upstream's. It is called on the upstream's goroutines.
func (g *Gateway) drained() {
	if g.some.Swap(false) {
		g.mu.Lock()
		heard := g.heard
		g.heard = nil
		g.mu.Unlock()
		g.tellAll(heard)
	}
	if g.unflushed.Swap(false) {
		g.Up.Flush()
	}
}

// tellAll tells clients answers, a group at a time.
func (g *Gateway) tellAll(calls []*upstream.Call) {
	again := false
	for len(calls) > 0 {
		n := min(len(calls), tellsPerHold)
		again = g.tell(calls[:n]) || again
		calls = calls[n:]
	}
	if again {
		g.Up.Flush()
	}
}

// tell tells clients the answers of some calls, and sends those again that need another round trip. It reports whether there were such.
func (g *Gateway) tell(calls []*upstream.Call) (again bool) {
	g.core.Lock()
	defer g.core.Unlock()
	g.begin()
	for _, up := range calls {
		k := up.Owner.(*call)
		if k.again {
			again = true
			g.Counts.Retries.Add(1)
			g.Up.Send(&k.up)
			continue
		}
		if k.quiet {
			g.tellNobody(k)
			continue
		}
		w := g.exec.BeginReply(&k.Answer)
		if k.failure == nil || k.Client() != nil { // a limiter decides for nobody who has gone
			g.answer(k, w)
		}
		g.letGo(k)
		g.exec.EndReply(&k.Answer)
	}
	return again
}

// begin readies the context for answers.
func (g *Gateway) begin() {
	c := &g.ctx
	c.Core, c.Turn, c.Cfg = g.core, &g.turn, g.core.Config.Get()
	c.NowNs = g.core.Clock.Read()
	c.Now = c.NowNs / 1e6
}

// Follow has the gateway obey changes of the configuration.
func (g *Gateway) Follow(live *config.Live) {
	live.OnChange(keepNothing, "appendonly", "save")
	live.OnChange(g.changed)
}

// Describe says what the upstream is, in a few words.
func (g *Gateway) Describe() string {
	s := g.Up.Status()
	what := "a Redis"
	switch {
	case s.Headgate:
		what = "a headgate"
	case s.Cluster:
		what = "a Redis Cluster"
	case s.Kind == upstream.Sentinel:
		what = "a Redis watched by Sentinel"
	case s.Problem != "":
		what = "an upstream that does not answer yet"
	}
	if len(s.Nodes) == 0 { // no Sentinel has named one yet
		return what + ": " + s.Source
	}
	var nodes []string
	for _, n := range s.Nodes {
		nodes = append(nodes, n.Addr)
	}
	return what + " at " + strings.Join(nodes, " ")
}

// logger is where the gateway logs.
func (g *Gateway) logger() *slog.Logger { return g.core.Logger }
