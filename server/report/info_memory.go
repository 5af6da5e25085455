package report

import (
	"headgate/server/host"
	"headgate/store"
)

// memoryFigures are what MEMORY and INFO say about memory, in bytes.
type memoryFigures struct {
	used, peak, startup uint64
	dataset, overhead   uint64 // parts of used: keys and values, and all else
	notEvictedFor       uint64 // a part of overhead that maxmemory does not bound
	allocated           uint64 // by the arena and the Go heap, garbage included
	active              uint64 // of the memory that they have from the system, what holds something
	mapped              uint64 // what they have from the system
	resident            uint64 // of the whole process
	heap                uint64
	store.Stats
}

func (r *Reports) memoryFigures() memoryFigures {
	stats := r.Keys.Stats()
	_, behind := r.Replica.Primary.Memory()
	m := memoryFigures{
		used: r.UsedMemory() + behind, notEvictedFor: behind, startup: r.StartMemory, resident: host.ResidentMemory(stats.ArenaResident),
		heap: host.RuntimeMetric(host.MetricHeapObjects), Stats: stats,
	}
	r.Stats.PeakMemory = max(r.Stats.PeakMemory, m.used)
	m.peak = r.Stats.PeakMemory
	m.overhead = min(r.Outside+behind+stats.Overhead, m.used)
	m.dataset = m.used - m.overhead
	buffers := uint64(r.Exec.Pool.Used())
	m.allocated = m.ArenaUsed + m.heap + buffers
	m.active = m.ArenaResident + m.heap + buffers + host.RuntimeMetric(host.MetricHeapUnused)
	m.mapped = m.ArenaResident + buffers + host.RuntimeMetric(host.MetricTotal) - host.RuntimeMetric(host.MetricHeapReleased)
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
