package access

import (
	"math"

	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/pubsub"
)

// maxPasswordBits bounds what ACL GENPASS makes.
const maxPasswordBits = 4096

// Declarations are the ACL family, over package acl.
func (a *Access) Declarations() []*command.Command {
	return []*command.Command{
		{
			Name: "acl", Group: command.GroupServer, Since: "6.0.0", Complexity: "depends on the sub-command",
			Summary: "Look at and change who may run what.",
			Arity:   -2,
			Sub: []*command.Command{
				{
					Name: "cat", Since: "6.0.0", Complexity: "O(n) in the number of commands",
					Summary: "Return the categories of commands, or the commands of one.",
					Arity:   -2, Flags: command.NoScript | command.Loading | command.Stale,
					Args: []command.Arg{command.Str("categoryname").Opt()}, Reply: command.ReplyArray, Handler: a.aclCat,
				},
				{
					Name: "deluser", Since: "6.0.0", Complexity: "O(n) in the number of connections",
					Summary: "Remove users, close their connections, and return how many there were.",
					Arity:   -3, Flags: command.Admin | command.NoScript | command.Loading | command.Stale,
					Args: []command.Arg{command.Str("username").Multi()}, Secret: command.SecretFrom(2), Reply: command.ReplyInteger, Handler: a.aclDelUser,
				},
				{
					Name: "dryrun", Since: "7.0.0", Complexity: "O(1)",
					Summary: "Tell whether a user may run a command, without running it.",
					Arity:   -4, Flags: command.Admin | command.NoScript | command.Loading | command.Stale,
					Args: []command.Arg{command.Str("username"), command.Str("command"), command.Str("arg").Multi().Opt()}, Secret: command.SecretFrom(4),
					Reply: command.ReplySimple | command.ReplyBulk, Handler: a.aclDryRun,
				},
				{
					Name: "genpass", Since: "6.0.0", Complexity: "O(1)",
					Summary: "Make a password of random hexadecimal digits, 256 bits long or as long as asked.",
					Arity:   -2, Flags: command.NoScript | command.Loading | command.Stale,
					Args: []command.Arg{command.Integer("bits").Opt()}, Reply: command.ReplyBulk, Handler: aclGenPass,
				},
				{
					Name: "getuser", Since: "6.0.0", Complexity: "O(n) in the number of the user's rules",
					Summary: "Return a user's flags, password hashes and rules.",
					Arity:   3, Flags: command.Admin | command.NoScript | command.Loading | command.Stale,
					Args: []command.Arg{command.Str("username")}, Secret: command.SecretFrom(2), Reply: command.ReplyMap | command.ReplyNull, Handler: a.aclGetUser,
				},
				command.HelpCommand("6.0.0"),
				{
					Name: "list", Since: "6.0.0", Complexity: "O(n) in the number of users",
					Summary: "Return all users as lines of the ACL file.",
					Arity:   2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Reply: command.ReplyArray, Handler: a.aclList,
				},
				{
					Name: "load", Since: "6.0.0", Complexity: "O(n) in the number of users",
					Summary: "Replace all users by those of the ACL file.",
					Arity:   2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Reply: command.ReplySimple, Handler: a.aclLoad,
				},
				{
					Name: "log", Since: "6.0.0", Complexity: "O(n) in the number of entries",
					Summary: "Return the latest denials, or forget them.",
					Arity:   -2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale,
					Args: []command.Arg{command.OneOf("operation", command.Integer("count"), command.Tok("RESET")).Opt()}, Reply: command.ReplyArray | command.ReplySimple, Handler: a.aclLog,
				},
				{
					Name: "save", Since: "6.0.0", Complexity: "O(n) in the number of users",
					Summary: "Write all users to the ACL file.",
					Arity:   2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Reply: command.ReplySimple, Handler: a.aclSave,
				},
				{
					Name: "setuser", Since: "6.0.0", Complexity: "O(n) in the number of rules",
					Summary: "Make a user, or change one by rules: all of them or, if one is wrong, none.",
					Arity:   -3, Flags: command.Admin | command.NoScript | command.Loading | command.Stale,
					Args: []command.Arg{command.Str("username"), command.Str("rule").Multi().Opt()}, Secret: command.SecretFrom(2), Reply: command.ReplySimple, Handler: a.aclSetUser,
				},
				{
					Name: "users", Since: "6.0.0", Complexity: "O(n) in the number of users",
					Summary: "Return the names of all users.",
					Arity:   2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Reply: command.ReplyArray, Handler: a.aclUsers,
				},
				{
					Name: "whoami", Since: "6.0.0", Complexity: "O(1)",
					Summary: "Return the name of the user that the connection has authenticated as.",
					Arity:   2, Flags: command.NoScript | command.Loading | command.Stale, Reply: command.ReplyBulk, Handler: aclWhoAmI,
				},
			},
		},
	}
}

