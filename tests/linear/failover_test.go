package linear

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// waitTime is how long a call waits for the replicas, in ms: they are there all the while, but for the one that takes over.
const waitTime = "5000"

// TestLinearizableAcrossFailover kills the primary in the middle of a history and has one of its replicas take its place: of calls that have waited for all
// replicas, reads too, nothing is lost, and none has seen what is lost.
func TestLinearizableAcrossFailover(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with: go test -C tests ./linear -run Failover -linear.seed %d", seed)
	lost, all := 0, 0
	for n := range max(1, *histories/5) {
		history := recordAcrossFailover(t, seed+uint64(n), *operations/clients)
		for _, op := range history {
			if op.Output == unknown {
				lost++
			}
		}
		all += len(history)
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(model, history, checkTimeout), "history %d", n)
	}
	t.Logf("%d histories across a failover, %d of %d calls without a reply or a replica that has confirmed it", max(1, *histories/5), lost, all)
	require.Less(t, lost, all/2)
}

func recordAcrossFailover(t *testing.T, seed uint64, each int) []porcupine.Operation {
	t.Helper()
	flags := []string{"--repl-diskless-sync-delay", "0", "--policy", fmt.Sprintf("bucket GCRA %d 1 1h, window FIXED %d 1h", gcraLimit, fixedLimit)}
	primary := harness.Start(t, flags...)
	follow := append(flags, "--replicaof", "127.0.0.1 "+strconv.Itoa(primary.Port))
	heir, other := harness.Start(t, follow...), harness.Start(t, follow...)
	awaitReplicas(t, primary, 2)
	r := newRecording(primary.Addr)
	r.begin(t, seed, each, func(c *harness.Client, round int) (bool, error) {
		return confirm(c, 3-round) // two replicas of the first primary, one of the second
	})
	<-r.half
	primary.Kill()
	harness.Dial(t, heir.Addr).Ask("REPLICAOF", "NO", "ONE")
	harness.Dial(t, other.Addr).Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(heir.Port))
	awaitReplicas(t, heir, 1)
	return r.end(heir.Addr)
}

// confirm reports whether so many replicas have all that was changed so far.
func confirm(c *harness.Client, replicas int) (bool, error) {
	if err := c.Send(harness.Command("WAIT", strconv.Itoa(replicas), waitTime)); err != nil {
		return false, err
	}
	v, err := c.Read(harness.ReplyTimeout)
	if err != nil {
		return false, err
	}
	n, err := strconv.Atoi(v.Text)
	return err == nil && n >= replicas, err
}

func awaitReplicas(t *testing.T, primary *harness.Server, n int) {
	t.Helper()
	c := harness.Dial(t, primary.Addr)
	defer c.Close()
	require.Eventually(t, func() bool { return strings.Count(c.Ask("INFO", "replication").Text, "state=online") == n }, harness.ReplyTimeout, 5*time.Millisecond)
}
