package upstream

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// node is a server, and the connections to it.
type node struct {
	up    *Upstream
	fleet *fleet
	addr  string // as the topology names it; Config.Map may lead elsewhere

	role     atomic.Int32 // a role
	hello    atomic.Pointer[greeting]
	offset   atomic.Int64 // ns by which its clock is ahead of this machine's
	refusals refusals
	figures  figures

	own    [2]*link // of Config's user and database 0: RESP2, RESP3
	alones alones

	mu      sync.Mutex
	others  map[linkKey]*link
	resting atomic.Pointer[Failure] // what calls fail with while it rests, nil: it does not; set with mu held
	until   int64                   // when the rest ends, by Now
	since   atomic.Int64            // when it has last been found to be of no use, likewise
	probe   *time.Timer             // at the end of the rest
	closed  bool
	busy    atomic.Int64 // until when it may be at work on a long request, by Now
	begun   atomic.Int64 // when it began that work
	heard   atomic.Int64 // when something came from it last

	// The timer of deadlines.
	expiring sync.Mutex // one expire at a time
	excused  bool       // the timer was late, and has been set again once
	timing   sync.Mutex
	timer    *time.Timer
	armed    atomic.Int64 // when the timer fires, by Now; changed with timing held
}

// role is what the topology says of a node.
type role int32

const (
	seed role = iota // named by the configuration, not by the topology
	primary
	replica
)

func (r role) String() string { return [...]string{"seed", "primary", "replica"}[r] }

// figures are counted for one node.
type figures struct {
	calls, timeouts, lost, redirects, refused, connects, rests atomic.Uint64
	batch                                                      histogram // calls in one write
	roundTrip                                                  histogram // µs from a write to the reply
}

func newNode(f *fleet, addr string) *node {
	n := &node{up: f.up, fleet: f, addr: addr, others: map[linkKey]*link{}}
	n.own[0], n.own[1] = newLink(n, linkKey{proto: 2}), newLink(n, linkKey{proto: 3})
	n.armed.Store(never)
	n.timer, n.probe = stopped(n.expire), stopped(n.tryOut)
	return n
}

// stopped returns a timer that is not set. One that is set for never would keep its node in memory when that has left.
func stopped(f func()) *time.Timer {
	timer := time.AfterFunc(never, f)
	timer.Stop()
	return timer
}

func (n *node) host() string {
	host, _, err := net.SplitHostPort(n.addr)
	if err != nil {
		return n.addr
	}
	return host
}

func (n *node) failure(kind FailureKind, detail string) *Failure {
	return &Failure{Kind: kind, Node: n.addr, Detail: detail, After: time.Duration(n.up.timeout.Load())}
}

// send queues a call at its connection, or lets it fail. Flush must follow.
func (n *node) send(c *Call) {
	deadline := c.Deadline // once it is queued, the call may be answered and its owner's again at any moment
	var failure *Failure
	for range 2 { // the first one may just have been closed to make room for another
		var l *link
		if l, failure = n.link(c); failure == nil {
			failure = l.enqueue(c)
		}
		if failure == nil {
			n.arm(deadline)
			return
		}
		if failure.Detail != closedDetail {
			break
		}
	}
	if failure.Detail == closedDetail && !c.internal {
		n.up.wait(c, failure) // the node has left the topology just now
		return
	}
	n.up.refuse(c, failure)
}

const closedDetail = "the connection is closed"

