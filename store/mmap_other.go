//go:build !unix

package store

import "unsafe"

// mapMemory is memory of the Go heap on systems without mmap; the arena keeps it alive by pointing to it. It is 8-byte
// aligned, which is what blocks need.
func mapMemory(size int) unsafe.Pointer {
	words := make([]uint64, (size+7)/8)
	return unsafe.Pointer(unsafe.SliceData(words))
}

// unmapMemory leaves the memory to the garbage collector.
func unmapMemory(unsafe.Pointer, int) {}

// discardMemory has no equivalent here.
func discardMemory(unsafe.Pointer, int) {}
