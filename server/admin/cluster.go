package admin

import (
	"headgate/server/command"
)

// clusterCommand has what a client asks to find out whether it talks to a cluster. It does not.
var clusterCommand = &command.Command{
	Name: "cluster", Group: command.GroupServer, Since: "3.0.0", Complexity: "O(1)",
	Summary: "Answer the error of a server that is part of no cluster.",
	Arity:   -2,
	Sub: []*command.Command{
		clusterQuery("addslots", "3.0.0", clusterChange, -3, command.Integer("slot").Multi()),
		clusterQuery("addslotsrange", "7.0.0", clusterChange, -4, slotRange),
		clusterQuery("bumpepoch", "3.0.0", clusterChange, 2).Tipped(command.TipVaries),
		clusterQuery("count-failure-reports", "3.0.0", command.Admin|command.Stale, 3, command.Str("node-id")).Tipped(command.TipVaries),
		clusterQuery("countkeysinslot", "3.0.0", command.Stale, 3, command.Integer("slot")),
		clusterQuery("delslots", "3.0.0", clusterChange, -3, command.Integer("slot").Multi()),
		clusterQuery("delslotsrange", "7.0.0", clusterChange, -4, slotRange),
		clusterQuery("failover", "3.0.0", clusterChange, -2, command.OneOf("options", command.Tok("FORCE"), command.Tok("TAKEOVER")).Opt()),
		clusterQuery("flushslots", "3.0.0", clusterChange, 2),
		clusterQuery("forget", "3.0.0", clusterChange, 3, command.Str("node-id")),
		clusterQuery("getkeysinslot", "3.0.0", command.Stale, 4, command.Integer("slot"), command.Integer("count")).Tipped(command.TipVaries),
		clusterQuery("help", "5.0.0", command.Loading|command.Stale, 2),
		clusterQuery("info", "3.0.0", command.Stale, 2).Tipped(command.TipVaries),
		clusterQuery("keyslot", "3.0.0", command.Stale, 3, command.Str("key")),
		clusterQuery("links", "7.0.0", command.Stale, 2).Tipped(command.TipVaries),
		clusterQuery("meet", "3.0.0", clusterChange, -4, command.Str("ip"), command.Integer("port"), command.Integer("cluster-bus-port").Opt()),
		clusterQuery("myid", "3.0.0", command.Stale, 2),
		clusterQuery("nodes", "3.0.0", command.Stale, 2).Tipped(command.TipVaries),
		clusterQuery("replicas", "5.0.0", command.Admin|command.Stale, 3, command.Str("node-id")).Tipped(command.TipVaries),
		clusterQuery("replicate", "3.0.0", clusterChange, 3, command.Str("node-id")),
		clusterQuery("reset", "3.0.0", command.Admin|command.NoScript|command.Stale, -2, command.OneOf("hard-soft", command.Tok("HARD"), command.Tok("SOFT")).Opt()),
		clusterQuery("saveconfig", "3.0.0", clusterChange, 2),
		clusterQuery("set-config-epoch", "3.0.0", clusterChange, 3, command.Integer("config-epoch")),
		clusterQuery("setslot", "3.0.0", clusterChange, -4, command.Integer("slot"), command.Str("subcommand").Multi()),
		clusterQuery("shards", "7.0.0", command.Stale, 2).Tipped(command.TipVaries),
		clusterQuery("slaves", "3.0.0", command.Admin|command.Stale, 3, command.Str("node-id")).Tipped(command.TipVaries),
		clusterQuery("slots", "3.0.0", command.Stale, 2).Tipped(command.TipVaries),
	},
}

// clusterChange are the flags of what would change a cluster.
const clusterChange = command.Admin | command.Stale | command.NoAsyncLoading

var slotRange = command.Block("slots", command.Integer("start-slot"), command.Integer("end-slot")).Multi()

func clusterQuery(name, since string, flags command.Flags, arity int, args ...command.Arg) *command.Command {
	return &command.Command{
		Name: name, Since: since, Complexity: "O(1)",
		Summary: "Answer the error of a server that is part of no cluster.",
		Arity:   arity, Flags: flags, Args: args, Reply: command.ReplySimple, Handler: clusterDisabled,
	}
}

func clusterDisabled(c *command.Ctx) { c.Err(command.ErrNoCluster) }
