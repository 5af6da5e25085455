package persistence

import (
	"fmt"
	"io/fs"
	"path/filepath"
)

// tempSuffix marks a file that is not complete yet. A leftover of a crash is overwritten by the next attempt.
const tempSuffix = ".tmp"

// ReplaceFile gives the file the content data, in one step: whatever goes wrong, readers find the old content or the new one,
// and after an error the old one. It writes a file beside it, syncs that, renames it over the old one and syncs the directory.
// Two calls for one name must not overlap.
func ReplaceFile(fsys FS, name string, data []byte, perm fs.FileMode) error {
	temp := name + tempSuffix
	if err := writeSynced(fsys, temp, data, perm); err != nil {
		fsys.Remove(temp)
		return fmt.Errorf("persistence: write %s: %w", temp, err)
	}
	if err := fsys.Rename(temp, name); err != nil {
		fsys.Remove(temp)
		return fmt.Errorf("persistence: replace %s: %w", name, err)
	}
	if err := fsys.SyncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("persistence: sync directory of %s: %w", name, err)
	}
	return nil
}

func writeSynced(fsys FS, name string, data []byte, perm fs.FileMode) (err error) {
	f, err := fsys.Create(name, perm)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}
