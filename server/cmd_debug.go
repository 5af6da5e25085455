package server

import (
	"strconv"
	"time"
)

// debugCommand has the parts of DEBUG that tests of clients need. It is off unless enable-debug-command says otherwise.
var debugCommand = &Command{
	Name: "debug", Group: GroupServer, Since: "1.0.0", Complexity: "depends on the sub-command",
	Summary: "Help with tests: SLEEP has the whole server stand still, SET-ACTIVE-EXPIRE has keys past their time removed only when they are looked for, OBJECT shows how a value is kept.",
	Arity:   -2, Flags: Admin | NoScript | Loading | Stale,
	Args: []Arg{oneOf("subcommand",
		double("seconds").after("SLEEP"), oneOf("active", tok("0"), tok("1")).after("SET-ACTIVE-EXPIRE"), key("key").after("OBJECT"),
	)},
	Reply: ReplySimple, Handler: debug,
}

const errDebugOff = `ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`

// maxDebugSleep bounds a slip of the finger.
const maxDebugSleep = time.Hour

func debug(c *Ctx) {
	switch {
	case !c.cfg.EnableDebugCommand.Allows(c.client.local()):
		c.err(errDebugOff)
	case len(c.args) == 2 && c.is(1, "HELP"):
		c.sendHelp("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
			"OBJECT <key>", "    Show how the value at a key is kept.",
			"SET-ACTIVE-EXPIRE <0|1>", "    Have keys past their time removed by themselves, or only when they are looked for.",
			"SLEEP <seconds>", "    Have the whole server stand still; the time may have decimals.",
			"HELP", "    Print this help.")
	case len(c.args) == 3 && c.is(1, "SLEEP"):
		seconds, err := strconv.ParseFloat(string(c.args[2]), 64)
		if err == nil && seconds > 0 {
			time.Sleep(time.Duration(min(seconds, maxDebugSleep.Seconds()) * float64(time.Second)))
		}
		c.ok()
	case len(c.args) == 3 && c.is(1, "SET-ACTIVE-EXPIRE"):
		n, _ := strconv.Atoi(string(c.args[2])) // what is no number is 0, as in Redis
		c.srv.lazyExpireOnly = n == 0
		c.ok()
	case len(c.args) == 3 && c.is(1, "OBJECT"):
		c.debugObject()
	default:
		c.errSubcommandSyntax()
	}
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
		" lru:0 lru_seconds_idle:" + strconv.FormatInt(e.Idle(), 10))
}
