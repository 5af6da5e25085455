package replication

import (
	"math"
	"strconv"
	"strings"

	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/config"
)

// Declarations are those of the commands that say who follows whom.
func (r *Replica) Declarations() []*command.Command {
	return []*command.Command{
		r.failoverCommand(),
		{
			Name: "replconf", Group: command.GroupServer, Since: "3.0.0", Complexity: "O(1)",
			Summary: "Exchange information between a replica and its primary; the primary sends REPLCONF GETACK to ask for the replica's offset.",
			Arity:   -1, Flags: command.Admin | command.NoScript | command.Loading | command.Stale | command.AllowBusy | command.HomeOnly,
			Args: []command.Arg{command.Str("option").Multi().Opt()}, Reply: command.ReplySimple | command.ReplyNone, Handler: r.replConf,
		},
		r.replicaOfCommand("replicaof", "5.0.0", "Follow another server: all keys of this one are deleted, and that one's take their place. With NO ONE, stop following, keep the keys and become a primary."),
		{
			Name: "role", Group: command.GroupServer, Since: "2.8.12", Complexity: "O(1)",
			Summary: "Return the server's role, with its replicas or its primary.",
			Arity:   1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast, Categories: acl.Admin | acl.Dangerous,
			Reply: command.ReplyArray, Handler: r.role,
		},
		r.replicaOfCommand("slaveof", "1.0.0", "REPLICAOF under its first name."),
	}
}

func (r *Replica) replicaOfCommand(name, since, summary string) *command.Command {
	return &command.Command{
		Name: name, Group: command.GroupServer, Since: since, Complexity: "O(1)",
		Summary: summary,
		Arity:   3, Flags: command.Admin | command.NoScript | command.Stale | command.NoAsyncLoading | command.HomeOnly,
		Args: []command.Arg{command.Str("host"), command.Str("port")}, Reply: command.ReplySimple, Handler: r.replicaOf,
	}
}

// errHost is for what is no host. Redis takes anything.
const errHost = "ERR Invalid master host"

// replicaOf implements REPLICAOF host port, and REPLICAOF NO ONE.
func (r *Replica) replicaOf(c *command.Ctx) {
	if r.failover.state != failoverNone {
		c.Err(errReplicaOfMeantime)
		return
	}
	if c.Is(1, "NO") && c.Is(2, "ONE") {
		r.Promote()
		c.OK()
		return
	}
	port, ok := number.ParseInt(c.Args[2])
	if !ok || port < 1 || port > math.MaxUint16 { // Redis takes 0, at which nobody can listen
		c.Err("ERR Invalid master port")
		return
	}
	primary := Address{string(c.Args[1]), int(port)}
	switch {
	case !config.IsHost(primary.Host):
		c.Err(errHost)
		return
	case c.Cfg.IsOwn(config.Address(primary)):
		c.Err(errOwnAddress)
		return
	}
	if r.follow != nil && strings.EqualFold(r.follow.Host, primary.Host) && r.follow.Port == primary.Port {
		c.Reply.Simple("OK Already connected to specified master")
		return
	}
	r.Follow(primary)
	c.OK()
}

// role implements ROLE.
func (r *Replica) role(c *command.Ctx) {
	s := r.Status()
	if !s.Following {
		c.Reply.Array(3)
		c.Reply.BulkString("master")
		c.Reply.Int(s.Offset)
		r.Primary.sendReplicas(c)
		return
	}
	offset := int64(-1)
	if s.State == StateConnected {
		offset = s.Offset
	}
	c.Reply.Array(5)
	c.Reply.BulkString("slave")
	c.Reply.BulkString(s.Primary.Host)
	c.Reply.Int(int64(s.Primary.Port))
	c.Reply.BulkString(s.State.String())
	c.Reply.Int(offset)
}

// sendReplicas sends what ROLE tells of each replica that is sent the changes.
func (p *Primary) sendReplicas(c *command.Ctx) {
	mark, n := c.Reply.Start(), 0
	for _, f := range p.Status().Replicas {
		if !f.Online {
			continue
		}
		c.Reply.Array(3)
		c.Reply.BulkString(f.IP)
		c.Reply.BulkString(strconv.Itoa(f.Port))
		c.Reply.BulkString(strconv.FormatInt(f.Offset, 10))
		n++
	}
	c.Reply.EndArray(mark, n)
}

// errNoFlag is for a number that is neither 0 nor 1, in Redis's words.
const errNoFlag = "ERR value is out of range, value must between 0 and 1"

// maxIP bounds the address that a replica may say it has, as in Redis.
const maxIP = 255

// replConf implements REPLCONF, by which a replica says something of itself, and a primary asks how far its changes have been made.
func (r *Replica) replConf(c *command.Ctx) {
	if len(c.Args)%2 == 0 {
		c.Err(command.ErrSyntax)
		return
	}
	lineage := ""
	for i := 1; i < len(c.Args); i += 2 {
		switch {
		case c.Is(i, "GETACK"):
			if c.Client.Primary && r.link != nil {
				r.link.askBeat()
			}
			return
		case c.Is(i, "ACK"):
			if offset, ok := number.ParseInt(c.Args[i+1]); ok && c.Client.Replicates {
				r.Primary.acknowledge(r.Primary.feedOf(c.Client), offset)
			}
			return
		case c.Is(i, "LISTENING-PORT"):
			port, ok := c.Integer(i + 1)
			if !ok {
				return
			}
			r.Primary.feedOf(c.Client).port = int(port)
		case c.Is(i, "IP-ADDRESS"):
			if len(c.Args[i+1]) > maxIP {
				c.Errf("ERR REPLCONF ip-address provided by replica instance is too long: %d bytes", len(c.Args[i+1]))
				return
			}
			r.Primary.feedOf(c.Client).ip = string(c.Args[i+1])
		case c.Is(i, "CAPA"):
			f := r.Primary.feedOf(c.Client)
			if id, ok := strings.CutPrefix(string(c.Args[i+1]), capaRunID); ok && isID(id) {
				if lineage, ok = r.introduced(c, f, id); !ok {
					return
				}
			}
			f.eof, f.psync2 = f.eof || c.Is(i+1, "EOF"), f.psync2 || c.Is(i+1, "PSYNC2")
		case c.Is(i, "RDB-ONLY"):
			only, ok := c.Integer(i + 1)
			switch {
			case !ok:
				return
			case only != 0 && only != 1:
				c.Err(errNoFlag)
				return
			}
			r.Primary.feedOf(c.Client).rdbOnly = only == 1
		case !c.Is(i, "RDB-FILTER-ONLY") || len(c.Args[i+1]) > 0: // and whatever such a filter would have let through
			c.Errf("ERR Unrecognized REPLCONF option: %s", command.CutAtNUL(c.Args[i]))
			return
		}
	}
	c.Reply.Simple("OK" + lineage)
}
