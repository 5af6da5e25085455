//go:build unix

package host

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processLimit returns the process's own limits, on its data and on its addresses. They count what is mapped, of which much is not used.
func processLimit() (limit uint64) {
	size, data, _ := processSize()
	for _, bound := range []struct {
		which int
		taken uint64
	}{{syscall.RLIMIT_DATA, data}, {syscall.RLIMIT_AS, size}} {
		if n, ok := resourceLimit(bound.which); ok {
			limit = smallest(limit, max(n-min(bound.taken+mappingMargin, n), n/leastMapped))
		}
	}
	return limit
}

// resourceLimit is a limit of the process, if there is one. Its type is signed on FreeBSD and unsigned elsewhere.
func resourceLimit(which int) (bytes uint64, ok bool) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(which, &limit) != nil || limit.Cur >= unlimitedGroup {
		return 0, false
	}
	return uint64(limit.Cur), true
}

// SystemName returns the operating system's name, release and architecture, as uname prints them.
func SystemName() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
}

// CPUTimes returns the processor time that the process has used so far, in the kernel and outside it.
func CPUTimes() (system, user time.Duration) { return processorTimes(syscall.RUSAGE_SELF) }

// ChildrenCPUTimes returns the same of its children that have ended.
func ChildrenCPUTimes() (system, user time.Duration) { return processorTimes(syscall.RUSAGE_CHILDREN) }

func processorTimes(who int) (system, user time.Duration) {
	var usage syscall.Rusage
	if syscall.Getrusage(who, &usage) != nil {
		return 0, 0
	}
	return time.Duration(usage.Stime.Nano()), time.Duration(usage.Utime.Nano())
}

// MaxDescriptors raises the limit on open files to the hard one and returns it.
func MaxDescriptors() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return unknownDescriptors
	}
	if limit.Cur < limit.Max {
		raised := limit
		raised.Cur = raised.Max
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
			limit = raised
		}
	}
	return int(min(limit.Cur, 1<<30))
}
