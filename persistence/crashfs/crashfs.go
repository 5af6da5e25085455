// Package crashfs is a file system in memory for tests. In a power cut it loses what was not synced, as disks do: single sectors are lost,
// files end anywhere between the synced and the written length, and directory entries appear or disappear. It can also fail any
// operation.
package crashfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"

	"headgate/persistence"
)

// sector is the unit that is kept or lost as a whole, in bytes.
const sector = 512

// FS is a persistence.FS in memory. Create it with [New]. It is safe for concurrent use.
type FS struct {
	mu    sync.Mutex
	fault func(op Op) error // see SetFault; nil: nothing fails
	dirs  map[string]*dir   // by path; they outlive a power cut if their own entry does
	ops   int
	room  int64 // bytes that files may take up, what is reserved for them included
	full  error // what happens when that is used up; nil: never
}

// Op is an operation that is about to be done.
type Op struct {
	Number int    // counted from 1
	Name   string // create, append, open, truncate, list, mkdir, rename, remove, syncdir, write, sync, reserve, uncache, chmod, close
	Path   string // the file's, or the directory's
	Size   int    // of a write or of what is reserved or uncached, in bytes
}

// dir is a directory: what it has, what it had when it was last synced, and what has been done since.
type dir struct {
	entries, synced map[string]*file
	pending         []change
	durable         bool // its own entry is
}

// change is what one operation has done to a directory.
type change struct {
	put  map[string]*file
	gone []string
}

func (c *change) apply(to map[string]*file) {
	for _, name := range c.gone {
		delete(to, name)
	}
	maps.Copy(to, c.put)
}

// file is an inode.
//
// What is synced, what a reader has and what a clone begins with are no copies, but the same bytes as data, which are never written over: a file grows
// at its end only, and one that is cut within them goes on elsewhere.
type file struct {
	data, synced []byte
	shared       int          // how many bytes of data others have too
	dirty        map[int]bool // sectors written since the last sync
	reserved     int64        // the offset up to which the disk keeps room for it
}

// size is what the file takes up.
func (f *file) size() int64 { return max(int64(len(f.data)), f.reserved) }

// New returns a file system with one directory.
func New(root string) *FS {
	return &FS{dirs: map[string]*dir{filepath.Clean(root): newDir(true)}}
}

func newDir(durable bool) *dir {
	return &dir{entries: map[string]*file{}, synced: map[string]*file{}, durable: durable}
}

// Ops returns how many operations there have been.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// Limit has the files take up no more than the given bytes, what is reserved for them included. What needs more ends with the error full:
// syscall.ENOSPC, say, or syscall.EDQUOT. A nil error ends the limit.
func (f *FS) Limit(room int64, full error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room, f.full = room, full
}

// SetFault has fault be asked before each operation from now on: the error that it returns is that of the operation. A write that is to fail
// writes the first half. It is called with the file system's lock held. nil ends that.
func (f *FS) SetFault(fault func(op Op) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// Used returns how many bytes the files take up, what is reserved for them included.
func (f *FS) Used() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used()
}

func (f *FS) used() (sum int64) {
	seen := map[*file]bool{}
	for _, d := range f.dirs {
		for _, inode := range d.entries {
			if !seen[inode] {
				seen[inode] = true
				sum += inode.size()
			}
		}
	}
	return sum
}

// free returns how many of n bytes more there is room for.
func (f *FS) free(n int64) int64 {
	if f.full == nil {
		return n
	}
	return max(min(n, f.room-f.used()), 0)
}

// step counts an operation, and returns the error that it is to end with.
func (f *FS) step(name, path string, size int) error {
	f.ops++
	if f.fault == nil {
		return nil
	}
	if err := f.fault(Op{f.ops, name, path, size}); err != nil {
		return &fs.PathError{Op: name, Path: path, Err: err}
	}
	return nil
}

// find returns the file at a path and the directory it is in.
func (f *FS) find(op, path string) (*dir, *file, error) {
	d := f.dirs[filepath.Dir(filepath.Clean(path))]
	if d == nil {
		return nil, nil, &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
	}
	return d, d.entries[filepath.Base(path)], nil
}

func (d *dir) change(c change) {
	c.apply(d.entries)
	d.pending = append(d.pending, c)
}

// Create implements persistence.FS.
func (f *FS) Create(name string, _ fs.FileMode) (persistence.File, error) {
	return f.open("create", name, true)
}

// CreateLarge implements persistence.FS. Nothing is kept back.
func (f *FS) CreateLarge(name string, perm fs.FileMode) (persistence.File, error) {
	return f.Create(name, perm)
}

// Append implements persistence.FS.
func (f *FS) Append(name string, _ fs.FileMode) (persistence.AppendFile, int64, error) {
	h, err := f.open("append", name, false)
	if err != nil {
		return nil, 0, err
	}
	return h, int64(len(h.file.data)), nil
}

