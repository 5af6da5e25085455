package cluster

import (
	"strconv"
	"strings"

	"headgate/internal/hashslot"
	"headgate/server/command"
	"headgate/store"
)

// change are the flags of what would change a cluster.
const change = command.Admin | command.Stale | command.NoAsyncLoading

// Errors of CLUSTER, in Redis's words but for the first.
const (
	errFixed     = "ERR %s is not served: cluster-enabled is emulated, so that one server has all slots for good"
	errSlot      = "ERR Invalid slot"
	errSlotCount = "ERR Invalid slot or number of keys"
	errNode      = "ERR Unknown node %s"
	errNoMaster  = "ERR The specified node is not a master"
)

// Declarations are those of the commands by which clients find their way in a cluster. Without cluster-enabled all answer an error.
func (s *Cluster) Declarations() []*command.Command {
	const mode = command.Loading | command.Stale | command.Fast
	return []*command.Command{
		{
			Name: "asking", Group: command.GroupConnection, Since: "3.0.0", Complexity: "O(1)",
			Summary: "Announce a command for a slot that is being migrated. Slots never are here, so this does nothing.",
			Arity:   1, Flags: command.Fast, Reply: command.ReplySimple, Handler: emulated((*command.Ctx).OK),
		},
		{
			Name: "cluster", Group: command.GroupServer, Since: "3.0.0", Complexity: "O(1)",
			Summary: "Return the assignment of slots for clients in cluster mode.",
			Arity:   -2, Sub: s.subcommands(),
		},
		{
			Name: "readonly", Group: command.GroupConnection, Since: "3.0.0", Complexity: "O(1)",
			Summary: "Let this client read from a replica, instead of being redirected to the primary.",
			Arity:   1, Flags: mode, Reply: command.ReplySimple, Handler: emulated(func(c *command.Ctx) { readsReplica(c, true) }),
		},
		{
			Name: "readwrite", Group: command.GroupConnection, Since: "3.0.0", Complexity: "O(1)",
			Summary: "End READONLY.",
			Arity:   1, Flags: mode, Reply: command.ReplySimple, Handler: emulated(func(c *command.Ctx) { readsReplica(c, false) }),
		},
	}
}

