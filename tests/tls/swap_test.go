package tls

import (
	"crypto/tls"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	swaps     = flag.Int("tls.swaps", 2, "certificates put in place under load, each way")
	floodTime = flag.Duration("tls.flood", time.Second, "how long bad handshakes come in")
)

// newWithin is how soon a changed certificate must be served.
const newWithin = 15 * time.Second

// load is clients that send commands over TLS and begin anew now and then, until it is stopped.
type load struct {
	t        *testing.T
	stopping atomic.Bool
	group    sync.WaitGroup
	commands atomic.Int64
	dials    atomic.Int64
	lasting  atomic.Int64 // commands on connections that have been there from the beginning
}

// startLoad starts clients of which the even ones keep their connection and the odd ones dial for every few commands.
func startLoad(t *testing.T, s *server, clients int) *load {
	l := &load{t: t}
	for i := range clients {
		l.group.Go(func() {
			for !l.stopping.Load() {
				conn, err := tls.Dial("tcp", s.addr, s.config())
				if err != nil {
					t.Errorf("a connection was refused: %v", err)
					return
				}
				l.dials.Add(1)
				for n := 0; !l.stopping.Load() && (i%2 == 0 || n < 10); n++ {
					if err := ping(conn); err != nil {
						t.Errorf("a connection was dropped after %d commands: %v", n, err)
						return
					}
					l.commands.Add(1)
					if i%2 == 0 {
						l.lasting.Add(1)
					}
					time.Sleep(time.Millisecond)
				}
				conn.Close()
			}
		})
	}
	return l
}

func (l *load) stop() {
	l.stopping.Store(true)
	l.group.Wait()
	l.t.Logf("%d commands over %d connections, %d of them on connections that saw all certificates", l.commands.Load(), l.dials.Load(), l.lasting.Load())
}

// served returns the serial number of the certificate that new handshakes get.
func (s *server) served(t *testing.T) int64 {
	state, err := s.try(s.config())
	require.NoError(t, err)
	return state.PeerCertificates[0].SerialNumber.Int64()
}

// await waits until a certificate is served, and returns how long that took.
func (s *server) await(t *testing.T, p pair) time.Duration {
	begin := time.Now()
	require.Eventually(t, func() bool { return s.served(t) == p.serial(t) }, newWithin, 20*time.Millisecond, "the certificate is not served")
	return time.Since(begin)
}

// TestSwapFiles exchanges the certificate file by file. Half of a pair is of no use: the pair from before is served meanwhile, and
// the log says so.
func TestSwapFiles(t *testing.T) {
	t.Parallel()
	s := start(t)
	load := startLoad(t, s, 6)
	admin := harness.Dial(t, s.Addr)
	old := s.served(t)
	for i := range *swaps {
		p := s.ca.valid()
		write(t, filepath.Join(s.dir, "tls.crt"), p.cert)
		require.Eventually(t, func() bool { return admin.InfoNumber("tls_reloads_failed") == i+1 }, newWithin, 20*time.Millisecond)
		require.Equal(t, old, s.served(t), "half of a pair changes nothing")
		write(t, filepath.Join(s.dir, "tls.key"), p.key)
		s.await(t, p)
		old = p.serial(t)
	}
	load.stop()
	require.GreaterOrEqual(t, admin.InfoNumber("tls_reloads"), *swaps)
	require.Equal(t, *swaps, strings.Count(s.Log(), "cannot be used"), "one line for each half of a pair")
}