func (f *FS) open(op, name string, empty bool) (*handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step(op, name, 0); err != nil {
		return nil, err
	}
	d, found, err := f.find(op, name)
	if err != nil {
		return nil, err
	}
	if found == nil {
		found = &file{dirty: map[int]bool{}}
		d.change(change{put: map[string]*file{filepath.Base(name): found}})
	} else if empty {
		found.truncate(0)
	}
	return &handle{fs: f, file: found, name: name}, nil
}

// Open implements persistence.FS. What is read is the file as it is now.
func (f *FS) Open(name string) (persistence.ReadFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("open", name, 0); err != nil {
		return nil, err
	}
	_, found, err := f.find("open", name)
	if err == nil && found == nil {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	data := found.share()
	return &reader{io.NewSectionReader(bytesAt(data), 0, int64(len(data)))}, nil
}

// bytesAt makes bytes an io.ReaderAt.
type bytesAt []byte

func (b bytesAt) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

type reader struct{ *io.SectionReader }

func (r *reader) Close() error { return nil }

// Truncate implements persistence.FS.
func (f *FS) Truncate(name string, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("truncate", name, 0); err != nil {
		return err
	}
	_, found, err := f.find("truncate", name)
	if err == nil && found == nil {
		err = &fs.PathError{Op: "truncate", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return err
	}
	found.truncate(int(size))
	found.sync()
	return nil
}

// List implements persistence.FS.
func (f *FS) List(name string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("list", name, 0); err != nil {
		return nil, err
	}
	d := f.dirs[filepath.Clean(name)]
	if d == nil {
		return nil, &fs.PathError{Op: "list", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Sorted(maps.Keys(d.entries)), nil
}

// Mkdir implements persistence.FS.
func (f *FS) Mkdir(name string, _ fs.FileMode) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("mkdir", name, 0); err != nil {
		return err
	}
	name = filepath.Clean(name)
	if f.dirs[name] != nil {
		return nil
	}
	if f.dirs[filepath.Dir(name)] == nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrNotExist}
	}
	f.dirs[name] = newDir(false)
	return nil
}

// Rename implements persistence.FS.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("rename", to, 0); err != nil {
		return err
	}
	source, found, err := f.find("rename", from)
	if err != nil {
		return err
	}
	target, _, err := f.find("rename", to)
	if err == nil && found == nil {
		err = &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	if err != nil {
		return err
	}
	put := map[string]*file{filepath.Base(to): found}
	if source == target {
		source.change(change{put: put, gone: []string{filepath.Base(from)}})
		return nil
	}
	target.change(change{put: put})
	source.change(change{gone: []string{filepath.Base(from)}})
	return nil
}

// Remove implements persistence.FS.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("remove", name, 0); err != nil {
		return err
	}
	d, found, err := f.find("remove", name)
	if err == nil && found == nil {
		err = &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return err
	}
	d.change(change{gone: []string{filepath.Base(name)}})
	return nil
}

// SyncDir implements persistence.FS.
func (f *FS) SyncDir(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("syncdir", name, 0); err != nil {
		return err
	}
	name = filepath.Clean(name)
	d := f.dirs[name]
	if d == nil {
		return &fs.PathError{Op: "syncdir", Path: name, Err: fs.ErrNotExist}
	}
	d.synced, d.pending = maps.Clone(d.entries), nil
	for path, inner := range f.dirs {
		if path != name && filepath.Dir(path) == name {
			inner.durable = true
		}
	}
	return nil
}

// Lock implements persistence.FS. Nobody else can have the directory.
func (f *FS) Lock(dir string) (persistence.Lock, error) { return noLock{filepath.Clean(dir)}, nil }

type noLock struct{ dir string }

func (noLock) Tell(string) error       { return nil }
func (l noLock) Holds(dir string) bool { return filepath.Clean(dir) == l.dir }
func (noLock) Close() error            { return nil }

// handle is a file open for writing at its end.
type handle struct {
	fs   *FS
	file *file
	name string
}

// Write implements persistence.File.
func (h *handle) Write(p []byte) (int, error) { return h.WriteParts(p) }

// WriteParts implements persistence.AppendFile. All parts together are one write.
func (h *handle) WriteParts(parts ...[]byte) (n int, err error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	for _, p := range parts {
		n += len(p)
	}
	if err = h.fs.step("write", h.name, n); err != nil {
		n /= 2
	}
	begin := len(h.file.data)
	if more := int64(begin+n) - h.file.size(); more > 0 {
		if free := h.fs.free(more); free < more {
			n -= int(more - free)
			err = &fs.PathError{Op: "write", Path: h.name, Err: h.fs.full}
		}
	}
	left := n
	for _, p := range parts {
		p = p[:min(len(p), left)]
		h.file.data, left = append(h.file.data, p...), left-len(p)
	}
	h.file.touch(begin, len(h.file.data))
	return n, err
}

// Uncache implements persistence.AppendFile. Nothing becomes of it here.
func (h *handle) Uncache(from, to int64) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	_ = h.fs.step("uncache", h.name, int(to-from))
}

