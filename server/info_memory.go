package server

import (
	"headgate/store"
)

// memoryFigures are what MEMORY and INFO say about memory, in bytes.
type memoryFigures struct {
	used, peak, startup uint64
	dataset, overhead   uint64 // parts of used: keys and values, and all else
	allocated           uint64 // by the arena and the Go heap, garbage included
	active              uint64 // of the memory that they have from the system, what holds something
	mapped              uint64 // what they have from the system
	resident            uint64 // of the whole process
	heap                uint64
	store.Stats
}

func (r *Reports) memoryFigures() memoryFigures {
	stats := r.keys.Stats()
	m := memoryFigures{
		used: r.usedMemory(), startup: r.startMemory, resident: residentMemory(stats.ArenaResident),
		heap: runtimeMetric(metricHeapObjects), Stats: stats,
	}
	r.stats.peakMemory = max(r.stats.peakMemory, m.used)
	m.peak = r.stats.peakMemory
	m.overhead = min(r.outside+stats.Overhead, m.used)
	m.dataset = m.used - m.overhead
	buffers := uint64(r.exec.buffers.Used())
	m.allocated = m.ArenaUsed + m.heap + buffers
	m.active = m.ArenaResident + m.heap + buffers + runtimeMetric(metricHeapUnused)
	m.mapped = m.ArenaResident + buffers + runtimeMetric(metricTotal) - runtimeMetric(metricHeapReleased)
	return m
}

// ratio is how many times one number of bytes the other is.
func ratio(a, b uint64) float64 { return float64(a) / float64(max(b, 1)) }

// excess is by how many bytes a exceeds b.
func excess(a, b uint64) int64 { return int64(a) - int64(b) }

// fragmentation is how many times the memory in use the process has.
func (m memoryFigures) fragmentation() float64 { return ratio(m.resident, m.used) }

// datasetShare is what part of the memory that the program did not begin with is keys and values, in percent.
func (m memoryFigures) datasetShare() float64 {
	return 100 * ratio(m.dataset, m.used-min(m.startup, m.used))
}
