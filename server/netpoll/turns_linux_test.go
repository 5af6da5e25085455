package netpoll

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// turnRecorder is a Handler and its Workers, who run one line of each connection in a batch. What the line does is its first word: LONG
// says that it took as long as a pause may be, SLOW that it took too long, YIELD lets others go on a few times, and HOLD waits until release is closed.
type turnRecorder struct {
	sync.Mutex
	buffers resp.Buffers
	release chan struct{}
	most    int // connections served in a batch, and as many of those that come after others, which takes a millisecond then; 0: all
	longs   atomic.Int64
	twice   atomic.Int64 // connections that stood in a batch twice
	carried atomic.Int64 // connections of one batch that were left over, at most
	opened  atomic.Int64
	freed   atomic.Int64 // connections whose memory the collector has taken back
}

type turnWorker struct{ *turnRecorder }

func newTurnRecorder() *turnRecorder { return &turnRecorder{release: make(chan struct{})} }

func (r *turnRecorder) NewWorker() Worker      { return turnWorker{r} }
func (r *turnRecorder) Buffers() *resp.Buffers { return &r.buffers }
func (turnWorker) Closed(*Conn)                {}
func (turnWorker) Tick() time.Duration         { return 10 * time.Millisecond }

func (w turnWorker) Opened(c *Conn) {
	w.opened.Add(1)
	runtime.SetFinalizer(c, func(*Conn) { w.freed.Add(1) })
}

func (w turnWorker) Batch(ready []*Conn) (served int) {
	seen := map[*Conn]bool{}
	var carried int64
	first, late := len(ready), len(ready)
	if w.most > 0 {
		first, late = w.most, w.most
		time.Sleep(time.Millisecond)
	}
	for _, c := range ready {
		left := &first
		if c.Carried() {
			carried++
			left = &late
		}
		if *left--; *left < 0 {
			c.PassOver()
			continue
		}
		if seen[c] {
			w.twice.Add(1)
		}
		seen[c] = true
		if !c.Gone() {
			w.line(c)
		}
	}
	w.carried.Store(max(w.carried.Load(), carried))
	return len(ready)
}

func (w turnWorker) line(c *Conn) {
	limits := resp.DefaultLimits()
	args, ok, _ := c.In.Next(nil, &limits)
	if !ok {
		return
	}
	c.BeginTurn()
	c.cpu = 0 // what it says of its time is to be believed
	switch string(args[0]) {
	case "LONG":
		w.longs.Add(1)
		time.Sleep(time.Millisecond)
		c.TookLong(pauseMax, 0)
	case "SLOW":
		c.TookLong(time.Millisecond, 0)
	case "HOLD":
		<-w.release
	case "YIELD":
		for range 5 {
			w.keep(c, true)
			c.Yield()
		}
		w.keep(c, false)
	}
	w.Lock()
	defer w.Unlock()
	c.Out.Raw([]byte("+PONG\r\n"))
	if c.In.Buffered() > 0 {
		c.Postpone()
	}
}

func (w turnWorker) keep(c *Conn, alone bool) {
	w.Lock()
	defer w.Unlock()
	c.Keep(alone)
}

// turnPeer is a peer of a loop, which has had a short turn.
type turnPeer struct {
	t *testing.T
	net.Conn
}

func newTurnPeer(t *testing.T, addr string) turnPeer {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	p := turnPeer{t, conn}
	p.send("PING", 1)
	p.answers(1)
	return p
}

func (p turnPeer) send(line string, times int) {
	_, err := p.Write(bytes.Repeat([]byte(line+"\r\n"), times))
	require.NoError(p.t, err)
}

func (p turnPeer) answers(n int) {
	p.t.Helper()
	_, err := io.ReadFull(p, make([]byte, n*len("+PONG\r\n")))
	require.NoError(p.t, err)
}

// TestPauseEndsForThoseWhoWait: a connection that waits for the end of a pause is not kept there by the long turns of one that came
// meanwhile.
func TestPauseEndsForThoseWhoWait(t *testing.T) {
	r := newTurnRecorder()
	addr := startLoop(t, r)
	slow, light, next := newTurnPeer(t, addr), newTurnPeer(t, addr), newTurnPeer(t, addr)
	slow.send("LONG", 1)
	slow.answers(1)
	light.send("PING", 1)
	light.answers(1)
	slow.send("PING", 1) // it waits now, since there are others
	light.send("PING", 1)
	light.answers(1)
	const long = 3000
	next.send("LONG", long)
	slow.answers(1)
	require.Less(t, int(r.longs.Load()), long/2, "long turns before it was answered")
}

