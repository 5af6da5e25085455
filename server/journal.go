package server

import (
	"os"

	"headgate/server/config"
)

// Journal keeps the data on the disk: in the append-only file, and in snapshots. It loads them at the start.
type Journal struct {
	*Core
	hub      *Hub
	access   *Access
	exec     *Executor
	limits   *Limits
	scripts  *Scripts
	recorder *Recorder

	dirs  dataDirs
	exit  func(code int) // ends the process, when it must not go on; does not return
	ready func()         // called once, when the data are loaded

	aof      appendOnly
	snapshot *snapshotRun // under way, or nil
	saving   saving
	loading  loading

	leaveUnsaved bool // the server ends without a snapshot, though there are save points
	saveAtEnd    bool // the server ends with one, whatever there are
}

// newJournal returns a journal that has nothing open yet. What is nil is the usual: os.Exit, and nobody to tell.
func newJournal(exec *Executor, limits *Limits, scripts *Scripts, exit func(code int), ready func()) *Journal {
	j := &Journal{Core: exec.Core, hub: exec.hub, access: exec.access, recorder: exec.recorder, exec: exec, limits: limits, scripts: scripts, exit: exit, ready: ready}
	if j.exit == nil {
		j.exit = os.Exit
	}
	if j.ready == nil {
		j.ready = func() {}
	}
	return j
}

// begin has what is counted since the last snapshot begin now, and the journal obey changes of the configuration.
func (j *Journal) begin(live *config.Live) {
	j.saving.last, j.saving.lastMono = j.started, j.startedMono
	live.OnChange(func(_, _ *config.Config) error { j.appendOnlyChanged(); return nil }, "appendonly")
	live.OnChange(j.dirChanged, "dir", "appendonly", "save")
}

// finish saves and writes what is left when nothing is served any more, and closes all files.
func (j *Journal) finish() {
	j.endRewriter()
	j.endSaving()
	j.closeLog()
	j.dirs.release()
}
