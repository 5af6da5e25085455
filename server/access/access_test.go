package access_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"headgate/server"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestEveryCommandByNameAndCategory: each command of the table is allowed and denied by its name, and by each category just when it
// is in that category, or its container is.
func TestEveryCommandByNameAndCategory(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	set := func(rules ...string) {
		require.Equal(t, "+OK\r\n", w.Ask(append([]string{"ACL", "SETUSER", "u", "reset", "allkeys", "allchannels"}, rules...)...))
	}
	allowed := func(cmd *command.Command) bool {
		reply := w.Ask(append([]string{"ACL", "DRYRUN", "u"}, servertest.AnyCall(cmd)...)...)
		if reply != "+OK\r\n" {
			require.Contains(t, reply, "no permissions to run the '"+cmd.FullName+"' command")
		}
		return reply == "+OK\r\n"
	}
	runnable := func(visit func(cmd *command.Command)) {
		for _, cmd := range w.Srv.Commands.All {
			if cmd.Handler != nil {
				visit(cmd)
			}
		}
	}
	runnable(func(cmd *command.Command) {
		set("+" + cmd.FullName)
		require.True(t, allowed(cmd), cmd.FullName)
		set("+@all", "-"+cmd.FullName)
		require.Equal(t, cmd.Flags&command.NoAuth != 0, allowed(cmd), cmd.FullName)
		if cmd.Parent != nil {
			set("+" + cmd.Parent.Name)
			require.True(t, allowed(cmd), cmd.FullName)
		}
	})
	for _, name := range acl.CategoryNames() {
		category := acl.CategoryByName(name)
		in := func(cmd *command.Command) bool {
			return cmd.AllCategories()&category != 0 || cmd.Parent != nil && cmd.Parent.AllCategories()&category != 0
		}
		set("+@" + name)
		runnable(func(cmd *command.Command) {
			require.Equal(t, in(cmd) || cmd.Flags&command.NoAuth != 0, allowed(cmd), "%s in %s", cmd.FullName, name)
		})
		set("+@all", "-@"+name)
		runnable(func(cmd *command.Command) {
			require.Equal(t, !in(cmd) || cmd.Flags&command.NoAuth != 0, allowed(cmd), "%s not in %s", cmd.FullName, name)
		})
	}
	for _, cmd := range w.Srv.Commands.All {
		if cmd.Group == command.GroupThrottle && cmd.Handler != nil {
			require.NotEqual(t, cmd.AllCategories()&acl.Throttle != 0, cmd.AllCategories()&acl.Admin != 0, "%s is for those who limit or for operators", cmd.FullName)
		}
	}
}

// TestEveryCommandIsRefused sends each command of the table as a user without rights, and as one with rights to no key.
func TestEveryCommandIsRefused(t *testing.T) {
	s := server.New(config.NewLive(servertest.Unsaved()), server.Options{})
	admin, w := servertest.NewWorkerClientOf(t, s), servertest.NewWorkerClientOf(t, s)
	rules := func(rules ...string) {
		require.Equal(t, "+OK\r\n", admin.Ask(append([]string{"ACL", "SETUSER", "u", "reset", "on", "nopass"}, rules...)...))
	}
	rules()
	require.Equal(t, "+OK\r\n", w.Ask("AUTH", "u", "x"))
	for _, cmd := range s.Commands.All {
		if cmd.Handler != nil && cmd.Flags&command.NoAuth == 0 {
			require.Contains(t, w.Ask(servertest.AnyCall(cmd)...), "NOPERM this user has no permissions to run the '"+cmd.FullName+"' command\r\n")
		}
	}
	rules("+@all")
	for _, cmd := range s.Commands.All {
		call := commandCall(admin.Srv, cmd)
		if call == nil {
			continue
		}
		require.Equal(t, "-"+command.ErrDeniedKey+"\r\n", w.Ask(call...), "%q", call)
	}
}

// commandCall is a call of a command with keys in it, or nil if it has none that the shortest call shows.
func commandCall(s *server.Server, cmd *command.Command) []string {
	call := servertest.AnyCall(cmd)
	args := make([][]byte, len(call))
	for i, word := range call {
		args[i] = []byte(word)
	}
	if cmd.Handler == nil {
		return nil
	}
	c := &command.Ctx{Core: s.Core}
	if len(c.ACLCall(cmd, args).Keys) == 0 {
		return nil
	}
	return call
}

// TestGuardIsForgotten: a client whose user may do everything again is not looked at any more.
func TestGuardIsForgotten(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	cl := w.Conn.Client.(*command.Client)
	require.False(t, cl.Guarded)
	w.Ask("ACL", "SETUSER", "default", "-flushall")
	require.True(t, cl.Guarded)
	w.Ask("ACL", "SETUSER", "default", "+@all")
	require.False(t, cl.Guarded)
	w.Ask("CONFIG", "SET", "requirepass", "pw")
	require.False(t, cl.Guarded, "it is authenticated")
	w.Ask("RESET")
	require.True(t, cl.Guarded)
	require.Equal(t, "-NOAUTH Authentication required.\r\n", w.Ask("PING"))
	require.Equal(t, "+OK\r\n", w.Ask("AUTH", "pw"))
	require.False(t, cl.Guarded)
}

