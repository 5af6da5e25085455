//go:build unix

package persistence

import (
	"errors"
	"os"
	"syscall"
)

// noFollow has an open fail on a symbolic link, and noWait not wait for the other end of a pipe.
const (
	noFollow = syscall.O_NOFOLLOW
	noWait   = syscall.O_NONBLOCK
)

// takeLock locks a directory that is open: by flock(2) of the directory itself, which needs no right to write, leaves nothing behind, and
// which the kernel releases however the process ends. The error is errLocked if another process has the lock.
func takeLock(dir *os.File) (held *os.File, err error) {
	for {
		err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errLocked
	case err != nil:
		return nil, &os.PathError{Op: "flock", Path: dir.Name(), Err: err}
	}
	return nil, nil
}

// syncDir returns when a directory's entries are on stable storage.
func syncDir(dir *os.File) error { return dir.Sync() }
