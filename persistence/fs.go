package persistence

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// File is an open file, as far as this package needs one.
type File interface {
	io.Writer
	io.Closer
	// Sync returns when everything written is on stable storage.
	Sync() error
	// Chmod gives the file the permission bits perm.
	Chmod(perm fs.FileMode) error
}

// AppendFile is a file that is written at its end only.
type AppendFile interface {
	File
	// WriteParts writes what several Writes one after the other would, by fewer system calls where the system can. It returns how many bytes
	// are written, and why if not all of them are.
	WriteParts(parts ...[]byte) (n int, err error)
	// Truncate cuts the file to size bytes, where the next write goes, and gives back what was reserved behind them.
	Truncate(size int64) error
	// Reserve has the disk keep room for what is going to be written between two offsets of the file, not before its end, so that these
	// writes do not find the disk full. The file stays as long as it is. The error is errors.ErrUnsupported where the file system keeps
	// no room for anybody.
	Reserve(from, to int64) error
	// Uncache has the system keep no copy in memory of what stands between two offsets of the file and has been synced, where it can be told so.
	Uncache(from, to int64)
}

// ReadFile is a file open for reading. Size is what it was when the file was opened.
type ReadFile interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Size() int64
}

// FS is the part of a file system that this package uses. Errors are those of package os.
type FS interface {
	// Create opens a file for writing, empty, with the given permission bits if it is new. It does not follow a link of that name, which is a
	// temporary one that somebody else may know.
	Create(name string, perm fs.FileMode) (File, error)
	// CreateLarge is Create for a file of megabytes that is written once and read at the next start: it is kept out of the way of
	// others, who use the same memory and the same disk. What is written may be kept back until Sync, after which there are no
	// more large writes.
	CreateLarge(name string, perm fs.FileMode) (File, error)
	// Append opens a file for writing at its end, creating it with the given permission bits if need be, and returns its size.
	Append(name string, perm fs.FileMode) (f AppendFile, size int64, err error)
	// Open opens a file for reading.
	Open(name string) (ReadFile, error)
	// Truncate cuts a file to size bytes and returns when that is on stable storage.
	Truncate(name string, size int64) error
	// List returns the names in a directory, sorted.
	List(dir string) ([]string, error)
	// Mkdir creates a directory if it is missing. Those above it have to be there.
	Mkdir(dir string, perm fs.FileMode) error
	// Rename moves a file over another in one step.
	Rename(from, to string) error
	// Remove deletes a file.
	Remove(name string) error
	// SyncDir returns when the directory's entries are on stable storage.
	SyncDir(dir string) error
	// Lock keeps a directory for this process, until the lock is closed or the process has ended in whatever way. The error is a
	// *HeldError if somebody else has it, and any other where directories cannot be locked.
	Lock(dir string) (Lock, error)
}

// OS is the operating system's file system. It is safe for concurrent use.
type OS struct {
	// RegularOnly has Open refuse what is no regular file, by ErrNotRegular, and not wait for the other end of a pipe.
	RegularOnly bool
}

// ErrNotRegular says that a directory, a device, a pipe or a socket stands where a file should.
var ErrNotRegular = errors.New("it is not a regular file")

// osFile is a file whose Sync leaves out what only changes its times.
type osFile struct{ *os.File }

// Sync implements File.
func (f osFile) Sync() error { return syncData(f.File) }

// WriteParts implements AppendFile.
func (f osFile) WriteParts(parts ...[]byte) (int, error) { return writeParts(f.File, parts) }

// Reserve implements AppendFile.
func (f osFile) Reserve(from, to int64) error { return reserve(f.File, from, to) }

// Uncache implements AppendFile.
func (f osFile) Uncache(from, to int64) { uncache(f.File, from, to) }

// osReadFile is a file with the size that it had when it was opened.
type osReadFile struct {
	*os.File
	size int64
}

// Size implements ReadFile.
func (f osReadFile) Size() int64 { return f.size }

// Create implements FS.
func (OS) Create(name string, perm fs.FileMode) (File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|noFollow, perm)
}

// Append implements FS.
func (OS) Append(name string, perm fs.FileMode) (AppendFile, int64, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, perm)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return osFile{f}, info.Size(), nil
}

// Open implements FS.
func (o OS) Open(name string) (ReadFile, error) {
	if o.RegularOnly { // looked at before, since to open a pipe may take for ever
		if info, err := os.Stat(name); err != nil {
			return nil, err
		} else if !info.Mode().IsRegular() {
			return nil, &os.PathError{Op: "open", Path: name, Err: ErrNotRegular}
		}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return osReadFile{f, info.Size()}, nil
}

// Truncate implements FS.
func (OS) Truncate(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return err
	}
	return f.Sync()
}

// List implements FS.
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}

// Mkdir implements FS.
func (OS) Mkdir(dir string, perm fs.FileMode) error {
	err := os.Mkdir(dir, perm)
	if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
		return nil
	}
	return err
}

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// SyncDir implements FS.
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return syncDir(d)
}

// writeEach writes parts one after the other.
func writeEach(f *os.File, parts [][]byte) (n int, err error) {
	for _, part := range parts {
		more, err := f.Write(part)
		if n += more; err != nil {
			return n, err
		}
	}
	return n, nil
}
