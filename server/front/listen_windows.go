package front

import "golang.org/x/sys/windows"

// listen sets how many connections the kernel may hold for a socket.
func listen(fd uintptr, backlog int) error { return windows.Listen(windows.Handle(fd), backlog) }
