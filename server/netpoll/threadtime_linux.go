package netpoll

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadTime returns how long the calling thread has had a processor; 0 if that is not known.
func threadTime() time.Duration {
	var t unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
