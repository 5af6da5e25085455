package journal

import (
	"strconv"

	"headgate/internal/number"
	"headgate/persistence/aof"
	"headgate/persistence/rdb"
)

// What is kept tells where in the history of changes the data are, so that a server which has been restarted goes on from there: as a replica it asks
// its primary for the rest, as a primary it has its replicas ask for no more than that. In a snapshot the fields are Redis's. The append-only file
// has a line at its end, which a server that ends leaves there; behind a command that came after it, the position is not known.

// The names of the fields of a snapshot that have a position, beside auxStreamDB.
const (
	auxID     = "repl-id"
	auxOffset = "repl-offset"
)

// writePosition has a snapshot tell where the data are, if that is known. The caller holds the executor's lock.
func (j *Journal) writePosition(e *rdb.Encoder) {
	if e := &j.Effects; j.Position == nil || e.Amid() {
		return // in the midst of a transaction the data are nowhere
	}
	if p, ok := j.Position(); ok {
		e.Aux(auxStreamDB, strconv.Itoa(p.DB))
		e.Aux(auxID, p.ID)
		e.Aux(auxOffset, strconv.FormatInt(p.Offset, 10))
	}
}

// notePosition has the append-only file end with where the data are, if that is known. The caller does not hold the executor's lock, and
// nothing changes any more.
func (j *Journal) notePosition() {
	j.Lock()
	defer j.Unlock()
	if j.Position == nil || !j.AOF.Open || j.Saving.Partial || j.limits.Unlogged.Missing() {
		return
	}
	if p, ok := j.Position(); ok {
		j.Effects.Annotate(p.Annotation())
	}
}

// resume tells where the data that were loaded at the start are. The caller holds the executor's lock.
func (j *Journal) resume(p aof.Position) {
	if p.ID != "" && j.Resume != nil {
		j.Resume(p)
	}
}

// position is where a snapshot that is being loaded says that it is.
type position struct {
	aof.Position
	known bool // both its name and its offset are
}

// aux takes note of a field.
func (p *position) aux(name string, value []byte) {
	switch name {
	case auxID:
		p.ID = string(value)
	case auxOffset:
		p.Offset, p.known = number.ParseInt(value)
	}
}
