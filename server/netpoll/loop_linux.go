package netpoll

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate/server/resp"
)

const (
	eventsPerWait     = 4096                   // events taken from the kernel at once: its queue has no priorities, so that who is served first has to be found in it
	eventsPerYield    = 64                     // the same within a command that yields
	sendMax           = 256 << 10              // bytes sent to a connection in one iteration
	closesMax         = 64                     // connections closed in one iteration, and
	closeTime         = 1 * time.Millisecond   // for how long: it takes some 10 µs each, and longer for those that have large buffers
	shortSleep        = 4 * time.Millisecond   // the first sleep, which the scheduler is not told of: about a tick, so that it needs no timer of its own
	shutdownDrainTime = 500 * time.Millisecond // how long a stopping loop waits for full sockets to drain
	readEvents        = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
)

// Loop is an epoll instance and the goroutine that runs it. Create it with [NewLoop], add listeners, then Run it.
type Loop struct {
	handler Handler
	worker  Worker
	epfd    int
	parking *parking
	wakefd  int        // -1: the loop has ended; changed with waking held
	waking  sync.Mutex // held to write to wakefd
	conns   []*Conn    // indexed by descriptor
	pool    resp.Pool

	accepting
	turn
	inner turn   // of the iterations within a command that yields
	guest Worker // runs their batches
	leftovers
	pausing
	shared
	watching watching

	stopping  atomic.Bool
	busyPoll  atomic.Int64 // nanoseconds to spin before sleeping
	keepAlive atomic.Int64 // nanoseconds; 0 = off
	open      int          // connections
	moved     Traffic
	done      chan struct{}
}

// leftovers are the connections that an iteration was not done with.
type leftovers struct {
	passed   queue     // with commands that a batch had no time for, and that come before what is new
	behind   queue     // with commands that come after those of all others
	unread   queue     // with more to read
	looked   int       // connections out of behind that this iteration has looked at
	fresh    []*Conn   // new ones, of which little or nothing was read; the one that has waited longest first
	meeting  reading   // what may be read from new ones in this iteration
	unsent   []*Conn   // those that would take more than was sent to them
	ending   []*Conn   // those that are to be closed
	reading  reading   // what may be read from all of them in this iteration
	stalled  []*Conn   // those that do not take their replies
	stallEnd time.Time // when these are looked at again even so
}

// pausing keeps the slow connections waiting after a turn that was much too long.
type pausing struct {
	paused    []*Conn   // those that wait for the end of the pause, in their order
	pauseEnd  time.Time // zero: there is no pause
	pauseLast time.Time // the latest that it may end for those that wait
	others    bool      // others had something to do in the pause
}

// shared is what others see of a loop and leave for it. The Handler's lock guards it.
type shared struct {
	listeners []*listener
	leaving   []*listener // which are to be closed here
	woken     []*Conn
	arrivals  []arrival // connections that another loop has accepted
	asleep    bool      // nothing is to be done but what an event brings; written by the loop alone
	ended     bool      // the loop takes no arrivals and no listeners any more
	published Traffic   // what was moved, when the last batch began
}

// turn is what one iteration works on.
type turn struct {
	ready []*Conn // connections of this iteration's batch
	late  []*Conn // those that are left over, until they join it
	flush []*Conn // connections to send to in this iteration
}

// arrival is a connection that was accepted and has no loop yet.
type arrival struct {
	fd   int
	peer unix.Sockaddr
	from *listener
}

type listener struct {
	fd   int
	file *os.File
	net.Listener
}

// NewLoop returns a loop without connections. onAcceptError, which may be nil, hears of failing accepts: once when
// accepting stops for lack of resources, not for each attempt.
func NewLoop(h Handler, onAcceptError func(error)) (*Loop, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("netpoll: epoll_create1: %w", err)
	}
	wakefd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(epfd)
		return nil, fmt.Errorf("netpoll: eventfd: %w", err)
	}
	if onAcceptError == nil {
		onAcceptError = func(error) {}
	}
	parking, err := newParking(epfd)
	if err != nil {
		unix.Close(wakefd)
		unix.Close(epfd)
		return nil, err
	}
	l := &Loop{handler: h, worker: h.NewWorker(), epfd: epfd, parking: parking, wakefd: wakefd, done: make(chan struct{})}
	l.onAcceptError = onAcceptError
	l.pool.Buffers = h.Buffers()
	if err := l.control(unix.EPOLL_CTL_ADD, wakefd, unix.EPOLLIN); err != nil {
		parking.close()
		unix.Close(wakefd)
		unix.Close(epfd)
		return nil, fmt.Errorf("netpoll: epoll_ctl: %w", err)
	}
	return l, nil
}

