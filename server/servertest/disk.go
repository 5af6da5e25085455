package servertest

import (
	"errors"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"headgate/persistence"
	"headgate/persistence/crashfs"
	"headgate/server"
	"headgate/server/config"
)

// NoSpace fails every write, and keeps no room for any.
func NoSpace(op crashfs.Op) error {
	if op.Name == "write" || op.Name == "reserve" {
		return syscall.ENOSPC
	}
	return nil
}

// ErrPowerOff is the error of everything that is done without power.
var ErrPowerOff = syscall.EIO

// ErrDisk is the error of an operation that a FailingFS fails.
var ErrDisk = errors.New("no space left on device")

// FailingFS is the system's files, but for one operation of a snapshot that fails with ErrDisk.
type FailingFS struct {
	persistence.OS
	FailAt int // the operation that fails, counted from 1; 0: none
	Done   int // operations so far
}

func (f *FailingFS) step() error {
	if f.Done++; f.Done == f.FailAt {
		return ErrDisk
	}
	return nil
}

// CreateLarge implements persistence.FS.
func (f *FailingFS) CreateLarge(name string, perm fs.FileMode) (persistence.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.OS.CreateLarge(name, perm)
	return &failingFile{file, f}, err
}

// Rename implements persistence.FS.
func (f *FailingFS) Rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.OS.Rename(from, to)
}

type failingFile struct {
	persistence.File
	fs *FailingFS
}

func (f *failingFile) Write(p []byte) (int, error) {
	if err := f.fs.step(); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f *failingFile) Sync() error {
	if err := f.fs.step(); err != nil {
		return err
	}
	return f.File.Sync()
}

// NewSaver returns a client of a server with the usual save points, in dir of a disk that can fail.
func NewSaver(t *testing.T, dir string, disk *FailingFS) *WorkerClient {
	cfg := config.Default()
	cfg.Dir = dir
	return NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{FS: disk}))
}

// SlowFS is a file system in memory whose syncs take time, and perhaps its writes. Safe for concurrent use.
type SlowFS struct {
	*crashfs.FS
	Takes  func() time.Duration // how long a sync takes
	Writes time.Duration        // how long a write takes

	mu     sync.Mutex
	size   int64     // bytes appended
	begun  int64     // of those, how many a sync has begun for
	oldest time.Time // when the first was acknowledged of those for which none has
	late   time.Duration
	syncs  int
}

// slowFile is a file of a SlowFS.
type slowFile struct {
	persistence.AppendFile
	fs *SlowFS
}

// Append implements persistence.FS.
func (f *SlowFS) Append(name string, perm fs.FileMode) (persistence.AppendFile, int64, error) {
	file, size, err := f.FS.Append(name, perm)
	return &slowFile{file, f}, size, err
}

func (f *slowFile) Write(p []byte) (int, error) {
	f.fs.mu.Lock()
	f.fs.size += int64(len(p))
	f.fs.mu.Unlock()
	time.Sleep(f.fs.Writes)
	return f.AppendFile.Write(p)
}

func (f *slowFile) WriteParts(parts ...[]byte) (int, error) { return f.Write(slices.Concat(parts...)) }

// Sync takes note of how long what it is for has been acknowledged.
func (f *slowFile) Sync() error {
	s := f.fs
	s.mu.Lock()
	if !s.oldest.IsZero() {
		s.late = max(s.late, time.Since(s.oldest))
	}
	s.begun, s.oldest = s.size, time.Time{}
	s.syncs++
	s.mu.Unlock()
	time.Sleep(s.Takes())
	return f.AppendFile.Sync()
}

// Acknowledged tells that all that was written has been acknowledged.
func (f *SlowFS) Acknowledged() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size > f.begun && f.oldest.IsZero() {
		f.oldest = time.Now()
	}
}

// TakeLate returns the longest that acknowledged bytes have waited for their sync to begin since it was called last.
func (f *SlowFS) TakeLate() (late time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	late, f.late = f.late, 0
	return late
}

// BegunSyncs is how many syncs have begun.
func (f *SlowFS) BegunSyncs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs
}

// InBubble runs a test with a clock of its own, and servers of its own: those of a bubble are of no use outside of it.
func InBubble(t *testing.T, test func(t *testing.T)) {
	spare := SpareServers
	defer func() { SpareServers = spare }()
	synctest.Test(t, func(t *testing.T) {
		SpareServers = nil
		test(t)
	})
}
