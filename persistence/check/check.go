// Package check examines a data directory as the server does at its start, but loads nothing: it reports the contents and whether they are intact.
package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"headgate/persistence"
	"headgate/persistence/aof"
	"headgate/persistence/rdb"
)

// Checker looks at a directory. Its fields are to be set before Dir is called.
type Checker struct {
	FS  persistence.FS
	Fix bool                             // cut what is damaged at the end of the last file of a log, and end its last batch, as a start does
	Say func(format string, args ...any) // told one line at a time

	// Starts are what Dir says of which files they load, unless it looks at the directory of an append-only file; none: it says nothing of that.
	Starts []Start

	// Progress is told now and then how far a file has been read, in bytes; nil: nobody is.
	Progress func(file string, done, total int64)

	whole   bool
	found   bool
	damaged map[string]finding // by path
	locks   []persistence.Lock
}

// damage is what a start that loads a damaged file makes of it.
type damage int

const (
	mended  damage = iota + 1 // it cuts off the end, or adds what is missing there
	refused                   // it refuses to start
)

func (d damage) String() string {
	if d == refused {
		return "the server refuses to start with it"
	}
	return "the server cuts off the damaged end and loads the rest, unless aof-load-truncated is no"
}

// finding is what is wrong with a file.
type finding struct {
	damage
	why  string // in words, with the file's path
	lost int64  // bytes that a start cuts off, if it mends the file
	ends bool   // the file only ends too early, as one may that is being written
}

// snapshotMagic is what a snapshot begins with.
const snapshotMagic = "REDIS"

// Dir looks at a data directory, or at the directory of an append-only file in it, and reports whether all of it is whole (after
// what Fix has changed). The error is one of reading, or says that there is nothing to look at.
func (c *Checker) Dir(dir string) (whole bool, err error) {
	c.begin()
	defer c.unlock()
	if err := c.lock(dir); err != nil {
		return false, err
	}
	names, err := c.FS.List(dir)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		switch {
		case strings.HasSuffix(name, ".manifest"):
			err = c.set(dir, strings.TrimSuffix(name, ".manifest"))
		case strings.HasSuffix(name, ".rdb") && !hasManifest(names):
			err = c.snapshotFile(path)
		case strings.HasSuffix(name, ".aof") && !hasManifest(names):
			err = c.log(path, aof.Entry{Name: name, Kind: aof.Base}, true)
		default:
			err = c.inner(path)
		}
		if err != nil {
			return false, err
		}
	}
	if !c.found {
		return false, fmt.Errorf("%s holds neither a snapshot nor an append-only file", dir)
	}
	if hasManifest(names) {
		c.Say("verdict: %s", c.verdict(nil))
		return c.whole, nil
	}
	c.starts()
	c.Say("verdict: %s", c.verdict(c.Starts))
	return c.whole, nil
}

// begin forgets what was found before.
func (c *Checker) begin() { c.whole, c.found, c.damaged = true, false, make(map[string]finding) }

// lock keeps servers out of a directory whose files are going to be cut, and says if one is writing what is only looked at. The directory
// of an append-only file is in the one that servers lock.
func (c *Checker) lock(dir string) error {
	dirs := []string{dir}
	if names, err := c.FS.List(dir); err == nil && hasManifest(names) {
		dirs = append(dirs, filepath.Dir(filepath.Clean(dir)))
	}
	for _, dir := range dirs {
		lock, err := c.FS.Lock(dir)
		var held *persistence.HeldError
		switch {
		case err == nil && c.Fix:
			c.locks = append(c.locks, lock)
		case err == nil:
			lock.Close()
		case !errors.As(err, &held):
			// It cannot be locked, here or by a server, or it is not there, which is said below.
		case c.Fix:
			return fmt.Errorf("%w: stop that first, since what it writes would be cut", err)
		default:
			c.Say("%v: what it is writing may be incomplete", err)
		}
	}
	return nil
}

func (c *Checker) unlock() {
	for _, lock := range c.locks {
		lock.Close()
	}
	c.locks = nil
}

func hasManifest(names []string) bool {
	for _, name := range names {
		if strings.HasSuffix(name, ".manifest") {
			return true
		}
	}
	return false
}

// inner looks at what may be a directory with an append-only file.
func (c *Checker) inner(path string) error {
	names, err := c.FS.List(path)
	if err != nil {
		return nil // no directory
	}
	if !hasManifest(names) {
		c.unnamed(path, names)
	}
	for _, name := range names {
		if base, ok := strings.CutSuffix(name, ".manifest"); ok {
			if err := c.set(path, base); err != nil {
				return err
			}
		}
	}
	return nil
}

