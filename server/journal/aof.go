package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"headgate/persistence"
	"headgate/persistence/aof"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/observe"
)

// AppendOnly is the append-only file as it is written. What commands have changed is written before their replies go out: a worker that has run a
// batch of commands commits, and only then hands the replies over.
type AppendOnly struct {
	// files is held by whoever needs the set of files to stay as it is, or changes it: a rewrite from its beginning to its end, and DEBUG
	// LOADAOF. It is taken before commits.
	files sync.Mutex

	// commits is held while effects are on their way to the disk, so that they get there in their order. It is taken before the
	// executor's lock, never inside it, and guards what follows.
	commits sync.Mutex
	Set     *aof.Set // the files; nil: there are none
	dir     string   // where Set is
	Log     *aof.Log // nil: there is none
	pending []byte   // effects that could not be written yet
	spare   []byte   // memory for effects

	unreserved bool // the log has told that the file system keeps no room

	Syncer syncer // syncs what is written, in the background

	// The rest is guarded by the executor's lock.
	Open      bool     // there is a log
	notedMs   int64    // the time that stands in it last
	writing   bool     // effects have been taken to be written, and are not yet
	Failed    error    // why the last write did not succeed, or the disk has no room for the next; or unbegun
	unbegun   error    // why the file could not be begun that CONFIG SET has asked for, until it has been or nobody wants it any more
	Rewriter  rewriter // what is to be done about rewrites, and was done
	Size      int64    // of the files that are loaded
	Waiting   int      // bytes of effects that could not be written yet
	StartSize int64    // of the same when they were last written anew; after a start, of the base alone
}

// keptEffects bounds the memory that is kept for effects between two commits.
const keptEffects = 1 << 20

// maxPending bounds what keys that go by themselves may add to the effects that wait for the disk, in bytes. That is only so while limiters
// go on in memory alone: their keys are in no log, there may be any number of them, and the log is written anew in any case.
const maxPending = 16 << 20

// ErrDiskWrite is what writing commands are answered with while the append-only file cannot be written.
const ErrDiskWrite = "MISCONF Errors writing to the AOF file: "

// MayStand ends that error when it comes too late: a command has run before it turned out that what it has changed cannot be written.
const MayStand = "; what this call has changed may stand"

// LogOptions says where the append-only file is.
func LogOptions(fsys persistence.FS, cfg *config.Config) aof.Options {
	return aof.Options{
		FS: fsys, Dir: cfg.Path(cfg.AppendDirName), Name: cfg.AppendFilename, Old: filepath.Join(cfg.Dir, cfg.AppendFilename),
	}
}

// openLog begins to write the append-only file, which lacks a CRC from offset open on and whose base has so many bytes. The caller holds commits and
// not the executor's lock.
func (j *Journal) openLog(open, base int64) error {
	a := &j.AOF
	log, err := a.Set.Append()
	if err != nil {
		return err
	}
	if err := log.Seal(j.FS, open); err != nil {
		return fmt.Errorf("persistence: write %s: %w", log.Name(), err)
	}
	if err := log.Sync(); err != nil { // a server that was killed may have left what was never synced
		return fmt.Errorf("persistence: sync %s: %w", log.Name(), err)
	}
	a.Log = log
	short := j.reserve()
	a.Syncer.start(j, log)
	j.Lock()
	defer j.Unlock()
	a.Open, a.Size, a.StartSize = true, log.Size(), base
	j.Effects.Enable(log.Room())
	j.noteDisk(short)
	return nil
}

// reserve has the disk keep room for what is written next. The caller holds commits.
func (j *Journal) reserve() error {
	a := &j.AOF
	err := a.Log.Reserve(aof.Headroom)
	if err == nil && !a.Log.Reserves() && !a.unreserved {
		j.Logger.Warn("the file system cannot reserve space for the append-only file: when the disk is full, changes that are answered with MISCONF may stand", "file", a.Log.Name())
	}
	a.unreserved = err == nil && !a.Log.Reserves()
	return err
}

// CloseLog writes what is left, and what time it is, and closes the file.
func (j *Journal) CloseLog() { j.endLog(func() bool { return true }) }

