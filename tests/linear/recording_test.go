package linear

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"headgate/tests/internal/harness"
)

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

// recording is a history of calls across the end of the server that they go to first.
type recording struct {
	current restarted
	half    chan struct{} // closed when half of the calls have been made
	work    sync.WaitGroup

	mu      sync.Mutex
	history []porcupine.Operation
}

func newRecording(addr string) *recording {
	r := &recording{half: make(chan struct{})}
	r.current.change = sync.NewCond(&r.current.mu)
	r.current.set(addr)
	return r
}

// begin has all clients make so many calls each. confirmed, unless it is nil, is asked of each call that was answered whether the answer holds whatever
// ends; rounds count the servers from 1 on.
func (r *recording) begin(t *testing.T, seed uint64, each int, confirmed func(c *harness.Client, round int) (bool, error)) {
	var made atomic.Int64
	start := time.Now()
	for id := range clients {
		rnd := rand.New(rand.NewPCG(seed, uint64(id)))
		r.work.Go(func() {
			round := 0
			var c *harness.Client
			for range each {
				if c == nil {
					var addr string
					addr, round = r.current.next(round)
					if c, _ = harness.TryDial(t, addr); c == nil {
						continue // killed before it was reached
					}
				}
				op := porcupine.Operation{ClientId: id, Input: draw(rnd), Call: int64(time.Since(start))}
				out, err := run(c, op.Input.(input))
				var wrong refused
				if errors.As(err, &wrong) {
					t.Error(wrong)
				}
				known := err == nil
				if known && confirmed != nil {
					known, err = confirmed(c, round)
				}
				op.Output, op.Return = out, int64(time.Since(start))
				if !known {
					op.Output, op.Return = unknown, math.MaxInt64
				}
				if err != nil {
					c = nil
				}
				r.mu.Lock()
				r.history = append(r.history, op)
				r.mu.Unlock()
				if made.Add(1) == int64(clients*each/2) {
					close(r.half)
				}
			}
		})
	}
}

// end has the clients go on at another server, and returns the history when all calls have been made.
func (r *recording) end(addr string) []porcupine.Operation {
	r.current.set(addr)
	r.work.Wait()
	return r.history
}
