package aof

import (
	"errors"
	"fmt"
	"io/fs"

	"headgate/persistence"
)

// Rewrite is a new base in the making. Until Commit the files are loaded as before; what is written meanwhile goes to a new
// increment. It is not safe for concurrent use.
type Rewrite struct {
	set      *Set
	base     Entry
	incr     Entry  // perhaps one that an earlier rewrite has left empty
	incrTemp string // where the increment is until then, if there is no manifest yet; else ""
	temp     string
	file     persistence.File       // the base; nil when it has been closed
	log      persistence.AppendFile // the increment; nil when a Log has taken it over
	size     int64                  // of the base

	reserved int64 // the end of what is reserved of the increment
}

// Rewrite begins a new base, with a new increment for what is written from now on. If listed is set the increment becomes part of the
// data at once, which is right if it follows upon those that are there.
func (s *Set) Rewrite(listed bool) (*Rewrite, error) {
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	base, incr := s.manifest.lastSeq()
	r := &Rewrite{
		set:  s,
		base: Entry{Name: fmt.Sprintf("%s.%d.base.rdb", s.o.Name, base+1), Seq: base + 1, Kind: Base},
		incr: Entry{Name: s.incrName(incr + 1), Seq: incr + 1, Kind: Incremental},
		temp: s.Path(fmt.Sprintf("%s%s.%d.base.rdb", tempPrefix, s.o.Name, base+1)),
	}
	incrFile := r.incr
	if !listed && !s.exists {
		incrFile.Name = tempPrefix + incrFile.Name // without a manifest it would be taken for a part of one that has been lost
		r.incrTemp = s.Path(incrFile.Name)
	}
	var err error
	if r.file, err = s.o.FS.CreateLarge(r.temp, filePerm); err != nil {
		return nil, err
	}
	if last, ok := s.spare(); listed && ok { // a rewrite that fails again and again must not make the manifest grow
		r.incr, incrFile, listed = last, last, false
	}
	if r.log, r.reserved, err = s.createIncr(incrFile, listed, BeginsWith); err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// spare returns the last increment if it is empty and not the one that a Log writes to.
func (s *Set) spare() (e Entry, ok bool) {
	n := len(s.manifest.Incr)
	if n == 0 || s.manifest.Incr[n-1].Name == s.written {
		return e, false
	}
	e = s.manifest.Incr[n-1]
	f, err := s.o.FS.Open(s.Path(e.Name))
	if err != nil {
		return e, false
	}
	defer f.Close()
	return e, f.Size() == 0
}

// Write appends to the base.
func (r *Rewrite) Write(p []byte) (int, error) {
	n, err := r.file.Write(p)
	r.size += int64(n)
	return n, err
}

// End returns when the base is on stable storage.
func (r *Rewrite) End() error {
	err := errors.Join(r.file.Sync(), r.file.Close())
	r.file = nil
	return err
}

// Commit makes the base part of the data in the place of all that came before the new increment, and returns its size. What is not
// needed any more is history then: see Clean.
func (r *Rewrite) Commit() (size int64, err error) {
	s := r.set
	m := s.manifest.clone()
	m.toHistory(r.incr.Seq - 1)
	m.Base = &r.base
	if len(m.Incr) == 0 {
		m.Incr = []Entry{r.incr}
	}
	if r.incrTemp != "" {
		return r.size, r.commitFirst(m)
	}
	if err := s.o.FS.Rename(r.temp, s.Path(r.base.Name)); err != nil {
		return 0, err
	}
	return r.size, s.replace(m) // which syncs the directory
}

// commitFirst is Commit where there is no manifest yet. It comes first, so that a crash between the steps is repaired by the next start: files
// with data and without a manifest would be taken for those of a manifest that has been lost.
func (r *Rewrite) commitFirst(m *Manifest) error {
	s := r.set
	err := s.replace(m)
	if err != nil && !s.isFile(s.manifestPath()) {
		return err
	}
	r.temp = "" // it is part of the data
	if err != nil {
		return err
	}
	return s.finish()
}

// Discard gives the base up. The increment stays if it is part of the data.
func (r *Rewrite) Discard() {
	if r.file != nil {
		r.file.Close()
	}
	if r.log != nil {
		_ = r.log.Truncate(0) // nothing has been written to it: that gives back what was reserved
		r.log.Close()
	}
	if r.temp == "" {
		return
	}
	if err := r.set.o.FS.Remove(r.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return // Clean tries again
	}
}

// Room returns the length of the first batch for which the disk keeps room in the increment.
func (r *Rewrite) Room() int64 { return max(r.reserved-batchLines, 0) }

// takeLog returns the increment's file, which is the caller's from then on.
func (r *Rewrite) takeLog() persistence.AppendFile {
	f := r.log
	r.log = nil
	return f
}

// NewLog returns a log of which a rewrite's increment is the first file.
func (s *Set) NewLog(r *Rewrite) *Log {
	s.written = r.incr.Name
	return &Log{path: s.Path(r.incr.Name), file: r.takeLog(), reserved: r.reserved}
}

// Switch has the log go on in the increment of a rewrite. The file so far, which has been synced, is closed by finish.
func (l *Log) Switch(r *Rewrite) (finish func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, size := l.file, l.size
	r.set.written = r.incr.Name
	l.file, l.path = r.takeLog(), r.set.Path(r.incr.Name)
	l.size, l.synced, l.cached, l.reserved, l.last = 0, 0, 0, r.reserved, l.last[:0]
	return func() error {
		l.syncing.Lock()
		defer l.syncing.Unlock()
		_ = old.Truncate(size) // gives back what was reserved
		return old.Close()
	}
}

// Rebase tells the log that a base of a size stands in the place of all that came before its file.
func (l *Log) Rebase(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total = size + l.size
}
