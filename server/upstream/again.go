package upstream

import (
	"bytes"
	"container/heap"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/number"
)

// again is what a reply says about sending its command again.
type again uint8

const (
	no        again = iota
	moved           // the slot is another node's
	asked           // the slot is on its way to another node, and the key may be there already
	later           // nothing runs now
	demoted         // likewise, since the node is no primary any more
	scriptful       // the script is not there
)

var verdicts = []struct {
	prefix string
	again  again
}{
	{"-MOVED ", moved}, {"-ASK ", asked}, {"-TRYAGAIN ", later}, {"-CLUSTERDOWN ", later}, {"-LOADING ", later}, {"-MASTERDOWN ", demoted},
	{"-READONLY ", demoted}, {"-NOSCRIPT ", scriptful},
}

// verdict finds out whether replies, of which the last one is an error, prove that nothing has run, and returns the line that does. In a
// transaction any command may be refused while it is queued; then EXEC is, and none has run.
func verdict(replies, last []byte) (again, []byte) {
	if v := verdictOf(last); v != no || !bytes.HasPrefix(last, []byte("-EXECABORT ")) {
		return v, last
	}
	for line := range bytes.Lines(replies[:len(replies)-len(last)]) {
		if v := verdictOf(line); v != no && v != scriptful {
			return v, line
		}
	}
	return no, nil
}

func verdictOf(line []byte) again {
	for _, v := range verdicts {
		if len(line) > len(v.prefix) && string(line[:len(v.prefix)]) == v.prefix {
			return v.again
		}
	}
	return no
}

// sendAgain sends a call again that has not run, or lets it fail when there is no time for that. It reports false if the reply is for the
// owner.
func (n *node) sendAgain(c *Call, why again, line []byte) bool {
	c.load = false
	switch why {
	case scriptful:
		if c.Script == nil || c.loads == loadsMax {
			return false
		}
		// Where ASKING was needed it is again.
		n.fleet.keepScript(c.Script)
		c.loads++
		c.load = true
		n.send(c)
		return true
	case moved, asked:
		if !n.fleet.cluster.Load() {
			return false
		}
		n.up.totals.redirects.Add(1)
		n.figures.redirects.Add(1)
		n.follow(c, why, line)
		return true
	case demoted:
		n.fleet.lookSoon()
	}
	n.up.wait(c, n.failure(Unreachable, firstLine(line)))
	return true
}

// follow sends a call to the node that MOVED or ASK names, if the topology knows it; else the topology is looked at while the call waits.
func (n *node) follow(c *Call, why again, line []byte) {
	slot, addr, ok := parseRedirect(line)
	var target *node
	if ok {
		target = n.fleet.named(n.announced(addr))
	}
	if why == moved {
		n.fleet.lookSoon()
		if target != nil {
			n.fleet.slots[slot].Store(target)
		}
	} else if target == nil {
		n.fleet.lookForNodes()
	}
	if target == nil || c.attempts >= straightMax {
		n.up.wait(c, n.failure(Unreachable, firstLine(line)))
		return
	}
	c.attempts++
	c.asking = why == asked
	target.send(c)
}

// parseRedirect reads "-MOVED 3999 127.0.0.1:6381" and the like.
func parseRedirect(line []byte) (slot int64, addr string, ok bool) {
	words := bytes.Fields(line)
	if len(words) < 3 {
		return 0, "", false
	}
	slot, ok = number.ParseInt(words[1])
	return slot, string(words[2]), ok && slot >= 0 && slot < Slots
}

// announced returns an address, as a node tells of it in a redirect, as host:port. Without a host it is the node's own. The host may be an
// IPv6 address without brackets: the port is behind the last colon.
func (n *node) announced(addr string) string {
	colon := bytes.LastIndexByte([]byte(addr), ':')
	if colon < 0 {
		return addr
	}
	host, port := addr[:colon], addr[colon+1:]
	if host == "" || host == "?" {
		host = n.host()
	} else if len(host) > 2 && host[0] == '[' {
		host = host[1 : len(host)-1]
	}
	return net.JoinHostPort(host, port)
}

