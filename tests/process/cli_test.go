package process

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// cliLines are commands whose replies have all types.
const cliLines = `PING
SET text "a \"quoted\" \x01 line\nand another"
GET text
GET missing
INCR number
INCRBYFLOAT float 1.5
RPUSH list a b c d e f g h i j k
LRANGE list 0 -1
LRANGE missing 0 -1
HSET hash field value other "with spaces"
HGETALL hash
HGETALL missing
SADD set member
SMEMBERS set
SMEMBERS missing
ZADD sorted 1.5 a 2 b
ZRANGE sorted 0 -1 WITHSCORES
ZSCORE sorted a
LPOS list x
EVAL "return {1,{2,{3,'four'},redis.status_reply('five')},redis.error_reply('ERR six')}" 0
EVAL "redis.setresp(3); return {map={a=1}}" 0
EVAL "redis.setresp(3); return {double=3.25}" 0
EVAL "redis.setresp(3); return true" 0
NOSUCH command
GET
GET "unbalanced

MULTI
INCR number
GET text
EXEC
SELECT 3
DBSIZE
CLIENT GETNAME
CL.THROTTLE user 15 30 60
RL.POLICY SET p GCRA 10 5 1h
RL.TAKE 1 p key
COMMAND GETKEYS GET a
quit
GET after
`

// TestCLIPrintsAsRedisCLI: what headgate cli prints of all types of replies is what redis-cli prints, byte for byte.
func TestCLIPrintsAsRedisCLI(t *testing.T) {
	for _, flags := range [][]string{{}, {"--raw"}, {"--no-raw"}, {"-3", "--no-raw"}, {"-3", "--raw"}} {
		t.Run(strings.Join(flags, ""), func(t *testing.T) {
			t.Parallel()
			print := func(program string, args ...string) string {
				server := harness.Start(t)
				cmd := exec.Command(program, append(append(args, "-p", strconv.Itoa(server.Port)), flags...)...)
				cmd.Stdin = strings.NewReader(cliLines)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, string(out))
				return string(out)
			}
			require.Equal(t, print(harness.ReferenceCLI(t)), print(harness.Binary(t), "cli"))
		})
	}
}

// TestCLICommand: a command among the arguments, with a password, a database, an error and no server.
func TestCLICommand(t *testing.T) {
	server := harness.Start(t, "--requirepass", "s3cret", "--unixsocket", t.TempDir()+"/s")
	run := func(env []string, args ...string) (out, problem string, code int) {
		cmd := exec.Command(harness.Binary(t), append([]string{"cli"}, args...)...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.Env = &stdout, &stderr, env
		_ = cmd.Run()
		return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	}
	port := strconv.Itoa(server.Port)
	out, problem, code := run(nil, "-p", port, "-a", "s3cret", "-n", "2", "SET", "k", "-p 1")
	require.Equal(t, []any{"OK\n", "", 0}, []any{out, problem, code})
	out, _, _ = run([]string{"REDISCLI_AUTH=s3cret"}, "-p", port, "-n", "2", "--no-raw", "GET", "k")
	require.Equal(t, "\"-p 1\"\n", out)
	out, _, code = run(nil, "-p", port, "GET", "k")
	require.Equal(t, "NOAUTH Authentication required.\n\n", out)
	require.Zero(t, code)
	_, problem, code = run(nil, "-p", port, "-e", "GET", "k")
	require.Equal(t, []any{"headgate: a command was answered with an error\n", 1}, []any{problem, code})
	_, problem, code = run(nil, "-p", port, "-a", "wrong", "GET", "k")
	require.Equal(t, 1, code)
	require.Contains(t, problem, "headgate: AUTH is answered with WRONGPASS")
	_, problem, code = run(nil, "-s", t.TempDir()+"/none", "PING")
	require.Equal(t, 1, code)
	require.Contains(t, problem, "headgate: could not connect: ")
}
