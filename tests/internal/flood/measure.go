package flood

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// Where everything runs: the attackers on a processor of their own, the server and the client beside them on the other.
const (
	serverCPU   = 0
	attackerCPU = 1
)

const (
	leadShort   = 10 * time.Millisecond  // of the client's PING before a short flood,
	leadWhole   = 200 * time.Millisecond // before a whole one,
	settleShort = 30 * time.Millisecond  // and after a short one, unless the flood says otherwise,
	settleWhole = 500 * time.Millisecond // or a whole one
	lookEvery   = 20 * time.Millisecond  // at resident memory
	ceiling     = 6 << 30                // bytes of resident memory at which a server is killed, since others live here too
	backPart    = 10                     // of what memory grew by, the part that may remain
	setupWithin = 2 * time.Minute
)

// Result is what a flood did to a server.
type Result struct {
	Pings   Pings
	Before  int64 // bytes of resident memory
	Peak    int64
	After   int64         // at the end, which is Back after the flood
	BackIn  time.Duration // until memory was back, where that was asked for; negative if it was not
	Tally   Tally
	Alive   bool
	Killed  bool // by the test, because it took too much
	Refused bool // a new client was not answered afterwards
}

// Growth is how much resident memory grew by, at most.
func (r Result) Growth() int64 { return r.Peak - r.Before }

// Start runs headgate as the flood wants it.
func (f *Flood) Start(t testing.TB) *harness.Server {
	t.Helper()
	return harness.StartUnder(t, f.shell(), append(f.flags(t), f.Own...)...)
}

// StartReference runs redis-server in the same way.
func (f *Flood) StartReference(t testing.TB) *harness.Server {
	t.Helper()
	return harness.StartReferenceUnder(t, f.shell(), f.flags(t)...)
}

func (f *Flood) shell() string {
	shell := harness.Pinned(serverCPU)
	if f.Limit > 0 {
		shell += fmt.Sprintf(" && ulimit -v %d", f.Limit>>10)
	}
	return shell
}

func (f *Flood) flags(t testing.TB) []string {
	flags := slices.Concat(Common, f.Flags)
	if f.TLS {
		flags = append(flags, TLSFlags(t)...)
	}
	if f.Port != "" {
		flags = append(flags, PortFlags(t, f.Port)...)
	}
	return flags
}

// The ports beside that of Redis, by their directives.
const (
	metricsPort = "metrics-port"
	httpPort    = "http-port"
	rlsPort     = "rls-port"
)

// Ports are all of them.
var Ports = []string{metricsPort, httpPort, rlsPort}

// rules are what the rate limit service needs to have.
const rules = "domain: flood\ndescriptors:\n  - key: k\n    rate_limit: {unit: second, requests_per_unit: 10}\n"

// PortFlags have headgate listen on some of Ports.
func PortFlags(t testing.TB, ports ...string) (flags []string) {
	t.Helper()
	for _, port := range ports {
		flags = append(flags, "--"+port, strconv.Itoa(harness.FreePort(t)))
		if port == rlsPort {
			file := filepath.Join(t.TempDir(), "rules.yaml")
			require.NoError(t, os.WriteFile(file, []byte(rules), 0o644))
			flags = append(flags, "--rls-config", file)
		}
	}
	return flags
}

// target is where the attackers go on a server with a password, or "".
func (f *Flood) target(t testing.TB, server *harness.Server, password string) string {
	t.Helper()
	directive := ""
	switch {
	case f.TLS:
		directive = "tls-port"
	case f.Port != "":
		directive = f.Port
	default:
		return server.Addr
	}
	client := harness.Dial(t, server.Addr)
	defer client.Close()
	if password != "" {
		client.Do("AUTH", password)
	}
	v := client.Ask("CONFIG", "GET", directive)
	require.Len(t, v.Items, 2)
	return net.JoinHostPort("127.0.0.1", v.Items[1].Text)
}

// Attackers are let loose.
type Attackers struct {
	Flood    *Flood
	child    *child
	duration time.Duration
}

// Loose lets the flood's attackers loose on a server that was prepared for it, for a time. They know its password, unless they are strangers.
func (f *Flood) Loose(t testing.TB, server *harness.Server, size Size, password string, duration time.Duration) *Attackers {
	t.Helper()
	j := job{Flood: f.Name, Size: size, Addr: f.target(t, server, password), Password: password, Time: duration}
	return &Attackers{Flood: f, child: startChild(t, attackerCPU, j), duration: duration}
}

