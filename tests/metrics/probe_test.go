package metrics

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConnectionsThatWaitStarveProbes: connections that are held open and ask for nothing leave room for those that do. Each probe asks
// on a connection of its own, as a kubelet's do.
func TestConnectionsThatWaitStarveProbes(t *testing.T) {
	const held, probes = 300, 75
	_, addr := start(t)
	for name, sent := range map[string]string{
		"idle":   "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"half":   "GET /healthz HTTP/1.1\r\nHost: localh",
		"silent": "",
	} {
		t.Run(name, func(t *testing.T) {
			for range held {
				conn, err := net.Dial("tcp", addr)
				require.NoError(t, err)
				t.Cleanup(func() { conn.Close() })
				_, _ = io.WriteString(conn, sent) // it may have been closed already
			}
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: waitLimit}
			answered := map[string]int{}
			for range probes {
				for _, path := range []string{"/healthz", "/readyz"} {
					if reply, err := client.Get("http://" + addr + path); err == nil && reply.Body.Close() == nil && reply.StatusCode == http.StatusOK {
						answered[path]++
					}
				}
			}
			require.Equal(t, map[string]int{"/healthz": probes, "/readyz": probes}, answered)
		})
	}
}
