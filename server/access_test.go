package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/acl"
	"headgate/server/config"
)

// anyCall is a command line of the right length for a command.
func anyCall(cmd *Command) []string {
	words := strings.Split(cmd.fullName, "|")
	for len(words) < max(cmd.Arity, -cmd.Arity) {
		words = append(words, "1")
	}
	return words
}

// TestEveryCommandByNameAndCategory: each command of the table is allowed and denied by its name, and by each category just when it
// is in that category, or its container is.
func TestEveryCommandByNameAndCategory(t *testing.T) {
	w := newWorkerClient(t)
	set := func(rules ...string) {
		require.Equal(t, "+OK\r\n", w.ask(append([]string{"ACL", "SETUSER", "u", "reset", "allkeys", "allchannels"}, rules...)...))
	}
	allowed := func(cmd *Command) bool {
		reply := w.ask(append([]string{"ACL", "DRYRUN", "u"}, anyCall(cmd)...)...)
		if reply != "+OK\r\n" {
			require.Contains(t, reply, "no permissions to run the '"+cmd.fullName+"' command")
		}
		return reply == "+OK\r\n"
	}
	runnable := func(visit func(cmd *Command)) {
		for _, cmd := range w.srv.commands.all {
			if cmd.Handler != nil {
				visit(cmd)
			}
		}
	}
	runnable(func(cmd *Command) {
		set("+" + cmd.fullName)
		require.True(t, allowed(cmd), cmd.fullName)
		set("+@all", "-"+cmd.fullName)
		require.Equal(t, cmd.Flags&NoAuth != 0, allowed(cmd), cmd.fullName)
		if cmd.parent != nil {
			set("+" + cmd.parent.Name)
			require.True(t, allowed(cmd), cmd.fullName)
		}
	})
	for _, name := range acl.CategoryNames() {
		category := acl.CategoryByName(name)
		in := func(cmd *Command) bool {
			return cmd.allCategories()&category != 0 || cmd.parent != nil && cmd.parent.allCategories()&category != 0
		}
		set("+@" + name)
		runnable(func(cmd *Command) {
			require.Equal(t, in(cmd) || cmd.Flags&NoAuth != 0, allowed(cmd), "%s in %s", cmd.fullName, name)
		})
		set("+@all", "-@"+name)
		runnable(func(cmd *Command) {
			require.Equal(t, !in(cmd) || cmd.Flags&NoAuth != 0, allowed(cmd), "%s not in %s", cmd.fullName, name)
		})
	}
	for _, cmd := range w.srv.commands.all {
		if cmd.Group == GroupThrottle && cmd.Handler != nil {
			require.NotEqual(t, cmd.allCategories()&acl.Throttle != 0, cmd.allCategories()&acl.Admin != 0, "%s is for those who limit or for operators", cmd.fullName)
		}
	}
}

// TestEveryCommandIsRefused sends each command of the table as a user without rights, and as one with rights to no key.
func TestEveryCommandIsRefused(t *testing.T) {
	s := New(config.NewLive(unsaved()), Options{})
	admin, w := newWorkerClientOf(t, s), newWorkerClientOf(t, s)
	rules := func(rules ...string) {
		require.Equal(t, "+OK\r\n", admin.ask(append([]string{"ACL", "SETUSER", "u", "reset", "on", "nopass"}, rules...)...))
	}
	rules()
	require.Equal(t, "+OK\r\n", w.ask("AUTH", "u", "x"))
	for _, cmd := range s.commands.all {
		if cmd.Handler != nil && cmd.Flags&NoAuth == 0 {
			require.Contains(t, w.ask(anyCall(cmd)...), "NOPERM this user has no permissions to run the '"+cmd.fullName+"' command\r\n")
		}
	}
	rules("+@all")
	for _, cmd := range s.commands.all {
		call := admin.srv.commandCall(cmd)
		if call == nil {
			continue
		}
		require.Equal(t, "-"+errDeniedKey+"\r\n", w.ask(call...), "%q", call)
	}
}

// commandCall is a call of a command with keys in it, or nil if it has none that the shortest call shows.
func (s *Server) commandCall(cmd *Command) []string {
	call := anyCall(cmd)
	args := make([][]byte, len(call))
	for i, word := range call {
		args[i] = []byte(word)
	}
	if cmd.Handler == nil {
		return nil
	}
	c := &Ctx{core: s.Core}
	if len(c.described(cmd, args).Keys) == 0 {
		return nil
	}
	return call
}

// TestGuardIsForgotten: a client whose user may do everything again is not looked at any more.
func TestGuardIsForgotten(t *testing.T) {
	w := newWorkerClient(t)
	cl := w.conn.Client.(*Client)
	require.False(t, cl.guarded)
	w.ask("ACL", "SETUSER", "default", "-flushall")
	require.True(t, cl.guarded)
	w.ask("ACL", "SETUSER", "default", "+@all")
	require.False(t, cl.guarded)
	w.ask("CONFIG", "SET", "requirepass", "pw")
	require.False(t, cl.guarded, "it is authenticated")
	w.ask("RESET")
	require.True(t, cl.guarded)
	require.Equal(t, "-NOAUTH Authentication required.\r\n", w.ask("PING"))
	require.Equal(t, "+OK\r\n", w.ask("AUTH", "pw"))
	require.False(t, cl.guarded)
}

// TestConfiguredAccess: users and names of commands come with the configuration, and what is wrong with them is said without passwords.
func TestConfiguredAccess(t *testing.T) {
	for _, tt := range []struct {
		text, err string
	}{
		{text: "user a on >secret +@all ~*\nuser default off\nrename-command get fetch"},
		{text: "user a on +nosuch", err: "user a: Error in ACL SETUSER modifier '+nosuch': Unknown command or category name in ACL; correct the rules of that user in the configuration"},
		{text: "user a on #secret", err: "user a: The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters; correct the rules of that user in the configuration"},
		{text: "user a <secret", err: "user a: The password you are trying to remove from the user does not exist; correct the rules of that user in the configuration"},
		{text: "user a on (+get", err: "user a: Unmatched parenthesis in acl selector starting at '(+get'.; correct the rules of that user in the configuration"},
		{text: "user a on\naclfile x", err: "users are defined in the configuration while aclfile is set: keep either the file or the user lines, not both"},
		{text: "aclfile /nowhere/x", err: "Error loading ACLs, opening file '/nowhere/x': No such file or directory; correct the file, or aclfile"},
		{text: "rename-command nosuch x", err: `rename-command: there is no command "nosuch"; correct the name`},
		{text: "rename-command get SET", err: `rename-command: "SET" is the name of a command already; choose another`},
		{text: "rename-command config|get x", err: `rename-command: there is no command "config|get"; correct the name`},
		{text: "rename-command get GET"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			host := config.OSHost()
			host.Stdin = strings.NewReader(tt.text + "\nsave \"\"\n")
			live, _, err := config.Load([]string{"-"}, nil, host)
			require.NoError(t, err)
			err = CheckAccess(live.Get())
			if tt.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tt.err)
		})
	}
}
