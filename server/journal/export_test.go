package journal

import (
	"io"
)

// SyncPeriod is for how long written bytes may wait for their sync to begin.
const SyncPeriod = syncPeriod

// LoadRDB loads a snapshot; progress may be nil.
func (j *Journal) LoadRDB(r io.Reader, progress func(bytes int64)) error {
	_, err := j.loadRDB(r, loadOptions{progress: progress})
	return err
}

func (j *Journal) RemoveUnfinished() { j.removeUnfinished() }
func (j *Journal) EndSaving()        { j.endSaving() }
