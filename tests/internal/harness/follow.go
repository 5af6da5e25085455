package harness

import (
	"bufio"
	"io"
	"net"
	"strconv"
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

// InfoNumber returns a numeric field of INFO.
func (c *Client) InfoNumber(name string) int {
	c.t.Helper()
	n, err := strconv.Atoi(c.Info("everything")[name])
	require.NoError(c.t, err, "INFO's field %s", name)
	return n
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

// Sync has a connection be a replica that takes all data, of a primary that saves a file first, and returns the stream of changes that follows.
func Sync(t testing.TB, conn net.Conn) *bufio.Reader {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(2*ReplyTimeout)))
	_, err := io.WriteString(conn, "PSYNC ? -1\r\n")
	require.NoError(t, err)
	stream := bufio.NewReader(conn)
	line := ""
	for !strings.HasPrefix(line, "$") {
		line, err = stream.ReadString('\n')
		require.NoError(t, err)
	}
	length, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	require.NoError(t, err)
	_, err = stream.Discard(length)
	require.NoError(t, err)
	return stream
}

// RequireReadToItsEnd ends a primary, which saves a file first for who takes all data, while a replica that is behind goes on acknowledging, and
// requires that this gets all that there is.
func RequireReadToItsEnd(t testing.TB, primary *Server, replica net.Conn) {
	t.Helper()
	logged := func(text string) {
		require.Eventually(t, func() bool { return strings.Contains(primary.Log(), text) }, ReplyTimeout, 10*time.Millisecond, text)
	}
	p, stream := Dial(t, primary.Addr), Sync(t, replica)
	logged("now receives changes")
	value := strings.Repeat("x", 100_000)
	for range 100 { // of so much that no socket takes it
		p.Ask("SET", "k", value)
	}
	p.Ask("SET", "k", "the last")
	ended := make(chan error, 1)
	go func() { ended <- primary.Terminate() }()
	logged("a replica is sent what it lacks") // from here on nobody obeys it
	_, err := io.WriteString(replica, "REPLCONF ACK 0\r\n")
	require.NoError(t, err)
	rest, err := io.ReadAll(stream)
	require.NoError(t, err)
	require.Contains(t, string(rest), "the last")
	_ = replica.Close() // over TLS with a farewell that nobody hears
	require.NoError(t, <-ended)
}
