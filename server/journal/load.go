package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"time"

	"headgate/persistence"
	"headgate/persistence/aof"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/exec"
)

// loadNow is the time, in ms since the Unix epoch, at which keys are looked up while a log is replayed: so early that nothing
// expires, since what did expire has left its DEL in the log.
const loadNow = 1

// ErrLoading is what most commands are answered with until all data are loaded.
const ErrLoading = "LOADING Redis is loading the dataset in memory"

// loadLogEvery is the time between two lines in the log about the progress of loading.
const loadLogEvery = 5 * time.Second

// Loading is how far the loading of data has come. The executor's lock guards it.
type Loading struct {
	Started       int64     // ns since the Unix epoch; 0: nothing is being loaded
	begun         time.Time // the same
	Total, Loaded int64     // bytes of all files, and those that have been read
}

// Load begins to load the data, from the append-only file if the configuration says so and else from the snapshot. It returns at once; until that is done
// most commands are answered that data are being loaded. Data that cannot be loaded end the process, with a message.
func (j *Journal) Load() {
	j.Lock()
	j.BeginLoading()
	j.Unlock()
	go func() {
		load := j.LoadSnapshot
		if j.Config.Get().AppendOnly {
			load = j.LoadAOF
		} else {
			j.warnOfUnusedLog(j.Config.Get())
		}
		if j.Dirs.has(j.Config.Get().Dir) {
			j.removeUnfinished()
		}
		err := load()
		switch {
		case errors.Is(err, errStopped):
			return // and what has been loaded is forgotten
		case errors.As(err, new(notBegun)):
			j.die("the append-only file cannot be created, and there are no data yet: make room on the disk or correct what the error says, or start with appendonly no", "err", err)
		case err != nil:
			j.die("the data cannot be loaded", "err", err)
		}
		j.Lock()
		j.EndLoading()
		j.Unlock()
		j.ready()
	}()
}

// warnOfUnusedLog tells of an append-only file that is passed over, since appendonly is no: who has turned that off by mistake would find older data, or none.
func (j *Journal) warnOfUnusedLog(cfg *config.Config) {
	if !hasLog(j.FS, cfg) {
		return
	}
	loaded := "nothing"
	if names, err := j.FS.List(cfg.Dir); err == nil && slices.Contains(names, cfg.DBFilename) {
		loaded = cfg.DBFilename
	}
	j.Logger.Warn("there is an append-only file, and it is not loaded, since appendonly is no: to use its data, start with appendonly yes",
		"dir", cfg.Path(cfg.AppendDirName), "loaded", loaded)
}

// warnOfUnusedSnapshot tells of a snapshot beside an append-only file that has no data, since it has only now been begun, or by the last start: as in
// redis-server, who has just turned appendonly on has none of the snapshot's, and loses them by the next one.
func (j *Journal) warnOfUnusedSnapshot(cfg *config.Config) {
	names, err := j.FS.List(cfg.Dir)
	if err != nil || !slices.Contains(names, cfg.DBFilename) {
		return
	}
	j.Logger.Warn("the snapshot is not loaded, since appendonly is yes and the append-only file has no data: the server begins empty, and its next snapshot overwrites this one; "+
		"to keep the data, send SHUTDOWN NOSAVE, start with appendonly no, and then send CONFIG SET appendonly yes",
		"snapshot", cfg.Path(cfg.DBFilename), "begun", cfg.Path(cfg.AppendDirName))
}

// warnOfDanglingLink tells of a link in the place of the snapshot that leads to no file, as to a disk that is not mounted. redis-server begins empty, too.
func (j *Journal) warnOfDanglingLink(cfg *config.Config) {
	names, err := j.FS.List(cfg.Dir)
	if err != nil || !slices.Contains(names, cfg.DBFilename) {
		return
	}
	j.Logger.Warn("the snapshot is a link to a file that is missing: there are no data to load, and the next snapshot takes the link's place", "snapshot", cfg.Path(cfg.DBFilename))
}

// LoadNothing tells that there are no data to load.
func (j *Journal) LoadNothing() { j.ready() }

// removeUnfinished deletes the snapshots that were being written when the server was killed: the one of the data, and one for replicas.
func (j *Journal) removeUnfinished() {
	cfg := j.Config.Get()
	j.removeSnapshot(cfg.Path(cfg.DBFilename) + persistence.TempSuffix)
	j.removeSnapshot(cfg.Path(sendFile))
}

