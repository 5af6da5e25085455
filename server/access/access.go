package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/config"
)

// Access is who may do what. The executor's lock guards it.
type Access struct {
	*command.Core

	table   *acl.Table
	Users   *acl.Users
	denials acl.Log
	changes atomic.Uint64 // of users
	given   givenUsers

	ClientLine func(c *command.Ctx, cl *command.Client) string // describes a client for the log of denials; set by server.New
}

// givenUsers are the users that the environment gave, if all of the configuration are its: as it says them, and as [Access.ConfiguredUsers] first had them.
type givenUsers struct {
	said, made []config.User
}

// aclTable describes the commands to package acl; both know them by the same numbers.
func aclTable(r *command.Registry) *acl.Table {
	commands := make([]acl.Command, len(r.All))
	for i, cmd := range r.All {
		commands[i] = acl.Command{Name: cmd.FullName, Parent: -1, Categories: cmd.AllCategories(), Always: cmd.Flags&command.NoAuth != 0}
		if cmd.Parent != nil {
			commands[i].Parent = cmd.Parent.ID
		}
	}
	return acl.NewTable(commands)
}

// BeginAccess makes the default user, as the configuration has it. The rest comes with OpenAccess.
func (a *Access) BeginAccess(cfg *config.Config) {
	a.table = aclTable(a.Commands)
	a.Users = acl.NewUsers(a.table)
	if cfg.RequirePass != "" {
		a.Users.SetDefaultPassword(cfg.RequirePass)
	}
	a.guardAll()
}

// Follow has changes of the configuration obeyed.
func (a *Access) Follow(live *config.Live) {
	live.OnChange(a.passwordChanged, "requirepass")
	live.OnChange(a.aclDefaultsChanged, "acl-pubsub-default")
}

// passwordChanged gives the default user the configuration's password. The caller holds the executor's lock.
func (a *Access) passwordChanged(_, cfg *config.Config) error {
	a.Users.SetDefaultPassword(cfg.RequirePass)
	a.guardAll()
	return nil
}

// aclDefaultsChanged has users who are made from now on begin as the configuration says.
func (a *Access) aclDefaultsChanged(_, cfg *config.Config) error {
	a.Users.SetDefaults(acl.Defaults{AllChannels: cfg.ACLPubSubDefault == config.PubSubDefaultAll})
	return nil
}

// Hints about the configuration of users.
const (
	hintUserLine = "correct the rules of that user in the configuration"
	hintACLFile  = "correct the file, or aclfile"
)

// OpenAccess takes into use what the configuration says of names of commands and of users. Nobody is served yet.
func (a *Access) OpenAccess(cfg *config.Config) error {
	if err := a.Commands.Rename(cfg.Renames); err != nil {
		return err
	}
	return a.loadUsers(cfg)
}

// loadUsers makes the configured users, those of the configuration itself or of the ACL file.
func (a *Access) loadUsers(cfg *config.Config) error {
	us := a.Users
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
			return fmt.Errorf("%suser %s: %s; %s", placeOf(u), u.Name, withoutSecrets(err), hintUserLine)
		}
		if !change.Apply().Enabled() {
			a.Logger.Warn("a user of the configuration is off: no client can authenticate as it", "user", u.Name)
		}
	}
	if cfg.ACLFile != "" {
		if err := a.loadACLFile(cfg, cfg.Path(cfg.ACLFile)); err != nil {
			return fmt.Errorf("%w; %s", err, hintACLFile)
		}
	}
	if len(cfg.Users) > 0 && !slices.ContainsFunc(cfg.Users, func(u config.User) bool { return !u.OfEnvironment() }) {
		a.given = givenUsers{said: cfg.Users, made: a.currentUsers(cfg)}
	}
	a.guardAll()
	return nil
}

