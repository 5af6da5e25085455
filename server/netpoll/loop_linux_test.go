package netpoll

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"headgate/server/resp"
)

// recorder is a Handler and its Worker: it consumes so many bytes of a connection in each batch, answers each with as many bytes, and notes
// what it saw.
type recorder struct {
	sync.Mutex
	buffers  resp.Buffers
	consume  int // lines of a connection run in a batch
	answer   []byte
	buffered int // the most that a connection had in its buffer when a batch began
	twice    int // connections that stood in a batch twice
	batches  int
	unsent   int // the most that waited to be sent

	slow  time.Duration // how long a batch takes
	rest  int           // not 0: connections may not go on, and may send so much meanwhile
	close bool          // connections are closed after their first replies
	last  *Conn
}

func (r *recorder) NewWorker() Worker      { return r }
func (r *recorder) Buffers() *resp.Buffers { return &r.buffers }
func (r *recorder) Opened(*Conn)           {}
func (r *recorder) Closed(*Conn)           {}
func (r *recorder) Tick() time.Duration    { return time.Second }

func (r *recorder) Batch(ready []*Conn) (served int) {
	r.Lock()
	defer r.Unlock()
	r.batches++
	time.Sleep(r.slow)
	seen := map[*Conn]bool{}
	limits := resp.DefaultLimits()
	for _, c := range ready {
		if seen[c] {
			r.twice++
		}
		seen[c] = true
		r.last = c
		if r.rest > 0 {
			c.Rest(r.rest)
			continue
		}
		c.Begin()
		r.buffered = max(r.buffered, c.In.Buffered())
		for n := 0; ; n++ {
			if n == r.consume {
				c.Postpone()
				break
			}
			if _, ok, _ := c.In.Next(nil, &limits); !ok {
				break
			}
			c.Out.Raw(r.answer)
		}
		if r.close {
			c.CloseAfterReply()
		}
		r.unsent = max(r.unsent, c.Unsent())
	}
	return len(ready)
}

// startLoop runs a loop with one listener until the test ends, and returns its address.
func startLoop(t *testing.T, h Handler) string {
	loop, err := NewLoop(h, nil)
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, loop.Listen(ln, 0))
	go loop.Run()
	t.Cleanup(func() {
		loop.Stop()
		<-loop.Done()
	})
	return ln.Addr().String()
}

// TestBuffersDoNotGrowUnderAFlood: a peer that sends faster than its commands are run is read no faster than that, stands once in a batch,
// and gets all its answers.
func TestBuffersDoNotGrowUnderAFlood(t *testing.T) {
	r := &recorder{consume: 100, answer: []byte("+PONG\r\n")}
	addr := startLoop(t, r)
	const peers, lines = 5, 100_000
	var all sync.WaitGroup
	for range peers {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		all.Go(func() {
			_, _ = conn.Write(bytes.Repeat([]byte("PING\r\n"), lines))
		})
		all.Go(func() {
			n, _ := io.CopyN(io.Discard, conn, lines*int64(len("+PONG\r\n")))
			if n != lines*int64(len("+PONG\r\n")) {
				t.Errorf("%d bytes of answers", n)
			}
		})
	}
	all.Wait()
	r.Lock()
	defer r.Unlock()
	require.LessOrEqual(t, r.buffered, resp.BufferSize)
	require.Zero(t, r.twice)
	require.GreaterOrEqual(t, r.batches, lines/100)
}

// TestRepliesDoNotPileUpForASlowReader: who asks for much and reads slowly waits for itself.
func TestRepliesDoNotPileUpForASlowReader(t *testing.T) {
	r := &recorder{consume: 4, answer: bytes.Repeat([]byte{'x'}, 100<<10)}
	conn, err := net.Dial("tcp", startLoop(t, r))
	require.NoError(t, err)
	defer conn.Close()
	const lines = 1000
	go conn.Write(bytes.Repeat([]byte("GET k\r\n"), lines))
	part := make([]byte, 1<<20)
	for left := lines * len(r.answer); left > 0; {
		n, err := conn.Read(part)
		require.NoError(t, err)
		left -= n
		time.Sleep(100 * time.Microsecond)
	}
	r.Lock()
	defer r.Unlock()
	require.Less(t, r.unsent, 16<<20, "of 100 MB")
}

