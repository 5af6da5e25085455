package server

import (
	"os"
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

// finish saves and writes what is left when nothing is served any more, and closes all files.
func (j *Journal) finish() {
	j.endRewriter()
	j.endSaving()
	j.closeLog()
	j.dirs.release()
}
