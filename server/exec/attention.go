package exec

import "headgate/server/command"

// Some things that happen around a command are rare enough to cost nothing as long as nobody wants them: command.GateAttended says whether
// anybody does.

// attend runs a command and does what goes with it for those who want more than its reply. Commands that a command calls, as EXEC and
// scripts do, come here too.
func (x *Executor) attend(c *command.Ctx, timed bool) {
	cmd, args := c.Cmd, c.Args
	if x.Gate.Has(command.GateCrowded) && x.refusesToAdd(c) {
		x.Stats.Commands[cmd.ID].Rejected++
		return
	}
	if c.Client.ID == 0 { // a log that is replayed is no client
		x.perform(c, timed)
		return
	}
	isScript := cmd.Flags&command.SkipMonitor != 0 && cmd.Group == command.GroupScripting
	if isScript && x.Gate.Has(command.GateMonitors) {
		x.Recorder.ShowToMonitors(c, cmd, args)
	}
	if c.Client.NoTouch {
		x.Keys.IgnoreUses(cmd.Flags&command.CountsUses == 0)
	}
	reads := cmd.Flags&(command.Write|command.MayReplicate) == 0
	// Who has paused clients wants all keys to stay as they are, and a primary decides when they go; only a write, where clients may, has to remove
	// what is past its time before it can put something in its place.
	x.Keys.KeepExpired(reads && x.Gate.Has(command.GatePaused|command.GateFollows) || x.Gate.Has(command.GateReadOnly))
	own := x.Gate.Has(command.GateOwnWrites) && !reads && !c.Client.Primary
	var room [8]int64
	times := room[:0]
	if own {
		times = ownTimes(times, c, cmd, args)
	}
	x.perform(c, timed || x.Gate.Has(command.GateTimed))
	if own {
		x.rememberOwn(times, c, cmd, args)
	}
	x.Keys.KeepExpired(x.Gate.Has(command.GateReadOnly))
	x.Keys.IgnoreUses(false)
	x.Hub.RememberKeys(c, cmd, args)
	if cmd.Flags&(command.SkipMonitor|command.Admin) == 0 && x.Gate.Has(command.GateMonitors) {
		x.Recorder.ShowToMonitors(c, cmd, args)
	}
}

// SetNoTouch has the commands of a client count as uses of their keys or not.
func (x *Executor) SetNoTouch(cl *command.Client, noTouch bool) {
	if cl.NoTouch == noTouch {
		return
	}
	cl.NoTouch = noTouch
	if noTouch {
		x.noTouchers++
	} else {
		x.noTouchers--
	}
	x.Gate.Set(command.GateNoTouch, x.noTouchers > 0)
}
