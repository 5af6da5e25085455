package gateway

import "golang.org/x/sys/unix"

// bootTime is the time since the machine was started, in ns, that goes on while it is suspended.
func bootTime() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil { // every kernel that Go runs on has it
		panic("gateway: there is no CLOCK_BOOTTIME")
	}
	return t.Nano()
}
