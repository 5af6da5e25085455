package server

// clusterCommand has what a client asks to find out whether it talks to a cluster. It does not.
var clusterCommand = &Command{
	Name: "cluster", Group: GroupServer, Since: "3.0.0", Complexity: "O(1)",
	Summary: "Answer the error of a server that is part of no cluster.",
	Arity:   -2,
	Sub: []*Command{
		clusterQuery("countkeysinslot", "3.0.0", Stale, 3, integer("slot")),
		clusterQuery("getkeysinslot", "3.0.0", Stale, 4, integer("slot"), integer("count")),
		clusterQuery("help", "5.0.0", Loading|Stale, 2),
		clusterQuery("info", "3.0.0", Stale, 2),
		clusterQuery("keyslot", "3.0.0", Stale, 3, str("key")),
		clusterQuery("links", "7.0.0", Stale, 2),
		clusterQuery("myid", "3.0.0", Stale, 2),
		clusterQuery("nodes", "3.0.0", Stale, 2),
		clusterQuery("shards", "7.0.0", Stale, 2),
		clusterQuery("slots", "3.0.0", Stale, 2),
	},
}

func clusterQuery(name, since string, flags Flags, arity int, args ...Arg) *Command {
	return &Command{
		Name: name, Since: since, Complexity: "O(1)",
		Summary: "Answer the error of a server that is part of no cluster.",
		Arity:   arity, Flags: flags, Args: args, Reply: ReplySimple, Handler: clusterDisabled,
	}
}

func clusterDisabled(c *Ctx) { c.err(errNoCluster) }
