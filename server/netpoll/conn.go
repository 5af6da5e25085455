package netpoll

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"headgate/server/resp"
)

// Conn is one client's connection. In belongs to the front; Out and the marks are guarded by the Handler's lock.
type Conn struct {
	In     resp.Reader // bytes received, not yet executed
	Out    resp.Writer // replies not yet taken by the front
	Client any         // the Worker's own state for this connection

	Remote, Local string // addresses as CLIENT LIST shows them; a socket's path for Unix sockets
	Unix          bool   // it came in through a Unix socket
	FD            int    // the descriptor, or -1 behind a net.Conn

	front front
	turns
	marks
	sending

	shared  bool         // its socket has a second descriptor, see Direct
	unread  bool         // its socket may have more than was read
	closing bool         // close when out is sent
	dead    atomic.Bool  // closed, or about to be; later events are stale
	ending  bool         // it stands in the list of those that are to be closed
	eof     bool         // the peer has closed its side
	stays   bool         // replies were to come when it was last looked at: it is not closed for eof
	kept    bool         // a command of its own has yielded: it is to be left alone
	rests   bool         // its commands may not run before Resume
	restMax int          // bytes that it may send meanwhile; 0: nothing is read
	resting atomic.Int64 // bytes of input that came meanwhile, with those before them; 0: none did
}

// turns is what decides when the commands of a connection are run. It is the front's and the Worker's, and needs no lock.
type turns struct {
	listed    bool          // it stands in the batch
	waits     bool          // it stands in the list of those that are left over
	postponed bool          // its Worker has left commands in its input
	passed    bool          // that is because the iteration had no time left for it
	carried   bool          // it comes after others: it was left over from an earlier iteration, or is slow
	known     bool          // it has had a turn that told how long it takes
	slow      bool          // its last turn was too long, or it has had none yet that told
	quick     uint8         // turns since one was too long, at most trustedTurns
	cpu       time.Duration // processor time of the thread when the turn began, if it is to be judged by that; 0: it is not
	longAt    time.Time     // when one was too long last
	took      time.Duration // by the last turn, if that was too long; zeroed when the front has seen it
}

// marks is what commands and background work leave at a connection for its front. The Handler's lock guards it.
type marks struct {
	closeAfterReply, closeNow bool
	held                      int  // by so many replies are not to be sent yet
	awaits                    bool // replies are to come, see AwaitReplies
	queued, resumed           bool // on the front's list of woken connections
	staged                    int  // bytes of out not yet sent when the lock was last held
}

// sending is what a connection's peer has still to take. It is the front's.
type sending struct {
	out     []byte
	sent    int  // how much of out the peer has taken
	more    bool // Out had more when it was last looked at, while out was not sent yet
	waiting bool // EPOLLOUT is armed
	stalled bool // it stands in the list of those whose peers do not take their replies
	behind  int  // bytes of replies behind out, when it was last looked
	rested  int  // the same, when it last rested
}

// Detached returns a connection without a socket, whose front the caller plays: it gives bytes to In, calls the Worker and takes what is
// in Out. carried is what Carried reports.
func Detached(remote, local string, carried bool) *Conn {
	return &Conn{Remote: remote, Local: local, FD: -1, front: nobody{}, turns: turns{carried: carried}}
}

// nobody is the front of a connection that is detached.
type nobody struct{}

func (nobody) wake(*Conn)                     {}
func (nobody) yield(*Conn)                    {}
func (nobody) direct(*Conn) (net.Conn, error) { return nil, errNoSocket }

var errNoSocket = errors.New("netpoll: the connection has no socket")

// front is the owner of a connection, as seen from other connections' commands.
type front interface {
	// wake has the front look at c again: new replies, a mark, or a resume. Called with the Handler's lock held.
	wake(c *Conn)
	// yield serves the front's other connections once, from within a command of c. Called without the lock.
	yield(c *Conn)
	// direct returns what Direct does.
	direct(c *Conn) (net.Conn, error)
}

// CloseAfterReply has the connection closed once its replies are sent; what follows in its input is dropped.
// The caller holds the Handler's lock.
func (c *Conn) CloseAfterReply() {
	c.closeAfterReply = true
	c.front.wake(c)
}

// CloseNow has the connection closed without sending what is still queued. The caller holds the Handler's lock.
func (c *Conn) CloseNow() {
	c.closeNow = true
	c.front.wake(c)
}

