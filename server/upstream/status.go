package upstream

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Status is how the upstream is, for INFO and metrics. Counts are since the process began.
type Status struct {
	Kind     Kind
	Source   string // what the configuration names: addresses, or the Sentinels and their name for the primary
	Cluster  bool
	Headgate bool
	Problem  string // why the topology is not known, or an older one is used, or what is wrong with nodes; "" if all is well
	Changing bool   // a new configuration has been set, and does not work yet
	Reached  bool   // there is a primary that calls can go to: an error that tells of a missing right is an answer, too

	PendingCalls, PendingBytes int64 // bytes of requests, and of large replies
	Overloaded                 bool

	Calls     uint64 // sent by the owner
	Joined    uint64 // written to nodes as one command with others
	Timeouts  uint64 // answered by a Failure at their deadline
	Lost      uint64 // whose connection broke
	Refused   uint64 // that failed without having been sent
	Redirects uint64 // MOVED and ASK
	Connects  uint64 // attempts at connections
	Looks     uint64 // at the topology

	Nodes []NodeStatus // by address
}

// States of a node that is no use.
const (
	stateResting  = "resting"
	stateRefusing = "refusing"
)

// NodeStatus is how one node is. Counts are since it has been known.
type NodeStatus struct {
	Addr    string
	Role    string        // primary, replica, or seed: named by the configuration and not by the topology
	State   string        // up, resting: it has failed, refusing: it refuses all calls, or idle: nothing is connected
	Why     string        // it rests, or what it refuses
	Rest    time.Duration // that is left
	Version string        // as it tells; "" before it has been connected
	Offset  time.Duration // by which its clock is ahead of this machine's

	Pending     int // calls that are queued or sent
	Connections int
	Calls       uint64 // written to it, those sent again too
	Timeouts    uint64
	Lost        uint64
	Redirects   uint64
	Refused     uint64 // that the gateway's user has no right to
	Connects    uint64
	Rests       uint64
	Batch       Histogram // calls in one write
	RoundTrip   Histogram // µs from a write to a reply
}

// Status returns how the upstream is.
func (u *Upstream) Status() Status {
	f := u.fleet.Load()
	s := Status{
		Kind: f.cfg.Kind, Source: f.String(), Cluster: f.cluster.Load(), Headgate: f.headgate.Load(),
		PendingCalls: u.pendingCalls.Load(), PendingBytes: u.underWay(), Overloaded: u.overloaded.Load(),
		Calls: u.totals.calls.Load(), Joined: u.totals.joined.Load(), Timeouts: u.totals.timeouts.Load(), Lost: u.totals.lost.Load(), Refused: u.totals.refused.Load(),
		Redirects: u.totals.redirects.Load(), Connects: u.totals.connects.Load(), Looks: u.totals.looks.Load(),
	}
	s.Problem = f.problem()
	s.Reached = f.reached(s.Problem)
	u.config.Lock()
	next := u.next
	u.config.Unlock()
	if next != nil {
		s.Changing = true
		if s.Problem = next.problem(); s.Problem == "" {
			s.Problem = "a new configuration is being tried"
		}
	}
	for _, n := range f.all() {
		s.Nodes = append(s.Nodes, n.status())
	}
	slices.SortFunc(s.Nodes, func(a, b NodeStatus) int { return cmp.Compare(a.Addr, b.Addr) })
	if s.Problem == "" {
		s.Problem = s.nodesProblem()
	}
	return s
}

// problemsMax is how many nodes Problem names.
const problemsMax = 3

// nodesProblem says what is wrong with the nodes that are no use, "" if there are none.
func (s *Status) nodesProblem() string {
	var problems []string
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Down() && len(problems) < problemsMax {
			problems = append(problems, n.Addr+": "+n.Why)
		}
	}
	return strings.Join(problems, "; ")
}

// reached reports whether there is a primary that calls can go to. Where the nodes themselves tell of the topology, and nobody has told it,
// none of them answers. Calls that are refused do not count: one client's may be all that there are, and a gateway that is taken out of service for them
// gets no other by which it could be found to be of use.
func (f *fleet) reached(problem string) bool {
	if problem != "" && f.cfg.Kind != Sentinel {
		return false
	}
	for _, n := range *f.primaries.Load() {
		if !n.rests() && n.refusals.connection.Load() == nil {
			return true
		}
	}
	return false
}

// States of an upstream.
const (
	StateUp       = "up"
	StateDegraded = "degraded" // some of it is: a node rests or refuses, or the topology or a new configuration is in doubt
	StateDown     = "down"     // no primary serves this gateway
)

// State is one of the states of an upstream.
func (s *Status) State() string {
	switch {
	case !s.Reached:
		return StateDown
	case s.Problem != "" || s.NodesDown() > 0:
		return StateDegraded
	}
	return StateUp
}

// NodesDown returns how many nodes are no use: they have failed, or refuse all calls.
func (s *Status) NodesDown() (down int) {
	for i := range s.Nodes {
		if s.Nodes[i].Down() {
			down++
		}
	}
	return down
}

