//go:build unix

package store

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapMemory maps size bytes of zeroed private memory outside the Go heap. It panics when there is none, as the Go
// runtime does for its own heap.
func mapMemory(size int) unsafe.Pointer {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Sprintf("store: map %d bytes: %v", size, err))
	}
	return unsafe.Pointer(unsafe.SliceData(b))
}

// unmapMemory undoes mapMemory.
func unmapMemory(p unsafe.Pointer, size int) {
	if err := unix.Munmap(unsafe.Slice((*byte)(p), size)); err != nil {
		panic(fmt.Sprintf("store: unmap %d bytes: %v", size, err))
	}
}

// discardMemory gives the pages back and keeps the addresses; where the system knows how, they read as zero afterwards.
// It is advice: that it fails costs memory and nothing else.
func discardMemory(p unsafe.Pointer, size int) {
	_ = unix.Madvise(unsafe.Slice((*byte)(p), size), unix.MADV_DONTNEED)
}
