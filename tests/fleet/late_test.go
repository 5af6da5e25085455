package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// beforeStalled starts a gateway with a policy of its own before a headgate that does not answer yet.
func beforeStalled(t *testing.T) (upstream, gateway *harness.Server) {
	t.Helper()
	upstream = harness.Start(t)
	require.NoError(t, upstream.Stall())
	return upstream, harness.StartGateway(t, "redis://"+upstream.Addr, "--upstream-failure", "open", "--policy", "infile GCRA 5 5 1m")
}

// TestUpstreamIsFoundLate: a gateway that started with policies of its own, while its upstream did not answer, tells in the log that this is a headgate,
// whose policies alone count.
func TestUpstreamIsFoundLate(t *testing.T) {
	t.Parallel()
	upstream, gateway := beforeStalled(t)
	c := harness.Dial(t, gateway.Addr)
	require.Equal(t, "*3\r\n:0\r\n:-1\r\n*1\r\n*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n", string(c.Do("RL.TAKE", "1", "infile", "k")))
	require.NoError(t, upstream.Resume())
	require.Eventually(t, func() bool { return strings.Contains(gateway.Log(), "the policies are the upstream's alone") }, harness.ReplyTimeout, 10*time.Millisecond)
}

// TestWhatIsNotKnownYet: before a headgate that has not answered yet, what only a headgate can do fails as all else does, and is not called
// something that is never served.
func TestWhatIsNotKnownYet(t *testing.T) {
	t.Parallel()
	upstream, gateway := beforeStalled(t)
	c := harness.Dial(t, gateway.Addr)
	for _, call := range []string{"RL.RESERVE 1 infile k TTL 5s", "RL.BLOCK infile k 1m", "RL.POLICY OVERRIDE infile k 7"} {
		require.Contains(t, string(c.Do(strings.Fields(call)...)), "-UPSTREAM ", call)
	}
	require.Equal(t, "*5\r\n:0\r\n:10\r\n:10\r\n:-1\r\n:0\r\n", string(c.Do("RL.GCRA", "k", "10", "5", "1s", "WAIT", "100ms")))
	require.Contains(t, string(c.Do("RL.TAKE", "1", "infile", "k", "WAIT", "100ms")), "*3\r\n:0\r\n")
	require.NoError(t, upstream.Resume())
	require.Eventually(t, func() bool { return strings.Contains(string(c.Do("RL.BLOCK", "infile", "k", "1m")), ":") }, harness.ReplyTimeout, 10*time.Millisecond)
}
