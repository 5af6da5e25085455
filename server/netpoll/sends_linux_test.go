package netpoll

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// sendRecorder is a Handler and its Worker that answers a crowd much, and one client little, and notes how much each iteration sends.
type sendRecorder struct {
	sync.Mutex
	buffers  resp.Buffers
	release  chan struct{} // closed: what was read is run
	loop     *Loop
	sent     uint64
	most     uint64 // in one iteration
	little   *Conn  // whom little was answered in this iteration,
	answered *Conn  // and in the last one
	kept     bool   // that was not sent by the iteration
}

const (
	muchAnswered   = 2 * sendsMax
	littleAnswered = "+little\r\n"
)

func (r *sendRecorder) NewWorker() Worker      { return r }
func (r *sendRecorder) Buffers() *resp.Buffers { return &r.buffers }
func (r *sendRecorder) Closed(*Conn)           {}

func (r *sendRecorder) Opened(c *Conn) {
	r.Lock()
	defer r.Unlock()
	r.loop = c.front.(*Loop)
	c.BeginTurn()
}

// Batch leaves whoever is answered little to the end.
func (r *sendRecorder) Batch(ready []*Conn) (served int) {
	limits := resp.DefaultLimits()
	for _, c := range ready {
		args, ok, _ := c.In.Next(nil, &limits)
		if !ok {
			continue
		}
		<-r.release
		r.Lock()
		c.BeginTurn()
		if string(args[0]) == "MUCH" {
			c.Out.Raw(make([]byte, muchAnswered))
		} else {
			c.Out.Raw([]byte(littleAnswered))
			r.little = c
		}
		r.Unlock()
	}
	return len(ready)
}

// Tick is called once in each iteration, before it sends anything.
func (r *sendRecorder) Tick() time.Duration {
	r.Lock()
	defer r.Unlock()
	if r.loop == nil {
		return 10 * time.Millisecond
	}
	before := r.sent
	r.sent = r.loop.Traffic().BytesOut
	r.most = max(r.most, r.sent-before)
	if r.answered != nil {
		r.kept = r.kept || len(r.answered.out) > 0
	}
	r.answered, r.little = r.little, nil
	return 10 * time.Millisecond
}

// TestMuchIsSentByAndBy: beside a crowd to which much is to be sent, an iteration sends no more of it than all of them may have together, and whoever
// is answered little does not wait for them.
func TestMuchIsSentByAndBy(t *testing.T) {
	r := &sendRecorder{release: make(chan struct{})}
	addr := startLoop(t, r)
	const crowd = 4 * sendsMax / sendMax
	conns := dialAll(t, addr, crowd+2)
	var readers sync.WaitGroup
	for i, conn := range conns {
		if i > 0 {
			readers.Go(func() { readAnswer(t, conn, i <= crowd) })
		}
	}
	_, err := conns[0].Write([]byte("FIRST\r\n")) // the loop waits, so that it finds all of the others at once
	require.NoError(t, err)
	for i, conn := range conns[1:] {
		line := "MUCH\r\n"
		if i == crowd {
			line = "LITTLE\r\n"
		}
		_, err := conn.Write([]byte(line))
		require.NoError(t, err)
	}
	time.Sleep(10 * time.Millisecond)
	close(r.release)
	readers.Wait()
	r.Lock()
	defer r.Unlock()
	require.LessOrEqual(t, r.most, uint64(sendsMax+sendMax+crowd*sendSmall), "bytes sent in one iteration")
	require.False(t, r.kept, "what is little waits for another iteration")
}

func readAnswer(t *testing.T, conn net.Conn, much bool) {
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if !much {
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != littleAnswered {
			t.Errorf("%q %v", line, err)
		}
		return
	}
	if n, err := io.CopyN(io.Discard, conn, muchAnswered); err != nil {
		t.Errorf("%d bytes of an answer: %v", n, err)
	}
}
