package server

// Some things that happen around a command are rare enough to cost nothing as long as nobody wants them: gateAttended says whether
// anybody does.

// attend runs a command and does what goes with it for those who want more than its reply. Commands that a command calls, as EXEC and
// scripts do, come here too.
func (c *Ctx) attend(timed bool) {
	s, cmd, args := c.srv, c.cmd, c.args
	if c.client.id == 0 { // a log that is replayed is no client
		c.perform(timed)
		return
	}
	isScript := cmd.Flags&SkipMonitor != 0 && cmd.Group == GroupScripting
	if isScript && len(s.monitors) > 0 {
		c.srv.showToMonitors(c, cmd, args)
	}
	if c.client.noTouch {
		s.keys.IgnoreUses(cmd.Flags&CountsUses == 0)
	}
	c.perform(timed || s.gate.has(gateTimed))
	s.keys.IgnoreUses(false)
	s.rememberKeys(c, cmd, args)
	if cmd.Flags&(SkipMonitor|Admin) == 0 && len(s.monitors) > 0 {
		c.srv.showToMonitors(c, cmd, args)
	}
}

// setNoTouch has the commands of a client count as uses of their keys or not.
func (s *Server) setNoTouch(cl *Client, noTouch bool) {
	if cl.noTouch == noTouch {
		return
	}
	cl.noTouch = noTouch
	if noTouch {
		s.noTouchers++
	} else {
		s.noTouchers--
	}
	s.gate.set(gateNoTouch, s.noTouchers > 0)
}
