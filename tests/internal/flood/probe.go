package flood

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"headgate/tests/internal/harness"
)

const (
	pingEvery    = time.Millisecond // whether or not the last one has been answered
	pingPatience = 30 * time.Second // after the end, for answers that are still due
	maxPings     = 4 << 20          // kept
)

// Pings is what a client saw that sends PING at fixed moments. Each is counted from the moment at which it was to be sent.
type Pings struct {
	Sent    int
	P50     time.Duration
	P99     time.Duration
	P999    time.Duration
	Slowest time.Duration
	Late    time.Duration // how long after its moment a PING was sent at most: the prober's own wait for the processor
	Problem string        // what ended the client before its time
}

// prober sends the PINGs.
type prober struct {
	conn net.Conn
	r    *bufio.Reader
	mu   sync.Mutex
	due  []time.Time // moments of those sent, in order
	took []time.Duration
	late time.Duration
}

func newProber(addr, password string) (*prober, error) {
	conn, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, err
	}
	p := &prober{conn: conn, r: bufio.NewReader(conn)}
	if password != "" {
		_ = conn.SetDeadline(time.Now().Add(dialTimeout))
		if _, err := conn.Write(harness.Command("AUTH", password)); err != nil {
			return nil, err
		}
		if v, err := harness.Parse(p.r); err != nil || v.Kind == '-' {
			return nil, fmt.Errorf("AUTH: %w %s", err, v.Text)
		}
		_ = conn.SetDeadline(time.Time{})
	}
	return p, nil
}

// run sends until it is stopped, and then waits for what is due.
func (p *prober) run(stop <-chan struct{}) Pings {
	received := make(chan error, 1)
	go func() { received <- p.receive() }()
	sendErr := p.send(stop)
	if tcp, ok := p.conn.(*net.TCPConn); ok && sendErr == nil {
		_ = tcp.CloseWrite()
	}
	_ = p.conn.SetReadDeadline(time.Now().Add(pingPatience))
	readErr := <-received
	_ = p.conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, due := range p.due[len(p.took):] { // they have waited for as long at least
		p.took = append(p.took, now.Sub(due))
	}
	result := Pings{Sent: len(p.due), Late: p.late}
	if err := errors.Join(sendErr, ignoreEnd(readErr)); err != nil {
		result.Problem = err.Error()
	}
	result.P50, result.P99, result.P999, result.Slowest = Quantiles(p.took)
	return result
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (p *prober) send(stop <-chan struct{}) error {
	ping := harness.Command("PING")
	var pending []byte
	for next := time.Now(); ; next = next.Add(pingEvery) {
		if wait := time.Until(next); wait > 0 {
			select {
			case <-stop:
				return nil
			default:
				time.Sleep(wait)
			}
		}
		p.mu.Lock()
		p.late = max(p.late, time.Since(next))
		p.due = append(p.due, next)
		full := len(p.due) >= maxPings
		p.mu.Unlock()
		pending = append(pending[:0], ping...)
		if _, err := p.conn.Write(pending); err != nil {
			return err
		}
		if full {
			<-stop
			return nil
		}
	}
}

func (p *prober) receive() error {
	var pong [7]byte
	for {
		if _, err := io.ReadFull(p.r, pong[:]); err != nil {
			p.mu.Lock()
			whole := len(p.took) == len(p.due)
			p.mu.Unlock()
			if errors.Is(err, io.EOF) && !whole {
				return errors.New("the server closed the connection of the client that sends PING")
			}
			return err
		}
		if string(pong[:]) != "+PONG\r\n" {
			return fmt.Errorf("PING was answered %q", pong)
		}
		now := time.Now()
		p.mu.Lock()
		p.took = append(p.took, now.Sub(p.due[len(p.took)]))
		p.mu.Unlock()
	}
}

// Quantiles sorts times and returns the median, the 99th and 99.9th percentiles and the longest. The percentile of few times is a long one.
func Quantiles(times []time.Duration) (p50, p99, p999, slowest time.Duration) {
	if len(times) == 0 {
		return 0, 0, 0, 0
	}
	slices.Sort(times)
	at := func(part float64) time.Duration { return times[min(len(times)-1, int(float64(len(times))*part))] }
	return at(0.5), at(0.99), at(0.999), times[len(times)-1]
}