// Listen has the loop accept the connections of ln, with a backlog of the given length. While the loop runs, the caller holds the
// handler's lock.
func (l *Loop) Listen(ln net.Listener, backlog int) error {
	if l.ended {
		return errors.New("netpoll: the loop has ended")
	}
	filer, ok := ln.(interface{ File() (*os.File, error) })
	if !ok {
		return fmt.Errorf("netpoll: %T has no descriptor to poll", ln)
	}
	file, err := filer.File()
	if err != nil {
		return fmt.Errorf("netpoll: listener's descriptor: %w", err)
	}
	fd := int(file.Fd())
	if err := l.pollListener(fd, backlog); err != nil {
		file.Close()
		return err
	}
	l.listeners = append(l.listeners, &listener{fd: fd, file: file, Listener: ln})
	return nil
}

func (l *Loop) pollListener(fd, backlog int) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("netpoll: listener: %w", err)
	}
	if backlog > 0 {
		if err := unix.Listen(fd, backlog); err != nil {
			return fmt.Errorf("netpoll: listen: %w", err)
		}
	}
	if err := l.control(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN); err != nil {
		return fmt.Errorf("netpoll: epoll_ctl: %w", err)
	}
	return nil
}

// Unlisten closes a listener of the loop's: when it returns, somebody else may listen in its place. Connections that were accepted go
// on, and those that the kernel holds for the listener are taken first. The caller holds the handler's lock.
func (l *Loop) Unlisten(ln net.Listener) {
	i := slices.IndexFunc(l.listeners, func(have *listener) bool { return have.Listener == ln })
	if i < 0 {
		return
	}
	gone := l.listeners[i]
	l.listeners = slices.Delete(l.listeners, i, i+1)
	l.takeQueued(gone)
	ln.Close()
	_ = unix.Shutdown(gone.fd, unix.SHUT_RDWR) // the loop may be accepting from this descriptor, so that only it may close it
	l.leaving = append(l.leaving, gone)
	l.poke()
}

// takeQueued accepts what waits at a listener that is about to close: to those peers the connection has long been open, and the kernel
// would reset it. The caller holds the handler's lock.
func (l *Loop) takeQueued(ln *listener) {
	for range queuedAccepts {
		fd, peer, errno := accept(ln.fd)
		switch errno {
		case 0:
			l.arrivals = append(l.arrivals, arrival{fd, peer, ln})
		case unix.EINTR, unix.ECONNABORTED:
		default: // none any more, or no descriptors for them
			return
		}
	}
}

// Share has l, which listens, give the connections that it accepts to the loops of a group in turn; it may be one of them itself.
// Call it before any of them is run.
func (l *Loop) Share(group []*Loop) { l.group = group }

// SetBusyPoll sets how long the loop spins before it sleeps; 0 is not at all. Safe for concurrent use.
func (l *Loop) SetBusyPoll(d time.Duration) { l.busyPoll.Store(int64(d)) }

// SetKeepAlive sets after how long without traffic the kernel probes new TCP connections; 0 is never. Safe for concurrent use.
func (l *Loop) SetKeepAlive(d time.Duration) { l.keepAlive.Store(int64(d)) }

// Stop has Run finish what was read, send the replies, close everything and return. Safe for concurrent use.
func (l *Loop) Stop() {
	l.stopping.Store(true)
	l.poke()
}

// Nudge has the worker's Tick called soon. Safe for concurrent use.
func (l *Loop) Nudge() { l.poke() }

// Traffic returns what was moved until the last batch began. The caller holds the handler's lock.
func (l *Loop) Traffic() Traffic { return l.published }

