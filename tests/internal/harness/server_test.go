package harness

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPortThatIsTaken: a server whose port somebody else has got before it is started on another one.
func TestPortThatIsTaken(t *testing.T) {
	for name, binary := range map[string]string{"headgate": Binary(t), "redis-server": Reference(t)} {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			s := onFreePort(t, func(port int) (*Server, error) {
				if attempts++; attempts == 1 {
					listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
					require.NoError(t, err)
					t.Cleanup(func() { _ = listener.Close() })
				}
				s := newServerAt(t, port, t.TempDir())
				return s, s.runAs(name, binary, s.usualFlags())
			})
			require.Equal(t, 2, attempts)
			require.Equal(t, "+PONG\r\n", string(Dial(t, s.Addr).Do("PING")))
		})
	}
}

// TestPortIsGivenOnce: no port is given to two at the same time, and one of a test that has ended is free again.
func TestPortIsGivenOnce(t *testing.T) {
	var port int
	t.Run("first", func(t *testing.T) {
		port = FreePort(t)
		require.False(t, claim(t, port), "port %d was given already", port)
	})
	require.True(t, claim(t, port), "port %d is free again", port)
}