// errNoACLFile is what ACL LOAD and SAVE answer without an ACL file.
const errNoACLFile = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command " +
	"and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration."

func (a *Access) aclCat(c *command.Ctx) {
	switch len(c.Args) {
	case 2:
		sendStrings(c, acl.CategoryNames())
	case 3:
		category := acl.CategoryByName(string(command.CutAtNUL(c.Args[2])))
		if category == 0 {
			c.Errf("ERR Unknown category '%.128s'", command.CutAtNUL(c.Args[2]))
			return
		}
		sendStrings(c, a.table.Members(category))
	default:
		c.ErrSubcommandSyntax()
	}
}

// sendStrings sends an array of bulk strings.
func sendStrings(c *command.Ctx, list []string) {
	c.Reply.Array(len(list))
	for _, s := range list {
		c.Reply.BulkString(s)
	}
}

func (a *Access) aclSetUser(c *command.Ctx) {
	rules := make([]string, len(c.Args)-3)
	for i, arg := range c.Args[3:] {
		rules[i] = string(arg)
	}
	change, err := a.Users.Change(string(c.Args[2]), rules)
	if err != nil {
		c.Errf("ERR %s", err)
		return
	}
	if u := change.User(); u != nil {
		for _, cl := range a.Clients.List {
			if cl.User == u && cl.Subs != nil && change.Revokes(pubsub.SubscriptionsOf(cl).List()) {
				cl.Conn.CloseNow()
			}
		}
	}
	change.Apply()
	a.guardAll()
	c.OK()
}

func (a *Access) aclDelUser(c *command.Ctx) {
	for _, name := range c.Args[2:] {
		if string(command.CutAtNUL(name)) == acl.DefaultName {
			c.Err("ERR The 'default' user cannot be removed")
			return
		}
	}
	deleted := int64(0)
	for _, name := range c.Args[2:] {
		if u := a.Users.Delete(string(name)); u != nil {
			a.expel(u)
			deleted++
		}
	}
	c.Reply.Int(deleted)
}

func (a *Access) aclGetUser(c *command.Ctx) {
	u := a.Users.Get(string(c.Args[2]))
	if u == nil {
		c.Reply.Null()
		return
	}
	rights := u.Rights()
	w := c.Reply
	w.Map(6)
	w.BulkString("flags")
	flags := u.Flags()
	w.Set(len(flags))
	for _, flag := range flags {
		w.BulkString(flag)
	}
	w.BulkString("passwords")
	sendStrings(c, u.Passwords())
	sendRights(c, rights[0])
	w.BulkString("selectors")
	w.Array(len(rights) - 1)
	for _, r := range rights[1:] {
		w.Map(3)
		sendRights(c, r)
	}
}

// sendRights sends a selector's rules as fields of a map.
func sendRights(c *command.Ctx, r acl.Rights) {
	command.SendText(c.Reply, "commands", r.Commands)
	command.SendText(c.Reply, "keys", r.Keys)
	command.SendText(c.Reply, "channels", r.Channels)
}

func (a *Access) aclList(c *command.Ctx) { sendStrings(c, a.Users.Lines()) }