// placeOf is what begins an error about a user of the configuration: where its rules stand, if that is known.
func placeOf(u config.User) string {
	if u.Where == "" {
		return ""
	}
	return u.Where + ": "
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

// loadACLFile replaces all users by those of the ACL file, which errors call by a name. Clients of users who are gone are closed.
func (a *Access) loadACLFile(cfg *config.Config, name string) error {
	text, err := config.ReadRegular(cfg.Path(cfg.ACLFile), maxACLFile)
	if err != nil {
		return &aclFileError{name, err}
	}
	gone, err := a.Users.Load(name, string(text))
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
	text := strings.Join(a.Users.Lines(), "\n") + "\n"
	return config.WriteFile(a.FS, filepath.Clean(cfg.Path(cfg.ACLFile)), []byte(text))
}

// ConfiguredUsers returns the users as the configuration file has them. Those of the environment are as it says them while all are as it made them, so
// that they are left to it: the file has no password that a variable gave, and ends with no user whose variable has gone.
func (a *Access) ConfiguredUsers(cfg *config.Config) []config.User {
	list := a.currentUsers(cfg)
	same := func(x, y config.User) bool { return x.Name == y.Name && slices.Equal(x.Rules, y.Rules) }
	if a.given.said != nil && slices.EqualFunc(list, a.given.made, same) {
		return a.given.said
	}
	return list
}

// currentUsers returns the users of this moment by their rules. The default user is among them only if it is not what requirepass makes of
// it: its line would overrule a password that is changed there, in the environment or by a flag.
func (a *Access) currentUsers(cfg *config.Config) []config.User {
	plain := acl.NewUsers(a.table)
	plain.SetDefaultPassword(cfg.RequirePass)
	var list []config.User
	for _, u := range a.Users.All() {
		rules := u.Rules()
		if u.Name() == acl.DefaultName && strings.Replace(rules, " sanitize-payload", "", 1) == plain.Default().Rules() { // which a line of that user adds
			continue
		}
		list = append(list, config.User{Name: u.Name(), Rules: strings.Split(rules, " ")})
	}
	return list
}

// guard works out whether the client's commands have to be looked at one by one.
func (a *Access) guard(cl *command.Client) {
	cl.Guarded = !cl.Primary && (a.MustAuthenticate(cl) || !cl.User.MayAll())
}

// guardAll does so for all clients, and for those who come. It is called whenever a user has changed.
func (a *Access) guardAll() {
	a.changes.Add(1)
	a.Gate.Set(command.GatePassword, !a.Users.Default().Open())
	for _, cl := range a.Clients.List {
		a.guard(cl)
	}
}

// UserChanges counts the changes of users: whoever keeps a client for its next use has it authenticate anew when there was one. It may be called from
// any goroutine.
func (a *Access) UserChanges() uint64 { return a.changes.Load() }

// BecomeDefault makes a client the default user, authenticated if that takes no password.
func (a *Access) BecomeDefault(cl *command.Client) {
	cl.User = a.Users.Default()
	cl.Authenticated = cl.User.Open()
	a.guard(cl)
}

// Authenticate makes the client a user, if the password is right.
func (a *Access) Authenticate(c *command.Ctx, name, password []byte) bool {
	u := a.Users.Authenticate(name, password)
	if u == nil {
		a.logDenial(c, acl.DeniedAuth, context(c), string(c.Args[0]), string(name))
		return false
	}
	c.Client.User, c.Client.Authenticated = u, true
	a.guard(c.Client)
	return true
}

// context is how the command came about, for the log of denials.
func context(c *command.Ctx) acl.Context {
	if c.Client.Multi != nil {
		return acl.InMulti
	}
	return acl.Toplevel
}

// logDenial enters a denial into the log. The client is described as it is now.
func (a *Access) logDenial(c *command.Ctx, reason acl.Denial, context acl.Context, object, user string) {
	a.denials.Add(acl.LogEntry{
		Reason: reason, Context: context, Object: object, User: user, AtMs: c.Now, Client: a.ClientLine(c, c.Client),
	}, c.Cfg.ACLLogMaxLen)
}

// expel closes the connections of a user who is gone. What a transaction has left to run is refused.
func (a *Access) expel(u *acl.User) {
	u.Disarm()
	for _, cl := range a.Clients.List {
		if cl.User != u {
			continue
		}
		cl.Authenticated = false
		a.guard(cl)
		if a.IsRunning(cl) {
			cl.Conn.CloseAfterReply()
		} else {
			cl.Conn.CloseNow()
		}
	}
}

// GuardRefusal returns the error with which the command is refused to a guarded client, or nothing.
func (a *Access) GuardRefusal(c *command.Ctx) string {
	switch {
	case c.Cmd.Flags&command.NoAuth == 0 && a.MustAuthenticate(c.Client):
		return command.ErrNoAuth
	case c.Client.Multi != nil && c.Cmd.Flags&command.NoMulti != 0:
		return command.ErrNoMulti
	}
	switch a.denial(c, context(c)) {
	case acl.Allowed:
		return ""
	case acl.DeniedCommand:
		return "NOPERM this user has no permissions to run the '" + c.Cmd.FullName + "' command"
	case acl.DeniedKey:
		return command.ErrDeniedKey
	case acl.DeniedChannel:
		return errDeniedChannel
	}
	return "NOPERM no permission"
}

// Errors of commands that the client's user may not run.
const (
	errDeniedChannel = "NOPERM this user has no permissions to access one of the channels used as arguments"
	errRulesChanged  = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: "
)

// QueuedRefusal returns the error with which a queued command is refused when its turn has come, or nothing.
func (a *Access) QueuedRefusal(c *command.Ctx) string {
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

// CalledRefusal returns the error with which a command that a script calls is refused, or nothing.
func (a *Access) CalledRefusal(c *command.Ctx) string {
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
func (a *Access) denial(c *command.Ctx, context acl.Context) acl.Denial {
	d, arg := c.Client.User.Judge(c.ACLCall(c.Cmd, c.Args))
	if d == acl.Allowed {
		return d
	}
	object := c.Cmd.FullName
	if d != acl.DeniedCommand {
		object = string(c.Args[arg])
	}
	a.logDenial(c, d, context, object, c.Client.User.Name())
	return d
}