// Done is closed when Run has returned.
func (l *Loop) Done() <-chan struct{} { return l.done }

// Run serves until Stop.
func (l *Loop) Run() {
	defer close(l.done)
	events := make([]unix.EpollEvent, eventsPerWait)
	var untilTick time.Duration
	l.watching.begin()
	for !l.stopping.Load() {
		n := l.wait(events, untilTick)
		l.begin()
		l.gather(events[:n])
		l.batch(l.worker)
		untilTick = l.worker.Tick()
		l.answer()
		l.pool.Trim()
	}
	l.shutdown()
}

// begin empties an iteration's lists, but for what the last one could not send.
func (l *Loop) begin() {
	l.forget()
	l.reading, l.meeting, l.looked = reading{}, reading{}, 0
	l.flush = append(l.flush, l.unsent...)
	clear(l.unsent)
	l.unsent = l.unsent[:0]
}

// forget empties the lists, so that they hold no connections that are gone.
func (t *turn) forget() {
	clear(t.ready)
	clear(t.late)
	clear(t.flush)
	t.ready, t.late, t.flush = t.ready[:0], t.late[:0], t.flush[:0]
}

// gather reads from the sockets that have something, and accepts new connections. Those that the last iteration had no time for come
// first, and those that have something left over, or are in the middle of a long command, come last. New ones are read for a limited time, so that
// the others do not wait for a crowd that comes at once.
func (l *Loop) gather(events []unix.EpollEvent) {
	l.endStalls()
	l.endPause()
	l.readAgain()
	l.readFresh()
	for i := range events {
		l.event(&events[i])
	}
	l.readAgain()
	if !l.acceptAgain.IsZero() {
		l.resumeAccepting()
	}
	for _, a := range l.prepare() {
		l.add(a)
	}
}

// answer sends what the batch has to say, and lets go of the buffers that it has emptied.
func (l *Loop) answer() {
	l.stage()
	for _, c := range l.flush {
		l.send(c)
	}
	for _, c := range l.ready {
		switch {
		case c.dead.Load() || c.kept:
		case c.closing:
			c.In.Release(&l.pool) // what follows in it is dropped
		default:
			c.In.Compact(&l.pool)
		}
	}
	l.closeEnding()
}

// yield implements front: an iteration within the one that runs a command of c.
func (l *Loop) yield(c *Conn) {
	if l.guest == nil {
		l.guest = l.handler.NewWorker()
	}
	outer := l.turn
	l.turn = l.inner
	l.begin()
	l.takeOver(outer.ready, c)
	var events [eventsPerYield]unix.EpollEvent
	l.gather(events[:epollWaitRaw(l.epfd, events[:], 0)])
	l.batch(l.guest)
	l.answer()
	l.forget()
	l.inner, l.turn = l.turn, outer
}

// takeOver has an iteration within a command of c go on with the others of the batch that the command interrupts. What they were answered is
// sent, and those with input are left over, since it may be commands that were rewound, or that the batch had not come to. That is so once:
// from then on they are read, listed and left over as all others are, and what the interrupted batch has postponed since joins them.
func (l *Loop) takeOver(batch []*Conn, c *Conn) {
	before := len(l.behind.list)
	for _, other := range batch {
		if other == c || other.dead.Load() {
			continue
		}
		l.flush = append(l.flush, other)
		if other.listed && !other.rests && other.In.Buffered() > 0 {
			other.PassOver()
		}
		if other.listed = false; other.postponed {
			l.carry(other)
		}
	}
	l.behind.toFront(before)
}