// TestCrowdLeftOverHasItsTurnsInParts: of many connections with commands left over, one iteration looks at some only, or each command of the others
// would wait for all of them. Yet each has its turns.
func TestCrowdLeftOverHasItsTurnsInParts(t *testing.T) {
	r := newTurnRecorder()
	addr := startLoop(t, r)
	first := newTurnPeer(t, addr)
	var crowd []turnPeer
	for range 2*turnsMax + 1 {
		crowd = append(crowd, newTurnPeer(t, addr))
	}
	first.send("HOLD", 1)
	const lines = 4
	for _, p := range crowd {
		p.send("PING", lines)
	}
	close(r.release)
	first.answers(1)
	for _, p := range crowd {
		p.answers(lines)
	}
	require.EqualValues(t, turnsMax, r.carried.Load(), "connections left over in one batch")
}

// TestNobodyStarvesBehindACrowd: a crowd that asks again as soon as it is answered, and of which a batch comes to few, does not keep others from their turns:
// whether or not it comes after others itself, and whether they have one command or more than a turn is enough for.
func TestNobodyStarvesBehindACrowd(t *testing.T) {
	for _, word := range []string{"PING", "SLOW"} {
		t.Run(word, func(t *testing.T) {
			r := newTurnRecorder()
			r.most = 16
			addr := startLoop(t, r)
			one, many := newTurnPeer(t, addr), newTurnPeer(t, addr)
			var over atomic.Bool
			var crowd sync.WaitGroup
			defer crowd.Wait()
			defer over.Store(true)
			for range turnsMax + turnsMax/4 {
				p := newTurnPeer(t, addr)
				crowd.Go(func() {
					reply := make([]byte, len("+PONG\r\n"))
					for !over.Load() {
						if _, err := p.Write([]byte(word + "\r\n")); err != nil {
							return
						}
						if _, err := io.ReadFull(p, reply); err != nil {
							return
						}
					}
				})
			}
			const turns = 3
			for range turns {
				many.send("PING", 3)
				one.send("PING", 1)
				one.answers(1)
				many.answers(3)
			}
		})
	}
}

// TestGoneConnectionsAreForgotten: the lists of an iteration that many connections stood in do not keep them once they are closed, and
// neither do those of the iterations within a command.
func TestGoneConnectionsAreForgotten(t *testing.T) {
	r := newTurnRecorder()
	addr := startLoop(t, r)
	first := newTurnPeer(t, addr)
	var crowd []turnPeer
	for range 30 {
		crowd = append(crowd, newTurnPeer(t, addr))
	}
	first.send("HOLD", 1)
	time.Sleep(10 * time.Millisecond)
	for i, p := range crowd {
		p.send([]string{"YIELD", "PING"}[min(i, 1)], 1)
	}
	close(r.release)
	first.answers(1)
	for _, p := range crowd {
		p.answers(1)
		p.Close()
	}
	first.Close()
	require.Eventually(t, func() bool {
		runtime.GC()
		return r.freed.Load() == r.opened.Load()
	}, 5*time.Second, 10*time.Millisecond)
}

// TestLongTurnAfterManyQuickOnesIsForgiven: one long turn may be the processor's. A second one soon after is the connection's own, be there as many
// quick ones between the two as are enough for the first: or one client alone would have nearly all of the time.
func TestLongTurnAfterManyQuickOnesIsForgiven(t *testing.T) {
	c := Detached("peer", "here", false)
	turn := func(took time.Duration) (slow bool) {
		c.BeginTurn()
		c.cpu = 0 // what is said of its time is to be believed
		if took > 0 {
			c.TookLong(took, 0)
		}
		return c.slow
	}
	quick := func(turns int) {
		for range turns {
			require.False(t, turn(0))
		}
	}
	const long = time.Hour // so that the test's own time is none
	require.True(t, turn(long), "it is not known yet")
	for range 2 {
		c.longAt = c.longAt.Add(-trustedShare * long)
		quick(trustedTurns - 1)
		require.False(t, turn(long), "the first after many quick ones")
		require.Equal(t, long, c.took, "others may still have a pause")
		quick(trustedTurns)
		require.True(t, turn(long), "the second, after as many")
		c.longAt = c.longAt.Add(-trustedShare * long)
		quick(1)
		require.True(t, turn(long), "the third, after a long time and few quick ones")
	}
}

// TestTurnIsJudgedByTheProcessorsTime: a connection of which little is known is not slow because the processor was taken away in its turn, but because
// it has used it.
func TestTurnIsJudgedByTheProcessorsTime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const most = time.Millisecond
	c := Detached("peer", "here", false)
	for range trustedTurns - 2 {
		c.BeginTurn()
		begin := threadTime()
		require.Positive(t, begin)
		c.TookLong(begin+time.Hour, most+time.Hour) // as long as the thread has ever had, and more, by the wall's clock
		require.False(t, c.slow)
		require.Zero(t, c.took)
	}
	c.BeginTurn()
	for begin := threadTime(); threadTime() < begin+2*most; {
	}
	c.TookLong(time.Hour, most)
	require.True(t, c.slow)
	require.Less(t, c.took, time.Hour, "others have a pause for as long as it had the processor")
	require.Zero(t, c.quick)
}
