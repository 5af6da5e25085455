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
	var raw unix.RawSockaddrAny
	size := uint32(unix.SizeofSockaddrAny)
	n, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), uintptr(unsafe.Pointer(&raw)), uintptr(unsafe.Pointer(&size)),
		unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1, nil, errno
	}
	return int(n), sockaddr(&raw), 0
}

// localAddress returns the address that a socket is bound to, nil if it has none.
func localAddress(fd int) unix.Sockaddr {
	var raw unix.RawSockaddrAny
	size := uint32(unix.SizeofSockaddrAny)
	if _, _, errno := unix.RawSyscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&raw)), uintptr(unsafe.Pointer(&size))); errno != 0 {
		return nil
	}
	return sockaddr(&raw)
}

// sockaddr reads an IP address and port. Others are nil.
func sockaddr(raw *unix.RawSockaddrAny) unix.Sockaddr {
	switch raw.Addr.Family {
	case unix.AF_INET:
		a := (*unix.RawSockaddrInet4)(unsafe.Pointer(raw))
		return &unix.SockaddrInet4{Port: bigEndian(&a.Port), Addr: a.Addr}
	case unix.AF_INET6:
		a := (*unix.RawSockaddrInet6)(unsafe.Pointer(raw))
		return &unix.SockaddrInet6{Port: bigEndian(&a.Port), Addr: a.Addr, ZoneId: a.Scope_id}
	}
	return nil
}

func bigEndian(port *uint16) int {
	b := (*[2]byte)(unsafe.Pointer(port))
	return int(b[0])<<8 | int(b[1])
}

func setOption(fd, level, option, value int) {
	v := int32(value)
	unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&v)), unsafe.Sizeof(v), 0)
}

func closeSocket(fd int) { unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }
