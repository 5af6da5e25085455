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
func (s *Server) changes() uint64 { return s.keys.Changes() - s.saving.dirty }

// save begins to write a snapshot to dbfilename, by itself.
func (s *Server) save() {
	v := &s.saving
	v.active, v.scheduled, v.lastTry = true, false, s.clock.Mono()
	dirty, started := s.keys.Changes(), time.Now()
	dir, name := s.config.Get().Dir, s.config.Get().Path(s.config.Get().DBFilename)
	var file *persistence.Replacement
	var using bool
	s.startSnapshot(snapshotJob{
		what: "the snapshot",
		write: func(p []byte) (err error) {
			if file == nil {
				if err = s.useDir(dir); err != nil {
					return err
				}
				using = true
				if file, err = persistence.ReplaceLarge(s.fs, name, snapshotPerm); err != nil {
					return err
				}
			}
			_, err = file.Write(p)
			return err
		},
		finish: func(err error) error {
			if using {
				defer s.leaveDir(dir)
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
				s.log.Error("the snapshot was not saved", "file", name, "err", err)
			} else {
				v.last, v.dirty = s.clock.Read(), dirty
				v.lastMono = s.clock.Mono()
				v.count++
				s.log.Info("the snapshot is saved", "file", name, "took", v.took.Round(time.Microsecond))
			}
			s.checkSaving(s.config.Get())
		},
	})
}

// saveNow writes a snapshot and returns when it is done. The caller holds the executor's lock, and keeps it: nobody is served
// meanwhile.
func (s *Server) saveNow() error {
	if s.saving.partial {
		return errPartial
	}
	before := s.saving.failed
	s.save()
	s.finishSnapshot()
	if !s.saving.failed {
		return nil
	}
	s.saving.failed = before // whoever asked is told: it is failing by itself that has writes refused
	s.checkSaving(s.config.Get())
	return errSnapshotWrite
}

// savePoints begins a snapshot if one has been put off or a save point asks for it.
// now is by Clock.Mono.
func (s *Server) savePoints(now int64) {
	v := &s.saving
	if s.snapshot != nil || s.gate.has(gateBusy) || s.mayNotSave() {
		return
	}
	if v.scheduled {
		s.save()
		return
	}
	if v.failed && now-v.lastTry < int64(saveRetry) {
		return
	}
	changes := s.changes()
	for _, p := range s.config.Get().Save {
		if changes > 0 && changes >= uint64(p.Changes) && now-v.lastMono > int64(p.Seconds)*1e9 {
			s.log.Info("saving a snapshot, as a save point asks for", "changes", p.Changes, "seconds", p.Seconds)
			s.save()
			return
		}
	}
}

// errSaveFailed is what writes are answered with while snapshots fail.
const errSaveFailed = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
	"Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if " +
	"RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error."

// checkSaving recomputes whether writes have to be refused because snapshots fail.
func (s *Server) checkSaving(cfg *config.Config) {
	refusal := ""
	if s.saving.failed && cfg.StopWritesOnSaveError && len(cfg.Save) > 0 {
		refusal = errSaveFailed
	}
	s.gate.refuse(gateUnsaved, refusal)
}

// LoadSnapshot loads the file that dbfilename names, if it is there. It is called before Run.
func (s *Server) LoadSnapshot() error { return s.loadSnapshot(false) }

// loadSnapshot is LoadSnapshot; held tells that the executor's lock is.
func (s *Server) loadSnapshot(held bool) error {
	name := s.config.Get().Path(s.config.Get().DBFilename)
	file, err := s.fs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the snapshot cannot be opened: %w; correct dir and dbfilename, or the permissions", err)
	}
	defer file.Close()
	started := time.Now()
	l, err := s.loadRDB(file, loadOptions{held: held})
	if err != nil {
		return fmt.Errorf("the snapshot %s cannot be loaded: %w", name, err)
	}
	if !held {
		s.Lock()
		defer s.Unlock()
	}
	s.goOnFrom(l.nowMs)
	v := &s.saving
	v.dirty, v.loadKeys, v.loadExpired = s.keys.Changes(), l.keys, l.expired
	s.log.Info("the snapshot is loaded", "file", name, "keys", l.keys, "expired", l.expired, "took", time.Since(started).Round(time.Microsecond))
	return nil
}

// mayNotSave reports whether the keyspace is only a part of what the files on disk hold: while they are loaded, or because they could
// not be.
func (s *Server) mayNotSave() bool { return s.gate.has(gateLoading) || s.saving.partial }

// wantsSave reports whether the server saves a snapshot when it ends.
func (s *Server) wantsSave() bool {
	return len(s.config.Get().Save) > 0 && !s.leaveUnsaved && !s.mayNotSave()
}

// Shutdown saves a snapshot if there are save points, unless the flags say otherwise, and stops the server. If that fails the server
// goes on, unless it is forced to end. A script that overruns is waited for as long as shutdown-timeout says. Safe to call from anywhere.
func (s *Server) Shutdown(how config.ShutdownFlags) error {
	s.Lock()
	defer s.Unlock()
	if !s.awaitScript(s.config.Get().ShutdownTimeout) {
		s.log.Warn("shutdown-timeout is over: the script that runs is cut off, and no snapshot is saved")
		s.leaveUnsaved = true
		s.Stop()
		return nil
	}
	return s.end(how)
}

// end is Shutdown and SHUTDOWN when no script is in their way. The caller holds the executor's lock.
func (s *Server) end(how config.ShutdownFlags) error {
	s.leaveUnsaved, s.saveAtEnd = how&config.ShutdownNoSave != 0, how&config.ShutdownSave != 0
	s.cancelSnapshot()
	if s.saveAtEnd || s.wantsSave() {
		s.ending.Store(true)
		if err := s.saveNow(); err != nil && how&config.ShutdownForce == 0 {
			s.leaveUnsaved, s.saveAtEnd = false, false
			s.ending.Store(false)
			return err
		}
	}
	s.Stop()
	return nil
}

// awaitScript waits until no script overruns, for at most a time, and reports whether that is so. The executor's lock, which the
// caller holds, is free meanwhile.
func (s *Server) awaitScript(limit time.Duration) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for s.gate.has(gateBusy) && !s.stopping() {
		if s.idle == nil {
			s.idle = make(chan struct{})
		}
		idle := s.idle
		s.Unlock()
		over := false
		select {
		case <-idle:
		case <-s.stop:
		case <-deadline.C:
			over = true
		}
		s.Lock()
		if over {
			return !s.gate.has(gateBusy)
		}
	}
	return !s.gate.has(gateBusy)
}

// endSaving is called when nothing is served any more: it saves what has changed since Shutdown.
func (s *Server) endSaving() {
	s.Lock()
	defer s.Unlock()
	s.cancelSnapshot()
	if (s.wantsSave() || s.saveAtEnd && !s.mayNotSave()) && s.changes() > 0 {
		_ = s.saveNow() // the log has the reason; there is nobody left to tell
	}
}

// forgetSnapshot gives up a snapshot that is being saved, because all keys in it are about to be deleted.
func (s *Server) forgetSnapshot() {
	if s.saving.active {
		s.cancelSnapshot()
	}
}

// saveEmpty saves a snapshot after all keys have been deleted, if there are save points, so that no start brings them back.
func (s *Server) saveEmpty() {
	if len(s.config.Get().Save) > 0 && s.snapshot == nil {
		_ = s.saveNow() // the log has the reason
	}
}
