package process

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestRenamedCommandsInTheLog: the append-only file has commands under their own names, so that a start with other names reads it.
func TestRenamedCommandsInTheLog(t *testing.T) {
	first := harness.Start(t, "--appendonly", "yes", "--rename-command", "set", "put", "--rename-command", "append", "set", "--rename-command", "function", "f")
	c := harness.Dial(t, first.Addr)
	for _, line := range [][]string{
		{"put", "a", "1"}, {"SET", "a", "2"}, {"EVAL", "redis.call('put', 'b', 'x'); return redis.call('set', 'b', 'y')", "0"},
		{"MULTI"}, {"PUT", "c", "3"}, {"INCR", "c"}, {"EXEC"},
		{"F", "LOAD", "#!lua name=lib\nredis.register_function('one', function() return 1 end)"},
	} {
		require.NotEqual(t, byte('-'), c.Ask(line...).Kind, "%q", line)
	}
	stats := c.Ask("INFO", "commandstats").Text
	require.Contains(t, stats, "cmdstat_set:calls=3,", "statistics go by a command's own name")
	require.NotContains(t, stats, "cmdstat_put")
	require.NoError(t, first.Terminate())
	second := harness.StartIn(t, first.Dir, "--appendonly", "yes", "--rename-command", "set", "", "--rename-command", "incr", "more")
	c = harness.Dial(t, second.Addr)
	require.Equal(t, []string{"12", "xy", "4"}, c.Ask("MGET", "a", "b", "c").Strings())
	require.Equal(t, "1", c.Ask("FCALL", "one", "0").Text)
	require.Equal(t, "-ERR unknown command 'SET', with args beginning with: 'a' '1' \r\n", c.Ask("SET", "a", "1").Wire())
}

// TestUsersOutliveRestart: CONFIG REWRITE keeps users in the configuration file, in a form that headgate and redis-server read.
func TestUsersOutliveRestart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "headgate.conf")
	require.NoError(t, os.WriteFile(path, []byte("# mine\nrequirepass first\nuser old on nopass\n"), 0o600))
	flags := []string{"--requirepass", "first"}
	first := harness.StartConfigured(t, path, flags...)
	c := harness.Dial(t, first.Addr)
	require.Equal(t, "OK", c.Ask("AUTH", "first").Text)
	for _, line := range [][]string{
		{"ACL", "SETUSER", "alice", "on", ">p w", "+@all", "-@dangerous", "~a*", "%R~\"q\"", "&ch", "(+get ~x)"}, {"ACL", "DELUSER", "old"},
		{"CONFIG", "SET", "requirepass", "second"}, {"CONFIG", "REWRITE"},
	} {
		require.NotEqual(t, byte('-'), c.Ask(line...).Kind, "%q", line)
	}
	users := c.Ask("ACL", "LIST").Strings()
	require.NoError(t, first.Terminate())
	for _, start := range []func() *harness.Server{
		func() *harness.Server { return harness.StartConfigured(t, path) },
		func() *harness.Server { return harness.StartReferenceConfigured(t, path) },
	} {
		server := start()
		c := harness.Dial(t, server.Addr)
		require.Equal(t, "OK", c.Ask("AUTH", "second").Text)
		loaded := c.Ask("ACL", "LIST").Strings()
		require.Len(t, loaded, len(users))
		for i, line := range loaded {
			// As in Redis the default user is reset before its line is read, and so is one that sanitises payloads.
			require.Equal(t, users[i], strings.Replace(line, "user default on sanitize-payload", "user default on", 1))
		}
		require.Equal(t, "OK", c.Ask("AUTH", "alice", "p w").Text)
		require.NoError(t, server.Terminate())
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "# mine\n")
	require.NotContains(t, string(text), "p w")
}

// TestRewriteLeavesPasswordsToOthers: CONFIG REWRITE writes no line of the default user that says what requirepass says, so that another password in the
// file, the environment or a flag is the one that counts after it.
func TestRewriteLeavesPasswordsToOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headgate.conf")
	require.NoError(t, os.WriteFile(path, []byte("requirepass first\nuser default on #"+strings.Repeat("0", 64)+" >first ~* &* +@all\n"), 0o600))
	server := harness.StartConfigured(t, path)
	c := harness.Dial(t, server.Addr)
	require.Equal(t, "OK", c.Ask("AUTH", "first").Text)
	for _, line := range [][]string{{"ACL", "SETUSER", "default", "resetpass", ">first"}, {"CONFIG", "REWRITE"}} {
		require.Equal(t, "OK", c.Ask(line...).Text, "%q", line)
	}
	require.NoError(t, server.Terminate())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "requirepass first\n")
	require.NotContains(t, string(text), "user default")
	server = harness.StartConfigured(t, path, "--requirepass", "second")
	c = harness.Dial(t, server.Addr)
	require.Equal(t, byte('-'), c.Ask("AUTH", "first").Kind)
	require.Equal(t, "OK", c.Ask("AUTH", "second").Text)
	for _, line := range [][]string{{"ACL", "SETUSER", "default", "-@dangerous", "+config"}, {"CONFIG", "REWRITE"}} {
		require.Equal(t, "OK", c.Ask(line...).Text, "%q", line)
	}
	require.NoError(t, server.Terminate())
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "\nuser default on ", "its rights are its own now")
}

