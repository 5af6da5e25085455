package upstream

import (
	"bytes"
	"time"

	"headgate/internal/number"
)

// Calls of one script that follow each other on a connection are one command of its joint script where that is possible: starting a script costs
// redis-server about as much as what a short one does, and most bytes of a call name the script. It is possible where a node of a cluster has been
// seen to refuse a script the key of another node. What only looks like such a node, as a proxy may, could decide by the state of another server.

const (
	// jointMax is how many calls one command runs at most. Nothing else runs on the node meanwhile: for some 300 µs.
	jointMax = 128
	// jointPause is for how long calls are sent one by one after a joint command, or one of its calls, could not run.
	jointPause      = time.Second
	foreignTries    = 8  // keys that are looked at for one that is another node's
	foreignTriesMax = 64 // how often one connection does that in vain
)

// joining says whether calls of scripts are joined on a connection.
type joining uint8

const (
	undecided joining = iota
	probing           // the node has been sent a key of another one
	joined
	apart
)

// foreignRefused is how a node answers a joint command of one call whose key is another node's.
const foreignRefused = "*1\r\n-ERR Script attempted to access a non local key"

// Joint is how several calls of a script are one command.
type Joint struct {
	Script *Script // that runs them one after the other; its reply is an array of theirs, or of the errors that ended them
	Head   []byte  // with which each call begins; what follows, the key and the arguments, is what Script has as arguments
	Words  int     // that follow
	Looks  []byte  // arguments with which a call writes nothing
}

// withinScript is in errors of scripts that have begun to run.
const withinScript = "@user_script"

// joins reports whether a call may be one of several of its script in a command.
func (c *Call) joins(s *Script) bool {
	return s != nil && c.Script == s && s.Joint != nil && c.Replies == 1 && !c.single && !c.load && !c.asking && bytes.HasPrefix(c.Request, s.Joint.Head)
}

// joinable returns how many of the calls that are queued first are one command; 1 if the first is one for itself. The caller holds mu.
func (l *link) joinable(now int64) (n int) {
	first := l.queue.first
	if l.joining != joined || now < l.apart || !first.joins(first.Script) {
		return 1
	}
	size := len(l.out)
	for c := first; c != nil && n < jointMax && c.joins(first.Script); c = c.next {
		if size += len(c.Request); size > flightBytes && n > 0 {
			break
		}
		n++
	}
	return n
}

// join moves so many calls from the queue to those that are sent, as one command. The caller holds mu.
func (l *link) join(n int, now int64) {
	joint := l.queue.first.Script.Joint
	before := l.teach(joint.Script, false)
	l.command(joint, n)
	for i := range n {
		c := l.queue.pop()
		l.out = append(l.out, c.Request[len(joint.Head):]...)
		l.flights.push(sent{call: c, replies: 1, at: now})
		if i == 0 {
			s := l.flights.last()
			s.before, s.joint = int8(before), uint8(n)
		}
	}
	for i := range n {
		l.flights.at(l.flights.n - 1 - i).end = len(l.out)
	}
	l.node.up.totals.joined.Add(uint64(n))
}

// command appends the beginning of a joint command of so many calls to out.
func (l *link) command(joint *Joint, calls int) {
	l.out = append(l.out, '*')
	l.out = number.AppendInt(l.out, int64(3+calls*joint.Words))
	l.out = append(l.out, "\r\n$7\r\nEVALSHA\r\n$40\r\n"...)
	l.out = append(l.out, joint.Script.SHA...)
	l.out = append(l.out, "\r\n$1\r\n0\r\n"...)
}

// probe sends a node, before a call that could be joined with others, a key that it does not have, to learn whether it refuses that. It returns how
// many replies come before the call's own then, of which the last is the one to that. The caller holds mu.
func (l *link) probe(c *Call) (before int) {
	if l.joining != undecided || !l.own || !c.joins(c.Script) || c.next == nil || !l.node.fleet.cluster.Load() {
		return 0
	}
	if g := l.node.hello.Load(); g == nil || !g.inCluster() || !atLeast(g.version, 7, 0) {
		l.joining = apart
		return 0
	}
	joint := c.Script.Joint
	key := l.foreignKey(c.Request[len(joint.Head):])
	if key == nil {
		return 0
	}
	l.joining = probing
	before = l.teach(joint.Script, false)
	l.command(joint, 1)
	l.out = append(l.out, '$')
	l.out = number.AppendInt(l.out, int64(len(key)))
	l.out = append(l.out, "\r\n"...)
	l.out = append(l.out, key...)
	l.out = append(l.out, "\r\n"...)
	l.out = append(l.out, joint.Looks...)
	return before + 1
}

// foreignKey returns a key that is another node's, like that with which words begin, so that whoever may use the one may use the other; nil if none
// is found.
func (l *link) foreignKey(words []byte) []byte {
	length, rest, _ := bytes.Cut(words, []byte("\r\n"))
	size, ok := number.ParseInt(length[1:])
	if !ok || size > int64(len(rest)) {
		return nil
	}
	for i := range foreignTries {
		key := number.AppendInt(append(rest[:size:size], ':'), int64(i))
		if n := l.node.fleet.nodeFor(int(Slot(key))); n != nil && n != l.node {
			return key
		}
	}
	if l.tries++; l.tries == foreignTriesMax {
		l.joining = apart
	}
	return nil
}

// learn takes the reply to the key that probe has sent. The caller holds mu.
func (l *link) learn(reply []byte) {
	l.joining = apart
	if bytes.HasPrefix(reply, []byte(foreignRefused)) {
		l.joining = joined
	}
}

// opens reports whether what comes next is the reply to a joint command. The caller holds the link's mu.
func (r *reader) opens() bool {
	l := r.link
	if l.flights.n == 0 || r.joint > 0 || r.begin != r.scanned || r.buf[r.scanned] != '*' {
		return false
	}
	first := l.flights.at(0)
	return first.joint > 0 && r.before == 0 && (r.replies > 0 || first.before == 0)
}

// open takes the beginning of such a reply, so that those of its calls are read one by one, as others are. It reports whether that has come.
func (r *reader) open() (bool, error) {
	line := r.buf[r.scanned:]
	end := lineEnd(line[:min(len(line), shortLine)])
	if end < 0 && len(line) < shortLine {
		return false, nil
	}
	calls := int(r.link.flights.at(0).joint)
	if end < 3 {
		return false, errMalformed
	}
	if n, ok := number.ParseInt(line[1 : end-1]); !ok || n != int64(calls) {
		return false, errMalformed
	}
	r.joint = calls
	r.scanned += end + 1
	r.start, r.begin = r.scanned, r.scanned
	return true, nil
}

// tells returns of how many calls a reply tells that has been read, and whether these are to be sent again one by one, since none of them has written
// anything: an error instead of all replies is about the command, unless it says where in the script it is from, and one of a call without a code
// of its own is about this way to run it. The caller holds the link's mu.
func (r *reader) tells(reply []byte, now int64) (calls int, again bool, err error) {
	l := r.link
	first := l.flights.at(0)
	switch {
	case r.joint > 0:
		r.joint--
		calls, again = 1, bytes.HasPrefix(reply, []byte("-ERR "))
	case first.joint == 0:
		return 1, false, nil
	case reply[0] != '-':
		return 0, false, errMalformed
	default:
		verdict := verdictOf(reply)
		calls, again = int(first.joint), verdict == scriptful || verdict == no && !bytes.Contains(reply, []byte(withinScript))
		if verdict == scriptful {
			l.known = l.known[:0]
		}
	}
	if again {
		l.apart = now + int64(jointPause)
	}
	return calls, again, nil
}
