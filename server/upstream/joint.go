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
	// foreignTries is how many keys are looked at for one that is another node's.
	foreignTries = 8
	// probePause is after how long a node is probed again that has not refused such a key, or for which none was found.
	probePause = 10 * time.Second
)

// joining says whether calls of scripts are joined on a connection.
type joining uint8

const (
	apart   joining = iota
	probing         // the node has been sent a key of another one
	joined
)

// How a joint command's calls end that are to be sent one by one: their key is another node's, or may be, or nobody may use it. Redis says the latter in
// other words to who names a key.
const (
	notLocal  = "-ERR Script attempted to "
	forbidden = "-ERR The user executing the script can't access at least one of the keys"
)

// foreignRefused is how the call ends, in a joint command, whose key is known to be another node's.
const foreignRefused = notLocal + "access a non local key"

// Joint is how several calls of a script are one command.
type Joint struct {
	Script *Script // that runs them one after the other. Its reply is an array: what their replies have in common, and for each the rest or an error
	Head   []byte  // with which each call begins; what follows, the key and the arguments, is what Script has as arguments
	Words  int     // that follow
	Looks  []byte  // arguments with which a call writes nothing
}

// joins reports whether a call may be one of several of its script in a command.
func (c *Call) joins(s *Script) bool {
	return s != nil && c.Script == s && s.Joint != nil && c.Replies == 1 && !c.single && !c.load && !c.asking &&
		(c.Headless || bytes.HasPrefix(c.Request, s.Joint.Head))
}

// words are a call's key and arguments, as its request has them.
func (c *Call) words() []byte {
	if c.Headless {
		return c.Request
	}
	return c.Request[len(c.Script.Joint.Head):]
}

// joinable returns how many of the calls that are queued first are one command; 1 if the first is one for itself. The caller holds mu.
func (l *link) joinable() (n int) {
	first := l.queue.first
	if l.joining != joined || !first.joins(first.Script) {
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
		l.out = append(l.out, c.words()...)
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
func (l *link) probe(c *Call, now int64) (before int) {
	if l.joining == probing || l.joining == joined || now < l.probeAt || !l.own || c.next == nil || !c.joins(c.Script) || !l.node.fleet.cluster.Load() {
		return 0
	}
	l.probeAt = now + int64(probePause)
	if g := l.node.hello.Load(); g == nil || !g.inCluster() || !atLeast(g.version, 7, 0) {
		return 0
	}
	joint := c.Script.Joint
	key := l.foreignKey(c.words())
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
	key, tail := rest[:size], []byte(nil)
	if open := bytes.IndexByte(key, '{'); open >= 0 { // within a hash tag, or it would be of the same slot
		if tag := bytes.IndexByte(key[open+1:], '}'); tag > 0 {
			key, tail = key[:open+1+tag], key[open+1+tag:]
		}
	}
	for i := range foreignTries {
		key := append(number.AppendInt(append(key[:len(key):len(key)], ':'), int64(i)), tail...)
		if n := l.node.fleet.nodeFor(int(Slot(key))); n != nil && n != l.node {
			return key
		}
	}
	return nil
}

// learn takes the reply to the key that probe has sent. The caller holds mu.
func (l *link) learn(reply []byte) {
	l.joining = apart
	if both, is := bytes.CutPrefix(reply, []byte("*2\r\n")); is {
		var common scanner
		if n, whole, _ := common.next(both); whole && bytes.HasPrefix(both[n:], []byte(foreignRefused)) {
			l.joining = joined
		}
	}
}

// opens reports whether what comes next is the reply to a joint command. The caller holds the link's mu.
func (r *reader) opens() bool {
	l := r.link
	if l.flights.n == 0 || r.joint > 0 || r.begin != r.scanned || !r.scan.idle() || r.buf[r.scanned] != '*' {
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
	if n, ok := number.ParseInt(line[1 : end-1]); !ok || n != int64(1+calls) {
		return false, errMalformed
	}
	r.joint = calls
	r.scanned += end + 1
	r.start, r.begin = r.scanned, r.scanned
	return true, nil
}

// keepCommon takes what the replies of a joint command have in common.
func (r *reader) keepCommon(reply []byte) error {
	if reply[0] == '-' {
		return errMalformed
	}
	r.common = bytes.Clone(reply)
	r.start = r.scanned
	return nil
}

// tells returns of how many calls a reply tells that has been read, and why these are to be sent again one by one, since none of them has written
// anything: scriptful, later where others for their slot must not overtake them, or no. The caller holds the link's mu.
func (r *reader) tells(reply []byte) (calls int, why again, err error) {
	l := r.link
	first := l.flights.at(0)
	switch {
	case r.joint > 0:
		r.joint--
		switch {
		case bytes.HasPrefix(reply, []byte(notLocal)):
			why = later
		case bytes.HasPrefix(reply, []byte(forbidden)):
			why = scriptful
		}
		return 1, why, nil
	case first.joint == 0:
		return 1, no, nil
	case reply[0] != '-':
		return 0, no, errMalformed
	case verdictOf(reply) == scriptful:
		l.known = l.known[:0]
		why = scriptful
	}
	return int(first.joint), why, nil
}

// single sends a call of a joint command again, by one of its own.
func (r *reader) single(c *Call, why again, reply []byte) {
	n, slot := r.link.node, c.Slot
	c.single = true
	if why == later { // it is going to be told where its key is
		n.up.wait(c, n.failure(Unreachable, "its slot has moved, or is on its way to another node"))
		r.link.holdBack(slot, later)
		return
	}
	n.send(c)
}
