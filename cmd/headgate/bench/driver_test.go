package bench

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeServer answers INFO with its name, AUTH with OK or an error, and everything else with what answer returns; "" closes the
// connection.
func fakeServer(t *testing.T, answer func(n int) string) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return fakeServerOn(t, ln, answer)
}

func fakeServerOn(t *testing.T, ln net.Listener, answer func(n int) string) (addr string) {
	t.Cleanup(func() { ln.Close() })
	var count atomic.Int64
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					args, err := readCommand(in)
					if err != nil {
						return
					}
					reply := "+OK\r\n"
					switch {
					case args[0] == "INFO":
						reply = "$21\r\nredis_version:7.0.15\n\r\n"
					case args[0] == "AUTH" && args[len(args)-1] != "secret":
						reply = "-WRONGPASS no\r\n"
					case args[0] != "AUTH":
						reply = answer(int(count.Add(1)))
					}
					if reply == "" {
						return
					}
					io.WriteString(conn, reply)
				}
			}()
		}
	}()
	return ln.Addr().String()
}

func readCommand(in *bufio.Reader) ([]string, error) {
	number := func() (int, error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number()
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := number()
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	return args, nil
}

// fakeRound is a round of PINGs against a fake server.
func fakeRound(t *testing.T, addr, flags string) (*round, *target) {
	t.Helper()
	o, err := ParseOptions(strings.Fields("--load ping --addr "+addr+" "+flags), nil, io.Discard)
	require.NoError(t, err)
	server, err := newTarget(o, addr)
	require.NoError(t, err)
	t.Cleanup(server.close)
	return &round{
		Options: o, load: o.Load, template: newTemplate(o.Load.Commands), duration: o.Duration,
		stop: new(atomic.Bool), progress: new(atomic.Uint64),
	}, server
}

// eachDriver runs a test with the driver of this system and with the one of a connection each.
func eachDriver(t *testing.T, test func(t *testing.T, choose func(o *Options) (driver, int))) {
	t.Run("chosen", func(t *testing.T) { test(t, chooseDriver) })
	t.Run("connections", func(t *testing.T) {
		test(t, func(o *Options) (driver, int) { return driveConn, o.Clients })
	})
}

func TestDrivers(t *testing.T) {
	eachDriver(t, func(t *testing.T, choose func(o *Options) (driver, int)) {
		for _, flags := range []string{"--clients 1", "--clients 7 --pipeline 3 --threads 2", "--clients 3 --rate 5000", "--clients 2 --user u --pass secret"} {
			r, server := fakeRound(t, fakeServer(t, func(int) string { return "+PONG\r\n" }), flags+" --duration 50ms")
			drive, n := choose(r.Options)
			m, err := r.run(server, drive, n)
			require.NoError(t, err, flags)
			require.NotZero(t, m.ops)
			require.Zero(t, m.ops%uint64(r.Pipeline))
			require.EqualValues(t, m.ops, m.latency.TotalCount())
			require.Equal(t, m.ops, r.progress.Load())
			if r.Rate > 0 {
				require.EqualValues(t, 250, m.ops+m.late, "all that the schedule wanted")
			}
		}
	})
}

// TestStallIsFelt: while a server does not answer for a fifth of a second, operations are meant to begin, and have waited since then.
func TestStallIsFelt(t *testing.T) {
	const stall = 200 * time.Millisecond
	eachDriver(t, func(t *testing.T, choose func(o *Options) (driver, int)) {
		addr := fakeServer(t, func(n int) string {
			if n == 1 {
				time.Sleep(stall)
			}
			return "+PONG\r\n"
		})
		r, server := fakeRound(t, addr, "--clients 1 --rate 1000 --duration 250ms")
		drive, n := choose(r.Options)
		m, err := r.run(server, drive, n)
		require.NoError(t, err)
		require.EqualValues(t, 250, m.ops+m.late)
		require.GreaterOrEqual(t, m.latency.ValueAtPercentile(50), int64(stall/4), "half of the operations began in the stall's first three quarters")
	})
}

func TestServerGoesAway(t *testing.T) {
	eachDriver(t, func(t *testing.T, choose func(o *Options) (driver, int)) {
		addr := fakeServer(t, func(n int) string {
			if n > 100 {
				return ""
			}
			return "+PONG\r\n"
		})
		r, server := fakeRound(t, addr, "--clients 3 --duration 1m")
		drive, n := choose(r.Options)
		m, err := r.run(server, drive, n)
		require.ErrorContains(t, err, "the server has closed a connection")
		require.NotZero(t, m.ops, "what there was is known")
	})
}

// TestABrokenConnectionIsNoInterruption: the figures until then were shown as those of an interrupted run.
func TestABrokenConnectionIsNoInterruption(t *testing.T) {
	addr := fakeServer(t, func(n int) string {
		switch {
		case n > 2:
			return ""
		case n > 1:
			return "-ERR max number of clients reached\r\n"
		}
		return "+PONG\r\n"
	})
	o, err := ParseOptions(strings.Fields("--load ping --duration 1m --clients 1 --addr "+addr), nil, io.Discard)
	require.NoError(t, err)
	var out strings.Builder
	stop := new(atomic.Bool)
	err = (&Bench{Options: o, Stop: stop}).Run(&out)
	require.ErrorContains(t, err, "the server has closed a connection")
	require.ErrorContains(t, err, "first: ERR max number of clients reached")
	require.Empty(t, out.String())
	require.False(t, stop.Load())
}

// TestFilesAreTriedFirst: that a file cannot be written was said after the run, of which nothing was kept then.
func TestFilesAreTriedFirst(t *testing.T) {
	addr := fakeServer(t, func(int) string { panic("a load was sent") })
	there := filepath.Join(t.TempDir(), "there")
	require.NoError(t, os.WriteFile(there, []byte("kept"), 0o600))
	for _, name := range []string{"--json", "--svg"} {
		o, err := ParseOptions(strings.Fields("--load ping --addr "+addr+" "+name+" "+filepath.Join(there, "a")), nil, io.Discard)
		require.NoError(t, err)
		require.ErrorContains(t, (&Bench{Options: o, Stop: new(atomic.Bool)}).Run(io.Discard), there)
	}
	require.Error(t, tryFile(filepath.Dir(there)))
	absent := there + "2"
	require.NoError(t, tryFile(there))
	require.NoError(t, tryFile(absent))
	require.NoFileExists(t, absent)
	link := there + ".link"
	require.NoError(t, os.Symlink(absent, link))
	require.NoError(t, tryFile(link))
	require.NoFileExists(t, absent)
	target, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, absent, target, "a link to no file is not taken away")
	kept, err := os.ReadFile(there)
	require.NoError(t, err)
	require.Equal(t, "kept", string(kept))
}

