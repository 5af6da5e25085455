package command

import "time"

// Turn is what a worker keeps beside the command that it runs. All its contexts share one: a context that is put back as it was, behind a
// script or what somebody who waited was served, leaves it alone.
type Turn struct {
	InCommand bool   // a client's command is being run, and with it those that it calls
	Later     []byte // messages for the running command's client that follow its reply
	Spent     int64  // ns that the commands of the client whose turn it is took, as far as that is known
	Busy      int64  // the same of all clients in this batch
	Work      int    // about how many bytes the commands have moved since the clock was read last, see Worked
	Limits    Sized  // the last limits that it has read, see Known.Shape; nil: none yet

	read  time.Time // the clock, when it was read last; zero: not in this batch
	mixed bool      // commands of others have run since then
}

// Pause tells that what follows is no part of what came before: the worker has waited.
func (t *Turn) Pause() { t.read, t.Work, t.mixed = time.Time{}, 0, false }

// Next tells that the turn of another client begins.
func (t *Turn) Next() { t.Spent, t.mixed = 0, t.Work > 0 }

// Worked tells that a command has moved so many bytes besides its own arguments and its reply, or has done as much in another way. A command
// that says so is not taken for a quick one, although Redis calls it fast.
func (t *Turn) Worked(bytes int) { t.Work += bytes }

// Look tells that it is now, and that a command which has just ended took so many ns; 0 if that was not measured. All the time since the
// last look is the commands': those between that are not timed have had their part of it.
func (t *Turn) Look(now time.Time, took int64) {
	elapsed := took
	if !t.read.IsZero() {
		elapsed = int64(now.Sub(t.read)) // less than took, if commands that this one has called were timed
	}
	t.Busy += elapsed
	if t.mixed {
		elapsed = took
	}
	t.Spent += elapsed
	t.read, t.Work, t.mixed = now, 0, false
}