// unnamed says of parts of append-only files that no manifest names them.
func (c *Checker) unnamed(dir string, names []string) {
	for _, name := range names {
		of, ok := aof.PartOf(name)
		if !ok {
			continue
		}
		if aof.IsUnfinished(name) {
			c.Say("%s: left by an append-only file that the server ended before it was begun; a start deletes it", filepath.Join(dir, name))
			continue
		}
		if _, err := aof.Paths(aof.Options{FS: c.FS, Dir: dir, Name: of}); err != nil {
			c.found = true
			c.bad(filepath.Join(dir, name), "%v", err)
			return
		}
	}
}

// set looks at the files that a manifest names.
func (c *Checker) set(dir, name string) error {
	c.found = true
	set, err := aof.Look(aof.Options{FS: c.FS, Dir: dir, Name: name})
	if err != nil {
		c.bad(filepath.Join(dir, aof.ManifestName(name)), "%v", err)
		return nil
	}
	files := set.Files()
	c.Say("%s: names %s", filepath.Join(dir, name+".manifest"), number(len(files), "file", "files"))
	last := 0 // the last file with anything in it: those behind it have been created for what was to come
	for i, e := range files {
		if f, err := c.FS.Open(set.Place(e)); err == nil {
			if f.Size() > 0 {
				last = i
			}
			f.Close()
		}
	}
	for i, e := range files {
		if err := c.log(set.Place(e), e, i >= last); err != nil {
			return err
		}
	}
	return nil
}

// bad says what is wrong with a file, so that a start which loads it is refused.
func (c *Checker) bad(path, format string, args ...any) {
	c.whole, c.damaged[path] = false, finding{damage: refused, why: fmt.Sprintf(format, args...)}
	c.Say(format, args...)
}

// mendable says what is wrong with a file, so that a start which loads it mends it, and how.
func (c *Checker) mendable(path string, report *aof.Report, format string, args ...any) {
	why := fmt.Sprintf("%s: %v", path, report.Flaw)
	c.whole, c.damaged[path] = false, finding{damage: mended, why: why, lost: report.Size - report.Whole, ends: report.Flaw.Cut && !report.Behind}
	c.Say("%s; %s", why, fmt.Sprintf(format, args...))
}

// open opens a file, or says why a start could not; f is nil then, without an error.
func (c *Checker) open(path string) (f persistence.ReadFile, err error) {
	c.found = true
	f, err = c.FS.Open(path)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist):
		c.bad(path, "%s: is missing", path)
	default: // permissions, or what is there is no file
		c.bad(path, "%v", err)
	}
	return nil, nil
}

// snapshotFile looks at a file that a start reads as a snapshot, whatever it begins with. It is never cut.
func (c *Checker) snapshotFile(path string) error {
	if dangles(c.FS, path) {
		c.found, c.whole = true, false
		c.Say("%s%s: a start begins empty, and its next snapshot takes the link's place", path, danglingLink)
		return nil
	}
	f, err := c.open(path)
	if f == nil {
		return err
	}
	defer f.Close()
	if end, ok := c.snapshot(f, path); ok && end < f.Size() {
		c.Say("%s: %d bytes follow the snapshot, which a start does not read", path, f.Size()-end)
	}
	return nil
}

// log looks at one file of an append-only file. Only the last one can be cut.
func (c *Checker) log(path string, e aof.Entry, last bool) error {
	f, err := c.open(path)
	if f == nil {
		return err
	}
	defer f.Close()
	if e.IsEmptied(f.Size()) {
		c.bad(path, "%s: %s", path, aof.Emptied)
		return nil
	}
	magic := make([]byte, len(snapshotMagic))
	if _, err := f.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	start := int64(0)
	if bytes.Equal(magic, []byte(snapshotMagic)) {
		var ok bool
		if start, ok = c.snapshot(f, path); !ok || start == f.Size() {
			return nil
		}
	}
	return c.commands(f, path, e, start, last)
}

// snapshot looks at the snapshot that a file begins with, and returns where it ends.
func (c *Checker) snapshot(f persistence.ReadFile, path string) (end int64, ok bool) {
	var sink counter
	in := rdb.NewReader(io.NewSectionReader(f, 0, f.Size()), rdb.Options{Progress: func(offset int64) error {
		c.progress(path, offset, f.Size())
		return nil
	}})
	if err := in.Read(&sink); err != nil {
		c.bad(path, "%s: a damaged snapshot: %v", path, err)
		return 0, false
	}
	c.Say("%s: an intact snapshot: %s, %d of them with a TTL, %s of functions, %d bytes", path,
		number(sink.keys, "key", "keys"), sink.expires, number(sink.functions, "library", "libraries"), in.Offset())
	return in.Offset(), true
}

