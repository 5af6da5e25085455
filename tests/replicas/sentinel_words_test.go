package replicas

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestWhatSentinelsSend: a promotion comes in a transaction, with CONFIG REWRITE and CLIENT KILL.
func TestWhatSentinelsSend(t *testing.T) {
	t.Parallel()
	primary := harness.StartReference(t, diskless...)
	path := t.TempDir() + "/h.conf"
	writeFile(t, path, "save \"\"\nreplicaof 127.0.0.1 "+strconv.Itoa(primary.Port)+"\n")
	replica := harness.StartConfigured(t, path)
	p, sentinel, other, subscriber := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr), harness.Dial(t, replica.Addr), harness.Dial(t, replica.Addr)
	harness.AwaitSame(t, p, sentinel)
	subscriber.Ask("SUBSCRIBE", "__sentinel__:hello")
	require.Equal(t, ":1\r\n", string(other.Do("PUBLISH", "__sentinel__:hello", "127.0.0.1,26379,id,0,mymaster,127.0.0.1,1,0")))
	require.Equal(t, "__sentinel__:hello", subscriber.Value().Items[1].Text)
	for _, words := range [][]string{{"MULTI"}, {"SLAVEOF", "NO", "ONE"}, {"CONFIG", "REWRITE"}, {"CLIENT", "KILL", "TYPE", "normal"}, {"CLIENT", "KILL", "TYPE", "pubsub"}} {
		sentinel.Ask(words...)
	}
	require.Regexp(t, `^\*4\r\n\+OK\r\n\+OK\r\n:\d+\r\n:1\r\n$`, string(sentinel.Do("EXEC")))
	for _, c := range []*harness.Client{other, subscriber} {
		_, gone := c.Drain(wait)
		require.True(t, gone)
	}
	c := harness.Dial(t, replica.Addr)
	require.Equal(t, "master", c.Info("replication")["role"])
	require.Contains(t, readFile(t, path), "replicaof no one\n") // which redis-server reads, too
	for _, words := range [][]string{{"MULTI"}, {"SLAVEOF", "127.0.0.1", strconv.Itoa(primary.Port)}, {"CONFIG", "REWRITE"}, {"CLIENT", "KILL", "TYPE", "normal"}, {"CLIENT", "KILL", "TYPE", "pubsub"}} {
		c.Ask(words...)
	}
	require.Regexp(t, `^\*4\r\n\+OK\r\n\+OK\r\n:\d+\r\n:0\r\n$`, string(c.Do("EXEC")))
	c = harness.Dial(t, replica.Addr)
	harness.AwaitSame(t, p, c)
	require.Contains(t, readFile(t, path), "replicaof 127.0.0.1 "+strconv.Itoa(primary.Port))
}
