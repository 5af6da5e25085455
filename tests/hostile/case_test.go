// Package hostile sends what a server on a network gets sent: broken, endless, enormous and foreign bytes. Each case must
// be answered with Redis's text or a closed connection, promptly, without memory growing and without anybody else
// noticing.
package hostile

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// What each case must keep to. A case that misses a figure is tried again: only one that never keeps it fails, so that
// a busy machine does not decide.
const (
	answerWithin = 100 * time.Millisecond // from the end of sending to the last byte of the answer, or the close; asked for with -flood.whole
	growthLimit  = 1 << 20                // bytes of resident memory
	attempts     = 4
	patience     = 5 * time.Second // until an answer counts as missing
	quiet        = 40 * time.Millisecond
)

// attack is one case: bytes sent over a fresh connection, and all that must come back.
type attack struct {
	name   string
	before [][]string // commands that run first, on a connection of their own
	send   string
	want   string // every byte of the answer; none means that the server goes on waiting, unless closes
	closes bool   // the server closes the connection after the answer
	ours   string // why redis-server 7.0.15 answers something else; such a case runs against headgate only
	abrupt bool   // the close may overtake what was answered before
	silent bool   // the connection is left in the middle of a command: no PING can follow
}

// outcome is what one attempt showed.
type outcome struct {
	got     string
	closed  bool
	took    time.Duration
	growth  int64
	problem string
}

// try runs the attack once against a server.
func (a attack) try(t *testing.T, server *harness.Server) outcome {
	t.Helper()
	if len(a.before) > 0 {
		setup := harness.Dial(t, server.Addr)
		for _, command := range a.before {
			setup.Do(command...)
		}
		setup.Close()
	}
	resident := server.RSS()
	conn, err := net.Dial("tcp", server.Addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, sendErr := conn.Write([]byte(a.send))
	begin := time.Now()
	o := a.receive(conn)
	o.took = time.Since(begin)
	if sendErr != nil && !a.closes {
		o.problem = "sending: " + sendErr.Error()
	}
	o.growth = server.RSS() - resident
	if o.problem == "" {
		o.problem = a.judge(o)
	}
	return o
}

// receive reads the answer: all of it where the server closes, as much as is wanted where it does not. Then a PING must
// be answered, and by nothing else.
func (a attack) receive(conn net.Conn) (o outcome) {
	if a.closes {
		o.got, o.closed = readAll(conn, len(a.want)+4096)
		return o
	}
	if a.want == "" {
		_ = conn.SetReadDeadline(time.Now().Add(quiet))
		o.got, o.closed = readAll(conn, 4096)
		_ = conn.SetReadDeadline(time.Now().Add(patience))
	} else {
		o.got, o.closed = readSome(conn, len(a.want))
	}
	if a.silent || o.closed {
		return o
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		o.problem = "the PING after it: " + err.Error()
		return o
	}
	if pong, _ := readSome(conn, len("+PONG\r\n")); pong != "+PONG\r\n" && !strings.Contains(pong, "NOAUTH") {
		o.problem = fmt.Sprintf("the PING after it was answered %q", pong)
	}
	return o
}

func (a attack) judge(o outcome) string {
	switch {
	case o.got != a.want && !(a.abrupt && strings.HasPrefix(a.want, o.got)):
		return fmt.Sprintf("answered %q\n  wanted   %q", shorten(o.got), shorten(a.want))
	case o.closed != a.closes:
		return fmt.Sprintf("closed=%v, wanted %v", o.closed, a.closes)
	}
	return ""
}

// readAll reads until the connection is closed, the deadline passes or limit bytes came.
func readAll(conn net.Conn, limit int) (got string, closed bool) {
	var all []byte
	buf := make([]byte, 16<<10)
	for len(all) < limit {
		n, err := conn.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			return string(all), !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
	return string(all), false
}

// readSome reads n bytes, or fewer where the connection is closed or the deadline passes.
func readSome(conn net.Conn, n int) (got string, closed bool) {
	all := make([]byte, 0, n)
	for len(all) < n {
		m, err := conn.Read(all[len(all):n])
		all = all[:len(all)+m]
		if err != nil {
			return string(all), !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
	return string(all), false
}

func shorten(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:most], len(s))
}

// report gathers what the cases measured, for the table at the end.
type report struct {
	mu   sync.Mutex
	rows []row
}

type row struct {
	name         string
	took         time.Duration
	growth       int64
	pings        int
	pingMedian   time.Duration
	pingSlowest  time.Duration
	lateAttempts int
}

func (r *report) add(line row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, line)
}

func (r *report) log(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "%d cases\n%-48s %10s %10s %8s %12s %12s\n", len(r.rows), "case", "answer", "RSS KiB", "pings", "PING median", "PING max")
	var slowest, medians []time.Duration
	for _, line := range r.rows {
		fmt.Fprintf(&out, "%-48s %10v %10d %8d %12v %12v\n", line.name, line.took.Round(time.Microsecond),
			line.growth>>10, line.pings, line.pingMedian, line.pingSlowest)
		slowest, medians = append(slowest, line.pingSlowest), append(medians, line.pingMedian)
	}
	if len(r.rows) > 0 {
		fmt.Fprintf(&out, "another client's PING: median %v, max %v", median(medians), slices.Max(slowest))
	}
	t.Log(out.String())
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[len(sorted)/2].Round(time.Microsecond)
}

