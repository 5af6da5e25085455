package tls

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestCVE202656684And81934: clients whose input is decrypted and still waits are killed by a pipeline of CLIENT KILL from one of them.
// redis-server and Valkey walked through the list of such clients while the commands took clients out of it.
func TestCVE202656684And81934(t *testing.T) {
	const clients, rounds = 12, 6
	s := start(t)
	plain := harness.Dial(t, s.Addr)
	for round := range rounds {
		conns, ids := make([]*tls.Conn, clients), make([]string, clients)
		for i := range conns {
			c, err := tls.Dial("tcp", s.addr, s.config())
			require.NoError(t, err)
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(harness.ReplyTimeout))
			conns[i] = c
			_, err = io.WriteString(c, "CLIENT ID\r\n")
			require.NoError(t, err)
			reply := make([]byte, 32)
			n, err := c.Read(reply)
			require.NoError(t, err)
			ids[i] = strings.Trim(string(reply[:n]), ":\r\n")
		}
		killers := 1 + round%2*(clients-1) // one of them, or all at once
		var kills strings.Builder
		for _, id := range ids {
			fmt.Fprintf(&kills, "CLIENT KILL ID %s SKIPME yes\r\nPING\r\n", id)
		}
		waiting := strings.Repeat("ECHO "+strings.Repeat("x", 1000)+"\r\n", 15) // one record of TLS, of which a part is left to be read
		var all sync.WaitGroup
		for i, c := range conns {
			all.Go(func() {
				input := waiting
				if i < killers {
					input = kills.String() + waiting
				}
				_, _ = io.WriteString(c, input) // those that are killed by then fail
				_, _ = io.Copy(io.Discard, alive{c, 200 * time.Millisecond})
			})
		}
		all.Wait()
		require.Equal(t, "+PONG\r\n", string(plain.Do("PING")), "round %d", round)
		require.Eventually(t, func() bool { return plain.InfoNumber("connected_clients") <= 2 }, harness.ReplyTimeout, 10*time.Millisecond,
			"all but one, who killed them, are gone")
		_, err := s.try(s.config())
		require.NoError(t, err)
		for _, c := range conns {
			_ = c.Close()
		}
		require.Eventually(t, func() bool { return plain.InfoNumber("connected_clients") == 1 }, harness.ReplyTimeout, 10*time.Millisecond)
	}
	require.True(t, s.Alive())
}

// alive is a connection that ends when nothing has come for a while.
type alive struct {
	net.Conn
	quiet time.Duration
}

// Read implements io.Reader.
func (a alive) Read(p []byte) (int, error) {
	_ = a.SetReadDeadline(time.Now().Add(a.quiet))
	return a.Conn.Read(p)
}
