package bench

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// chooseDriver returns how a load is driven, and by how many workers.
func chooseDriver(o *Options) (driver, int) {
	if o.TLS {
		return driveConn, o.Clients
	}
	return driveLoop, min(o.Threads, o.Clients)
}

const (
	eventsPerWait = 256
	longestWait   = 20 * time.Millisecond // until the loop looks whether it should end
)

// loop serves all connections of its worker with one epoll instance.
type loop struct {
	*worker
	epfd   int
	fds    []int
	free   []int // indexes of clients that wait for their turn in an open loop
	active int
	in     []byte
	events [eventsPerWait]unix.EpollEvent
}

// driveLoop is the driver of plain connections.
func driveLoop(w *worker, t *target) (func() error, func(), error) {
	conns, err := dialAll(w, t)
	if err != nil {
		return nil, nil, err
	}
	defer closeConns(conns)
	l := &loop{worker: w, in: make([]byte, readBytes)}
	if l.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("epoll_create1", err)
	}
	for i, conn := range conns {
		if err := l.take(i, conn); err != nil {
			l.close()
			return nil, nil, err
		}
	}
	run := func() error {
		err := l.run()
		if errors.Is(err, errSilent) {
			return fmt.Errorf("%s: %w", t.addr, err)
		}
		return err
	}
	return run, l.close, nil
}

// take makes a connection's file the loop's own.
func (l *loop) take(i int, conn net.Conn) error {
	file, ok := conn.(interface{ File() (*os.File, error) })
	if !ok {
		return fmt.Errorf("a connection of type %T has no file", conn)
	}
	f, err := file.File()
	if err != nil {
		return err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	l.fds = append(l.fds, fd)
	return l.watch(unix.EPOLL_CTL_ADD, i, unix.EPOLLIN)
}

func (l *loop) close() {
	for _, fd := range l.fds {
		unix.Close(fd)
	}
	unix.Close(l.epfd)
}

func (l *loop) watch(op, i int, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epfd, op, l.fds[i], &unix.EpollEvent{Events: events, Fd: int32(i)}))
}

// run begins what is due and takes what comes, until the round is over and the last replies are there.
func (l *loop) run() error {
	l.filler.tick()
	for i := range l.clients {
		l.free = append(l.free, i)
	}
	heard := int64(0)
	for {
		now := l.now()
		over := l.over(now)
		if !over {
			if err := l.beginDue(now); err != nil {
				return err
			}
			l.begun = true
		}
		switch {
		case over && l.active == 0, l.ended() && now > heard+int64(drainTime):
			return nil
		}
		n := l.wait(over)
		if n == 0 {
			if l.active > 0 && now > max(heard, l.oldest())+int64(replyTimeout) {
				return errSilent
			}
			continue
		}
		heard = l.now()
		l.filler.tick()
		for i := range n {
			if err := l.event(&l.events[i]); err != nil {
				return err
			}
		}
	}
}

// oldest is when the pipeline began that has waited longest; now if none waits. It is looked for only when nothing came.
func (l *loop) oldest() int64 {
	now := l.now()
	for _, c := range l.clients {
		if c.awaited > 0 {
			now = min(now, c.since)
		}
	}
	return now
}

// beginDue gives free connections the pipelines whose time has come.
func (l *loop) beginDue(now int64) error {
	for len(l.free) > 0 {
		since := now
		if l.schedule.open {
			if since = l.schedule.next(); since > now || l.over(now) {
				return nil
			}
			l.schedule.taken++
		}
		i := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		l.active++
		if err := l.begin(i, since); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) begin(i int, since int64) error {
	l.clients[i].begin(l.template, l.filler, since)
	return l.send(i)
}

// send writes as much as the socket takes, and asks to be told when it takes more.
func (l *loop) send(i int) error {
	c := l.clients[i]
	for c.sent < len(c.out) {
		n, errno := sendTo(l.fds[i], c.out[c.sent:])
		switch errno {
		case 0:
			c.sent += n
		case unix.EINTR:
		case unix.EAGAIN:
			c.blocked = true
			return l.watch(unix.EPOLL_CTL_MOD, i, unix.EPOLLIN|unix.EPOLLOUT)
		default:
			n, _ := receive(l.fds[i], l.in)
			return closedBy(l.in[:max(n, 0)], errno)
		}
	}
	if c.blocked {
		c.blocked = false
		return l.watch(unix.EPOLL_CTL_MOD, i, unix.EPOLLIN)
	}
	return nil
}

// event serves one connection.
func (l *loop) event(ev *unix.EpollEvent) error {
	i := int(ev.Fd)
	c := l.clients[i]
	if ev.Events&unix.EPOLLOUT != 0 {
		if err := l.send(i); err != nil {
			return err
		}
	}
	if ev.Events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) == 0 {
		return nil
	}
	n, errno := receive(l.fds[i], l.in)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return nil
	case errno != 0:
		return fmt.Errorf("the server has closed a connection: %w", errno)
	case n == 0:
		return errors.New("the server has closed a connection")
	}
	now := l.now()
	ops, err := c.received(l.in[:n], now, l.latency)
	if err != nil {
		return err
	}
	if ops > 0 {
		l.progress.Add(uint64(ops))
	}
	if c.awaited > 0 {
		return nil
	}
	if l.schedule.open || l.over(now) {
		l.free = append(l.free, i)
		l.active--
		return nil
	}
	return l.begin(i, now)
}

// wait waits for events, until the next pipeline is due at the latest.
func (l *loop) wait(over bool) int {
	limit := longestWait
	if !over && l.schedule.open && len(l.free) > 0 {
		limit = min(limit, time.Duration(l.schedule.next()-l.now()))
	}
	return l.waitFor(max(limit, 0))
}

// waitFor waits for so long with epoll_pwait2, which knows of nanoseconds, or on kernels before 5.11 in whole milliseconds and
// without sleep for the rest. The scheduler is not told of waits below a millisecond: it would take the processor away meanwhile, and
// to have it back takes about as long as a server's answer, of which it would be counted as a part.
func (l *loop) waitFor(limit time.Duration) int {
	if limit >= time.Millisecond {
		n, _ := unix.EpollWait(l.epfd, l.events[:], int(limit/time.Millisecond))
		return max(n, 0)
	}
	ts := unix.NsecToTimespec(int64(limit))
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epfd), uintptr(unsafe.Pointer(&l.events[0])),
		eventsPerWait, uintptr(unsafe.Pointer(&ts)), 0, 0)
	if errno == unix.ENOSYS || errno == unix.EPERM {
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epfd), uintptr(unsafe.Pointer(&l.events[0])), eventsPerWait, 0, 0, 0)
	}
	if errno != 0 {
		return 0
	}
	return int(n)
}

func sendTo(fd int, p []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

func receive(fd int, p []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}