// TestConfiguredAccess: users and names of commands come with the configuration, and what is wrong with them is said without passwords.
func TestConfiguredAccess(t *testing.T) {
	for _, tt := range []struct {
		text, err string
	}{
		{text: "user a on >secret +@all ~*\nuser default off\nrename-command get fetch"},
		{text: "user a on +nosuch", err: "stdin:1: user a: Error in ACL SETUSER modifier '+nosuch': Unknown command or category name in ACL; correct the rules of that user in the configuration"},
		{text: "user a on #secret", err: "stdin:1: user a: The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters; correct the rules of that user in the configuration"},
		{text: "user a <secret", err: "stdin:1: user a: The password you are trying to remove from the user does not exist; correct the rules of that user in the configuration"},
		{text: "user a on (+get", err: "stdin:1: user a: Unmatched parenthesis in acl selector starting at '(+get'.; correct the rules of that user in the configuration"},
		{
			text: "port 7000\nuser b on\nuser a on +nosuch",
			err:  "stdin:3: user a: Error in ACL SETUSER modifier '+nosuch': Unknown command or category name in ACL; correct the rules of that user in the configuration",
		},
		{text: "user a on\naclfile x", err: "users are defined in the configuration while aclfile is set: keep either the file or the user lines, not both"},
		{text: "aclfile /nowhere/x", err: "Error loading ACLs, opening file '/nowhere/x': No such file or directory; correct the file, or aclfile"},
		{text: "rename-command nosuch x", err: `rename-command: there is no command "nosuch"; correct the name`},
		{text: "rename-command get SET", err: `rename-command: "SET" is the name of a command already; choose another`},
		{text: "rename-command config|get x", err: `rename-command: there is no command "config|get"; correct the name`},
		{text: "rename-command get GET"},
		{text: "rls-port 1\nrls-config /nosuch.yaml", err: "rls-config: stat /nosuch.yaml: no such file or directory"},
		{text: "tls-port 1\ntls-cert-file /nosuch.crt\ntls-key-file /nosuch.key", err: "tls-cert-file: stat /nosuch.crt: no such file or directory"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			host := config.OSHost()
			host.Stdin = strings.NewReader(tt.text + "\nsave \"\"\n")
			live, _, err := config.Load([]string{"-"}, nil, host)
			require.NoError(t, err)
			err = server.CheckAccess(live.Get())
			if tt.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tt.err)
		})
	}
}

// TestPathOfTheACLFile: a start named a relative aclfile as it was configured, which says nothing of where it looked. ACL LOAD answers as Redis does.
func TestPathOfTheACLFile(t *testing.T) {
	cfg := servertest.Unsaved()
	cfg.Dir, cfg.ACLFile = t.TempDir(), "users.acl"
	path := filepath.Join(cfg.Dir, "users.acl")
	require.EqualError(t, server.CheckAccess(cfg), "Error loading ACLs, opening file '"+path+"': No such file or directory; correct the file, or aclfile")
	require.NoError(t, os.WriteFile(path, []byte("nonsense\n"), 0o600))
	require.ErrorContains(t, server.CheckAccess(cfg), path+":1 should start with user keyword")
	w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{}))
	require.Contains(t, w.Ask("ACL", "LOAD"), "-ERR users.acl:1 should start with user keyword")
}

// TestGenPass: as many hexadecimal digits as hold so many bits, up to the most that there may be.
func TestGenPass(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	for bits, digits := range map[string]int{"1": 1, "4": 1, "5": 2, "13": 4, "4095": 1024, "4096": 1024} {
		password := strings.Split(w.Ask("ACL", "GENPASS", bits), "\r\n")
		require.Equal(t, "$"+strconv.Itoa(digits), password[0], bits)
		require.Regexp(t, "^[0-9a-f]*$", password[1])
		require.Len(t, password[1], digits)
	}
	require.Equal(t, "$64", strings.Split(w.Ask("ACL", "GENPASS"), "\r\n")[0])
	for _, bits := range []string{"0", "-1", "4097"} {
		require.Equal(t, "-ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096\r\n", w.Ask("ACL", "GENPASS", bits), bits)
	}
}

// TestSaveLeavesWhatIsNoFile: ACL SAVE replaced a pipe or a device that the ACL file's link leads to.
func TestSaveLeavesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	link, file, pipe := filepath.Join(dir, "users.acl"), filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(file, link))
	cfg := servertest.Unsaved()
	cfg.ACLFile = link
	w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{}))
	require.Equal(t, "+OK\r\n", w.Ask("ACL", "SAVE"))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "user default on")

	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(pipe, link))
	require.Equal(t, "-ERR There was an error trying to save the ACLs. Please check the server logs for more information\r\n", w.Ask("ACL", "SAVE"))
	info, err := os.Stat(link)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3, "no temporary file is left")
}