// TestRewriteLeavesUsersToTheEnvironment: CONFIG REWRITE wrote the users that HEADGATE_USER gave, and they outlived the variable. Once one has been changed
// they are written, since the variable would not have it back.
func TestRewriteLeavesUsersToTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	path, program := filepath.Join(dir, "headgate.conf"), filepath.Join(dir, "headgate.sh")
	require.NoError(t, os.WriteFile(path, []byte("hz 20\nuser file on nopass\n"), 0o600))
	script := "#!/bin/sh\nexport HEADGATE_USER='alice on >secretword ~a* +@read\nbob off'\nexec '" + harness.Binary(t) + "' '" + path + "' \"$@\"\n"
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
	server := harness.StartBinary(t, program, "--timeout", "7")
	c := harness.Dial(t, server.Addr)
	rewritten := func(lines ...[]string) string {
		t.Helper()
		for _, line := range append(lines, []string{"CONFIG", "REWRITE"}) {
			require.NotEqual(t, byte('-'), c.Ask(line...).Kind, "%q", line)
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), "\ntimeout 7\n")
		require.NotContains(t, string(text), "secretword")
		return string(text)
	}
	for _, lines := range [][][]string{nil, {{"ACL", "SETUSER", "carol"}, {"ACL", "DELUSER", "carol"}}, {{"CONFIG", "SET", "requirepass", ""}}} {
		text := rewritten(lines...)
		require.Contains(t, text, "\nuser file on nopass\n", "%q", lines)
		require.NotContains(t, text, "alice", "%q", lines)
	}
	text := rewritten([]string{"ACL", "SETUSER", "bob", "on"})
	require.Contains(t, text, "\nuser alice on \"#")
	require.Contains(t, text, "\nuser bob on ")
	require.NotContains(t, text, "user file")
	require.NoError(t, server.Terminate())
}

// TestWrongUsers: a start with wrong users ends with one line that says so, and says no password.
func TestWrongUsers(t *testing.T) {
	for _, args := range [][]string{
		{"--user", "a on >secretword +nosuch"}, {"--user", "a on <secretword"}, {"--user", "a on #secretword"},
		{"--user", "a on >secretword", "--aclfile", "x"}, {"--user", "a >secretword", "--user", "a on"}, {"--rename-command", "nosuch", "x"},
	} {
		args = append([]string{"--port", "0", "--save", ""}, args...)
		for _, all := range [][]string{args, append(args, "--check-config")} {
			stdout, stderr, exit := run(t, nil, all...)
			require.Equal(t, 1, exit, "%q", all)
			require.NotContains(t, stdout+stderr, "secretword", "%q", all)
		}
	}
}

// TestConfigurationFromAPipe: CONFIG REWRITE opened the pipe again and waited for a writer, with all clients waiting for it. SIGHUP did as well.
func TestConfigurationFromAPipe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "headgate.conf")
	fifo(t, path)
	go func() {
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteString("requirepass secret\n")
			f.Close()
		}
	}()
	server := harness.StartConfigured(t, path)
	c := harness.Dial(t, server.Addr)
	require.Equal(t, "OK", c.Ask("AUTH", "secret").Text)
	require.Equal(t, "OK", c.Ask("CONFIG", "SET", "timeout", "0").Text)
	require.Equal(t, "-ERR Rewriting config file: open "+path+": it is not a regular file\r\n", c.Ask("CONFIG", "REWRITE").Wire())
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type())

	require.NoError(t, syscall.Kill(server.PID(), syscall.SIGHUP))
	require.Eventually(t, func() bool { return strings.Contains(server.Log(), "the configuration stays as it was") }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, byte('-'), harness.Dial(t, server.Addr).Ask("PING").Kind, "the password is the one that came through the pipe")
	require.Equal(t, "PONG", c.Ask("PING").Text)
}