func (s *Cluster) subcommands() []*command.Command {
	slotRange := command.Block("slots", command.Integer("start-slot"), command.Integer("end-slot")).Multi()
	nodeID := command.Str("node-id")
	return []*command.Command{
		fixed("addslots", "3.0.0", change, -3, command.Integer("slot").Multi()),
		fixed("addslotsrange", "7.0.0", change, -4, slotRange),
		fixed("bumpepoch", "3.0.0", change, 2).Tipped(command.TipVaries),
		{
			Name: "count-failure-reports", Since: "3.0.0", Complexity: "O(n) in the number of replicas",
			Summary: "Return how many nodes report that a node has failed; none ever does.",
			Arity:   3, Flags: command.Admin | command.Stale, Tips: command.TipVaries, Args: []command.Arg{nodeID}, Reply: command.ReplyInteger, Handler: emulated(s.countReports),
		},
		{
			Name: "countkeysinslot", Since: "3.0.0", Complexity: "O(n) in the number of keys in database 0",
			Summary: "Return how many keys of database 0 lie in a slot.",
			Arity:   3, Flags: command.Stale | command.HomeOnly, Args: []command.Arg{command.Integer("slot")}, Reply: command.ReplyInteger, Handler: emulated(countKeys),
		},
		fixed("delslots", "3.0.0", change, -3, command.Integer("slot").Multi()),
		fixed("delslotsrange", "7.0.0", change, -4, slotRange),
		fixed("failover", "3.0.0", change, -2, command.OneOf("options", command.Tok("FORCE"), command.Tok("TAKEOVER")).Opt()),
		fixed("flushslots", "3.0.0", change, 2),
		fixed("forget", "3.0.0", change, 3, nodeID),
		{
			Name: "getkeysinslot", Since: "3.0.0", Complexity: "O(n) in the number of keys in database 0",
			Summary: "List up to so many keys of database 0 in a slot.",
			Arity:   4, Flags: command.Stale | command.HomeOnly, Tips: command.TipVaries, Args: []command.Arg{command.Integer("slot"), command.Integer("count")},
			Reply: command.ReplyArray, Handler: emulated(getKeys),
		},
		helpCommand(),
		{
			Name: "info", Since: "3.0.0", Complexity: "O(n) in the number of replicas",
			Summary: "Describe the cluster: one primary that has all slots.",
			Arity:   2, Flags: command.Stale, Tips: command.TipVaries, Reply: command.ReplyBulk | command.ReplyVerbatim, Handler: emulated(s.info),
		},
		{
			Name: "keyslot", Since: "3.0.0", Complexity: "O(n) in the length of the key",
			Summary: "Return the slot that a key lies in.",
			Arity:   3, Flags: command.Stale, Args: []command.Arg{command.Str("key")}, Reply: command.ReplyInteger,
			Handler: emulated(func(c *command.Ctx) { c.Reply.Int(int64(hashslot.Of(c.Args[2]))) }),
		},
		{
			Name: "links", Since: "7.0.0", Complexity: "O(1)",
			Summary: "List the connections between nodes; there are none.",
			Arity:   2, Flags: command.Stale, Tips: command.TipVaries, Reply: command.ReplyArray, Handler: emulated(func(c *command.Ctx) { c.Reply.EmptyArray() }),
		},
		fixed("meet", "3.0.0", change, -4, command.Str("ip"), command.Integer("port"), command.Integer("cluster-bus-port").Opt()),
		{
			Name: "myid", Since: "3.0.0", Complexity: "O(1)",
			Summary: "Return the id of this node, which derives from its address.",
			Arity:   2, Flags: command.Stale, Reply: command.ReplyBulk, Handler: emulated(func(c *command.Ctx) { c.Reply.BulkString(s.self(c).id) }),
		},
		{
			Name: "nodes", Since: "3.0.0", Complexity: "O(n) in the number of replicas",
			Summary: "List the nodes, one to a line.",
			Arity:   2, Flags: command.Stale, Tips: command.TipVaries, Reply: command.ReplyBulk | command.ReplyVerbatim, Handler: emulated(s.listNodes),
		},
		s.replicasCommand("replicas", "5.0.0"),
		fixed("replicate", "3.0.0", change, 3, nodeID),
		fixed("reset", "3.0.0", command.Admin|command.NoScript|command.Stale, -2, command.OneOf("hard-soft", command.Tok("HARD"), command.Tok("SOFT")).Opt()),
		fixed("saveconfig", "3.0.0", change, 2),
		fixed("set-config-epoch", "3.0.0", change, 3, command.Integer("config-epoch")),
		fixed("setslot", "3.0.0", change, -4, command.Integer("slot"), command.Str("subcommand").Multi()),
		{
			Name: "shards", Since: "7.0.0", Complexity: "O(n) in the number of replicas",
			Summary: "List the shards with their slots and nodes; there is one.",
			Arity:   2, Flags: command.Stale, Tips: command.TipVaries, Reply: command.ReplyArray, Handler: emulated(s.shards),
		},
		s.replicasCommand("slaves", "3.0.0"),
		{
			Name: "slots", Since: "3.0.0", Complexity: "O(n) in the number of replicas",
			Summary: "List the ranges of slots with the nodes that have them; there is one.",
			Arity:   2, Flags: command.Stale, Tips: command.TipVaries, Reply: command.ReplyArray, Handler: emulated(s.slots),
		},
	}
}

// emulated is a handler that answers Redis's error if cluster-enabled is no.
func emulated(handler command.Handler) command.Handler {
	return func(c *command.Ctx) {
		if !c.Cfg.ClusterEmulated {
			c.Err(command.ErrNoCluster)
			return
		}
		handler(c)
	}
}

// fixed declares what would change a cluster. This one stays as it is.
func fixed(name, since string, flags command.Flags, arity int, args ...command.Arg) *command.Command {
	return &command.Command{
		Name: name, Since: since, Complexity: "O(1)",
		Summary: "Return an error: one server always has all slots.",
		Arity:   arity, Flags: flags, Args: args, Reply: command.ReplySimple,
		Handler: emulated(func(c *command.Ctx) { c.Errf(errFixed, "CLUSTER "+c.Cmd.Upper) }),
	}
}

