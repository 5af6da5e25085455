package persistence

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// lockNote is the file in which whoever has a directory says who they are. It is no lock itself, so that deleting it does no harm.
const lockNote = "headgate.lock"

// plainOnly has an open neither follow a link that others may have put there nor wait for the other end of a pipe.
const plainOnly = noFollow | noWait

// maxLockNote is how many bytes of a note are read.
const maxLockNote = 1 << 10

// Lock is a directory that is kept for one process. Its methods must not be called at the same time.
type Lock interface {
	// Tell leaves word of who has the directory, for others who want it.
	Tell(holder string) error
	// Holds reports whether a directory is the one that is locked, which another may have taken the place of.
	Holds(dir string) bool
	// Close lets others have the directory.
	io.Closer
}

// HeldError says that somebody else has a directory.
type HeldError struct {
	Dir, Holder string // Holder is empty if they could not leave word
}

func (e *HeldError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another process"
	}
	return fmt.Sprintf("the data directory %s is in use by %s", e.Dir, holder)
}

// lockFile is what is locked where a directory itself cannot be.
const lockFile = "headgate.lockfile"

// errLocked says that another process has the lock.
var errLocked = errors.New("it is locked")

// Lock implements FS.
func (OS) Lock(dir string) (Lock, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	held, err := takeLock(d)
	if err == nil {
		return &dirLock{dir: d, held: held, note: filepath.Join(dir, lockNote)}, nil
	}
	d.Close()
	if errors.Is(err, errLocked) {
		return nil, &HeldError{Dir: dir, Holder: readLockNote(dir)}
	}
	return nil, err
}

// readLockNote returns the first line of what the holder of a directory has left, without what could disturb a terminal.
func readLockNote(dir string) string {
	f, err := os.OpenFile(filepath.Join(dir, lockNote), os.O_RDONLY|plainOnly, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxLockNote))
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, line)
}

type dirLock struct {
	dir  *os.File
	held *os.File // the file that is locked in place of the directory, or nil
	note string
	told bool
}

// Tell implements Lock.
func (l *dirLock) Tell(holder string) error {
	l.told = true
	f, err := os.OpenFile(l.note, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|plainOnly, 0o644)
	if err == nil {
		_, err = io.WriteString(f, holder+"\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		os.Remove(l.note) // what stands there is half a word, or of somebody who had the directory before
	}
	return err
}

// Holds implements Lock.
func (l *dirLock) Holds(dir string) bool {
	locked, err := l.dir.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(dir)
	return err == nil && os.SameFile(locked, named)
}

// Close implements Lock.
func (l *dirLock) Close() error {
	if l.told && l.Holds(filepath.Dir(l.note)) {
		os.Remove(l.note) // first, or it could be that of the next
	}
	if l.held != nil {
		return errors.Join(l.held.Close(), l.dir.Close())
	}
	return l.dir.Close()
}

// probePrefix begins the names of the files that CheckWritable makes.
const probePrefix = "headgate.probe."

// Reserved reports whether the name of a file in a data directory is one that this package uses for itself.
func Reserved(name string) bool {
	return name == lockNote || name == lockFile || strings.HasPrefix(name, probePrefix)
}

// CheckWritable reports why no file can be made in a directory, by making one under a name that nobody can have put there before.
func CheckWritable(fsys FS, dir string) error {
	name := filepath.Join(dir, fmt.Sprintf("%s%x%s", probePrefix, rand.Uint64(), TempSuffix))
	f, err := fsys.Create(name, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), fsys.Remove(name))
}

// probeBlock is what is written where a file system keeps no room, in bytes.
const probeBlock = 4 << 10

// CheckRoom reports why no file can be made in a directory that the disk keeps room bytes for, by making one. Where the file system keeps no
// room for anybody, a block that is written has to do.
func CheckRoom(fsys FS, dir string, room int64) error {
	name := filepath.Join(dir, fmt.Sprintf("%s%x%s", probePrefix, rand.Uint64(), TempSuffix))
	f, _, err := fsys.Append(name, 0o600)
	if err != nil {
		return err
	}
	if err = f.Reserve(0, room); errors.Is(err, errors.ErrUnsupported) {
		if _, err = f.Write(make([]byte, probeBlock)); err == nil {
			err = f.Sync()
		}
	}
	return errors.Join(err, f.Close(), fsys.Remove(name))
}
