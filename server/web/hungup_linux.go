package web

import (
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// hangUps returns a func that reports whether the peer of a connection will send nothing more: it has closed its side, or been cut off. What it
// has sent before may not have been read yet. The func allocates nothing, and is safe for concurrent
// use.
func hangUps(c net.Conn) (hungUp func() bool) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return never
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return never
	}
	var mu sync.Mutex
	var poll [1]unix.PollFd
	look := func(fd uintptr) {
		poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLRDHUP}
		_, _ = unix.Poll(poll[:], 0) // without an answer nothing is known
	}
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		poll[0].Revents = 0
		return raw.Control(look) == nil && poll[0].Revents != 0
	}
}
