package netpoll

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// parking lets the loop's goroutine sleep until its epoll instance has events, without holding a thread in a system call: the
// instance's descriptor is itself watched by the runtime's network poller. Returning from a long system call wakes the
// runtime's monitor thread, which then looks around sixty times before it goes back to sleep; a loop that serves a hundred
// requests per second spent nine tenths of its time on that.
type parking struct {
	file  *os.File
	raw   syscall.RawConn
	take  func(fd uintptr) bool // takes events, if there are any
	space []unix.EpollEvent     // where take puts them; nil while nobody is parked
	taken int
}

// newParking takes over the epoll instance's descriptor: close closes it, and so does a failure.
func newParking(epfd int) (*parking, error) {
	err := unix.SetNonblock(epfd, true) // or the runtime would not watch it
	p := &parking{file: os.NewFile(uintptr(epfd), "epoll")}
	if err == nil {
		err = p.file.SetReadDeadline(time.Time{})
	}
	if err == nil {
		p.raw, err = p.file.SyscallConn()
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("netpoll: watch the epoll descriptor: %w", err)
	}
	p.take = func(fd uintptr) bool {
		p.taken = epollWaitRaw(int(fd), p.space, 0)
		return p.taken > 0
	}
	return p, nil
}

// wait returns the number of events taken, after at most limit.
func (p *parking) wait(events []unix.EpollEvent, limit time.Duration) int {
	p.space, p.taken = events, 0
	p.file.SetReadDeadline(time.Now().Add(limit))
	p.raw.Read(p.take) // its only error is the deadline's
	p.space = nil
	return p.taken
}

func (p *parking) close() { p.file.Close() }
