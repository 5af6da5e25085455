package journal

import (
	"os"

	"headgate/persistence/aof"
	"headgate/server/access"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/exec"
	"headgate/server/limits"
	"headgate/server/observe"
	"headgate/server/pubsub"
	"headgate/server/scripting"
)

// Journal keeps the data on the disk: in the append-only file, and in snapshots. It loads them at the start.
type Journal struct {
	*command.Core
	hub      *pubsub.Hub
	access   *access.Access
	exec     *exec.Executor
	limits   *limits.Limits
	scripts  *scripting.Scripts
	recorder *observe.Recorder

	Dirs  dataDirs       // the directories that files are written in; safe for concurrent use
	Exit  func(code int) // ends the process, when it must not go on; does not return. Called with the executor's lock or without it
	ready func()         // called once, when the data are loaded, without the executor's lock

	// Position returns where in the history of changes the data are, if that is known; Resume is told where those are that were loaded at the start, which
	// may be nowhere that makes sense. Both are called with the executor's lock held, and may be nil.
	Position func() (p aof.Position, known bool)
	Resume   func(aof.Position)

	AOF      AppendOnly   // the append-only file
	Snapshot *snapshotRun // under way, or nil; guarded by the executor's lock
	Saving   Saving       // the snapshots that are kept in dbfilename
	Loading  Loading      // how far loading has come

	leaveUnsaved bool // the server ends without a snapshot, though there are save points
	saveAtEnd    bool // the server ends with one, whatever there are
}

// New returns a journal that has nothing open yet. exit ends the process, when it must not go on, and ready is called once, when the data
// are loaded; what is nil is the usual: os.Exit, and nobody to tell.
func New(exec *exec.Executor, limits *limits.Limits, scripts *scripting.Scripts, exit func(code int), ready func()) *Journal {
	j := &Journal{Core: exec.Core, hub: exec.Hub, access: exec.Access, recorder: exec.Recorder, exec: exec, limits: limits, scripts: scripts, Exit: exit, ready: ready}
	if j.Exit == nil {
		j.Exit = os.Exit
	}
	if j.ready == nil {
		j.ready = func() {}
	}
	return j
}

// Begin has what is counted since the last snapshot begin now, and the journal obey changes of the configuration.
func (j *Journal) Begin(live *config.Live) {
	j.Saving.Last, j.Saving.LastMono = j.Started, j.StartedMono
	live.OnChange(func(_, _ *config.Config) error { j.appendOnlyChanged(); return nil }, "appendonly")
	live.OnChange(j.dirChanged, "dir", "appendonly", "save")
}

// Finish saves and writes what is left when nothing is served any more, and closes all files.
func (j *Journal) Finish() {
	j.endFirst()
	j.EndRewriter()
	j.endSaving()
	j.notePosition()
	j.CloseLog()
	j.Dirs.Release()
}
