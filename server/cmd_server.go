package server

import (
	"math"
	"strconv"

	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/config"
)

// serverCommands: the server as a whole, with the families of cmd_cluster.go, cmd_command.go, cmd_config.go and
// cmd_memory.go.
func (a *Console) serverCommands() []*Command {
	return []*Command{
		clusterCommand,
		commandCommand,
		a.configCommand(),
		{
			Name: "dbsize", Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Return the number of keys in the database.",
			Arity:   1, Flags: ReadOnly | Fast, Categories: acl.Keyspace, Reply: ReplyInteger, Handler: dbsize,
			Tips: "request_policy:all_shards response_policy:agg_sum",
		},
		a.debugCommand(),
		{
			Name: "flushall", Group: GroupServer, Since: "1.0.0", Complexity: "O(n) in the number of keys of all databases",
			Summary: "Delete all keys of all databases.",
			Arity:   -1, Flags: Write, Categories: acl.Dangerous,
			Tips: tipAllShards,
			Args: []Arg{oneOf("flush-type", tok("ASYNC"), tok("SYNC")).opt()}, Reply: ReplySimple, Handler: a.flushAll,
		},
		{
			Name: "flushdb", Group: GroupServer, Since: "1.0.0", Complexity: "O(n) in the number of keys of the database",
			Summary: "Delete all keys of the database.",
			Arity:   -1, Flags: Write, Categories: acl.Dangerous,
			Tips: tipAllShards,
			Args: []Arg{oneOf("flush-type", tok("ASYNC"), tok("SYNC")).opt()}, Reply: ReplySimple, Handler: a.flushDB,
		},
		lolwutCommand,
		{
			Name: "replicaof", Group: GroupServer, Since: "5.0.0", Complexity: "O(1)",
			Summary: "Accept NO ONE, and refuse anything else: headgate does not replicate.",
			Arity:   3, Flags: Admin | NoScript | Stale | NoAsyncLoading,
			Args: []Arg{str("host"), str("port")}, Reply: ReplySimple, Handler: replicaOf,
		},
		{
			Name: "role", Group: GroupServer, Since: "2.8.12", Complexity: "O(1)",
			Summary: "Return the replication role, which is that of a master without replicas.",
			Arity:   1, Flags: NoScript | Loading | Stale | Fast, Categories: acl.Admin | acl.Dangerous, Reply: ReplyArray, Handler: role,
		},
		{
			Name: "shutdown", Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
			Summary: "End the server once what was read is answered.",
			Arity:   -1, Flags: Admin | NoScript | Loading | Stale | NoMulti | AllowBusy,
			Args: []Arg{
				oneOf("save", tok("NOSAVE"), tok("SAVE")).opt(), tok("NOW").opt(), tok("FORCE").opt(), tok("ABORT").opt(),
			},
			Reply: ReplyNone | ReplySimple, Handler: a.shutdown,
		},
		slaveofCommand,
		{
			Name: "swapdb", Group: GroupServer, Since: "4.0.0", Complexity: "O(n) in the number of keys that clients watch in the two",
			Summary: "Exchange the keys of two databases.",
			Arity:   3, Flags: Write | Fast, Categories: acl.Dangerous,
			Args: []Arg{integer("index1"), integer("index2")}, Reply: ReplySimple, Handler: swapDB,
		},
		{
			Name: "time", Group: GroupServer, Since: "2.6.0", Complexity: "O(1)",
			Summary: "Return the server's time: seconds since the Unix epoch, and microseconds.",
			Arity:   1, Flags: Loading | Stale | Fast | TellsTime, Reply: ReplyArray, Handler: serverTime,
			Tips: tipVaries,
		},
	}
}

// slaveofCommand is REPLICAOF under its first name.
var slaveofCommand = &Command{
	Name: "slaveof", Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary: "REPLICAOF under its first name.",
	Arity:   3, Flags: Admin | NoScript | Stale | NoAsyncLoading,
	Args: []Arg{str("host"), str("port")}, Reply: ReplySimple, Handler: replicaOf,
}

