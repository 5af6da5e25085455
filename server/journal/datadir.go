package journal

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"headgate/persistence"
	"headgate/persistence/aof"
	"headgate/server/config"
	"headgate/server/host"
)

// dataDirs are the directories that this server keeps to itself, since two servers that write the same files make each other forget.
// Nothing is written to a directory that it does not have. It is safe for concurrent use: its mutex is taken inside all others.
type dataDirs struct {
	mu      sync.Mutex
	holder  string // who has them, for others
	claimed string // the one that the configuration names, once this server writes there; empty before
	held    map[string]*heldDir
}

// heldDir is a directory with the number of those who need it.
type heldDir struct {
	lock persistence.Lock // nil where directories cannot be locked
	uses int
}

// writesData reports whether a server so configured writes files by itself. One that does not may still be told to.
func writesData(cfg *config.Config) bool { return cfg.AppendOnly || len(cfg.Save) > 0 }

// OpenData takes the data directory, and looks whether it can be written, if this server is going to write there.
func (j *Journal) OpenData(cfg *config.Config) error {
	j.TellAddresses(nil)
	if !writesData(cfg) {
		return nil
	}
	if err := j.claimDir(cfg.Dir); err != nil {
		return fmt.Errorf("%w: stop that, or choose another directory with --dir", err)
	}
	unwritable, err := checkDir(j.FS, cfg)
	switch {
	case err != nil:
		j.Dirs.Release()
		return err
	case unwritable != nil:
		j.Logger.Warn(Unwritable, "dir", cfg.Dir, "err", unwritable)
	}
	return nil
}

// Unwritable is what a start without appendonly says of a data directory in which no files can be made.
const Unwritable = "the data directory cannot be written: snapshots will fail, and so will a shutdown that saves one; once one has failed, commands that write are refused; correct its permissions, choose another with dir, or keep no snapshots with save \"\""

// CheckData looks whether a server so configured could write its data, by making files and removing them. The error is why a start ends; unwritable is
// what it only warns of, see [Unwritable].
func CheckData(fsys persistence.FS, cfg *config.Config) (unwritable, err error) {
	if unwritable, err = checkDir(fsys, cfg); err != nil || !cfg.AppendOnly || hasLog(fsys, cfg) {
		return unwritable, err
	}
	return unwritable, checkBeginning(fsys, cfg)
}

// hasLog reports whether there is an append-only file to load.
func hasLog(fsys persistence.FS, cfg *config.Config) bool {
	names, err := fsys.List(cfg.Path(cfg.AppendDirName))
	return err == nil && slices.Contains(names, aof.ManifestName(cfg.AppendFilename))
}

// checkBeginning looks whether there is room for a new append-only file.
func checkBeginning(fsys persistence.FS, cfg *config.Config) error {
	if err := persistence.CheckRoom(fsys, appendDir(fsys, cfg), aof.BeginsWith); err != nil {
		return fmt.Errorf("the append-only file cannot be begun, which takes %d MiB and what the data take: %w", aof.BeginsWith>>20, err)
	}
	return nil
}

// checkDir is CheckData for the directory alone.
func checkDir(fsys persistence.FS, cfg *config.Config) (unwritable, err error) {
	if !writesData(cfg) {
		return nil, nil
	}
	unwritable = checkWritable(fsys, cfg)
	if cfg.AppendOnly && unwritable != nil && !errors.Is(unwritable, syscall.ENOSPC) && !errors.Is(unwritable, syscall.EDQUOT) {
		return nil, fmt.Errorf("the data directory cannot be written, and appendonly is on: %w; correct its permissions, or choose another with --dir", unwritable)
	}
	return unwritable, nil
}

// checkWritable looks whether files can be made where a server so configured is going to make them.
func checkWritable(fsys persistence.FS, cfg *config.Config) error {
	err := persistence.CheckWritable(fsys, cfg.Dir)
	if inner := appendDir(fsys, cfg); err == nil && cfg.AppendOnly && inner != cfg.Dir {
		err = persistence.CheckWritable(fsys, inner)
	}
	return err
}

// appendDir is the directory of the append-only file, or the one that it is going to be made in.
func appendDir(fsys persistence.FS, cfg *config.Config) string {
	inner := cfg.Path(cfg.AppendDirName)
	if _, missing := fsys.List(inner); errors.Is(missing, os.ErrNotExist) {
		return cfg.Dir
	}
	return inner
}

// dirChanged takes the directory that a new configuration names in place of the one before. An append-only file is not begun where it could
// not be written.
func (j *Journal) dirChanged(old, cfg *config.Config) error {
	if !writesData(cfg) && !j.Dirs.claims() {
		return nil
	}
	if err := j.claimDir(cfg.Dir); err != nil {
		return err
	}
	if cfg.AppendOnly && !old.AppendOnly {
		if err := checkWritable(j.FS, cfg); err != nil {
			return fmt.Errorf("the data directory cannot be written: %w", err)
		}
		return checkBeginning(j.FS, cfg)
	}
	if cfg.Dir != old.Dir && j.isLeft(cfg) {
		j.Logger.Warn("the append-only file stays where it is, although dir has changed: a start with this dir would not find its data; "+
			"to move it, send CONFIG SET appendonly no, and then CONFIG SET appendonly yes", "is in", j.AOF.dir, "dir", cfg.Dir)
	}
	return nil
}

// isLeft reports whether the append-only file is not in the directory that the configuration names, and stays where it is. The caller holds the executor's
// lock.
func (j *Journal) isLeft(cfg *config.Config) bool {
	return cfg.AppendOnly && j.AOF.Open && cfg.Dir != j.AOF.dir && !j.moves(cfg)
}

