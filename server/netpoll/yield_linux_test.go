package netpoll

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

const (
	linesParsed = 4                // lines of a connection that a pipeliner parses for a batch
	linesRun    = 3                // and those that it runs of them, before it rewinds the rest
	busyMax     = 20 * time.Second // how long BUSY waits for its END
)

// pipeliner is a Handler and its Workers, who parse lines of all connections of a batch before they run them, as the executor does. A line is
// answered with itself. YIELD lets others go on a few times before that, and BUSY until a line END has been run; within either, both are
// answered at once.
type pipeliner struct {
	sync.Mutex
	buffers resp.Buffers
	yields  bool          // a command is yielding; the loop's, as ended
	ended   bool          // END was run
	release chan struct{} // HOLD waits until it is closed

	twice   atomic.Int64 // connections that stood in a batch twice
	rewound atomic.Int64 // lines that could not be rewound, since lines before them were already
	busy    atomic.Int64 // times that BUSY has yielded
}

func newPipeliner() *pipeliner { return &pipeliner{release: make(chan struct{})} }

func (p *pipeliner) NewWorker() Worker      { return &pipelineWorker{pipeliner: p} }
func (p *pipeliner) Buffers() *resp.Buffers { return &p.buffers }

type pipelineWorker struct {
	*pipeliner
	queue   []queuedLine
	current int
}

type queuedLine struct {
	conn *Conn
	from int
	text string
}

func (*pipelineWorker) Opened(*Conn)        {}
func (*pipelineWorker) Closed(*Conn)        {}
func (*pipelineWorker) Tick() time.Duration { return 10 * time.Millisecond }

func (w *pipelineWorker) Batch(ready []*Conn) (served int) {
	seen := map[*Conn]bool{}
	w.queue = w.queue[:0]
	for _, c := range ready {
		if seen[c] {
			w.twice.Add(1)
		}
		if seen[c] = true; !c.Gone() {
			w.parse(c)
		}
	}
	w.execute()
	return len(ready)
}

func (w *pipelineWorker) parse(c *Conn) {
	limits := resp.DefaultLimits()
	for range linesParsed {
		from := c.In.Offset()
		args, ok, _ := c.In.Next(nil, &limits)
		if !ok {
			return
		}
		w.queue = append(w.queue, queuedLine{c, from, string(args[0])})
	}
	c.Postpone()
}

func (w *pipelineWorker) execute() {
	var current *Conn
	run := 0
	for w.current = 0; w.current < len(w.queue); w.current++ { // a line that yields shortens the queue
		line := w.queue[w.current]
		if line.conn != current {
			current, run = line.conn, 0
			current.BeginTurn()
		}
		if run++; run == linesRun+1 {
			w.rewind(line)
			current.Postpone()
		}
		if run <= linesRun {
			w.line(line)
		}
	}
}

func (w *pipelineWorker) line(line queuedLine) {
	switch {
	case line.text == "HOLD":
		<-w.release
	case line.text == "END":
		w.ended = true
	case w.yields:
	case line.text == "YIELD":
		for range 5 {
			w.yield(line.conn)
		}
	case line.text == "BUSY":
		w.ended = false
		for start := time.Now(); !w.ended && time.Since(start) < busyMax; w.busy.Add(1) {
			w.yield(line.conn)
		}
	}
	w.Lock()
	defer w.Unlock()
	line.conn.Out.Raw([]byte(line.text + "\r\n"))
}

// yield lets others go on once, after their lines that were not run yet are rewound.
func (w *pipelineWorker) yield(c *Conn) {
	end := w.current
	for end < len(w.queue) && w.queue[end].conn == c {
		end++
	}
	previous := c
	for _, line := range w.queue[end:] {
		if line.conn != previous {
			w.rewind(line)
		}
		previous = line.conn
	}
	w.queue = w.queue[:end]
	w.keep(c, true)
	c.Yield()
	w.keep(c, false)
}

func (w *pipelineWorker) keep(c *Conn, yields bool) {
	w.Lock()
	defer w.Unlock()
	w.yields = yields
	c.Keep(yields)
}

func (w *pipelineWorker) rewind(line queuedLine) {
	if line.from > line.conn.In.Offset() {
		w.rewound.Add(1)
		return
	}
	line.conn.In.Rewind(line.from)
}

