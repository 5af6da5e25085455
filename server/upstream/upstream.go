package upstream

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Upstream is the way to the nodes. All methods are safe for concurrent use.
type Upstream struct {
	// OnAnswered is given the answered calls that have no Done, in groups of those that are answered together, with no lock held. It keeps
	// nothing of the slice. It is set before Start, and may be called on several goroutines at a time.
	OnAnswered func(calls []*Call)
	// OnDrained, if not nil, is called after each group of calls that were answered together, on the same goroutine. Otherwise it is like
	// OnAnswered.
	OnDrained func()
	// OnRelieved, if not nil, is called like OnDrained, when Overloaded has become false.
	OnRelieved func()

	log *slog.Logger

	config  sync.Mutex // SetConfig, Start and Close are under way one at a time
	started bool
	closed  bool
	fleet   atomic.Pointer[fleet] // what calls are sent to
	next    *fleet                // of a configuration that has not worked yet

	// From Config.
	timeout      atomic.Int64 // ns
	rest         atomic.Int64 // ns
	bytesMax     atomic.Int64
	commandsMax  atomic.Int64
	replyMax     atomic.Int64
	replies      replyMemory
	pendingBytes atomic.Int64 // of requests
	pendingCalls atomic.Int64
	overloaded   atomic.Bool

	alones    atomic.Int64 // connections that one call at a time has, with those that are being made
	linksMax  atomic.Int64 // to one node, which calls share; 0: LinksMax
	alonesMax atomic.Int64 // above it idle ones make room; 0: there is no bound

	watchers watchers
	queued   queuedLinks
	refused  refusedCalls
	waiting  waitingCalls
	totals   totals
}

// totals are counted over all nodes, those that are no more included.
type totals struct {
	calls, joined, timeouts, lost, redirects, refused, connects, looks atomic.Uint64
}

// start is what Now counts from.
var start = time.Now()

// Now is the time by which deadlines go, in ns: monotonic, since the process began.
func Now() int64 { return int64(time.Since(start)) }

// New returns the way to the nodes of a configuration. It connects nothing yet: calls fail before Start.
func New(cfg Config, log *slog.Logger) *Upstream {
	u := &Upstream{log: log}
	u.setLimits(cfg.withDefaults())
	u.fleet.Store(newFleet(u, cfg.withDefaults()))
	u.waiting.init(u)
	return u
}

func (u *Upstream) setLimits(cfg Config) {
	u.timeout.Store(int64(cfg.Timeout))
	u.rest.Store(int64(cfg.Rest))
	u.bytesMax.Store(cfg.PendingBytes)
	u.commandsMax.Store(int64(cfg.PendingCommands))
	u.replyMax.Store(cfg.ReplyMax)
}

// Start looks at the topology for the first time, and goes on looking until Close. An error says why there is none: what could not be
// reached, a wrong password, a server that is too old, a replica, this process itself; IsLasting tells whether
// waiting may help. After an error the Upstream works all the same, as soon as the nodes do; an owner that does not want that closes it.
func (u *Upstream) Start(ctx context.Context) error {
	u.config.Lock()
	u.started = true
	f := u.fleet.Load()
	u.config.Unlock()
	err := f.look(ctx)
	f.failed(err)
	go f.watch()
	return err
}

// SetConfig changes the configuration. Limits hold at once. If the nodes, the user or TLS differ (TLS configurations are compared by pointer),
// new connections are made; calls go there as soon as the topology has been seen, and to the old nodes until then, whose connections are closed
// when their calls have been answered.
func (u *Upstream) SetConfig(cfg Config) {
	cfg = cfg.withDefaults()
	u.config.Lock()
	defer u.config.Unlock()
	u.setLimits(cfg)
	if u.closed {
		return
	}
	current := u.fleet.Load()
	if u.next != nil {
		u.next.close()
		u.next = nil
	}
	if current.cfg.sameNodes(&cfg) {
		return
	}
	next := newFleet(u, cfg)
	if !u.started {
		u.fleet.Store(next)
		return
	}
	u.next = next
	go u.change(current, next)
}

