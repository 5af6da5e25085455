package persistence

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// reserve has the file system keep room for the bytes of a file between two offsets, without making the file longer.
func reserve(f *os.File, from, to int64) error {
	// The kernel looks at the limit on a file's size only when the file is written.
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err == nil && uint64(to) > limit.Cur {
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: syscall.EFBIG}
	}
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, from, to-from)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		}
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
	}
}