// link returns the connection that a call takes, or why there is none.
func (n *node) link(c *Call) (*link, *Failure) {
	proto := 2
	if c.Proto == 3 {
		proto = 3
	}
	if c.User == nil && c.DB == 0 {
		return n.own[proto-2], nil
	}
	key := linkKey{proto: proto, db: int(c.DB)}
	if c.User != nil {
		key.user = *c.User
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.others[key]; l != nil {
		return l, nil
	}
	if n.closed {
		return nil, n.failure(Unreachable, closedDetail)
	}
	for len(n.others) >= n.up.othersMax() {
		if !n.dropIdle() {
			return nil, n.failure(Unreachable, "too many connections, of different users and databases")
		}
	}
	l := newLink(n, key)
	n.others[key] = l
	return l, nil
}

// BoundLinks says how many connections to one node there may be that calls share, for lack of descriptors: LinksMax at most, and at least those of
// the gateway's own user and one more.
func (u *Upstream) BoundLinks(most int) { u.linksMax.Store(int64(max(1, min(most, LinksMax)))) }

// othersMax is how many of them may be of other users and databases.
func (u *Upstream) othersMax() int {
	most := int(cmp.Or(u.linksMax.Load(), LinksMax))
	return max(1, most-len(node{}.own))
}

// dropIdle drops a connection that nothing uses now, and reports false if there is none. One that could not be made goes first, so that clients who
// are refused cost others none of theirs, and then the one that was used longest ago. The caller holds mu.
func (n *node) dropIdle() bool {
	links := slices.Collect(maps.Values(n.others))
	lastUse := make(map[*link]int64, len(links))
	for _, l := range links {
		lastUse[l] = l.lastUse()
	}
	slices.SortFunc(links, func(a, b *link) int { return cmp.Compare(lastUse[a], lastUse[b]) })
	for _, l := range links {
		if l.shut(true) {
			delete(n.others, l.key)
			return true
		}
	}
	return false
}

// links returns all connections.
func (n *node) links() []*link {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.own[:]
	if len(n.others) > 0 {
		all = append(make([]*link, 0, len(n.others)+len(n.own)), all...)
		for _, l := range n.others {
			all = append(all, l)
		}
	}
	return all
}

// connected reports whether there is a connection that calls share.
func (n *node) connected() bool {
	return slices.ContainsFunc(n.links(), (*link).connected)
}

// owes adds the slots for which the node has still to answer calls.
func (n *node) owes(to *owedSlots) {
	for _, l := range n.links() {
		l.owes(to)
	}
}

// shut closes the connections that are idle for good, and reports whether all are.
func (n *node) shut() bool {
	idle := true
	for _, l := range n.links() {
		idle = l.shut(true) && idle
	}
	return n.alones.reap(never) && idle
}

// reap closes connections that have had no call since a time.
func (n *node) reap(since int64) {
	for _, l := range n.links() {
		if l.unusedSince(since) {
			l.shut(false)
		}
	}
	n.alones.reap(since)
}

// close ends the node.
func (n *node) close() {
	n.mu.Lock()
	n.closed = true
	n.probe.Stop()
	n.mu.Unlock()
	for _, l := range n.links() {
		l.close()
	}
	n.alones.close()
}

// Deadlines.

const (
	tick      = int64(time.Millisecond)     // between two looks at deadlines, so that many are seen to together
	lateMax   = int64(2 * time.Millisecond) // more than that late, the timer shows that the process was held up, and replies may be waiting unread
	lateGrace = int64(3 * time.Millisecond) // that the readers get then
)

// A node that owes replies is silent when nothing has come from it for this part of the timeout. It is somewhat less than all of it, since calls
// spend some of theirs on the way to the node.
const silentParts, silentOf = 3, 4

// silence is for how long that is, in ns.
func (u *Upstream) silence() int64 { return u.timeout.Load() / silentOf * silentParts }

// expiry is what one look at a node's deadlines finds.
type expiry struct {
	calls  []*Call // whose deadline has passed
	next   int64   // the next deadline, or when a connection has been silent for long enough
	silent bool    // a connection has been, or could not be made for as long
}

// arm has the deadlines looked at by a time.
func (n *node) arm(deadline int64) {
	if deadline >= n.armed.Load() {
		return
	}
	n.timing.Lock()
	defer n.timing.Unlock()
	if deadline < n.armed.Load() {
		n.armed.Store(deadline)
		n.timer.Reset(time.Duration(deadline - Now()))
	}
}

// expire answers the calls whose deadline has passed. The timer is not stopped when a call is answered, so it fires about once per timeout.
func (n *node) expire() {
	n.expiring.Lock()
	defer n.expiring.Unlock()
	n.timing.Lock()
	now := Now()
	late := now - n.armed.Load()
	n.armed.Store(never) // before the queues are looked at, so that send arms for what comes afterwards
	n.timing.Unlock()
	if late > lateMax && !n.excused {
		n.excused = true
		n.arm(now + lateGrace)
		return
	}
	n.excused = false
	for _, l := range n.links() {
		l.lookNow()
	}
	e := expiry{next: never}
	for _, l := range n.links() {
		l.expire(now, &e)
	}
	if e.silent && n.silentSince(now-n.up.silence()) {
		n.rest("no answer in time")
	}
	if len(e.calls) > 0 {
		n.figures.timeouts.Add(uint64(len(e.calls)))
		n.up.totals.timeouts.Add(uint64(len(e.calls)))
		failure := n.failure(Timeout, "")
		var told answers
		for _, c := range e.calls {
			n.up.complete(&told, c, nil, failure)
		}
		n.up.drained(&told)
	}
	if e.next != never {
		n.arm(max(e.next, Now()+tick))
	}
}

// silentSince reports whether nothing has come over any connection since a time. If something has, a connection that is silent is broken, and
// not the node.
func (n *node) silentSince(since int64) bool {
	for _, l := range n.links() {
		if l.arrived.Load() > since {
			return false
		}
	}
	return n.alones.arrived.Load() <= since
}

// What a node may take for a request or a reply longer than flightBytes, and answers nobody meanwhile: redis-server has some 20 ms for each MiB
// of a script's key. The same goes for this gateway, which looks for other replies when it has passed on the long one.
const (
	workPerMiB = int64(50 * time.Millisecond)
	workMax    = int64(2 * time.Second)
)

// workOn tells that the node is being given so many bytes to work on, or has been, or has given so many. It is not silent meanwhile, or one
// client's long request or reply had all others refused.
func (n *node) workOn(bytes int) {
	if bytes <= flightBytes {
		return
	}
	now := Now()
	if begun := n.begun.Load(); n.busy.Load() < now && (begun == 0 || n.heard.Load() > begun) {
		n.begun.Store(now)
	}
	// One that has not been heard of for so long is silent, however many long requests it is given.
	work := min(int64(bytes), workMax/workPerMiB<<20) * workPerMiB >> 20
	storeMax(&n.busy, min(now+work, max(n.begun.Load(), n.heard.Load())+workMax))
}

// storeMax raises a value that others raise as well.
func storeMax(v *atomic.Int64, to int64) {
	for old := v.Load(); old < to && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}

// The breaker.

// rest has the node left alone for a while: calls fail at once, also those that are queued and not sent. Those under way may still be
// answered.
func (n *node) rest(why string) {
	n.mu.Lock()
	if n.closed || n.rests() {
		n.mu.Unlock()
		return
	}
	failure := n.failure(Resting, why)
	n.resting.Store(failure)
	n.restOn()
	n.mu.Unlock()
	n.figures.rests.Add(1)
	n.up.log.Warn("upstream: a node rests", "node", n.addr, "why", why)
	for _, l := range n.links() {
		l.mu.Lock()
		l.refuseQueue(failure)
		l.mu.Unlock()
	}
	n.up.Flush()
	n.fleet.lookSoon()
}

// rests reports whether the node rests.
func (n *node) rests() bool { return n.resting.Load() != nil }

// restsFor returns why the node rests, "" if it does not.
func (n *node) restsFor() string {
	if failure := n.resting.Load(); failure != nil {
		return failure.Detail
	}
	return ""
}

// restOn sets when the rest ends. The caller holds mu.
func (n *node) restOn() {
	rest := jitteredNs(n.up.rest.Load())
	n.until = Now() + rest
	n.since.Store(Now())
	n.probe.Reset(time.Duration(rest))
}

// tryOut ends the rest if the node answers: once connected, within the timeout. One that refuses the connection does answer.
func (n *node) tryOut() {
	_, err := n.ask(connectMax, "PING")
	if err == nil {
		_, err = n.ask(time.Duration(n.up.timeout.Load()), "PING")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	var refusal refusedError
	if err != nil && !errors.As(problemOf(err), &refusal) {
		was, why := n.restsFor(), problemOf(err).Error()
		if why == closedDetail {
			return // it has left the topology, and only calls that wait there keep it
		}
		n.resting.Store(n.failure(Resting, why))
		n.restOn()
		if why != was {
			n.up.log.Warn("upstream: a node still rests", "node", n.addr, "why", why)
		}
		return
	}
	n.resting.Store(nil)
	if err == nil { // else the log has been told what it refuses
		n.up.log.Info("upstream: a node answers again", "node", n.addr)
	}
	n.fleet.lookSoon()
}

// ask sends one of this package's own commands, also to a node that rests, and waits for the reply. An error reply is no error, but for
// what comes before the command: a connection that cannot be made.
func (n *node) ask(timeout time.Duration, args ...string) (v value, err error) {
	done := make(chan struct{})
	var reply []byte
	c := &Call{Slot: -1, Proto: 2, Replies: 1, Request: command(args...), Deadline: Now() + int64(timeout), Reads: true, internal: true}
	c.Done = func(c *Call) {
		switch {
		case c.Err != nil:
			err = c.Err
		case len(c.Reply) > topologyMax: // as values it would take up many times as much
			err = errTooLong
		default:
			reply = bytes.Clone(c.Reply)
		}
		close(done)
	}
	n.send(c)
	n.up.Flush()
	if <-done; err == nil {
		v, _ = parseValue(reply) // here, since it may be long, and others wait for whoever reads
	}
	return v, err
}

// jittered returns a duration that is up to a quarter longer, by chance.
func jittered(d time.Duration) time.Duration { return time.Duration(jitteredNs(int64(d))) }

func jitteredNs(ns int64) int64 { return ns + rand.Int64N(ns/4+1) }
