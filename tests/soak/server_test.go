// Package soak tests what only time and numbers show: that connections leave nothing behind, and that a server under a mixed load stays
// as it was.
package soak

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// server is a headgate that listens on TCP, on a Unix socket, for TLS, and for scrapes.
type server struct {
	*harness.Server
	t       *testing.T
	sock    string
	tls     string // address
	metrics string // URL
	config  *tls.Config
	admin   *harness.Client
}

func start(t *testing.T, flags ...string) *server {
	dir, err := os.MkdirTemp("", "hg") // the path of a socket has to be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{t: t, sock: filepath.Join(dir, "sock")}
	cert, key := s.certificate()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), cert, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	secure, scrape := strconv.Itoa(harness.FreePort(t)), strconv.Itoa(harness.FreePort(t))
	s.tls, s.metrics = "127.0.0.1:"+secure, "http://127.0.0.1:"+scrape+"/metrics"
	s.Server = harness.Start(t, append([]string{
		"--unixsocket", s.sock, "--metrics-port", scrape, "--tls-port", secure, "--tls-auth-clients", "no",
		"--tls-cert-file", filepath.Join(dir, "tls.crt"), "--tls-key-file", filepath.Join(dir, "tls.key"),
	}, flags...)...)
	s.admin = harness.Dial(t, s.Addr)
	return s
}

// certificate makes a certificate that signs itself, and has the clients trust it.
func (s *server) certificate() (cert, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(s.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(s.t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(s.t, err)
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	s.config = &tls.Config{RootCAs: pool, ServerName: "localhost"}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// field returns a numeric field of INFO.
func (s *server) field(name string) int {
	s.t.Helper()
	for line := range strings.Lines(string(s.admin.Do("INFO", "everything"))) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			require.NoError(s.t, err)
			return n
		}
	}
	require.FailNow(s.t, "INFO has no field "+name)
	return 0
}

// scrape returns the samples of /metrics that have no labels. The page is read to its end, so that nothing of it stays behind.
func (s *server) scrape() map[string]int {
	s.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: harness.ReplyTimeout}
	resp, err := client.Get(s.metrics)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	samples := map[string]int{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			samples[name] = int(n)
		}
	}
	require.NoError(s.t, lines.Err())
	return samples
}

// dial connects by one of the ways in: tcp, unix or tls. from chooses among this machine's loopback addresses, since each has ports enough
// for some ten thousand connections a minute.
func (s *server) dial(way string, from int) (net.Conn, error) {
	if way == "unix" {
		return net.Dial("unix", s.sock)
	}
	dialer := net.Dialer{Timeout: harness.ReplyTimeout, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+from%200))}}
	if way == "tls" {
		return tls.DialWithDialer(&dialer, "tcp", s.tls, s.config)
	}
	return dialer.Dial("tcp", s.Addr)
}

// ping has one command answered.
func ping(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(harness.ReplyTimeout))
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	var reply [7]byte
	_, err := io.ReadFull(conn, reply[:])
	return err
}
