package server

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
	metricHeapObjects  = "/memory/classes/heap/objects:bytes"
	metricHeapReleased = "/memory/classes/heap/released:bytes"
	metricHeapUnused   = "/memory/classes/heap/unused:bytes"
	metricTotal        = "/memory/classes/total:bytes"
	metricLive         = "/gc/heap/live:bytes"
	metricScanned      = "/gc/scan/heap:bytes"
	metricCycles       = "/gc/cycles/total:gc-cycles"
)

// heapMetrics are those that MEMORY MALLOC-STATS shows.
var heapMetrics = []string{metricHeapObjects, metricHeapUnused, "/memory/classes/heap/free:bytes", metricHeapReleased, "/memory/classes/heap/stacks:bytes", metricTotal, metricLive}

// runtimeMetric returns one of the runtime's counts.
func runtimeMetric(name string) uint64 {
	sample := [1]metrics.Sample{{Name: name}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64()
}

// residentMemory returns the bytes of physical memory that the process has. Systems without /proc get what the Go runtime has mapped and
// not given back, and what lies outside its heap, of which the caller knows.
func residentMemory(outside uint64) uint64 {
	if _, _, resident := processSize(); resident > 0 {
		return resident
	}
	return runtimeMetric(metricTotal) - runtimeMetric(metricHeapReleased) + outside
}

// systemMemory returns the machine's memory in bytes, or 0 where /proc does not tell it.
func systemMemory() uint64 {
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

// systemName returns the operating system's name, release and architecture, as uname prints them.
func systemName() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
}

// cpuTimes returns the processor time used so far in the kernel and outside it; who is the process or its children.
func cpuTimes(who int) (system, user time.Duration) {
	var usage syscall.Rusage
	if syscall.Getrusage(who, &usage) != nil {
		return 0, 0
	}
	return time.Duration(usage.Stime.Nano()), time.Duration(usage.Utime.Nano())
}

// maxDescriptors raises the limit on open files to the hard one and returns it.
func maxDescriptors() int {
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

// pid is the process's number, as INFO shows it.
var pid = os.Getpid