// Reserve implements persistence.AppendFile.
func (h *handle) Reserve(from, to int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.fs.step("reserve", h.name, int(to-from)); err != nil {
		return err
	}
	if more := to - h.file.size(); h.fs.free(more) < more {
		return &fs.PathError{Op: "reserve", Path: h.name, Err: h.fs.full}
	}
	h.file.reserved = max(h.file.reserved, to)
	return nil
}

// Sync implements persistence.File.
func (h *handle) Sync() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.fs.step("sync", h.name, 0); err != nil {
		return err
	}
	h.file.sync()
	return nil
}

// Chmod implements persistence.File. Permissions are not kept.
func (h *handle) Chmod(fs.FileMode) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	return h.fs.step("chmod", h.name, 0)
}

// Truncate implements persistence.AppendFile.
func (h *handle) Truncate(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.fs.step("truncate", h.name, 0); err != nil {
		return err
	}
	h.file.truncate(int(size))
	return nil
}

// Close implements persistence.File.
func (h *handle) Close() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	return h.fs.step("close", h.name, 0)
}

// touch notes that the bytes between two offsets are not synced.
func (f *file) touch(begin, end int) {
	for i := begin / sector; i*sector < end; i++ {
		f.dirty[i] = true
	}
}

func (f *file) truncate(size int) {
	f.touch(min(size, len(f.data)), max(size, len(f.data)))
	switch {
	case size < f.shared:
		f.data, f.shared = f.data[:size:size], size
	case size <= len(f.data):
		f.data = f.data[:size]
	default:
		f.data = append(f.data, make([]byte, size-len(f.data))...)
	}
	f.reserved = 0
}

// share returns what the file holds. What is appended to either is not seen in the other.
func (f *file) share() []byte {
	f.shared = max(f.shared, len(f.data))
	return slices.Clip(f.data)
}

func (f *file) sync() {
	f.synced = f.share()
	clear(f.dirty)
}

// keepPercent are the chances for a sector that was not synced.
var keepPercent = []int{0, 25, 50, 75, 100}

// Crash returns the file system as it may be found after a power cut at this moment. What is done to f afterwards is not seen in it.
func (f *FS) Crash(rnd *rand.Rand) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	after := &FS{dirs: map[string]*dir{}}
	survivors := map[*file]*file{}
	for _, path := range slices.Sorted(maps.Keys(f.dirs)) {
		d := f.dirs[path]
		if after.dirs[filepath.Dir(path)] == nil && len(after.dirs) > 0 {
			continue
		}
		if !d.durable && rnd.IntN(2) == 0 {
			continue
		}
		entries := maps.Clone(d.synced)
		for i, keep := 0, rnd.IntN(len(d.pending)+1); i < keep; i++ { // a journal keeps the order
			d.pending[i].apply(entries)
		}
		found := newDir(true)
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			inode := entries[name]
			if survivors[inode] == nil {
				survivors[inode] = inode.crash(rnd)
			}
			found.entries[name] = survivors[inode]
		}
		found.synced = maps.Clone(found.entries)
		after.dirs[path] = found
	}
	return after
}

// crash returns what a power cut may leave of a file.
func (f *file) crash(rnd *rand.Rand) *file {
	percent := keepPercent[rnd.IntN(len(keepPercent))]
	low, high := min(len(f.synced), len(f.data)), max(len(f.synced), len(f.data))
	size := low + rnd.IntN(high-low+1)
	switch rnd.IntN(4) {
	case 0:
		size = len(f.data)
	case 1:
		size = len(f.synced)
	}
	data := make([]byte, size)
	copy(data, f.synced)
	for _, i := range slices.Sorted(maps.Keys(f.dirty)) {
		if rnd.IntN(100) < percent && i*sector < min(size, len(f.data)) {
			copy(data[i*sector:], f.data[i*sector:min((i+1)*sector, len(f.data), size)])
		}
	}
	return &file{data: data, synced: data, shared: len(data), dirty: map[int]bool{}}
}

// ReadFile returns what a file holds, for tests that look at it or change it.
func (f *FS) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, found, err := f.find("read", name)
	if err == nil && found == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return slices.Clone(found.data), nil
}

// WriteFile makes a file hold data, synced.
func (f *FS) WriteFile(name string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = filepath.Clean(name)
	d := f.dirs[filepath.Dir(name)]
	if d == nil {
		return errors.New("crashfs: no such directory")
	}
	own := slices.Clip(slices.Clone(data))
	made := &file{data: own, synced: own, shared: len(own), dirty: map[int]bool{}}
	d.entries[filepath.Base(name)], d.synced[filepath.Base(name)] = made, made
	return nil
}

// Clone returns a copy that shares nothing with f: a process that was killed leaves everything it has written.
func (f *FS) Clone() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	after := &FS{dirs: map[string]*dir{}, room: f.room, full: f.full}
	for path, d := range f.dirs {
		c := newDir(true)
		for name, inode := range d.entries {
			data := inode.share()
			c.entries[name] = &file{data: data, synced: data, shared: len(data), dirty: map[int]bool{}, reserved: inode.reserved}
		}
		c.synced = maps.Clone(c.entries)
		after.dirs[path] = c
	}
	return after
}
