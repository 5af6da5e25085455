package server

import (
	"math"

	"headgate/server/acl"
)

// maxPasswordBits bounds what ACL GENPASS makes.
const maxPasswordBits = 4096

// declarations are the ACL family, over package acl.
func (a *Access) declarations() []*Command {
	return []*Command{
		{
			Name: "acl", Group: GroupServer, Since: "6.0.0", Complexity: "depends on the sub-command",
			Summary: "Look at and change who may run what.",
			Arity:   -2,
			Sub: []*Command{
				{
					Name: "cat", Since: "6.0.0", Complexity: "O(n) in the number of commands",
					Summary: "Return the categories of commands, or the commands of one.",
					Arity:   -2, Flags: NoScript | Loading | Stale,
					Args: []Arg{str("categoryname").opt()}, Reply: ReplyArray, Handler: a.aclCat,
				},
				{
					Name: "deluser", Since: "6.0.0", Complexity: "O(n) in the number of connections",
					Summary: "Remove users, close their connections, and return how many there were.",
					Arity:   -3, Flags: Admin | NoScript | Loading | Stale,
					Args: []Arg{str("username").multi()}, Secret: secretFrom(2), Reply: ReplyInteger, Handler: a.aclDelUser,
				},
				{
					Name: "dryrun", Since: "7.0.0", Complexity: "O(1)",
					Summary: "Tell whether a user may run a command, without running it.",
					Arity:   -4, Flags: Admin | NoScript | Loading | Stale,
					Args: []Arg{str("username"), str("command"), str("arg").multi().opt()}, Secret: secretFrom(4),
					Reply: ReplySimple | ReplyBulk, Handler: a.aclDryRun,
				},
				{
					Name: "genpass", Since: "6.0.0", Complexity: "O(1)",
					Summary: "Make a password of random hexadecimal digits, 256 bits long or as long as asked.",
					Arity:   -2, Flags: NoScript | Loading | Stale,
					Args: []Arg{integer("bits").opt()}, Reply: ReplyBulk, Handler: aclGenPass,
				},
				{
					Name: "getuser", Since: "6.0.0", Complexity: "O(n) in the number of the user's rules",
					Summary: "Return a user's flags, password hashes and rules.",
					Arity:   3, Flags: Admin | NoScript | Loading | Stale,
					Args: []Arg{str("username")}, Secret: secretFrom(2), Reply: ReplyMap | ReplyNull, Handler: a.aclGetUser,
				},
				helpCommand("6.0.0"),
				{
					Name: "list", Since: "6.0.0", Complexity: "O(n) in the number of users",
					Summary: "Return all users as lines of the ACL file.",
					Arity:   2, Flags: Admin | NoScript | Loading | Stale, Reply: ReplyArray, Handler: a.aclList,
				},
				{
					Name: "load", Since: "6.0.0", Complexity: "O(n) in the number of users",
					Summary: "Replace all users by those of the ACL file.",
					Arity:   2, Flags: Admin | NoScript | Loading | Stale, Reply: ReplySimple, Handler: a.aclLoad,
				},
				{
					Name: "log", Since: "6.0.0", Complexity: "O(n) in the number of entries",
					Summary: "Return the latest denials, or forget them.",
					Arity:   -2, Flags: Admin | NoScript | Loading | Stale,
					Args: []Arg{oneOf("operation", integer("count"), tok("RESET")).opt()}, Reply: ReplyArray | ReplySimple, Handler: a.aclLog,
				},
				{
					Name: "save", Since: "6.0.0", Complexity: "O(n) in the number of users",
					Summary: "Write all users to the ACL file.",
					Arity:   2, Flags: Admin | NoScript | Loading | Stale, Reply: ReplySimple, Handler: a.aclSave,
				},
				{
					Name: "setuser", Since: "6.0.0", Complexity: "O(n) in the number of rules",
					Summary: "Make a user, or change one by rules: all of them or, if one is wrong, none.",
					Arity:   -3, Flags: Admin | NoScript | Loading | Stale,
					Args: []Arg{str("username"), str("rule").multi().opt()}, Secret: secretFrom(2), Reply: ReplySimple, Handler: a.aclSetUser,
				},
				{
					Name: "users", Since: "6.0.0", Complexity: "O(n) in the number of users",
					Summary: "Return the names of all users.",
					Arity:   2, Flags: Admin | NoScript | Loading | Stale, Reply: ReplyArray, Handler: a.aclUsers,
				},
				{
					Name: "whoami", Since: "6.0.0", Complexity: "O(1)",
					Summary: "Return the name of the user that the connection has authenticated as.",
					Arity:   2, Flags: NoScript | Loading | Stale, Reply: ReplyBulk, Handler: aclWhoAmI,
				},
			},
		},
	}
}

// errNoACLFile is what ACL LOAD and SAVE answer without an ACL file.
const errNoACLFile = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command " +
	"and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration."

func (a *Access) aclCat(c *Ctx) {
	switch len(c.args) {
	case 2:
		c.sendStrings(acl.CategoryNames())
	case 3:
		category := acl.CategoryByName(string(cutAtNUL(c.args[2])))
		if category == 0 {
			c.errf("ERR Unknown category '%.128s'", cutAtNUL(c.args[2]))
			return
		}
		c.sendStrings(a.table.Members(category))
	default:
		c.errSubcommandSyntax()
	}
}

// sendStrings sends an array of bulk strings.
func (c *Ctx) sendStrings(list []string) {
	c.reply.Array(len(list))
	for _, s := range list {
		c.reply.BulkString(s)
	}
}