// Pauses before a call is sent again: the first one, and the longest.
const (
	pauseFirst = time.Millisecond
	pauseMax   = 16 * time.Millisecond
)

// wait has a call sent again after a pause, or lets it fail if there is no time for one. Flush must follow.
func (u *Upstream) wait(c *Call, failure *Failure) {
	pause := min(pauseFirst<<min(c.attempts, 8), pauseMax)
	c.due = Now() + int64(pause/2) + rand.Int64N(int64(pause/2))
	c.attempts++
	c.asking = false
	if c.attempts > attemptsMax || !u.waiting.push(c) {
		u.refuse(c, failure)
	}
}

// waitingCalls are those that are to be sent again, by when. None is due before one that came earlier: a client's calls for a key are to run
// in the order in which it made them, so calls for a slot of which some wait come behind these.
type waitingCalls struct {
	up     *Upstream
	some   atomic.Bool // there are calls
	mu     sync.Mutex
	calls  callHeap
	slots  map[int]int // how many calls wait for a slot
	last   int64       // when the last one is due
	pushed uint64
	timer  *time.Timer
	armed  int64 // when the timer fires, by Now
	closed bool
}

func (w *waitingCalls) init(u *Upstream) {
	w.up, w.armed, w.slots = u, never, map[int]int{}
	w.timer = time.AfterFunc(never, w.run)
}

// push reports false after close, and if the call would be due after its deadline.
func (w *waitingCalls) push(c *Call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pushLocked(c)
}

func (w *waitingCalls) pushLocked(c *Call) bool {
	c.due = max(c.due, w.last)
	if w.closed || c.due >= c.Deadline {
		return false
	}
	w.last = c.due
	w.pushed++
	c.turn = w.pushed
	w.slots[c.Slot]++
	heap.Push(&w.calls, c)
	w.some.Store(true)
	w.arm()
	return true
}

// joined has a new call wait if others for its slot do, and reports whether it does.
func (w *waitingCalls) joined(c *Call) bool {
	if !w.some.Load() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.due = 0
	return w.slots[c.Slot] > 0 && w.pushLocked(c)
}

// arm has the timer fire when the first call is due. The caller holds mu.
func (w *waitingCalls) arm() {
	if len(w.calls) > 0 && w.calls[0].due < w.armed {
		w.armed = w.calls[0].due
		w.timer.Reset(time.Duration(w.armed - Now()))
	}
}

// run sends the calls that are due.
func (w *waitingCalls) run() {
	var due callList
	w.mu.Lock()
	w.armed = never
	for now := Now(); len(w.calls) > 0 && w.calls[0].due <= now; {
		c := heap.Pop(&w.calls).(*Call)
		if w.slots[c.Slot]--; w.slots[c.Slot] == 0 {
			delete(w.slots, c.Slot)
		}
		due.push(c)
	}
	w.some.Store(len(w.calls) > 0)
	w.arm()
	w.mu.Unlock()
	for c := due.pop(); c != nil; c = due.pop() {
		w.up.route(c)
	}
	w.up.Flush()
}

// close lets all that wait fail.
func (w *waitingCalls) close() {
	w.mu.Lock()
	w.closed = true
	calls := w.calls
	w.calls = nil
	clear(w.slots)
	w.some.Store(false)
	w.mu.Unlock()
	for _, c := range calls {
		w.up.refuse(c, &Failure{Kind: Unreachable, Detail: "the upstream is closed"})
	}
}

// callHeap implements heap.Interface: the call that is due first is at the top, of several the one that came first.
type callHeap []*Call

func (h callHeap) Len() int { return len(h) }
func (h callHeap) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].turn < h[j].turn
}
func (h callHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *callHeap) Push(c any)   { *h = append(*h, c.(*Call)) }
func (h *callHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}
