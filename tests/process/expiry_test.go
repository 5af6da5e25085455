package process

import (
	"bytes"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var expiring = flag.Int("process.expiring", 200_000, "keys that expire at once; make evict has a million")

// TestManyKeysExpire fills a server with keys that all expire in the same second, and waits, without touching them, until they
// are gone and their memory can be used again.
func TestManyKeysExpire(t *testing.T) {
	for delay := 3 * time.Second; !expireMany(t, *expiring, delay); delay *= 2 {
		require.LessOrEqual(t, delay, time.Minute, "the keys cannot be written before their time")
	}
}

// expireMany reports false if the keys could not all be written before their time, which is so far from now.
func expireMany(t *testing.T, keys int, delay time.Duration) bool {
	t.Helper()
	const batch = 10_000
	s := harness.Start(t)
	c := harness.Dial(t, s.Addr)
	empty := c.InfoNumber("used_memory")

	expireAt := time.Now().Add(delay).Truncate(time.Second)
	var request bytes.Buffer
	for first := 0; first < keys; first += batch {
		request.Reset()
		for i := first; i < first+batch; i++ {
			key := fmt.Sprintf("expiring:%012d", i)
			fmt.Fprintf(&request, "*5\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\n1\r\n$4\r\nPXAT\r\n$13\r\n%d\r\n", len(key), key, expireAt.UnixMilli())
		}
		sent := make(chan error, 1)
		go func() { sent <- c.Send(request.Bytes()) }()
		for range batch {
			require.Equal(t, "+OK\r\n", string(c.Reply()))
		}
		require.NoError(t, <-sent)
	}
	full := c.InfoNumber("used_memory")
	if time.Now().After(expireAt) {
		return false
	}
	require.Greater(t, full, empty+keys*20, "the keys must take memory for the test to mean something")
	deadline := expireAt.Add(time.Minute)
	time.Sleep(time.Until(expireAt))
	for dbSize(t, c) > 0 {
		require.True(t, time.Now().Before(deadline), "keys left a minute after their time: %d", dbSize(t, c))
		time.Sleep(20 * time.Millisecond)
	}
	took := time.Since(expireAt)
	left := c.InfoNumber("used_memory") - empty
	t.Logf("%d keys gone %v after their time; used_memory %d empty, %d full, %d more than empty afterwards", keys, took.Round(time.Millisecond), empty, full, left)
	// What is left is garbage of the connection buffers, which the collector has not looked for yet.
	require.Less(t, left, (full-empty)/5, "memory must come back")
	require.Equal(t, keys, c.InfoNumber("expired_keys"))
	return true
}

func dbSize(t *testing.T, c *harness.Client) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(c.Do("DBSIZE")), ":")))
	require.NoError(t, err)
	return n
}
