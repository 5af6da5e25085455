package server

import (
	"fmt"
	"runtime"

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

func (r *Reports) infoMemory(c *Ctx, t *infoText) {
	m := r.memoryFigures()
	t.bytes("used_memory", m.used)
	t.bytes("used_memory_rss", m.resident)
	t.bytes("used_memory_peak", m.peak)
	t.field("used_memory_peak_perc", fmt.Sprintf("%.2f%%", 100*ratio(m.used, m.peak)))
	t.field("used_memory_overhead", m.overhead)
	t.field("used_memory_startup", m.startup)
	t.field("used_memory_dataset", m.dataset)
	t.field("used_memory_dataset_perc", fmt.Sprintf("%.2f%%", m.datasetShare()))
	t.field("used_memory_arena", m.ArenaUsed)
	t.field("used_memory_arena_rss", m.ArenaResident)
	t.field("used_memory_heap", m.heap)
	t.field("allocator_allocated", m.allocated)
	t.field("allocator_active", m.active)
	t.field("allocator_resident", m.mapped)
	if total := systemMemory(); total > 0 {
		t.bytes("total_system_memory", total)
	}
	scripts := r.scripts.memory()
	t.bytes("used_memory_lua", uint64(scripts.evalBytes))
	t.field("used_memory_vm_eval", scripts.evalBytes)
	t.field("used_memory_scripts_eval", scripts.evalBytes)
	t.field("number_of_cached_scripts", scripts.scripts)
	t.field("number_of_functions", scripts.functions)
	t.field("number_of_libraries", scripts.libraries)
	t.field("used_memory_vm_functions", scripts.functionBytes)
	t.bytes("used_memory_vm_total", uint64(scripts.evalBytes+scripts.functionBytes))
	t.field("used_memory_functions", scripts.functionBytes)
	t.bytes("used_memory_scripts", uint64(scripts.evalBytes+scripts.functionBytes))
	t.bytes("maxmemory", r.exec.memory.max)
	t.field("maxmemory_policy", c.cfg.MaxMemoryPolicy)
	t.field("allocator_frag_ratio", fmt.Sprintf("%.2f", ratio(m.active, m.allocated)))
	t.field("allocator_frag_bytes", excess(m.active, m.allocated))
	t.field("allocator_rss_ratio", fmt.Sprintf("%.2f", ratio(m.mapped, m.active)))
	t.field("allocator_rss_bytes", excess(m.mapped, m.active))
	t.field("rss_overhead_ratio", fmt.Sprintf("%.2f", ratio(m.resident, m.mapped)))
	t.field("rss_overhead_bytes", excess(m.resident, m.mapped))
	t.field("mem_fragmentation_ratio", fmt.Sprintf("%.2f", m.fragmentation()))
	t.field("mem_fragmentation_bytes", excess(m.resident, m.used))
	t.field("mem_not_counted_for_evict", 0)
	t.field("mem_replication_backlog", 0)
	t.field("mem_total_replication_buffers", 0)
	t.field("mem_clients_slaves", 0)
	t.field("mem_clients_normal", r.exec.clientMemory())
	t.field("mem_cluster_links", 0)
	t.field("mem_aof_buffer", cap(c.core.effects.buf))
	t.field("mem_allocator", "arena+"+runtime.Version())
	t.field("active_defrag_running", 0)
	t.field("lazyfree_pending_objects", 0)
	t.field("lazyfreed_objects", c.core.stats.lazyFreed)
}