// endLog is CloseLog if still says so, under the executor's lock, when all else has been done. It reports whether there was a file to close.
func (j *Journal) endLog(still func() bool) bool {
	j.commitNoting(true)
	a := &j.AOF
	a.commits.Lock()
	defer a.commits.Unlock()
	if a.Log == nil || !j.endEffects(still) {
		return false
	}
	j.closeFile(nil)
	return true
}

// endEffects has effects go to no file from now on if still says so. The caller holds commits.
func (j *Journal) endEffects(still func() bool) bool {
	j.Lock()
	defer j.Unlock()
	if !still() {
		return false
	}
	j.stopLogging()
	return true
}

// closeFile closes the file; unwritten is why not all of it could be written, or nil. The caller holds commits.
func (j *Journal) closeFile(unwritten error) {
	a := &j.AOF
	a.Syncer.End()
	if err := errors.Join(unwritten, a.Log.Close()); err != nil {
		j.Logger.Error("the end of the append-only file may be missing", "file", a.Log.Name(), "err", err)
	}
	a.Log, a.pending = nil, nil
}

// stopLogging has effects go to no file from now on. The caller holds commits and the executor's lock.
func (j *Journal) stopLogging() {
	j.AOF.Open = false
	j.Effects.Disable()
	j.refuseFor(j.AOF.unbegun)
}

// Unwritten implements exec.EffectLog. What is being written belongs to it, too.
func (j *Journal) Unwritten() bool { return j.AOF.Open && (len(j.Effects.Buf) > 0 || j.AOF.writing) }

// Commit implements exec.EffectLog: it has all effects so far written to the append-only file, and synced if appendfsync says so, before it returns. It
// returns the error for the commands that are not on the disk after all. The caller does not hold the executor's lock.
func (j *Journal) Commit() (refusal string) { return j.commitNoting(false) }

