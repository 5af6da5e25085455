package admin

import (
	"strconv"

	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limits"
	"headgate/server/types"
)

// ServerCommands are those of the server as a whole, with the families of command.go, config.go and debug.go.
func (a *Console) ServerCommands() []*command.Command {
	return []*command.Command{
		commandCommand,
		a.configCommand(),
		{
			Name: "dbsize", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Return the number of keys in the database.",
			Arity:   1, Flags: command.ReadOnly | command.Fast, Categories: acl.Keyspace, Reply: command.ReplyInteger, Handler: dbsize,
			Tips: "request_policy:all_shards response_policy:agg_sum",
		},
		a.debugCommand(),
		{
			Name: "flushall", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(n) in the number of keys of all databases",
			Summary: "Delete all keys of all databases.",
			Arity:   -1, Flags: command.Write, Categories: acl.Dangerous,
			Tips: command.TipAllShards,
			Args: []command.Arg{command.OneOf("flush-type", command.Tok("ASYNC"), command.Tok("SYNC")).Opt()}, Reply: command.ReplySimple, Handler: a.flushAll,
		},
		{
			Name: "flushdb", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(n) in the number of keys of the database",
			Summary: "Delete all keys of the database.",
			Arity:   -1, Flags: command.Write, Categories: acl.Dangerous,
			Tips: command.TipAllShards,
			Args: []command.Arg{command.OneOf("flush-type", command.Tok("ASYNC"), command.Tok("SYNC")).Opt()}, Reply: command.ReplySimple, Handler: a.flushDB,
		},
		lolwutCommand,
		{
			Name: "shutdown", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Shut the server down after replying to what was read.",
			Arity:   -1, Flags: command.Admin | command.NoScript | command.Loading | command.Stale | command.NoMulti | command.AllowBusy,
			Args: []command.Arg{
				command.OneOf("save", command.Tok("NOSAVE"), command.Tok("SAVE")).Opt(), command.Tok("NOW").Opt(), command.Tok("FORCE").Opt(), command.Tok("ABORT").Opt(),
			},
			Reply: command.ReplyNone | command.ReplySimple, Handler: a.shutdown,
		},
		{
			Name: "swapdb", Group: command.GroupServer, Since: "4.0.0", Complexity: "O(n) in the number of keys that clients watch in the two",
			Summary: "Exchange the keys of two databases.",
			Arity:   3, Flags: command.Write | command.Fast, Categories: acl.Dangerous,
			Args: []command.Arg{command.Integer("index1"), command.Integer("index2")}, Reply: command.ReplySimple, Handler: types.SwapDB,
		},
		{
			Name: "time", Group: command.GroupServer, Since: "2.6.0", Complexity: "O(1)",
			Summary: "Return the server's time: seconds since the Unix epoch, and microseconds.",
			Arity:   1, Flags: command.Loading | command.Stale | command.Fast | command.TellsTime, Reply: command.ReplyArray, Handler: serverTime,
			Tips: command.TipVaries,
		},
	}
}

var lolwutCommand = &command.Command{
	Name: "lolwut", Group: command.GroupServer, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Return the version, without Redis's ASCII art.",
	Arity:   -1, Flags: command.ReadOnly | command.Fast,
	Args: []command.Arg{command.Integer("version").After("VERSION").Opt()}, Reply: command.ReplyBulk | command.ReplyVerbatim, Handler: lolwut,
}

func lolwut(c *command.Ctx) {
	if len(c.Args) > 2 && c.Is(1, "VERSION") {
		if _, ok := c.Integer(2); !ok {
			return
		}
	}
	c.Reply.Verbatim("txt", "Redis ver. "+command.RedisVersion+"\nheadgate ver. "+command.Version+"\n")
}

func dbsize(c *command.Ctx) { c.Reply.Int(int64(c.DB.Len())) }

func (a *Console) flushAll(c *command.Ctx) {
	if flushType(c, c.Core.Keys.Stats().Keys) {
		a.Hub.InvalidateAll()
		a.Journal.ForgetSnapshot()
		c.Core.Keys.FlushAll()
		if c.Client.ID != 0 { // not while a log is replayed
			a.Journal.Saving.Partial = false
			a.Journal.SaveEmpty()
		}
		c.OK()
	}
}

func (a *Console) flushDB(c *command.Ctx) {
	if flushType(c, c.DB.Len()) {
		a.Hub.InvalidateAll()
		c.DB.Flush()
		c.OK()
	}
}

// flushType checks the optional ASYNC or SYNC. Both free the memory at once: there is nothing to walk, so nothing to put off. Those keys
// that go with ASYNC are counted.
func flushType(c *command.Ctx, keys int) bool {
	if len(c.Args) > 2 || (len(c.Args) == 2 && !c.Is(1, "ASYNC") && !c.Is(1, "SYNC")) {
		c.Err(command.ErrSyntax)
		return false
	}
	if len(c.Args) == 2 && c.Is(1, "ASYNC") {
		c.Core.Stats.LazyFreed += uint64(keys)
	}
	return true
}

func serverTime(c *command.Ctx) {
	c.Reply.Array(2)
	c.Reply.BulkInt(c.NowNs / 1e9)
	c.Reply.BulkString(strconv.FormatInt(c.NowNs%1e9/1e3, 10))
}

// shutdown ends the server without a reply: its end is the answer.
func (a *Console) shutdown(c *command.Ctx) {
	var how config.ShutdownFlags
	abort := false
	for i := range c.Args[1:] {
		switch i++; {
		case c.Is(i, "SAVE"):
			how |= config.ShutdownSave
		case c.Is(i, "NOSAVE"):
			how |= config.ShutdownNoSave
		case c.Is(i, "ABORT"):
			abort = true
		case c.Is(i, "FORCE"):
			how |= config.ShutdownForce
		case c.Is(i, "NOW"):
			how |= config.ShutdownNow
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	noSave := how&config.ShutdownNoSave != 0
	switch {
	case (abort && len(c.Args) > 2) || (noSave && how&config.ShutdownSave != 0):
		c.Err(command.ErrSyntax)
	case abort:
		c.Err("ERR No shutdown in progress.")
	case how&config.ShutdownSave != 0 && c.Cfg.Upstream != "":
		c.Err(limits.NotServed("SHUTDOWN SAVE"))
	case c.Core.Gate.Has(command.GateBusy) && !noSave:
		c.Err(c.Core.Gate.Refusal(command.GateBusy)) // what a script has written would be half of it
	default:
		a.endServer(c, how)
	}
}

// endServer ends the server unless its snapshot cannot be saved.
func (a *Console) endServer(c *command.Ctx, how config.ShutdownFlags) {
	c.Core.Logger.Info("shutting down: a client asked for it", "client", c.Client.ID, "addr", c.Client.Conn.Remote)
	if a.Journal.End(how) != nil {
		c.Err("ERR Errors trying to SHUTDOWN. Check logs.")
	}
}