// removeSnapshot deletes an unfinished one, if it is there.
func (j *Journal) removeSnapshot(name string) {
	switch err := j.FS.Remove(name); {
	case err == nil:
		j.Logger.Warn("an unfinished snapshot is deleted", "file", name)
	case !errors.Is(err, fs.ErrNotExist) && j.isFile(name): // a file system that is read-only refuses to delete what is not there
		j.Logger.Warn("an unfinished snapshot could not be deleted", "err", err)
	}
}

// isFile reports whether there is a file of that name, as far as can be told.
func (j *Journal) isFile(name string) bool {
	f, err := j.FS.Open(name)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	f.Close()
	return true
}

// BeginLoading has most commands answered that data are being loaded. The caller holds the executor's lock.
func (j *Journal) BeginLoading() {
	j.Loading = Loading{Started: j.Clock.Read(), begun: time.Now()}
	j.Gate.Refuse(command.GateLoading, ErrLoading)
}

// EndLoading has commands served again. The caller holds the executor's lock.
func (j *Journal) EndLoading() {
	j.Loading = Loading{}
	j.Gate.Refuse(command.GateLoading, "")
}

// notBegun is an error of beginning the append-only file where there was none.
type notBegun struct{ error }

// Unwrap is for package errors.
func (e notBegun) Unwrap() error { return e.error }

// LoadAOF loads the append-only file and opens it for what comes. It is called between BeginLoading and EndLoading, without the executor's
// lock.
func (j *Journal) LoadAOF() error {
	a := &j.AOF
	a.commits.Lock()
	defer a.commits.Unlock()
	set, err := j.openSet()
	if err != nil {
		return err
	}
	r, none := &replay{journal: j, set: set}, set.Empty()
	if err := r.all(); err != nil {
		return err
	}
	if unnamed := set.Unnamed(); len(unnamed) > 0 {
		j.Logger.Warn("files that the manifest does not name are removed", "files", unnamed)
	}
	if err := set.Clean(); err != nil {
		j.Logger.Warn("obsolete files could not be deleted", "err", err)
	}
	if err := j.openLog(r.open, r.base); err != nil {
		if none {
			return notBegun{err}
		}
		return err
	}
	if r.commands == 0 && r.base == 0 {
		j.warnOfUnusedSnapshot(j.Config.Get())
	}
	j.Lock()
	defer j.Unlock()
	took := time.Since(j.Loading.begun)
	j.Logger.Info("the append-only file is loaded", "commands", r.commands, "keys", j.Keys.Stats().Keys, "took", took)
	j.Saving.dirty = j.Keys.Changes()
	if r.gapFrom == noGap {
		j.resume(r.position)
	}
	j.Stats.Reset()
	j.limits.ResetCounts()
	return nil
}

// openSet takes the data directory and reads which files the append-only file in it has. The caller holds commits or files.
func (j *Journal) openSet() (*aof.Set, error) {
	a, cfg := &j.AOF, j.Config.Get()
	if err := j.useDir(cfg.Dir); err != nil {
		return nil, err
	}
	set, err := aof.Open(LogOptions(j.FS, cfg))
	if err != nil {
		j.leaveDir(cfg.Dir)
		return nil, err
	}
	a.Set, a.dir = set, cfg.Dir
	return set, nil
}

// ReloadAOF deletes all keys and loads the append-only file again, which goes on as it is. The caller does not hold the executor's lock,
// and has all others answered that data are being loaded. After an error there is only a part of the data, of which no file is made.
func (j *Journal) ReloadAOF() error {
	j.AOF.files.Lock()
	defer j.AOF.files.Unlock()
	if refusal := j.Commit(); refusal != "" {
		return errors.New(refusal)
	}
	a := &j.AOF
	a.commits.Lock()
	defer a.commits.Unlock()
	if a.Log == nil {
		return errors.New("it has been ended meanwhile")
	}
	j.Lock()
	j.Effects.Disable()
	j.Effects.Mute()
	j.Empty()
	j.Unlock()
	err := (&replay{journal: j, set: a.Set}).all()
	j.Lock()
	defer j.Unlock()
	j.Effects.Enable(a.Log.Room())
	j.Saving.dirty, j.Saving.Partial = j.Keys.Changes(), err != nil
	return err
}

// Empty deletes all keys and functions, and tells no log of it. The caller holds the executor's lock.
func (j *Journal) Empty() {
	j.hub.InvalidateAll()
	j.Keys.FlushAll()
	j.scripts.Engine.FlushLibraries()
}

