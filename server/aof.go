package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"headgate/persistence"
	"headgate/persistence/aof"
	"headgate/server/config"
)

// appendOnly is the append-only file as it is written. What commands have changed is written before their replies go out: a worker that has run a
// batch of commands commits, and only then hands the replies over.
type appendOnly struct {
	// files is held by whoever needs the set of files to stay as it is, or changes it: a rewrite from its beginning to its end, and DEBUG
	// LOADAOF. It is taken before commits.
	files sync.Mutex

	// commits is held while effects are on their way to the disk, so that they get there in their order. It is taken before the
	// executor's lock, never inside it, and guards what follows.
	commits sync.Mutex
	set     *aof.Set
	dir     string   // where set is
	log     *aof.Log // nil: there is none
	pending []byte   // effects that could not be written yet
	spare   []byte   // memory for effects

	unreserved bool // the log has told that the file system keeps no room

	syncer syncer

	// The rest is guarded by the executor's lock.
	open      bool  // there is a log
	notedMs   int64 // the time that stands in it last
	writing   bool  // effects have been taken to be written, and are not yet
	failed    error // why the last write did not succeed, or the disk has no room for the next
	rewriter  rewriter
	size      int64 // of the files that are loaded
	startSize int64 // of the same when they were last written anew, or loaded
}

// keptEffects bounds the memory that is kept for effects between two commits.
const keptEffects = 1 << 20

// errDiskWrite is what writing commands are answered with while the append-only file cannot be written.
const errDiskWrite = "MISCONF Errors writing to the AOF file: "

// mayStand ends that error when it comes too late: a command has run before it turned out that what it has changed cannot be written.
const mayStand = "; what this call has changed may stand"

// aofOptions says where the append-only file is.
func aofOptions(fsys persistence.FS, cfg *config.Config) aof.Options {
	return aof.Options{
		FS: fsys, Dir: cfg.Path(cfg.AppendDirName), Name: cfg.AppendFilename, Old: filepath.Join(cfg.Dir, cfg.AppendFilename),
	}
}

// openLog begins to write the append-only file, which lacks a CRC from offset open on. The caller holds commits and not the executor's lock.
func (j *Journal) openLog(open int64) error {
	a := &j.aof
	log, err := a.set.Append()
	if err != nil {
		return err
	}
	if err := log.Seal(j.fs, open); err != nil {
		return fmt.Errorf("persistence: write %s: %w", log.Name(), err)
	}
	if err := log.Sync(); err != nil { // a server that was killed may have left what was never synced
		return fmt.Errorf("persistence: sync %s: %w", log.Name(), err)
	}
	a.log = log
	short := j.reserve()
	a.syncer.start(j, log)
	j.Lock()
	defer j.Unlock()
	a.open, a.size, a.startSize = true, log.Size(), log.Size()
	j.effects.enable(log.Room())
	j.noteDisk(short)
	return nil
}

// reserve has the disk keep room for what is written next. The caller holds commits.
func (j *Journal) reserve() error {
	a := &j.aof
	err := a.log.Reserve(aof.Headroom)
	if err == nil && !a.log.Reserves() && !a.unreserved {
		j.log.Warn("the file system keeps no room for the append-only file: when the disk is full, changes that are answered MISCONF may stand", "file", a.log.Name())
	}
	a.unreserved = err == nil && !a.log.Reserves()
	return err
}

// closeLog writes what is left, and what time it is, and closes the file.
func (j *Journal) closeLog() {
	j.commitNoting(true)
	a := &j.aof
	a.commits.Lock()
	defer a.commits.Unlock()
	if a.log == nil {
		return
	}
	a.syncer.end()
	if err := a.log.Close(); err != nil {
		j.log.Error("the append-only file may lack its end", "file", a.log.Name(), "err", err)
	}
	a.log, a.pending = nil, nil
	j.Lock()
	defer j.Unlock()
	a.open, a.failed = false, nil
	j.effects.disable()
	j.gate.refuse(gateDisk, "")
}

// Unwritten implements effectLog. What is being written belongs to it, too.
func (j *Journal) Unwritten() bool { return j.aof.open && (len(j.effects.buf) > 0 || j.aof.writing) }

// Commit implements effectLog: it has all effects so far written to the append-only file, and synced if appendfsync says so, before it returns. It
// returns the error for the commands that are not on the disk after all. The caller does not hold the executor's lock.
func (j *Journal) Commit() (refusal string) { return j.commitNoting(false) }

// commitNoting is Commit, which has the time noted even if there are no effects.
func (j *Journal) commitNoting(noteTime bool) (refusal string) {
	a := &j.aof
	a.commits.Lock()
	defer a.commits.Unlock()
	j.Lock()
	batch := j.effects.take(a.spare)
	nowMs, policy := j.clock.now/1e6, j.fsyncPolicy()
	a.writing = len(batch) > 0
	j.effects.room -= int64(len(batch))
	failed := a.failed != nil
	j.Unlock()
	writes := len(batch) > 0 || len(a.pending) > 0 || noteTime
	if a.log == nil || !writes && !failed {
		return ""
	}
	var took logTimes
	var err error
	if writes {
		took, err = j.writeBatch(batch, nowMs, policy)
	}
	short := err
	if err == nil {
		short = j.reserve()
	}
	j.Lock()
	defer j.Unlock()
	if a.writing, a.size = false, a.log.Size(); writes {
		a.notedMs = nowMs
	}
	j.effects.room = a.log.Room()
	j.watchWrite(took)
	j.rewriteIfGrown(j.config.Get())
	j.noteDisk(short)
	if err != nil {
		return diskRefusal(err) + mayStand
	}
	return ""
}

