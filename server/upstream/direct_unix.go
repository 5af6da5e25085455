//go:build unix

package upstream

import (
	"io"
	"net"
	"os"
	"syscall"
)

// direct writes to a connection's socket what it takes at once. It spares what is sent often a goroutine that is woken for it.
type direct struct {
	socket *socket // nil: raw is used
	raw    syscall.RawConn
	p      []byte
	n      int
	err    error
	try    func(fd uintptr) bool // made once, so that a write allocates nothing
}

// newDirect returns nil for a connection that is no socket, such as TLS's.
func newDirect(conn net.Conn) *direct {
	raw := rawOf(conn)
	if raw == nil {
		return nil
	}
	d := &direct{raw: raw}
	d.try = d.once
	return d
}

// directTo writes to a socket.
func directTo(s *socket) *direct { return &direct{socket: s} }

// rawOf is how a connection's socket is reached, or nil.
func rawOf(conn net.Conn) syscall.RawConn {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// write returns how many bytes of p the socket has taken, which may be none.
func (d *direct) write(p []byte) (int, error) {
	if d.socket != nil {
		return d.socket.give(p)
	}
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
	n, err := send(int(fd), d.p)
	for err == syscall.EINTR {
		n, err = send(int(fd), d.p)
	}
	d.n = max(n, 0)
	if err != nil && err != syscall.EAGAIN {
		d.err = err
	}
	return true
}

// input reads from a connection's socket.
type input struct {
	raw syscall.RawConn
	p   []byte
	n   int
	err error
	try func(fd uintptr) bool // made once, so that a read allocates nothing
}

// newInput returns what reads from a connection: the connection, if it is no socket.
func newInput(conn net.Conn) io.Reader {
	raw := rawOf(conn)
	if raw == nil {
		return conn
	}
	in := &input{raw: raw}
	in.try = in.once
	return in
}

// Read waits for something, as that of a net.Conn does.
func (in *input) Read(p []byte) (int, error) {
	in.p, in.n, in.err = p, 0, nil
	err := in.raw.Read(in.try)
	in.p = nil
	if err == nil {
		err = in.err
	}
	return in.n, err
}

// once reports false if there is nothing yet, so that it is called again.
func (in *input) once(fd uintptr) bool {
	n, err := receive(int(fd), in.p)
	for err == syscall.EINTR {
		n, err = receive(int(fd), in.p)
	}
	switch {
	case err == syscall.EAGAIN:
		return false
	case err != nil:
		in.err = os.NewSyscallError("read", err)
	case n == 0:
		in.err = io.EOF
	}
	in.n = max(n, 0)
	return true
}
