package netpoll

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// PushParts is how many pieces of memory one push sends at most.
const PushParts = 8

// Pusher sends over a connection what its socket takes at once, in one system call that Go's scheduler is not told of: a loop calls it. Only one
// goroutine at a time may write to the connection, or push.
type Pusher struct {
	raw    syscall.RawConn
	call   func(fd uintptr)
	pieces [PushParts]unix.Iovec
	count  int
	sent   int
}

// NewPusher returns nil if there is no socket for the connection that could be written to past it.
func NewPusher(conn net.Conn) *Pusher {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	p := &Pusher{raw: raw}
	p.call = p.send
	return p
}

// Push sends parts, of which none is empty and there are at most [PushParts], and returns how many bytes the socket has taken. What keeps it from taking
// all, whoever writes the rest is told.
func (p *Pusher) Push(parts [][]byte) (sent int) {
	p.count, p.sent = 0, 0
	for _, part := range parts {
		p.pieces[p.count].Base = &part[0]
		p.pieces[p.count].SetLen(len(part))
		p.count++
	}
	_ = p.raw.Control(p.call) // its only error is that the connection is closed: nothing is sent then
	clear(p.pieces[:p.count])
	return p.sent
}

func (p *Pusher) send(fd uintptr) {
	var message unix.Msghdr
	message.Iov = &p.pieces[0]
	message.SetIovlen(p.count)
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&message)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if errno == unix.EINTR {
			continue
		}
		if errno == 0 {
			p.sent = int(n)
		}
		return
	}
}
