package admin

import (
	"math"
	"slices"
	"strings"

	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/pubsub"
)

// clientCommand is the CLIENT family. A client library finds out by the error for an unknown sub-command what is not there.
func (a *Console) clientCommand() *command.Command {
	return &command.Command{
		Name: "client", Group: command.GroupConnection, Since: "2.4.0", Complexity: "depends on the sub-command",
		Summary: "Show and manage connections.",
		Arity:   -2, Flags: command.KeepsCaching,
		Sub: []*command.Command{
			pubsub.ClientCachingCommand,
			{
				Name: "getname", Since: "2.6.9", Complexity: "O(1)",
				Summary: "Return the connection's name.",
				Arity:   2, Flags: command.ClientFlags, Reply: command.ReplyBulk | command.ReplyNull, Handler: clientGetName,
			},
			pubsub.ClientGetRedirCommand,
			command.HelpCommand("5.0.0"),
			{
				Name: "id", Since: "5.0.0", Complexity: "O(1)",
				Summary: "Return the connection's number; no two connections have the same, and later ones have higher ones.",
				Arity:   2, Flags: command.ClientFlags, Reply: command.ReplyInteger, Handler: clientID,
			},
			{
				Name: "info", Since: "6.2.0", Complexity: "O(1)",
				Summary: "Return the connection's line of CLIENT LIST.",
				Arity:   2, Flags: command.ClientFlags, Reply: command.ReplyBulk | command.ReplyVerbatim, Handler: clientInfo,
				Tips: command.TipVaries,
			},
			{
				Name: "kill", Since: "2.4.0", Complexity: "O(n) in the number of connections",
				Summary: "Close the connections that all filters match.",
				Arity:   -3, Flags: command.Admin | command.ClientFlags,
				Args: []command.Arg{command.OneOf("filter", command.Str("ip:port"), command.OneOf("new-format",
					command.Integer("client-id").After("ID"),
					command.OneOf("client-type", command.Tok("NORMAL"), command.Tok("MASTER"), command.Tok("REPLICA"), command.Tok("PUBSUB")).After("TYPE"),
					command.Str("username").After("USER"),
					command.Str("ip:port").After("ADDR"),
					command.Str("ip:port").After("LADDR"),
					command.OneOf("skipme", command.Tok("YES"), command.Tok("NO")).After("SKIPME"),
				).Multi())},
				Reply: command.ReplySimple | command.ReplyInteger, Handler: a.clientKill,
			},
			{
				Name: "list", Since: "2.4.0", Complexity: "O(n) in the number of connections",
				Summary: "Describe the connections, one line for each.",
				Arity:   -2, Flags: command.Admin | command.ClientFlags,
				Tips: command.TipVaries,
				Args: []command.Arg{command.OneOf("filter",
					command.OneOf("client-type", command.Tok("NORMAL"), command.Tok("MASTER"), command.Tok("REPLICA"), command.Tok("PUBSUB")).After("TYPE"),
					command.Integer("client-id").After("ID").Multi(),
				).Opt()},
				Reply: command.ReplyBulk | command.ReplyVerbatim, Handler: clientList,
			},
			{
				Name: "no-evict", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Exempt the connection from being closed to save memory.",
				Arity:   3, Flags: command.Admin | command.ClientFlags,
				Args: []command.Arg{command.OneOf("enabled", command.Tok("ON"), command.Tok("OFF"))}, Reply: command.ReplySimple, Handler: clientNoEvict,
			},
			{
				Name: "no-touch", Since: "7.2.0", Complexity: "O(1)",
				Summary: "Keep this connection's commands from updating the access times of keys.",
				Arity:   3, Flags: command.ClientFlags,
				Args: []command.Arg{command.OneOf("enabled", command.Tok("ON"), command.Tok("OFF"))}, Reply: command.ReplySimple, Handler: a.clientNoTouch,
			},
			{
				Name: "pause", Since: "2.9.50", Complexity: "O(1)",
				Summary: "Delay all commands, or those that may write, for some milliseconds.",
				Arity:   -3, Flags: command.Admin | command.ClientFlags,
				Args:  []command.Arg{command.Integer("timeout"), command.OneOf("mode", command.Tok("WRITE"), command.Tok("ALL")).Opt()},
				Reply: command.ReplySimple, Handler: a.clientPause,
			},
			{
				Name: "reply", Since: "3.2.0", Complexity: "O(1)",
				Summary: "Turn replies to this connection on or off, or skip the next one.",
				Arity:   3, Flags: command.ClientFlags,
				Args: []command.Arg{command.OneOf("on-off-skip", command.Tok("ON"), command.Tok("OFF"), command.Tok("SKIP"))}, Reply: command.ReplySimple | command.ReplyNone, Handler: clientReply,
			},
			{
				Name: "setinfo", Since: "7.2.0", Complexity: "O(1)",
				Summary: "Set the name or the version of the client library.",
				Arity:   4, Flags: command.ClientFlags,
				Args:  []command.Arg{command.OneOf("attr", command.Str("libname").After("LIB-NAME"), command.Str("libver").After("LIB-VER"))},
				Reply: command.ReplySimple, Handler: clientSetInfo,
			},
			{
				Name: "setname", Since: "2.6.9", Complexity: "O(1)",
				Summary: "Name the connection, or remove its name with an empty one.",
				Arity:   3, Flags: command.ClientFlags,
				Args: []command.Arg{command.Str("connection-name")}, Reply: command.ReplySimple, Handler: clientSetName,
			},
			{
				Name: "unblock", Since: "5.0.0", Complexity: "O(n) in the number of keys that the client waits for",
				Summary: "Unblock a client that waits for a key, as if it had timed out or with an error.",
				Arity:   -3, Flags: command.Admin | command.ClientFlags,
				Args:  []command.Arg{command.Integer("client-id"), command.OneOf("timeout-error", command.Tok("TIMEOUT"), command.Tok("ERROR")).Opt()},
				Reply: command.ReplyInteger, Handler: a.clientUnblock,
			},
			a.Hub.ClientTrackingCommand(),
			pubsub.ClientTrackingInfoCommand,
			{
				Name: "unpause", Since: "6.2.0", Complexity: "O(n) in the number of clients held back",
				Summary: "End a pause.",
				Arity:   2, Flags: command.Admin | command.ClientFlags, Reply: command.ReplySimple, Handler: a.clientUnpause,
			},
		},
	}
}

