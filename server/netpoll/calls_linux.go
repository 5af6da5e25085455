package netpoll

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of this file block shortly or not at all, so they spare the scheduler's bookkeeping around a system call. With that, a loop from which
// the kernel takes the processor in the middle of a call would go on only when other goroutines leave one to it.

func epollWaitRaw(epfd int, events []unix.EpollEvent, timeoutMs int) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(timeoutMs), 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

func recv(fd int, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return -1, errno
		}
		return int(n), 0
	}
}

func send(fd int, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return -1, errno
		}
		return int(n), 0
	}
}

// accept returns the next connection that waits at a listener, and its peer.
func accept(listener int) (fd int, peer unix.Sockaddr, errno syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), 0, 0, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1, nil, errno
	}
	fd = int(n)
	peer, err := unix.Getpeername(fd)
	if err != nil { // it has gone, and nobody can say any more who it was
		closeSocket(fd)
		return -1, nil, unix.ECONNABORTED
	}
	return fd, peer, 0
}

func setOption(fd, level, option, value int) {
	v := int32(value)
	unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&v)), unsafe.Sizeof(v), 0)
}

func closeSocket(fd int) { unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }
