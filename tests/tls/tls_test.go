// Package tls tests connections over TLS: which come in and which do not, what certificates that change do to them, and what those who
// only want to shake hands do to the others.
package tls

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// handshakeLimit is what the server gives a handshake; a busy machine may notice its end later.
const handshakeLimit = 5 * time.Second

// server is a headgate with a plain port and one for TLS.
type server struct {
	*harness.Server
	ca   *authority
	dir  string // of the files
	addr string // of the TLS port
}

// start starts a server with a new certificate. Clients need none unless flags say so.
func start(t *testing.T, flags ...string) *server {
	ca := newAuthority(t, "authority")
	dir := t.TempDir()
	ca.files(dir, ca.valid())
	return startWith(t, ca, dir, flags...)
}

func startWith(t *testing.T, ca *authority, dir string, flags ...string) *server {
	port := strconv.Itoa(harness.FreePort(t))
	s := harness.Start(t, append([]string{
		"--tls-port", port, "--tls-cert-file", filepath.Join(dir, "tls.crt"), "--tls-key-file", filepath.Join(dir, "tls.key"),
		"--tls-ca-cert-file", filepath.Join(dir, "ca.crt"), "--tls-auth-clients", "no",
	}, flags...)...)
	return &server{Server: s, ca: ca, dir: dir, addr: "127.0.0.1:" + port}
}

// config is a client's that trusts the server's authority.
func (s *server) config() *tls.Config {
	return &tls.Config{RootCAs: s.ca.pool(), ServerName: "localhost"}
}

// try connects with a configuration and has a PING answered.
func (s *server) try(config *tls.Config) (tls.ConnectionState, error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: harness.ReplyTimeout}, "tcp", s.addr, config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	if err := ping(conn); err != nil {
		return tls.ConnectionState{}, err
	}
	return conn.ConnectionState(), nil
}

func ping(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(harness.ReplyTimeout))
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	var reply [7]byte
	if _, err := io.ReadFull(conn, reply[:]); err != nil {
		return err
	}
	if string(reply[:]) != "+PONG\r\n" {
		return fmt.Errorf("the reply is %q", reply)
	}
	return nil
}

// dial returns a client over TLS.
func (s *server) dial(t *testing.T) *harness.Client {
	conn, err := tls.Dial("tcp", s.addr, s.config())
	require.NoError(t, err)
	return harness.NewClient(t, conn)
}

func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		protocols, ciphers string
		client             uint16 // the one version that it speaks
		served             bool
	}{
		{"", "", tls.VersionTLS10, false},
		{"", "", tls.VersionTLS11, false},
		{"", "", tls.VersionTLS12, true},
		{"", "", tls.VersionTLS13, true},
		{"TLSv1.2", "", tls.VersionTLS12, true},
		{"TLSv1.2", "", tls.VersionTLS13, false},
		{"tlsv1.3", "", tls.VersionTLS12, false},
		{"TLSv1.3", "", tls.VersionTLS13, true},
		{"TLSv1.2 TLSv1.3", "", tls.VersionTLS12, true},
		{"", "ECDHE-ECDSA-AES256-GCM-SHA384", tls.VersionTLS12, true},
		{"", "ECDHE-RSA-AES256-GCM-SHA384", tls.VersionTLS12, false}, // the key is not RSA's
	} {
		t.Run(fmt.Sprintf("%s/%s/%s", tt.protocols, tt.ciphers, tls.VersionName(tt.client)), func(t *testing.T) {
			s := start(t, "--tls-protocols", tt.protocols, "--tls-ciphers", tt.ciphers)
			config := s.config()
			config.MinVersion, config.MaxVersion = tt.client, tt.client
			state, err := s.try(config)
			if !tt.served {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.client, state.Version)
			if tt.ciphers != "" {
				require.Equal(t, uint16(tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384), state.CipherSuite)
			}
		})
	}
}

// TestWhoComesIn: both sides look at the other's certificate, and the server goes on whatever it sees.
func TestWhoComesIn(t *testing.T) {
	s := start(t)
	stranger := newAuthority(t, "stranger")
	admin := harness.Dial(t, s.Addr)
	auth := func(value string) {
		require.Equal(t, "+OK\r\n", string(admin.Do("CONFIG", "SET", "tls-auth-clients", value)))
	}
	yesterday := time.Now().Add(-time.Hour)
	with := func(p pair) *tls.Config {
		config := s.config()
		config.Certificates = p.client(t)
		return config
	}
	for _, tt := range []struct {
		name, auth string
		config     *tls.Config
		served     bool
	}{
		{"no certificate, none needed", "no", s.config(), true},
		{"no certificate, optional", "optional", s.config(), true},
		{"no certificate, needed", "yes", s.config(), false},
		{"right certificate, none needed", "no", with(s.ca.valid()), true},
		{"right certificate, optional", "optional", with(s.ca.valid()), true},
		{"right certificate, needed", "yes", with(s.ca.valid()), true},
		{"expired certificate, optional", "optional", with(s.ca.sign(yesterday)), false},
		{"expired certificate, needed", "yes", with(s.ca.sign(yesterday)), false},
		{"foreign certificate, needed", "yes", with(stranger.valid()), false},
		{"foreign certificate, none needed", "no", with(stranger.valid()), true},
		{"the client trusts another authority", "no", &tls.Config{RootCAs: stranger.pool(), ServerName: "localhost"}, false},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(tt.name+"/"+tls.VersionName(version), func(t *testing.T) {
				auth(tt.auth)
				config := tt.config.Clone()
				config.MinVersion, config.MaxVersion = version, version
				_, err := s.try(config)
				if tt.served {
					require.NoError(t, err)
				} else {
					require.Error(t, err)
				}
			})
		}
	}
	auth("no")
	_, err := s.try(s.config())
	require.NoError(t, err)
	require.Positive(t, admin.InfoNumber("tls_handshakes_failed"))
}

// TestExpiredServer: a certificate whose time is over is served, with a line in the log, and refused by the client.
func TestExpiredServer(t *testing.T) {
	ca := newAuthority(t, "authority")
	dir := t.TempDir()
	ca.files(dir, ca.sign(time.Now().Add(-time.Hour)))
	s := startWith(t, ca, dir)
	require.Contains(t, s.Log(), "the TLS certificate has expired")
	_, err := s.try(s.config())
	var invalid x509.CertificateInvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, x509.Expired, invalid.Reason)
}

// TestNoTLS: who does not speak TLS on its port is closed, and who speaks it on the other port too.
func TestNoTLS(t *testing.T) {
	t.Parallel()
	s := start(t)
	var group sync.WaitGroup
	for _, text := range []string{"PING\r\n", "*1\r\n$4\r\nPING\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("\x00", 4096), "\x16\x03\x01\xff\xff"} {
		c, err := harness.TryDial(t, s.addr)
		require.NoError(t, err)
		require.NoError(t, c.Send([]byte(text)))
		group.Go(func() {
			got, closed := c.Drain(2 * handshakeLimit)
			assert.True(t, closed, "%.20q is not closed", text)
			assert.NotContains(t, string(got), "PONG")
		})
	}
	group.Wait()
	conn, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(handshakeLimit)) // without a line's end in it, the server waits for the rest
	require.Error(t, tls.Client(conn, s.config()).Handshake())
	require.Equal(t, "+PONG\r\n", string(harness.Dial(t, s.Addr).Do("PING")))
}

// TestUnfinishedHandshake: one that never comes to an end is cut off, wherever it stops.
func TestUnfinishedHandshake(t *testing.T) {
	t.Parallel()
	s := start(t)
	var hello []byte // of a real client
	client, sink := net.Pipe()
	go func() { _ = tls.Client(client, s.config()).Handshake() }()
	buf := make([]byte, 4096)
	n, err := sink.Read(buf)
	require.NoError(t, err)
	hello = buf[:n]
	client.Close()
	begin := time.Now()
	var group sync.WaitGroup
	for _, part := range [][]byte{nil, hello[:1], hello[:len(hello)/2], hello} {
		c, err := harness.TryDial(t, s.addr)
		require.NoError(t, err)
		require.NoError(t, c.Send(part))
		group.Go(func() {
			_, closed := c.Drain(3 * handshakeLimit)
			if !closed {
				t.Errorf("open after %v with %d bytes sent", time.Since(begin), len(part))
			}
			t.Logf("%d bytes of a handshake: closed after %v", len(part), time.Since(begin).Round(time.Millisecond))
		})
	}
	group.Wait()
}

// TestCommands: over TLS works what works without it: many at once, big ones, waiting, messages, transactions, scripts, and being closed.
func TestCommands(t *testing.T) {
	s := start(t)
	c := s.dial(t)
	const many = 10_000
	var pipeline strings.Builder
	for range many {
		pipeline.WriteString("INCR counter\r\n")
	}
	sent := make(chan error, 1)
	go func() { sent <- c.Send([]byte(pipeline.String())) }()
	for i := range many {
		require.Equal(t, fmt.Sprintf(":%d\r\n", i+1), string(c.Reply()))
	}
	require.NoError(t, <-sent)

	big := strings.Repeat("0123456789abcdef", 1<<20)
	go func() { sent <- c.Send(harness.Command("SET", "big", big)) }()
	require.Equal(t, "+OK\r\n", string(c.Reply()))
	require.NoError(t, <-sent)
	require.Equal(t, fmt.Sprintf("$%d\r\n%s\r\n", len(big), big), string(c.Do("GET", "big")))

	plain := harness.Dial(t, s.Addr)
	require.NoError(t, c.Send(harness.Command("BLPOP", "queue", "0")))
	for plain.InfoNumber("blocked_clients") != 1 {
		time.Sleep(time.Millisecond)
	}
	require.Equal(t, ":1\r\n", string(plain.Do("RPUSH", "queue", "job")))
	require.Equal(t, "*2\r\n$5\r\nqueue\r\n$3\r\njob\r\n", string(c.Reply()))

	require.Equal(t, "+OK\r\n", string(c.Do("MULTI")))
	require.Equal(t, "+QUEUED\r\n", string(c.Do("EVAL", "return redis.call('INCR', KEYS[1])", "1", "counter")))
	require.Equal(t, fmt.Sprintf("*1\r\n:%d\r\n", many+1), string(c.Do("EXEC")))

	listener := s.dial(t)
	require.Contains(t, string(listener.Do("SUBSCRIBE", "news")), "subscribe")
	require.Equal(t, ":1\r\n", string(plain.Do("PUBLISH", "news", "hello")))
	require.Equal(t, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n", string(listener.Reply()))
	require.Equal(t, 2, plain.InfoNumber("tls_connected_clients"))

	id := strings.Trim(string(c.Do("CLIENT", "ID")), ":\r\n")
	require.Equal(t, ":1\r\n", string(plain.Do("CLIENT", "KILL", "ID", id)))
	_, closed := c.Drain(harness.ReplyTimeout)
	require.True(t, closed)

	quitter := s.dial(t)
	require.NoError(t, quitter.Send([]byte("PING\r\nQUIT\r\nPING\r\n")))
	rest, closed := quitter.Drain(harness.ReplyTimeout)
	require.True(t, closed)
	require.Equal(t, "+PONG\r\n+OK\r\n", string(rest))
}

// TestNeverReading: a client that does not read is cut off at the same limit as without TLS.
func TestNeverReading(t *testing.T) {
	s := start(t, "--client-output-buffer-limit", "normal", "4mb", "0", "0")
	admin := harness.Dial(t, s.Addr)
	require.Equal(t, "+OK\r\n", string(admin.Do("SET", "value", strings.Repeat("x", 100_000))))
	conn, err := tls.Dial("tcp", s.addr, s.config())
	require.NoError(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	for {
		if _, err = conn.Write([]byte(strings.Repeat("GET value\r\n", 100))); err != nil {
			break
		}
	}
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, "+PONG\r\n", string(admin.Do("PING")))
	require.Contains(t, s.Log(), "client-output-buffer-limit")
}

// TestShutdown: what was read is answered, whole replies only, while clients go on sending, and a start knows just that.
func TestShutdown(t *testing.T) {
	const clients = 10
	s := start(t, "--appendonly", "yes")
	var replies [clients]string
	var served, ended sync.WaitGroup
	served.Add(clients)
	for i := range clients {
		conn, err := tls.Dial("tcp", s.addr, s.config())
		require.NoError(t, err)
		ended.Go(func() {
			defer conn.Close()
			go func() {
				for {
					if _, err := fmt.Fprintf(conn, "INCR counter:%d\r\n", i); err != nil {
						return
					}
				}
			}()
			r := bufio.NewReader(conn)
			_, err := r.Peek(1)
			served.Done()
			got, end := io.ReadAll(r)
			if err != nil || end != nil {
				t.Errorf("connection %d ended with %v after %d bytes", i, end, len(got))
			}
			replies[i] = string(got)
		})
	}
	served.Wait()
	begin := time.Now()
	require.NoError(t, s.Terminate())
	t.Logf("ended after %v", time.Since(begin).Round(time.Millisecond))
	ended.Wait()
	again := harness.Dial(t, harness.StartIn(t, s.Dir, "--appendonly", "yes").Addr)
	for i, got := range replies {
		n := 0
		for line := range strings.Lines(got) {
			n++
			require.Equal(t, fmt.Sprintf(":%d\r\n", n), line)
		}
		require.Positive(t, n)
		count := strconv.Itoa(n)
		require.Equal(t, fmt.Sprintf("$%d\r\n%s\r\n", len(count), count), string(again.Do("GET", fmt.Sprintf("counter:%d", i))))
	}
}

// TestConfigure: what CONFIG SET of TLS changes, and what it refuses.
func TestConfigure(t *testing.T) {
	s := start(t)
	admin := harness.Dial(t, s.Addr)
	refused := func(name, why string) string {
		return "-ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why + "\r\n"
	}
	const look = "Unable to update TLS configuration. Check server logs."
	require.Equal(t, refused("tls-cert-file", look), string(admin.Do("CONFIG", "SET", "tls-cert-file", "/nonexistent")))
	require.Equal(t, refused("tls-key-file", look), string(admin.Do("CONFIG", "SET", "tls-key-file", "")))
	require.Equal(t, refused("tls-auth-clients", look), string(admin.Do("CONFIG", "SET", "tls-ca-cert-file", "", "tls-auth-clients", "yes")))
	require.Equal(t, refused("tls-auth-clients", "argument(s) must be one of the following: no, yes, optional"), string(admin.Do("CONFIG", "SET", "tls-auth-clients", "perhaps")))
	require.Contains(t, string(admin.Do("CONFIG", "GET", "tls-cert-file")), filepath.Join(s.dir, "tls.crt"))
	_, err := s.try(s.config())
	require.NoError(t, err)

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	require.Equal(t, refused("tls-port", "Unable to listen on this port. Check server logs."),
		string(admin.Do("CONFIG", "SET", "tls-port", strconv.Itoa(taken.Addr().(*net.TCPAddr).Port))))
	require.Equal(t, "+OK\r\n", string(admin.Do("CONFIG", "SET", "tls-auth-clients", "yes")))
	require.Contains(t, string(admin.Do("CONFIG", "SET", "tls-auth-clients", "no", "tls-port", strconv.Itoa(taken.Addr().(*net.TCPAddr).Port))), "Unable to listen")
	_, err = s.try(s.config())
	require.Error(t, err, "a change that is refused leaves everything as it was")
	require.Equal(t, "+OK\r\n", string(admin.Do("CONFIG", "SET", "tls-auth-clients", "no")))
	stays := s.dial(t)
	before, port := s.addr, strconv.Itoa(harness.FreePort(t))
	require.Equal(t, "+OK\r\n", string(admin.Do("CONFIG", "SET", "tls-port", port)))
	_, err = s.try(s.config())
	require.Error(t, err, "nobody listens on the old port")
	s.addr = "127.0.0.1:" + port
	_, err = s.try(s.config())
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", string(stays.Do("PING")))
	require.Equal(t, refused("bind", "Failed to bind to specified addresses."), string(admin.Do("CONFIG", "SET", "bind", "127.0.0.2 203.0.113.7")))
	_, err = s.try(s.config())
	require.NoError(t, err, "it listens where it did")
	require.Equal(t, "+OK\r\n", string(admin.Do("CONFIG", "SET", "bind", "127.0.0.2")))
	_, err = s.try(s.config())
	require.Error(t, err)
	s.addr = "127.0.0.2:" + port
	_, err = s.try(s.config())
	require.NoError(t, err, "tls-port is on the addresses of bind as well")
	require.Equal(t, "+OK\r\n", string(admin.Do("CONFIG", "SET", "tls-port", "0")))
	_, err = s.try(s.config())
	require.Error(t, err)
	require.Equal(t, "+PONG\r\n", string(stays.Do("PING")))
	require.NotEqual(t, before, s.addr)
}

// TestStart: what is missing is said in one line.
func TestStart(t *testing.T) {
	dir := t.TempDir()
	ca := newAuthority(t, "authority")
	ca.files(dir, ca.valid())
	write(t, filepath.Join(dir, "other.key"), ca.valid().key)
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for _, tt := range []struct {
		flags []string
		says  string
	}{
		{nil, "no tls-cert-file is set"},
		{[]string{"--tls-cert-file", cert}, "no tls-key-file is set"},
		{[]string{"--tls-cert-file", cert, "--tls-key-file", key}, "tls-auth-clients needs tls-ca-cert-file or tls-ca-cert-dir"},
		{[]string{"--tls-cert-file", "/nonexistent", "--tls-key-file", key}, "/nonexistent: no such file"},
		{[]string{"--tls-cert-file", cert, "--tls-key-file", filepath.Join(dir, "other.key")}, "private key does not match"},
		{[]string{"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", key}, "holds no certificate"},
	} {
		cmd := exec.Command(harness.Binary(t), append([]string{"--port", "0", "--tls-port", strconv.Itoa(harness.FreePort(t))}, tt.flags...)...)
		cmd.Dir, cmd.Env = t.TempDir(), harness.Environment()
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), tt.says)
		require.Equal(t, 1, strings.Count(string(out), "\n"), "%s", out)
	}
}

// TestAuthorityDirectory: the authorities may be files of a directory.
func TestAuthorityDirectory(t *testing.T) {
	authorities := t.TempDir()
	s := start(t, "--tls-ca-cert-file", "", "--tls-ca-cert-dir", authorities)
	other := newAuthority(t, "other")
	write(t, filepath.Join(authorities, "one.pem"), s.ca.pem)
	write(t, filepath.Join(authorities, "README"), []byte("no certificate"))
	admin := harness.Dial(t, s.Addr)
	require.Equal(t, "+OK\r\n", string(admin.Do("CONFIG", "SET", "tls-auth-clients", "yes")))
	config := s.config()
	_, err := s.try(config)
	require.Error(t, err)
	config.Certificates = other.valid().client(t)
	_, err = s.try(config)
	require.Error(t, err)
	write(t, filepath.Join(authorities, "two.pem"), other.pem)
	require.Eventually(t, func() bool { _, err := s.try(config); return err == nil }, 15*time.Second, 50*time.Millisecond)
}

func TestGoRedis(t *testing.T) {
	s := start(t)
	for _, protocol := range []int{2, 3} {
		config := s.config()
		config.ServerName = "localhost"
		client := redis.NewClient(&redis.Options{Addr: s.addr, TLSConfig: config, Protocol: protocol})
		defer client.Close()
		ctx := t.Context()
		require.NoError(t, client.Set(ctx, "k", "v", time.Minute).Err())
		require.Equal(t, "v", client.Get(ctx, "k").Val())
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				for range 100 {
					if err := client.Incr(ctx, "n").Err(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
	}
	require.Equal(t, "$4\r\n4000\r\n", string(harness.Dial(t, s.Addr).Do("GET", "n")))
}

func TestRedisCLI(t *testing.T) {
	s := start(t)
	cli := harness.ReferenceCLI(t)
	if help, _ := exec.Command(cli, "--help").CombinedOutput(); !strings.Contains(string(help), "--tls") {
		t.Skip("this redis-cli does not speak TLS")
	}
	_, port, _ := net.SplitHostPort(s.addr)
	mine := s.ca.valid()
	write(t, filepath.Join(s.dir, "client.crt"), mine.cert)
	write(t, filepath.Join(s.dir, "client.key"), mine.key)
	admin := harness.Dial(t, s.Addr)
	ask := func(flags ...string) string {
		args := append([]string{"--tls", "-p", port, "--cacert", filepath.Join(s.dir, "ca.crt")}, flags...)
		out, _ := exec.Command(cli, append(args, "PING")...).CombinedOutput()
		return strings.TrimSpace(string(out))
	}
	require.Equal(t, "PONG", ask())
	require.Equal(t, "+OK\r\n", string(admin.Do("CONFIG", "SET", "tls-auth-clients", "yes")))
	require.NotEqual(t, "PONG", ask())
	require.Equal(t, "PONG", ask("--cert", filepath.Join(s.dir, "client.crt"), "--key", filepath.Join(s.dir, "client.key")))
}

// TestCLI: headgate cli speaks TLS as redis-cli does: with the authority of a file, by another name, with a certificate of its own, and to nobody whom it has no
// reason to trust.
func TestCLI(t *testing.T) {
	s := start(t, "--requirepass", "s3cret")
	_, port, _ := net.SplitHostPort(s.addr)
	mine, stranger := s.ca.valid(), newAuthority(t, "stranger")
	in := func(name string) string { return filepath.Join(s.dir, name) }
	write(t, in("client.crt"), mine.cert)
	write(t, in("client.key"), mine.key)
	write(t, in("stranger.crt"), stranger.pem)
	ask := func(input string, flags ...string) (out, problem string) {
		cmd := exec.Command(harness.Binary(t), append([]string{"cli", "-p", port, "-a", "s3cret"}, flags...)...)
		var stdout, stderr bytes.Buffer
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = harness.Environment(), strings.NewReader(input), &stdout, &stderr
		require.Equal(t, cmd.Run() == nil, stderr.Len() == 0)
		return stdout.String(), stderr.String()
	}
	trusting := []string{"--tls", "--cacert", in("ca.crt")}
	out, problem := ask("", append(trusting, "RL.FIXED", "k", "5", "1h")...)
	require.Empty(t, problem)
	require.Contains(t, out, "0\n5\n4\n-1\n")
	out, _ = ask("PING\nECHO secure\n", append(trusting, "-3", "--sni", "localhost")...)
	require.Equal(t, "PONG\nsecure\n", out)
	out, _ = ask("", "--insecure", "PING")
	require.Equal(t, "PONG\n", out)
	for _, tt := range []struct {
		flags []string
		why   string
	}{
		{[]string{"--tls"}, "certificate"}, // of an authority that this machine does not know
		{[]string{"--cacert", in("stranger.crt")}, "certificate"},
		{append(trusting, "--sni", "other.example"), "other.example"},
		{append(trusting, "--cacert", in("none.crt")), "none.crt"},
		{append(trusting, "--cert", in("client.crt")), "--cert and --key belong together"},
		{append(trusting, "--cacert", in("tls.key")), "holds no certificate"},
	} {
		out, problem := ask("", append(slices.Clone(tt.flags), "PING")...)
		require.Empty(t, out, tt.flags)
		require.Contains(t, problem, tt.why, tt.flags)
	}

	admin := harness.Dial(t, s.Addr)
	admin.Do("AUTH", "s3cret")
	require.Equal(t, "+OK\r\n", string(admin.Do("CONFIG", "SET", "tls-auth-clients", "yes")))
	_, problem = ask("", append(trusting, "PING")...)
	require.NotEmpty(t, problem)
	out, problem = ask("", append(trusting, "--cert", in("client.crt"), "--key", in("client.key"), "PING")...)
	require.Empty(t, problem)
	require.Equal(t, "PONG\n", out)
}

const pythonProgram = `
import redis, sys
c = redis.Redis(host="localhost", port=int(sys.argv[1]), ssl=True, ssl_ca_certs=sys.argv[2])
p = c.pipeline()
for i in range(1000):
    p.incr("python")
assert p.execute()[-1] == 1000
c.set("bytes", bytes(range(256)))
assert c.get("bytes") == bytes(range(256))
assert c.eval("return ARGV[1]", 0, "x") == b"x"
print("ok")
`

func TestPython(t *testing.T) {
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import redis").Run() != nil {
		t.Skip("python3-redis is not installed; `make clients` installs it")
	}
	s := start(t)
	_, port, _ := net.SplitHostPort(s.addr)
	out, err := exec.Command(python, "-c", pythonProgram, port, filepath.Join(s.dir, "ca.crt")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "ok\n", string(out))
}

// TestPing: headgate ping reaches a server that has no other port.
func TestPing(t *testing.T) {
	s := start(t, "--tls-auth-clients", "yes")
	_, port, _ := net.SplitHostPort(s.addr)
	cmd := exec.Command(harness.Binary(t), "ping", "--port", "0", "--tls-port", port,
		"--tls-cert-file", filepath.Join(s.dir, "tls.crt"), "--tls-key-file", filepath.Join(s.dir, "tls.key"))
	cmd.Env = harness.Environment()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestPingChoosesTLS beside a port without it, and looks at who answers if it is told whom to trust.
func TestPingChoosesTLS(t *testing.T) {
	s := start(t, "--requirepass", "s3cret")
	_, port, _ := net.SplitHostPort(s.addr)
	other := t.TempDir()
	write(t, filepath.Join(other, "ca.crt"), newAuthority(t, "another").pem)
	for _, tt := range []struct {
		name  string
		words []string
		says  string
		fails bool
	}{
		{"anybody", nil, "NOAUTH", false},
		{"with a password", []string{"--user", "default", "--pass", "s3cret"}, "", false},
		{"whom we trust", []string{"--cacert", filepath.Join(s.dir, "ca.crt"), "--pass", "s3cret"}, "", false},
		{"whom we do not trust", []string{"--cacert", filepath.Join(other, "ca.crt")}, "certificate signed by unknown authority", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			words := append([]string{"ping", "--tls", "--port", strconv.Itoa(s.Port), "--tls-port", port}, tt.words...)
			cmd := exec.Command(harness.Binary(t), words...)
			cmd.Env = harness.Environment()
			out, err := cmd.CombinedOutput()
			require.Equal(t, tt.fails, err != nil, "%s", out)
			require.Contains(t, string(out), tt.says)
			require.Equal(t, tt.says == "", len(out) == 0, "%s", out)
		})
	}
}