// replay runs the commands of the append-only file.
type replay struct {
	journal  *Journal
	set      *aof.Set
	queue    *exec.Replay
	commands int64
	nowMs    int64 // the latest time in the files
	open     int64 // from where the last file lacks a CRC
	base     int64 // bytes of the base

	args     [][]byte                  // memory for the arguments of a command
	at       [exec.BatchCommands]int64 // the places of the queued commands in the file
	reported time.Time                 // when the log last told of the progress

	position aof.Position // where the file says that the data are, behind the last command; the zero Position: it does not

	gapFrom    int64 // from this place in the file on changes are missing that commands may build on, see aof.IsGap
	passedOver int   // commands behind such a place that could not be run
}

// noGap is beyond every place in a file.
const noGap = math.MaxInt64

// hintDamaged is what to do about a damaged file.
const hintDamaged = "make a copy of the directory, look at it with `headgate check DIR`, and restore a backup or cut the file with `headgate check DIR --fix`"

// all loads every file of the set.
func (r *replay) all() error {
	j := r.journal
	r.queue, r.gapFrom, r.reported = j.exec.NewReplay(), noGap, time.Now()
	files := r.set.Files()
	last := 0 // the last file with anything in it: those behind it have been created for what was to come
	for i, e := range files {
		f, err := j.FS.Open(r.set.Path(e.Name))
		if err != nil {
			return fmt.Errorf("the manifest names a file that cannot be opened: %w", err)
		}
		j.Lock()
		j.Loading.Total += f.Size()
		j.Unlock()
		if f.Size() > 0 {
			last = i
		}
		if e.Kind == aof.Base {
			r.base = f.Size()
		}
		f.Close()
	}
	for i, e := range files {
		if err := r.file(e, i >= last); err != nil {
			return err
		}
		if r.gapFrom != noGap {
			r.gapFrom = 0 // of the next file
		}
	}
	if r.passedOver > 0 {
		j.Logger.Warn("commands of the append-only file were skipped", "commands", r.passedOver)
	}
	j.Lock()
	defer j.Unlock()
	j.resumeFrom(r.nowMs)
	return nil
}

// resumeFrom has time go on from where it was when the data were written last, in ms since the Unix epoch, if the wall is behind that. The
// caller holds the executor's lock.
func (j *Journal) resumeFrom(ms int64) {
	if ms < math.MaxInt64/1_000_000 && j.Clock.AtLeast(ms*1e6) {
		j.Logger.Warn("the clock is behind the time of the last write: time continues from there, at half speed until the clock has caught up",
			"written", time.UnixMilli(ms).UTC())
	}
}

// file loads one file. Only the last one may end too early or have a damaged end.
func (r *replay) file(e aof.Entry, last bool) error {
	path := r.set.Path(e.Name)
	f, err := r.journal.FS.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if e.IsEmptied(f.Size()) {
		return fmt.Errorf("%s: %s", path, aof.Emptied)
	}
	start, err := r.snapshot(f, path)
	if err != nil {
		return err
	}
	report, err := aof.Scan(f, start)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if report.Flaw != nil {
		if err := r.checkFlaw(path, &e, report, last); err != nil {
			return err
		}
	}
	r.nowMs, r.open = max(r.nowMs, report.NowMs), report.Open
	if err := r.replay(f, path, start, report.Whole); err != nil {
		return err
	}
	if report.Flaw != nil {
		r.position = aof.Position{}
		var kept string
		if r.open, kept, err = aof.Mend(r.journal.FS, path, report); err != nil {
			return fmt.Errorf("cut %s at offset %d: %w", path, report.Whole, err)
		}
		if kept != "" {
			r.journal.Logger.Warn("what was cut off the append-only file is kept: it may hold changes that were acknowledged", "file", kept, "bytes", report.Size-report.Whole)
		}
	}
	return nil
}