// Closing reports whether the connection is marked to be closed. The caller holds the Handler's lock.
func (c *Conn) Closing() bool { return c.closeAfterReply || c.closeNow }

// ClosingNow reports whether the connection is marked to be closed without sending what is still queued. The caller holds the Handler's
// lock.
func (c *Conn) ClosingNow() bool { return c.closeNow }

// Wake has replies sent that were appended to Out by another connection's command or by background work.
// The caller holds the Handler's lock.
func (c *Conn) Wake() { c.front.wake(c) }

// Resume has the connection's Worker called again for input that it left unexecuted, even if nothing new arrives.
// The caller holds the Handler's lock.
func (c *Conn) Resume() {
	c.resumed = true
	c.front.wake(c)
}

// Hold keeps the connection's replies from being sent until Release was called as often. The caller holds the Handler's lock.
func (c *Conn) Hold() { c.held++ }

// Release ends one Hold. The caller holds the Handler's lock. Unless it is the connection's own Worker within Batch, it calls Wake then.
func (c *Conn) Release() { c.held-- }

// Resting is how many bytes of its input wait for Resume, if some have come since it rests. It may be called from any goroutine.
func (c *Conn) Resting() int { return int(c.resting.Load()) }

// goOn has the connection rest no longer.
func (c *Conn) goOn() {
	c.rests = false
	c.resting.Store(0)
}

// Begin is to be called by the connection's Worker, with the Handler's lock held, before the connection's commands are run:
// it makes Unsent exact.
func (c *Conn) Begin() { c.staged = len(c.out) - c.sent }

// Keep has the connection left alone while a command of it yields, or no longer: what it has answered so far stays in Out, so that the
// command may take some of it back. The caller holds the Handler's lock.
func (c *Conn) Keep(alone bool) {
	c.kept = alone
}

// Yield serves other connections once, from within a command of this one that takes long. The caller is the connection's own
// worker, has called Keep and does not hold the Handler's lock. This connection is neither read nor closed meanwhile; the commands that its Worker
// has parsed for others, but not run, must have been rewound.
func (c *Conn) Yield() { c.front.yield(c) }

// Postpone has the connection's Batch called again in the next iteration, behind connections that have nothing left over, for commands
// that stay in its input. For its own Worker, within Batch.
func (c *Conn) Postpone() { c.postponed = true }

// PassOver has the connection's Batch called again in the next iteration, since this one had no time for any of its commands. It keeps its
// place: before connections that are new to that iteration or, if it comes after others, before those that have had their turn. For its
// own Worker, within Batch.
func (c *Conn) PassOver() { c.postponed, c.passed = true, true }

// BeginTurn tells that commands of the connection are about to be run by whose time it is judged. For its own Worker, within Batch.
func (c *Conn) BeginTurn() {
	c.slow, c.known = false, true
	if c.cpu = 0; c.quick < trustedTurns {
		c.quick++
		c.cpu = threadTime()
	}
}

// A turn may have been long because the processor was taken away meanwhile, for a collection or for another process, and whoever comes after others
// for that may wait for a second. So one long turn is forgiven after many quick ones: but seldom, since anybody may send quick commands between long
// ones. Before it has had so many, a connection is judged by the time that its turns have had the processor, which costs a system call each.
const (
	trustedTurns = 16 // so many turns of a connection since the last long one are enough,
	trustedShare = 64 // if that was so many times as long ago as the turn took
)

// TookLong tells that the connection's turn took longer than it may, which is most. Its next one comes after others, and on a [Loop] after a
// pause if it was much too long; unless it is forgiven, or has had the processor for no longer than most. For its own Worker, within Batch.
func (c *Conn) TookLong(took, most time.Duration) {
	if c.cpu > 0 {
		if used := threadTime() - c.cpu; used >= 0 && used < took { // else the turn has ended on another thread
			took = used
		}
		if took <= most {
			return
		}
	}
	now := time.Now()
	c.slow = c.quick < trustedTurns || now.Sub(c.longAt)/trustedShare < took
	c.quick, c.took, c.longAt = 0, took, now
}

// TakePostponed reports whether the Worker has postponed the connection since the last call. For its front, outside of Batch.
func (c *Conn) TakePostponed() bool {
	was := c.postponed
	c.postponed, c.passed = false, false
	return was
}

