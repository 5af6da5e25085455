package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"headgate/persistence"
	"headgate/server/command"
	"headgate/server/config"
)

// saveRetry is how long after a snapshot that failed the next may begin by itself.
const saveRetry = 5 * time.Second

var (
	errPartial      = errors.New("the data have not been loaded to their end, so they are not saved")
	errKeepsNothing = errors.New("a gateway to an upstream keeps no data to save")
)

// snapshotPerm are the permission bits of a snapshot's file.
const snapshotPerm = 0o644

// Saving is what there is to know about the snapshots that are kept in dbfilename. The executor's lock guards it.
type Saving struct {
	Active    bool          // Journal.Snapshot is one of these
	scheduled bool          // one is to begin as soon as it may
	Last      int64         // when one was last done, in ns since the Unix epoch
	LastMono  int64         // the same by Clock.Mono
	lastTry   int64         // when one last began, by Clock.Mono
	Failed    bool          // the last one
	why       error         // why it did
	Took      time.Duration // the last one
	Count     int           // done since the start
	dirty     uint64        // Changes of the keyspace when the last one began
	LastExtra int           // the most bytes that the last one kept beside the data, about
	Partial   bool          // not all data have been loaded: what is in memory must not replace what is on the disk

	LoadKeys, LoadExpired int // of the snapshot that was loaded last, at a start or as an append-only file's base: keys, and those left out because their time had passed
}

// Changes is how many changes no snapshot has. The caller holds the executor's lock.
func (j *Journal) Changes() uint64 { return j.Keys.Changes() - j.Saving.dirty }

// beginSave begins to write a snapshot to dbfilename, by itself.
func (j *Journal) beginSave() {
	v := &j.Saving
	v.Active, v.scheduled, v.lastTry = true, false, j.Clock.Mono()
	dirty, started := j.Keys.Changes(), time.Now()
	dir, name := j.Config.Get().Dir, j.Config.Get().Path(j.Config.Get().DBFilename)
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
				if file, err = persistence.ReplaceLarge(j.FS, name, snapshotPerm); err != nil {
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
			v.Active, v.Took = false, time.Since(started)
			v.why = err
			if v.Failed = err != nil && !errors.Is(err, errSnapshotEnded); err != nil {
				j.Logger.Error("the snapshot was not saved", "file", name, "err", err)
			} else {
				v.Last, v.dirty = j.Clock.Read(), dirty
				v.LastMono = j.Clock.Mono()
				v.Count++
				j.Logger.Info("the snapshot is saved", "file", name, "took", v.Took.Round(time.Microsecond))
			}
			j.CheckSaving(j.Config.Get())
		},
	})
}

// SaveNow writes a snapshot and returns when it is done. The caller holds the executor's lock, and keeps it: nobody is served
// meanwhile.
func (j *Journal) SaveNow() error {
	switch {
	case j.Saving.Partial:
		return errPartial
	case j.keepsNothing():
		return errKeepsNothing
	}
	before := j.Saving.Failed
	j.beginSave()
	j.FinishSnapshot()
	if !j.Saving.Failed {
		return nil
	}
	j.Saving.Failed = before // whoever asked is told: it is failing by itself that has writes refused
	j.CheckSaving(j.Config.Get())
	return fmt.Errorf("the snapshot was not saved: %w", j.Saving.why)
}

// SavePoints begins a snapshot if one has been put off or a save point asks for it.
// now is by Clock.Mono. The caller holds the executor's lock.
func (j *Journal) SavePoints(now int64) {
	v := &j.Saving
	if j.Snapshot != nil || j.Gate.Has(command.GateBusy) || j.mayNotSave() {
		return
	}
	if v.scheduled {
		j.beginSave()
		return
	}
	if v.Failed && now-v.lastTry < int64(saveRetry) {
		return
	}
	changes := j.Changes()
	for _, p := range j.Config.Get().Save {
		if changes > 0 && changes >= uint64(p.Changes) && now-v.LastMono > int64(p.Seconds)*1e9 {
			j.Logger.Info("saving a snapshot, because a save point was reached", "changes", p.Changes, "seconds", p.Seconds)
			j.beginSave()
			return
		}
	}
}

// ErrSaveFailed is what writes are answered with while snapshots fail.
const ErrSaveFailed = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
	"Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if " +
	"RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error."

// CheckSaving recomputes whether writes have to be refused because snapshots fail. The caller holds the executor's lock, or nothing runs yet.
func (j *Journal) CheckSaving(cfg *config.Config) {
	refusal := ""
	if j.Saving.Failed && cfg.StopWritesOnSaveError && len(cfg.Save) > 0 {
		refusal = ErrSaveFailed
	}
	j.Gate.Refuse(command.GateUnsaved, refusal)
}

