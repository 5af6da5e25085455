package store

import "unsafe"

// Unmapping takes the operating system some 80 µs for a MiB, so a flush of many keys leaves most of it for later.
const (
	flushUnmapBytes = 32 << 20 // what a flush unmaps itself
	sliceUnmapBytes = 1 << 20  // what each ExpireSlice unmaps after that
)

// mapping is memory from mapMemory.
type mapping struct {
	start unsafe.Pointer
	size  int
}

// retired holds mappings that nobody uses any more and that are still to be unmapped.
type retired struct {
	maps  []mapping
	bytes uint64
}

// add takes mappings over.
func (r *retired) add(maps []mapping) {
	r.maps = append(r.maps, maps...)
	for _, m := range maps {
		r.bytes += uint64(m.size)
	}
}

// unmap gives about maxBytes back, or everything if there is less.
func (r *retired) unmap(maxBytes int) {
	for maxBytes > 0 && len(r.maps) > 0 {
		last := r.maps[len(r.maps)-1]
		r.maps = r.maps[:len(r.maps)-1]
		unmapMemory(last.start, last.size)
		r.bytes -= uint64(last.size)
		maxBytes -= last.size
	}
	if len(r.maps) == 0 {
		r.maps = nil
	}
}
