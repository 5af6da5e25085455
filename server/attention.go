package server

// Some things that happen around a command are rare enough to cost nothing as long as nobody wants them: gateAttended says whether
// anybody does.

// attend runs a command and does what goes with it for those who want more than its reply. Commands that a command calls, as EXEC and
// scripts do, come here too.
func (x *Executor) attend(c *Ctx, timed bool) {
	cmd, args := c.cmd, c.args
	if c.client.id == 0 { // a log that is replayed is no client
		x.perform(c, timed)
		return
	}
	isScript := cmd.Flags&SkipMonitor != 0 && cmd.Group == GroupScripting
	if isScript && x.gate.has(gateMonitors) {
		x.recorder.showToMonitors(c, cmd, args)
	}
	if c.client.noTouch {
		x.keys.IgnoreUses(cmd.Flags&CountsUses == 0)
	}
	x.perform(c, timed || x.gate.has(gateTimed))
	x.keys.IgnoreUses(false)
	x.hub.rememberKeys(c, cmd, args)
	if cmd.Flags&(SkipMonitor|Admin) == 0 && x.gate.has(gateMonitors) {
		x.recorder.showToMonitors(c, cmd, args)
	}
}

// setNoTouch has the commands of a client count as uses of their keys or not.
func (x *Executor) setNoTouch(cl *Client, noTouch bool) {
	if cl.noTouch == noTouch {
		return
	}
	cl.noTouch = noTouch
	if noTouch {
		x.noTouchers++
	} else {
		x.noTouchers--
	}
	x.gate.set(gateNoTouch, x.noTouchers > 0)
}