// LoadSnapshot loads the file that dbfilename names, if it is there. It is called while commands are answered that data are being
// loaded, without the executor's lock.
func (j *Journal) LoadSnapshot() error { return j.readSnapshot(false) }

// ReloadSnapshot is LoadSnapshot for a caller who holds the executor's lock: nobody is served meanwhile. The keyspace must be empty.
func (j *Journal) ReloadSnapshot() error { return j.readSnapshot(true) }

// readSnapshot is LoadSnapshot; held tells that the caller has the executor's lock and keeps it.
func (j *Journal) readSnapshot(held bool) error {
	name := j.Config.Get().Path(j.Config.Get().DBFilename)
	file, err := j.FS.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		j.warnOfDanglingLink(j.Config.Get())
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
	if !held && l.position.known {
		j.resume(l.position.Position)
	}
	j.Saving.dirty = j.Keys.Changes()
	j.Logger.Info("the snapshot is loaded", "file", name, "keys", l.keys, "expired", l.expired, "took", time.Since(started).Round(time.Microsecond))
	return nil
}

// mayNotSave reports whether the keyspace is only a part of what the files on disk hold: while they are loaded, or because they could
// not be.
func (j *Journal) mayNotSave() bool {
	return j.Gate.Has(command.GateLoading) || j.Saving.Partial || j.keepsNothing()
}

// keepsNothing reports whether this is a gateway: a snapshot of it would replace one that some server's data are in.
func (j *Journal) keepsNothing() bool { return j.Config.Get().Upstream != "" }

// wantsSave reports whether the server saves a snapshot when it ends.
func (j *Journal) wantsSave() bool {
	return len(j.Config.Get().Save) > 0 && !j.leaveUnsaved && !j.scripts.CutOff && !j.mayNotSave()
}

// Shutdown sees to an append-only file that is only being begun, saves a snapshot if there are save points, unless the flags say otherwise, and stops
// the server. If that fails the server goes on, unless it is forced to end. A script that overruns is waited for as long as shutdown-timeout says, and so is
// a file that has not been begun. Safe to call from anywhere.
func (j *Journal) Shutdown(how config.ShutdownFlags) error {
	until := time.Now().Add(j.Config.Get().ShutdownTimeout)
	j.Asked.Store(true) // a script that is running lets go of the lock
	j.Lock()
	defer j.Unlock()
	if !j.scripts.AwaitIdle(time.Until(until)) {
		if j.scripts.Wrote {
			j.Logger.Warn("shutdown-timeout has passed: the running script is aborted, and no snapshot is saved, since it would hold half of what the script has written")
		} else {
			j.Logger.Warn("shutdown-timeout has passed: the running script is aborted")
		}
		j.Stop() // and endSaving saves a snapshot, unless the script has written
		return nil
	}
	j.awaitFirst()
	err := j.End(how)
	if err != nil {
		j.Asked.Store(false)
	}
	return err
}

// End is Shutdown and SHUTDOWN when nothing is in their way. The caller holds the executor's lock.
func (j *Journal) End(how config.ShutdownFlags) error {
	j.leaveUnsaved, j.saveAtEnd = how&config.ShutdownNoSave != 0, how&config.ShutdownSave != 0
	j.Hurry.Store(how&config.ShutdownNow != 0)
	j.Ending.Store(true)
	err := j.finishFirst()
	if err != nil {
		j.Logger.Error("the append-only file is not complete, so that a start would not find the data in it", "err", err)
	}
	j.cancelSnapshot()
	forced := how&config.ShutdownForce != 0
	if (err == nil || forced) && (j.saveAtEnd && !j.keepsNothing() || j.wantsSave()) {
		err = j.SaveNow()
	}
	if err != nil && !forced {
		j.leaveUnsaved, j.saveAtEnd = false, false
		j.Ending.Store(false)
		return err
	}
	j.Stop()
	return nil
}

// endSaving is called when nothing is served any more: it saves what has changed since Shutdown.
func (j *Journal) endSaving() {
	j.Lock()
	defer j.Unlock()
	j.cancelSnapshot()
	if (j.wantsSave() || j.saveAtEnd && !j.mayNotSave()) && j.Changes() > 0 {
		_ = j.SaveNow() // the log has the reason; there is nobody left to tell
	}
}

// ForgetSnapshot gives up a snapshot that is being saved, because all keys in it are about to be deleted. The caller
// holds the executor's lock.
func (j *Journal) ForgetSnapshot() {
	if j.Saving.Active {
		j.cancelSnapshot()
	}
}

// SaveEmpty saves a snapshot after all keys have been deleted, if there are save points, so that no start brings them back.
// The caller holds the executor's lock.
func (j *Journal) SaveEmpty() {
	if len(j.Config.Get().Save) > 0 && j.Snapshot == nil {
		_ = j.SaveNow() // the log has the reason
	}
}