// Down reports whether the node is no use: it has failed and is left alone for a while, or it refuses all calls.
func (n *NodeStatus) Down() bool { return n.State == stateResting || n.State == stateRefusing }

// ClockOffset returns by how much the clock that is furthest from this machine's is ahead of it.
func (s *Status) ClockOffset() (furthest time.Duration) {
	for i := range s.Nodes {
		if offset := s.Nodes[i].Offset; offset.Abs() > furthest.Abs() {
			furthest = offset
		}
	}
	return furthest
}

// Batch counts the calls in one write, of all nodes.
func (s *Status) Batch() (all Histogram) {
	for i := range s.Nodes {
		all.Merge(&s.Nodes[i].Batch)
	}
	return all
}

// RoundTrip counts the µs from a write to a reply, of all nodes.
func (s *Status) RoundTrip() (all Histogram) {
	for i := range s.Nodes {
		all.Merge(&s.Nodes[i].RoundTrip)
	}
	return all
}

func (f *fleet) problem() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err.Error()
	}
	return ""
}

func (n *node) status() NodeStatus {
	s := NodeStatus{
		Addr: n.addr, Role: role(n.role.Load()).String(), State: "idle", Offset: time.Duration(n.offset.Load()),
		Calls: n.figures.calls.Load(), Timeouts: n.figures.timeouts.Load(), Lost: n.figures.lost.Load(), Redirects: n.figures.redirects.Load(),
		Refused: n.figures.refused.Load(), Connects: n.figures.connects.Load(), Rests: n.figures.rests.Load(),
		Batch: n.figures.batch.snapshot(), RoundTrip: n.figures.roundTrip.snapshot(),
	}
	if hello := n.hello.Load(); hello != nil {
		s.Version = hello.version
	}
	for _, l := range n.links() {
		l.mu.Lock()
		s.Pending += l.queue.n + l.live
		if l.conn != nil {
			s.Connections++
			s.State = "up"
		}
		l.mu.Unlock()
	}
	if why := n.refusals.why(); why != "" {
		s.State, s.Why = stateRefusing, why
	}
	n.mu.Lock()
	if n.rests() {
		s.State, s.Why, s.Rest = stateResting, n.restsFor(), time.Duration(max(0, n.until-Now()))
	}
	n.mu.Unlock()
	return s
}

// Histogram counts values in buckets that are at most a quarter of their values wide.
type Histogram struct {
	Counts [buckets]uint64
	Sum    uint64 // of all values
}

const buckets = 104 // values up to 2^27

// histogram is one that is being counted. It is safe for concurrent use.
type histogram struct {
	counts [buckets]atomic.Uint64
	sum    atomic.Uint64
}

// Add counts a value. Negative ones are 0, and those too large for the last bucket are in it.
func (h *histogram) Add(value int64) {
	v := uint64(max(value, 0))
	h.sum.Add(v)
	h.counts[bucketOf(v)].Add(1)
}

// addMany counts a value as often as it was found.
func (h *histogram) addMany(value int64, times uint64) {
	if times == 0 {
		return
	}
	v := uint64(max(value, 0))
	h.sum.Add(v * times)
	h.counts[bucketOf(v)].Add(times)
}

// bucketOf is the bucket of a value: one for each below 8, and then 4 for each doubling.
func bucketOf(v uint64) int {
	if v < 4 {
		return int(v)
	}
	doublings := bits.Len64(v) - 3
	return min(4*doublings+int(v>>doublings), buckets-1)
}

// bucketMax is the largest value of a bucket.
func bucketMax(bucket int) uint64 {
	if bucket < 4 {
		return uint64(bucket)
	}
	doublings := bucket/4 - 1
	return uint64(bucket-4*doublings+1)<<doublings - 1
}

func (h *histogram) snapshot() (s Histogram) {
	for i := range h.counts {
		s.Counts[i] = h.counts[i].Load()
	}
	s.Sum = h.sum.Load()
	return s
}

// Merge adds what another histogram has counted.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.Counts {
		h.Counts[i] += n
	}
	h.Sum += other.Sum
}

// Count returns how many values there are.
func (h *Histogram) Count() (n uint64) {
	for _, bucket := range h.Counts {
		n += bucket
	}
	return n
}

// Below returns, for each power of two up to the largest that the buckets tell apart, how many values are less than it.
func (h *Histogram) Below() map[uint64]uint64 {
	below := map[uint64]uint64{}
	var n uint64
	for i, counted := range h.Counts[:buckets-1] {
		n += counted
		if next := bucketMax(i) + 1; next&(next-1) == 0 {
			below[next] = n
		}
	}
	return below
}

// Quantile returns the least value that at least a share q of the values, from 0 to 1, are not above; as large as its bucket, so up to a
// quarter too much. It is 0 if there are no values.
func (h *Histogram) Quantile(q float64) uint64 {
	count := h.Count()
	wanted := max(1, uint64(q*float64(count)+0.5))
	for i, n := range h.Counts {
		if n >= wanted {
			return bucketMax(i)
		}
		wanted -= n
	}
	return 0
}