// numbered sends lines that all differ, and wants them back in their order.
type numbered struct {
	t *testing.T
	net.Conn
	answers    *bufio.Reader
	sent, seen int
}

func newNumbered(t *testing.T, addr string) *numbered {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	n := &numbered{t: t, Conn: conn, answers: bufio.NewReader(conn)}
	n.send(1)
	n.receive()
	return n
}

func (n *numbered) write(text string) {
	_, err := n.Write([]byte(text))
	require.NoError(n.t, err)
}

func (n *numbered) send(lines int) {
	var b strings.Builder
	for range lines {
		fmt.Fprintf(&b, "%d\r\n", n.sent)
		n.sent++
	}
	n.write(b.String())
}

// receive wants the answers to all numbered lines that were sent, in their order and with nothing between them.
func (n *numbered) receive() {
	n.t.Helper()
	for ; n.seen < n.sent; n.seen++ {
		n.expect(fmt.Sprint(n.seen))
	}
}

func (n *numbered) expect(line string) {
	n.t.Helper()
	got, err := n.answers.ReadString('\n')
	require.NoError(n.t, err)
	require.Equal(n.t, line+"\r\n", got)
}

func (p *pipeliner) requireOnce(t *testing.T) {
	t.Helper()
	require.Zero(t, p.twice.Load(), "connections that stood in a batch twice")
	require.Zero(t, p.rewound.Load(), "lines behind others that were rewound")
}

// TestConnectionStandsOnceInABatchWhileACommandYields: those of the batch that a command interrupts go on within it, once in each of its
// batches and in the order of their lines, also when a second command of the same batch yields.
func TestConnectionStandsOnceInABatchWhileACommandYields(t *testing.T) {
	p := newPipeliner()
	addr := startLoop(t, p)
	first, yields := newNumbered(t, addr), newNumbered(t, addr)
	var crowd []*numbered
	for range 10 {
		crowd = append(crowd, newNumbered(t, addr))
	}
	first.write("HOLD\r\n")
	time.Sleep(10 * time.Millisecond)
	yields.write("YIELD\r\nYIELD\r\nPING\r\n")
	for i, n := range crowd {
		n.send(100)
		if i%3 == 0 {
			n.write("YIELD\r\n")
		}
	}
	time.Sleep(10 * time.Millisecond)
	close(p.release) // all others are in the next batch
	for i, n := range crowd {
		n.receive()
		if i%3 == 0 {
			n.expect("YIELD")
		}
		n.send(10)
		n.receive()
	}
	p.requireOnce(t)
}

// TestOthersAreServedWhileACommandYields: those of the batch that a long command interrupts get the answers of before, are read and
// answered while it runs, whatever they had in their input when it began, and can end it.
func TestOthersAreServedWhileACommandYields(t *testing.T) {
	p := newPipeliner()
	addr := startLoop(t, p)
	first, answered, busy := newNumbered(t, addr), newNumbered(t, addr), newNumbered(t, addr)
	half, pipelined, quiet, leaves, ends := newNumbered(t, addr), newNumbered(t, addr), newNumbered(t, addr), newNumbered(t, addr), newNumbered(t, addr)
	first.write("HOLD\r\n")
	time.Sleep(10 * time.Millisecond)
	for _, n := range []*numbered{answered, half, pipelined, leaves, ends} {
		n.send(2)
	}
	busy.write("BUSY\r\nPING\r\n")
	half.write("HA")
	pipelined.send(50)
	leaves.send(50)
	require.NoError(t, leaves.Conn.(*net.TCPConn).CloseWrite())
	time.Sleep(10 * time.Millisecond)
	close(p.release) // all but the quiet one are in the next batch
	first.expect("HOLD")
	require.Eventually(t, func() bool { return p.busy.Load() > 10 }, 10*time.Second, time.Millisecond)

	for range 3 {
		for _, n := range []*numbered{answered, pipelined, quiet, newNumbered(t, addr)} {
			n.receive()
			n.send(20)
		}
	}
	half.receive()
	half.write("LF\r\n")
	half.expect("HALF")
	leaves.receive()
	ends.write("END\r\n")
	ends.receive()
	ends.expect("END")
	busy.expect("BUSY")
	busy.expect("PING")
	for _, n := range []*numbered{answered, pipelined, quiet, half} {
		n.send(20)
		n.receive()
	}
	p.requireOnce(t)
}
