package linear

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
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

// restarted is the server that clients are to use, and is told when there is another one.
type restarted struct {
	mu     sync.Mutex
	change *sync.Cond
	addr   string
	round  int
}

// next returns the server's address once its round is above the given one.
func (r *restarted) next(round int) (addr string, now int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.round <= round {
		r.change.Wait()
	}
	return r.addr, r.round
}

func (r *restarted) set(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addr = addr
	r.round++
	r.change.Broadcast()
}

func recordAcrossKill(t *testing.T, seed uint64, each int) []porcupine.Operation {
	t.Helper()
	flags := []string{"--appendonly", "yes", "--policy", fmt.Sprintf("bucket GCRA %d 1 1h, window FIXED %d 1h", gcraLimit, fixedLimit)}
	dir := t.TempDir()
	server := harness.StartIn(t, dir, flags...)
	current := &restarted{}
	current.change = sync.NewCond(&current.mu)
	current.set(server.Addr)

	var mu sync.Mutex
	var history []porcupine.Operation
	var made atomic.Int64
	half := make(chan struct{})
	start := time.Now()
	var work sync.WaitGroup
	for id := range clients {
		rnd := rand.New(rand.NewPCG(seed, uint64(id)))
		work.Go(func() {
			round := 0
			var c *harness.Client
			for range each {
				if c == nil {
					var addr string
					addr, round = current.next(round)
					c, _ = harness.TryDial(t, addr)
					if c == nil {
						continue // killed before it was reached
					}
				}
				op := porcupine.Operation{ClientId: id, Input: draw(rnd), Call: int64(time.Since(start))}
				out, err := run(c, op.Input.(input))
				op.Output, op.Return = out, int64(time.Since(start))
				var wrong refused
				if errors.As(err, &wrong) {
					t.Error(wrong)
				}
				if err != nil {
					op.Output, op.Return = unknown, math.MaxInt64
					c = nil
				}
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
				if made.Add(1) == int64(clients*each/2) {
					close(half)
				}
			}
		})
	}
	<-half
	server.Kill()
	current.set(harness.StartIn(t, dir, flags...).Addr)
	work.Wait()
	return history
}