var lolwutCommand = &Command{
	Name: "lolwut", Group: GroupServer, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Say which version this is, without the art that Redis shows.",
	Arity:   -1, Flags: ReadOnly | Fast,
	Args: []Arg{integer("version").after("VERSION").opt()}, Reply: ReplyBulk | ReplyVerbatim, Handler: lolwut,
}

func lolwut(c *Ctx) {
	if len(c.args) > 2 && c.is(1, "VERSION") {
		if _, ok := c.integer(2); !ok {
			return
		}
	}
	c.reply.Verbatim("txt", "Redis ver. "+RedisVersion+"\nheadgate ver. "+Version+"\n")
}

func dbsize(c *Ctx) { c.reply.Int(int64(c.db.Len())) }

func (a *Console) flushAll(c *Ctx) {
	if c.flushType(c.core.keys.Stats().Keys) {
		a.hub.invalidateAll()
		a.journal.forgetSnapshot()
		c.core.keys.FlushAll()
		if c.client.id != 0 { // not while a log is replayed
			a.journal.saving.partial = false
			a.journal.saveEmpty()
		}
		c.ok()
	}
}

func (a *Console) flushDB(c *Ctx) {
	if c.flushType(c.db.Len()) {
		a.hub.invalidateAll()
		c.db.Flush()
		c.ok()
	}
}

// flushType checks the optional ASYNC or SYNC. Both free the memory at once: there is nothing to walk, so nothing to put off. Those keys
// that go with ASYNC are counted.
func (c *Ctx) flushType(keys int) bool {
	if len(c.args) > 2 || (len(c.args) == 2 && !c.is(1, "ASYNC") && !c.is(1, "SYNC")) {
		c.err(errSyntax)
		return false
	}
	if len(c.args) == 2 && c.is(1, "ASYNC") {
		c.core.stats.lazyFreed += uint64(keys)
	}
	return true
}

func replicaOf(c *Ctx) {
	if c.is(1, "NO") && c.is(2, "ONE") {
		c.ok()
		return
	}
	if port, ok := number.ParseInt(c.args[2]); !ok || port < 0 || port > math.MaxUint16 {
		c.err("ERR Invalid master port")
		return
	}
	c.err("ERR REPLICAOF not allowed: headgate does not replicate.")
}

func role(c *Ctx) {
	c.reply.Array(3)
	c.reply.BulkString("master")
	c.reply.Int(0)
	c.reply.EmptyArray()
}

func serverTime(c *Ctx) {
	c.reply.Array(2)
	c.reply.BulkInt(c.nowNs / 1e9)
	c.reply.BulkString(strconv.FormatInt(c.nowNs%1e9/1e3, 10))
}

// shutdown ends the server without a reply: its end is the answer.
func (a *Console) shutdown(c *Ctx) {
	var how config.ShutdownFlags
	abort := false
	for i := range c.args[1:] {
		switch i++; {
		case c.is(i, "SAVE"):
			how |= config.ShutdownSave
		case c.is(i, "NOSAVE"):
			how |= config.ShutdownNoSave
		case c.is(i, "ABORT"):
			abort = true
		case c.is(i, "FORCE"):
			how |= config.ShutdownForce
		case !c.is(i, "NOW"):
			c.err(errSyntax)
			return
		}
	}
	noSave := how&config.ShutdownNoSave != 0
	switch {
	case (abort && len(c.args) > 2) || (noSave && how&config.ShutdownSave != 0):
		c.err(errSyntax)
	case abort:
		c.err("ERR No shutdown in progress.")
	case c.core.gate.has(gateBusy) && !noSave:
		c.err(c.core.gate.refusal(gateBusy)) // what a script has written would be half of it
	default:
		a.endServer(c, how)
	}
}

// endServer ends the server unless its snapshot cannot be saved.
func (a *Console) endServer(c *Ctx, how config.ShutdownFlags) {
	c.core.log.Info("shutting down: a client asked for it", "client", c.client.id, "addr", c.client.conn.Remote)
	if a.journal.end(how) != nil {
		c.err("ERR Errors trying to SHUTDOWN. Check logs.")
	}
}
