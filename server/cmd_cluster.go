package server

// clusterCommand has what a client asks to find out whether it talks to a cluster. It does not.
var clusterCommand = &Command{
	Name: "cluster", Group: GroupServer, Since: "3.0.0", Complexity: "O(1)",
	Summary: "Answer the error of a server that is part of no cluster.",
	Arity:   -2,
	Sub: []*Command{
		clusterQuery("addslots", "3.0.0", clusterChange, -3, integer("slot").multi()),
		clusterQuery("addslotsrange", "7.0.0", clusterChange, -4, slotRange),
		clusterQuery("bumpepoch", "3.0.0", clusterChange, 2).tipped(tipVaries),
		clusterQuery("count-failure-reports", "3.0.0", Admin|Stale, 3, str("node-id")).tipped(tipVaries),
		clusterQuery("countkeysinslot", "3.0.0", Stale, 3, integer("slot")),
		clusterQuery("delslots", "3.0.0", clusterChange, -3, integer("slot").multi()),
		clusterQuery("delslotsrange", "7.0.0", clusterChange, -4, slotRange),
		clusterQuery("failover", "3.0.0", clusterChange, -2, oneOf("options", tok("FORCE"), tok("TAKEOVER")).opt()),
		clusterQuery("flushslots", "3.0.0", clusterChange, 2),
		clusterQuery("forget", "3.0.0", clusterChange, 3, str("node-id")),
		clusterQuery("getkeysinslot", "3.0.0", Stale, 4, integer("slot"), integer("count")).tipped(tipVaries),
		clusterQuery("help", "5.0.0", Loading|Stale, 2),
		clusterQuery("info", "3.0.0", Stale, 2).tipped(tipVaries),
		clusterQuery("keyslot", "3.0.0", Stale, 3, str("key")),
		clusterQuery("links", "7.0.0", Stale, 2).tipped(tipVaries),
		clusterQuery("meet", "3.0.0", clusterChange, -4, str("ip"), integer("port"), integer("cluster-bus-port").opt()),
		clusterQuery("myid", "3.0.0", Stale, 2),
		clusterQuery("nodes", "3.0.0", Stale, 2).tipped(tipVaries),
		clusterQuery("replicas", "5.0.0", Admin|Stale, 3, str("node-id")).tipped(tipVaries),
		clusterQuery("replicate", "3.0.0", clusterChange, 3, str("node-id")),
		clusterQuery("reset", "3.0.0", Admin|NoScript|Stale, -2, oneOf("hard-soft", tok("HARD"), tok("SOFT")).opt()),
		clusterQuery("saveconfig", "3.0.0", clusterChange, 2),
		clusterQuery("set-config-epoch", "3.0.0", clusterChange, 3, integer("config-epoch")),
		clusterQuery("setslot", "3.0.0", clusterChange, -4, integer("slot"), str("subcommand").multi()),
		clusterQuery("shards", "7.0.0", Stale, 2).tipped(tipVaries),
		clusterQuery("slaves", "3.0.0", Admin|Stale, 3, str("node-id")).tipped(tipVaries),
		clusterQuery("slots", "3.0.0", Stale, 2).tipped(tipVaries),
	},
}

// clusterChange are the flags of what would change a cluster.
const clusterChange = Admin | Stale | NoAsyncLoading

var slotRange = block("slots", integer("start-slot"), integer("end-slot")).multi()

func clusterQuery(name, since string, flags Flags, arity int, args ...Arg) *Command {
	return &Command{
		Name: name, Since: since, Complexity: "O(1)",
		Summary: "Answer the error of a server that is part of no cluster.",
		Arity:   arity, Flags: flags, Args: args, Reply: ReplySimple, Handler: clusterDisabled,
	}
}

func clusterDisabled(c *Ctx) { c.err(errNoCluster) }