// helpCommand is HELP, which, too, is an error without a cluster.
func helpCommand() *command.Command {
	help := command.HelpCommand("5.0.0")
	help.Handler = emulated(help.Handler)
	return help
}

func (s *Cluster) replicasCommand(name, since string) *command.Command {
	return &command.Command{
		Name: name, Since: since, Complexity: "O(n) in the number of replicas",
		Summary: "List the replicas of a primary as CLUSTER NODES does.",
		Arity:   3, Flags: command.Admin | command.Stale, Tips: command.TipVaries, Args: []command.Arg{command.Str("node-id")}, Reply: command.ReplyArray, Handler: emulated(s.replicas),
	}
}

// readsReplica implements READONLY and READWRITE.
func readsReplica(c *command.Ctx, reads bool) {
	c.Client.ReadsReplica = reads
	c.OK()
}

// find returns the node that args[2] names, or sends the error and returns false.
func (s *Cluster) find(c *command.Ctx) (nodes []node, at int, found bool) {
	nodes = s.nodes(c)
	for i := range nodes {
		if nodes[i].id == string(c.Args[2]) {
			return nodes, i, true
		}
	}
	c.Errf(errNode, command.CutAtNUL(c.Args[2]))
	return nil, 0, false
}

// countReports implements CLUSTER COUNT-FAILURE-REPORTS node-id.
func (s *Cluster) countReports(c *command.Ctx) {
	if _, _, found := s.find(c); found {
		c.Reply.Zero()
	}
}

// slotOf reads args[2] as a slot, or sends the error and returns false.
func slotOf(c *command.Ctx) (slot int64, ok bool) {
	if slot, ok = c.Integer(2); ok && (slot < 0 || slot >= hashslot.Count) {
		c.Err(errSlot)
		return 0, false
	}
	return slot, ok
}

// eachIn calls fn for the keys of database 0 that lie in a slot until it returns false. A cluster has no other database.
func eachIn(c *command.Ctx, slot int64, fn func(name []byte) bool) {
	c.Core.Keys.DB(0).Each(c.Now, func(e *store.Entry) bool { return int64(hashslot.Of(e.Name())) != slot || fn(e.Name()) })
}

// countKeys implements CLUSTER COUNTKEYSINSLOT slot.
func countKeys(c *command.Ctx) {
	slot, ok := slotOf(c)
	if !ok {
		return
	}
	n := int64(0)
	eachIn(c, slot, func([]byte) bool { n++; return true })
	c.Reply.Int(n)
}

// getKeys implements CLUSTER GETKEYSINSLOT slot count.
func getKeys(c *command.Ctx) {
	slot, ok := c.Integer(2)
	if !ok {
		return
	}
	limit, ok := c.Integer(3)
	if !ok {
		return
	}
	if slot < 0 || slot >= hashslot.Count || limit < 0 {
		c.Err(errSlotCount)
		return
	}
	list, n := c.Reply.Start(), int64(0)
	if limit > 0 {
		eachIn(c, slot, func(name []byte) bool {
			c.Reply.Bulk(name)
			n++
			return n < limit
		})
	}
	c.Reply.EndArray(list, int(n))
}

// info implements CLUSTER INFO.
func (s *Cluster) info(c *command.Ctx) {
	slots := strconv.Itoa(hashslot.Count)
	c.Reply.Verbatim("txt", strings.Join([]string{
		"cluster_state:ok", "cluster_slots_assigned:" + slots, "cluster_slots_ok:" + slots, "cluster_slots_pfail:0", "cluster_slots_fail:0",
		"cluster_known_nodes:" + strconv.Itoa(len(s.nodes(c))), "cluster_size:1", "cluster_current_epoch:1", "cluster_my_epoch:1",
		"cluster_stats_messages_sent:0", "cluster_stats_messages_received:0", "total_cluster_links_buffer_limit_exceeded:0", "",
	}, "\r\n"))
}