// TestSwapDirectory exchanges the certificate as Kubernetes does: the files are links into ..data, which is a link to a directory that
// is put in place in one step.
func TestSwapDirectory(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "authority")
	dir := t.TempDir()
	place := func(p pair) {
		version, err := os.MkdirTemp(dir, "..version")
		require.NoError(t, err)
		ca.files(version, p)
		require.NoError(t, os.Symlink(filepath.Base(version), filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	place(ca.valid())
	for _, name := range []string{"ca.crt", "tls.crt", "tls.key"} {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	s := startWith(t, ca, dir)
	load := startLoad(t, s, 6)
	var longest time.Duration
	for range *swaps {
		p := ca.valid()
		place(p)
		longest = max(longest, s.await(t, p))
	}
	load.stop()
	admin := harness.Dial(t, s.Addr)
	require.Zero(t, admin.InfoNumber("tls_reloads_failed"))
	t.Logf("%d certificates put in place; the slowest was served after %v", *swaps, longest.Round(time.Millisecond))
}

// floodRate is how many bad handshakes begin per second.
const floodRate = 500

// TestFlood: what another client's PING takes while bad handshakes of all kinds come in.
func TestFlood(t *testing.T) {
	s := start(t)
	plain, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	defer plain.Close()
	secure, err := tls.Dial("tcp", s.addr, s.config())
	require.NoError(t, err)
	defer secure.Close()
	quietPlain, quietSecure := pings(t, plain, *floodTime/4), pings(t, secure, *floodTime/4)
	before := s.OpenFiles() // by now both are accepted

	stranger := newAuthority(t, "stranger")
	distrustful := &tls.Config{RootCAs: stranger.pool(), ServerName: "localhost"}
	kinds := []func(net.Conn){
		func(c net.Conn) { io.WriteString(c, "PING\r\n") },
		func(c net.Conn) { c.Write(make([]byte, 2000)) },
		func(c net.Conn) { _ = tls.Client(c, distrustful).Handshake() },
		func(c net.Conn) { // as long as the server bears it
			_ = c.SetDeadline(time.Now().Add(4 * handshakeLimit))
			io.Copy(io.Discard, c)
		},
		func(net.Conn) {},
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var group sync.WaitGroup
	stop := make(chan struct{})
	sent := 0
	group.Go(func() {
		tick := time.NewTicker(time.Second / floodRate)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			kind := kinds[random.IntN(len(kinds))]
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				continue
			}
			sent++
			group.Go(func() {
				defer conn.Close()
				kind(conn)
			})
		}
	})
	flooded := make(chan []time.Duration, 1)
	go func() { flooded <- pings(t, plain, *floodTime) }()
	floodedSecure := pings(t, secure, *floodTime)
	floodedPlain := <-flooded
	close(stop)
	_, err = s.try(s.config())
	require.NoError(t, err, "a good handshake comes through")
	group.Wait()
	t.Logf("%d bad handshakes in %v, %.0f a second", sent, *floodTime, float64(sent)/floodTime.Seconds())
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{{"plain, quiet", quietPlain}, {"TLS, quiet", quietSecure}, {"plain, flooded", floodedPlain}, {"TLS, flooded", floodedSecure}} {
		t.Logf("PING %-15s p50 %8v  p99 %8v  max %8v of %d", row.name, quantile(row.times, 0.5), quantile(row.times, 0.99), quantile(row.times, 1), len(row.times))
	}
	require.Eventually(t, func() bool { return s.OpenFiles() <= before }, 3*handshakeLimit, 50*time.Millisecond, "descriptors stay open")
	require.Positive(t, harness.Dial(t, s.Addr).InfoNumber("tls_handshakes_failed"))
}

// pings sends PINGs one after another for some time and returns what each took.
func pings(t *testing.T, conn net.Conn, period time.Duration) (times []time.Duration) {
	for end := time.Now().Add(period); time.Now().Before(end); {
		begin := time.Now()
		if err := ping(conn); err != nil {
			t.Errorf("a client that is connected is disturbed: %v", err)
			return times
		}
		times = append(times, time.Since(begin))
		time.Sleep(time.Millisecond)
	}
	return times
}

func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[int(q*float64(len(times)-1))].Round(time.Microsecond)
}

// TestManyUnfinished: where more handshakes are under way than there may be, the oldest make room, and a good one comes through.
func TestManyUnfinished(t *testing.T) {
	const files, idle = 400, 120 // an eighth of the descriptors are for handshakes
	ca := newAuthority(t, "authority")
	dir := t.TempDir()
	ca.files(dir, ca.valid())
	port := strconv.Itoa(harness.FreePort(t))
	plain := harness.StartLimited(t, files, "--tls-port", port, "--tls-cert-file", filepath.Join(dir, "tls.crt"),
		"--tls-key-file", filepath.Join(dir, "tls.key"), "--tls-auth-clients", "no")
	s := &server{Server: plain, ca: ca, dir: dir, addr: "127.0.0.1:" + port}
	for range idle {
		conn, err := net.Dial("tcp", s.addr)
		require.NoError(t, err)
		defer conn.Close()
	}
	// While the idle ones are still coming in, they may take an honest client's place: it tries again, as clients do.
	_, err := s.try(s.config())
	for range 4 {
		if err == nil {
			break
		}
		_, err = s.try(s.config())
	}
	require.NoError(t, err)
	require.Less(t, s.OpenFiles(), files/2)
	require.Contains(t, s.Log(), "maxclients lowered")
}