// TestErrorsAreCounted, with the first one's text.
func TestErrorsAreCounted(t *testing.T) {
	addr := fakeServer(t, func(n int) string {
		if n%2 == 0 {
			return fmt.Sprintf("-OOM number %d\r\n", n)
		}
		return "+PONG\r\n"
	})
	o, err := ParseOptions(strings.Fields("--load ping --duration 20ms --clients 1 --addr "+addr), nil, io.Discard)
	require.NoError(t, err)
	var out strings.Builder
	err = (&Bench{Options: o, Stop: new(atomic.Bool)}).Run(&out)
	require.ErrorContains(t, err, "with an error, first: OOM number 2")
	require.Contains(t, out.String(), "\nerrors ")
}

func TestWrongPassword(t *testing.T) {
	addr := fakeServer(t, func(int) string { return "+PONG\r\n" })
	o, err := ParseOptions(strings.Fields("--pass wrong --addr "+addr), nil, io.Discard)
	require.NoError(t, err)
	_, err = newTarget(o, addr)
	require.ErrorContains(t, err, "it answers: WRONGPASS no")
}

// TestTLS: the loader verifies the server's certificate, unless it is told not to.
func TestTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate, which is for 127.0.0.1
	defer web.Close()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates})
	require.NoError(t, err)
	addr := fakeServerOn(t, ln, func(int) string { return "+PONG\r\n" })
	authority := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600))
	for _, flags := range []string{"--cacert " + authority, "--insecure"} {
		r, server := fakeRound(t, addr, "--tls --clients 2 --pipeline 2 --duration 20ms "+flags)
		drive, n := chooseDriver(r.Options)
		m, err := r.run(server, drive, n)
		require.NoError(t, err)
		require.NotZero(t, m.ops)
	}
	o, err := ParseOptions([]string{"--tls", "--addr", addr}, nil, io.Discard)
	require.NoError(t, err)
	_, err = newTarget(o, addr)
	require.ErrorContains(t, err, "certificate")
}

