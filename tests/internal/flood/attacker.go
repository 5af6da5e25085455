package flood

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"headgate/tests/internal/harness"
)

// Bounds of the attackers themselves.
const (
	maxSent      = 8 << 30                // bytes that they send in all
	blockBytes   = 64 << 10               // sent at once
	readBytes    = 64 << 10               // read at once
	deafBytes    = 4 << 10                // of receive buffer for those that do not read
	dialTimeout  = 5 * time.Second        // until a connection that is not taken is given up
	refusedPause = 10 * time.Millisecond  // before the next one after that, or after one that the server closed at once
	attackersRAM = "512MiB"               // of heap, beyond which they spend their time on collecting
	lastWords    = 500 * time.Millisecond // after the end, until those that hang in a call are left alone
)

var errSpent = errors.New("the flood has sent all that it may")

// Tally is what the attackers have done.
type Tally struct {
	Sent, Received int64  // bytes
	Conns          int64  // connections made
	Cut            int64  // of which the server closed
	Refused        int64  // that could not be made
	Rounds         int64  // times that an attack came to its own end
	Errors         int64  // replies that were errors, of those that somebody looked at
	Complaint      string // the first of them
}

// count is a Tally that all connections add to.
type count struct {
	mu sync.Mutex
	t  Tally
}

func (c *count) add(what func(t *Tally)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(&c.t)
}

func (c *count) tally() Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// look takes note of a reply.
func (c *count) look(v harness.Value) {
	if v.Kind != '-' {
		return
	}
	c.add(func(t *Tally) {
		if t.Errors++; t.Complaint == "" {
			t.Complaint = v.Text
		}
	})
}

// Conn is one of the attackers' connections.
type Conn struct {
	net.Conn
	Index int // of those at one time, from 0
	Round int // of those with one index, from 0
	raw   *net.TCPConn
	ctx   context.Context
	r     *bufio.Reader
	tally *count
	all   *barrier
	read  sync.WaitGroup
}

// barrier has all connections of a flood wait for each other.
type barrier struct {
	mu     sync.Mutex
	wanted int
	here   int
	open   chan struct{} // closed when all are here
}

func newBarrier(n int) *barrier { return &barrier{wanted: n, open: make(chan struct{})} }

// wait returns when all have called it, or at the end of the flood.
func (b *barrier) wait(ctx context.Context) error {
	b.mu.Lock()
	open := b.open
	b.here++
	if b.here == b.wanted {
		close(open)
		b.here, b.open = 0, make(chan struct{})
	}
	b.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attack runs a flood against a server from this process until the context ends.
func attack(ctx context.Context, f *Flood, size Size, addr, login string, config *tls.Config) Tally {
	tally := new(count)
	var group sync.WaitGroup
	end, _ := ctx.Deadline()
	all := newBarrier(f.Conns(size))
	for i := range f.Conns(size) {
		group.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				quick := attackOnce(ctx, f, size, addr, login, config, end, tally, all, i, round)
				if quick && sleep(ctx, refusedPause) != nil {
					return
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Until(end) + lastWords):
	}
	return tally.tally()
}

// attackOnce is one connection's life. It reports whether that came to nothing, so that a pause is due.
func attackOnce(ctx context.Context, f *Flood, size Size, addr, login string, config *tls.Config, end time.Time, tally *count, all *barrier, index, round int) bool {
	c, err := dial(f, addr, config, end, index)
	if err != nil {
		tally.add(func(t *Tally) { t.Refused++ })
		return true
	}
	c.ctx, c.tally, c.all, c.Index, c.Round = ctx, tally, all, index, round
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	tally.add(func(t *Tally) { t.Conns++ })
	if login != "" && !f.Stranger {
		_, err = c.ask("AUTH", login)
	}
	if err == nil {
		err = f.Attack(c, size)
	}
	_ = c.Close()
	c.read.Wait()
	switch {
	case err == nil:
		tally.add(func(t *Tally) { t.Rounds++ })
		return false
	case errors.Is(err, errSpent):
		<-ctx.Done()
		return false
	case ctx.Err() == nil && harness.IsClosed(err):
		tally.add(func(t *Tally) { t.Cut++ })
	}
	return true
}

func dial(f *Flood, addr string, config *tls.Config, end time.Time, index int) (*Conn, error) {
	// Each of this machine's loopback addresses has ports enough for some ten thousand connections a minute.
	dialer := net.Dialer{Timeout: dialTimeout, Deadline: end, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(1+index%200))}}
	raw, err := dialer.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	_ = raw.SetDeadline(end)
	conn := raw
	if config != nil && f.TLS {
		conn = tls.Client(raw, config)
	}
	return &Conn{Conn: conn, raw: raw.(*net.TCPConn), r: bufio.NewReaderSize(conn, 4<<10)}, nil
}

// Write sends bytes, unless all attackers together have sent too many.
func (c *Conn) Write(b []byte) (int, error) {
	if c.tally.tally().Sent > maxSent {
		return 0, errSpent
	}
	n, err := c.Conn.Write(b)
	c.tally.add(func(t *Tally) { t.Sent += int64(n) })
	return n, err
}

// send is Write of a text.
func (c *Conn) send(text string) error {
	_, err := c.Write([]byte(text))
	return err
}

// ask sends one command and reads its reply, be it an error.
func (c *Conn) ask(args ...string) (harness.Value, error) {
	if _, err := c.Write(harness.Command(args...)); err != nil {
		return harness.Value{}, err
	}
	v, err := harness.Parse(c.r)
	c.tally.look(v)
	return v, err
}

// replies reads n of them.
func (c *Conn) replies(n int) error {
	for range n {
		v, err := harness.Parse(c.r)
		if err != nil {
			return err
		}
		c.tally.look(v)
	}
	return nil
}

// swallow reads all that comes from now on, beside whatever else is done.
func (c *Conn) swallow() {
	c.read.Go(func() { c.drain() })
}

func (c *Conn) drain() {
	buf := make([]byte, readBytes)
	for {
		n, err := c.Read(buf)
		c.tally.add(func(t *Tally) { t.Received += int64(n) })
		if err != nil {
			_ = c.Close() // whoever sends has to notice
			return
		}
	}
}

// deaf has the kernel keep little of what is not read.
func (c *Conn) deaf() {
	_ = c.raw.SetReadBuffer(deafBytes)
}

// pour sends a request again and again and waits for nothing.
func (c *Conn) pour(request string) error {
	block := block(request)
	for {
		if _, err := c.Write(block); err != nil {
			return err
		}
	}
}

// hold keeps the connection as it is until the flood ends or the server closes it.
func (c *Conn) hold() error {
	_, err := io.Copy(io.Discard, c.Conn)
	return err
}

// reset has the close say so at once, and leave no port waiting.
func (c *Conn) reset() {
	_ = c.raw.SetLinger(0)
}

// block is a request, repeated to fill one send.
func block(request string) []byte {
	return []byte(strings.Repeat(request, max(1, blockBytes/len(request))))
}

// command is a command as it is sent.
func command(args ...string) string { return string(harness.Command(args...)) }

// sleep waits, or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
