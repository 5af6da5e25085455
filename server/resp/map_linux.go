//go:build amd64 || arm64

package resp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of this file are made by loops, and spare the scheduler's bookkeeping around a system call: a loop that loses its place to other
// goroutines meanwhile goes on behind all that are ready.

// mapBuffer returns memory from the system; nil if the system has no mapping left.
func mapBuffer(size int) []byte {
	addr, _, errno := unix.RawSyscall6(unix.SYS_MMAP, 0, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE, ^uintptr(0), 0)
	if errno != 0 {
		return nil
	}
	return mappedAt(addr, size)
}

// remapBuffer makes a mapped buffer larger without copying what it holds; nil if the system has no mapping left.
func remapBuffer(buf []byte, size int) []byte {
	addr, _, errno := unix.RawSyscall6(unix.SYS_MREMAP, uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), uintptr(size), unix.MREMAP_MAYMOVE, 0, 0)
	if errno != 0 {
		return nil
	}
	return mappedAt(addr, size)
}

// populate has the system clear a buffer's pages all at once, where it can (Linux 5.14): a fault for each at its first use costs more than
// the clearing, above all in virtual machines.
func populate(buf []byte) {
	unix.RawSyscall(unix.SYS_MADVISE, uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), unix.MADV_POPULATE_WRITE)
}

// adviseHuge has the system use huge pages for a whole mapping, where it can.
func adviseHuge(mapping []byte) {
	unix.RawSyscall(unix.SYS_MADVISE, uintptr(unsafe.Pointer(unsafe.SliceData(mapping))), uintptr(len(mapping)), unix.MADV_HUGEPAGE)
}

// unmapBuffer gives a mapped buffer back to the system, which takes as long as a page does for each that was written to.
func unmapBuffer(buf []byte) {
	unix.RawSyscall(unix.SYS_MUNMAP, uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), 0)
}

// mappedAt is the memory at an address that the system has returned. It is none that the garbage collector may move or free.
func mappedAt(addr uintptr, size int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size)
}
