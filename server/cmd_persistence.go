package server

import "headgate/server/acl"

// declarations are those of the commands that keep the data on the disk.
func (j *Journal) declarations() []*Command {
	return []*Command{
		{
			Name: "bgrewriteaof", Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Have the append-only file written anew in the background, as short as the data allow.",
			Arity:   1, Flags: Admin | NoScript | NoAsyncLoading, Reply: ReplySimple, Handler: j.bgrewriteAOF,
		},
		{
			Name: "bgsave", Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Begin to save a snapshot, and go on serving meanwhile.",
			Arity:   -1, Flags: Admin | NoScript | NoAsyncLoading,
			Args: []Arg{tok("SCHEDULE").opt()}, Reply: ReplySimple, Handler: j.bgsave,
		},
		{
			Name: "lastsave", Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Return the Unix time, in seconds, at which a snapshot was last saved.",
			Arity:   1, Flags: Loading | Stale | Fast, Categories: acl.Admin | acl.Dangerous, Reply: ReplyInteger, Handler: j.lastSave,
			Tips: tipVaries,
		},
		{
			Name: "save", Group: GroupServer, Since: "1.0.0", Complexity: "O(n) in the number of keys",
			Summary: "Save a snapshot; nobody is served until it is done.",
			Arity:   1, Flags: Admin | NoScript | NoAsyncLoading | NoMulti, Reply: ReplySimple, Handler: j.save,
		},
	}
}

const (
	errSaving    = "ERR Background save already in progress"
	errNotWhole  = "ERR The data have not been loaded to their end, so no file is made of them: load them again, or delete them with FLUSHALL"
	errRewriting = "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible."
)

func (j *Journal) save(c *Ctx) {
	switch {
	case j.saving.partial:
		c.err(errNotWhole)
		return
	case j.saving.active:
		c.err(errSaving)
		return
	case j.snapshot != nil:
		j.finishSnapshot() // of a rewrite: there is one at a time
	}
	if j.saveNow() != nil {
		c.err("ERR")
		return
	}
	c.ok()
}

// bgsave implements BGSAVE [SCHEDULE]. In a transaction the snapshot waits until that is over.
func (j *Journal) bgsave(c *Ctx) {
	schedule := len(c.args) == 2 && c.is(1, "SCHEDULE")
	switch {
	case len(c.args) > 1 && !schedule:
		c.err(errSyntax)
	case j.saving.partial:
		c.err(errNotWhole)
	case j.saving.active:
		c.err(errSaving)
	case c.client.multi != nil || j.snapshot != nil && schedule:
		j.saving.scheduled = true
		j.exec.soon()
		c.reply.Simple("Background saving scheduled")
	case j.snapshot != nil:
		c.err(errRewriting)
	default:
		j.beginSave()
		c.reply.Simple("Background saving started")
	}
}

const (
	errNoLog     = "ERR The append-only file is off: turn it on with CONFIG SET appendonly yes, which writes one"
	errInRewrite = "ERR Background append only file rewriting already in progress"
)

// bgrewriteAOF has the append-only file written anew, by and by.
func (j *Journal) bgrewriteAOF(c *Ctx) {
	switch {
	case !j.aof.open && !c.cfg.AppendOnly:
		c.err(errNoLog)
	case j.saving.partial:
		c.err(errNotWhole)
	case j.aof.rewriter.rewriting, !j.aof.open && j.snapshot == nil: // which begins the file
		c.err(errInRewrite)
	case j.snapshot != nil || c.client.multi != nil:
		j.askRewrite()
		c.reply.Simple("Background append only file rewriting scheduled")
	default:
		j.askRewrite()
		c.reply.Simple("Background append only file rewriting started")
	}
}

func (j *Journal) lastSave(c *Ctx) { c.reply.Int(j.saving.last / 1e9) }
