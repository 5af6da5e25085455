package server

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/persistence/crashfs"
	"headgate/server/config"
)

var powerCuts = flag.Int("aof.cuts", 500, "simulated power cuts, each with a seed of its own")

// TestPowerCuts: whatever a disk makes of what was not synced, the server starts, with all that was acknowledged under always and
// with all that was synced else, and its data are as they were at some moment after that.
func TestPowerCuts(t *testing.T) {
	seed := seedOf(t)
	for i := range *powerCuts {
		if !t.Run(fmt.Sprint(seed+uint64(i)), func(t *testing.T) { powerCut(t, seed+uint64(i)) }) {
			return
		}
	}
}

// powerCut lets a server run, lose power, and start again, a few times.
func powerCut(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	now := int64(wallAtStart)
	policy := config.FsyncAlways
	if seed%2 == 1 {
		policy = config.FsyncNo // the test syncs, so that it knows what has to be there
	}
	disk := crashfs.New("/data")
	past, kept := newHistory(""), 0
	for generation := range 3 {
		what := fmt.Sprintf("generation %d", generation)
		offAt := 1 + rnd.IntN(120)
		if generation == 0 {
			offAt = 20 + rnd.IntN(150)
		}
		started := disk.Ops()
		disk.Fault = func(op crashfs.Op) error {
			if op.Number-started >= offAt {
				return errPowerOff
			}
			return nil
		}
		w, err := startUnlessEnded(disk, policy, &now)
		if err == nil {
			state := digest(w.srv)
			past.require(t, state, kept, what)
			past = newHistory(state)
			kept = w.live(rnd, past, policy)
			w.kill()
		} else {
			require.ErrorIs(t, err, errPowerOff, what)
		}
		disk.Fault = nil
		disk = disk.Crash(rnd)
	}
	w, err := startAOF(disk, policy, &now, nil)
	require.NoError(t, err, "after the last power cut")
	defer w.kill()
	past.require(t, digest(w.srv), kept, "after the last power cut")
}

// startUnlessEnded is startAOF, with an error for a process that ends.
func startUnlessEnded(disk *crashfs.FS, policy config.FsyncPolicy, now *int64) (w *aofServer, err error) {
	if endsProcess(func() { w, err = startAOF(disk, policy, now, nil) }) {
		return nil, errPowerOff
	}
	return w, err
}

// live sends units until the power is off, and returns the number of the last one that must not be lost.
func (w *aofServer) live(rnd *rand.Rand, past *history, policy config.FsyncPolicy) (kept int) {
	for range 200 {
		*w.now += rnd.Int64N(50) * 1e6
		reply, ended := w.ask(randomUnit(rnd))
		past.add(digest(w.srv))
		switch {
		case ended || len(reply) == 0 || w.srv.gate.has(gateDisk):
			return kept
		case policy == config.FsyncAlways:
			kept = past.n
		case rnd.IntN(4) == 0:
			if w.srv.aof.log.Sync() != nil {
				return kept
			}
			kept = past.n
		}
	}
	return kept
}
