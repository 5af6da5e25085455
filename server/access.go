package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"headgate/server/acl"
	"headgate/server/config"
)

// Access is who may do what. The executor's lock guards it.
type Access struct {
	*Core

	table   *acl.Table
	users   *acl.Users
	denials acl.Log

	clientLine func(c *Ctx, cl *Client) string // describes a client for the log of denials; set by New
}

// aclTable describes the commands to package acl; both know them by the same numbers.
func aclTable(r *registry) *acl.Table {
	commands := make([]acl.Command, len(r.all))
	for i, cmd := range r.all {
		commands[i] = acl.Command{Name: cmd.fullName, Parent: -1, Categories: cmd.allCategories(), Always: cmd.Flags&NoAuth != 0}
		if cmd.parent != nil {
			commands[i].Parent = cmd.parent.id
		}
	}
	return acl.NewTable(commands)
}

// beginAccess makes the default user, as the configuration has it. The rest comes with openAccess.
func (a *Access) beginAccess(cfg *config.Config) {
	a.table = aclTable(a.commands)
	a.users = acl.NewUsers(a.table)
	if cfg.RequirePass != "" {
		a.users.SetDefaultPassword(cfg.RequirePass)
	}
	a.guardAll()
}

// follow has changes of the configuration obeyed.
func (a *Access) follow(live *config.Live) {
	live.OnChange(a.passwordChanged, "requirepass")
	live.OnChange(a.aclDefaultsChanged, "acl-pubsub-default")
}

// passwordChanged gives the default user the configuration's password. The caller holds the executor's lock.
func (a *Access) passwordChanged(_, cfg *config.Config) error {
	a.users.SetDefaultPassword(cfg.RequirePass)
	a.guardAll()
	return nil
}

// aclDefaultsChanged has users who are made from now on begin as the configuration says.
func (a *Access) aclDefaultsChanged(_, cfg *config.Config) error {
	a.users.SetDefaults(acl.Defaults{AllChannels: cfg.ACLPubSubDefault == config.PubSubDefaultAll})
	return nil
}

// Hints about the configuration of users.
const (
	hintUserLine = "correct the rules of that user in the configuration"
	hintACLFile  = "correct the file, or aclfile"
)

// openAccess takes into use what the configuration says of names of commands and of users. Nobody is served yet.
func (a *Access) openAccess(cfg *config.Config) error {
	if err := a.commands.rename(cfg.Renames); err != nil {
		return err
	}
	return a.loadUsers(cfg)
}

// loadUsers makes the configured users, those of the configuration itself or of the ACL file.
func (a *Access) loadUsers(cfg *config.Config) error {
	us := a.users
	us.SetDefaults(acl.Defaults{AllChannels: cfg.ACLPubSubDefault == config.PubSubDefaultAll})
	if cfg.ACLFile != "" && len(cfg.Users) > 0 {
		return errors.New("users are defined in the configuration while aclfile is set: keep either the file or the user lines, not both")
	}
	for _, u := range cfg.Users {
		rules := u.Rules
		if u.Name == acl.DefaultName {
			rules = append([]string{"reset"}, rules...)
		}
		change, err := us.Change(u.Name, rules)
		if err != nil {
			return fmt.Errorf("user %s: %s; %s", u.Name, withoutSecrets(err), hintUserLine)
		}
		if !change.Apply().Enabled() {
			a.log.Warn("a user of the configuration is off: no client can authenticate as it", "user", u.Name)
		}
	}
	if cfg.ACLFile != "" {
		if err := a.loadACLFile(cfg); err != nil {
			return fmt.Errorf("%w; %s", err, hintACLFile)
		}
	}
	a.guardAll()
	return nil
}

// withoutSecrets is the text of an error about rules, for the log: rules on passwords are left out.
func withoutSecrets(err error) string {
	var wrong *acl.RuleError
	if errors.As(err, &wrong) && wrong.Rule != "" && strings.ContainsAny(wrong.Rule[:1], "><#!") {
		return wrong.Err.Error()
	}
	return err.Error()
}

