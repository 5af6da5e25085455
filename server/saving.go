package server

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"headgate/persistence"
	"headgate/server/config"
)

// saveRetry is how long after a snapshot that failed the next may begin by itself.
const saveRetry = 5 * time.Second

var errPartial = errors.New("the data have not been loaded to their end, so they are not saved")

// snapshotPerm are the permission bits of a snapshot's file.
const snapshotPerm = 0o644

// saving is what there is to know about the snapshots that are kept in dbfilename. The executor's lock guards it.
type saving struct {
	active    bool // Server.snapshot is one of these
	scheduled bool // one is to begin as soon as it may
	last      int64
	lastMono  int64 // both in ns: when one was last done, since the Unix epoch and by Clock.Mono
	lastTry   int64 // when one last began, by Clock.Mono
	failed    bool  // the last one
	took      time.Duration
	count     int    // done since the start
	dirty     uint64 // Changes of the keyspace when the last one began
	lastExtra int    // the most bytes that the last one kept beside the data, about
	partial   bool   // not all data have been loaded: what is in memory must not replace what is on the disk

	loadKeys, loadExpired int // of the snapshot that was loaded at the start: keys, and those left out because their time had passed
}

// changes is how many changes no snapshot has.
func (j *Journal) changes() uint64 { return j.keys.Changes() - j.saving.dirty }

// beginSave begins to write a snapshot to dbfilename, by itself.
func (j *Journal) beginSave() {
	v := &j.saving
	v.active, v.scheduled, v.lastTry = true, false, j.clock.Mono()
	dirty, started := j.keys.Changes(), time.Now()
	dir, name := j.config.Get().Dir, j.config.Get().Path(j.config.Get().DBFilename)
	var file *persistence.Replacement
	var using bool
	j.startSnapshot(snapshotJob{
		what: "the snapshot",
		write: func(p []byte) (err error) {
			if file == nil {
				if err = j.useDir(dir); err != nil {
					return err
				}
				using = true
				if file, err = persistence.ReplaceLarge(j.fs, name, snapshotPerm); err != nil {
					return err
				}
			}
			_, err = file.Write(p)
			return err
		},
		finish: func(err error) error {
			if using {
				defer j.leaveDir(dir)
			}
			switch {
			case file == nil:
				return err
			case err != nil:
				file.Discard()
				return err
			}
			return file.Commit()
		},
		done: func(err error) {
			v.active, v.took = false, time.Since(started)
			if v.failed = err != nil && !errors.Is(err, errSnapshotEnded); err != nil {
				j.log.Error("the snapshot was not saved", "file", name, "err", err)
			} else {
				v.last, v.dirty = j.clock.Read(), dirty
				v.lastMono = j.clock.Mono()
				v.count++
				j.log.Info("the snapshot is saved", "file", name, "took", v.took.Round(time.Microsecond))
			}
			j.checkSaving(j.config.Get())
		},
	})
}

// saveNow writes a snapshot and returns when it is done. The caller holds the executor's lock, and keeps it: nobody is served
// meanwhile.
func (j *Journal) saveNow() error {
	if j.saving.partial {
		return errPartial
	}
	before := j.saving.failed
	j.beginSave()
	j.finishSnapshot()
	if !j.saving.failed {
		return nil
	}
	j.saving.failed = before // whoever asked is told: it is failing by itself that has writes refused
	j.checkSaving(j.config.Get())
	return errSnapshotWrite
}

// savePoints begins a snapshot if one has been put off or a save point asks for it.
// now is by Clock.Mono.
func (j *Journal) savePoints(now int64) {
	v := &j.saving
	if j.snapshot != nil || j.gate.has(gateBusy) || j.mayNotSave() {
		return
	}
	if v.scheduled {
		j.beginSave()
		return
	}
	if v.failed && now-v.lastTry < int64(saveRetry) {
		return
	}
	changes := j.changes()
	for _, p := range j.config.Get().Save {
		if changes > 0 && changes >= uint64(p.Changes) && now-v.lastMono > int64(p.Seconds)*1e9 {
			j.log.Info("saving a snapshot, as a save point asks for", "changes", p.Changes, "seconds", p.Seconds)
			j.beginSave()
			return
		}
	}
}