// TestClosedConnectionsGiveTheirMemoryBack: what a crowd has sent and left half done is gone with it.
func TestClosedConnectionsGiveTheirMemoryBack(t *testing.T) {
	r := &recorder{consume: 100}
	addr := startLoop(t, r)
	half := append([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n"), make([]byte, 1_500_000)...)
	var crowd []net.Conn
	for range 20 {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		_, err = conn.Write(half)
		require.NoError(t, err)
		crowd = append(crowd, conn)
	}
	require.Eventually(t, func() bool { return r.buffers.Used() >= 20*int64(len(half)) }, 10*time.Second, time.Millisecond)
	require.LessOrEqual(t, r.buffers.Used(), 20*int64(2<<20), "addresses; of memory it costs what was written to")
	for _, conn := range crowd {
		conn.Close()
	}
	require.Eventually(t, func() bool { return r.buffers.Used() == 0 }, 10*time.Second, time.Millisecond)
}

// TestStoppedLoopFinishesWhatItRead: commands that were read and are left over are answered before the loop ends.
func TestStoppedLoopFinishesWhatItRead(t *testing.T) {
	r := &recorder{consume: 1, answer: []byte("+PONG\r\n")}
	loop, err := NewLoop(r, nil)
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, loop.Listen(ln, 0))
	go loop.Run()
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write(bytes.Repeat([]byte("PING\r\n"), 1000))
	require.NoError(t, err)
	one := make([]byte, 7)
	_, err = io.ReadFull(conn, one)
	require.NoError(t, err)
	loop.Stop()
	<-loop.Done()
	rest, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Len(t, rest, 999*7)
}

// TestEventOfConnectionLeftOverIsNotLost: what a peer sends while commands of it are left over is read once they are done, although edge
// triggering tells of it once and nothing more comes.
func TestEventOfConnectionLeftOverIsNotLost(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		r := &recorder{consume: 1, answer: []byte("+PONG\r\n"), slow: 2 * time.Millisecond}
		conn, err := net.Dial("tcp", startLoop(t, r))
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write(bytes.Repeat([]byte("PING\r\n"), 10))
		require.NoError(t, err)
		time.Sleep(3*time.Millisecond + pause) // some of them are left over
		_, err = conn.Write([]byte("PING\r\n"))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
		_, err = io.ReadFull(conn, make([]byte, 11*len("+PONG\r\n")))
		require.NoError(t, err)
	}
}

// TestPipelineThatIsWrittenWholeFirst: a peer that reads nothing until it has written everything is served at a useful rate, also when its
// socket is full.
func TestPipelineThatIsWrittenWholeFirst(t *testing.T) {
	r := &recorder{consume: 512, answer: bytes.Repeat([]byte{'x'}, 100)}
	conn, err := net.Dial("tcp", startLoop(t, r))
	require.NoError(t, err)
	defer conn.Close()
	const lines = 300_000
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = conn.Write(bytes.Repeat([]byte("PING 0123456789012345678901234567890123456789\r\n"), lines))
	require.NoError(t, err)
	_, err = io.CopyN(io.Discard, conn, lines*int64(len(r.answer)))
	require.NoError(t, err)
	r.Lock()
	defer r.Unlock()
	require.Less(t, r.batches, lines/100, "not a few commands at a time")
}

// TestRestingConnectionIsNotParsed: while commands may not run, what comes is kept and looked at no more, and too much of it ends the
// connection.
func TestRestingConnectionIsNotParsed(t *testing.T) {
	r := &recorder{consume: 1 << 20, rest: 100_000, answer: []byte("+PONG\r\n")}
	conn, err := net.Dial("tcp", startLoop(t, r))
	require.NoError(t, err)
	defer conn.Close()
	for range 200 {
		_, err = conn.Write([]byte("PING\r\n"))
		require.NoError(t, err)
		time.Sleep(100 * time.Microsecond)
	}
	r.Lock()
	require.LessOrEqual(t, r.batches, 2)
	c := r.last
	r.rest = 0
	c.Resume()
	r.Unlock()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = io.ReadFull(conn, make([]byte, 200*len("+PONG\r\n")))
	require.NoError(t, err)

	r.Lock()
	r.rest = 100_000
	r.Unlock()
	_, _ = conn.Write(make([]byte, 1_000_000))
	_, err = io.ReadAll(conn)
	require.False(t, err != nil && err.(net.Error).Timeout(), "it was not closed")
}

// TestClosingConnectionIsNotRead: what follows a command that ends the connection costs no memory, however much it is.
func TestClosingConnectionIsNotRead(t *testing.T) {
	r := &recorder{consume: 1, close: true, answer: make([]byte, 10<<20)}
	conn, err := net.Dial("tcp", startLoop(t, r))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	require.NoError(t, conn.SetDeadline(time.Now().Add(500*time.Millisecond)))
	_, _ = conn.Write(append([]byte("QUIT\r\n*2\r\n$3\r\nGET\r\n$500000000\r\n"), make([]byte, 64<<20)...))
	require.LessOrEqual(t, r.buffers.Used(), int64(24<<20), "the replies, and nothing of what was sent")
}

// TestNudgeAfterTheEnd: a loop that has ended writes to nothing that has its descriptor's number now.
func TestNudgeAfterTheEnd(t *testing.T) {
	loop, err := NewLoop(&recorder{}, nil)
	require.NoError(t, err)
	fd := loop.wakefd
	go loop.Run()
	loop.Stop()
	<-loop.Done()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	if ends[0] != fd && ends[1] != fd {
		third, err := unix.FcntlInt(uintptr(ends[0]), unix.F_DUPFD_CLOEXEC, fd)
		require.NoError(t, err)
		defer unix.Close(third)
	}
	loop.Nudge()
	for _, end := range ends {
		_, err = unix.Read(end, make([]byte, 1))
		require.ErrorIs(t, err, unix.EAGAIN)
	}
}