// CheckDirKept returns why the dir of the configuration must not be what the next start has: that would not find the append-only file, and begin without
// data. The caller holds the executor's lock.
func (j *Journal) CheckDirKept() error {
	cfg := j.Config.Get()
	if !j.isLeft(cfg) {
		return nil
	}
	return fmt.Errorf("dir is %s, and the append-only file is still in %s, where the next start would not find it: "+
		"send CONFIG SET appendonly no, and then CONFIG SET appendonly yes, which begins it in dir, and then CONFIG REWRITE again", cfg.Dir, j.AOF.dir)
}

// claimDir takes the directory that the configuration names, and lets go of the one that it named before.
func (j *Journal) claimDir(dir string) error {
	d := &j.Dirs
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.claimed == dir {
		return d.renew(j, dir)
	}
	if err := d.take(j, dir); err != nil {
		return err
	}
	d.drop(d.claimed)
	d.claimed = dir
	return nil
}

// useDir takes a directory for as long as a file is written to it; each is to be followed by one call of leaveDir. From the first on
// the server has it even between two files.
func (j *Journal) useDir(dir string) error {
	d := &j.Dirs
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.claimed == "" {
		if err := d.take(j, dir); err != nil {
			return err
		}
		d.claimed = dir
	}
	return d.take(j, dir)
}

// leaveDir is the end of useDir.
func (j *Journal) leaveDir(dir string) {
	j.Dirs.mu.Lock()
	defer j.Dirs.mu.Unlock()
	j.Dirs.drop(dir)
}

// take adds a use of a directory.
func (d *dataDirs) take(j *Journal, dir string) error {
	if h := d.held[dir]; h != nil {
		if err := d.renew(j, dir); err != nil {
			return err
		}
		h.uses++
		return nil
	}
	for _, h := range d.held {
		if h.lock != nil && h.lock.Holds(dir) { // the same under another name
			h.uses++
			d.held[dir] = h
			return nil
		}
	}
	lock, err := j.FS.Lock(dir)
	var held *persistence.HeldError
	switch {
	case errors.As(err, &held):
		return err
	case err != nil:
		j.Logger.Warn("the data directory cannot be locked: make sure that no other server uses it", "dir", dir, "err", err)
		lock = nil
	default:
		_ = lock.Tell(d.holder) // that is for others to read; whether this server can write there is looked at elsewhere
	}
	if d.held == nil {
		d.held = map[string]*heldDir{}
	}
	d.held[dir] = &heldDir{lock, 1}
	return nil
}

// renew looks whether a directory that is held is still the one that was locked. Another in its place, with which nothing has been done yet,
// is locked instead. The caller holds mu.
func (d *dataDirs) renew(j *Journal, dir string) error {
	h := d.held[dir]
	if h == nil || h.lock == nil || h.lock.Holds(dir) {
		return nil
	}
	if h.uses > 1 { // files are being written in the one that has gone
		return fmt.Errorf("the data directory %s %w", dir, errDirGone)
	}
	lock, err := j.FS.Lock(dir)
	if err != nil {
		return fmt.Errorf("the data directory %s is no longer the one that was locked: %w", dir, err)
	}
	_ = lock.Tell(d.holder)
	h.close()
	h.lock = lock
	j.Logger.Warn("another data directory has taken the place of the one that was locked, and is locked now", "dir", dir)
	return nil
}

// errDirGone says what has become of a directory.
var errDirGone = errors.New("is no longer the one that this server has locked: it has been moved or deleted; put it back, or start again")

// stillHas reports why a directory with files that are being written must not be used by its path.
func (d *dataDirs) stillHas(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.held[dir]; h != nil && h.lock != nil && !h.lock.Holds(dir) {
		return fmt.Errorf("the data directory %s %w", dir, errDirGone)
	}
	return nil
}

// drop takes a use of a directory away.
func (d *dataDirs) drop(dir string) {
	h := d.held[dir]
	if h == nil {
		return
	}
	if h.uses--; h.uses > 0 {
		return
	}
	maps.DeleteFunc(d.held, func(_ string, other *heldDir) bool { return other == h })
	h.close()
}

func (h *heldDir) close() {
	if h.lock != nil {
		_ = h.lock.Close() // nothing was written through it
	}
}

// claims reports whether there is a directory that this server writes to.
func (d *dataDirs) claims() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.claimed != ""
}

// has reports whether nobody else writes to a directory.
func (d *dataDirs) has(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held[dir] != nil
}

// tell leaves word of who has the directories.
func (d *dataDirs) tell(holder string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holder = holder
	for _, h := range d.held {
		if h.lock != nil {
			_ = h.lock.Tell(holder)
		}
	}
}

// Release lets go of all directories: nothing is written any more.
func (d *dataDirs) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for dir, h := range d.held {
		delete(d.held, dir)
		h.close()
	}
	d.claimed = ""
}

// TellAddresses leaves word in the data directories of who has them: this process, which listens on these addresses.
func (j *Journal) TellAddresses(addresses []string) { j.Dirs.tell(holderText(addresses)) }

// holderText is what others are told of this process.
func holderText(addresses []string) string {
	text := fmt.Sprintf("process %d", host.Pid())
	if host, err := os.Hostname(); err == nil {
		text += " on " + host
	}
	if len(addresses) > 0 {
		text += ", which listens on " + strings.Join(addresses, " ")
	}
	return text
}
