package tls

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// keepAliveTimer is the mark in /proc/net/tcp of a socket whose timer is that of keep-alive probes.
const keepAliveTimer = "02:"

// hasKeepAlive reports whether the server's end of a connection waits to probe its peer. The kernel shows it once nothing is on its way.
func hasKeepAlive(t *testing.T, conn net.Conn) func() bool {
	_, local, err := net.SplitHostPort(conn.RemoteAddr().String())
	require.NoError(t, err)
	_, remote, err := net.SplitHostPort(conn.LocalAddr().String())
	require.NoError(t, err)
	hex := func(port string) string {
		var n int
		_, err := fmt.Sscan(port, &n)
		require.NoError(t, err)
		return fmt.Sprintf(":%04X", n)
	}
	return func() bool {
		table, err := os.ReadFile("/proc/net/tcp")
		require.NoError(t, err)
		for line := range strings.Lines(string(table)) {
			fields := strings.Fields(line)
			if strings.HasSuffix(fields[1], hex(local)) && strings.HasSuffix(fields[2], hex(remote)) {
				return strings.HasPrefix(fields[5], keepAliveTimer)
			}
		}
		return false
	}
}

// TestKeepAlive: the kernel watches over silent peers on both ports, unless it is told not to.
func TestKeepAlive(t *testing.T) {
	s := start(t)
	admin := harness.Dial(t, s.Addr)
	for _, idle := range []string{"300", "0"} {
		require.Equal(t, "+OK\r\n", string(admin.Do("CONFIG", "SET", "tcp-keepalive", idle)))
		plain, err := net.Dial("tcp", s.Addr)
		require.NoError(t, err)
		defer plain.Close()
		secure, err := tls.Dial("tcp", s.addr, s.config())
		require.NoError(t, err)
		defer secure.Close()
		for _, conn := range []net.Conn{plain, secure} {
			require.NoError(t, ping(conn))
			watched := hasKeepAlive(t, conn)
			if idle != "0" {
				require.Eventually(t, watched, 5*time.Second, 10*time.Millisecond)
			} else {
				require.False(t, watched())
			}
		}
	}
}