// maxACLFile bounds the file of users, in bytes.
const maxACLFile = 64 << 20

// loadACLFile replaces all users by those of the ACL file. Clients of users who are gone are closed.
func (a *Access) loadACLFile(cfg *config.Config) error {
	path := cfg.Path(cfg.ACLFile)
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxACLFile {
		err = fmt.Errorf("longer than %d bytes", maxACLFile)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return &aclFileError{cfg.ACLFile, err}
	}
	gone, err := a.users.Load(cfg.ACLFile, string(text))
	if err != nil {
		return err
	}
	for _, u := range gone {
		a.expel(u)
	}
	a.guardAll()
	return nil
}

// aclFileError is why the ACL file could not be read, in Redis's words.
type aclFileError struct {
	name string
	err  error
}

func (e *aclFileError) Error() string {
	cause := e.err
	var system *os.PathError
	if errors.As(cause, &system) {
		cause = system.Err
	}
	return "Error loading ACLs, opening file '" + e.name + "': " + capital(cause.Error())
}

func (e *aclFileError) Unwrap() error { return e.err }

// capital begins a text with a capital letter, as errors of the system do in Redis.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// saveACLFile writes all users to the ACL file, in one step.
func (a *Access) saveACLFile(cfg *config.Config) error {
	text := strings.Join(a.users.Lines(), "\n") + "\n"
	return config.WriteFile(a.fs, filepath.Clean(cfg.Path(cfg.ACLFile)), []byte(text))
}

// configuredUsers returns the users as the configuration file has them.
func (a *Access) configuredUsers() []config.User {
	var list []config.User
	for _, u := range a.users.All() {
		list = append(list, config.User{Name: u.Name(), Rules: strings.Split(u.Rules(), " ")})
	}
	return list
}

// guard works out whether the client's commands have to be looked at one by one.
func (a *Access) guard(cl *Client) {
	cl.guarded = a.mustAuthenticate(cl) || !cl.user.MayAll()
}

// guardAll does so for all clients, and for those who come. It is called whenever a user has changed.
func (a *Access) guardAll() {
	a.gate.set(gatePassword, !a.users.Default().Open())
	for _, cl := range a.clients.list {
		a.guard(cl)
	}
}

// becomeDefault makes a client the default user, authenticated if that takes no password.
func (a *Access) becomeDefault(cl *Client) {
	cl.user = a.users.Default()
	cl.authenticated = cl.user.Open()
	a.guard(cl)
}

// authenticate makes the client a user, if the password is right.
func (a *Access) authenticate(c *Ctx, name, password []byte) bool {
	u := a.users.Authenticate(name, password)
	if u == nil {
		a.logDenial(c, acl.DeniedAuth, c.context(), string(c.args[0]), string(name))
		return false
	}
	c.client.user, c.client.authenticated = u, true
	a.guard(c.client)
	return true
}

// context is how the command came about, for the log of denials.
func (c *Ctx) context() acl.Context {
	if c.client.multi != nil {
		return acl.InMulti
	}
	return acl.Toplevel
}

// logDenial enters a denial into the log. The client is described as it is now.
func (a *Access) logDenial(c *Ctx, reason acl.Denial, context acl.Context, object, user string) {
	a.denials.Add(acl.LogEntry{
		Reason: reason, Context: context, Object: object, User: user, AtMs: c.now, Client: a.clientLine(c, c.client),
	}, c.cfg.ACLLogMaxLen)
}

// expel closes the connections of a user who is gone.
func (a *Access) expel(u *acl.User) {
	for _, cl := range a.clients.list {
		if cl.user != u {
			continue
		}
		cl.user = a.users.Default() // for what its transaction has left to run
		a.guard(cl)
		if a.isRunning(cl) {
			cl.conn.CloseAfterReply()
		} else {
			cl.conn.CloseNow()
		}
	}
}

