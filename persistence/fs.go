package persistence

import (
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
}

// FS is the part of a file system that this package uses. Errors are those of package os.
type FS interface {
	// Open opens a file for reading.
	Open(name string) (io.ReadCloser, error)
	// Create opens a file for writing, empty, with the given permission bits if it is new.
	Create(name string, perm fs.FileMode) (File, error)
	// Rename moves a file over another in one step.
	Rename(from, to string) error
	// Remove deletes a file.
	Remove(name string) error
	// SyncDir returns when the directory's entries are on stable storage.
	SyncDir(dir string) error
}

// OS is the operating system's file system. It is safe for concurrent use.
type OS struct{}

// Open implements FS.
func (OS) Open(name string) (io.ReadCloser, error) { return os.Open(name) }

// Create implements FS.
func (OS) Create(name string, perm fs.FileMode) (File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
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
	return d.Sync()
}