// writeBatch writes effects, behind those that could not be written before, and keeps what cannot be. The caller holds commits.
func (j *Journal) writeBatch(batch []byte, nowMs int64, policy config.FsyncPolicy) (took logTimes, err error) {
	a := &j.aof
	taken := batch
	if len(a.pending) > 0 {
		a.pending = append(a.pending, batch...)
		batch = a.pending
	}
	took, err = j.writeLog(batch, nowMs, policy)
	a.spare = nil
	if cap(taken) <= keptEffects {
		a.spare = taken
	}
	switch {
	case err == nil:
		a.pending = nil
	case len(a.pending) == 0:
		a.pending = append([]byte(nil), batch...)
	}
	return took, err
}

// MakeRoom implements effectLog.
func (j *Journal) MakeRoom(n int) (refusal string) {
	a := &j.aof
	a.commits.Lock()
	defer a.commits.Unlock()
	if a.log == nil {
		return ""
	}
	j.Lock()
	n += len(j.effects.buf)
	j.Unlock()
	err := a.log.Reserve(int64(n))
	var short error
	if err != nil {
		refusal = diskRefusal(err)
		short = j.reserve()
	}
	j.Lock()
	defer j.Unlock()
	j.effects.room = a.log.Room()
	if short != nil {
		j.noteDisk(short)
	}
	return refusal
}

// fsyncPolicy is appendfsync, or no while a rewrite is under way that is not to be disturbed. The caller holds the executor's lock.
func (j *Journal) fsyncPolicy() config.FsyncPolicy {
	cfg := j.config.Get()
	if cfg.NoAppendFsyncOnRewrite && j.aof.rewriter.rewriting {
		return config.FsyncNo
	}
	return cfg.AppendFsync
}

// logTimes is how long a write to the append-only file took; all 0 while spikes of latency are not watched.
type logTimes struct {
	write   time.Duration // with the wait for syncs that are behind
	sync    time.Duration // under always; 0 otherwise
	syncing bool          // when it began, a sync was under way in the background
}

// writeLog writes effects and, under always, syncs them. An error there ends the process: whether they are on the disk is not
// known then, and asking the system again would not tell.
func (j *Journal) writeLog(batch []byte, nowMs int64, policy config.FsyncPolicy) (took logTimes, err error) {
	a := &j.aof
	var begun, written time.Time
	watched := j.recorder.watchesLatency()
	if watched {
		begun, took.syncing = time.Now(), a.syncer.pendingSync() > 0
	}
	if err := a.log.Write(batch, nowMs); err != nil {
		return took, err
	}
	if policy == config.FsyncEverysec {
		a.syncer.written()
	}
	if watched {
		written = time.Now()
		took.write = written.Sub(begun)
	}
	if policy == config.FsyncAlways {
		if err := a.log.Sync(); err != nil {
			j.die("the append-only file could not be synced, as appendfsync always demands; nothing is certain about the last writes", "file", a.log.Name(), "err", err)
		}
		if watched {
			took.sync = time.Since(written)
		}
	}
	return took, nil
}

// watchWrite enters a write to the append-only file among the spikes of latency, if it belongs there. The caller holds the executor's lock.
func (j *Journal) watchWrite(took logTimes) {
	kind := eventWriteAlone
	switch {
	case took.syncing:
		kind = eventWritePendingSync
	case j.snapshot != nil:
		kind = eventWriteActiveChild
	}
	j.recorder.watchLatency(eventWrite, took.write)
	j.recorder.watchLatency(kind, took.write)
	j.recorder.watchLatency(eventSyncAlways, took.sync)
}

// noteDisk takes note of whether the disk takes what is written, and refuses commands that write as long as it does not. The caller holds
// the executor's lock.
func (j *Journal) noteDisk(err error) {
	a := &j.aof
	switch {
	case err != nil && a.failed == nil:
		j.log.Error("the append-only file cannot be written: commands that write are refused until it can", "err", err)
	case err == nil && a.failed != nil:
		j.log.Info("the append-only file can be written again")
	}
	a.failed = err
	refusal := ""
	if err != nil {
		refusal = diskRefusal(err)
	}
	j.gate.refuse(gateDisk, refusal)
}

// diskRefusal is the error for commands that write while the append-only file cannot be written.
func diskRefusal(err error) string { return errDiskWrite + systemText(err) }

// systemText is an error in the system's words, without the operation and the file.
func systemText(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		text := errno.Error()
		return string(text[0]&^0x20) + text[1:] // as C has it
	}
	return oneLine(err.Error())
}

// noteEvery is how often the time is noted in the log while the clock is ahead of the wall, in ms: it is all that a start has to go on
// with then.
const noteEvery = 1000

// CommitDue implements effectLog: it commits what background work has changed, tries again what could not be written, and notes the time if need be.
func (j *Journal) CommitDue() {
	j.Lock()
	a := &j.aof
	due := a.open && (len(j.effects.whole()) > 0 || a.failed != nil)
	noteTime := a.open && j.clock.Ahead() && j.clock.now/1e6-a.notedMs >= noteEvery
	j.Unlock()
	if due || noteTime {
		j.commitNoting(noteTime)
	}
}

// die ends the process with a message.
func (j *Journal) die(message string, details ...any) {
	j.log.Error(message, details...)
	j.exit(1)
}
