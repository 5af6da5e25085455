package journal

import (
	"errors"
	"time"

	"headgate/persistence/aof"
	"headgate/server/command"
	"headgate/server/config"
)

// A rewrite replaces the append-only file by a snapshot and what has changed since. One goroutine, the rewriter, does it, and begins
// and ends the file when CONFIG SET asks for that. It holds the executor's lock for no longer than it takes to begin a snapshot; the
// keys are told to it in slices, as for every snapshot, and no worker waits for its files.

// rewriter is what the rewriter is to do and what it has done. The executor's lock guards it.
type rewriter struct {
	Running   bool          // the goroutine is there
	ending    bool          // it is to end
	turned    bool          // CONFIG SET appendonly has come since the goroutine has looked
	wake      chan struct{} // of capacity 1
	Asked     bool          // a rewrite is to begin
	Rewriting bool          // one is under way
	mends     bool          // the file so far lacks what limiters have kept in memory; the one that is being written has it
	Begun     time.Time     // when the last one began
	placed    chan struct{} // closed when the base of a file that has just been begun is in its place, or will not be; nil: none has been begun
	placeErr  error         // why it will not be; set before placed is closed
	failedAt  time.Time     // of the last rewrite that failed, if none has succeeded since
	failures  int           // rewrites that failed since then
	Err       error         // of the last one
	Last      time.Duration // how long the last one took
	Rewrites  int           // those that have succeeded
	Over      chan struct{} // closed when the goroutine has ended
}

const (
	rewriteRetry    = 5 * time.Second // the time between a rewrite that failed and the next one that is begun by itself
	rewriteRetryMax = time.Hour       // the same after many that failed: twice as long each time, up to this
	rewriteMendMax  = 5 * time.Minute // the same while the file lacks what limiters have kept in memory: a restart would forget that
)

// rests reports whether the next rewrite that begins by itself is not due, since the last has failed, with longest as the longest pause. While there is
// no file that goes on that is rewriteRetry: writes are refused.
func (w *rewriter) rests(longest time.Duration) bool {
	return time.Since(w.failedAt) < min(rewriteRetry<<min(max(w.failures-1, 0), 16), longest)
}

// wakeRewriter has the rewriter look at what there is to do. The caller holds the executor's lock.
func (j *Journal) wakeRewriter() {
	w := &j.AOF.Rewriter
	if !w.Running {
		w.Running, w.wake, w.Over = true, make(chan struct{}, 1), make(chan struct{})
		go j.runRewriter()
	}
	w.poke()
}

func (w *rewriter) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// appendOnlyChanged has the rewriter look at the new configuration, which holds when the executor's lock is free again. The caller holds it.
func (j *Journal) appendOnlyChanged() {
	if !j.Gate.Has(command.GateLoading) {
		j.AOF.Rewriter.failedAt = time.Time{} // what was asked for anew need not wait
		j.AOF.Rewriter.turned = true
		j.wakeRewriter()
	}
}

// AskRewrite has the append-only file written anew. The caller holds the executor's lock.
func (j *Journal) AskRewrite() {
	j.AOF.Rewriter.Asked = true
	j.wakeRewriter()
}

// RetryRewrite has the file rewritten if it has grown enough by what the configuration says now, even if nothing is written any more, and the rewriter try
// again what it could not do when it was asked: a rewrite as soon as nothing is in its way, and appendonly,
// of which beginning the file may have failed a while ago. What limiters have kept while the disk took nothing gets into the file so. The caller holds the executor's lock.
func (j *Journal) RetryRewrite() {
	w := &j.AOF.Rewriter
	j.rewriteIfGrown(j.Config.Get())
	if j.AOF.Open && !j.Gate.Has(command.GateDisk) && j.limits.Unlogged.Missing() && !w.rests(rewriteMendMax) {
		w.Asked = true
	}
	if w.Rewriting || j.Snapshot != nil || j.mayNotSave() {
		return
	}
	if w.Asked || j.Config.Get().AppendOnly != j.AOF.Open && !w.rests(rewriteRetry) {
		j.wakeRewriter()
	}
}

// rewriteIfGrown asks for a rewrite when the file has grown enough since the last. The caller holds the executor's lock.
func (j *Journal) rewriteIfGrown(cfg *config.Config) {
	a := &j.AOF
	w := &a.Rewriter
	if !a.Open || w.Asked || w.Rewriting || cfg.AutoAOFRewritePercentage == 0 || a.Size < int64(cfg.AutoAOFRewriteMinSize) ||
		a.Failed != nil || w.rests(rewriteRetryMax) {
		return
	}
	base := max(a.StartSize, 1)
	if growth := a.Size*100/base - 100; growth >= int64(cfg.AutoAOFRewritePercentage) {
		j.Logger.Info("the append-only file has grown enough to be rewritten", "growth", growth)
		j.AskRewrite()
	}
}

