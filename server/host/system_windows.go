package host

import (
	"runtime"
	"syscall"
	"time"
)

// processLimit returns 0: Windows limits a process by a job object, which is not looked at.
func processLimit() (limit uint64) { return 0 }

// SystemName returns the operating system's name and architecture.
func SystemName() string { return "Windows " + runtime.GOARCH }

// CPUTimes returns the processor time that the process has used so far, in the kernel and outside it.
func CPUTimes() (system, user time.Duration) {
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, 0
	}
	var created, exited, kernel, outside syscall.Filetime
	if syscall.GetProcessTimes(process, &created, &exited, &kernel, &outside) != nil {
		return 0, 0
	}
	return length(kernel), length(outside)
}

// ChildrenCPUTimes returns 0: Windows does not add up the times of children.
func ChildrenCPUTimes() (system, user time.Duration) { return 0, 0 }

// length is a length of time, which Windows counts in 100 ns. (Filetime.Nanoseconds is for moments: it subtracts 1601 to 1970.)
func length(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}

// MaxDescriptors returns how many sockets and files may be open: Windows sets no limit that matters here.
func MaxDescriptors() int { return manyDescriptors }

const manyDescriptors = 1 << 20
