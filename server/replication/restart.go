package replication

import (
	"headgate/persistence/aof"
	"headgate/server/command"
)

// position is where in the history of changes the data are, if that is known, for [journal.Journal.Position]. The caller holds the executor's lock.
func (r *Replica) position() (p aof.Position, ok bool) {
	switch {
	case r.follower != nil:
		return aof.Position{ID: r.history.ID, Offset: r.follower.Applied(), DB: r.follower.Client.DB.Index()}, true
	case r.follow != nil:
		return aof.Position{ID: r.history.ID, Offset: r.history.Offset, DB: r.db}, r.resumes
	case r.Primary.backlog == nil: // nobody counts
		return p, false
	}
	r.Effects.Feed()
	r.Effects.NameDatabase() // so that what comes next in the stream does not depend on what stands before
	return aof.Position{ID: r.history.ID, Offset: r.Primary.backlog.End()}, true
}

// resume has the server go on from where the loaded data are, for [journal.Journal.Resume]. A replica asks its primary for the rest. A primary goes on under another
// name, since what it may have changed after that is lost; replicas that have no more than it has go on with it. The caller holds the executor's lock.
func (r *Replica) resume(p aof.Position) {
	if !isID(p.ID) || p.Offset < 0 || p.Offset > maxOffset || p.DB < 0 || p.DB >= r.Keys.Databases() {
		return
	}
	if r.follow != nil {
		r.history, r.db, r.resumes = History{ID: p.ID, Offset: p.Offset}, p.DB, true
		r.openGates(r.Config.Get())
		return
	}
	r.history = History{ID: p.ID, Offset: p.Offset}
	r.history.rename(command.RandomHex(idLength / 2))
	r.Primary.startStream()
}