// number is how many there are of something.
func number(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

func (c *Checker) progress(path string, done, total int64) {
	if c.Progress != nil {
		c.Progress(path, done, total)
	}
}

// commands looks at the commands of a file from an offset on.
func (c *Checker) commands(f persistence.ReadFile, path string, e aof.Entry, start int64, last bool) error {
	report, err := aof.Scan(&watched{f, c, path}, start)
	if err != nil {
		return err
	}
	when := ""
	if report.NowMs > 0 {
		when = ", the last at " + time.UnixMilli(report.NowMs).UTC().Format("2006-01-02 15:04:05.000 MST")
	}
	c.Say("%s: %d complete commands in %d bytes, %d of them covered by a CRC%s", path, report.Commands, report.Whole-start, report.Covered, when)
	if report.Flaw == nil {
		return nil
	}
	given := report.Size - report.Whole
	keptPath, keptErr := aof.KeptPath(c.FS, path, report.Whole)
	keptName := filepath.Base(keptPath)
	switch {
	case !last:
		c.bad(path, "%s: %v; this is not the last file, so it cannot be cut without losing what follows", path, report.Flaw)
	case !e.Cuttable(report):
		c.bad(path, "%s: %v; it may be a damaged snapshot, so it is not cut: take it from a backup", path, report.Flaw)
	case c.Fix:
		_, kept, err := aof.Mend(c.FS, path, report)
		switch {
		case err != nil:
			return fmt.Errorf("cut %s: %w", path, err)
		case given == 0:
			c.Say("%s: %v; it has been added, and nothing is cut off", path, report.Flaw)
		case kept != "":
			c.Say("%s: %v; the last %d bytes have been cut off, and are kept in %s", path, report.Flaw, given, kept)
		default:
			c.Say("%s: %v; the last %d bytes have been cut off", path, report.Flaw, given)
		}
	case given == 0:
		c.mendable(path, report, "a start adds it and loses nothing, and so does --fix")
	case report.Behind && keptErr != nil:
		c.bad(path, "%s: %v; a start is refused, and so is --fix, since the last %d bytes cannot be kept: %v", path, report.Flaw, given, keptErr)
	case report.Salvageable() && report.Behind:
		c.mendable(path, report, "a start cuts off the last %d bytes, and keeps them in a file named %s; so does --fix", given, keptName)
	case report.Salvageable():
		c.mendable(path, report, "a start cuts off the last %d bytes, and so does --fix", given)
	default:
		c.bad(path, "%s: %v; a start refuses to give up the last %d bytes; headgate check --fix cuts them off, and keeps them in a file named %s", path, report.Flaw, given, keptName)
	}
	return nil
}

// watched is a file whose reading is told of.
type watched struct {
	persistence.ReadFile
	checker *Checker
	path    string
}

// ReadAt implements io.ReaderAt.
func (w *watched) ReadAt(p []byte, at int64) (int, error) {
	w.checker.progress(w.path, at, w.Size())
	return w.ReadFile.ReadAt(p, at)
}

// counter is a sink that counts.
type counter struct{ keys, expires, functions int }

func (c *counter) Aux(_, _ []byte) error   { return nil }
func (c *counter) Function(_ []byte) error { c.functions++; return nil }
func (c *counter) Database(int) error      { return nil }
func (c *counter) Sizes(_, _ uint64) error { return nil }
func (c *counter) Key(_ []byte, expireAt int64) error {
	c.keys++
	if expireAt != 0 {
		c.expires++
	}
	return nil
}
func (c *counter) Int(int64) error                                                        { return nil }
func (c *counter) Text([]byte) error                                                      { return nil }
func (c *counter) Hash(int) error                                                         { return nil }
func (c *counter) Pair(_, _ []byte) error                                                 { return nil }
func (c *counter) Set(int) error                                                          { return nil }
func (c *counter) Member([]byte) error                                                    { return nil }
func (c *counter) ZSet(int) error                                                         { return nil }
func (c *counter) Scored([]byte, float64) error                                           { return nil }
func (c *counter) List(int) error                                                         { return nil }
func (c *counter) Element([]byte) error                                                   { return nil }
func (c *counter) Stream(int) error                                                       { return nil }
func (c *counter) StreamNode(rdb.StreamID, []byte, int) error                             { return nil }
func (c *counter) StreamInfo(int, rdb.StreamID, rdb.StreamID, rdb.StreamID, uint64) error { return nil }
func (c *counter) StreamGroup([]byte, rdb.StreamID, int64) error                          { return nil }
func (c *counter) StreamPending(rdb.StreamID, int64, uint64) error                        { return nil }
func (c *counter) StreamConsumer([]byte, int64) error                                     { return nil }
func (c *counter) StreamOwned(rdb.StreamID) error                                         { return nil }
func (c *counter) End() error                                                             { return nil }
