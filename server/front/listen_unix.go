//go:build unix

package front

import "golang.org/x/sys/unix"

// listen sets how many connections the kernel may hold for a socket.
func listen(fd uintptr, backlog int) error { return unix.Listen(int(fd), backlog) }
