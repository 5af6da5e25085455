package netpoll

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// iterationRecorder is a Handler and its Worker that notes how much each iteration reads and how many connections it closes. A connection
// that sends a command has the loop wait until release is closed.
type iterationRecorder struct {
	sync.Mutex
	buffers    resp.Buffers
	known      bool          // connections are as those that have had a turn
	takes      time.Duration // by each close,
	openTakes  time.Duration // and by each connection that opens
	release    chan struct{}
	open       map[*Conn]bool
	loop       *Loop
	bytes      uint64   // read up to this iteration
	readBefore []uint64 // the same, and by this iteration, when each command was run
	mostRead   uint64   // in one iteration
	opened     int      // up to now
	openBefore []int    // the same, when each command was run
	most       int      // closed in one iteration
	now        int      // closed in this one
	closed     int      // in all
	unmarked   int      // times that connections that were to be closed in a later iteration, looked as if they were to stay
}

func (r *iterationRecorder) NewWorker() Worker      { return r }
func (r *iterationRecorder) Buffers() *resp.Buffers { return &r.buffers }

func (r *iterationRecorder) Opened(c *Conn) {
	time.Sleep(r.openTakes)
	r.Lock()
	defer r.Unlock()
	r.opened++
	r.open[c] = true
	r.loop = c.front.(*Loop)
	if r.known {
		c.BeginTurn()
	}
}

func (r *iterationRecorder) Batch(ready []*Conn) (served int) {
	limits := resp.DefaultLimits()
	for _, c := range ready {
		if _, ok, _ := c.In.Next(nil, &limits); ok {
			r.Lock()
			delete(r.open, c)
			r.readBefore = append(r.readBefore, r.loop.Traffic().BytesIn)
			r.openBefore = append(r.openBefore, r.opened)
			r.Unlock()
			c.BeginTurn()
			<-r.release
		}
	}
	return len(ready)
}

func (r *iterationRecorder) Closed(c *Conn) {
	time.Sleep(r.takes)
	r.Lock()
	defer r.Unlock()
	delete(r.open, c)
	r.now++
	r.closed++
}

// Tick is called once in each iteration, before it closes anything.
func (r *iterationRecorder) Tick() time.Duration {
	r.Lock()
	defer r.Unlock()
	r.most, r.now = max(r.most, r.now), 0
	if r.loop != nil {
		before := r.bytes
		r.bytes = r.loop.Traffic().BytesIn
		r.mostRead = max(r.mostRead, r.bytes-before)
	}
	for c := range r.open {
		if r.closed > 0 && !c.ClosingNow() {
			r.unmarked++
		}
	}
	return 10 * time.Millisecond
}

// await returns when something has come about, at which it is looked with the lock held.
func (r *iterationRecorder) await(t *testing.T, what func() bool) {
	require.Eventually(t, func() bool {
		r.Lock()
		defer r.Unlock()
		return what()
	}, 10*time.Second, time.Millisecond)
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
			r := &iterationRecorder{known: true, takes: test.takes, release: make(chan struct{}), open: map[*Conn]bool{}}
			addr := startLoop(t, r)
			conns := dialAll(t, addr, test.crowd+1)
			r.await(t, func() bool { return len(r.open) == len(conns) })
			_, err := conns[test.crowd].Write([]byte("PING\r\n"))
			require.NoError(t, err)
			time.Sleep(10 * time.Millisecond) // the loop waits, so that it hears of all ends at once
			for _, conn := range conns[:test.crowd] {
				require.NoError(t, conn.Close())
			}
			time.Sleep(10 * time.Millisecond)
			close(r.release)
			r.await(t, func() bool { return r.closed == test.crowd && r.now == 0 })
			r.Lock()
			defer r.Unlock()
			require.LessOrEqual(t, r.most, test.most, "closed in one iteration")
			require.Zero(t, r.unmarked)
		})
	}
}

