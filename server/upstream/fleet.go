package upstream

import (
	"context"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// fleet is the nodes of one configuration, as far as they are known.
type fleet struct {
	up     *Upstream
	cfg    Config
	ctx    context.Context // done when the fleet is closed
	cancel context.CancelFunc
	done   <-chan struct{} // of ctx
	wanted chan struct{}   // a look at the topology is wanted

	cluster   atomic.Bool
	headgate  atomic.Bool
	known     atomic.Bool             // what the upstream is: cluster and headgate say so
	stateless atomic.Bool             // the user may not ask whether a cluster is down
	primaries atomic.Pointer[[]*node] // replaced whole
	slots     [Slots]atomic.Pointer[node]
	runs      [Slots / slotRun]atomic.Pointer[node] // who has all slots of a run; nil: look at slots
	turn      atomic.Uint32                         // counts the calls for any primary

	askingRefusing atomic.Bool // askRefusing runs

	owning    sync.Mutex     // one change of slots and runs at a time
	looking   sync.Mutex     // one look at a time
	failovers failovers      // that Sentinels have told of; guarded by looking, and so are
	tried     map[*node]bool // those that they name, in this look
	former    *fleet         // whose primary counts as the one in use until this configuration has one; nil: none
	heard     failover       // the latest that was taken over from it

	mu      sync.Mutex
	nodes   map[string]*node // by address; those that may be asked
	hosts   []string         // host:port of nodes that have no slots yet, as CLUSTER NODES tells
	curious bool             // CLUSTER NODES is wanted too
	left    []*node          // that are no more, until their calls have been answered
	err     error            // of the last look
}

// slotRun is how many slots that follow each other are a run. Nodes mostly have thousands in a row, and a look at one place for many of them is
// in the processor's cache.
const slotRun = 64

func newFleet(u *Upstream, cfg Config) *fleet {
	f := &fleet{up: u, cfg: cfg, wanted: make(chan struct{}, 1), nodes: map[string]*node{}, tried: map[*node]bool{}}
	f.failovers.sentinels = cfg.Addrs
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.done = f.ctx.Done()
	var seeds []*node
	if cfg.Kind == Plain {
		for _, addr := range f.seedAddrs() {
			seeds = append(seeds, f.node(addr, seed))
		}
	}
	f.primaries.Store(&seeds)
	return f
}

func (f *fleet) seedAddrs() []string {
	if f.cfg.Unix != "" {
		return []string{f.cfg.Unix}
	}
	return f.cfg.Addrs
}

// String names the configuration for the log, without secrets.
func (f *fleet) String() string {
	s := strings.Join(f.seedAddrs(), ",")
	if f.cfg.Kind == Sentinel {
		return "sentinels " + s + ", primary " + f.cfg.Master
	}
	return s
}

// node returns the node of an address, and makes it if it is new; nil if there are too many, or the fleet is closed.
func (f *fleet) node(addr string, as role) *node {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[addr]
	if n == nil {
		if len(f.nodes) >= 2*nodesMax || f.ctx.Err() != nil { // those of a topology, and of the one before it
			return nil
		}
		n = newNode(f, addr)
		f.nodes[addr] = n
	}
	n.role.Store(int32(as))
	return n
}

// named returns the node of an address if the topology or the configuration names it.
func (f *fleet) named(addr string) *node {
	f.mu.Lock()
	n := f.nodes[addr]
	known := n != nil || slices.Contains(f.hosts, addr)
	f.mu.Unlock()
	if n == nil && known {
		n = f.node(addr, primary)
	}
	return n
}

// all returns the nodes, in no order.
func (f *fleet) all() []*node {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*node, 0, len(f.nodes))
	for _, n := range f.nodes {
		list = append(list, n)
	}
	return list
}

// allEver is all, and those that have left and still have calls.
func (f *fleet) allEver() []*node {
	list := f.all()
	f.mu.Lock()
	defer f.mu.Unlock()
	return append(list, f.left...)
}

// nodeFor returns the node that has a slot, or any primary if that is not known; nil if none is.
func (f *fleet) nodeFor(slot int) *node {
	if slot >= 0 && slot < Slots && f.cluster.Load() {
		if n := f.runs[slot/slotRun].Load(); n != nil {
			return n
		}
		if n := f.slots[slot].Load(); n != nil {
			return n
		}
	}
	primaries := *f.primaries.Load()
	switch len(primaries) {
	case 0:
		return nil
	case 1:
		return primaries[0]
	}
	turn := int(f.turn.Add(1) % nodesMax)
	for i := range primaries {
		if n := primaries[(turn+i)%len(primaries)]; !n.rests() {
			return n
		}
	}
	return primaries[turn%len(primaries)]
}

// serves reports whether calls for a slot may be sent to a node.
func (f *fleet) serves(n *node, slot int) bool {
	if slot >= 0 && slot < Slots && f.cluster.Load() {
		if owner := f.slots[slot].Load(); owner != nil {
			return owner == n
		}
	}
	return slices.Contains(*f.primaries.Load(), n)
}

// letGo has nodes let go of calls that wait there for slots which they have no longer.
func (f *fleet) letGo() {
	for _, n := range f.allEver() {
		n.alones.letGo(func(slot int) bool { return !f.serves(n, slot) })
	}
}

// missing says why there is no node.
func (f *fleet) missing() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return "no primary is known: " + f.err.Error()
	}
	return "no primary is known"
}