func (a *Access) aclUsers(c *command.Ctx) {
	users := a.Users.All()
	c.Reply.Array(len(users))
	for _, u := range users {
		c.Reply.BulkString(u.Name())
	}
}

func aclWhoAmI(c *command.Ctx) { c.Reply.BulkString(c.Client.User.Name()) }

func (a *Access) aclLoad(c *command.Ctx) {
	if c.Cfg.ACLFile == "" {
		c.Err(errNoACLFile)
		return
	}
	if err := a.loadACLFile(c.Cfg, c.Cfg.ACLFile); err != nil { // as it is configured, as in Redis
		c.Errf("ERR %s", err)
		return
	}
	c.OK()
}

// aclSave writes the file with the executor's lock held, as CONFIG REWRITE does.
func (a *Access) aclSave(c *command.Ctx) {
	if c.Cfg.ACLFile == "" {
		c.Err(errNoACLFile)
		return
	}
	if err := a.saveACLFile(c.Cfg); err != nil {
		c.Core.Logger.Error("the ACL file could not be written", "err", err)
		c.Err("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
		return
	}
	c.OK()
}

func aclGenPass(c *command.Ctx) {
	bits := int64(256)
	if len(c.Args) > 3 {
		c.ErrSubcommandSyntax()
		return
	}
	if len(c.Args) == 3 {
		var ok bool
		if bits, ok = c.Integer(2); !ok {
			return
		}
	}
	if bits <= 0 || bits > maxPasswordBits {
		c.Errf("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to %d", maxPasswordBits)
		return
	}
	digits := int(bits+3) / 4
	c.Reply.BulkString(command.RandomHex((digits + 1) / 2)[:digits])
}

// defaultLogEntries is how many entries ACL LOG shows unless asked for another number.
const defaultLogEntries = 10

func (a *Access) aclLog(c *command.Ctx) {
	count := int64(defaultLogEntries)
	switch {
	case len(c.Args) > 3:
		c.ErrSubcommandSyntax()
		return
	case len(c.Args) == 3 && c.Is(2, "RESET"):
		a.denials.Reset()
		c.OK()
		return
	case len(c.Args) == 3:
		var ok bool
		if count, ok = c.Integer(2); !ok {
			return
		}
	}
	w := c.Reply
	entries := a.denials.Newest(int(min(max(count, 0), math.MaxInt32)))
	w.Array(len(entries))
	for _, e := range entries {
		w.Map(7)
		w.BulkString("count")
		w.Int(e.Count)
		command.SendText(w, "reason", e.Reason.String())
		command.SendText(w, "context", e.Context.String())
		command.SendText(w, "object", e.Object)
		command.SendText(w, "username", e.User)
		w.BulkString("age-seconds")
		w.Double(float64(c.Now-e.AtMs) / 1000)
		command.SendText(w, "client-info", e.Client)
	}
}

func (a *Access) aclDryRun(c *command.Ctx) {
	u := a.Users.Get(string(c.Args[2]))
	if u == nil {
		c.Errf("ERR User '%s' not found", command.CutAtNUL(c.Args[2]))
		return
	}
	args := c.Args[3:]
	cmd := c.Core.Commands.Lookup(args[0])
	if cmd != nil && cmd.Sub != nil && len(args) > 1 {
		cmd = cmd.Subcommand(args[1])
	}
	switch {
	case cmd == nil:
		c.Errf("ERR Command '%s' not found", command.CutAtNUL(args[0]))
		return
	case !cmd.ArityOK(len(args)):
		c.Err(cmd.ArityError)
		return
	}
	denial, arg := u.Judge(c.ACLCall(cmd, args))
	switch denial {
	case acl.Allowed:
		c.OK()
	case acl.DeniedCommand:
		c.Reply.BulkString("This user has no permissions to run the '" + cmd.FullName + "' command")
	default:
		c.Reply.BulkString("This user has no permissions to access the '" + string(command.CutAtNUL(args[arg])) + "' " + denial.String())
	}
}