// dialAll connects count times, until the test ends.
func dialAll(t *testing.T, addr string, count int) []net.Conn {
	conns := make([]net.Conn, count)
	for i := range conns {
		var err error
		conns[i], err = net.Dial("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conns[i].Close() })
	}
	return conns
}

// TestMiddleOfLongCommandsIsReadByAndBy: while a crowd sends long commands, an iteration reads no more of them than of what is left over.
func TestMiddleOfLongCommandsIsReadByAndBy(t *testing.T) {
	r := &iterationRecorder{release: make(chan struct{}), open: map[*Conn]bool{}}
	addr := startLoop(t, r)
	const crowd = 3 * againMax / readMax
	begin := append([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n"), make([]byte, 2*readMax)...) // so that there is room for readMax at once
	conns := dialAll(t, addr, crowd+1)
	for _, conn := range conns[:crowd] {
		_, err := conn.Write(begin)
		require.NoError(t, err)
	}
	r.await(t, func() bool { return r.bytes == crowd*uint64(len(begin)) })
	_, err := conns[crowd].Write([]byte("PING\r\n"))
	require.NoError(t, err)
	r.await(t, func() bool { return len(r.open) == crowd }) // the loop waits now
	for _, conn := range conns[:crowd] {
		_, err = conn.Write(make([]byte, readMax))
		require.NoError(t, err)
	}
	r.Lock()
	r.mostRead = 0
	r.Unlock()
	close(r.release)
	r.await(t, func() bool { return r.bytes >= crowd*uint64(len(begin)+readMax) })
	r.Lock()
	defer r.Unlock()
	require.LessOrEqual(t, r.mostRead, uint64(againMax+readMax))
}

// TestACrowdOfNewConnectionsIsReadByAndBy: a connection that has been served before does not wait until a crowd of new ones has been read, all
// of which had something to read before it had.
func TestACrowdOfNewConnectionsIsReadByAndBy(t *testing.T) {
	r := &iterationRecorder{release: make(chan struct{}), open: map[*Conn]bool{}}
	addr := startLoop(t, r)
	const crowd = 4 * againMax / resp.BufferSize
	conns := dialAll(t, addr, crowd+1)
	known := conns[crowd]
	r.await(t, func() bool { return len(r.open) == len(conns) })
	_, err := known.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	r.await(t, func() bool { return len(r.readBefore) == 1 }) // the loop waits now
	begin := append([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n"), make([]byte, resp.BufferSize)...)
	for _, conn := range conns[:crowd] {
		_, err = conn.Write(begin)
		require.NoError(t, err)
	}
	_, err = known.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	close(r.release)
	r.await(t, func() bool { return len(r.readBefore) == 2 && r.bytes >= crowd*uint64(len(begin)) })
	r.Lock()
	defer r.Unlock()
	require.LessOrEqual(t, r.readBefore[1], uint64(againMax+2*resp.BufferSize), "of the crowd, before the second command")
}

// TestACrowdThatConnectsIsAcceptedByAndBy: a connection that has been served before does not wait until a crowd has been accepted that has connected
// before it had something to say.
func TestACrowdThatConnectsIsAcceptedByAndBy(t *testing.T) {
	r := &iterationRecorder{known: true, openTakes: acceptTime, release: make(chan struct{}), open: map[*Conn]bool{}}
	addr := startLoop(t, r)
	known := dialAll(t, addr, 1)[0]
	_, err := known.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	r.await(t, func() bool { return len(r.readBefore) == 1 }) // the loop waits now
	const crowd = acceptsPerEvent / 2
	dialAll(t, addr, crowd)
	_, err = known.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	close(r.release)
	r.await(t, func() bool { return len(r.openBefore) == 2 && r.opened == 1+crowd })
	r.Lock()
	defer r.Unlock()
	require.Equal(t, 2, r.openBefore[1], "connections accepted before the second command")
}