// wait returns the number of events taken, after sleeping for at most limit if there are none. Under load the next event is
// never far, so the first sleep is a short one that the scheduler is not told of: telling it, and being taken the processor away
// and given it back, costs about as much as a small command. After that the goroutine parks. A signal, and so a collection that wants to stop the world, ends
// that sleep at once.
func (l *Loop) wait(events []unix.EpollEvent, limit time.Duration) int {
	if !l.asleep || len(l.passed.list)+len(l.behind.list)+len(l.unread.list)+len(l.fresh) > 0 || len(l.unsent) > 0 || len(l.ending) > 0 || limit == 0 {
		return epollWaitRaw(l.epfd, events, 0)
	}
	if spin := l.busyPoll.Load(); spin > 0 {
		for start := time.Now(); time.Since(start) < time.Duration(spin); {
			if n := epollWaitRaw(l.epfd, events, 0); n > 0 {
				return n
			}
		}
	}
	if !l.acceptAgain.IsZero() {
		limit = min(limit, time.Until(l.acceptAgain))
	}
	if len(l.stalled) > 0 {
		limit = min(limit, time.Until(l.stallEnd))
	}
	if len(l.paused) > 0 {
		limit = min(limit, time.Until(l.pauseEnd))
	}
	first := min(shortSleep, max(limit, time.Millisecond))
	if n := epollWaitRaw(l.epfd, events, int(first/time.Millisecond)); n > 0 {
		return n
	}
	if limit -= first; limit <= 0 {
		return 0
	}
	return l.parking.wait(events, limit)
}

func (l *Loop) event(ev *unix.EpollEvent) {
	fd := int(ev.Fd)
	if fd == l.wakefd {
		var b [8]byte
		unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b)), uintptr(len(b)))
		return
	}
	if fd >= len(l.conns) || l.conns[fd] == nil {
		l.otherEvent(fd)
		return
	}
	c := l.conns[fd]
	if ev.Events&unix.EPOLLOUT != 0 {
		l.disarmWrite(c)
		l.endStall(c)
		l.flush = append(l.flush, c)
	}
	switch ended := ev.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0; {
	case !ended && ev.Events&(unix.EPOLLIN|unix.EPOLLRDHUP) == 0:
	case c.closing: // what its peer sends is for nobody any more
		if ended {
			c.dead.Store(true)
			l.flush = append(l.flush, c)
		}
	case c.waits:
		c.unread = true // edge triggering tells of it only now
	case c.In.Buffered() >= resp.BufferSize && !c.listed && !c.kept: // the middle of a long command
		c.unread = true
		l.carry(c)
	case !c.known && !c.listed && (len(l.fresh) > 0 || l.meeting.over(l.moved.BytesIn, meetTime)):
		c.unread, c.waits = true, true
		l.fresh = append(l.fresh, c)
	default:
		l.read(c, ended || ev.Events&unix.EPOLLRDHUP != 0)
	}
}

// listenerAt returns the listener with that descriptor, or nil: it may be gone.
func (l *Loop) listenerAt(fd int) *listener {
	l.handler.Lock()
	defer l.handler.Unlock()
	for _, ln := range l.listeners {
		if ln.fd == fd {
			return ln
		}
	}
	return nil
}

// read takes one read's worth from the socket, unless there are commands left to run of what was read before. Edge triggering tells
// of new bytes once, so a read that filled its room, or that has the peer's close still to see, is followed by another in the next
// iteration.
func (l *Loop) read(c *Conn, hangup bool) {
	if c.dead.Load() || c.eof {
		return
	}
	if c.kept || c.listed {
		c.unread = true
		if !c.listed {
			l.carry(c)
		}
		return
	}
	if c.unreadRest() {
		c.unread = true
		return
	}
	room := c.In.Space(&l.pool)
	room = room[:min(len(room), readMax)]
	n, errno := recv(c.FD, room)
	switch {
	case n > 0:
		l.moved.BytesIn += uint64(n)
		l.moved.Reads++
		c.In.Received(n)
		c.unread = n == len(room) || hangup
		if c.rests {
			l.keep(c)
		} else {
			l.list(c)
		}
	case n == 0:
		c.eof = true
		l.flush = append(l.flush, c)
	case errno == unix.EAGAIN:
		c.unread = false
		c.In.Compact(&l.pool)
	default:
		c.dead.Store(true)
		l.flush = append(l.flush, c)
	}
}

// keep leaves what was read in the input of a connection whose commands may not run yet.
func (l *Loop) keep(c *Conn) {
	c.resting.Store(int64(c.In.Buffered()))
	switch {
	case c.In.Buffered() > c.restMax:
		c.dead.Store(true)
		l.flush = append(l.flush, c)
	case c.unread:
		l.carry(c)
	}
}

