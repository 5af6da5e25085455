package aof

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"sync"

	"headgate/persistence"
)

// Log is the last increment of a Set, open for batches at its end. Write, Switch and Close are called by one goroutine at a time; Sync
// and the figures may be used by others meanwhile.
type Log struct {
	file  persistence.AppendFile // mu guards its being exchanged
	head  []byte                 // memory for the line before a batch
	last  []byte                 // the #CRC line that the next one covers too
	line  []byte                 // memory for the next one
	parts [3][]byte              // what is being written

	torn     bool  // behind size there may be a part of a batch that could not be written
	reserved int64 // the offset up to which the file can grow without the disk being full

	syncing sync.RWMutex // held while a file is synced, and alone while one is closed
	mu      sync.Mutex
	path    string
	size    int64 // of the file
	synced  int64 // how much of it is certainly on stable storage
	cached  int64 // from where on the system may keep it in memory
	total   int64 // of all files that are loaded
}

// Headroom is the room for a batch that a log should always have, in bytes: who is going to write one must know before that there is room
// for it.
const Headroom = 4 << 20

// BeginsWith is the room that the disk has to keep for an append-only file that is begun, beside the snapshot that it begins with, in bytes.
const BeginsWith = Headroom + batchLines

const (
	// reserveStep is how much more than is needed the disk is asked to keep at a time: it costs a system call, and perhaps the file system's
	// journal.
	reserveStep = 16 << 20
	// uncacheStep is after how much that has been synced the system is told not to keep it in memory. That makes it look for the pages, which is not
	// worth it for a few.
	uncacheStep = 4 << 20
	// batchLines is the most that a batch's own lines come to.
	batchLines = 128
	// unbounded is the end of what is reserved where the file system keeps no room for anybody.
	unbounded = math.MaxInt64
)

// Append opens the last increment, creating the first one if there is none.
func (s *Set) Append() (*Log, error) {
	l := &Log{}
	for _, e := range s.Files() {
		f, err := s.o.FS.Open(s.Path(e.Name))
		if err != nil {
			return nil, fmt.Errorf("persistence: open %s: %w", s.Path(e.Name), err)
		}
		l.total += f.Size()
		f.Close()
	}
	if n := len(s.manifest.Incr); n > 0 {
		path := s.Path(s.manifest.Incr[n-1].Name)
		f, size, err := s.o.FS.Append(path, filePerm)
		if err != nil {
			return nil, fmt.Errorf("persistence: open %s: %w", path, err)
		}
		l.file, l.size, l.path = f, size, path
		s.written = s.manifest.Incr[n-1].Name
		return l, nil
	}
	err := s.makeDir()
	if err == nil {
		l.path = s.Path(s.incrName(1))
		l.file, _, err = s.createIncr(Entry{Name: s.incrName(1), Seq: 1, Kind: Incremental}, true, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("persistence: create an increment in %s: %w", s.o.Dir, err)
	}
	s.written = s.incrName(1)
	return l, nil
}

// Seal appends a #CRC line for the bytes from offset open to the end of the file, which has been scanned: what a start has taken for whole
// must not be given up later because of what is written behind it. It does nothing if there are no such bytes.
func (l *Log) Seal(fsys persistence.FS, open int64) error {
	n := l.size - open
	if n <= 0 {
		return nil
	}
	f, err := fsys.Open(l.path)
	if err != nil {
		return err
	}
	defer f.Close()
	crc, err := sumOf(f, open, n)
	if err != nil {
		return err
	}
	line := appendCRC(nil, crc, n)
	if err := l.put(line); err != nil {
		l.torn = true
		return errors.Join(err, l.repair())
	}
	l.last = line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size += int64(len(line))
	l.total += int64(len(line))
	return nil
}

// Name is the file that is written to.
func (l *Log) Name() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.path
}

