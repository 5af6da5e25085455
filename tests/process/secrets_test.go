package process

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestSecrets gives the server passwords in every way there is, right and wrong, and looks for them, and for their hashes, in all that it
// writes and shows to others: the log at its most talkative, MONITOR, SLOWLOG with every command in it, INFO, CLIENT LIST, ACL LOG, the
// counters, and the files of the data directory.
func TestSecrets(t *testing.T) {
	const first, second = "Sesame-0001", "Sesame-0002"
	metrics := harness.FreePort(t)
	server := harness.Start(t, "--loglevel", "debug", "--slowlog-log-slower-than", "0", "--slowlog-max-len", "10000", "--appendonly", "yes",
		"--latency-tracking", "yes", "--acllog-max-len", "1000", "--requirepass", first, "--metrics-port", fmt.Sprint(metrics),
		"--user", "lines on >Sesame-0003 +@all ~*", "--rename-command", "lastsave", "ls")
	admin, monitor := harness.Dial(t, server.Addr), harness.Dial(t, server.Addr)
	for _, c := range []*harness.Client{admin, monitor} {
		require.Equal(t, "OK", c.Ask("AUTH", first).Text)
	}
	require.Eventually(t, func() bool { return admin.Ask("PING").Text == "PONG" }, 20*time.Second, time.Millisecond, "it loads its data")
	require.Equal(t, "OK", monitor.Ask("MONITOR").Text)

	hash := "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d15ESAM" // wrong, as it has capitals
	lines := [][]string{
		{"AUTH", "Sesame-0004"}, {"AUTH", "default", "Sesame-0005"}, {"AUTH", "nobody", "Sesame-0006"}, {"AUTH", "a", "Sesame-0007", "Sesame-0008"},
		{"AUTH", "lines", "Sesame-0003"}, {"AUTH", first}, {"AUTH", "default", first}, {"auth", "Sesame-0009"},
		{"HELLO", "3", "AUTH", "default", "Sesame-0010"}, {"HELLO", "2", "AUTH", "default", first}, {"HELLO", "2", "SETNAME", "x", "AUTH", "default", first},
		{"HELLO", "2", "SETNAME", "AUTH", "AUTH", "default", first}, {"HELLO", "2", "auth", "Sesame-0011"}, {"HELLO", "9", "AUTH", "default", "Sesame-0012"},
		{"HELLO", "2", "AUTH", "me", "Sesame-0014", "AUTH", "me", "Sesame-0016"},
		{"ACL", "SETUSER", "u", "on", ">Sesame-0017", "+@all", "~*", "&*"}, {"ACL", "SETUSER", "u", "<Sesame-0018"}, {"ACL", "SETUSER", "u", "#" + hash},
		{"ACL", "SETUSER", "u", "nosuch", ">Sesame-0019"}, {"ACL", "SETUSER", "u", "(>Sesame-0020"}, {"ACL", "SETUSER", "u", "(>Sesame-0021)"},
		{"ACL", "SETUSR", "u", ">Sesame-0022"}, {"ACL", "GETUSER", "Sesame-0023"}, {"ACL", "DELUSER", "Sesame-0024"},
		{"ACL", "DRYRUN", "u", "AUTH", "Sesame-0025"}, {"ACL", "GETUSER", "u"}, {"ACL", "LIST"},
		{"AUTH", "u", "Sesame-0017"}, {"ACL", "WHOAMI"},
		{"CONFIG", "SET", "requirepass", second}, {"CONFIG", "SET", "timeout", "0", "RequirePass", second}, {"CONFIG", "SET", "x", "requirepass", "Sesame-0026"},
		{"CONFIG", "SET", "requirepass", "Sesame-0027", "nosuch", "1"}, {"CONFIG", "SET", "metrics-password", "Sesame-0028"},
		{"CONFIG", "SET", "metrics-page-password", "Sesame-0042"}, {"CONFIG", "SET", "metrics-password", ""}, {"CONFIG", "SET", "user", "x >Sesame-0029"}, {"CONFIG", "GET", "requirepass"},
		{"MIGRATE", "h", "1", "k", "0", "1", "AUTH", "Sesame-0030"}, {"MIGRATE", "h", "1", "k", "0", "1", "AUTH2", "u", "Sesame-0031"},
		{"AUHT", "Sesame-0032"}, {"REPLICAOF", "Sesame-0033"}, {"CONFIG", "SET", "masterauth", "Sesame-0034"},
		{"MULTI"}, {"AUTH", "default", "Sesame-0035"}, {"AUTH", "default", second}, {"ACL", "SETUSER", "v", ">Sesame-0036"}, {"CONFIG", "SET", "requirepass", second}, {"EXEC"},
		{"MULTI"}, {"HELLO", "2", "AUTH", "default", "Sesame-0037"}, {"DISCARD"},
		{"SET", "k", "v"}, {"INCR", "n"}, {"EVAL", "return redis.call('set', 'l', 'w')", "0"},
	}
	c := harness.Dial(t, server.Addr)
	shown := 0
	for _, line := range lines {
		c.Ask(line...)
	}
	// Before it has authenticated a client may send what it likes, too.
	stranger := harness.Dial(t, server.Addr)
	for _, line := range [][]string{{"AUTH", "Sesame-0038"}, {"HELLO", "3", "AUTH", "x", "Sesame-0039"}, {"GET", "Sesame-0040"}, {"CONFIG", "SET", "requirepass", "Sesame-0041"}} {
		stranger.Ask(line...)
	}
	for _, raw := range []string{"AUTH Sesame-0042\r\nPOST Sesame-0043\r\n", "*2\r\n$4\r\nAUTH\r\n$11\r\nSesame-0044\r\n*1\r\n+Sesame-0045\r\n"} {
		c := harness.Dial(t, server.Addr)
		require.NoError(t, c.Send([]byte(raw)))
		_, closed := c.Drain(10 * time.Second)
		require.True(t, closed)
	}

	outputs := map[string]string{}
	for _, ask := range [][]string{
		{"INFO", "everything"}, {"SLOWLOG", "GET", "-1"}, {"CLIENT", "LIST"}, {"ACL", "LOG", "1000"}, {"LATENCY", "HISTOGRAM"},
		{"MEMORY", "DOCTOR"}, {"COMMAND", "LIST"}, {"SCRIPT", "HELP"}, {"LASTSAVE"}, {"DBSIZE"},
	} {
		outputs[strings.Join(ask, " ")] = admin.Ask(ask...).Wire()
	}
	require.Equal(t, "OK", admin.Ask("SAVE").Text)
	require.Equal(t, "MARK", admin.Ask("ECHO", "MARK").Text)
	seen := &strings.Builder{}
	for !strings.Contains(seen.String(), "MARK") {
		v, err := monitor.Read(10 * time.Second)
		require.NoError(t, err)
		seen.WriteString(v.Wire())
	}
	outputs["MONITOR"] = seen.String()
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics))
	require.NoError(t, err)
	page, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	outputs["/metrics"] = string(page)
	require.NoError(t, server.Terminate())
	require.NoError(t, filepath.WalkDir(server.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		outputs[filepath.Base(path)] = string(text)
		return err
	}))

	found := 0
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		text := outputs[name]
		shown += len(text)
		for _, secret := range append([]string{hash, "Sesame"}, hashes(first, second, "Sesame-0003", "Sesame-0017", "Sesame-0036")...) {
			for at := range strings.SplitSeq(text, "\n") {
				if strings.Contains(at, secret) {
					found++
					t.Errorf("%s shows %s: %q", name, secret, at)
				}
			}
		}
	}
	require.Contains(t, outputs["SLOWLOG GET -1"], "(redacted)", "the slow log has seen them")
	require.Contains(t, outputs["MONITOR"], "(redacted)")
	require.Contains(t, outputs["server.log"], "ready")
	t.Logf("%d command lines with secrets; %d outputs of %d bytes in all; %d secrets found", len(lines)+8, len(outputs), shown, found)
}

// hashes returns what users of these passwords are described with.
func hashes(passwords ...string) []string {
	list := make([]string, len(passwords))
	for i, password := range passwords {
		list[i] = fmt.Sprintf("%x", sha256.Sum256([]byte(password)))
	}
	return list
}