// guardRefusal returns the error with which the command is refused to a guarded client, or nothing.
func (a *Access) guardRefusal(c *Ctx) string {
	switch {
	case c.cmd.Flags&NoAuth == 0 && a.mustAuthenticate(c.client):
		return errNoAuth
	case c.client.multi != nil && c.cmd.Flags&NoMulti != 0:
		return errNoMulti
	}
	switch a.denial(c, c.context()) {
	case acl.Allowed:
		return ""
	case acl.DeniedCommand:
		return "NOPERM this user has no permissions to run the '" + c.cmd.fullName + "' command"
	case acl.DeniedKey:
		return errDeniedKey
	case acl.DeniedChannel:
		return errDeniedChannel
	}
	return "NOPERM no permission"
}

// Errors of commands that the client's user may not run.
const (
	errDeniedKey     = "NOPERM this user has no permissions to access one of the keys used as arguments"
	errDeniedChannel = "NOPERM this user has no permissions to access one of the channels used as arguments"
	errRulesChanged  = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: "
)

// queuedRefusal returns the error with which a queued command is refused when its turn has come, or nothing.
func (a *Access) queuedRefusal(c *Ctx) string {
	switch a.denial(c, acl.InMulti) {
	case acl.Allowed:
		return ""
	case acl.DeniedCommand:
		return errRulesChanged + "no permission to execute the command or subcommand"
	case acl.DeniedKey:
		return errRulesChanged + "no permission to touch the specified keys"
	case acl.DeniedChannel:
		return errRulesChanged + "no permission to access one of the channels used as arguments"
	}
	return errRulesChanged + "no permission"
}

// calledRefusal returns the error with which a command that a script calls is refused, or nothing.
func (a *Access) calledRefusal(c *Ctx) string {
	switch a.denial(c, acl.InScript) {
	case acl.Allowed:
		return ""
	case acl.DeniedCommand:
		return "ERR The user executing the script can't run this command or subcommand"
	case acl.DeniedKey:
		return "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
	case acl.DeniedChannel:
		return "ERR The user executing the script can't publish to the channel mentioned in the command"
	}
	return "ERR The user executing the script is lacking the permissions for the command"
}

// denial returns why the client may not run the command, and logs it.
func (a *Access) denial(c *Ctx, context acl.Context) acl.Denial {
	d, arg := c.client.user.Judge(c.described(c.cmd, c.args))
	if d == acl.Allowed {
		return d
	}
	object := c.cmd.fullName
	if d != acl.DeniedCommand {
		object = string(c.args[arg])
	}
	a.logDenial(c, d, context, object, c.client.user.Name())
	return d
}

// described returns a command line as package acl judges it. It is valid until the next call.
func (c *Ctx) described(cmd *Command, args [][]byte) *acl.Call {
	call := &c.core.aclScratch.call
	call.Command, call.Args = cmd.id, args
	call.Keys, call.Channels = call.Keys[:0], call.Channels[:0]
	indexes := c.core.aclScratch.indexes[:0]
	for _, k := range cmd.Keys {
		if k.Access == notKey {
			continue
		}
		indexes = k.find(indexes[:0], args)
		access := rightsFor(k.accessOf(args))
		for _, i := range indexes {
			call.Keys = append(call.Keys, acl.Key{Arg: i, Access: access})
		}
	}
	c.core.aclScratch.indexes = indexes
	call.Channels = cmd.Channels.find(call.Channels, len(args))
	return call
}

// rightsFor returns the rights to a key that its access flags ask for.
func rightsFor(access string) (rights acl.Access) {
	for name := range strings.FieldsSeq(access) {
		switch name {
		case "ACCESS":
			rights |= acl.ReadKey
		case "INSERT", "DELETE", "UPDATE":
			rights |= acl.WriteKey
		}
	}
	return rights
}

// mayReadEveryKey reports whether the client may use the command with keys that only its running can tell.
func (c *Ctx) mayReadEveryKey() bool {
	return !c.client.guarded || c.client.user.MayWithEveryKey(c.described(c.cmd, c.args), acl.ReadKey)
}
