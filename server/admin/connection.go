package admin

import (
	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/observe"
	"headgate/server/resp"
)

// ConnectionCommands are those of a connection's own state, with the CLIENT family of client.go.
func (a *Console) ConnectionCommands() []*command.Command {
	return []*command.Command{
		{
			Name: "auth", Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Authenticate the connection.",
			Arity:   -2, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy,
			Args: []command.Arg{command.Str("username").Opt(), command.Str("password")}, Secret: command.SecretFrom(1), Reply: command.ReplySimple, Handler: a.auth,
		},
		a.clientCommand(),
		{
			Name: "echo", Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Return the message.",
			Arity:   2, Flags: command.Loading | command.Stale | command.Fast,
			Args: []command.Arg{command.Str("message")}, Reply: command.ReplyBulk, Handler: echo,
		},
		{
			Name: "hello", Group: command.GroupConnection, Since: "6.0.0", Complexity: "O(1)",
			Summary: "Choose the protocol version, authenticate and name the connection in one step; describes the server.",
			Arity:   -1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy,
			Args: []command.Arg{command.Block("arguments",
				command.Integer("protover"),
				command.Block("auth", command.Str("username"), command.Str("password")).After("AUTH").Opt(),
				command.Str("clientname").After("SETNAME").Opt(),
			).Opt()},
			Secret: helloSecret, Reply: command.ReplyMap, Handler: a.hello,
		},
		{
			Name: "ping", Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Answer PONG, or the message when there is one.",
			Arity:   -1, Flags: command.Fast | command.HealthCheck | command.ForSubscribers,
			Tips: command.TipAllShards,
			Args: []command.Arg{command.Str("message").Opt()}, Reply: command.ReplySimple | command.ReplyBulk, Handler: ping,
		},
		{
			Name: "quit", Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Close the connection once all replies are sent.",
			Arity:   -1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy | command.RunsInMulti | command.DropsQueue | command.ForSubscribers,
			Reply: command.ReplySimple, Handler: quit,
		},
		{
			Name: "reset", Group: command.GroupConnection, Since: "6.2.0", Complexity: "O(1)",
			Summary: "Reset the connection to the state of a new one.",
			Arity:   1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy | command.RunsInMulti | command.DropsQueue | command.ForSubscribers,
			Reply: command.ReplySimple, Handler: a.reset,
		},
		{
			Name: "select", Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
			Summary: "Select the database for the following commands.",
			Arity:   2, Flags: command.Loading | command.Stale | command.Fast | command.ChoosesDatabase,
			Args: []command.Arg{command.Integer("index")}, Reply: command.ReplySimple, Handler: selectDB,
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

func (a *Console) auth(c *command.Ctx) {
	user, password := []byte(acl.DefaultName), c.Args[1]
	switch {
	case len(c.Args) > 3:
		c.Err(command.ErrSyntax)
		return
	case len(c.Args) == 3:
		user, password = c.Args[1], c.Args[2]
	case a.Access.Users.Default().NoPass():
		c.Err(errNoPassword)
		return
	}
	if !a.Access.Authenticate(c, user, password) {
		c.Err(errWrongPass)
		return
	}
	c.OK()
}

func echo(c *command.Ctx) { c.Reply.Bulk(c.Args[1]) }

// hello implements HELLO [protover [AUTH username password] [SETNAME clientname]]. Options take effect one by one, so a name
// is set even if what follows it fails.
func (a *Console) hello(c *command.Ctx) {
	proto := c.Reply.Proto()
	if len(c.Args) > 1 {
		n, ok := number.ParseInt(c.Args[1])
		switch {
		case !ok:
			c.Err(errProto)
			return
		case n != resp.RESP2 && n != resp.RESP3:
			c.Err(errNoProto)
			return
		}
		proto = int(n)
	}
	if !a.helloOptions(c) {
		return
	}
	if c.Core.MustAuthenticate(c.Client) {
		c.Err(errHelloAuth)
		return
	}
	c.Reply.SetProto(proto)
	sendHello(c)
}

// helloSecret finds what follows AUTH, even where that is another word's value: it may have been meant as a password.
func helloSecret(_ *command.Ctx, args [][]byte, i int) bool {
	return observe.IsWord(args, i-1, "AUTH") || observe.IsWord(args, i-2, "AUTH")
}

// helloOptions applies what follows the protocol version, or sends the error.
func (a *Console) helloOptions(c *command.Ctx) bool {
	for i := 2; i < len(c.Args); {
		left := len(c.Args) - i - 1
		switch {
		case left >= 2 && c.Is(i, "AUTH"):
			if !a.Access.Authenticate(c, c.Args[i+1], c.Args[i+2]) {
				c.Err(errWrongPass)
				return false
			}
			i += 3
		case left >= 1 && c.Is(i, "SETNAME"):
			if !setClientName(c, c.Args[i+1]) {
				return false
			}
			i += 2
		default:
			c.Errf("ERR Syntax error in HELLO option '%s'", command.CutAtNUL(c.Args[i]))
			return false
		}
	}
	return true
}

// role is what this server is to others, as HELLO has it.
func role(c *command.Ctx) string {
	if c.Core.Gate.Has(command.GateFollows) {
		return "replica"
	}
	return "master"
}

// sendHello describes the server and the connection.
func sendHello(c *command.Ctx) {
	w := c.Reply
	w.Map(7)
	w.BulkString("server")
	w.BulkString("redis")
	w.BulkString("version")
	w.BulkString(command.RedisVersion)
	w.BulkString("proto")
	w.Int(int64(w.Proto()))
	w.BulkString("id")
	w.Int(c.Client.ID)
	w.BulkString("mode")
	w.BulkString(c.Cfg.Mode())
	w.BulkString("role")
	w.BulkString(role(c))
	w.BulkString("modules")
	w.EmptyArray()
}

func ping(c *command.Ctx) {
	switch {
	case len(c.Args) > 2:
		c.ErrArity()
	case c.Client.Confined() && c.Reply == c.Client.Reply:
		pingSubscriber(c)
	case len(c.Args) == 1:
		c.Reply.Pong()
	default:
		c.Reply.Bulk(c.Args[1])
	}
}

// pingSubscriber answers in the form of a message, which is what a subscriber reads in RESP2.
func pingSubscriber(c *command.Ctx) {
	c.Reply.Array(2)
	c.Reply.BulkString("pong")
	if len(c.Args) == 1 {
		c.Reply.EmptyBulk()
	} else {
		c.Reply.Bulk(c.Args[1])
	}
}

func quit(c *command.Ctx) {
	c.OK()
	c.Client.Conn.CloseAfterReply()
}

// errResetOther is for replicas, and for what a primary sends.
const errResetOther = "ERR can only reset normal connections"

// reset keeps what belongs to the program behind the connection: its library's name and NO-EVICT.
func (a *Console) reset(c *command.Ctx) {
	cl := c.Client
	if cl.Replicates || cl.Primary {
		c.Err(errResetOther)
		return
	}
	a.Exec.EndTransaction(cl)
	a.Hub.EndAllSubscriptions(cl)
	a.Hub.Untrack(cl)
	a.Recorder.EndMonitoring(cl)
	cl.DB = c.Core.Keys.DB(0)
	cl.Name = ""
	a.Access.BecomeDefault(cl)
	a.Exec.SetNoTouch(cl, false)
	cl.EndReplyMode()
	cl.ReadsReplica = false
	c.Reply.SetProto(resp.RESP2)
	c.Reply.Simple("RESET")
}

func selectDB(c *command.Ctx) {
	if db := c.Database(1); db != nil {
		c.Client.DB = db
		c.OK()
	}
}
