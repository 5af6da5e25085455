package server

import (
	"math"
	"slices"
	"strings"

	"headgate/internal/number"
	"headgate/server/acl"
)

// clientCommand is the CLIENT family. A client library finds out by the error for an unknown sub-command what is not there.
func (a *Console) clientCommand() *Command {
	return &Command{
		Name: "client", Group: GroupConnection, Since: "2.4.0", Complexity: "depends on the sub-command",
		Summary: "Look at and manage connections.",
		Arity:   -2, Flags: KeepsCaching,
		Sub: []*Command{
			clientCachingCommand,
			{
				Name: "getname", Since: "2.6.9", Complexity: "O(1)",
				Summary: "Return the connection's name.",
				Arity:   2, Flags: clientFlags, Reply: ReplyBulk | ReplyNull, Handler: clientGetName,
			},
			clientGetRedirCommand,
			helpCommand("5.0.0"),
			{
				Name: "id", Since: "5.0.0", Complexity: "O(1)",
				Summary: "Return the connection's number; no two connections have the same, and later ones have higher ones.",
				Arity:   2, Flags: clientFlags, Reply: ReplyInteger, Handler: clientID,
			},
			{
				Name: "info", Since: "6.2.0", Complexity: "O(1)",
				Summary: "Return the connection's line of CLIENT LIST.",
				Arity:   2, Flags: clientFlags, Reply: ReplyBulk | ReplyVerbatim, Handler: clientInfo,
				Tips: tipVaries,
			},
			{
				Name: "kill", Since: "2.4.0", Complexity: "O(n) in the number of connections",
				Summary: "Close the connections that all filters match.",
				Arity:   -3, Flags: Admin | clientFlags,
				Args: []Arg{oneOf("filter", str("ip:port"), oneOf("new-format",
					integer("client-id").after("ID"),
					oneOf("client-type", tok("NORMAL"), tok("MASTER"), tok("REPLICA"), tok("PUBSUB")).after("TYPE"),
					str("username").after("USER"),
					str("ip:port").after("ADDR"),
					str("ip:port").after("LADDR"),
					oneOf("skipme", tok("YES"), tok("NO")).after("SKIPME"),
				).multi())},
				Reply: ReplySimple | ReplyInteger, Handler: a.clientKill,
			},
			{
				Name: "list", Since: "2.4.0", Complexity: "O(n) in the number of connections",
				Summary: "Describe the connections, one line for each.",
				Arity:   -2, Flags: Admin | clientFlags,
				Tips: tipVaries,
				Args: []Arg{oneOf("filter",
					oneOf("client-type", tok("NORMAL"), tok("MASTER"), tok("REPLICA"), tok("PUBSUB")).after("TYPE"),
					integer("client-id").after("ID").multi(),
				).opt()},
				Reply: ReplyBulk | ReplyVerbatim, Handler: clientList,
			},
			{
				Name: "no-evict", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Spare the connection when clients are closed to save memory.",
				Arity:   3, Flags: Admin | clientFlags,
				Args: []Arg{oneOf("enabled", tok("ON"), tok("OFF"))}, Reply: ReplySimple, Handler: clientNoEvict,
			},
			{
				Name: "no-touch", Since: "7.2.0", Complexity: "O(1)",
				Summary: "Have the connection's commands leave the access times of keys as they are.",
				Arity:   3, Flags: clientFlags,
				Args: []Arg{oneOf("enabled", tok("ON"), tok("OFF"))}, Reply: ReplySimple, Handler: a.clientNoTouch,
			},
			{
				Name: "pause", Since: "2.9.50", Complexity: "O(1)",
				Summary: "Hold back all commands, or those that may write, for some milliseconds.",
				Arity:   -3, Flags: Admin | clientFlags,
				Args:  []Arg{integer("timeout"), oneOf("mode", tok("WRITE"), tok("ALL")).opt()},
				Reply: ReplySimple, Handler: a.clientPause,
			},
			{
				Name: "reply", Since: "3.2.0", Complexity: "O(1)",
				Summary: "Leave out the replies to the following commands, or to the next one.",
				Arity:   3, Flags: clientFlags,
				Args: []Arg{oneOf("on-off-skip", tok("ON"), tok("OFF"), tok("SKIP"))}, Reply: ReplySimple | ReplyNone, Handler: clientReply,
			},
			{
				Name: "setinfo", Since: "7.2.0", Complexity: "O(1)",
				Summary: "Tell the name or the version of the client library.",
				Arity:   4, Flags: clientFlags,
				Args:  []Arg{oneOf("attr", str("libname").after("LIB-NAME"), str("libver").after("LIB-VER"))},
				Reply: ReplySimple, Handler: clientSetInfo,
			},
			{
				Name: "setname", Since: "2.6.9", Complexity: "O(1)",
				Summary: "Give the connection a name, or take it away with an empty one.",
				Arity:   3, Flags: clientFlags,
				Args: []Arg{str("connection-name")}, Reply: ReplySimple, Handler: clientSetName,
			},
			{
				Name: "unblock", Since: "5.0.0", Complexity: "O(n) in the number of keys that the client waits for",
				Summary: "Have a client that waits for a key go on, as if its time were over or with an error.",
				Arity:   -3, Flags: Admin | clientFlags,
				Args:  []Arg{integer("client-id"), oneOf("timeout-error", tok("TIMEOUT"), tok("ERROR")).opt()},
				Reply: ReplyInteger, Handler: a.clientUnblock,
			},
			a.hub.clientTrackingCommand(),
			clientTrackingInfoCommand,
			{
				Name: "unpause", Since: "6.2.0", Complexity: "O(n) in the number of clients held back",
				Summary: "End a pause.",
				Arity:   2, Flags: Admin | clientFlags, Reply: ReplySimple, Handler: a.clientUnpause,
			},
		},
	}
}

