package journal

import (
	"errors"
	"time"
)

// An append-only file that CONFIG SET has asked for, or that is begun anew after the data were replaced, is loaded by no start before its base is
// there: until then what is acknowledged is in memory alone, whatever is in the increment. So a server that is told to end sees to the base first.

// firstPause is the time between two looks whether the append-only file has been begun.
const firstPause = 10 * time.Millisecond

// errNoFile is why a server does not end.
var errNoFile = errors.New("the append-only file has not been begun, so the data are in memory only: try again, or turn it off by CONFIG SET appendonly no")

// lacksFirst reports whether there is to be an append-only file and no start would load it. The caller holds the executor's lock.
func (j *Journal) lacksFirst() bool {
	a := &j.AOF
	return j.Config.Get().AppendOnly && !j.mayNotSave() && (!a.Open || a.Rewriter.placed != nil)
}

// awaitFirst returns when a file that is lacking has been begun, or cannot be, or shutdown-timeout has passed. The caller holds the executor's lock, which
// is free meanwhile.
func (j *Journal) awaitFirst() {
	w := &j.AOF.Rewriter
	before := w.failures
	for until := time.Now().Add(j.Config.Get().ShutdownTimeout); j.lacksFirst() && !j.AOF.Open && time.Now().Before(until); {
		if w.failures > before {
			return
		}
		j.cancelSnapshot() // which is in its way, and would be given up in any case
		j.wakeRewriter()
		j.Unlock()
		time.Sleep(firstPause)
		j.Lock()
	}
}

// finishFirst returns when there is no file that a start would not load, or the error. It waits for all of the base, as SAVE does for a snapshot. The
// caller holds the executor's lock, and keeps it: nobody is served meanwhile.
func (j *Journal) finishFirst() error {
	w := &j.AOF.Rewriter
	switch {
	case !j.lacksFirst():
		return nil
	case w.placed == nil:
		if !j.IsStopping() {
			j.wakeRewriter()
		}
		return errNoFile
	}
	if j.Snapshot != nil && j.Snapshot.job.base {
		j.FinishSnapshot()
	}
	<-w.placed
	return w.placeErr
}

// endFirst is called when nothing is served any more: a server that ended while a script was in its way, or that was forced to, may lack the file.
func (j *Journal) endFirst() {
	j.Lock()
	defer j.Unlock()
	if !j.scripts.CutOff {
		j.awaitFirst()
	}
	if err := j.finishFirst(); err != nil {
		j.Logger.Error("the append-only file is not complete: the next start does not find the data in it", "err", err)
	}
}
