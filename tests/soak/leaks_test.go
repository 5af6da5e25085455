package soak

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var leakConns = flag.Int("leaks.conns", 2000, "connections made and ended each way")

const (
	leakWorkers  = 8
	leakPatience = 30 * time.Second
	leakRest     = 100 * time.Millisecond
	leakSlack    = 1 << 20 // bytes by which the heap may differ besides its two percent: what the runtime itself keeps of its own work
)

// endings are the ways in which a client may end its connection.
var endings = []struct {
	name string
	end  func(conn net.Conn) error
}{
	{"clean", func(conn net.Conn) error { return ping(conn) }},
	{"reset", func(conn net.Conn) error {
		if _, err := io.WriteString(conn, "PING\r\nPING\r\n"); err != nil {
			return err
		}
		if secure, ok := conn.(*tls.Conn); ok {
			conn = secure.NetConn()
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			return tcp.SetLinger(0)
		}
		return nil
	}},
	{"half closed", func(conn net.Conn) error {
		if err := ping(conn); err != nil {
			return err
		}
		if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, conn)
		return err
	}},
	{"mid-command", func(conn net.Conn) error {
		_, err := io.WriteString(conn, "*2\r\n$4\r\nECHO\r\n$10\r\nabc")
		return err
	}},
	{"in a transaction", func(conn net.Conn) error {
		_, err := io.WriteString(conn, "WATCH k\r\nMULTI\r\nSET k 1\r\n")
		return err
	}},
	{"subscribed", func(conn net.Conn) error {
		_, err := io.WriteString(conn, "SUBSCRIBE a b c\r\n")
		return err
	}},
	{"waiting", func(conn net.Conn) error {
		_, err := io.WriteString(conn, "BLPOP nothing 0\r\n")
		return err
	}},
}

// state is what connections must leave as it was.
type state struct {
	goroutines, files, heap int
}

// state looks at the server once it rests: the last scrape's connection and a purge's goroutine take a moment to end.
func (s *server) state() state {
	s.admin.Do("MEMORY", "PURGE")
	time.Sleep(leakRest)
	files, samples := s.OpenFiles(), s.scrape()
	require.Contains(s.t, samples, "go_goroutines")
	require.Contains(s.t, samples, "headgate_memory_heap_bytes")
	return state{goroutines: samples["go_goroutines"], files: files, heap: samples["headgate_memory_heap_bytes"]}
}

// TestLeaks: however many connections come and go, and however they go, goroutines, descriptors and heap are as before.
func TestLeaks(t *testing.T) {
	s := start(t)
	for _, way := range []string{"tcp", "unix", "tls"} {
		t.Run(way, func(t *testing.T) {
			s.comeAndGo(way, *leakConns/10) // what is kept for the next connection is there after these
			s.state()                       // so is what the first look makes
			before := s.settle(t, s.state())
			begin := time.Now()
			s.comeAndGo(way, *leakConns)
			took := time.Since(begin)
			after := s.settle(t, before)
			t.Logf("%d connections in %v: goroutines %d, then %d; descriptors %d, then %d; heap %d KiB, then %d KiB (%+.1f %%)", *leakConns,
				took.Round(time.Millisecond), before.goroutines, after.goroutines, before.files, after.files, before.heap>>10, after.heap>>10,
				100*float64(after.heap-before.heap)/float64(before.heap))
		})
	}
}

// comeAndGo makes connections and ends them, in all ways in turn.
func (s *server) comeAndGo(way string, count int) {
	var group sync.WaitGroup
	var next atomic.Int64
	for range leakWorkers {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= count {
					return
				}
				if err := s.comeAndGoOnce(way, i); err != nil {
					s.t.Errorf("connection %d: %v", i, err)
					return
				}
			}
		})
	}
	group.Wait()
}

func (s *server) comeAndGoOnce(way string, i int) error {
	conn, err := s.dial(way, i)
	if err != nil {
		return err
	}
	defer conn.Close()
	ending := endings[i%len(endings)]
	if err := ending.end(conn); err != nil {
		return fmt.Errorf("%s: %w", ending.name, err)
	}
	return nil
}

// settle waits until only the administrator is connected and everything is as it was.
func (s *server) settle(t *testing.T, before state) (now state) {
	require.Eventually(t, func() bool { return s.field("connected_clients") == 1 }, leakPatience, 10*time.Millisecond, "clients stay")
	for deadline := time.Now().Add(leakPatience); ; {
		now = s.state()
		if now.goroutines <= before.goroutines && now.files <= before.files && now.heap <= before.heap+before.heap/50+leakSlack {
			return now
		}
		if time.Now().After(deadline) {
			require.FailNow(t, "something stays behind", "before %+v, after %+v", before, now)
		}
	}
}
