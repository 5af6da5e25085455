package netpoll

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// closingRecorder is a Handler and its Worker that notes how many connections each iteration closes. A connection that sends something has
// the loop wait until release is closed.
type closingRecorder struct {
	sync.Mutex
	buffers  resp.Buffers
	takes    time.Duration // by each close
	release  chan struct{}
	open     map[*Conn]bool
	most     int // closed in one iteration
	now      int // closed in this one
	closed   int // in all
	unmarked int // connections that were to be closed in a later iteration, and looked as if they were to stay
}

func (r *closingRecorder) NewWorker() Worker      { return r }
func (r *closingRecorder) Buffers() *resp.Buffers { return &r.buffers }

func (r *closingRecorder) Opened(c *Conn) {
	r.Lock()
	defer r.Unlock()
	r.open[c] = true
}

func (r *closingRecorder) Batch(ready []*Conn) (served int) {
	<-r.release
	return len(ready)
}

func (r *closingRecorder) Closed(c *Conn) {
	time.Sleep(r.takes)
	r.Lock()
	defer r.Unlock()
	delete(r.open, c)
	r.now++
	r.closed++
}

// Tick is called once in each iteration, before it closes anything.
func (r *closingRecorder) Tick() time.Duration {
	r.Lock()
	defer r.Unlock()
	r.most, r.now = max(r.most, r.now), 0
	for c := range r.open {
		if r.closed > 0 && c.In.Buffered() == 0 && !c.ClosingNow() {
			r.unmarked++
		}
	}
	return 10 * time.Millisecond
}

// TestCrowdThatHangsUpIsClosedByAndBy: of connections that end at the same time, an iteration closes no more than it has the time for, and
// those that it has not come to are marked as closing.
func TestCrowdThatHangsUpIsClosedByAndBy(t *testing.T) {
	for _, test := range []struct {
		name  string
		crowd int
		takes time.Duration
		most  int
	}{
		{"count", 3 * closesMax, 0, closesMax},
		{"time", 10, closeTime + time.Millisecond, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &closingRecorder{takes: test.takes, release: make(chan struct{}), open: map[*Conn]bool{}}
			addr := startLoop(t, r)
			conns := make([]net.Conn, test.crowd+1)
			for i := range conns {
				var err error
				conns[i], err = net.Dial("tcp", addr)
				require.NoError(t, err)
				defer conns[i].Close()
			}
			look := func(what func() int) func() bool {
				return func() bool {
					r.Lock()
					defer r.Unlock()
					return what() == test.crowd
				}
			}
			require.Eventually(t, look(func() int { return len(r.open) - 1 }), 10*time.Second, time.Millisecond)
			_, err := conns[test.crowd].Write([]byte("PING\r\n"))
			require.NoError(t, err)
			time.Sleep(10 * time.Millisecond) // the loop waits, so that it hears of all ends at once
			for _, conn := range conns[:test.crowd] {
				require.NoError(t, conn.Close())
			}
			time.Sleep(10 * time.Millisecond)
			close(r.release)
			require.Eventually(t, look(func() int { return r.closed }), 10*time.Second, time.Millisecond)
			require.Eventually(t, func() bool { r.Lock(); defer r.Unlock(); return r.now == 0 }, 10*time.Second, time.Millisecond)
			r.Lock()
			defer r.Unlock()
			require.LessOrEqual(t, r.most, test.most, "closed in one iteration")
			require.Zero(t, r.unmarked)
		})
	}
}
