package resp

import "golang.org/x/sys/unix"

// mapBuffer returns memory from the system, or from the Go heap if the system
// has no mapping left.
func mapBuffer(size int) []byte {
	buf, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return make([]byte, size)
	}
	return buf
}

// remapBuffer makes a mapped buffer larger without copying what it holds.
func remapBuffer(buf []byte, size int) ([]byte, bool) {
	grown, err := unix.Mremap(buf, size, unix.MREMAP_MAYMOVE)
	return grown, err == nil
}

// unmapBuffer gives a buffer back to the system, and reports whether it was mapped.
func unmapBuffer(buf []byte) bool { return unix.Munmap(buf) == nil }
