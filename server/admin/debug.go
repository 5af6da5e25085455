package admin

import (
	"strconv"
	"time"

	"headgate/server/command"
	"headgate/server/journal"
	"headgate/store"
)

// debugCommand has the parts of DEBUG that tests of clients need. It is off unless enable-debug-command says otherwise.
func (a *Console) debugCommand() *command.Command {
	return &command.Command{
		Name: "debug", Group: command.GroupServer, Since: "1.0.0", Complexity: "depends on the sub-command",
		Summary: "Commands for tests: SLEEP stops the whole server, RELOAD saves a snapshot and loads it (with NOSAVE, only loads it), LOADAOF loads the append-only file, SET-ACTIVE-EXPIRE turns active expiry on or off, OBJECT shows how a value is stored.",
		Arity:   -2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale | command.HomeOnly,
		Args: []command.Arg{command.OneOf("subcommand",
			command.Double("seconds").After("SLEEP"), command.Block("reload", command.Tok("RELOAD"), command.Tok("NOSAVE").Opt()), command.Tok("LOADAOF"), command.OneOf("active", command.Tok("0"), command.Tok("1")).After("SET-ACTIVE-EXPIRE"), command.Key("key").After("OBJECT"),
		)},
		Reply: command.ReplySimple, Handler: a.debug,
	}
}

const errDebugOff = `ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`

// maxDebugSleep bounds a slip of the finger.
const maxDebugSleep = time.Hour

func (a *Console) debug(c *command.Ctx) {
	switch {
	case !c.Cfg.EnableDebugCommand.Allows(c.Client.Local()):
		c.Err(errDebugOff)
	case len(c.Args) == 2 && c.Is(1, "HELP"):
		c.SendHelp("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
			"LOADAOF", "    Delete all keys and load the append-only file.",
			"OBJECT <key>", "    Show how the value at a key is kept.",
			"RELOAD [NOSAVE]", "    Save a snapshot, delete all keys and load it; with NOSAVE, load the one that is there.",
			"SET-ACTIVE-EXPIRE <0|1>", "    Have keys past their time removed by themselves, or only when they are looked for.",
			"SLEEP <seconds>", "    Have the whole server stand still; the time may have decimals.",
			"HELP", "    Print this help.")
	case c.Is(1, "LOADAOF"):
		a.loadAOF(c)
	case c.Is(1, "RELOAD"):
		a.reload(c)
	case len(c.Args) == 3 && c.Is(1, "SLEEP"):
		seconds, err := strconv.ParseFloat(string(c.Args[2]), 64)
		if err == nil && seconds > 0 {
			time.Sleep(time.Duration(min(seconds, maxDebugSleep.Seconds()) * float64(time.Second)))
		}
		c.OK()
	case len(c.Args) == 3 && c.Is(1, "SET-ACTIVE-EXPIRE"):
		n, _ := strconv.Atoi(string(c.Args[2])) // what is no number is 0, as in Redis
		a.Exec.LazyExpireOnly = n == 0
		c.OK()
	case len(c.Args) == 3 && c.Is(1, "OBJECT"):
		debugObject(c)
	default:
		c.ErrSubcommandSyntax()
	}
}

// Errors of DEBUG RELOAD and LOADAOF.
const (
	errReloadOption = "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."
	errReloadMerge  = "ERR headgate's DEBUG RELOAD does not support MERGE and NOFLUSH"
	errReload       = "ERR Error trying to load the RDB dump"
	errLoadInMulti  = "ERR DEBUG LOADAOF is not allowed in transactions"
	ErrLoadAOF      = "ERR Error trying to load the AOF files, check server logs."
)

// reload implements DEBUG RELOAD [NOSAVE]. Nobody is served meanwhile.
func (a *Console) reload(c *command.Ctx) {
	j := a.Journal
	noSave := len(c.Args) == 3 && c.Is(2, "NOSAVE")
	for i := range c.Args[2:] {
		if c.Is(i+2, "MERGE") || c.Is(i+2, "NOFLUSH") {
			c.Err(errReloadMerge)
			return
		}
	}
	if len(c.Args) > 2 && !noSave {
		c.Err(errReloadOption)
		return
	}
	if j.Snapshot != nil {
		j.FinishSnapshot()
	}
	if !noSave && j.SaveNow() != nil {
		c.Err("ERR")
		return
	}
	j.Empty()
	if err := j.ReloadSnapshot(); err != nil {
		j.Saving.Partial = true
		j.Logger.Error("the snapshot could not be reloaded", "err", err)
		c.Err(errReload)
		return
	}
	if noSave && j.AOF.Open {
		j.AskRewrite() // what is in memory is no longer what the log has
	}
	c.OK()
}

// loadAOF implements DEBUG LOADAOF. Others are answered that data are being loaded.
func (a *Console) loadAOF(c *command.Ctx) {
	j := a.Journal
	switch {
	case !j.AOF.Open:
		c.Err(journal.ErrNoLog)
		return
	case c.Client.Multi != nil:
		c.Err(errLoadInMulti)
		return
	}
	if j.Snapshot != nil {
		j.FinishSnapshot()
	}
	j.BeginLoading()
	j.Unlock()
	err := j.ReloadAOF()
	j.Lock()
	j.EndLoading()
	if err != nil {
		j.Logger.Error("the append-only file could not be reloaded", "err", err)
		c.Err(ErrLoadAOF)
		return
	}
	c.OK()
}

// debugObject has Redis's fields. Values have no address and no serialised form here, so these are 0 and the memory that the value
// takes up.
func debugObject(c *command.Ctx) {
	e, ok := c.DB.Look(c.Key(2), c.Now)
	if !ok {
		c.Err(command.ErrNoSuchKey)
		return
	}
	c.Reply.Simple("Value at:0x0 refcount:1 encoding:" + e.Encoding() + " serializedlength:" + strconv.Itoa(e.MemoryUsage()) +
		" lru:" + strconv.FormatInt(accessClock(c, &e), 10) + " lru_seconds_idle:" + strconv.FormatInt(e.Idle(), 10))
}

// accessClock is when the key was last used, in the 24 bits of Redis's clock: seconds, or the minute of this look before the logarithmic
// counter while uses are counted.
func accessClock(c *command.Ctx, e *store.Entry) int64 {
	if c.Core.CountsUses {
		return (c.Now/60_000&0xffff)<<8 | int64(e.Uses())
	}
	return (c.Now/1000 - e.Idle()) & 0xffffff
}