func clientID(c *Ctx) { c.reply.Int(c.client.id) }

func clientGetName(c *Ctx) {
	if c.client.name == "" {
		c.reply.Null()
		return
	}
	c.reply.BulkString(c.client.name)
}

func clientSetName(c *Ctx) {
	if c.setClientName(c.args[2]) {
		c.ok()
	}
}

// setClientName names the client, or sends the error.
func (c *Ctx) setClientName(name []byte) bool {
	if !isPlain(name) {
		c.err(errClientName)
		return false
	}
	c.client.name = string(name)
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

func clientSetInfo(c *Ctx) {
	var attribute *string
	switch {
	case c.is(2, "LIB-NAME"):
		attribute = &c.client.libName
	case c.is(2, "LIB-VER"):
		attribute = &c.client.libVer
	default:
		c.errf("ERR Unrecognized option '%s'", cutAtNUL(c.args[2]))
		return
	}
	if !isPlain(c.args[3]) {
		c.errf("ERR %s cannot contain spaces, newlines or special characters.", c.args[2])
		return
	}
	*attribute = string(c.args[3])
	c.ok()
}

// onOff sets a switch from args[2], or sends the error.
func (c *Ctx) onOff(value *bool) {
	switch {
	case c.is(2, "ON"):
		*value = true
	case c.is(2, "OFF"):
		*value = false
	default:
		c.err(errSyntax)
		return
	}
	c.ok()
}

func clientNoEvict(c *Ctx) { c.onOff(&c.client.noEvict) }

func (a *Console) clientNoTouch(c *Ctx) {
	noTouch := c.client.noTouch
	c.onOff(&noTouch)
	a.exec.setNoTouch(c.client, noTouch)
}

func clientReply(c *Ctx) {
	cl := c.client
	switch {
	case c.is(2, "ON"):
		cl.replyMode = replyOn
		cl.sendAside()
		c.ok()
	case c.is(2, "OFF"):
		cl.replyMode = replyOff
	case c.is(2, "SKIP"):
		if cl.replyMode != replyOff {
			cl.replyMode = replySkipNext
		}
	default:
		c.err(errSyntax)
	}
}

// clientPause holds commands back. A pause that is on only ever gets longer and stricter by another.
func (a *Console) clientPause(c *Ctx) {
	writes := false
	switch {
	case len(c.args) > 4:
		c.errSubcommandSyntax()
		return
	case len(c.args) < 4:
	case c.is(3, "WRITE"):
		writes = true
	case !c.is(3, "ALL"):
		c.err("ERR CLIENT PAUSE mode must be WRITE or ALL")
		return
	}
	ms, ok := number.ParseInt(c.args[2])
	switch {
	case !ok:
		c.err("ERR timeout is not an integer or out of range")
		return
	case ms < 0:
		c.err("ERR timeout is negative")
		return
	case ms > (math.MaxInt64-c.nowNs)/1e6:
		c.err("ERR timeout is out of range")
		return
	}
	p, now := &a.exec.pause, c.nowNs
	until := now + ms*1e6
	if p.until > now {
		until, writes = max(until, p.until), writes && p.writes
	}
	p.until, p.writes = until, writes
	c.core.gate.set(gatePaused, true)
	c.ok()
}

func (a *Console) clientUnpause(c *Ctx) {
	p := &a.exec.pause
	p.until = min(p.until, c.nowNs)
	a.exec.endPause(c.nowNs)
	c.ok()
}

func (a *Console) clientUnblock(c *Ctx) {
	refusal := ""
	switch {
	case len(c.args) > 4:
		c.errSubcommandSyntax()
		return
	case len(c.args) < 4 || c.is(3, "TIMEOUT"):
	case c.is(3, "ERROR"):
		refusal = errUnblocked
	default:
		c.err("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
		return
	}
	id, ok := c.integer(2)
	if !ok {
		return
	}
	cl := c.core.clients.byID[id]
	if cl == nil || cl.blocked == nil {
		c.reply.Zero()
		return
	}
	a.exec.giveUp(cl, refusal, c.nowNs)
	c.reply.One()
}

func clientInfo(c *Ctx) {
	c.reply.Verbatim("txt", string(c.appendClient(nil, c.client)))
}

func clientList(c *Ctx) {
	var list []*Client
	switch {
	case len(c.args) == 2:
		list = c.core.clients.sorted()
	case len(c.args) == 4 && c.is(2, "TYPE"):
		kind, ok := c.clientType(3)
		if !ok {
			return
		}
		list = slices.DeleteFunc(c.core.clients.sorted(), func(cl *Client) bool { return cl.class() != kind })
	case len(c.args) > 3 && c.is(2, "ID"):
		for _, arg := range c.args[3:] {
			id, ok := number.ParseInt(arg)
			if !ok {
				c.err("ERR Invalid client ID")
				return
			}
			if cl := c.core.clients.byID[id]; cl != nil {
				list = append(list, cl)
			}
		}
	default:
		c.err(errSyntax)
		return
	}
	text := c.scratch[:0]
	for _, cl := range list {
		if cl == c.client || !cl.conn.ClosingNow() {
			text = c.appendClient(text, cl)
		}
	}
	c.scratch = text
	c.reply.Verbatim("txt", string(text))
}

// clientType reads args[i] as a class of clients, or sends the error.
func (c *Ctx) clientType(i int) (clientType, bool) {
	switch strings.ToLower(string(c.args[i])) {
	case "normal":
		return typeNormal, true
	case "pubsub":
		return typePubSub, true
	case "slave", "replica", "master":
		return typeOther, true
	}
	c.errf("ERR Unknown client type '%s'", cutAtNUL(c.args[i]))
	return 0, false
}

// killFilter says which clients CLIENT KILL means; zero fields match all.
type killFilter struct {
	id          int64
	addr, laddr string
	user        *acl.User
	kind        clientType
	skipMe      bool
}

func (f *killFilter) matches(cl *Client, self *Client) bool {
	return (f.id == 0 || cl.id == f.id) &&
		(f.addr == "" || cl.conn.Remote == f.addr) &&
		(f.laddr == "" || cl.conn.Local == f.laddr) &&
		(f.user == nil || cl.user == f.user) &&
		(f.kind == typeAny || cl.class() == f.kind) && (!f.skipMe || cl != self)
}

func (a *Console) clientKill(c *Ctx) {
	f := killFilter{skipMe: true}
	single := len(c.args) == 3
	if single {
		f.addr, f.skipMe = string(c.args[2]), false
	} else if !a.killFilters(c, &f) {
		return
	}
	killed := int64(0)
	for _, cl := range slices.Clone(c.core.clients.list) {
		if cl.conn.ClosingNow() || !f.matches(cl, c.client) {
			continue
		}
		killed++
		if cl == c.client {
			cl.conn.CloseAfterReply()
		} else {
			cl.conn.CloseNow()
		}
	}
	switch {
	case !single:
		c.reply.Int(killed)
	case killed == 0:
		c.err("ERR No such client")
	default:
		c.ok()
	}
}

// killFilters parses the filters from args[2] on, or sends the error.
func (a *Console) killFilters(c *Ctx, f *killFilter) bool {
	for i := 2; i < len(c.args); i += 2 {
		if i+1 == len(c.args) {
			c.err(errSyntax)
			return false
		}
		value := c.args[i+1]
		switch {
		case c.is(i, "ID"):
			id, ok := number.ParseInt(value)
			if !ok || id < 1 {
				c.err("ERR client-id should be greater than 0")
				return false
			}
			f.id = id
		case c.is(i, "TYPE"):
			kind, ok := c.clientType(i + 1)
			if !ok {
				return false
			}
			f.kind = kind
		case c.is(i, "ADDR"):
			f.addr = string(value)
		case c.is(i, "LADDR"):
			f.laddr = string(value)
		case c.is(i, "USER"):
			if f.user = a.access.users.Get(string(value)); f.user == nil {
				c.errf("ERR No such user '%s'", cutAtNUL(value))
				return false
			}
		case c.is(i, "SKIPME") && c.is(i+1, "YES"):
			f.skipMe = true
		case c.is(i, "SKIPME") && c.is(i+1, "NO"):
			f.skipMe = false
		default:
			c.err(errSyntax)
			return false
		}
	}
	return true
}
