package memory

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// loadBatch is how many commands are sent before their replies are read.
const loadBatch = 1000

// load runs n commands, which are all answered with so many lines.
func load(t testing.TB, s *harness.Server, n, lines int, command func(i int) []string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Hour)))
	in := bufio.NewReaderSize(conn, 1<<20)
	var out bytes.Buffer
	for first := 0; first < n; first += loadBatch {
		out.Reset()
		batch := min(loadBatch, n-first)
		for i := first; i < first+batch; i++ {
			words := command(i)
			fmt.Fprintf(&out, "*%d\r\n", len(words))
			for _, word := range words {
				fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(word), word)
			}
		}
		sent := make(chan error, 1)
		go func() {
			_, err := conn.Write(out.Bytes())
			sent <- err
		}()
		for range batch * lines {
			line, err := in.ReadSlice('\n')
			require.NoError(t, err)
			require.NotEqual(t, byte('-'), line[0], "%s: %s", s.Name, line)
		}
		require.NoError(t, <-sent)
	}
}

// settled has the server give back what it can, and returns its resident bytes when they have stopped to fall.
func settled(t testing.TB, s *harness.Server, c *harness.Client) int {
	t.Helper()
	c.Do("MEMORY", "PURGE")
	least := s.RSS()
	for quiet := 0; quiet < 3; quiet++ {
		time.Sleep(100 * time.Millisecond)
		if now := s.RSS(); now < least*99/100 {
			least, quiet = now, 0
		}
	}
	return int(min(least, s.RSS()))
}