// Wait returns what they have done when they have ended.
func (a *Attackers) Wait() (tally Tally) {
	a.child.t.Helper()
	a.child.result(a.duration, &tally)
	return tally
}

// TLSFlags are directives that have a server listen for TLS, with a certificate of its own making.
func TLSFlags(t testing.TB) []string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	return []string{"--tls-port", strconv.Itoa(harness.FreePort(t)), "--tls-auth-clients", "no", "--tls-cert-file", certFile, "--tls-key-file", keyFile}
}

// password is that of the server that the flood wants, or "".
func (f *Flood) password() string {
	for i, flag := range f.Flags {
		if flag == "--requirepass" {
			return f.Flags[i+1]
		}
	}
	return ""
}

// Prepare has the flood's data put into a server with a password, or "".
func (f *Flood) Prepare(t testing.TB, server *harness.Server, size Size, password string) {
	t.Helper()
	if f.Setup == nil {
		return
	}
	client := harness.Dial(t, server.Addr)
	defer client.Close()
	do := func(args ...string) (harness.Value, error) {
		if err := client.Send(harness.Command(args...)); err != nil {
			return harness.Value{}, err
		}
		v, err := client.Read(setupWithin)
		if err == nil && v.Kind == '-' {
			err = errors.New(args[0] + ": " + v.Text)
		}
		return v, err
	}
	if password != "" {
		_, err := do("AUTH", password)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { // a server with a password has not been seen to have loaded
		_, err := do("PING")
		return err == nil
	}, setupWithin, time.Millisecond)
	require.NoError(t, f.Setup(do, size), "what the flood needs")
}

// Measure lets the flood loose on a server for a time, beside a client that sends PING, and says what they saw.
func (f *Flood) Measure(t testing.TB, server *harness.Server, size Size, duration time.Duration) (r Result) {
	t.Helper()
	f.Prepare(t, server, size, f.password())
	beside := startChild(t, serverCPU, job{Addr: server.Addr, Password: f.password()})
	lead, settle := leadShort, settleShort
	if size == Whole {
		lead, settle = leadWhole, settleWhole
	}
	time.Sleep(lead)
	attackers := f.Loose(t, server, size, f.password(), duration)
	_ = server.ResetPeak()
	r.Before = server.RSS()
	watch := watchMemory(server)
	r.Tally = attackers.Wait()
	ended := time.Now()
	time.Sleep(max(f.Settle, settle))
	beside.stop()
	beside.result(pingPatience, &r.Pings)
	r.BackIn = -1
	for size == Whole && r.BackIn < 0 && time.Since(ended) < f.Back {
		if now, err := server.Status("VmRSS"); err != nil || now <= r.Before+(watch.highest()-r.Before)/backPart {
			r.BackIn = time.Since(ended)
			break
		}
		time.Sleep(lookEvery)
	}
	r.Peak, r.After, r.Killed = watch.end()
	r.Alive = server.Alive()
	if r.Alive {
		r.Refused = !answers(t, server.Addr)
	}
	return r
}

// answers reports whether a new client is answered, be it that it has to say a password.
func answers(t testing.TB, addr string) bool {
	client, err := harness.TryDial(t, addr)
	if err != nil {
		return false
	}
	defer client.Close()
	if client.Send(harness.Command("PING")) != nil {
		return false
	}
	_, err = client.Read(harness.ReplyTimeout)
	return err == nil
}

// memory watches a server's.
type memory struct {
	server *harness.Server
	stop   chan struct{}
	done   sync.WaitGroup
	mu     sync.Mutex
	peak   int64
	last   int64
	killed bool
}

func watchMemory(server *harness.Server) *memory {
	m := &memory{server: server, stop: make(chan struct{})}
	m.done.Go(func() {
		for {
			m.look()
			select {
			case <-m.stop:
				return
			case <-time.After(lookEvery):
			}
		}
	})
	return m
}

func (m *memory) look() {
	now, err := m.server.Status("VmRSS")
	if err != nil {
		return
	}
	peak, _ := m.server.Status("VmHWM")
	m.mu.Lock()
	m.last, m.peak = now, max(m.peak, peak, now)
	kill := now > ceiling && !m.killed
	m.killed = m.killed || kill
	m.mu.Unlock()
	if kill {
		m.server.Kill()
	}
}

func (m *memory) highest() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peak
}

func (m *memory) end() (peak, last int64, killed bool) {
	close(m.stop)
	m.done.Wait()
	m.look()
	return m.peak, m.last, m.killed
}
