package upstream

import (
	"fmt"
	"time"
)

// Call is a command under way, or a contiguous run of commands, MULTI to EXEC, that are one write. Its owner sets the upper fields, gives it
// to [Upstream.Send], and has it back when it is answered; then it may be used again. Between the two nobody else touches it.
type Call struct {
	Slot     int         // 0 to Slots-1; -1 is any primary
	Proto    int         // 2 or 3: the RESP version of the connection, so that replies are in the client's
	DB       int32       // not 0 only outside clusters
	Replies  int32       // how many replies there are; more than 1 only for MULTI … EXEC
	User     *UserConn   // nil: the user that Config names
	Request  []byte      // RESP, whole unless it is Headless; it is the Call's until Done
	Script   *Script     // not nil: if the reply is NOSCRIPT it is loaded on that node, and the call sent again, which has not run
	At       int64       // when it came, by Now, and was queued last once it is under way; 0: it comes now
	Deadline int64       // by Now; it is answered by then, a few milliseconds more or less. 0: Config's timeout after At
	Done     func(*Call) // see Upstream.Send; nil: the answer is given by Upstream.OnAnswered
	Owner    any         // whatever the owner wants to find with it
	Headless bool        // Request lacks what it would begin with, Script.Joint.Head, which many calls have in common
	Program  bool        // it runs what a client has written, which may end with errors like those of a server that has run nothing
	Reads    bool        // it changes nothing: that a node serves it does not show that it serves calls that write
	Keeps    bool        // a Reply that is Kept is valid until the owner calls Upstream.Release, which it must

	// The answer, either Reply or Err.
	Kept   bool     // Reply is large, and the owner's alone, see Keeps
	Reply  []byte   // the replies' bytes, valid until Done or OnAnswered returns; one error instead of all if the node refuses the DB
	Common []byte   // what a joint command was answered for all its calls, valid likewise, if Reply is only the rest; nil: Reply is all, as always without Script.Joint
	Err    *Failure // why there is none
	Node   string   // the address of the node that answered, or should have; "" if none was found

	asking   bool   // ASKING stands before it
	load     bool   // SCRIPT LOAD stands before it
	single   bool   // it is sent by a command of its own
	internal bool   // this package's own: not counted, not redirected, and sent to nodes that rest too
	loads    uint8  // how often its script was loaded
	attempts uint8  // how often it was sent again, or waited for that
	next     *Call  // in a callList
	number   uint64 // its place among all calls
	held     int64  // bytes of a Reply that is Kept
}

// UserConn is a user of the nodes that some clients' commands are sent as, by connections of its own. It does not change.
type UserConn struct {
	Name, Password string
}

// Script is a Lua script that calls may run by its SHA-1. It does not change.
type Script struct {
	Name string // for people
	Own  bool   // it is loaded in front of its first call on each connection of Config's user: a call that misses it is run behind later ones
	Text string
	SHA  string // of Text, 40 lower-case hexadecimal digits

	Joint *Joint // how several calls of it are one command, or nil
}

// FailureKind is why a call has no reply.
type FailureKind uint8

// Why a call has no reply. Only after Timeout, Lost and TooLarge may the command have been executed.
const (
	Timeout     FailureKind = iota + 1 // nothing came by the deadline
	Resting                            // the node failed a short time ago
	Unreachable                        // there is no connection, no such node, or it says that it cannot answer
	Pending                            // too much is under way
	Lost                               // the connection broke after the command was sent
	TooLarge                           // the reply is above Config.ReplyMax
)

// Failure is why a call has no reply. It does not change.
type Failure struct {
	Kind   FailureKind
	Node   string        // the node's address; "" if none was found
	Detail string        // for Unreachable, Lost and Resting: what was found, such as "connection refused"
	After  time.Duration // for Timeout: how long there was no answer
	Full   bool          // for Unreachable: the node, or this process, can have no connection more; those that are there go on

	refused bool   // the node has answered that it does not serve this connection
	parted  bool   // of SendAlone: the connection was given up since the node does not serve the call's slot any more
	crowded bool   // of SendAlone: too many connections were being made
	reply   []byte // the node's error that a call is given as its only reply, instead of the Failure; nil: the Failure
}

// mayHaveRun reports whether the command may have been executed all the same.
func (f *Failure) mayHaveRun() bool { return f.Kind == Timeout || f.Kind == Lost || f.Kind == TooLarge }

// isReplica reports whether the node has said that it is one.
func (f *Failure) isReplica() bool { return f.refused && f.Detail == string(errReplica) }

// Error returns the text of an error reply, without the leading minus: one line that begins with UPSTREAM.
func (f *Failure) Error() string {
	switch f.Kind {
	case Timeout:
		return fmt.Sprintf("UPSTREAM no answer from %s within %d ms", f.Node, f.After.Milliseconds())
	case Resting:
		if f.Detail == "" {
			return fmt.Sprintf("UPSTREAM %s is resting after failures", f.Node)
		}
		return fmt.Sprintf("UPSTREAM %s is resting after failures: %s", f.Node, f.Detail)
	case Pending:
		return "UPSTREAM too many commands are under way"
	case Lost:
		return fmt.Sprintf("UPSTREAM the connection to %s broke (%s); the command may have been executed", f.Node, f.Detail)
	case TooLarge:
		return fmt.Sprintf("UPSTREAM the reply of %s is too large; the command has been executed", f.Node)
	}
	if f.Node == "" {
		return "UPSTREAM " + f.Detail
	}
	return fmt.Sprintf("UPSTREAM %s cannot answer: %s", f.Node, f.Detail)
}

// callList is a queue of calls, the oldest first. The zero value is empty.
type callList struct {
	first, last *Call
	n           int
}

func (l *callList) push(c *Call) {
	c.next = nil
	if l.last == nil {
		l.first = c
	} else {
		l.last.next = c
	}
	l.last = c
	l.n++
}

func (l *callList) pushFront(c *Call) {
	c.next = l.first
	l.first = c
	if l.last == nil {
		l.last = c
	}
	l.n++
}

// insert adds a call that was sent before, ahead of those that are newer.
func (l *callList) insert(c *Call) {
	if l.first == nil || l.first.number > c.number {
		l.pushFront(c)
		return
	}
	before := l.first
	for before.next != nil && before.next.number <= c.number {
		before = before.next
	}
	if before == l.last {
		l.push(c)
		return
	}
	c.next, before.next = before.next, c
	l.n++
}

// pop returns the oldest call, nil if there is none.
func (l *callList) pop() *Call {
	c := l.first
	if c == nil {
		return nil
	}
	if l.first = c.next; l.first == nil {
		l.last = nil
	}
	c.next = nil
	l.n--
	return c
}

// moveIf takes out the calls of which out is true, and appends them to list.
func (l *callList) moveIf(list []*Call, out func(*Call) bool) []*Call {
	var kept callList
	for c := l.pop(); c != nil; c = l.pop() {
		if out(c) {
			list = append(list, c)
		} else {
			kept.push(c)
		}
	}
	*l = kept
	return list
}
