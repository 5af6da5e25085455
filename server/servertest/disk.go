package servertest

import (
	"errors"
	"io/fs"
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

// RefusedFull is what writes are answered with while the disk is full.
const RefusedFull = "-MISCONF Errors writing to the AOF file: No space left on device\r\n"

// NoSpace fails every write, and keeps no room for any.
func NoSpace(op crashfs.Op) error {
	if op.Name == "write" || op.Name == "reserve" {
		return syscall.ENOSPC
	}
	return nil
}

// Fill has the disk be full, with no room that was kept before. The server knows of it.
func (w *AOFServer) Fill(disk *crashfs.FS) {
	disk.Fault = NoSpace
	w.Srv.Lock()
	w.Srv.Propagate(w.Srv.Keys.DB(0), "DEL", "none")
	w.Srv.Unlock()
	w.Tick() // fails to write that, and gives back what was reserved
}

// FullCase is a limiter: how it is called, what it answers when it limits, and whether a look at it is refused. KEY stands for its key.
type FullCase struct {
	Name, Call, Limited, Peek string
}

var FullCases = []FullCase{
	{"CL.THROTTLE", "CL.THROTTLE KEY 0 1 1000", "*5\r\n:1\r\n:1\r\n:0\r\n:1000\r\n:1000\r\n", "CL.THROTTLE KEY 0 1 1000 0"},
	{"RL.THROTTLE", "RL.THROTTLE KEY 0 1 1000", "*5\r\n:1\r\n:1\r\n:0\r\n:1000\r\n:1000\r\n", "RL.THROTTLE KEY 0 1 1000 0"},
	{"GCRA", "GCRA KEY 0 1 1000", "*5\r\n:1\r\n:1\r\n:0\r\n:1000\r\n:1000\r\n", "GCRA KEY 0 1 1000 TOKENS 0"},
	{"RL.GCRA", "RL.GCRA KEY 1 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.GCRA KEY 1 1 1000s PEEK"},
	{"RL.BUCKET", "RL.BUCKET KEY 1 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.BUCKET KEY 1 1 1000s PEEK"},
	{"RL.QUEUE", "RL.QUEUE KEY 1 1 1000s", "*6\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n:-1\r\n", "RL.QUEUE KEY 1 1 1000s PEEK"},
	{"RL.FIXED", "RL.FIXED KEY 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.FIXED KEY 1 1000s PEEK"},
	{"RL.SLIDING", "RL.SLIDING KEY 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n", "RL.SLIDING KEY 1 1000s PEEK"},
	{"RL.LOG", "RL.LOG KEY 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.LOG KEY 1 1000s PEEK"},
	{"RL.LOG MEMBER", "RL.LOG KEY 1 1000s MEMBER a", "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1000000\r\n", "RL.LOG KEY 1 1000s MEMBER a PEEK"},
	{"RL.ACQUIRE", "RL.ACQUIRE KEY 1 1000s", "*6\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n$-1\r\n", "RL.ACQUIRE KEY 1 1000s PEEK"},
	{"RL.TAKE", "RL.TAKE 1 p KEY", "*3\r\n:1\r\n:0\r\n*1\r\n*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.TAKE 1 p KEY PEEK"},
	{"INCREX", "INCREX KEY UBOUND 1", "*2\r\n:1\r\n:0\r\n", ""},
	{"INCREX BYFLOAT", "INCREX KEY BYFLOAT 1 UBOUND 1", "*2\r\n$1\r\n1\r\n$1\r\n0\r\n", ""},
}

// SlowFS is a file system in memory whose syncs take time, and perhaps its writes.
type SlowFS struct {
	*crashfs.FS
	Takes  func() time.Duration
	Writes time.Duration

	mu     sync.Mutex
	size   int64     // bytes appended
	begun  int64     // of those, how many a sync has begun for
	oldest time.Time // when the first was acknowledged of those for which none has
	late   time.Duration
	syncs  int
}

// slowFile is a file of a slowFS.
type slowFile struct {
	persistence.AppendFile
	fs *SlowFS
}

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

// FailingFS fails its n-th operation, counted from 1; 0 fails none.
type FailingFS struct {
	persistence.OS
	FailAt, Done int
}

var ErrDisk = errors.New("no space left on device")

func (f *FailingFS) step() error {
	if f.Done++; f.Done == f.FailAt {
		return ErrDisk
	}
	return nil
}

func (f *FailingFS) CreateLarge(name string, perm fs.FileMode) (persistence.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.OS.CreateLarge(name, perm)
	return &failingFile{file, f}, err
}

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

// NewSaver is a server with save points on a disk that can fail.
func NewSaver(t *testing.T, dir string, disk *FailingFS) *WorkerClient {
	cfg := config.Default()
	cfg.Dir = dir
	return NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{FS: disk}))
}
