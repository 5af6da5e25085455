package server

const (
	errSaving    = "ERR Background save already in progress"
	errNotWhole  = "ERR The data have not been loaded to their end, so no file is made of them: load them again, or delete them with FLUSHALL"
	errRewriting = "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible."
)

func save(c *Ctx) {
	s := c.srv
	switch {
	case s.saving.partial:
		c.err(errNotWhole)
		return
	case s.saving.active:
		c.err(errSaving)
		return
	case s.snapshot != nil:
		s.finishSnapshot() // of a rewrite: there is one at a time
	}
	if s.saveNow() != nil {
		c.err("ERR")
		return
	}
	c.ok()
}

// bgsave implements BGSAVE [SCHEDULE]. In a transaction the snapshot waits until that is over.
func bgsave(c *Ctx) {
	s := c.srv
	schedule := len(c.args) == 2 && c.is(1, "SCHEDULE")
	switch {
	case len(c.args) > 1 && !schedule:
		c.err(errSyntax)
	case s.saving.partial:
		c.err(errNotWhole)
	case s.saving.active:
		c.err(errSaving)
	case c.client.multi != nil || s.snapshot != nil && schedule:
		s.saving.scheduled = true
		s.soon()
		c.reply.Simple("Background saving scheduled")
	case s.snapshot != nil:
		c.err(errRewriting)
	default:
		s.save()
		c.reply.Simple("Background saving started")
	}
}

const (
	errNoLog     = "ERR The append-only file is off: turn it on with CONFIG SET appendonly yes, which writes one"
	errInRewrite = "ERR Background append only file rewriting already in progress"
)

// bgrewriteAOF has the append-only file written anew, by and by.
func bgrewriteAOF(c *Ctx) {
	s := c.srv
	switch {
	case !s.aof.open && !c.cfg.AppendOnly:
		c.err(errNoLog)
	case s.saving.partial:
		c.err(errNotWhole)
	case s.aof.keeper.rewriting, !s.aof.open && s.snapshot == nil: // which begins the file
		c.err(errInRewrite)
	case s.snapshot != nil || c.client.multi != nil:
		s.askRewrite()
		c.reply.Simple("Background append only file rewriting scheduled")
	default:
		s.askRewrite()
		c.reply.Simple("Background append only file rewriting started")
	}
}

func lastSave(c *Ctx) { c.reply.Int(c.srv.saving.last / 1e9) }