// refusingServer closes each connection to a Unix socket with an error, before anything is asked. closed tells of each.
func refusingServer(t *testing.T) (path string, closed chan struct{}) {
	path, closed = filepath.Join(t.TempDir(), "s"), make(chan struct{}, 8)
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "-ERR max number of clients reached\r\n")
			conn.Close()
			closed <- struct{}{}
		}
	}()
	return path, closed
}

// TestLastWordsOfAServer: what a server had said before it closed the connection was lost when the write failed.
func TestLastWordsOfAServer(t *testing.T) {
	path, closed := refusingServer(t)
	const want = "it answers: ERR max number of clients reached"
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	<-closed
	_, err = newControl(conn).ask("INFO", "server")
	require.EqualError(t, err, want)

	for _, tls := range []bool{false, true} { // which chooses the driver
		addr := fakeServer(t, func(int) string { return "+PONG\r\n" })
		r, server := fakeRound(t, addr, "--load ping --clients 1 --duration 20ms")
		r.TLS, server.network, server.addr = tls, "unix", path
		drive, n := chooseDriver(r.Options)
		_, err = r.run(server, func(w *worker, t *target) (func() error, func(), error) {
			run, end, err := drive(w, t)
			<-closed
			return run, end, err
		}, n)
		require.ErrorContains(t, err, want)
	}
}

// TestSocketsByName: the path of a socket that begins with neither / nor ./ was refused.
func TestSocketsByName(t *testing.T) {
	t.Chdir(t.TempDir())
	ln, err := net.Listen("unix", "s.sock")
	require.NoError(t, err)
	fakeServerOn(t, ln, func(int) string { return "+PONG\r\n" })
	o, err := ParseOptions(strings.Fields("--load ping --addr s.sock"), nil, io.Discard)
	require.NoError(t, err)
	server, err := newTarget(o, o.Addr)
	require.NoError(t, err)
	server.close()
	_, err = newTarget(o, "gone.sock")
	require.EqualError(t, err, `the address "gone.sock" is neither host:port nor the path of a Unix socket`)
}

// TestClientCertificate: a server that asks for a certificate could not be measured.
func TestClientCertificate(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert})
	require.NoError(t, err)
	addr := fakeServerOn(t, ln, func(int) string { return "+PONG\r\n" })
	key, err := x509.MarshalPKCS8PrivateKey(web.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	pair := filepath.Join(t.TempDir(), "pair.pem")
	require.NoError(t, os.WriteFile(pair, append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...), 0o600))
	flags := "--load ping --tls --insecure --addr " + addr
	o, err := ParseOptions(strings.Fields(flags+" --cert "+pair+" --key "+pair), nil, io.Discard)
	require.NoError(t, err)
	server, err := newTarget(o, addr)
	require.NoError(t, err)
	server.close()
	o, err = ParseOptions(strings.Fields(flags), nil, io.Discard)
	require.NoError(t, err)
	_, err = newTarget(o, addr)
	require.Error(t, err)
	for _, half := range []string{"--tls --cert " + pair, "--tls --key " + pair} {
		_, err = ParseOptions(strings.Fields(half), nil, io.Discard)
		require.ErrorContains(t, err, "--cert")
	}
}
