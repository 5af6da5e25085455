package server

import (
	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/resp"
)

// connectionCommands: a connection's own state, and the CLIENT family of cmd_client.go.
func (a *Console) connectionCommands() []*Command {
	return []*Command{
		{
			Name: "auth", Group: GroupConnection, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Prove who the client is.",
			Arity:   -2, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy,
			Args: []Arg{str("username").opt(), str("password")}, Secret: secretFrom(1), Reply: ReplySimple, Handler: a.auth,
		},
		a.clientCommand(),
		{
			Name: "echo", Group: GroupConnection, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Return the message.",
			Arity:   2, Flags: Loading | Stale | Fast,
			Args: []Arg{str("message")}, Reply: ReplyBulk, Handler: echo,
		},
		{
			Name: "hello", Group: GroupConnection, Since: "6.0.0", Complexity: "O(1)",
			Summary: "Choose the protocol version, authenticate and name the connection in one step; describes the server.",
			Arity:   -1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy,
			Args: []Arg{block("arguments",
				integer("protover"),
				block("auth", str("username"), str("password")).after("AUTH").opt(),
				str("clientname").after("SETNAME").opt(),
			).opt()},
			Secret: helloSecret, Reply: ReplyMap, Handler: a.hello,
		},
		{
			Name: "ping", Group: GroupConnection, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Answer PONG, or the message when there is one.",
			Arity:   -1, Flags: Fast | HealthCheck | ForSubscribers,
			Tips: tipAllShards,
			Args: []Arg{str("message").opt()}, Reply: ReplySimple | ReplyBulk, Handler: ping,
		},
		{
			Name: "quit", Group: GroupConnection, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Close the connection once all replies are sent.",
			Arity:   -1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | RunsInMulti | DropsQueue | ForSubscribers,
			Reply: ReplySimple, Handler: quit,
		},
		{
			Name: "readonly", Group: GroupConnection, Since: "3.0.0", Complexity: "O(1)",
			Summary: "Answer the error of a server that is part of no cluster.",
			Arity:   1, Flags: Loading | Stale | Fast, Reply: ReplySimple, Handler: clusterDisabled,
		},
		{
			Name: "readwrite", Group: GroupConnection, Since: "3.0.0", Complexity: "O(1)",
			Summary: "Answer the error of a server that is part of no cluster.",
			Arity:   1, Flags: Loading | Stale | Fast, Reply: ReplySimple, Handler: clusterDisabled,
		},
		{
			Name: "reset", Group: GroupConnection, Since: "6.2.0", Complexity: "O(1)",
			Summary: "Put the connection back into the state of a new one.",
			Arity:   1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | RunsInMulti | DropsQueue | ForSubscribers,
			Reply: ReplySimple, Handler: a.reset,
		},
		{
			Name: "select", Group: GroupConnection, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Choose the database that the following commands work on.",
			Arity:   2, Flags: Loading | Stale | Fast,
			Args: []Arg{integer("index")}, Reply: ReplySimple, Handler: selectDB,
		},
	}
}

const (
	errNoPassword = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	errWrongPass  = "WRONGPASS invalid username-password pair or user is disabled."
	errNoProto    = "NOPROTO unsupported protocol version"
	errProto      = "ERR Protocol version is not an integer or out of range"
	errHelloAuth  = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	errClientName = "ERR Client names cannot contain spaces, newlines or special characters."
)

func (a *Console) auth(c *Ctx) {
	user, password := []byte(acl.DefaultName), c.args[1]
	switch {
	case len(c.args) > 3:
		c.err(errSyntax)
		return
	case len(c.args) == 3:
		user, password = c.args[1], c.args[2]
	case a.access.users.Default().NoPass():
		c.err(errNoPassword)
		return
	}
	if !a.access.authenticate(c, user, password) {
		c.err(errWrongPass)
		return
	}
	c.ok()
}

func echo(c *Ctx) { c.reply.Bulk(c.args[1]) }

// hello implements HELLO [protover [AUTH username password] [SETNAME clientname]]. Options take effect one by one, so a name
// is set even if what follows it fails.
func (a *Console) hello(c *Ctx) {
	proto := c.reply.Proto()
	if len(c.args) > 1 {
		n, ok := number.ParseInt(c.args[1])
		switch {
		case !ok:
			c.err(errProto)
			return
		case n != resp.RESP2 && n != resp.RESP3:
			c.err(errNoProto)
			return
		}
		proto = int(n)
	}
	if !a.helloOptions(c) {
		return
	}
	if c.core.mustAuthenticate(c.client) {
		c.err(errHelloAuth)
		return
	}
	c.reply.SetProto(proto)
	c.sendHello()
}

// helloSecret finds what follows AUTH, even where that is another word's value: it may have been meant as a password.
func helloSecret(_ *Ctx, args [][]byte, i int) bool {
	return isWord(args, i-1, "AUTH") || isWord(args, i-2, "AUTH")
}

// helloOptions applies what follows the protocol version, or sends the error.
func (a *Console) helloOptions(c *Ctx) bool {
	for i := 2; i < len(c.args); {
		left := len(c.args) - i - 1
		switch {
		case left >= 2 && c.is(i, "AUTH"):
			if !a.access.authenticate(c, c.args[i+1], c.args[i+2]) {
				c.err(errWrongPass)
				return false
			}
			i += 3
		case left >= 1 && c.is(i, "SETNAME"):
			if !c.setClientName(c.args[i+1]) {
				return false
			}
			i += 2
		default:
			c.errf("ERR Syntax error in HELLO option '%s'", cutAtNUL(c.args[i]))
			return false
		}
	}
	return true
}

// sendHello describes the server and the connection.
func (c *Ctx) sendHello() {
	w := c.reply
	w.Map(7)
	w.BulkString("server")
	w.BulkString("redis")
	w.BulkString("version")
	w.BulkString(RedisVersion)
	w.BulkString("proto")
	w.Int(int64(w.Proto()))
	w.BulkString("id")
	w.Int(c.client.id)
	w.BulkString("mode")
	w.BulkString("standalone")
	w.BulkString("role")
	w.BulkString("master")
	w.BulkString("modules")
	w.EmptyArray()
}

func ping(c *Ctx) {
	switch {
	case len(c.args) > 2:
		c.errArity()
	case c.client.confined() && c.reply == c.client.reply:
		c.pingSubscriber()
	case len(c.args) == 1:
		c.reply.Pong()
	default:
		c.reply.Bulk(c.args[1])
	}
}

// pingSubscriber answers in the form of a message, which is what a subscriber reads in RESP2.
func (c *Ctx) pingSubscriber() {
	c.reply.Array(2)
	c.reply.BulkString("pong")
	if len(c.args) == 1 {
		c.reply.EmptyBulk()
	} else {
		c.reply.Bulk(c.args[1])
	}
}

func quit(c *Ctx) {
	c.ok()
	c.client.conn.CloseAfterReply()
}

// reset keeps what belongs to the program behind the connection: its library's name and NO-EVICT.
func (a *Console) reset(c *Ctx) {
	cl := c.client
	a.exec.endTransaction(cl)
	a.hub.endAllSubscriptions(cl)
	a.hub.untrack(cl)
	a.recorder.endMonitoring(cl)
	cl.db = c.core.keys.DB(0)
	cl.name = ""
	a.access.becomeDefault(cl)
	a.exec.setNoTouch(cl, false)
	cl.replyMode = replyOn
	c.reply.SetProto(resp.RESP2)
	c.reply.Simple("RESET")
}

func selectDB(c *Ctx) {
	if db := c.database(1); db != nil {
		c.client.db = db
		c.ok()
	}
}