// prepare completes the batch with the connections whose input may go on, and with those that are left over, and readies all of them for
// replies. It returns the connections that are new to this loop.
func (l *Loop) prepare() []arrival {
	l.handler.Lock()
	defer l.handler.Unlock()
	l.asleep = false
	l.published = l.moved
	for _, c := range l.woken {
		if c.kept {
			continue
		}
		if c.resumed && !c.dead.Load() {
			c.goOn()
			l.list(c)
		}
		c.resumed = false
	}
	l.joinLate()
	for _, c := range l.ready {
		c.prepare(&l.pool)
	}
	for _, ln := range l.leaving {
		ln.file.Close()
	}
	l.leaving = nil
	arrivals := l.arrivals
	l.arrivals = nil
	return arrivals
}

// stage collects what this iteration has to send, under one hold of the lock.
func (l *Loop) stage() {
	l.handler.Lock()
	defer l.handler.Unlock()
	for _, c := range l.flush {
		if !c.kept {
			c.stage(&l.pool)
		}
	}
	for _, c := range l.ready {
		if c.stage(&l.pool) {
			l.flush = append(l.flush, c)
		}
	}
	kept := l.woken[:0]
	for _, c := range l.woken {
		if c.kept {
			kept = append(kept, c)
			continue
		}
		if c.queued && c.stage(&l.pool) {
			l.flush = append(l.flush, c)
		}
		if c.resumed {
			c.queued = true
			kept = append(kept, c)
		}
	}
	clear(l.woken[len(kept):])
	l.woken = kept
	l.asleep = len(kept) == 0 && len(l.arrivals) == 0
}

// send writes what is staged, and has the connection closed when it is due.
func (l *Loop) send(c *Conn) {
	if l.conns[c.FD] != c || c.kept || c.ending {
		return // closed or about to be, or in the middle of a command
	}
	for budget := sendMax; !c.dead.Load() && !c.waiting && c.sent < len(c.out); {
		if budget <= 0 && !c.eof {
			l.unsent = append(l.unsent, c)
			return
		}
		n, errno := send(c.FD, c.out[c.sent:min(len(c.out), c.sent+sendMax)])
		if n > 0 {
			l.moved.BytesOut += uint64(n)
			l.moved.Writes++
			c.sent += n
			budget -= n
			continue
		}
		if errno == unix.EAGAIN {
			l.armWrite(c)
			break
		}
		c.dead.Store(true)
	}
	if c.sent == len(c.out) && c.sent > 0 {
		c.release(&l.pool)
		if c.more {
			l.handler.Lock()
			c.stage(&l.pool)
			l.handler.Unlock()
			l.send(c)
			return
		}
	}
	if c.dead.Load() || c.eof && !c.stays || (c.closing && len(c.out) == 0) {
		l.end(c)
	}
}

// end has a connection closed when this or a later iteration has the time. Until then it is not read, its commands are not run, and
// nothing that others wait for as well is given to it.
func (l *Loop) end(c *Conn) {
	c.ending = true
	c.dead.Store(true)
	l.ending = append(l.ending, c)
	l.handler.Lock()
	defer l.handler.Unlock()
	c.closeNow = true
}

// closeEnding closes the connections that are to be closed, those that have waited longest first: as many as one iteration has the time
// for, so that nobody waits for a crowd that hangs up at once.
func (l *Loop) closeEnding() {
	if len(l.ending) == 0 {
		return
	}
	closed := 0
	for begin := time.Now(); closed < min(len(l.ending), closesMax); {
		l.close(l.ending[closed])
		if closed++; time.Since(begin) > closeTime {
			break
		}
	}
	l.ending = slices.Delete(l.ending, 0, closed)
}

func (l *Loop) armWrite(c *Conn) {
	c.waiting = true
	if l.control(unix.EPOLL_CTL_MOD, c.FD, readEvents|unix.EPOLLOUT) != nil {
		c.dead.Store(true)
	}
}

func (l *Loop) disarmWrite(c *Conn) {
	c.waiting = false
	if l.control(unix.EPOLL_CTL_MOD, c.FD, readEvents) != nil {
		c.dead.Store(true)
	}
}

