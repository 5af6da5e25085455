//go:build unix

package upstream

import (
	"net"
	"syscall"
)

// direct writes to a connection's socket what it takes at once. It spares what is sent often a goroutine that is woken for it.
type direct struct {
	raw syscall.RawConn
	p   []byte
	n   int
	err error
	try func(fd uintptr) bool // made once, so that a write allocates nothing
}

// newDirect returns nil for a connection that is no socket, such as TLS's.
func newDirect(conn net.Conn) *direct {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	d := &direct{raw: raw}
	d.try = d.once
	return d
}

// write returns how many bytes of p the socket has taken, which may be none.
func (d *direct) write(p []byte) (int, error) {
	d.p, d.n, d.err = p, 0, nil
	err := d.raw.Write(d.try)
	d.p = nil
	if err == nil {
		err = d.err
	}
	return d.n, err
}

// once reports true, so that it is not called again when the socket takes more.
func (d *direct) once(fd uintptr) bool {
	n, err := syscall.Write(int(fd), d.p)
	for err == syscall.EINTR {
		n, err = syscall.Write(int(fd), d.p)
	}
	d.n = max(n, 0)
	if err != nil && err != syscall.EAGAIN {
		d.err = err
	}
	return true
}
