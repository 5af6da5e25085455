package upstream

import (
	"bytes"
	"net"
	"slices"

	"headgate/internal/number"
)

// again is what a reply says about sending its command again.
type again uint8

const (
	no        again = iota
	moved           // the slot is another node's
	asked           // the slot is on its way to another node, and the key may be there already
	later           // nothing runs now for the slot
	down            // nothing runs now on the node
	demoted         // likewise, since the node is no primary any more
	scriptful       // the script is not there
)

var verdicts = []struct {
	prefix string
	again  again
}{
	{"-MOVED ", moved}, {"-ASK ", asked}, {"-TRYAGAIN ", later}, {"-CLUSTERDOWN ", down}, {"-LOADING ", down}, {"-MASTERDOWN ", demoted},
	{"-READONLY ", demoted}, {"-NOSCRIPT ", scriptful}, {unblockedByRole, demoted},
}

// unblockedByRole is how a server answers calls that wait when it becomes a replica. Those that somebody else unblocks are not begun again.
const unblockedByRole = "-UNBLOCKED force unblock from blocking operation, instance state changed"

// refusalsInFull are how servers begin what they refuse before anything has run. A client's script that gives one of these codes to an error of
// its own has run, and is not to run again: so of it no shorter beginning proves anything.
var refusalsInFull = []string{
	"-TRYAGAIN Multiple keys request during rehashing of slot",
	"-CLUSTERDOWN Hash slot not served", "-CLUSTERDOWN The cluster is down",
	"-LOADING Redis is loading the dataset in memory", "-LOADING Valkey is loading the dataset in memory",
	"-MASTERDOWN Link with MASTER is down",
	"-READONLY You can't write against a read only replica", // of a script, too: a replica has written nothing
	"-NOSCRIPT No matching script",
}

// proves reports whether an error of a call is its server's, so that a verdict on it holds.
func (c *Call) proves(why again, line []byte) bool {
	switch {
	case !c.Program:
		return true
	case why == moved || why == asked:
		slot, _, ok := parseRedirect(line)
		return ok && int(slot) == c.Slot
	}
	return slices.ContainsFunc(refusalsInFull, func(beginning string) bool { return bytes.HasPrefix(line, []byte(beginning)) })
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
	case demoted, down:
		n.fleet.lookSoon()
	}
	n.up.wait(c, n.failure(Unreachable, firstLine(line)))
	return true
}

// holdBack has calls wait that are queued and would be refused as one was just now for a reason, or would overtake it if not.
func (l *link) holdBack(slot int, why again) {
	if why != later && why != down && why != demoted {
		return
	}
	l.mu.Lock()
	calls := l.queue.moveIf(nil, func(c *Call) bool { return !c.internal && (why != later || c.Slot == slot) })
	l.mu.Unlock()
	up := l.node.up
	for _, c := range calls {
		if failure := l.node.failure(Unreachable, "it serves nothing at present"); !up.waiting.push(c, Now()+int64(pauseFirst), failure) {
			up.refuse(c, failure)
		}
	}
}

// follow sends a call to the node that MOVED or ASK names, if the topology knows it; else the topology is looked at while the call waits. It
// waits, too, if earlier calls for its slot do.
func (n *node) follow(c *Call, why again, line []byte) {
	slot, addr, ok := parseRedirect(line)
	var target *node
	if ok {
		target = n.fleet.named(n.announced(addr))
	}
	if why == moved {
		n.fleet.lookSoon()
		if target != nil {
			n.fleet.setOwner(int(slot), target)
		}
	} else if target == nil {
		n.fleet.lookForNodes()
	}
	if target == nil || c.attempts >= straightMax || !n.up.waiting.mayPass(c) {
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
