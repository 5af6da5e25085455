package host

import (
	"bytes"
	"os"
	"runtime/metrics"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Names of what the Go runtime measures; see package runtime/metrics.
const (
	MetricHeapObjects  = "/memory/classes/heap/objects:bytes"
	MetricHeapReleased = "/memory/classes/heap/released:bytes"
	MetricHeapUnused   = "/memory/classes/heap/unused:bytes"
	MetricTotal        = "/memory/classes/total:bytes"
	MetricLive         = "/gc/heap/live:bytes"
	MetricScanned      = "/gc/scan/heap:bytes"
	MetricCycles       = "/gc/cycles/total:gc-cycles"
)

// HeapMetrics are those that MEMORY MALLOC-STATS shows: the heap, and the runtime's own tables for it, which never get smaller.
var HeapMetrics = []string{
	MetricHeapObjects, MetricHeapUnused, "/memory/classes/heap/free:bytes", MetricHeapReleased, "/memory/classes/heap/stacks:bytes", MetricTotal, MetricLive,
	"/memory/classes/metadata/mspan/inuse:bytes", "/memory/classes/metadata/mspan/free:bytes", "/memory/classes/metadata/other:bytes",
	"/memory/classes/profiling/buckets:bytes", "/memory/classes/other:bytes",
}

// RuntimeMetric returns one of the runtime's counts.
func RuntimeMetric(name string) uint64 {
	sample := [1]metrics.Sample{{Name: name}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64()
}

// ResidentMemory returns the bytes of physical memory that the process has. Systems without /proc get what the Go runtime has mapped and
// not given back, and what lies outside its heap, of which the caller knows.
func ResidentMemory(outside uint64) uint64 {
	if _, _, resident := processSize(); resident > 0 {
		return resident
	}
	return RuntimeMetric(MetricTotal) - RuntimeMetric(MetricHeapReleased) + outside
}

// SystemMemory returns the machine's memory in bytes, or 0 where /proc does not tell it.
func SystemMemory() uint64 {
	meminfo, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(meminfo) {
		if rest, ok := bytes.CutPrefix(line, []byte("MemTotal:")); ok {
			kib, _ := strconv.ParseUint(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// SystemName returns the operating system's name, release and architecture, as uname prints them.
func SystemName() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
}

// CPUTimes returns the processor time used so far in the kernel and outside it; who is the process or its children.
func CPUTimes(who int) (system, user time.Duration) {
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
		return 1024
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

// Pid is the process's number, as INFO shows it.
var Pid = os.Getpid
