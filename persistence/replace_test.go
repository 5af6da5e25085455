package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// failingFS fails its n-th operation, counted from 1, and records all of them.
type failingFS struct {
	OS
	failAt int
	trace  []string
}

var errInjected = errors.New("injected failure")

func (f *failingFS) step(op, name string) error {
	f.trace = append(f.trace, op+" "+filepath.Base(name))
	if len(f.trace) == f.failAt {
		return errInjected
	}
	return nil
}

func (f *failingFS) Create(name string, perm fs.FileMode) (File, error) {
	if err := f.step("create", name); err != nil {
		return nil, err
	}
	file, err := f.OS.Create(name, perm)
	return &failingFile{file, f, name}, err
}

func (f *failingFS) Rename(from, to string) error {
	if err := f.step("rename", to); err != nil {
		return err
	}
	return f.OS.Rename(from, to)
}

func (f *failingFS) SyncDir(dir string) error {
	if err := f.step("syncdir", "."); err != nil {
		return err
	}
	return f.OS.SyncDir(dir)
}

type failingFile struct {
	File
	fs   *failingFS
	name string
}

func (f *failingFile) Write(p []byte) (int, error) {
	if err := f.fs.step("write", f.name); err != nil {
		n, _ := f.File.Write(p[:len(p)/2]) // a torn write, the worst kind
		return n, err
	}
	return f.File.Write(p)
}

func (f *failingFile) Sync() error {
	if err := f.fs.step("sync", f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *failingFile) Close() error {
	err := f.fs.step("close", f.name)
	return errors.Join(err, f.File.Close())
}

func TestReplaceFileOrderOfOperations(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	fsys := &failingFS{}
	require.NoError(t, ReplaceFile(fsys, name, []byte("new"), 0o644))
	require.Equal(t, []string{"create file.tmp", "write file.tmp", "sync file.tmp", "close file.tmp", "rename file", "syncdir ."}, fsys.trace)
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "new", string(got))
}

func TestReplaceFileWithEachOperationFailing(t *testing.T) {
	for failAt := 1; ; failAt++ {
		name := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(name, []byte("old content"), 0o644))
		fsys := &failingFS{failAt: failAt}
		err := ReplaceFile(fsys, name, []byte("new content"), 0o644)
		got, readErr := os.ReadFile(name)
		require.NoError(t, readErr)
		if len(fsys.trace) < failAt {
			require.NoError(t, err)
			require.Equal(t, "new content", string(got))
			return
		}
		what := fmt.Sprintf("operation %d, %s, fails", failAt, fsys.trace[failAt-1])
		require.ErrorIs(t, err, errInjected, what)
		if fsys.trace[failAt-1] == "syncdir ." {
			require.Equal(t, "new content", string(got), what) // renamed, though perhaps not for ever
		} else {
			require.Equal(t, "old content", string(got), what)
		}
		_, statErr := os.Stat(name + TempSuffix)
		require.ErrorIs(t, statErr, fs.ErrNotExist, what)
	}
}