func (l *Loop) close(c *Conn) {
	c.dead.Store(true)
	l.conns[c.FD] = nil
	if c.shared { // or the other descriptor would keep the socket among those that are polled, under a number that is another's by then
		_ = l.control(unix.EPOLL_CTL_DEL, c.FD, 0)
	}
	closeSocket(c.FD)
	l.open--
	l.worker.Closed(c)
	l.handler.Lock()
	defer l.handler.Unlock()
	c.free(&l.pool, &l.pool)
}

// wake implements front.
func (l *Loop) wake(c *Conn) {
	if c.queued {
		return
	}
	c.queued = true
	l.woken = append(l.woken, c)
	if l.asleep && len(l.woken) == 1 { // there were none when it fell asleep, so that the first has poked it
		l.poke()
	}
}

// direct implements front.
func (l *Loop) direct(c *Conn) (net.Conn, error) {
	fd, err := unix.FcntlInt(uintptr(c.FD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("netpoll: a second descriptor: %w", err)
	}
	file := os.NewFile(uintptr(fd), "")
	defer file.Close() // what is returned has one of its own
	c.shared = true
	return net.FileConn(file)
}

// shutdown closes the listeners, gives full sockets a moment to drain, and closes every connection.
func (l *Loop) shutdown() {
	l.leave()
	for _, a := range l.refuseArrivals() {
		unix.Close(a.fd)
	}
	deadline := time.Now().Add(shutdownDrainTime)
	l.finish(deadline)
	for _, c := range l.conns {
		if c != nil {
			l.drain(c, deadline)
		}
	}
	for _, c := range l.conns {
		if c != nil {
			l.settle(c, deadline)
			l.close(c)
		}
	}
	l.closeWake()
	l.parking.close()
	unix.Close(l.epfd)
}

// finish has the commands run that were read and are left over, until the deadline.
func (l *Loop) finish(deadline time.Time) {
	for more := true; more && time.Now().Before(deadline); {
		l.begin()
		for _, c := range l.conns {
			if c != nil && c.TakePostponed() && !c.dead.Load() {
				l.ready = append(l.ready, c)
			}
		}
		more = len(l.ready) > 0
		l.prepare()
		l.batch(l.worker)
		l.answer()
	}
}

// refuseArrivals closes the listeners, ends this loop's part in its group, and returns the connections that nothing was heard of yet.
func (l *Loop) refuseArrivals() []arrival {
	l.handler.Lock()
	defer l.handler.Unlock()
	l.ended = true
	for _, ln := range append(l.listeners, l.leaving...) {
		ln.file.Close()
		ln.Listener.Close()
	}
	l.listeners, l.leaving = nil, nil
	return l.arrivals
}

// drain sends what a connection still has to get, and waits for replies that are to come, until the deadline.
func (l *Loop) drain(c *Conn, deadline time.Time) {
	for !c.dead.Load() {
		l.handler.Lock()
		c.stage(&l.pool)
		awaits := c.awaits
		l.handler.Unlock()
		if c.sent == len(c.out) {
			if !awaits || time.Now().After(deadline) {
				return
			}
			time.Sleep(time.Millisecond)
			continue
		}
		n, errno := send(c.FD, c.out[c.sent:])
		switch {
		case n > 0:
			c.sent += n
		case errno != unix.EAGAIN || time.Now().After(deadline):
			return
		default:
			time.Sleep(time.Millisecond)
		}
		if c.sent == len(c.out) {
			c.release(&l.pool)
		}
	}
}

// settle waits until the peer's side has taken in all that was sent, or the deadline: a socket that is closed while the peer goes on
// sending is reset, and the kernel throws away what was still on its way, in the middle of a reply.
func (l *Loop) settle(c *Conn, deadline time.Time) {
	for !c.dead.Load() && time.Now().Before(deadline) {
		if n, err := unix.IoctlGetInt(c.FD, unix.SIOCOUTQ); err != nil || n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (l *Loop) control(op, fd int, events uint32) error {
	return unix.EpollCtl(l.epfd, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}
