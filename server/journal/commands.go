package journal

import (
	"headgate/server/acl"
	"headgate/server/command"
)

// Declarations are those of the commands that keep the data on the disk.
func (j *Journal) Declarations() []*command.Command {
	return []*command.Command{
		{
			Name: "bgrewriteaof", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Rewrite the append-only file in the background, as short as the data allow.",
			Arity:   1, Flags: command.Admin | command.NoScript | command.NoAsyncLoading | command.HomeOnly, Reply: command.ReplySimple, Handler: j.bgrewriteAOF,
		},
		{
			Name: "bgsave", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Save a snapshot in the background.",
			Arity:   -1, Flags: command.Admin | command.NoScript | command.NoAsyncLoading | command.HomeOnly,
			Args: []command.Arg{command.Tok("SCHEDULE").Opt()}, Reply: command.ReplySimple, Handler: j.bgsave,
		},
		{
			Name: "lastsave", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Return the Unix time, in seconds, at which a snapshot was last saved.",
			Arity:   1, Flags: command.Loading | command.Stale | command.Fast, Categories: acl.Admin | acl.Dangerous, Reply: command.ReplyInteger, Handler: j.lastSave,
			Tips: command.TipVaries,
		},
		{
			Name: "save", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(n) in the number of keys",
			Summary: "Save a snapshot; no client is served until it is done.",
			Arity:   1, Flags: command.Admin | command.NoScript | command.NoAsyncLoading | command.NoMulti | command.HomeOnly, Reply: command.ReplySimple, Handler: j.save,
		},
	}
}

const (
	errSaving = "ERR Background save already in progress"
	// ErrNotWhole is what whoever asks for a file of the data is answered while they are not all in memory.
	ErrNotWhole  = "ERR The data have not been loaded to their end, so no file is made of them: load them again, or delete them with FLUSHALL"
	errRewriting = "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible."
)

func (j *Journal) save(c *command.Ctx) {
	switch {
	case j.Saving.Partial:
		c.Err(ErrNotWhole)
		return
	case j.Saving.Active || j.sends():
		c.Err(errSaving)
		return
	case j.Snapshot != nil:
		j.FinishSnapshot() // of a rewrite: there is one at a time
	}
	if j.SaveNow() != nil {
		c.Err("ERR")
		return
	}
	c.OK()
}

// bgsave implements BGSAVE [SCHEDULE]. In a transaction the snapshot waits until that is over.
func (j *Journal) bgsave(c *command.Ctx) {
	schedule := len(c.Args) == 2 && c.Is(1, "SCHEDULE")
	switch {
	case len(c.Args) > 1 && !schedule:
		c.Err(command.ErrSyntax)
	case j.Saving.Partial:
		c.Err(ErrNotWhole)
	case j.Saving.Active || j.sends() && !schedule:
		c.Err(errSaving)
	case c.Client.Multi != nil || j.Snapshot != nil && schedule:
		j.Saving.scheduled = true
		j.exec.Soon()
		c.Reply.Simple("Background saving scheduled")
	case j.Snapshot != nil:
		c.Err(errRewriting)
	default:
		j.beginSave()
		c.Reply.Simple("Background saving started")
	}
}

const (
	// ErrNoLog is what whoever asks for something of the append-only file is answered while there is none.
	ErrNoLog     = "ERR The append-only file is off: turn it on with CONFIG SET appendonly yes, which writes one"
	errInRewrite = "ERR Background append only file rewriting already in progress"
)

// bgrewriteAOF has the append-only file written anew, by and by.
func (j *Journal) bgrewriteAOF(c *command.Ctx) {
	switch {
	case !c.Cfg.AppendOnly: // the file may still be open, and be about to end
		c.Err(ErrNoLog)
	case j.Saving.Partial:
		c.Err(ErrNotWhole)
	case j.AOF.Rewriter.Rewriting, !j.AOF.Open && j.Snapshot == nil: // which begins the file
		c.Err(errInRewrite)
	case j.Snapshot != nil || c.Client.Multi != nil:
		j.AskRewrite()
		c.Reply.Simple("Background append only file rewriting scheduled")
	default:
		j.AskRewrite()
		c.Reply.Simple("Background append only file rewriting started")
	}
}

func (j *Journal) lastSave(c *command.Ctx) { c.Reply.Int(j.Saving.Last / 1e9) }
