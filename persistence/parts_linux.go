package persistence

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// writeParts writes parts one after the other, by one system call if the system takes them all at once.
func writeParts(f *os.File, parts [][]byte) (n int, err error) {
	for {
		n, err = unix.Writev(int(f.Fd()), parts)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return 0, &os.PathError{Op: "writev", Path: f.Name(), Err: err}
	}
	taken := n
	for i, part := range parts {
		if taken < len(part) { // the rest is written, or the system says why not
			more, err := f.Write(part[taken:])
			if n += more; err != nil {
				return n, err
			}
			more, err = writeEach(f, parts[i+1:])
			return n + more, err
		}
		taken -= len(part)
	}
	return n, nil
}