// Size returns how many bytes the files have that are loaded at a start, this one included.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// Write appends a batch of whole units with the time in ms since the Unix epoch. After an error nothing of it counts as written, and
// the same batch can be given again; what part of it did get to the file is taken back then, if not at once.
func (l *Log) Write(batch []byte, nowMs int64) error {
	if l.torn {
		if err := l.repair(); err != nil {
			return err
		}
	}
	head := append(l.head[:0], "#"+tagNow...)
	head = append(strconv.AppendInt(head, nowMs, 10), "\r\n"...)
	size := int64(len(head) + len(batch))
	crc := crc32.Update(0, castagnoli, l.last)
	crc = crc32.Update(crc, castagnoli, head)
	crc = crc32.Update(crc, castagnoli, batch)
	line := appendCRC(l.line[:0], crc, int64(len(l.last))+size)
	l.head, l.line = head, line
	l.parts = [...][]byte{head, batch, line}
	err := l.put(l.parts[:]...)
	l.parts[1] = nil // the caller's
	if err != nil {
		l.torn = true
		return errors.Join(err, l.repair())
	}
	l.last, l.line = line, l.last
	size += int64(len(line))
	l.mu.Lock()
	l.size += size
	l.total += size
	l.mu.Unlock()
	return nil
}

// Reserve has the disk keep room for a batch of n bytes, so that it is not full when that is written. The caller is one that may call Write.
// Where the file system keeps no room for anybody it does nothing: see Reserves.
func (l *Log) Reserve(n int64) error {
	if l.torn {
		if err := l.repair(); err != nil {
			return err
		}
	}
	if need := l.size + n + batchLines; need > l.reserved {
		reserved, err := reserve(l.file, max(l.size, l.reserved), need) // tmpfs gives back all of a range for which there is no room
		if err != nil {
			return err
		}
		l.reserved = reserved
	}
	return nil
}

// Room returns the length of the batch for which the disk keeps room.
func (l *Log) Room() int64 { return max(l.reserved-l.size-batchLines, 0) }

// Reserves reports whether the disk keeps room for what is going to be written.
func (l *Log) Reserves() bool { return l.reserved != unbounded }

// reserve has the disk keep room between two offsets of a file, of which the first is the end of what is written or reserved, and for reserveStep bytes more if it has so
// many. It returns the offset up to which there is room.
func reserve(f persistence.AppendFile, from, need int64) (reserved int64, err error) {
	if err = f.Reserve(from, need+reserveStep); err == nil {
		return need + reserveStep, nil
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return unbounded, nil
	}
	return need, f.Reserve(from, need)
}

func (l *Log) put(parts ...[]byte) error {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	n, err := l.file.WriteParts(parts...)
	if err == nil && n < size {
		err = fmt.Errorf("persistence: %d of %d bytes written", n, size)
	}
	return err
}

// repair takes a part of a batch back out of the file.
func (l *Log) repair() error {
	if err := l.file.Truncate(l.size); err != nil {
		return err
	}
	l.torn, l.reserved = false, l.size
	return nil
}

// Unsynced reports whether something was written that may not be on stable storage.
func (l *Log) Unsynced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size != l.synced
}

// Sync returns when all that was written before is on stable storage. After an error what is there is not known. A sync does not wait
// for another.
func (l *Log) Sync() error {
	l.syncing.RLock()
	defer l.syncing.RUnlock()
	return l.syncLocked()
}

func (l *Log) syncLocked() error {
	l.mu.Lock()
	file, written := l.file, l.size
	done := written == l.synced
	l.mu.Unlock()
	if done {
		return nil
	}
	if err := file.Sync(); err != nil {
		return err
	}
	l.mu.Lock()
	if l.file != file {
		l.mu.Unlock()
		return nil
	}
	l.synced = max(l.synced, written)
	from, to := l.cached, l.synced
	enough := to-from >= uncacheStep
	if enough {
		l.cached = to
	}
	l.mu.Unlock()
	if enough { // nobody reads it before the next start, and memory that is used again costs less than memory that the file has to be given
		file.Uncache(from, to)
	}
	return nil
}

// Close syncs the file and closes it.
func (l *Log) Close() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	err := l.syncLocked()
	_ = l.file.Truncate(l.size) // gives back what was reserved
	return errors.Join(err, l.file.Close())
}
