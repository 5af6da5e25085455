package aof

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"headgate/persistence"
)

// Options say where the files are and how they are named.
type Options struct {
	FS   persistence.FS
	Dir  string // the directory, appenddirname
	Name string // what the files' names begin with, appendfilename
	Old  string // where a server older than Redis 7 keeps the one file it has; such a file is taken over
}

const (
	dirPerm  = 0o755
	filePerm = 0o644
	// tempPrefix begins the names of files that are not part of the data yet.
	tempPrefix = "temp-"
)

// Set is the files of one directory. It is not safe for concurrent use.
type Set struct {
	o        Options
	manifest *Manifest
	exists   bool   // the manifest is on the disk
	written  string // the increment that a Log writes to, or did last; "": there was none
}

// Open reads the manifest, finishes a first set whose server was killed when it was about to, and takes over a file of an older server if there
// is no manifest. It changes nothing else.
func Open(o Options) (*Set, error) {
	s, err := Look(o)
	if err != nil {
		return nil, err
	}
	if err := s.finish(); err != nil {
		return nil, fmt.Errorf("persistence: finish the files of %s: %w", s.manifestPath(), err)
	}
	if err := s.upgrade(); err != nil {
		return nil, fmt.Errorf("persistence: take over %s: %w", o.Old, err)
	}
	return s, nil
}

// Look reads the manifest and changes nothing. The files may be under the names that Place has for them.
func Look(o Options) (*Set, error) {
	s := &Set{o: o, manifest: &Manifest{}}
	if err := s.readManifest(); err != nil {
		return nil, err
	}
	return s, nil
}

// Paths lists the files that a start loads, in order, as Open finds them, and changes nothing. A file of an older server is among them where it is now.
func Paths(o Options) (paths []string, err error) {
	s, err := Look(o)
	if err != nil {
		return nil, err
	}
	if s.takesOver() {
		return []string{o.Old}, nil
	}
	for _, e := range s.Files() {
		paths = append(paths, s.Place(e))
	}
	return paths, nil
}

func (s *Set) readManifest() error {
	text, err := readAll(s.o.FS, s.manifestPath(), maxManifest+1)
	if errors.Is(err, fs.ErrNotExist) {
		return s.refuseUnnamed()
	}
	if err == nil {
		s.manifest, err = ParseManifest(text)
	}
	if err != nil {
		return fmt.Errorf("persistence: read the manifest %s: %w", s.manifestPath(), err)
	}
	s.exists = true
	return nil
}

// refuseUnnamed returns an error if there are files with data of which the manifest has been lost: a set that is begun beside them would
// overwrite them. What a crash has left of a first set has no data.
func (s *Set) refuseUnnamed() error {
	names, err := s.o.FS.List(s.o.Dir)
	if err != nil {
		return nil // there is no such directory, or what needs it says why it cannot be read
	}
	for _, name := range names {
		if of, ok := PartOf(name); (!ok || of != s.o.Name) && name != s.o.Name {
			continue // the last is an older server's file, which upgrade has moved here
		}
		f, err := s.o.FS.Open(s.Path(name))
		if err != nil {
			return err
		}
		size := f.Size()
		f.Close()
		if size > 0 {
			return fmt.Errorf("persistence: %s holds %d bytes, and there is no manifest %s that names it: put the manifest back, from a backup for example, or move the file away",
				s.Path(name), size, s.manifestPath())
		}
	}
	return nil
}

// PartOf returns the name of the append-only file that a file is a part of by its own name, such as appendonly.aof of appendonly.aof.1.incr.aof.
func PartOf(name string) (of string, ok bool) {
	of, _, _, ok = parsePart(name)
	return of, ok
}

// IsUnfinished reports whether a file is, by its name, a part of an append-only file that was never begun: a start deletes it.
func IsUnfinished(name string) bool {
	rest, temp := strings.CutPrefix(name, tempPrefix)
	_, part := PartOf(rest)
	return temp && part
}

// parsePart takes a part's name to pieces: its file's, its number, and whether it is a base or an increment.
func parsePart(name string) (of string, seq uint64, kind Kind, ok bool) {
	rest, isIncr := strings.CutSuffix(name, ".incr.aof")
	kind = Incremental
	if !isIncr {
		kind = Base
		if rest, ok = strings.CutSuffix(name, ".base.rdb"); !ok {
			if rest, ok = strings.CutSuffix(name, ".base.aof"); !ok {
				return "", 0, 0, false
			}
		}
	}
	at := strings.LastIndexByte(rest, '.')
	if at < 0 {
		return "", 0, 0, false
	}
	seq, err := strconv.ParseUint(rest[at+1:], 10, 63)
	return rest[:at], seq, kind, err == nil
}

