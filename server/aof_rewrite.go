package server

import (
	"errors"
	"time"

	"headgate/persistence/aof"
	"headgate/server/config"
)

// A rewrite replaces the append-only file by a snapshot and what has changed since. One goroutine, the rewriter, does it, and begins
// and ends the file when CONFIG SET asks for that. It holds the executor's lock for no longer than it takes to begin a snapshot; the
// keys are told to it in slices, as for every snapshot, and no worker waits for its files.

// rewriter is what the rewriter is to do and what it has done. The executor's lock guards it.
type rewriter struct {
	running   bool          // the goroutine is there
	ending    bool          // it is to end
	wake      chan struct{} // of capacity 1
	asked     bool          // a rewrite is to begin
	rewriting bool
	begun     time.Time
	failedAt  time.Time // of the last rewrite that failed, if none has succeeded since
	err       error     // of the last one
	last      time.Duration
	rewrites  int
	over      chan struct{}
}

// rewriteRetry is the time between a rewrite that failed and the next one that is begun by itself.
const rewriteRetry = 5 * time.Second

// wakeRewriter has the rewriter look at what there is to do. The caller holds the executor's lock.
func (j *Journal) wakeRewriter() {
	w := &j.aof.rewriter
	if !w.running {
		w.running, w.wake, w.over = true, make(chan struct{}, 1), make(chan struct{})
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
	if !j.gate.has(gateLoading) {
		j.aof.rewriter.failedAt = time.Time{} // what was asked for anew need not wait
		j.wakeRewriter()
	}
}

// askRewrite has the append-only file written anew. The caller holds the executor's lock.
func (j *Journal) askRewrite() {
	j.aof.rewriter.asked = true
	j.wakeRewriter()
}

// retryRewrite has the rewriter try again what it could not do when it was asked: a rewrite as soon as nothing is in its way, and appendonly,
// of which beginning the file may have failed a while ago. What limiters have kept while the disk took nothing gets into the file so. The caller holds the executor's lock.
func (j *Journal) retryRewrite() {
	w := &j.aof.rewriter
	if j.aof.open && !j.gate.has(gateDisk) && j.limits.unlogged.takeMissing() {
		w.asked = true
	}
	if w.rewriting || j.snapshot != nil || j.mayNotSave() {
		return
	}
	if w.asked || j.config.Get().AppendOnly != j.aof.open && time.Since(w.failedAt) >= rewriteRetry {
		j.wakeRewriter()
	}
}

// rewriteIfGrown asks for a rewrite when the file has grown enough since the last. The caller holds the executor's lock.
func (j *Journal) rewriteIfGrown(cfg *config.Config) {
	a := &j.aof
	w := &a.rewriter
	if !a.open || w.asked || w.rewriting || cfg.AutoAOFRewritePercentage == 0 || a.size < int64(cfg.AutoAOFRewriteMinSize) ||
		a.failed != nil || time.Since(w.failedAt) < rewriteRetry {
		return
	}
	base := max(a.startSize, 1)
	if growth := a.size*100/base - 100; growth >= int64(cfg.AutoAOFRewritePercentage) {
		j.log.Info("the append-only file has grown enough to be written anew", "growth", growth)
		j.askRewrite()
	}
}

// runRewriter is the rewriter.
func (j *Journal) runRewriter() {
	w := &j.aof.rewriter
	defer close(w.over)
	for range w.wake {
		j.Lock()
		wanted, open := j.config.Get().AppendOnly, j.aof.open
		w.asked = w.asked && wanted && open
		asked, busy, ending := w.asked, j.snapshot != nil || j.mayNotSave(), w.ending
		j.Unlock()
		switch {
		case ending:
			return
		case open && !wanted:
			j.closeLog()
			j.forgetSet()
			j.log.Info("the append-only file is ended")
		case (asked || wanted && !open) && !busy:
			j.rewrite(open)
		}
	}
}

// forgetSet leaves the files of an append-only file that has been ended: the next may be in another directory.
func (j *Journal) forgetSet() {
	j.aof.files.Lock()
	defer j.aof.files.Unlock()
	j.leaveSet()
}

// leaveSet is forgetSet for a caller who holds files.
func (j *Journal) leaveSet() {
	a := &j.aof
	a.commits.Lock()
	defer a.commits.Unlock()
	if a.log == nil && a.set != nil {
		a.set = nil
		j.leaveDir(a.dir)
	}
}

// endRewriter ends the rewriter, and a rewrite that is under way. The caller does not hold the executor's lock.
func (j *Journal) endRewriter() {
	j.Lock()
	w := &j.aof.rewriter
	w.ending = true
	running := w.running
	if w.rewriting {
		j.cancelSnapshot()
	}
	j.Unlock()
	if running {
		w.poke()
		<-w.over
	}
}

// rewrite writes the file anew; open tells that there is one that goes on.
func (j *Journal) rewrite(open bool) {
	a := &j.aof
	started := time.Now()
	base, err := j.rewriteOnce(open)
	j.Lock()
	defer j.Unlock()
	w := &a.rewriter
	w.rewriting = false
	if errors.Is(err, errNotNow) {
		if !j.config.Get().AppendOnly {
			return // nobody wants the file any more
		}
		w.failedAt = time.Now() // retryRewrite tries again
		if !open {
			j.log.Warn("the append-only file cannot be begun yet", "err", err)
		}
		return
	}
	w.err, w.last = err, time.Since(started)
	if err != nil {
		w.failedAt = time.Now()
		if open {
			j.log.Error("the append-only file could not be written anew; it goes on as it was", "err", err)
		} else {
			j.log.Error("the append-only file could not be begun, and nothing is logged; it is tried again", "err", err)
		}
		return
	}
	w.failedAt = time.Time{}
	w.rewrites++
	a.size = a.log.Size()
	a.startSize = a.size
	j.log.Info("the append-only file has been written anew", "bytes", base, "took", w.last)
}

// rewriteOnce does it, and returns the size of the new base.
func (j *Journal) rewriteOnce(open bool) (base int64, err error) {
	a := &j.aof
	a.files.Lock()
	defer a.files.Unlock()
	defer func() {
		if err != nil && !open {
			j.closeLog()
			j.leaveSet()
		}
	}()
	if a.set == nil {
		if _, err = j.openSet(); err != nil {
			return 0, err
		}
	} else if err = j.dirs.stillHas(a.dir); err != nil {
		return 0, err
	}
	r, err := a.set.Rewrite(open)
	if err != nil {
		return 0, err
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
	if err != nil {
		r.Discard()
		return 0, err
	}
	a.log.Rebase(base)
	if err := a.set.Clean(); err != nil {
		j.log.Warn("files that are not needed any more could not be deleted", "err", err)
	}
	return base, nil
}

// syncFailed ends the process: what is on the disk is not known.
func (j *Journal) syncFailed() error {
	j.die("the append-only file could not be synced; nothing is certain about the last writes", "file", j.aof.log.Name())
	return errNotNow
}

var errNotNow = errors.New("a script, a snapshot, loading or a full disk is in the way")

// beginRewrite begins the snapshot, and has what changes from then on written to the new increment. finish, if it is not nil, closes the one
// before; result tells how the snapshot has ended.
func (j *Journal) beginRewrite(r *aof.Rewrite, open bool) (finish func() error, result chan error, err error) {
	a := &j.aof
	if open && a.log.Sync() != nil { // so that little is left to be synced while writers wait
		return nil, nil, j.syncFailed()
	}
	a.commits.Lock()
	defer a.commits.Unlock()
	j.Lock()
	cfg := j.config.Get()
	if a.rewriter.ending || j.effects.depth > 0 || j.snapshot != nil || j.mayNotSave() || a.failed != nil || !cfg.AppendOnly && !open {
		j.Unlock()
		return nil, nil, errNotNow
	}
	batch, nowMs := j.effects.take(nil), j.clock.now/1e6
	result = make(chan error, 1)
	w := &a.rewriter
	w.asked, w.rewriting, w.begun = false, true, time.Now()
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
	j.effects.enable(r.Room())
	j.Unlock()
	if !open {
		a.log = a.set.NewLog(r)
		a.syncer.start(j, a.log)
		j.Lock()
		a.open = true
		j.noteDisk(nil)
		j.Unlock()
		return nil, result, nil
	}
	if len(batch) > 0 {
		_, err = j.writeLog(batch, nowMs, cfg.AppendFsync)
	}
	// A power cut must not leave what comes in the new file without all that is in the old one.
	if err == nil && a.log.Sync() != nil {
		return nil, nil, j.syncFailed()
	}
	if err != nil { // what the snapshot has is not in the file before it: that has to go on
		a.pending = append(a.pending, batch...)
		j.Lock()
		j.effects.room = a.log.Room()
		j.noteDisk(err)
		j.cancelSnapshot()
		j.Unlock()
		return nil, nil, err
	}
	return a.log.Switch(r), result, nil
}
