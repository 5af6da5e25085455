package host

import (
	"bytes"
	"os"
	"runtime/metrics"
	"strconv"
)

// Names of what the Go runtime measures; see package runtime/metrics.
const (
	MetricHeapObjects  = "/memory/classes/heap/objects:bytes"
	MetricHeapReleased = "/memory/classes/heap/released:bytes"
	MetricHeapUnused   = "/memory/classes/heap/unused:bytes"
	MetricHeapFree     = "/memory/classes/heap/free:bytes"
	MetricTotal        = "/memory/classes/total:bytes"
	MetricLive         = "/gc/heap/live:bytes"
	MetricScanned      = "/gc/scan/heap:bytes"
	MetricCycles       = "/gc/cycles/total:gc-cycles"
)

// HeapMetrics are those that MEMORY MALLOC-STATS shows: the heap, and the runtime's own tables for it, which never get smaller.
var HeapMetrics = []string{
	MetricHeapObjects, MetricHeapUnused, MetricHeapFree, MetricHeapReleased, "/memory/classes/heap/stacks:bytes", MetricTotal, MetricLive,
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

// unknownDescriptors is how many files may be open where the system does not tell.
const unknownDescriptors = 1024

// Pid is the process's number, as INFO shows it.
var Pid = os.Getpid