// change has calls go to the nodes of next once their topology is known, unless there is a later configuration by then.
func (u *Upstream) change(current, next *fleet) {
	next.succeed(current)
	for {
		ctx, cancel := context.WithTimeout(next.ctx, lookMax)
		err := next.look(ctx)
		cancel()
		if next.catchUp() {
			continue
		}
		var look *lookError
		if err == nil || errors.As(err, &look) && look.settled {
			break
		}
		next.reap()
		if next.failed(err) {
			u.log.Warn("upstream: the new configuration does not work, and the old one is used meanwhile", "upstream", next.String(), "error", err)
		}
		select {
		case <-time.After(jittered(lookFailed)):
		case <-next.done:
			return
		}
	}
	u.config.Lock()
	if u.next != next {
		u.config.Unlock()
		return
	}
	u.next = nil
	next.stands()
	current.turnAll()
	u.fleet.Store(next)
	u.config.Unlock()
	u.log.Info("upstream: the new configuration is used", "upstream", next.String())
	go next.watch()
	current.drain()
}

// Close ends all connections. Calls under way fail, and so do later ones.
func (u *Upstream) Close() {
	u.config.Lock()
	if u.closed {
		u.config.Unlock()
		return
	}
	u.closed = true
	if u.next != nil {
		u.next.close()
		u.next = nil
	}
	u.config.Unlock()
	u.fleet.Load().close()
	u.waiting.close()
	u.refused.flush(u)
}

// Headgate reports whether the upstream is a headgate, so that its own commands may be sent to it.
func (u *Upstream) Headgate() bool { return u.fleet.Load().headgate.Load() }

// Unknown returns why nobody knows yet whether the upstream is a headgate or a cluster; nil if that is known.
func (u *Upstream) Unknown() *Failure {
	f := u.fleet.Load()
	if f.known.Load() {
		return nil
	}
	return &Failure{Kind: Unreachable, Detail: f.missing()}
}

// Cluster reports whether the upstream is a Redis Cluster.
func (u *Upstream) Cluster() bool { return u.fleet.Load().cluster.Load() }

// Send queues a call at the connection that it has to take. It does no I/O, and never answers itself: that is done on another goroutine,
// exactly once, by Done or OnAnswered, and may be before Send returns. Flush must follow.
func (u *Upstream) Send(c *Call) {
	c.Reply, c.Common, c.Kept, c.Err, c.Node = nil, nil, false, nil, ""
	c.attempts, c.loads, c.asking, c.load, c.single, c.internal = 0, 0, false, false, false, false
	if c.At == 0 {
		c.At = Now()
	}
	if c.Deadline == 0 {
		c.Deadline = c.At + u.timeout.Load()
	}
	calls := u.pendingCalls.Add(1)
	size := int64(len(c.Request))
	bytes := u.pendingBytes.Add(size)
	if calls > u.commandsMax.Load() || bytes+u.replies.counted.Load() > u.bytesMax.Load() {
		u.overloaded.Store(true)
		if calls > pendingHard*u.commandsMax.Load() || bytes-size > pendingHard*u.bytesMax.Load() {
			u.refuse(c, &Failure{Kind: Pending})
			return
		}
	}
	c.number = u.totals.calls.Add(1)
	if !u.waiting.joined(c) {
		u.route(c)
	}
}

// Resting returns what a call to a slot's node would fail with at once, since the node rests; nil if it would be sent. So who has a long command
// need not copy it to learn that. It counts as a call that was refused.
func (u *Upstream) Resting(slot int) *Failure {
	n := u.fleet.Load().nodeFor(slot)
	if n == nil {
		return nil
	}
	failure := n.resting.Load()
	if failure != nil {
		u.totals.calls.Add(1)
		u.totals.refused.Add(1)
	}
	return failure
}

// route queues a call at the node that has its slot. It may be one that was sent before and has not run.
func (u *Upstream) route(c *Call) {
	f := u.fleet.Load()
	n := f.nodeFor(c.Slot)
	if n == nil {
		u.refuse(c, &Failure{Kind: Unreachable, Detail: f.missing()})
		return
	}
	n.send(c)
}

