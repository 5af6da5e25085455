package server

import "headgate/server/config"

// Some things that happen around a command are rare enough to cost nothing as long as nobody wants them: one field, attentive, says
// whether anybody does.

// lookAround works out whether commands are to be attended to one by one, and whether the store is to tell of changes.
func (s *Server) lookAround(cfg *config.Config) {
	s.attentive = s.tracking.clients > 0
	if cfg.NotifyEvents != 0 || s.tracking.clients > 0 {
		s.keys.SetObserver(observer{s})
	} else {
		s.keys.SetObserver(nil)
	}
}

// attend runs a command and does what goes with it for those who want more than its reply. Commands that a command calls, as EXEC and
// scripts do, come here too.
func (c *Ctx) attend(timed bool) {
	cmd, args := c.cmd, c.args
	w := c.worker
	w.depth++
	c.perform(timed)
	c.rememberKeys(cmd, args)
	w.depth--
	if w.depth == 0 {
		c.forgetCaching(cmd)
		c.sendLater()
	}
}

// forgetCaching ends what CLIENT CACHING has said of the one command behind it, which may be a whole transaction.
func (c *Ctx) forgetCaching(cmd *Command) {
	if mode := c.client.tracking; mode != nil && c.client.multi == nil && !cmd.isNamed("client") {
		mode.caching = false
	}
}
