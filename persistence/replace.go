package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// TempSuffix marks a file that is not complete yet. A leftover of a crash is overwritten by the next attempt.
const TempSuffix = ".tmp"

// ReplaceFile gives the file the content data, in one step: whatever goes wrong, readers find the old content or the new one,
// and after an error the old one. It writes a file beside it, syncs that, renames it over the old one and syncs the directory.
// Two calls for one name must not overlap.
func ReplaceFile(fsys FS, name string, data []byte, perm fs.FileMode) error {
	r, err := replace(fsys, fsys.Create, name, perm)
	if err != nil {
		return err
	}
	return r.finish(data)
}

// ReplaceKept is ReplaceFile for a file of an administrator's, who has decided who may read it: it has the permission bits perm whatever
// the process's umask is, and so has nobody else's file that lay in the way.
func ReplaceKept(fsys FS, name string, data []byte, perm fs.FileMode) error {
	if err := fsys.Remove(name + TempSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("persistence: write %s: %w", name+TempSuffix, err)
	}
	const private = 0o600 // until it has what it is to have
	r, err := replace(fsys, fsys.Create, name, private)
	if err != nil {
		return err
	}
	if err := r.file.Chmod(perm); err != nil {
		r.Discard()
		return fmt.Errorf("persistence: write %s: %w", name+TempSuffix, err)
	}
	return r.finish(data)
}

// Replacement is a file's new content while it is being written, in a file beside it. Either Commit or Discard ends it. It is not
// safe for concurrent use.
type Replacement struct {
	fsys FS
	file File
	name string
}

// ReplaceLarge begins to give a file new content, as ReplaceFile does, in as many writes as needed. It is for files that FS.CreateLarge is
// for.
func ReplaceLarge(fsys FS, name string, perm fs.FileMode) (*Replacement, error) {
	return replace(fsys, fsys.CreateLarge, name, perm)
}

func replace(fsys FS, create func(string, fs.FileMode) (File, error), name string, perm fs.FileMode) (*Replacement, error) {
	file, err := create(name+TempSuffix, perm)
	if err != nil {
		return nil, fmt.Errorf("persistence: write %s: %w", name+TempSuffix, err)
	}
	return &Replacement{fsys: fsys, file: file, name: name}, nil
}

// Write implements io.Writer.
func (r *Replacement) Write(p []byte) (int, error) {
	n, err := r.file.Write(p)
	if err != nil {
		err = fmt.Errorf("persistence: write %s: %w", r.name+TempSuffix, err)
	}
	return n, err
}

// finish is a replacement with all of its content.
func (r *Replacement) finish(data []byte) error {
	if _, err := r.Write(data); err != nil {
		r.Discard()
		return err
	}
	return r.Commit()
}

// Discard leaves the old content in place.
func (r *Replacement) Discard() {
	r.file.Close()
	r.fsys.Remove(r.name + TempSuffix)
}

// Commit puts the new content into place. After an error the old one is there, unless only the directory could not be synced.
func (r *Replacement) Commit() error {
	temp := r.name + TempSuffix
	err := r.file.Sync()
	if closeErr := r.file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		r.fsys.Remove(temp)
		return fmt.Errorf("persistence: write %s: %w", temp, err)
	}
	if err := r.fsys.Rename(temp, r.name); err != nil {
		r.fsys.Remove(temp)
		return fmt.Errorf("persistence: replace %s: %w", r.name, err)
	}
	if err := r.fsys.SyncDir(filepath.Dir(r.name)); err != nil {
		return fmt.Errorf("persistence: sync directory of %s: %w", r.name, err)
	}
	return nil
}