// runRewriter is the rewriter.
func (j *Journal) runRewriter() {
	w := &j.AOF.Rewriter
	defer close(w.Over)
	for range w.wake {
		j.Lock()
		wanted, open, moves := j.Config.Get().AppendOnly, j.AOF.Open, j.moves(j.Config.Get())
		w.turned = moves // until it has ended
		if !wanted && j.AOF.unbegun != nil {
			j.AOF.unbegun = nil
			j.refuseFor(nil)
		}
		w.Asked = w.Asked && wanted && open
		asked, busy, ending := w.Asked, j.Snapshot != nil || j.mayNotSave(), w.ending
		j.Unlock()
		switch {
		case ending:
			return
		case open && (!wanted || moves):
			if j.endLog(j.unwanted) {
				j.forgetSet()
				j.Logger.Info("the append-only file is turned off")
			}
		case (asked || wanted && !open) && !busy:
			j.rewrite(open)
		}
	}
}

// moves reports whether CONFIG SET appendonly has ended the file and asked for it again in another directory, and neither has been done. The caller holds the
// executor's lock.
func (j *Journal) moves(cfg *config.Config) bool {
	return j.AOF.Rewriter.turned && cfg.AppendOnly && j.AOF.Open && cfg.Dir != j.AOF.dir
}

// Begins reports whether the append-only file that is wanted has still to be begun. The caller holds the executor's lock.
func (j *Journal) Begins(cfg *config.Config) bool {
	return cfg.AppendOnly && !j.AOF.Open || j.moves(cfg)
}

// unwanted reports whether the file is to end, and not wanted again where it is since the rewriter has looked. Then it goes on: it would be ended after
// CONFIG SET appendonly yes has been answered, and INFO has told that nothing is to be done any more. The caller holds commits and the executor's lock.
func (j *Journal) unwanted() bool {
	cfg := j.Config.Get()
	return !cfg.AppendOnly || cfg.Dir != j.AOF.dir
}

// forgetSet leaves the files of an append-only file that has been ended: the next may be in another directory.
func (j *Journal) forgetSet() {
	j.AOF.files.Lock()
	defer j.AOF.files.Unlock()
	j.leaveSet()
}

// leaveSet is forgetSet for a caller who holds files.
func (j *Journal) leaveSet() {
	a := &j.AOF
	a.commits.Lock()
	defer a.commits.Unlock()
	if a.Log == nil && a.Set != nil {
		a.Set = nil
		j.leaveDir(a.dir)
	}
}

// EndRewriter ends the rewriter, and a rewrite that is under way. The caller does not hold the executor's lock.
func (j *Journal) EndRewriter() {
	j.Lock()
	w := &j.AOF.Rewriter
	w.ending = true
	running := w.Running
	if w.Rewriting {
		j.cancelSnapshot()
	}
	j.Unlock()
	if running {
		w.poke()
		<-w.Over
	}
}

// rewrite writes the file anew; open tells that there is one that goes on.
func (j *Journal) rewrite(open bool) {
	a := &j.AOF
	started := time.Now()
	base, size, err := j.rewriteOnce(open)
	j.Lock()
	defer j.Unlock()
	w := &a.Rewriter
	w.Rewriting, w.placed = false, nil
	a.Syncer.yields.Store(false)
	if err != nil && w.mends {
		j.limits.Unlogged.SetMissing(true)
	}
	w.mends = false
	if errors.Is(err, errNotNow) || !open && errors.Is(err, errSnapshotEnded) { // the latter for other data, which need a file of their own
		if !j.Config.Get().AppendOnly {
			return // nobody wants the file any more
		}
		w.failedAt = time.Now() // RetryRewrite tries again
		if !open {
			j.Logger.Warn("the append-only file cannot be created yet", "err", err)
		}
		return
	}
	w.Err, w.Last = err, time.Since(started)
	if err != nil {
		w.failures++
		w.failedAt, w.Asked = time.Now(), false // whoever wants it still asks again, after a while
		if open {
			j.Logger.Error("the append-only file could not be rewritten; the old one stays in use", "err", err)
		} else {
			j.Logger.Error("the append-only file could not be created, and nothing is logged; the server will try again", "err", err)
			if j.Config.Get().AppendOnly {
				a.unbegun = err // what is written would be lost, though the configuration says that it is logged
				j.noteDisk(nil)
			}
		}
		return
	}
	w.failedAt, w.failures, a.unbegun = time.Time{}, 0, nil // the next commit sees that the disk takes what is written
	w.Rewrites++
	a.Size, a.StartSize = size, size
	j.Logger.Info("the append-only file has been rewritten", "bytes", base, "took", w.Last)
}

