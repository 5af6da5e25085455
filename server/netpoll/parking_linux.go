package netpoll

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// parking lets the loop's goroutine sleep until its epoll instance has events, without holding a thread in a system call: the
// instance is watched by the runtime's network poller. Returning from a long system call wakes the
// runtime's monitor thread, which then looks around sixty times before it goes back to sleep; a loop that serves a hundred
// requests per second spent nine tenths of its time on that.
//
// Between the two stands an instance of its own, which looks at the loop's only while the goroutine is parked. Otherwise each request
// would wake up a thread that waits for the runtime's timers or sockets, if there are any, for nothing: half as much CPU again per
// request.
type parking struct {
	epfd  int      // the loop's
	file  *os.File // what the runtime watches
	fd    int      // file's
	raw   syscall.RawConn
	take  func(fd uintptr) bool // takes events, if there are any
	space []unix.EpollEvent     // where take puts them; nil while nobody is parked
	taken int
}

func newParking(epfd int) (*parking, error) {
	fail := func(err error) (*parking, error) {
		return nil, fmt.Errorf("netpoll: watch the epoll descriptor: %w", err)
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fail(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or the runtime would not watch it
		unix.Close(fd)
		return fail(err)
	}
	p := &parking{epfd: epfd, fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, epfd, &unix.EpollEvent{})
	if err == nil {
		err = p.file.SetReadDeadline(time.Time{})
	}
	if err == nil {
		p.raw, err = p.file.SyscallConn()
	}
	if err != nil {
		p.file.Close()
		return fail(err)
	}
	p.take = func(uintptr) bool {
		p.taken = epollWaitRaw(p.epfd, p.space, 0)
		return p.taken > 0
	}
	return p, nil
}

// wait returns the number of events taken, after at most limit.
func (p *parking) wait(events []unix.EpollEvent, limit time.Duration) int {
	p.space, p.taken = events, 0
	p.look(unix.EPOLLIN)
	p.file.SetReadDeadline(time.Now().Add(limit))
	p.raw.Read(p.take) // its only error is the deadline's
	p.look(0)
	p.space = nil
	return p.taken
}

// look sets which events of the loop's instance the runtime hears of.
func (p *parking) look(events uint32) {
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, p.epfd, &unix.EpollEvent{Events: events}) // both are there, so that it cannot fail
}

func (p *parking) close() { p.file.Close() }
