package persistence

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	directBlock = 1 << 20 // bytes written past the page cache at a time
	directAlign = 4096    // what addresses and offsets are multiples of then; where that does not do, the page cache is used
)

// createLarge opens a file that is written past the page cache (open(2), O_DIRECT), if the file system can do that.
func createLarge(name string, perm fs.FileMode) (File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC | syscall.O_NOFOLLOW
	if f, err := os.OpenFile(name, flags|syscall.O_DIRECT, perm); err == nil {
		return &directFile{file: f, block: alignedBlock()}, nil
	}
	f, err := os.OpenFile(name, flags, perm)
	if err != nil {
		return nil, err
	}
	return &partedFile{osFile: osFile{f}}, nil
}

// alignedBlock is an empty slice with room for a block that begins where a direct write may.
func alignedBlock() []byte {
	p := make([]byte, directBlock+directAlign)
	skip := -int(uintptr(unsafe.Pointer(&p[0]))) & (directAlign - 1)
	return p[skip : skip : skip+directBlock]
}

// directFile is a large file that gets whole blocks, past the page cache, until Sync writes what is left over. Pages of the cache would
// have to be found, filled, written and freed again, each of which takes processor time away from whoever is served meanwhile, for a
// file that is not read before the next start.
type directFile struct {
	file  *os.File
	block []byte      // what is not written yet
	rest  *partedFile // where writes go that cannot be direct any more; nil until then
}

// Write implements io.Writer.
func (f *directFile) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if f.rest != nil {
			m, err := f.rest.Write(p[n:])
			return n + m, err
		}
		m := copy(f.block[len(f.block):cap(f.block)], p[n:])
		f.block = f.block[:len(f.block)+m]
		n += m
		if len(f.block) == cap(f.block) {
			if err := f.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// flush writes the block. A file system may turn out not to write directly after all, and what a full disk has left of a block is not
// aligned: then the rest goes the common way, which also tells what is really wrong.
func (f *directFile) flush() error {
	n, err := f.file.Write(f.block)
	if errors.Is(err, syscall.EINVAL) {
		if err = f.leaveDirect(); err == nil {
			_, err = f.rest.Write(f.block[n:])
		}
	}
	f.block = f.block[:0]
	return err
}

// leaveDirect has everything that follows written through the page cache.
func (f *directFile) leaveDirect() error {
	flags, err := unix.FcntlInt(f.file.Fd(), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(f.file.Fd(), unix.F_SETFL, flags&^unix.O_DIRECT)
	}
	if err != nil {
		return &os.PathError{Op: "fcntl", Path: f.file.Name(), Err: err}
	}
	f.rest = &partedFile{osFile: osFile{f.file}}
	return nil
}

// Sync implements File.
func (f *directFile) Sync() error {
	if f.rest == nil && len(f.block) > 0 {
		if err := f.leaveDirect(); err != nil {
			return err
		}
		if _, err := f.rest.Write(f.block); err != nil {
			return err
		}
		f.block = f.block[:0]
	}
	return syncData(f.file)
}

// Chmod implements File.
func (f *directFile) Chmod(perm fs.FileMode) error { return f.file.Chmod(perm) }

// Close implements io.Closer. What was written since the last Sync may be lost.
func (f *directFile) Close() error { return f.file.Close() }
