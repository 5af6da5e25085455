package harness

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// followTimeout is how long a replica may take to have what its primary has.
const followTimeout = 60 * time.Second

// Info returns the fields of a section of INFO.
func (c *Client) Info(section string) map[string]string {
	c.t.Helper()
	fields := map[string]string{}
	for line := range strings.SplitSeq(c.Ask("INFO", section).Text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// AwaitSame returns when a replica's link is up and it has all that its primary has, by the offsets of both.
func AwaitSame(t testing.TB, primary, replica *Client) {
	t.Helper()
	var want, got map[string]string
	deadline := time.Now().Add(followTimeout)
	for time.Now().Before(deadline) {
		want, got = primary.Info("replication"), replica.Info("replication")
		if got["master_link_status"] == "up" && got["master_repl_offset"] == want["master_repl_offset"] && got["master_replid"] == want["master_replid"] {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	require.Fail(t, "the replica does not catch up", "primary %v\nreplica %v", want, got)
}