// readAll returns at most limit bytes of a file.
func readAll(fsys persistence.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

func (s *Set) manifestPath() string { return s.Path(ManifestName(s.o.Name)) }

// ManifestName is the name of the manifest of the append-only file of a name, without its directory.
func ManifestName(name string) string { return name + ".manifest" }

// Path is where a file of the directory is.
func (s *Set) Path(name string) string { return filepath.Join(s.o.Dir, name) }

// Place is where a file that is part of the data is now: under its temporary name if finish has not renamed it.
func (s *Set) Place(e Entry) string {
	if temp := s.Path(tempPrefix + e.Name); !s.isFile(s.Path(e.Name)) && s.isFile(temp) {
		return temp
	}
	return s.Path(e.Name)
}

// finish gives the files of a first set their names, as far as they do not have them. A file that is not there at all is for who loads it to miss.
func (s *Set) finish() error {
	renamed := false
	for _, e := range s.Files() {
		f, err := s.o.FS.Open(s.Path(e.Name))
		switch {
		case err == nil:
			f.Close()
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		err = s.o.FS.Rename(s.Path(tempPrefix+e.Name), s.Path(e.Name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		renamed = renamed || err == nil
	}
	if !renamed {
		return nil
	}
	return s.o.FS.SyncDir(s.o.Dir)
}

// takesOver reports whether there is a file of an older server that is not in the directory yet.
func (s *Set) takesOver() bool {
	named := s.oldIsBase()
	if s.o.Old == "" || (s.exists && !named) || filepath.Base(s.o.Old) != s.o.Name || !s.isFile(s.o.Old) {
		return false
	}
	return !named || !s.isFile(s.Path(s.o.Name))
}

// oldIsBase reports whether the manifest names a file of an older server, and nothing else.
func (s *Set) oldIsBase() bool {
	m := s.manifest
	return m.Base != nil && m.Base.Name == s.o.Name && len(m.Incr) == 0
}

// upgrade makes an old server's file the base. The manifest comes first, so a crash between the two steps is repaired by the next start.
func (s *Set) upgrade() error {
	if !s.takesOver() {
		return nil
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	if !s.exists {
		if err := s.replace(&Manifest{Base: &Entry{Name: s.o.Name, Seq: 1, Kind: Base}}); err != nil {
			return err
		}
	}
	if err := s.o.FS.Rename(s.o.Old, s.Path(s.o.Name)); err != nil {
		return err
	}
	return errors.Join(s.o.FS.SyncDir(s.o.Dir), s.o.FS.SyncDir(filepath.Dir(s.o.Old)))
}

// makeDir creates the directory if need be, for good. The data directory that it is in has to be there: one that has vanished must not come
// back without its lock.
func (s *Set) makeDir() error {
	if err := s.o.FS.Mkdir(s.o.Dir, dirPerm); err != nil {
		return err
	}
	return s.o.FS.SyncDir(filepath.Dir(s.o.Dir))
}

func (s *Set) isFile(name string) bool {
	f, err := s.o.FS.Open(name)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// replace makes m the manifest, in one step, unless no start could read it.
func (s *Set) replace(m *Manifest) error {
	if _, err := ParseManifest(m.Encode()); err != nil {
		return fmt.Errorf("persistence: %s would become unusable: %w", s.manifestPath(), err)
	}
	if err := persistence.ReplaceFile(s.o.FS, s.manifestPath(), m.Encode(), filePerm); err != nil {
		return err
	}
	s.manifest, s.exists = m, true
	return nil
}

// Empty reports whether there are no data.
func (s *Set) Empty() bool { return s.manifest.Base == nil && len(s.manifest.Incr) == 0 }

// Files lists what is to be loaded, in order.
func (s *Set) Files() []Entry {
	var list []Entry
	if s.manifest.Base != nil {
		list = append(list, *s.manifest.Base)
	}
	return append(list, s.manifest.Incr...)
}

// Mend has a file end where it stops being whole, for good, and gives the last batch the #CRC line that it lacks, so that a scan finds
// nothing wrong any more. The report is that of a scan that found a flaw. What is cut off is kept in another file, see Report.Behind. It returns from
// where the file lacks a CRC then, and the path of that other file, if there is one; after an error the file is as it was, or cut.
func Mend(fsys persistence.FS, path string, r *Report) (open int64, kept string, err error) {
	if r.Behind {
		if kept, err = keep(fsys, path, r.Whole); err != nil {
			return 0, "", fmt.Errorf("keep what is to be cut off: %w", err)
		}
	}
	if r.Size > r.Whole {
		if err := fsys.Truncate(path, r.Whole); err != nil {
			return 0, kept, err
		}
	}
	if !r.Unsealed {
		return r.Open, kept, nil
	}
	f, size, err := fsys.Append(path, filePerm)
	if err != nil {
		return 0, kept, err
	}
	l := &Log{file: f, path: path, size: size}
	err = l.Seal(fsys, r.Open)
	return l.size, kept, errors.Join(err, l.Close())
}

// keptMax is how many files there may be of what was cut off at one offset of a file.
const keptMax = 100

// KeptPath is the path of the file that keeps what is going to be cut off another at an offset. No start reads it.
func KeptPath(fsys persistence.FS, path string, offset int64) (string, error) {
	return freeName(fsys, fmt.Sprintf("%s.cut-at-%d", path, offset))
}

// keep copies what stands from an offset of a file on into a file of its own, for good, and returns its path.
func keep(fsys persistence.FS, path string, offset int64) (kept string, err error) {
	if kept, err = KeptPath(fsys, path, offset); err != nil {
		return "", err
	}
	f, err := fsys.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r, err := persistence.ReplaceLarge(fsys, kept, filePerm)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(r, io.NewSectionReader(f, offset, f.Size()-offset)); err != nil {
		r.Discard()
		return "", err
	}
	return kept, r.Commit()
}

// freeName returns the path, or that with a number behind it, under which there is no file yet.
func freeName(fsys persistence.FS, path string) (string, error) {
	free := path
	for n := 2; n <= keptMax; n++ {
		f, err := fsys.Open(free)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return free, nil
		case err != nil:
			return "", err
		}
		f.Close()
		free = fmt.Sprintf("%s-%d", path, n)
	}
	return "", fmt.Errorf("%s and %d more are there already: move them away", path, keptMax-2)
}

// Clean deletes what no start needs any more: files of the history, and what a crash has left of files that never became part of
// the data. What cannot be deleted stays for the next time.
func (s *Set) Clean() error {
	var failed []error
	m := s.manifest.clone()
	for _, e := range m.History {
		if err := s.o.FS.Remove(s.Path(e.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	if len(m.History) > 0 && len(failed) == 0 {
		m.History = nil
		if err := s.replace(m); err != nil {
			failed = append(failed, err)
		}
	}
	names, err := s.o.FS.List(s.o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		failed = append(failed, err)
	}
	for _, name := range names {
		if s.isLeftover(name) {
			if err := s.o.FS.Remove(s.Path(name)); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// Unnamed lists the files that Clean deletes although they are called like parts. The server has ended before they were in the manifest, or somebody
// has damaged that. Where the directory cannot be read there are none.
func (s *Set) Unnamed() []string {
	names, _ := s.o.FS.List(s.o.Dir)
	return slices.DeleteFunc(names, func(name string) bool { return !s.isUnnamed(name) })
}

// isLeftover reports whether a file is one that was being made when the server ended: under a temporary name, or not yet in the
// manifest, with a number that comes after all that are.
func (s *Set) isLeftover(name string) bool {
	if s.isPart(strings.TrimPrefix(name, tempPrefix)) {
		return false
	}
	if strings.HasPrefix(name, tempPrefix+s.o.Name) || s.Path(name) == s.manifestPath()+persistence.TempSuffix {
		return true
	}
	return s.isUnnamed(name)
}

// isUnnamed reports whether a file is called like a part that would come next, and is none.
func (s *Set) isUnnamed(name string) bool {
	of, seq, kind, ok := parsePart(name)
	if !ok || of != s.o.Name || !s.exists || s.isPart(name) {
		return false
	}
	base, incr := s.manifest.lastSeq()
	if kind == Base {
		return int64(seq) > base
	}
	return int64(seq) > incr
}

// isPart reports whether the manifest names a file as part of the data.
func (s *Set) isPart(name string) bool {
	return slices.ContainsFunc(s.Files(), func(e Entry) bool { return e.Name == name })
}

// incrName is the name of the increment numbered seq.
func (s *Set) incrName(seq int64) string { return fmt.Sprintf("%s.%d.incr.aof", s.o.Name, seq) }

// createIncr creates an increment, empty, and adds it to the manifest if it is to be listed. The disk keeps room for so many bytes of it at
// least.
func (s *Set) createIncr(e Entry, listed bool, room int64) (_ persistence.AppendFile, reserved int64, err error) {
	f, size, err := s.o.FS.Append(s.Path(e.Name), filePerm)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if size > 0 { // left by a crash before it was added to the manifest
		if err := f.Truncate(0); err != nil {
			return nil, 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return nil, 0, err
	}
	if room > 0 {
		if reserved, err = reserve(f, 0, room); err != nil {
			return nil, 0, err
		}
	}
	if !listed {
		return f, reserved, nil
	}
	m := s.manifest.clone()
	m.Incr = append(m.Incr, e)
	return f, reserved, s.replace(m) // which syncs the directory
}