// Flush has all that was queued written: by one write for each connection, as soon as fewer than two of its writes are under way. An owner
// calls it once after a group of Sends.
func (u *Upstream) Flush() {
	u.queued.flush()
	u.refused.flush(u)
}

// Overloaded reports whether so much is under way that the owner should send nothing more before OnRelieved.
func (u *Upstream) Overloaded() bool { return u.overloaded.Load() }

// answers are calls that are answered together, as far as they have no Done.
type answers []*Call

// complete gives a call back to its owner, or adds it to those that drained does. The caller holds no lock.
func (u *Upstream) complete(to *answers, c *Call, reply []byte, failure *Failure) {
	if !c.internal {
		u.settle(1, int64(len(c.Request)))
	}
	to.add(c, reply, failure)
}

// settle counts calls, and the bytes of their requests, no longer as under way.
func (u *Upstream) settle(calls, bytes int64) {
	u.pendingCalls.Add(-calls)
	u.pendingBytes.Add(-bytes)
}

// add is complete for a call that is settled.
func (a *answers) add(c *Call, reply []byte, failure *Failure) {
	if failure != nil {
		c.Node = failure.Node
		if failure.reply != nil {
			reply, failure = failure.reply, nil
		}
	}
	c.Reply, c.Err = reply, failure
	if c.Done != nil {
		c.Done(c)
	} else {
		*a = append(*a, c)
	}
}

// drained follows a group of calls of complete, and empties it.
func (u *Upstream) drained(a *answers) {
	if len(*a) > 0 {
		u.OnAnswered(*a)
		clear(*a)
		*a = (*a)[:0]
	}
	if u.OnDrained != nil {
		u.OnDrained()
	}
	u.relieve()
}

// relieve tells the owner that it may go on, if that is so.
func (u *Upstream) relieve() {
	if u.overloaded.Load() && u.replies.waiting.Load() == 0 && u.pendingCalls.Load() <= u.commandsMax.Load()/4*3 && u.crowding() <= u.bytesMax.Load()/4*3 &&
		u.overloaded.CompareAndSwap(true, false) && u.OnRelieved != nil {
		u.OnRelieved()
	}
}

// queuedLinks are the connections at which something was queued since the last Flush.
type queuedLinks struct {
	some  atomic.Bool
	mu    sync.Mutex
	links []*link
	spare []*link // a slice to be used again
}

func (q *queuedLinks) add(l *link) {
	q.mu.Lock()
	q.links = append(q.links, l)
	q.some.Store(true)
	q.mu.Unlock()
}

func (q *queuedLinks) flush() {
	if !q.some.Load() {
		return
	}
	q.mu.Lock()
	links := q.links
	q.links, q.spare = q.spare, nil
	q.some.Store(false)
	q.mu.Unlock()
	for i, l := range links {
		l.flush()
		links[i] = nil
	}
	q.mu.Lock()
	q.spare = links[:0]
	q.mu.Unlock()
}

// refusedCalls are those that fail before they have been queued anywhere. Send may run under its owner's locks, so another goroutine has
// to tell the owner: one that lives while there are such calls.
type refusedCalls struct {
	some    atomic.Bool
	mu      sync.Mutex
	calls   callList
	telling bool
}

// refuse lets a call fail, which Flush tells the owner.
func (u *Upstream) refuse(c *Call, failure *Failure) {
	u.totals.refused.Add(1)
	c.Err = failure
	u.refused.mu.Lock()
	u.refused.calls.push(c)
	u.refused.some.Store(true)
	u.refused.mu.Unlock()
}

func (r *refusedCalls) flush(u *Upstream) {
	if !r.some.Load() {
		return
	}
	r.mu.Lock()
	idle := !r.telling
	r.telling = true
	r.mu.Unlock()
	if idle {
		go r.tell(u)
	}
}

func (r *refusedCalls) tell(u *Upstream) {
	var told answers
	for {
		r.mu.Lock()
		calls := r.calls
		r.calls = callList{}
		r.some.Store(false)
		r.telling = calls.n > 0
		r.mu.Unlock()
		if calls.n == 0 {
			return
		}
		for c := calls.pop(); c != nil; c = calls.pop() {
			u.complete(&told, c, nil, c.Err)
		}
		u.drained(&told)
	}
}
