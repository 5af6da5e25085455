package server

import "time"

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
	if isScript && len(x.srv.monitors) > 0 {
		c.showToMonitors(cmd, args)
	}
	if c.client.noTouch {
		x.keys.IgnoreUses(cmd.Flags&CountsUses == 0)
	}
	x.perform(c, timed || x.gate.has(gateTimed))
	x.keys.IgnoreUses(false)
	x.hub.rememberKeys(c, cmd, args)
	if cmd.Flags&(SkipMonitor|Admin) == 0 && len(x.srv.monitors) > 0 {
		c.showToMonitors(cmd, args)
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

// noteSlow enters a command that took so many ns into the slow log, and among the spikes of latency, if it belongs there.
func (x *Executor) noteSlow(c *Ctx, cmd *Command, args [][]byte, took int64) {
	if c.client.id == 0 {
		return
	}
	if took >= x.srv.slowlog.from && cmd.Flags&SkipSlowlog == 0 {
		x.srv.slowlog.add(c, cmd, args, took, c.cfg.SlowlogMaxLen)
	}
	event := eventCommand
	if cmd.Flags&Fast != 0 {
		event = eventFastCommand
	}
	x.srv.watchLatency(event, time.Duration(took))
}

// forgetCaching ends what CLIENT CACHING has said of the one command behind it, which may be a whole transaction. cmd is nil for one that
// does not exist.
func (c *Ctx) forgetCaching(cmd *Command) {
	if mode := trackingOf(c.client); mode != nil && c.client.multi == nil && (cmd == nil || cmd.Flags&KeepsCaching == 0) {
		mode.caching = false
	}
}
