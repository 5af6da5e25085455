package persistence

import (
	"os"

	"golang.org/x/sys/unix"
)

// uncache gives back the page cache's memory for the bytes of a file between two offsets. It is advice: nothing depends on its being taken.
func uncache(f *os.File, from, to int64) {
	_ = unix.Fadvise(int(f.Fd()), from, to-from, unix.FADV_DONTNEED)
}