// failed notes why the last look found nothing, nil if it did, and reports whether that is another problem than before.
func (f *fleet) failed(err error) (another bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	another = err != nil && (f.err == nil || f.err.Error() != err.Error())
	f.err = err
	return another
}

// lookSoon has the topology looked at soon, on another goroutine.
func (f *fleet) lookSoon() {
	select {
	case f.wanted <- struct{}{}:
	default:
	}
}

// lookForNodes has also the nodes looked for that have no slots yet.
func (f *fleet) lookForNodes() {
	f.mu.Lock()
	f.curious = true
	f.mu.Unlock()
	f.lookSoon()
}

// anySlot is the Slot of calls for any primary, which are all calls where there is but one.
const anySlot = -1

// setPrimaries says who the primaries are. Which slots they have is set before.
func (f *fleet) setPrimaries(primaries []*node) {
	was := *f.primaries.Load()
	if len(was) == 1 && len(primaries) == 1 && was[0] != primaries[0] {
		f.up.waiting.turn(anySlot, was[0])
	}
	f.primaries.Store(&primaries)
	former, current := addrsBut(was, primaries), addrsBut(primaries, was)
	if f.known.Load() && len(former)+len(current) > 0 {
		f.up.log.Info("upstream: the primaries have changed", "upstream", f.String(), "former", former, "new", current)
	}
	for _, n := range primaries {
		n.alones.forgive()
	}
	f.letGo()
}

// addrsBut lists the addresses of nodes, but for those that are among others.
func addrsBut(nodes, others []*node) (addrs []string) {
	for _, n := range nodes {
		if !slices.Contains(others, n) {
			addrs = append(addrs, n.addr)
		}
	}
	return addrs
}

// setOwner says which node has a slot.
func (f *fleet) setOwner(slot int, n *node) {
	f.owning.Lock()
	defer f.owning.Unlock()
	was := f.slots[slot].Load()
	if was == n {
		return
	}
	if was != nil {
		f.up.waiting.turn(slot, was)
	}
	run := &f.runs[slot/slotRun]
	run.Store(nil)
	f.slots[slot].Store(n)
	first := slot / slotRun * slotRun
	for i := first; i < first+slotRun; i++ {
		if f.slots[i].Load() != n {
			return
		}
	}
	run.Store(n)
}

// keepOnly has nodes leave that are not among those of the topology, nor of the configuration. Their connections stay until their calls have
// been answered.
func (f *fleet) keepOnly(kept map[*node]bool) {
	seeds := f.seedAddrs()
	f.mu.Lock()
	defer f.mu.Unlock()
	for addr, n := range f.nodes {
		switch {
		case kept[n]:
		case f.cfg.Kind == Plain && slices.Contains(seeds, addr):
			n.role.Store(int32(seed))
		default:
			delete(f.nodes, addr)
			f.left = append(f.left, n)
		}
	}
}

// reap closes what nothing uses any more.
func (f *fleet) reap() {
	f.mu.Lock()
	left := f.left
	f.left = nil
	f.mu.Unlock()
	var busy []*node
	for _, n := range left {
		if n.shut() {
			n.close()
		} else {
			busy = append(busy, n) // each of its calls has a deadline
		}
	}
	f.mu.Lock()
	f.left = append(f.left, busy...)
	f.mu.Unlock()
	for _, n := range f.all() {
		n.reap(Now() - int64(idleMax))
	}
}

// drain closes the fleet when its calls have been answered, or after drainMax. Those that wait then are to wait by another configuration.
func (f *fleet) drain() {
	if !f.shutWithin(drainMax) {
		for _, n := range f.allEver() {
			n.alones.letGo(func(int) bool { return true })
		}
		f.shutWithin(letGoMax)
	}
	f.close()
}

// shutWithin closes what is idle, and reports whether that is all by the end of a time.
func (f *fleet) shutWithin(most time.Duration) bool {
	for end := Now() + int64(most); Now() < end; time.Sleep(drainPause) {
		idle := true
		for _, n := range f.all() {
			idle = n.shut() && idle
		}
		if idle {
			return true
		}
	}
	return false
}

const drainPause = 10 * time.Millisecond

// close ends all connections. Calls that take them fail.
func (f *fleet) close() {
	f.cancel()
	for _, n := range f.allEver() {
		n.close()
	}
}

const (
	hostMax   = 255 // bytes of a host's name: more than DNS has
	addrShown = 80  // bytes of an address that is none, in an error
)

// isHost reports whether a topology may name a host so: by a name, or an IP address. All else would be in logs, and in what clients are answered.
func isHost(host string) bool {
	for i := range len(host) {
		c := host[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') && strings.IndexByte("-._:%", c) < 0 {
			return false
		}
	}
	return host != "" && len(host) <= hostMax
}

func isPort(port int64) bool { return port > 0 && port <= math.MaxUint16 }

// hostPort joins what a topology tells of a node. A host that is empty or unknown is that of the node that was asked.
func hostPort(host string, port int64, asked *node) string {
	if host == "" || host == "?" {
		host = asked.host()
	}
	return net.JoinHostPort(host, itoa(port))
}

// turnAll tells that all slots are about to become those of another configuration's nodes.
func (f *fleet) turnAll() {
	if primaries := *f.primaries.Load(); len(primaries) == 1 {
		f.up.waiting.turn(anySlot, primaries[0])
	}
	for slot := range f.slots {
		if n := f.slots[slot].Load(); n != nil {
			f.up.waiting.turn(slot, n)
		}
	}
}
