package upstream

import (
	"syscall"
	"unsafe"
)

// The calls below do not wait, so they spare the scheduler's bookkeeping around a system call. Above all, its monitor thread then finds nothing
// to take over from a thread whose call takes long because it carries the bytes to the server: each time it does, it looks around fifty times.

func send(fd int, p []byte) (int, error) {
	return transfer(syscall.SYS_SENDTO, fd, p, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
}

func receive(fd int, p []byte) (int, error) {
	return transfer(syscall.SYS_RECVFROM, fd, p, syscall.MSG_DONTWAIT)
}

// transfer makes a call with at least one byte.
func transfer(call uintptr, fd int, p []byte, flags uintptr) (int, error) {
	n, _, errno := syscall.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