func clientID(c *command.Ctx) { c.Reply.Int(c.Client.ID) }

func clientGetName(c *command.Ctx) {
	if c.Client.Name == "" {
		c.Reply.Null()
		return
	}
	c.Reply.BulkString(c.Client.Name)
}

func clientSetName(c *command.Ctx) {
	if setClientName(c, c.Args[2]) {
		c.OK()
	}
}

// setClientName names the client, or sends the error.
func setClientName(c *command.Ctx, name []byte) bool {
	if !isPlain(name) {
		c.Err(errClientName)
		return false
	}
	c.Client.Name = string(name)
	return true
}

// isPlain reports whether a name can stand in CLIENT LIST, where blanks separate fields.
func isPlain(name []byte) bool {
	for _, b := range name {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

func clientSetInfo(c *command.Ctx) {
	var attribute *string
	switch {
	case c.Is(2, "LIB-NAME"):
		attribute = &c.Client.LibName
	case c.Is(2, "LIB-VER"):
		attribute = &c.Client.LibVer
	default:
		c.Errf("ERR Unrecognized option '%s'", command.CutAtNUL(c.Args[2]))
		return
	}
	if !isPlain(c.Args[3]) {
		c.Errf("ERR %s cannot contain spaces, newlines or special characters.", c.Args[2])
		return
	}
	*attribute = string(c.Args[3])
	c.OK()
}

// onOff sets a switch from args[2], or sends the error.
func onOff(c *command.Ctx, value *bool) {
	switch {
	case c.Is(2, "ON"):
		*value = true
	case c.Is(2, "OFF"):
		*value = false
	default:
		c.Err(command.ErrSyntax)
		return
	}
	c.OK()
}

func clientNoEvict(c *command.Ctx) { onOff(c, &c.Client.NoEvict) }

func (a *Console) clientNoTouch(c *command.Ctx) {
	noTouch := c.Client.NoTouch
	onOff(c, &noTouch)
	a.Exec.SetNoTouch(c.Client, noTouch)
}

func clientReply(c *command.Ctx) {
	cl := c.Client
	switch {
	case cl.Replicates: // it is answered nothing: a reply would stand in the midst of the stream
		c.Err(command.ErrSyntax)
	case c.Is(2, "ON"):
		cl.ReplyMode = command.ReplyModeOn
		cl.SendAside()
		c.OK()
	case c.Is(2, "OFF"):
		cl.ReplyMode = command.ReplyModeOff
	case c.Is(2, "SKIP"):
		if cl.ReplyMode != command.ReplyModeOff {
			cl.ReplyMode = command.ReplyModeSkipNext
		}
	default:
		c.Err(command.ErrSyntax)
	}
}

// clientPause holds commands back. A pause that is on only ever gets longer and stricter by another.
func (a *Console) clientPause(c *command.Ctx) {
	writes := false
	switch {
	case len(c.Args) > 4:
		c.ErrSubcommandSyntax()
		return
	case len(c.Args) < 4:
	case c.Is(3, "WRITE"):
		writes = true
	case !c.Is(3, "ALL"):
		c.Err("ERR CLIENT PAUSE mode must be WRITE or ALL")
		return
	}
	ms, ok := number.ParseInt(c.Args[2])
	switch {
	case !ok:
		c.Err("ERR timeout is not an integer or out of range")
		return
	case ms < 0:
		c.Err("ERR timeout is negative")
		return
	case ms > (math.MaxInt64-c.NowNs)/1e6:
		c.Err("ERR timeout is out of range")
		return
	}
	p, now := &a.Exec.Pause, c.NowNs
	until := now + ms*1e6
	if p.Until > now {
		until, writes = max(until, p.Until), writes && p.Writes
	}
	p.Until, p.Writes = until, writes
	c.Core.Gate.Set(command.GatePaused, true)
	c.OK()
}

func (a *Console) clientUnpause(c *command.Ctx) {
	p := &a.Exec.Pause
	p.Until = min(p.Until, c.NowNs)
	a.Exec.EndPause(c.NowNs)
	c.OK()
}

func (a *Console) clientUnblock(c *command.Ctx) {
	refusal := ""
	switch {
	case len(c.Args) > 4:
		c.ErrSubcommandSyntax()
		return
	case len(c.Args) < 4 || c.Is(3, "TIMEOUT"):
	case c.Is(3, "ERROR"):
		refusal = exec.ErrUnblocked
	default:
		c.Err("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
		return
	}
	id, ok := c.Integer(2)
	if !ok {
		return
	}
	cl := c.Core.Clients.ByID[id]
	if cl == nil || cl.Blocked == nil || cl.Conn.ClosingNow() { // one that was killed has gone
		c.Reply.Zero()
		return
	}
	a.Exec.GiveUp(cl, refusal, c.NowNs)
	c.Reply.One()
}

func clientInfo(c *command.Ctx) {
	c.Reply.Verbatim("txt", string(appendClient(c, nil, c.Client)))
}

func clientList(c *command.Ctx) {
	var list []*command.Client
	switch {
	case len(c.Args) == 2:
		list = c.Core.Clients.Sorted()
	case len(c.Args) == 4 && c.Is(2, "TYPE"):
		kind, ok := clientType(c, 3)
		if !ok {
			return
		}
		list = slices.DeleteFunc(c.Core.Clients.Sorted(), func(cl *command.Client) bool { return cl.Type() != kind })
	case len(c.Args) > 3 && c.Is(2, "ID"):
		for _, arg := range c.Args[3:] {
			id, ok := number.ParseInt(arg)
			if !ok {
				c.Err("ERR Invalid client ID")
				return
			}
			if cl := c.Core.Clients.ByID[id]; cl != nil {
				list = append(list, cl)
			}
		}
	default:
		c.Err(command.ErrSyntax)
		return
	}
	own := appendClient(c, nil, c.Client) // before its reply grows
	m := c.Reply.StartVerbatim("txt")
	for _, cl := range list {
		switch {
		case cl == c.Client:
			c.Reply.Raw(own)
		case !cl.Conn.ClosingNow():
			c.Scratch = appendClient(c, c.Scratch[:0], cl)
			c.Reply.Raw(c.Scratch)
		}
	}
	c.Reply.EndVerbatim(m)
}

// clientType reads args[i] as a class of clients, or sends the error.
func clientType(c *command.Ctx, i int) (command.ClientType, bool) {
	switch strings.ToLower(string(c.Args[i])) {
	case "normal":
		return command.ClientTypeNormal, true
	case "pubsub":
		return command.ClientTypePubSub, true
	case "slave", "replica":
		return command.ClientTypeReplica, true
	case "master":
		return command.ClientTypeMaster, true
	}
	c.Errf("ERR Unknown client type '%s'", command.CutAtNUL(c.Args[i]))
	return 0, false
}

// killFilter says which clients CLIENT KILL means; zero fields match all.
type killFilter struct {
	id          int64
	addr, laddr string
	user        *acl.User
	kind        command.ClientType
	skipMe      bool
}

func (f *killFilter) matches(cl *command.Client, self *command.Client) bool {
	return (f.id == 0 || cl.ID == f.id) &&
		(f.addr == "" || cl.Conn.Remote == f.addr) &&
		(f.laddr == "" || cl.Conn.Local == f.laddr) &&
		(f.user == nil || cl.User == f.user) &&
		(f.kind == command.ClientTypeAny || cl.Type() == f.kind) && (!f.skipMe || cl != self)
}

func (a *Console) clientKill(c *command.Ctx) {
	f := killFilter{skipMe: true}
	single := len(c.Args) == 3
	if single {
		f.addr, f.skipMe = string(c.Args[2]), false
	} else if !a.killFilters(c, &f) {
		return
	}
	killed := int64(0)
	for _, cl := range slices.Clone(c.Core.Clients.List) {
		if cl.Conn.ClosingNow() || !f.matches(cl, c.Client) {
			continue
		}
		killed++
		if cl == c.Client {
			cl.Conn.CloseAfterReply()
		} else {
			cl.Conn.CloseNow()
		}
	}
	switch {
	case !single:
		c.Reply.Int(killed)
	case killed == 0:
		c.Err("ERR No such client")
	default:
		c.OK()
	}
}

// killFilters parses the filters from args[2] on, or sends the error.
func (a *Console) killFilters(c *command.Ctx, f *killFilter) bool {
	for i := 2; i < len(c.Args); i += 2 {
		if i+1 == len(c.Args) {
			c.Err(command.ErrSyntax)
			return false
		}
		value := c.Args[i+1]
		switch {
		case c.Is(i, "ID"):
			id, ok := number.ParseInt(value)
			if !ok || id < 1 {
				c.Err("ERR client-id should be greater than 0")
				return false
			}
			f.id = id
		case c.Is(i, "TYPE"):
			kind, ok := clientType(c, i+1)
			if !ok {
				return false
			}
			f.kind = kind
		case c.Is(i, "ADDR"):
			f.addr = string(value)
		case c.Is(i, "LADDR"):
			f.laddr = string(value)
		case c.Is(i, "USER"):
			if f.user = a.Access.Users.Get(string(value)); f.user == nil {
				c.Errf("ERR No such user '%s'", command.CutAtNUL(value))
				return false
			}
		case c.Is(i, "SKIPME") && c.Is(i+1, "YES"):
			f.skipMe = true
		case c.Is(i, "SKIPME") && c.Is(i+1, "NO"):
			f.skipMe = false
		default:
			c.Err(command.ErrSyntax)
			return false
		}
	}
	return true
}
