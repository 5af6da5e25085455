package aof

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync"

	"headgate/persistence"
)

// Log is the last increment of a Set, open for batches at its end. Write, Switch and Close are called by one goroutine at a time; Sync
// and the figures may be used by others meanwhile.
type Log struct {
	file persistence.AppendFile // mu guards its being exchanged
	buf  []byte
	last []byte // the #CRC line that the next one covers too
	line []byte // memory for the next one

	torn bool // behind size there may be a part of a batch that could not be written

	syncing sync.RWMutex // held while a file is synced, and alone while one is closed
	mu      sync.Mutex
	path    string
	size    int64 // of the file
	synced  int64 // how much of it is certainly on stable storage
	total   int64 // of all files that are loaded
}

// keptBuffer bounds the memory that is kept for batches, and so those that are copied rather than written in parts.
const keptBuffer = 1 << 20

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
		return l, nil
	}
	err := s.makeDir()
	if err == nil {
		l.path = s.Path(s.incrName(1))
		l.file, err = s.createIncr(Entry{Name: s.incrName(1), Seq: 1, Kind: Incremental}, true)
	}
	if err != nil {
		return nil, fmt.Errorf("persistence: create an increment in %s: %w", s.o.Dir, err)
	}
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
		return errors.Join(err, l.mend())
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

// Unsynced returns how many bytes are written and not on stable storage.
func (l *Log) Unsynced() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size - l.synced
}

// Write appends a batch of whole units with the time in ms since the Unix epoch. After an error nothing of it counts as written, and
// the same batch can be given again; what part of it did get to the file is taken back then, if not at once.
func (l *Log) Write(batch []byte, nowMs int64) error {
	if l.torn {
		if err := l.mend(); err != nil {
			return err
		}
	}
	head := append(l.buf[:0], "#"+tagNow...)
	head = append(strconv.AppendInt(head, nowMs, 10), "\r\n"...)
	size := int64(len(head) + len(batch))
	crc := crc32.Update(0, castagnoli, l.last)
	crc = crc32.Update(crc, castagnoli, head)
	crc = crc32.Update(crc, castagnoli, batch)
	line := appendCRC(l.line[:0], crc, int64(len(l.last))+size)
	l.line = line
	var err error
	if len(batch) < keptBuffer/2 {
		l.buf = append(append(head, batch...), line...)
		err = l.put(l.buf)
	} else {
		l.buf = head
		for _, part := range [...][]byte{head, batch, line} {
			if err == nil {
				err = l.put(part)
			}
		}
	}
	if err != nil {
		l.torn = true
		return errors.Join(err, l.mend())
	}
	l.last, l.line = line, l.last
	size += int64(len(line))
	l.mu.Lock()
	l.size += size
	l.total += size
	l.mu.Unlock()
	return nil
}

func (l *Log) put(p []byte) error {
	n, err := l.file.Write(p)
	if err == nil && n < len(p) {
		err = fmt.Errorf("persistence: %d of %d bytes written", n, len(p))
	}
	return err
}

// mend takes a part of a batch back out of the file.
func (l *Log) mend() error {
	if err := l.file.Truncate(l.size); err != nil {
		return err
	}
	l.torn = false
	return nil
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
	defer l.mu.Unlock()
	if l.file == file {
		l.synced = max(l.synced, written)
	}
	return nil
}

// Close syncs the file and closes it.
func (l *Log) Close() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	return errors.Join(l.syncLocked(), l.file.Close())
}
