package netpoll

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// poke wakes the loop up. One that has ended is left alone: its descriptor may be a file's by then.
func (l *Loop) poke() {
	l.waking.Lock()
	defer l.waking.Unlock()
	if l.wakefd < 0 {
		return
	}
	one := [8]byte{1}
	unix.RawSyscall(unix.SYS_WRITE, uintptr(l.wakefd), uintptr(unsafe.Pointer(&one)), uintptr(len(one)))
}

// closeWake has poke do nothing any more.
func (l *Loop) closeWake() {
	l.waking.Lock()
	defer l.waking.Unlock()
	unix.Close(l.wakefd)
	l.wakefd = -1
}