// listNodes implements CLUSTER NODES.
func (s *Cluster) listNodes(c *command.Ctx) {
	var text strings.Builder
	nodes := s.nodes(c)
	for i := range nodes {
		text.WriteString(nodes[i].line(&nodes[0], c.Now))
		text.WriteByte('\n')
	}
	c.Reply.Verbatim("txt", text.String())
}

// replicas implements CLUSTER REPLICAS node-id.
func (s *Cluster) replicas(c *command.Ctx) {
	nodes, at, found := s.find(c)
	switch {
	case !found:
		return
	case at > 0:
		c.Err(errNoMaster)
		return
	}
	c.Reply.Array(len(nodes) - 1)
	for i := range nodes[1:] {
		c.Reply.BulkString(nodes[1+i].line(&nodes[0], c.Now))
	}
}

// line describes a node of a primary's shard as CLUSTER NODES does: its id, address@bus port,hostname, flags, primary's id, when it was last pinged and
// last answered, epoch, link and slots. There is no bus, so its port is 0.
func (n *node) line(primary *node, nowMs int64) string {
	flags, master, answered, link, slots := "master", "-", nowMs, "connected", ""
	if n.replica {
		flags, master = "slave", primary.id
	} else {
		slots = " 0-" + strconv.Itoa(hashslot.Count-1)
	}
	if n.self {
		flags, answered = "myself,"+flags, 0
	}
	if !n.online {
		link = "disconnected"
	}
	at := address(n.ip, n.port) + "@0"
	if n.hostname != "" {
		at += "," + n.hostname
	}
	return n.id + " " + at + " " + flags + " " + master + " 0 " + strconv.FormatInt(answered, 10) + " 1 " + link + slots
}

// slots implements CLUSTER SLOTS.
func (s *Cluster) slots(c *command.Ctx) {
	nodes := s.nodes(c)
	w := c.Reply
	w.Array(1)
	w.Array(2 + len(nodes))
	w.Int(0)
	w.Int(hashslot.Count - 1)
	for i := range nodes {
		n := &nodes[i]
		w.Array(4)
		n.sendEndpoint(c)
		w.Int(int64(n.port))
		w.BulkString(n.id)
		var more [][2]string // by which it is known, too
		if n.endpoint != n.ip {
			more = append(more, [2]string{"ip", n.ip})
		}
		if n.hostname != "" && n.endpoint != n.hostname {
			more = append(more, [2]string{"hostname", n.hostname})
		}
		w.Map(len(more))
		for _, pair := range more {
			w.BulkString(pair[0])
			w.BulkString(pair[1])
		}
	}
}

// sendEndpoint sends where clients are to connect, or null if that is where they have asked.
func (n *node) sendEndpoint(c *command.Ctx) {
	if n.endpoint == "" {
		c.Reply.Null()
		return
	}
	c.Reply.BulkString(n.endpoint)
}

// shards implements CLUSTER SHARDS.
func (s *Cluster) shards(c *command.Ctx) {
	nodes := s.nodes(c)
	w := c.Reply
	w.Array(1)
	w.Map(2)
	w.BulkString("slots")
	w.Array(2)
	w.Ints(0, hashslot.Count-1)
	w.BulkString("nodes")
	w.Array(len(nodes))
	for i := range nodes {
		nodes[i].sendDetails(c)
	}
}

// sendDetails sends a node as CLUSTER SHARDS describes it.
func (n *node) sendDetails(c *command.Ctx) {
	w, fields := c.Reply, 7
	if n.hostname != "" {
		fields++
	}
	w.Map(fields)
	w.BulkString("id")
	w.BulkString(n.id)
	if n.tls {
		w.BulkString("tls-port")
	} else {
		w.BulkString("port")
	}
	w.Int(int64(n.port))
	w.BulkString("ip")
	w.BulkString(n.ip)
	w.BulkString("endpoint")
	n.sendEndpoint(c)
	if n.hostname != "" {
		w.BulkString("hostname")
		w.BulkString(n.hostname)
	}
	w.BulkString("role")
	if n.replica {
		w.BulkString("replica")
	} else {
		w.BulkString("master")
	}
	w.BulkString("replication-offset")
	w.Int(n.offset)
	w.BulkString("health")
	if n.online {
		w.BulkString("online")
	} else {
		w.BulkString("fail")
	}
}