// errSaveFailed is what writes are answered with while snapshots fail.
const errSaveFailed = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
	"Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if " +
	"RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error."

// checkSaving recomputes whether writes have to be refused because snapshots fail.
func (j *Journal) checkSaving(cfg *config.Config) {
	refusal := ""
	if j.saving.failed && cfg.StopWritesOnSaveError && len(cfg.Save) > 0 {
		refusal = errSaveFailed
	}
	j.gate.refuse(gateUnsaved, refusal)
}

// LoadSnapshot loads the file that dbfilename names, if it is there. It is called before Run.
func (j *Journal) LoadSnapshot() error { return j.loadSnapshot(false) }

// loadSnapshot is LoadSnapshot; held tells that the executor's lock is.
func (j *Journal) loadSnapshot(held bool) error {
	name := j.config.Get().Path(j.config.Get().DBFilename)
	file, err := j.fs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the snapshot cannot be opened: %w; correct dir and dbfilename, or the permissions", err)
	}
	defer file.Close()
	started := time.Now()
	l, err := j.loadRDB(file, loadOptions{held: held})
	if err != nil {
		return fmt.Errorf("the snapshot %s cannot be loaded: %w", name, err)
	}
	if !held {
		j.Lock()
		defer j.Unlock()
	}
	j.resumeFrom(l.nowMs)
	v := &j.saving
	v.dirty, v.loadKeys, v.loadExpired = j.keys.Changes(), l.keys, l.expired
	j.log.Info("the snapshot is loaded", "file", name, "keys", l.keys, "expired", l.expired, "took", time.Since(started).Round(time.Microsecond))
	return nil
}

// mayNotSave reports whether the keyspace is only a part of what the files on disk hold: while they are loaded, or because they could
// not be.
func (j *Journal) mayNotSave() bool { return j.gate.has(gateLoading) || j.saving.partial }

// wantsSave reports whether the server saves a snapshot when it ends.
func (j *Journal) wantsSave() bool {
	return len(j.config.Get().Save) > 0 && !j.leaveUnsaved && !j.scripts.cutOff && !j.mayNotSave()
}

// Shutdown saves a snapshot if there are save points, unless the flags say otherwise, and stops the server. If that fails the server
// goes on, unless it is forced to end. A script that overruns is waited for as long as shutdown-timeout says. Safe to call from anywhere.
func (j *Journal) Shutdown(how config.ShutdownFlags) error {
	j.Lock()
	defer j.Unlock()
	if !j.scripts.awaitScript(j.config.Get().ShutdownTimeout) {
		j.log.Warn("shutdown-timeout is over: the script that runs is cut off, and no snapshot is saved")
		j.leaveUnsaved = true
		j.Stop()
		return nil
	}
	return j.end(how)
}

// end is Shutdown and SHUTDOWN when no script is in their way. The caller holds the executor's lock.
func (j *Journal) end(how config.ShutdownFlags) error {
	j.leaveUnsaved, j.saveAtEnd = how&config.ShutdownNoSave != 0, how&config.ShutdownSave != 0
	j.cancelSnapshot()
	if j.saveAtEnd || j.wantsSave() {
		j.ending.Store(true)
		if err := j.saveNow(); err != nil && how&config.ShutdownForce == 0 {
			j.leaveUnsaved, j.saveAtEnd = false, false
			j.ending.Store(false)
			return err
		}
	}
	j.Stop()
	return nil
}

// endSaving is called when nothing is served any more: it saves what has changed since Shutdown.
func (j *Journal) endSaving() {
	j.Lock()
	defer j.Unlock()
	j.cancelSnapshot()
	if (j.wantsSave() || j.saveAtEnd && !j.mayNotSave()) && j.changes() > 0 {
		_ = j.saveNow() // the log has the reason; there is nobody left to tell
	}
}

// forgetSnapshot gives up a snapshot that is being saved, because all keys in it are about to be deleted.
func (j *Journal) forgetSnapshot() {
	if j.saving.active {
		j.cancelSnapshot()
	}
}

// saveEmpty saves a snapshot after all keys have been deleted, if there are save points, so that no start brings them back.
func (j *Journal) saveEmpty() {
	if len(j.config.Get().Save) > 0 && j.snapshot == nil {
		_ = j.saveNow() // the log has the reason
	}
}