// commitNoting is Commit, which has the time noted even if there are no effects.
func (j *Journal) commitNoting(noteTime bool) (refusal string) {
	a := &j.AOF
	a.commits.Lock()
	defer a.commits.Unlock()
	j.Lock()
	batch := j.Effects.Take(a.spare)
	if batch != nil { // what comes next is collected in it
		a.spare = nil
	}
	nowMs, policy := j.Clock.Now/1e6, j.fsyncPolicy()
	a.writing = len(batch) > 0
	j.Effects.Room -= int64(len(batch))
	failed := a.Failed != nil
	j.Unlock()
	writes := len(batch) > 0 || len(a.pending) > 0 || noteTime
	if !writes { // what only replicas get, or nothing
		a.keep(batch)
	}
	if a.Log == nil || !writes && !failed {
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
	if a.writing, a.Size = false, a.Log.Size(); writes {
		a.notedMs = nowMs
	}
	j.Effects.Room = a.Log.Room()
	j.Effects.Crowded = len(a.pending) > maxPending && j.limits.Unlogged.Missing()
	a.Waiting = len(a.pending)
	j.watchWrite(took)
	j.rewriteIfGrown(j.Config.Get())
	j.noteDisk(short)
	if err != nil {
		return diskRefusal(err) + MayStand
	}
	return ""
}

// writeBatch writes effects, behind those that could not be written before, and keeps what cannot be. The caller holds commits.
func (j *Journal) writeBatch(batch []byte, nowMs int64, policy config.FsyncPolicy) (took logTimes, err error) {
	a := &j.AOF
	taken := batch
	if len(a.pending) > 0 {
		a.pending = append(a.pending, batch...)
		batch = a.pending
	}
	took, err = j.writeLog(batch, nowMs, policy)
	switch {
	case err == nil:
		a.pending = nil
	case len(a.pending) == 0:
		a.pending = append([]byte(nil), batch...)
	}
	a.keep(taken)
	return took, err
}

// keep has later effects be collected where a batch was that nobody needs any more. The caller holds commits.
func (a *AppendOnly) keep(batch []byte) {
	if batch != nil && cap(batch) <= keptEffects {
		a.spare = batch[:0]
	}
}

// MakeRoom implements exec.EffectLog.
func (j *Journal) MakeRoom(n int) (refusal string) {
	a := &j.AOF
	a.commits.Lock()
	defer a.commits.Unlock()
	if a.Log == nil {
		return ""
	}
	j.Lock()
	n += len(j.Effects.Buf)
	j.Unlock()
	err := a.Log.Reserve(int64(n))
	var short error
	if err != nil {
		refusal = diskRefusal(err)
		short = j.reserve()
	}
	j.Lock()
	defer j.Unlock()
	j.Effects.Room = a.Log.Room()
	if short != nil {
		j.noteDisk(short)
	}
	return refusal
}

// fsyncPolicy is appendfsync, or no while a rewrite is under way that is not to be disturbed. The caller holds the executor's lock.
func (j *Journal) fsyncPolicy() config.FsyncPolicy {
	cfg := j.Config.Get()
	if cfg.NoAppendFsyncOnRewrite && j.AOF.Rewriter.Rewriting {
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
	a := &j.AOF
	var begun, written time.Time
	watched := j.recorder.WatchesLatency()
	if watched {
		begun, took.syncing = time.Now(), a.Syncer.PendingSync() > 0
	}
	if err := a.Log.Write(batch, nowMs); err != nil {
		return took, err
	}
	if policy == config.FsyncEverysec {
		a.Syncer.written()
	}
	if watched {
		written = time.Now()
		took.write = written.Sub(begun)
	}
	if policy == config.FsyncAlways {
		if err := a.Log.Sync(); err != nil {
			j.die("the append-only file could not be synced, as appendfsync always demands; nothing is certain about the last writes", "file", a.Log.Name(), "err", err)
		}
		if watched {
			took.sync = time.Since(written)
		}
	}
	return took, nil
}

// watchWrite enters a write to the append-only file among the spikes of latency, if it belongs there. The caller holds the executor's lock.
func (j *Journal) watchWrite(took logTimes) {
	kind := observe.EventWriteAlone
	switch {
	case took.syncing:
		kind = observe.EventWritePendingSync
	case j.Snapshot != nil:
		kind = observe.EventWriteActiveChild
	}
	j.recorder.WatchLatency(observe.EventWrite, took.write)
	j.recorder.WatchLatency(kind, took.write)
	j.recorder.WatchLatency(observe.EventSyncAlways, took.sync)
}

// noteDisk takes note of whether the disk takes what is written, and refuses commands that write as long as it does not. The caller holds
// the executor's lock.
func (j *Journal) noteDisk(err error) {
	a := &j.AOF
	if err == nil {
		err = a.unbegun
	}
	switch {
	case err != nil && a.Failed == nil:
		j.Logger.Error("the append-only file cannot be written: commands that write are refused until it can", "err", err)
	case err == nil && a.Failed != nil:
		j.Logger.Info("the append-only file can be written again")
	}
	j.refuseFor(err)
}

// refuseFor has commands that write refused for an error, and nil end that. The caller holds the executor's lock.
func (j *Journal) refuseFor(err error) {
	j.AOF.Failed = err
	refusal := ""
	if err != nil {
		refusal = diskRefusal(err)
	}
	j.Gate.Refuse(command.GateDisk, refusal)
}

// diskRefusal is the error for commands that write while the append-only file cannot be written.
func diskRefusal(err error) string { return ErrDiskWrite + systemText(err) }

// systemText is an error in the system's words, without the operation and the file.
func systemText(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		text := errno.Error()
		return string(text[0]&^0x20) + text[1:] // as C has it
	}
	return command.OneLine(err.Error())
}

// noteEvery is how often the time is noted in the log while the clock is ahead of the wall, in ms: it is all that a start has to go on
// with then.
const noteEvery = 1000

// CommitDue implements exec.EffectLog: it commits what background work has changed, tries again what could not be written, and notes the time if need be.
func (j *Journal) CommitDue() {
	j.Lock()
	a := &j.AOF
	due := a.Open && (len(j.Effects.Whole()) > 0 || a.Failed != nil)
	noteTime := a.Open && j.Clock.Ahead() && j.Clock.Now/1e6-a.notedMs >= noteEvery
	j.Unlock()
	if due || noteTime {
		j.commitNoting(noteTime)
	}
}

// die ends the process with a message.
func (j *Journal) die(message string, details ...any) {
	j.Logger.Error(message, details...)
	j.Exit(1)
}
