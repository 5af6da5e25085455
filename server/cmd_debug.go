package server

import (
	"strconv"
	"time"

	"headgate/store"
)

// debugCommand has the parts of DEBUG that tests of clients need. It is off unless enable-debug-command says otherwise.
func (a *Console) debugCommand() *Command {
	return &Command{
		Name: "debug", Group: GroupServer, Since: "1.0.0", Complexity: "depends on the sub-command",
		Summary: "Help with tests: SLEEP has the whole server stand still, RELOAD has it save a snapshot and load it (only load it with NOSAVE), LOADAOF has it load the append-only file, SET-ACTIVE-EXPIRE has keys past their time removed only when they are looked for, OBJECT shows how a value is kept.",
		Arity:   -2, Flags: Admin | NoScript | Loading | Stale,
		Args: []Arg{oneOf("subcommand",
			double("seconds").after("SLEEP"), block("reload", tok("RELOAD"), tok("NOSAVE").opt()), tok("LOADAOF"), oneOf("active", tok("0"), tok("1")).after("SET-ACTIVE-EXPIRE"), key("key").after("OBJECT"),
		)},
		Reply: ReplySimple, Handler: a.debug,
	}
}

const errDebugOff = `ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`

// maxDebugSleep bounds a slip of the finger.
const maxDebugSleep = time.Hour

func (a *Console) debug(c *Ctx) {
	switch {
	case !c.cfg.EnableDebugCommand.Allows(c.client.local()):
		c.err(errDebugOff)
	case len(c.args) == 2 && c.is(1, "HELP"):
		c.sendHelp("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
			"LOADAOF", "    Delete all keys and load the append-only file.",
			"OBJECT <key>", "    Show how the value at a key is kept.",
			"RELOAD [NOSAVE]", "    Save a snapshot, delete all keys and load it; with NOSAVE, load the one that is there.",
			"SET-ACTIVE-EXPIRE <0|1>", "    Have keys past their time removed by themselves, or only when they are looked for.",
			"SLEEP <seconds>", "    Have the whole server stand still; the time may have decimals.",
			"HELP", "    Print this help.")
	case c.is(1, "LOADAOF"):
		a.loadAOF(c)
	case c.is(1, "RELOAD"):
		a.reload(c)
	case len(c.args) == 3 && c.is(1, "SLEEP"):
		seconds, err := strconv.ParseFloat(string(c.args[2]), 64)
		if err == nil && seconds > 0 {
			time.Sleep(time.Duration(min(seconds, maxDebugSleep.Seconds()) * float64(time.Second)))
		}
		c.ok()
	case len(c.args) == 3 && c.is(1, "SET-ACTIVE-EXPIRE"):
		n, _ := strconv.Atoi(string(c.args[2])) // what is no number is 0, as in Redis
		a.exec.lazyExpireOnly = n == 0
		c.ok()
	case len(c.args) == 3 && c.is(1, "OBJECT"):
		c.debugObject()
	default:
		c.errSubcommandSyntax()
	}
}

// Errors of DEBUG RELOAD and LOADAOF.
const (
	errReloadOption = "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."
	errReloadMerge  = "ERR headgate's DEBUG RELOAD does not support MERGE and NOFLUSH"
	errReload       = "ERR Error trying to load the RDB dump"
	errLoadInMulti  = "ERR DEBUG LOADAOF is not allowed in transactions"
	errLoadAOF      = "ERR Error trying to load the AOF files, check server logs."
)

// reload implements DEBUG RELOAD [NOSAVE]. Nobody is served meanwhile.
func (a *Console) reload(c *Ctx) {
	j := a.journal
	noSave := len(c.args) == 3 && c.is(2, "NOSAVE")
	for i := range c.args[2:] {
		if c.is(i+2, "MERGE") || c.is(i+2, "NOFLUSH") {
			c.err(errReloadMerge)
			return
		}
	}
	if len(c.args) > 2 && !noSave {
		c.err(errReloadOption)
		return
	}
	if j.snapshot != nil {
		j.finishSnapshot()
	}
	if !noSave && j.saveNow() != nil {
		c.err("ERR")
		return
	}
	j.empty()
	if err := j.loadSnapshot(true); err != nil {
		j.saving.partial = true
		j.log.Error("the snapshot could not be reloaded", "err", err)
		c.err(errReload)
		return
	}
	if noSave && j.aof.open {
		j.askRewrite() // what is in memory is no longer what the log has
	}
	c.ok()
}

// loadAOF implements DEBUG LOADAOF. Others are answered that data are being loaded.
func (a *Console) loadAOF(c *Ctx) {
	j := a.journal
	switch {
	case !j.aof.open:
		c.err(errNoLog)
		return
	case c.client.multi != nil:
		c.err(errLoadInMulti)
		return
	}
	if j.snapshot != nil {
		j.finishSnapshot()
	}
	j.beginLoading()
	j.Unlock()
	err := j.reloadLog()
	j.Lock()
	j.endLoading()
	if err != nil {
		j.log.Error("the append-only file could not be reloaded", "err", err)
		c.err(errLoadAOF)
		return
	}
	c.ok()
}

// debugObject has Redis's fields. Values have no address and no serialised form here, so these are 0 and the memory that the value
// takes up.
func (c *Ctx) debugObject() {
	e, ok := c.db.Look(c.key(2), c.now)
	if !ok {
		c.err(errNoSuchKey)
		return
	}
	c.reply.Simple("Value at:0x0 refcount:1 encoding:" + e.Encoding() + " serializedlength:" + strconv.Itoa(e.MemoryUsage()) +
		" lru:" + strconv.FormatInt(c.accessClock(&e), 10) + " lru_seconds_idle:" + strconv.FormatInt(e.Idle(), 10))
}

// accessClock is when the key was last used, in the 24 bits of Redis's clock: seconds, or the minute of this look before the logarithmic
// counter while uses are counted.
func (c *Ctx) accessClock(e *store.Entry) int64 {
	if c.core.countsUses {
		return (c.now/60_000&0xffff)<<8 | int64(e.Uses())
	}
	return (c.now/1000 - e.Idle()) & 0xffffff
}
