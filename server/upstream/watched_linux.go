package upstream

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket is a connection past Go's network poller, which would wake up a thread for all that comes. Somebody else says when there is something
// to read; whoever waits here for the socket itself takes up a thread.
type socket struct {
	fd int
}

// adopt returns a connection's socket, and closes the connection; nil if it has none of its own, as one over TLS.
func adopt(conn io.ReadWriteCloser) *socket {
	plain, ok := conn.(net.Conn)
	if !ok {
		return nil
	}
	raw := rawOf(plain)
	if raw == nil {
		return nil
	}
	s := &socket{fd: -1}
	err := raw.Control(func(fd uintptr) {
		if second, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			s.fd = second
		}
	})
	if err != nil || s.fd < 0 {
		return nil
	}
	_ = conn.Close()
	return s
}

// Read waits for something.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.take(p)
	for err == syscall.EAGAIN {
		s.await(unix.POLLIN)
		n, err = s.take(p)
	}
	return n, err
}

// take returns EAGAIN if there is nothing to read yet.
func (s *socket) take(p []byte) (int, error) {
	n, err := receive(s.fd, p)
	for err == syscall.EINTR {
		n, err = receive(s.fd, p)
	}
	switch {
	case err == syscall.EAGAIN:
		return 0, err
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write waits until the socket has taken all of p.
func (s *socket) Write(p []byte) (written int, err error) {
	for written < len(p) {
		n, err := s.give(p[written:])
		if err != nil {
			return written, err
		}
		if written += n; n == 0 {
			s.await(unix.POLLOUT)
		}
	}
	return written, nil
}

// give returns how many bytes of p the socket has taken, which may be none.
func (s *socket) give(p []byte) (int, error) {
	n, err := send(s.fd, p)
	for err == syscall.EINTR {
		n, err = send(s.fd, p)
	}
	if err != nil && err != syscall.EAGAIN {
		return max(n, 0), os.NewSyscallError("write", err)
	}
	return max(n, 0), nil
}

func (s *socket) await(events int16) {
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: events}}, -1)
}

// Close ends the connection, so that nobody waits for it any more. The descriptor stays until free.
func (s *socket) Close() error { return unix.Shutdown(s.fd, unix.SHUT_RDWR) }

// free closes the descriptor, which nobody uses any more.
func (s *socket) free() { _ = unix.Close(s.fd) }