// bystander is the other client: it sends PING without a pause between and keeps the times.
type bystander struct {
	client *harness.Client
	stop   chan struct{}
	done   chan struct{}
	times  []time.Duration
	err    error
}

func newBystander(t *testing.T, addr string, password string) *bystander {
	t.Helper()
	client := harness.Dial(t, addr)
	if password != "" {
		client.Do("AUTH", password)
	}
	client.Do("PING") // a newcomer comes after those that are known, and after a long command waits for as long as that took
	b := &bystander{client: client, stop: make(chan struct{}), done: make(chan struct{})}
	ping := harness.Command("PING")
	go func() {
		defer close(b.done)
		for {
			select {
			case <-b.stop:
				return
			default:
			}
			begin := time.Now()
			if b.err = client.Send(ping); b.err != nil {
				return
			}
			if _, b.err = client.Read(harness.ReplyTimeout); b.err != nil {
				return
			}
			b.times = append(b.times, time.Since(begin))
			time.Sleep(200 * time.Microsecond)
		}
	}()
	return b
}

// finish stops it and says how it fared.
func (b *bystander) finish(t *testing.T, line row) row {
	t.Helper()
	close(b.stop)
	<-b.done
	b.client.Close()
	require.NoError(t, b.err, "another client was disturbed")
	line.pings, line.pingMedian = len(b.times), median(b.times)
	if len(b.times) > 0 {
		line.pingSlowest = slices.Max(b.times).Round(time.Microsecond)
	}
	return line
}

// run tries the attack until it keeps every figure, and fails when the answer is wrong or a figure is never kept.
func (a attack) run(t *testing.T, server *harness.Server, password string, results *report) {
	t.Helper()
	other := newBystander(t, server.Addr, password)
	var last outcome
	line := row{name: a.name}
	for range attempts {
		last = a.try(t, server)
		if last.problem != "" {
			break
		}
		if (last.took <= answerWithin || !*floodWhole) && last.growth <= growthLimit {
			break
		}
		line.lateAttempts++
	}
	line.took, line.growth = last.took, last.growth
	results.add(other.finish(t, line))
	require.True(t, server.Alive(), "the server ended")
	require.Empty(t, last.problem)
	if *floodWhole { // on a machine that does nothing else
		require.LessOrEqual(t, last.took, answerWithin, "in each of %d attempts", attempts)
	}
	require.LessOrEqual(t, last.growth, int64(growthLimit), "bytes of resident memory in each of %d attempts", attempts)
}

// runAll runs a table against headgate and, where redis-server answers the same, against it too.
func runAll(t *testing.T, table []attack, password string, flags ...string) {
	t.Helper()
	self := harness.SubjectIsReference(t)
	subject, reference := harness.StartPair(t, flags...)
	var results report
	names := make(map[string]bool)
	for _, a := range table {
		require.False(t, names[a.name], "two cases are called %q", a.name)
		names[a.name] = true
		if a.ours == "" {
			t.Run("redis-server/"+a.name, func(t *testing.T) {
				require.Empty(t, a.try(t, reference).problem)
			})
		}
		if a.ours == "" || !self {
			t.Run("headgate/"+a.name, func(t *testing.T) {
				a.run(t, subject, password, &results)
			})
		}
	}
	results.log(t)
}