// Rest has the connection's Batch not called before Resume: its commands may not run yet. What its peer sends meanwhile is read, and a
// connection with more than max bytes of that is closed. For its own Worker, within Batch.
func (c *Conn) Rest(max int) { c.rests, c.restMax = true, max }

// RestUnread is Rest for a while that is short: nothing is read meanwhile, so that what the peer sends stays in the socket, and that the peer
// has gone is seen only afterwards. For its own Worker, within Batch.
func (c *Conn) RestUnread() { c.rests, c.restMax = true, 0 }

// AwaitReplies tells that replies are to come, or no longer, to commands that were run: until then a connection stays open whose peer sends
// nothing more. The caller holds the Handler's lock, and wakes the connection when it tells of the last.
func (c *Conn) AwaitReplies(to bool) { c.awaits = to }

// AwaitsReplies reports whether replies are to come, see AwaitReplies. The caller holds the Handler's lock.
func (c *Conn) AwaitsReplies() bool { return c.awaits }

// unreadRest reports whether the connection rests and is not to be read.
func (c *Conn) unreadRest() bool { return c.rests && c.restMax == 0 }

// Carried reports whether the connection comes after others in this iteration: it was left over from an earlier one, or its last turn was
// too long. For its own Worker, within Batch.
func (c *Conn) Carried() bool { return c.carried }

// Staged returns how many bytes of replies the front has taken and not sent yet. The caller is the connection's own Worker, has
// called Begin and holds the Handler's lock.
func (c *Conn) Staged() int { return c.staged }

// Gone reports whether the connection was closed. For its own Worker, within Batch.
func (c *Conn) Gone() bool { return c.dead.Load() }

// Direct returns a way to write to the connection's peer by oneself, as its front does not from then on: nothing may be appended to Out any
// more. It is to be closed when the connection has gone, and not before. The caller is the connection's own Worker within Batch, and holds
// the Handler's lock.
func (c *Conn) Direct() (net.Conn, error) { return c.front.direct(c) }

// Unsent returns the bytes of replies that the peer has not taken yet. The caller holds the Handler's lock. The figure is
// exact for the connection's own commands after Begin; for others it may lag by one send.
func (c *Conn) Unsent() int { return c.Out.Len() + c.staged }

// prepare gives the connection an output buffer for the commands that are about to run. The caller holds the Handler's lock.
func (c *Conn) prepare(pool *resp.Pool) {
	if c.Out.Cap() == 0 && !c.Out.Over() {
		c.Out.SetBuffer(pool.Get()[:0])
	}
}

// stage moves replies and marks from the guarded side to the front's own. The caller holds the Handler's lock.
// It reports whether there is anything for the front to do.
func (c *Conn) stage(pool *resp.Pool) bool {
	if c.held > 0 && !c.closeNow {
		c.queued = false // it is woken when it is let go
		return false
	}
	c.queued, c.more, c.stays = false, false, c.awaits
	c.staged = len(c.out) - c.sent
	if c.closeNow {
		c.dead.Store(true)
		return true
	}
	if c.closeAfterReply {
		c.closing = true
	}
	switch {
	case c.Out.Len() == 0:
		if c.Out.Cap() > 0 && !c.awaits { // or what is to come would need another one
			pool.Put(c.Out.Bytes())
			c.Out.SetBuffer(nil)
		}
		return len(c.out) > 0 || c.closing || c.eof
	case len(c.out) == 0:
		c.out, c.sent = c.Out.Bytes(), 0
		c.staged, c.behind, c.rested = len(c.out), 0, 0
		c.Out.SetBuffer(nil)
		return true
	}
	c.more, c.behind = true, c.Out.Len()
	return !c.waiting // the socket is full: what is queued goes out when it drains
}

// free gives back all memory of a connection that is gone. The caller holds the Handler's lock.
func (c *Conn) free(in, out *resp.Pool) {
	c.release(out)
	c.In.Release(in)
	out.Put(c.Out.Bytes())
	c.Out.SetBuffer(nil)
	c.Out.Cut()
}

// release forgets what was sent.
func (c *Conn) release(pool *resp.Pool) {
	if c.out != nil {
		pool.Put(c.out)
		c.out, c.sent = nil, 0
	}
}
