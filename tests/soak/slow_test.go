package soak

import (
	"flag"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var slowConns = flag.Int("slow.conns", 500, "clients that never finish their command")

const maxSlowBytes = 20 << 10 // of resident memory for each of them, without TLS

// TestSlowSenders: clients that have sent half a command cost little, keep nobody up, and are cut off by timeout.
func TestSlowSenders(t *testing.T) {
	for _, way := range []string{"tcp", "tls"} {
		t.Run(way, func(t *testing.T) {
			s := start(t)
			before := s.RSS()
			conns := make([]net.Conn, *slowConns)
			for i := range conns {
				conn, err := s.dial(way, i)
				require.NoError(t, err)
				defer conn.Close()
				_, err = io.WriteString(conn, "*3\r\n$3\r\nSET\r\n$5\r\nslow:\r\n$100\r\nabc")
				require.NoError(t, err)
				conns[i] = conn
			}
			for s.field("connected_clients") != *slowConns+1 {
				time.Sleep(time.Millisecond)
			}
			each := (s.RSS() - before) / int64(*slowConns)
			t.Logf("%d clients over %s with half a command: %d bytes of resident memory each", *slowConns, way, each)
			if way == "tcp" {
				require.Less(t, each, int64(maxSlowBytes))
			}
			for range 100 {
				require.Equal(t, "+PONG\r\n", string(s.admin.Do("PING")))
			}
			require.Equal(t, "+OK\r\n", string(s.admin.Do("CONFIG", "SET", "timeout", "1")))
			for i, conn := range conns {
				_ = conn.SetReadDeadline(time.Now().Add(leakPatience))
				_, err := conn.Read(make([]byte, 1))
				require.Error(t, err)
				netErr, late := err.(net.Error)
				require.False(t, late && netErr.Timeout(), "client %d is not cut off", i)
			}
		})
	}
}
