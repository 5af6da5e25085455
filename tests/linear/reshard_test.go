package linear

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	reshardSlots = flag.Int("reshard.slots", 64, "slots that move there and back under load")
	reshardMoves = flag.Int("reshard.moves", 20, "go on until so many times one has moved; make fleet moves 4,096 there and back")
	reshardWait  = flag.Duration("reshard.timeout", 10*time.Second, "how long the gateway waits for an answer; make fleet takes the default")
)

// TestLinearizableWhileSlotsMove: clients of a gateway before a cluster, whose slots move to another node and back, see no error, and what they
// see could have come about one command after another.
func TestLinearizableWhileSlotsMove(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with: go test -C tests ./linear -run SlotsMove -linear.seed %d -reshard.slots %d", seed, *reshardSlots)
	cluster := harness.StartCluster(t, 2, 0, 10*time.Second)
	gateway := harness.StartGateway(t, cluster.URL(), "--upstream-timeout-ms", fmt.Sprint(reshardWait.Milliseconds()),
		"--policy", fmt.Sprintf("bucket GCRA %d 1 1h, window FIXED %d 1h", gcraLimit, fixedLimit))

	var moved atomic.Int64
	stop, done := make(chan struct{}), make(chan error, 1)
	end := sync.OnceFunc(func() { close(stop) })
	defer end()
	go func() { done <- moveAround(cluster, slotsToMove(rand.New(rand.NewPCG(seed, 0))), &moved, stop) }()
	operated := 0
	for n := 0; moved.Load() < int64(*reshardMoves) || n == 0; n++ {
		for _, node := range cluster.Nodes {
			harness.Dial(t, node.Addr).Do("FLUSHALL")
		}
		history := record(t, gateway, seed+uint64(n), *operations/clients)
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(model, history, checkTimeout), "history %d", n)
		operated += len(history)
		require.Empty(t, done, "nobody moves slots any more")
	}
	end()
	require.NoError(t, <-done)
	t.Logf("%d operations while %d slots moved", operated, moved.Load())
}

// slotsToMove are the slots of all groups of keys, and others that are drawn.
func slotsToMove(rnd *rand.Rand) (slots []int) {
	chosen := make(map[int]bool)
	add := func(slot int) {
		if !chosen[slot] {
			chosen[slot] = true
			slots = append(slots, slot)
		}
	}
	for group := range groups {
		add(harness.Slot(fmt.Sprintf("{%d}", group)))
	}
	for len(slots) < *reshardSlots {
		add(rnd.IntN(harness.Slots))
	}
	return slots
}

// moveAround moves slots to one node, then all of them to the other and so on, until it is stopped, and counts how many times it moved one.
// What it has moved last stays there.
func moveAround(cluster *harness.Cluster, slots []int, moved *atomic.Int64, stop chan struct{}) error {
	mover, err := cluster.NewMover(0, 1)
	if err != nil {
		return err
	}
	defer mover.Close()
	for to := 1; ; to = 1 - to {
		for _, slot := range slots {
			did, err := mover.Move(slot, to)
			if err != nil {
				return err
			}
			if did {
				moved.Add(1)
			}
			select {
			case <-stop:
				return nil
			default:
			}
		}
		if err := mover.Settle(); err != nil {
			return err
		}
	}
}
