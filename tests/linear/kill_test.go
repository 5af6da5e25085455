package linear

import (
	"fmt"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// unknown is the answer to a call whose reply was lost with the server: it may have been run at any time since, or never.
const unknown = "?"

// TestLinearizableAcrossKill kills the server in the middle of a history and starts it again on the same append-only file: what was
// answered before stays, half a transaction never is.
func TestLinearizableAcrossKill(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with: go test -C tests ./linear -run Kill -linear.seed %d", seed)
	lost := 0
	for n := range max(1, *histories/5) {
		history := recordAcrossKill(t, seed+uint64(n), *operations/clients)
		for _, op := range history {
			if op.Output == unknown {
				lost++
			}
		}
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(model, history, checkTimeout), "history %d", n)
	}
	t.Logf("%d histories across a kill, %d calls without a reply", max(1, *histories/5), lost)
}

func recordAcrossKill(t *testing.T, seed uint64, each int) []porcupine.Operation {
	t.Helper()
	flags := []string{"--appendonly", "yes", "--policy", fmt.Sprintf("bucket GCRA %d 1 1h, window FIXED %d 1h", gcraLimit, fixedLimit)}
	dir := t.TempDir()
	server := harness.StartIn(t, dir, flags...)
	r := newRecording(server.Addr)
	r.begin(t, seed, each, nil)
	<-r.half
	server.Kill()
	return r.end(harness.StartIn(t, dir, flags...).Addr)
}
