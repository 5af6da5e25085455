package journal

import (
	"io"
)

// SyncPeriod is for how long written bytes may wait for their sync to begin.
const SyncPeriod = syncPeriod

// RewriteRetry is the time between a rewrite that failed and the next one that is begun by itself.
const RewriteRetry = rewriteRetry

// LoadRDB loads a snapshot; progress may be nil.
func (j *Journal) LoadRDB(r io.Reader, progress func(bytes int64)) error {
	_, err := j.loadRDB(r, loadOptions{progress: progress})
	return err
}

func (j *Journal) RemoveUnfinished() { j.removeUnfinished() }
func (j *Journal) EndSaving()        { j.endSaving() }

// RewriteIfGrown is what each commit asks. The caller holds the executor's lock.
func (j *Journal) RewriteIfGrown() { j.rewriteIfGrown(j.Config.Get()) }

// AddLibrary has the data have one more library of functions.
func (p *Replacement) AddLibrary(code string) { p.libraries = append(p.libraries, []byte(code)) }

// WorkOnFiles is what a rewrite does while it makes files of the append-only file. It returns what ends that.
func (j *Journal) WorkOnFiles() (end func()) {
	j.AOF.files.Lock()
	return j.AOF.files.Unlock
}

// HoldCommits has nothing get to the append-only file until it is called to end that.
func (j *Journal) HoldCommits() (end func()) {
	j.AOF.commits.Lock()
	return j.AOF.commits.Unlock
}