// checkFlaw decides whether a file with a flaw is used as far as it goes.
func (r *replay) checkFlaw(path string, e *aof.Entry, report *aof.Report, last bool) error {
	flaw := report.Flaw
	switch {
	case !last:
		return fmt.Errorf("%s, which is not the last file: %w; %s", path, flaw, hintDamaged)
	case !e.Cuttable(report):
		return fmt.Errorf("%s: %w; it may be a damaged snapshot, so it is not cut: take it from a backup", path, flaw)
	case !r.journal.Config.Get().AOFLoadTruncated:
		return fmt.Errorf("%s: %w; %s, or set aof-load-truncated yes", path, flaw, hintDamaged)
	case !report.Salvageable():
		return fmt.Errorf("%s: %w, with %d bytes from offset %d on; %s", path, flaw, report.Size-report.Whole, report.Whole, hintDamaged)
	}
	what := "the end of the append-only file is incomplete: it is truncated"
	if report.Behind {
		what = "the append-only file is damaged near its end: it is truncated there"
	}
	r.journal.Logger.Warn(what, "file", path, "why", flaw.Why, "offset", report.Whole,
		"bytes given up", report.Size-report.Whole)
	return nil
}

// snapshotMagic is what a file in the format of snapshots begins with.
const snapshotMagic = "REDIS"

// snapshot loads the snapshot that a file may begin with, and returns where the commands begin.
func (r *replay) snapshot(f persistence.ReadFile, path string) (end int64, err error) {
	var magic [len(snapshotMagic)]byte
	if _, err := f.ReadAt(magic[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	if string(magic[:]) != snapshotMagic {
		return 0, nil
	}
	r.journal.Lock()
	before := r.journal.Loading.Loaded
	r.journal.Unlock()
	l, err := r.journal.loadRDB(io.NewSectionReader(f, 0, f.Size()), loadOptions{keepExpired: true, progress: func(n int64) { r.journal.Loading.Loaded = before + n }})
	if err != nil {
		return 0, fmt.Errorf("the snapshot in %s cannot be loaded: %w", path, err)
	}
	r.nowMs = max(r.nowMs, l.nowMs)
	r.journal.Lock()
	r.journal.Loading.Loaded = before + l.bytes
	r.journal.Unlock()
	return l.bytes, nil
}

// replay runs the commands between two offsets of a file.
func (r *replay) replay(f io.ReaderAt, path string, from, to int64) error {
	in := aof.NewReader(io.NewSectionReader(f, from, to-from), from)
	r.queue.Rewind()
	for {
		more, err := r.gather(in)
		if err == nil {
			err = r.run()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if r.journal.IsStopping() {
			return errStopped
		}
		r.progress(in.Offset() - from)
		if !more {
			break
		}
	}
	r.journal.Lock()
	r.journal.Loading.Loaded += to - from
	r.journal.Unlock()
	return nil
}

// progress tells the log now and then how far it has come in a file.
func (r *replay) progress(bytes int64) {
	if time.Since(r.reported) < loadLogEvery {
		return
	}
	r.reported = time.Now()
	r.journal.Lock()
	done, total := r.journal.Loading.Loaded+bytes, r.journal.Loading.Total
	r.journal.Unlock()
	r.journal.Logger.Info("loading the append-only file", "done", fmt.Sprintf("%.0f%%", 100*float64(done)/float64(max(total, 1))))
}

// gather queues commands. It reports false when there are no more.
func (r *replay) gather(in *aof.Reader) (more bool, err error) {
	for !r.queue.Full() {
		at := in.Offset()
		args, note, err := in.Next(r.args[:0])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, err
		}
		if aof.IsGap(note) {
			r.gapFrom = min(r.gapFrom, at)
		}
		if p, ok := aof.ReadPosition(note); ok {
			r.position = p
		} else if args != nil {
			r.position = aof.Position{}
		}
		if note != nil || args == nil || aof.IsBracket(args) {
			continue // what is loaded is whole units, and nobody sees the middle of one
		}
		r.args, r.at[r.queue.Len()] = args, at
		r.queue.Add(args)
	}
	return r.queue.Len() > 0, nil
}

// run runs the queued commands.
func (r *replay) run() error {
	r.journal.Lock()
	defer r.journal.Unlock()
	r.commands += int64(r.queue.Len())
	return r.queue.Run(loadNow, func(u exec.Unreplayed) error {
		at := r.at[u.Index]
		if !u.Failed || at < r.gapFrom {
			return fmt.Errorf("the command %q at offset %d cannot be replayed: %s", u.Name, at, u.Why)
		}
		if r.passedOver++; r.passedOver == 1 {
			r.journal.Logger.Warn("a command of the append-only file cannot be replayed and is skipped: it depends on changes that limiters kept in memory while the disk could not be written",
				"command", string(u.Name), "offset", at, "why", u.Why)
		}
		return nil
	})
}