func (a *Access) aclSetUser(c *Ctx) {
	rules := make([]string, len(c.args)-3)
	for i, arg := range c.args[3:] {
		rules[i] = string(arg)
	}
	change, err := a.users.Change(string(c.args[2]), rules)
	if err != nil {
		c.errf("ERR %s", err)
		return
	}
	if u := change.User(); u != nil {
		for _, cl := range a.clients.list {
			if cl.user == u && cl.subs != nil && change.Revokes(subscriptionsOf(cl).list()) {
				cl.conn.CloseNow()
			}
		}
	}
	change.Apply()
	a.guardAll()
	c.ok()
}

func (a *Access) aclDelUser(c *Ctx) {
	for _, name := range c.args[2:] {
		if string(cutAtNUL(name)) == acl.DefaultName {
			c.err("ERR The 'default' user cannot be removed")
			return
		}
	}
	deleted := int64(0)
	for _, name := range c.args[2:] {
		if u := a.users.Delete(string(name)); u != nil {
			a.expel(u)
			deleted++
		}
	}
	c.reply.Int(deleted)
}

func (a *Access) aclGetUser(c *Ctx) {
	u := a.users.Get(string(c.args[2]))
	if u == nil {
		c.reply.Null()
		return
	}
	rights := u.Rights()
	w := c.reply
	w.Map(6)
	w.BulkString("flags")
	flags := u.Flags()
	w.Set(len(flags))
	for _, flag := range flags {
		w.BulkString(flag)
	}
	w.BulkString("passwords")
	c.sendStrings(u.Passwords())
	c.sendRights(rights[0])
	w.BulkString("selectors")
	w.Array(len(rights) - 1)
	for _, r := range rights[1:] {
		w.Map(3)
		c.sendRights(r)
	}
}

// sendRights sends a selector's rules as fields of a map.
func (c *Ctx) sendRights(r acl.Rights) {
	sendText(c.reply, "commands", r.Commands)
	sendText(c.reply, "keys", r.Keys)
	sendText(c.reply, "channels", r.Channels)
}

func (a *Access) aclList(c *Ctx) { c.sendStrings(a.users.Lines()) }

func (a *Access) aclUsers(c *Ctx) {
	users := a.users.All()
	c.reply.Array(len(users))
	for _, u := range users {
		c.reply.BulkString(u.Name())
	}
}

func aclWhoAmI(c *Ctx) { c.reply.BulkString(c.client.user.Name()) }

func (a *Access) aclLoad(c *Ctx) {
	if c.cfg.ACLFile == "" {
		c.err(errNoACLFile)
		return
	}
	if err := a.loadACLFile(c.cfg); err != nil {
		c.errf("ERR %s", err)
		return
	}
	c.ok()
}

// aclSave writes the file with the executor's lock held, as CONFIG REWRITE does.
func (a *Access) aclSave(c *Ctx) {
	if c.cfg.ACLFile == "" {
		c.err(errNoACLFile)
		return
	}
	if err := a.saveACLFile(c.cfg); err != nil {
		c.core.log.Error("the ACL file could not be written", "err", err)
		c.err("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
		return
	}
	c.ok()
}

func aclGenPass(c *Ctx) {
	bits := int64(256)
	if len(c.args) > 3 {
		c.errSubcommandSyntax()
		return
	}
	if len(c.args) == 3 {
		var ok bool
		if bits, ok = c.integer(2); !ok {
			return
		}
	}
	if bits <= 0 || bits > maxPasswordBits {
		c.errf("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to %d", maxPasswordBits)
		return
	}
	digits := int(bits+3) / 4
	c.reply.BulkString(randomHex((digits + 1) / 2)[:digits])
}

// defaultLogEntries is how many entries ACL LOG shows unless asked for another number.
const defaultLogEntries = 10

func (a *Access) aclLog(c *Ctx) {
	count := int64(defaultLogEntries)
	switch {
	case len(c.args) > 3:
		c.errSubcommandSyntax()
		return
	case len(c.args) == 3 && c.is(2, "RESET"):
		a.denials.Reset()
		c.ok()
		return
	case len(c.args) == 3:
		var ok bool
		if count, ok = c.integer(2); !ok {
			return
		}
	}
	w := c.reply
	entries := a.denials.Newest(int(min(max(count, 0), math.MaxInt32)))
	w.Array(len(entries))
	for _, e := range entries {
		w.Map(7)
		w.BulkString("count")
		w.Int(e.Count)
		sendText(w, "reason", e.Reason.String())
		sendText(w, "context", e.Context.String())
		sendText(w, "object", e.Object)
		sendText(w, "username", e.User)
		w.BulkString("age-seconds")
		w.Double(float64(c.now-e.AtMs) / 1000)
		sendText(w, "client-info", e.Client)
	}
}

func (a *Access) aclDryRun(c *Ctx) {
	u := a.users.Get(string(c.args[2]))
	if u == nil {
		c.errf("ERR User '%s' not found", cutAtNUL(c.args[2]))
		return
	}
	args := c.args[3:]
	cmd := c.core.commands.lookup(args[0])
	if cmd != nil && cmd.Sub != nil && len(args) > 1 {
		cmd = cmd.subcommand(args[1])
	}
	switch {
	case cmd == nil:
		c.errf("ERR Command '%s' not found", cutAtNUL(args[0]))
		return
	case !cmd.arityOK(len(args)):
		c.err(cmd.arityError)
		return
	}
	denial, arg := u.Judge(c.described(cmd, args))
	switch denial {
	case acl.Allowed:
		c.ok()
	case acl.DeniedCommand:
		c.reply.BulkString("This user has no permissions to run the '" + cmd.fullName + "' command")
	default:
		c.reply.BulkString("This user has no permissions to access the '" + string(cutAtNUL(args[arg])) + "' " + denial.String())
	}
}
