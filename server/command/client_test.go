package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIsLoopback: a peer on the network is none of this machine's, whatever its address looks like.
func TestIsLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true, "/tmp/socket:0": true, "/tmp/socket": true, "pipe": true, "": true,
		"10.0.0.1:1": false, "[2001:db8::1]:1": false, "[fe80::1%eth0]:1": false, "[fe80::1]:1": false, "[::ffff:10.0.0.1]:1": false, "example:1": false,
	} {
		require.Equal(t, want, IsLoopback(addr), addr)
	}
}
