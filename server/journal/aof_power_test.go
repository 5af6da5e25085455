package journal_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

var powerCuts = flag.Int("aof.cuts", 250, "simulated power cuts, each with a seed of its own")

// TestPowerCuts: whatever a disk makes of what was not synced, the server starts, with all that was acknowledged under always and
// with all that was synced else, and its data are as they were at some moment after that.
func TestPowerCuts(t *testing.T) {
	seed := servertest.SeedOf(t)
	for i := range *powerCuts {
		if !t.Run(fmt.Sprint(seed+uint64(i)), func(t *testing.T) { powerCut(t, seed+uint64(i)) }) {
			return
		}
	}
}

// powerCut lets a server run, lose power, and start again, a few times.
func powerCut(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	now := int64(servertest.WallAtStart)
	policy := config.FsyncAlways
	if seed%2 == 1 {
		policy = config.FsyncNo // the test syncs, so that it knows what has to be there
	}
	disk := crashfs.New("/data")
	past, kept := servertest.NewHistory(""), 0
	for generation := range 3 {
		what := fmt.Sprintf("generation %d", generation)
		offAt := 1 + rnd.IntN(120)
		if generation == 0 {
			offAt = 20 + rnd.IntN(150)
		}
		started := disk.Ops()
		disk.SetFault(func(op crashfs.Op) error {
			if op.Number-started >= offAt {
				return servertest.ErrPowerOff
			}
			return nil
		})
		w, err := servertest.StartUnlessEnded(disk, policy, &now)
		if err == nil {
			state := servertest.Digest(w.Srv)
			past.Require(t, state, kept, what)
			past = servertest.NewHistory(state)
			kept = w.Live(rnd, past, policy)
			w.Kill()
		} else {
			require.ErrorIs(t, err, servertest.ErrPowerOff, what)
		}
		disk.SetFault(nil)
		disk = disk.Crash(rnd)
	}
	w, err := servertest.StartAOF(disk, policy, &now, nil)
	require.NoError(t, err, "after the last power cut")
	defer w.Kill()
	past.Require(t, servertest.Digest(w.Srv), kept, "after the last power cut")
}
