package upstream

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A node may answer, and refuse all that this gateway asks: it does not know the gateway's user, the user lacks a right there, or nobody may write. Such a
// node does not rest, since others may be served, but it is no use to the gateway, and mostly only an operator can mend that.

// refusalsMin is how many calls in a row a node refuses before it counts as one that refuses all of them: one may be a client's own mistake.
const refusalsMin = 3

const (
	// refusalWarnings is the shortest time between two log lines about the same refusal of a node.
	refusalWarnings = time.Minute
	// refusalsWarned is of how many different ones is logged within that time.
	refusalsWarned = 16
)

// refusals are what a node has refused to Config's user. It is safe for concurrent use.
type refusals struct {
	connection atomic.Pointer[string] // why node.own[0] could not be connected, nil if it could
	calls      atomic.Int64           // in a row that were refused
	writes     atomic.Bool            // since the node serves none that write

	mu     sync.Mutex
	call   string           // why the last call was refused
	warned map[string]int64 // when which refusal was logged, by Now
}

// why says why the node is no use, "" if it is of use.
func (r *refusals) why() string {
	if why := r.connection.Load(); why != nil {
		return *why
	}
	if r.calls.Load() < refusalsMin {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.call
}

// refusalIn returns the error of replies, of which the last one is an error or none, by which the user was refused something; nil if it was not. In a
// transaction that is discarded an earlier one says so.
func refusalIn(replies, last []byte) []byte {
	switch {
	case last[0] != '-':
	case isRefusal(last), Incapable(last):
		return last
	case bytes.HasPrefix(last, []byte("-EXECABORT ")):
		for line := range bytes.Lines(replies) {
			if isRefusal(line) || Incapable(line) {
				return line
			}
		}
	}
	return nil
}

// isRefusal reports whether an error says that the user may not run a command, or a command of a script.
func isRefusal(line []byte) bool {
	return bytes.HasPrefix(line, []byte("-NOPERM ")) || bytes.HasPrefix(line, []byte("-NOAUTH ")) ||
		bytes.HasPrefix(line, []byte("-ERR ")) && bytes.Contains(line, []byte("The user executing the script can't "))
}

// incapable are the codes of errors of which Incapable tells.
var incapable = []string{"OOM ", "MISCONF ", "NOREPLICAS ", "BUSY "}

// Incapable reports whether an error says that a node serves no calls that write at present, whoever asks: it has no room in memory or on the disk, too
// few replicas, or a script that does not end. A Redis has charged nothing then. Before Redis 7.0 these codes stand behind the place in a script that they are about.
func Incapable(reply []byte) bool {
	if len(reply) == 0 || reply[0] != '-' {
		return false
	}
	text := reply[1:]
	if bytes.HasPrefix(text, []byte("ERR Error running script ")) {
		at := bytes.Index(text, []byte(": -"))
		if at < 0 {
			return false
		}
		text = text[at+len(": -"):]
	}
	return slices.ContainsFunc(incapable, func(code string) bool { return bytes.HasPrefix(text, []byte(code)) })
}

// refuses notes that the node does not serve the connection by which this package itself asks. No other connection says that: what one database,
// one user or one more client is refused, the node may well do for all others.
func (n *node) refuses(why string) { n.refusals.connection.Store(&why) }

// accepted notes that this connection could be made.
func (n *node) accepted() {
	if n.refusals.connection.Swap(nil) != nil {
		n.up.log.Info("upstream: a node accepts connections again", "node", n.addr)
	}
}

// warnOfConnection logs why a connection is refused, without the database's number: a client that tries many would hide other refusals.
func (n *node) warnOfConnection(key linkKey, why string) {
	if key.db != 0 {
		why = "a database other than 0: " + why
	}
	if key.user != (UserConn{}) {
		why = "user " + key.user.Name + ": " + why
	}
	n.warnOfRefusal("upstream: a node refuses connections", why)
}

// refusedCall notes that the node has refused a call to Config's user.
func (n *node) refusedCall(line []byte) {
	why, _, _ := strings.Cut(firstLine(line), " script: ") // without the script's name, and where in it
	n.refusals.writes.Store(Incapable(line))
	n.refusals.mu.Lock()
	n.refusals.call = why
	n.refusals.mu.Unlock()
	n.refusals.calls.Add(1)
	n.figures.refused.Add(1)
	n.warnOfRefusal("upstream: a node refuses calls", why)
}

// served notes that the node has run a call of Config's user.
func (n *node) served(reads bool) {
	r := &n.refusals
	if r.calls.Load() == 0 || reads && r.writes.Load() {
		return
	}
	const accepts = "upstream: a node accepts calls again"
	if r.calls.Swap(0) >= refusalsMin && r.isDue(accepts, Now()) {
		n.up.log.Info(accepts, "node", n.addr)
	}
}

// warnOfRefusal logs what the node refuses, unless it has logged that a short time ago.
func (n *node) warnOfRefusal(what, why string) {
	if n.refusals.isDue(why, Now()) {
		n.up.log.Warn(what, "node", n.addr, "why", why)
	}
}

// isDue reports whether a refusal is to be logged, and notes that it is. One that is frequent does not hide another.
func (r *refusals) isDue(why string, now int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.warned, func(_ string, at int64) bool { return now-at >= int64(refusalWarnings) })
	if _, warned := r.warned[why]; warned || len(r.warned) >= refusalsWarned {
		return false
	}
	if r.warned == nil {
		r.warned = map[string]int64{}
	}
	r.warned[why] = now
	return true
}