// rewriteOnce does it, and returns the size of the new base, and of all files.
func (j *Journal) rewriteOnce(open bool) (base, size int64, err error) {
	a := &j.AOF
	a.files.Lock()
	defer a.files.Unlock()
	defer func() {
		if err != nil && !open {
			j.CloseLog()
			j.leaveSet()
		}
	}()
	if open != j.logs() || j.hindered(open) { // it was begun or ended while this waited for the files; or nothing needs to be created for that
		return 0, 0, errNotNow
	}
	if a.Set == nil {
		if _, err = j.openSet(); err != nil {
			return 0, 0, err
		}
	} else if err = j.Dirs.stillHas(a.dir); err != nil {
		return 0, 0, err
	}
	r, err := a.Set.Rewrite(open)
	if err != nil {
		return 0, 0, err
	}
	finish, result, err := j.beginRewrite(r, open)
	if err == nil {
		if finish != nil {
			_ = finish() // it is synced
		}
		err = <-result
	}
	if err == nil {
		base, err = r.Commit()
	}
	if w := &a.Rewriter; w.placed != nil {
		w.placeErr = err
		close(w.placed)
	}
	if err != nil {
		r.Discard()
		return 0, 0, err
	}
	a.Log.Rebase(base)
	size = a.Log.Size() // while nobody can end it
	if err := a.Set.Clean(); err != nil {
		j.Logger.Warn("obsolete files could not be deleted", "err", err)
	}
	return base, size, nil
}

// logs reports whether there is a log. The caller holds files.
func (j *Journal) logs() bool {
	j.AOF.commits.Lock()
	defer j.AOF.commits.Unlock()
	return j.AOF.Log != nil
}

// mayNotRewrite reports whether something is in the way of a rewrite. The caller holds the executor's lock.
func (j *Journal) mayNotRewrite(open bool) bool {
	return j.AOF.Rewriter.ending || j.Effects.Depth > 0 || j.Snapshot != nil || j.mayNotSave() || !open && !j.Config.Get().AppendOnly
}

// hindered is mayNotRewrite for a caller who does not hold the lock.
func (j *Journal) hindered(open bool) bool {
	j.Lock()
	defer j.Unlock()
	return j.mayNotRewrite(open)
}

// syncFailed ends the process: what is on the disk is not known.
func (j *Journal) syncFailed() error {
	j.die("the append-only file could not be synced; nothing is certain about the last writes", "file", j.AOF.Log.Name())
	return errNotNow
}

var errNotNow = errors.New("a script, a snapshot, loading or a full disk is in the way")

// beginRewrite begins the snapshot, and has what changes from then on written to the new increment. finish, if it is not nil, closes the one
// before; result tells how the snapshot has ended.
func (j *Journal) beginRewrite(r *aof.Rewrite, open bool) (finish func() error, result chan error, err error) {
	a := &j.AOF
	if open && a.Log.Sync() != nil { // so that little is left to be synced while writers wait
		return nil, nil, j.syncFailed()
	}
	a.commits.Lock()
	defer a.commits.Unlock()
	j.Lock()
	cfg := j.Config.Get()
	if j.mayNotRewrite(open) || open && a.Failed != nil {
		j.Unlock()
		return nil, nil, errNotNow
	}
	batch, nowMs := j.Effects.Take(nil), j.Clock.Now/1e6
	result = make(chan error, 1)
	w := &a.Rewriter
	w.Asked, w.Rewriting, w.Begun = false, true, time.Now()
	a.Syncer.yields.Store(true)
	if !open {
		w.placed = make(chan struct{})
	}
	w.mends = j.limits.Unlogged.Missing()
	j.limits.Unlogged.SetMissing(false)
	j.startSnapshot(snapshotJob{
		what: "the append-only file's new base", base: true,
		write: func(p []byte) error { _, err := r.Write(p); return err },
		finish: func(err error) error {
			if err != nil {
				return err
			}
			return r.End()
		},
		done: func(err error) { result <- err },
	})
	j.Effects.Enable(r.Room())
	if !open {
		defer j.Unlock()
		a.Log = a.Set.NewLog(r)
		a.Syncer.start(j, a.Log)
		a.Open = true
		j.noteDisk(nil)
		return nil, result, nil
	}
	j.Unlock()
	if len(batch) > 0 {
		_, err = j.writeLog(batch, nowMs, cfg.AppendFsync)
	}
	// A power cut must not leave what comes in the new file without all that is in the old one.
	if err == nil && a.Log.Sync() != nil {
		return nil, nil, j.syncFailed()
	}
	if err != nil { // what the snapshot has is not in the file before it: that has to go on
		a.pending = append(a.pending, batch...)
		j.Lock()
		j.Effects.Room = a.Log.Room()
		j.noteDisk(err)
		j.cancelSnapshot()
		j.Unlock()
		return nil, nil, err
	}
	return a.Log.Switch(r), result, nil
}
