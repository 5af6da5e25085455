package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestFailureModes: what limiters answer while the upstream does not, in each mode, and by the mode that a policy names; and that data
// commands are never answered from anywhere else.
func TestFailureModes(t *testing.T) {
	t.Parallel()
	redis := harness.StartReference(t)
	modes := []string{"error", "open", "closed", "local"}
	asks := make(map[string]*harness.Client)
	for _, mode := range modes {
		gateway := harness.StartGateway(t, "redis://"+redis.Addr, "--upstream-failure", mode, "--upstream-timeout-ms", "200",
			"--upstream-rest-ms", "60000", "--upstream-local-share", "0.25",
			"--policy", "own GCRA 10 10 1h", "--policy", "opened GCRA 10 10 1h FAILURE open", "--policy", "failing GCRA 10 10 1h FAILURE error")
		asks[mode] = harness.Dial(t, gateway.Addr)
		require.Equal(t, "0 16 15 -1 2", texts(asks[mode].Ask("CL.THROTTLE", "before:"+mode, "15", "30", "60")))
	}
	require.NoError(t, redis.Stall())
	t.Cleanup(func() { require.NoError(t, redis.Resume()) })
	noAnswer := fmt.Sprintf("-UPSTREAM no answer from %s within 200 ms", redis.Addr)
	resting := fmt.Sprintf("-UPSTREAM %s is resting after failures: no answer in time", redis.Addr)
	for _, mode := range modes {
		c := asks[mode]
		ask := func(line string) string { return texts(c.Ask(strings.Fields(line)...)) }
		require.Equal(t, noAnswer, ask("GET k"), mode)
		for again := 0; ; again++ { // silence counts from when a command has left, which on a busy machine may be later
			reply := ask("GET k")
			if reply == resting {
				break
			}
			require.Equal(t, noAnswer, reply, mode)
			require.Less(t, again, 3, mode)
		}
		require.Equal(t, resting, ask("INCREX k"), mode)
		require.Equal(t, resting, ask("SET k v"), mode)
		require.Equal(t, "PONG", ask("PING"), mode)
		require.Equal(t, "0 -1 [[0 10 10 -1 0]]", ask("RL.TAKE 1 opened k"), mode)
		require.Equal(t, resting, ask("RL.TAKE 1 failing k"), mode)
		require.Equal(t, resting, ask("RL.TAKE 2 opened k failing l"), "%s: an error wins", mode)
	}
	ask := func(mode, line string) string { return texts(asks[mode].Ask(strings.Fields(line)...)) }

	for _, line := range []string{"CL.THROTTLE k 15 30 60", "RL.GCRA k 10 10 1h", "RL.ACQUIRE k 3 1m", "RL.TAKE 1 own k"} {
		require.Equal(t, resting, ask("error", line))
	}

	require.Equal(t, "0 16 16 -1 0", ask("open", "CL.THROTTLE k 15 30 60"))
	require.Equal(t, "0 10 10 -1 0", ask("open", "RL.GCRA k 10 10 1h"))
	require.Equal(t, "0 10 10 -1 0", ask("open", "RL.FIXED k 10 1h"))
	lease := strings.Fields(ask("open", "RL.ACQUIRE k 3 1m"))
	require.Len(t, lease, 6)
	require.Equal(t, "0 3 3 -1 0", strings.Join(lease[:5], " "))
	require.Regexp(t, leaseID, lease[5])
	require.Equal(t, "1", ask("open", "RL.RELEASE k "+lease[5]))

	require.Regexp(t, `^1 16 0 ([1-9]|[1-5][0-9]|60) 0$`, ask("closed", "CL.THROTTLE k 15 30 60"))
	require.Regexp(t, `^1 10 0 [1-9][0-9]{0,4} 0$`, ask("closed", "RL.GCRA k 10 10 1h"))

	for _, line := range []string{"CL.THROTTLE throttle 15 1 3600", "RL.GCRA gcra 16 1 1h", "RL.FIXED fixed 16 1h", "RL.SLIDING sliding 16 1h", "RL.LOG log 16 1h"} {
		passed := 0
		for range 16 {
			reply := ask("local", line)
			require.Regexp(t, `^[01] `, reply, line)
			if strings.HasPrefix(reply, "0") {
				passed++
			}
		}
		require.Equal(t, 4, passed, "%s: a quarter of sixteen", line)
	}
	require.True(t, strings.HasPrefix(ask("local", "RL.GCRA one 1 1 1h"), "0"), "at least one")
}
