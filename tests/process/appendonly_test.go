package process

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestAppendOnlyIsToldAtOnce: CONFIG SET appendonly answered OK some milliseconds before INFO and BGREWRITEAOF knew of it, and a no that
// followed soon had the log say that a file could not be written anew, which nobody wanted any more.
func TestAppendOnlyIsToldAtOnce(t *testing.T) {
	const turns = 5
	s := harness.Start(t)
	c := harness.Dial(t, s.Addr)
	var pipeline []byte
	for range turns {
		for _, value := range []string{"yes", "no"} {
			pipeline = append(pipeline, bytes.Join([][]byte{
				harness.Command("CONFIG", "SET", "appendonly", value), harness.Command("INFO", "persistence"), harness.Command("BGREWRITEAOF"),
			}, nil)...)
		}
	}
	require.NoError(t, c.Send(pipeline))
	for range turns {
		for _, on := range []bool{true, false} {
			require.Equal(t, "+OK\r\n", string(c.Reply()))
			require.Equal(t, on, strings.Contains(string(c.Reply()), "aof_enabled:1\r\n"))
			reply := string(c.Reply())
			require.Equal(t, !on, strings.HasPrefix(reply, "-ERR The append-only file is off"), "%v: %s", on, reply)
		}
	}
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "appendonly", "yes")))
	require.Eventually(t, func() bool {
		info := string(c.Do("INFO", "persistence"))
		return strings.Contains(info, "aof_rewrite_scheduled:0\r\n") && strings.Contains(info, "aof_rewrite_in_progress:0\r\n")
	}, 20*time.Second, 5*time.Millisecond)
	require.Contains(t, string(c.Do("INFO", "persistence")), "aof_last_bgrewrite_status:ok\r\n")
	require.NotContains(t, s.Log(), "could not be rewritten")
	require.Equal(t, "+OK\r\n", string(c.Do("SET", "k", "v")))
	s.Kill()
	again := harness.StartIn(t, s.Dir, "--appendonly", "yes")
	require.Equal(t, "$1\r\nv\r\n", string(harness.Dial(t, again.Addr).Do("GET", "k")))
}
