package persistence

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Windows has neither flag, and a data directory no links or pipes that others could have put there without being allowed to.
const (
	noFollow = 0
	noWait   = 0
)

// takeLock locks a directory that is open, by a file in it: Windows does not lock directories. The system releases the lock however the process
// ends. The error is errLocked if another process has it.
func takeLock(dir *os.File) (held *os.File, err error) {
	file, err := os.OpenFile(filepath.Join(dir.Name(), lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return nil, errLocked
	}
	return nil, &os.PathError{Op: "LockFileEx", Path: file.Name(), Err: err}
}

// syncDir does nothing: NTFS writes the names of files to its own log, and cannot be asked to do so.
func syncDir(*os.File) error { return nil }
