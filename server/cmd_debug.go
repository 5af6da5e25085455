package server

import (
	"strconv"
	"time"
)

// debugCommand has the one part of DEBUG that tests of clients need. It is off unless enable-debug-command says otherwise.
var debugCommand = &Command{
	Name: "debug", Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Have the whole server stand still for some seconds, to see how clients bear it.",
	Arity:   -2, Flags: Admin | NoScript | Loading | Stale,
	Args: []Arg{double("seconds").after("SLEEP")}, Reply: ReplySimple, Handler: debug,
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
			"SLEEP <seconds>", "    Have the whole server stand still; the time may have decimals.",
			"HELP", "    Print this help.")
	case len(c.args) == 3 && c.is(1, "SLEEP"):
		seconds, err := strconv.ParseFloat(string(c.args[2]), 64)
		if err == nil && seconds > 0 {
			time.Sleep(time.Duration(min(seconds, maxDebugSleep.Seconds()) * float64(time.Second)))
		}
		c.ok()
	default:
		c.errSubcommandSyntax()
	}
}
