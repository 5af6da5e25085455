package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestTrackingInsideExec has a transaction turn tracking on, which nobody else uses, and change what it has read: the message comes behind
// EXEC's reply, not in it, and one that is due goes out also where tracking is off again in the end.
func TestTrackingInsideExec(t *testing.T) {
	subject, reference := harness.StartPair(t)
	for _, end := range [][]string{nil, {"CLIENT", "TRACKING", "OFF"}} {
		var got []string
		for _, s := range []*harness.Server{subject, reference} {
			c := harness.Dial(t, s.Addr)
			c.Ask("HELLO", "3")
			var out []byte
			for _, line := range [][]string{{"MULTI"}, {"CLIENT", "TRACKING", "ON"}, {"GET", "k"}, {"SET", "k", "v"}, {"SET", "other", "v"}, end, {"EXEC"}, {"PING"}} {
				if line != nil {
					out = append(out, harness.Command(line...)...)
				}
			}
			require.NoError(t, c.Send(out))
			received, _ := c.Drain(200 * time.Millisecond)
			got = append(got, string(received))
			c.Close()
		}
		require.Equal(t, got[1], got[0])
	}
}
