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
	adviseHuge(addr, size)
	return mappedAt(addr, size)
}

// remapBuffer makes a mapped buffer larger without copying what it holds; nil if the system has no mapping left.
func remapBuffer(buf []byte, size int) []byte {
	addr, _, errno := unix.RawSyscall6(unix.SYS_MREMAP, uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), uintptr(size), unix.MREMAP_MAYMOVE, 0, 0)
	if errno != 0 {
		return nil
	}
	if len(buf) < hugeFrom { // else it is known
		adviseHuge(addr, size)
	}
	return mappedAt(addr, size)
}

// hugeFrom is from which size on a buffer is asked to be of huge pages: it is filled from its beginning, so that at most one of these is
// in memory for nothing.
const hugeFrom = 4 << 20

// adviseHuge has the system clear memory 2 MiB at a time at its first use, where it can: a fault for each 4 KiB costs more than the clearing.
func adviseHuge(addr uintptr, size int) {
	if size >= hugeFrom {
		unix.RawSyscall(unix.SYS_MADVISE, addr, uintptr(size), unix.MADV_HUGEPAGE)
	}
}

// unmapBuffer gives a mapped buffer back to the system, which takes as long as a page does for each that was written to.
func unmapBuffer(buf []byte) {
	unix.RawSyscall(unix.SYS_MUNMAP, uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), 0)
}

// mappedAt is the memory at an address that the system has returned. It is none that the garbage collector may move or free.
func mappedAt(addr uintptr, size int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size)
}
