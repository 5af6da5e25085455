package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority is a certificate authority of a test's own.
type authority struct {
	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.certificate, a.key = a.issue(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue writes name.crt and name.key, for 127.0.0.1 and localhost.
func (a *authority) issue(t *testing.T, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	template.IPAddresses, template.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		require.NoError(t, os.WriteFile(filepath.Join(a.dir, name+file), pem.EncodeToMemory(block), 0o600))
	}
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return certificate, key
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// trust is a client's configuration, with its certificate if it has one.
func (a *authority) trust(t *testing.T, name string) *tls.Config {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	config.RootCAs.AddCert(a.certificate)
	if name != "" {
		pair, err := tls.LoadX509KeyPair(a.path(name+".crt"), a.path(name+".key"))
		require.NoError(t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func TestTLS(t *testing.T) {
	ca := newAuthority(t)
	ca.issue(t, "server", &x509.Certificate{})
	ca.issue(t, "client", &x509.Certificate{})
	port := freePort(t)
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	plain := startRedis(t, "--tls-port", strconv.Itoa(port), "--tls-cert-file", ca.path("server.crt"), "--tls-key-file", ca.path("server.key"),
		"--tls-ca-cert-file", ca.path("ca.crt"), "--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-port", strconv.Itoa(freePort(t)))
	plain.must(t, "CLUSTER", "ADDSLOTSRANGE", "0", strconv.Itoa(Slots-1))
	eventually(t, "the cluster is up", func() bool { return strings.Contains(plain.must(t, "CLUSTER", "INFO").text, "cluster_state:ok") })

	for _, host := range []string{"127.0.0.1", "localhost"} {
		// A cluster whose node knows no address of its own: it is the one that was asked, with the port for TLS.
		u := started(t, Config{Addrs: []string{net.JoinHostPort(host, strconv.Itoa(port))}, TLS: ca.trust(t, "client")})
		require.True(t, u.Cluster())
		for _, proto := range []int{2, 3} {
			c := newCall("SET", "k", strings.Repeat("x", 1<<20))
			c.Proto = proto
			require.Equal(t, "+OK\r\n", c.send(u).wait(t).reply)
		}
		require.Len(t, do(t, u, "GET", "k").reply, 1<<20+12)
		u.Close()
	}

	stranger := newAuthority(t)
	for _, test := range []struct {
		what   string
		config *tls.Config
		want   string
	}{
		{"another authority", stranger.trust(t, ""), "TLS: tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		{"no certificate", ca.trust(t, ""), "TLS: "}, // TLS 1.3 tells of it after the handshake
	} {
		u := open(t, Config{Addrs: []string{addr}, TLS: test.config})
		err := u.Start(t.Context())
		require.ErrorContains(t, err, addr+": "+test.want, test.what)
		if test.config.RootCAs.Equal(ca.trust(t, "").RootCAs) {
			require.ErrorContains(t, err, "it may want a certificate")
		} else {
			require.ErrorContains(t, err, "; upstream-tls-ca-cert-file names the authorities to trust")
		}
		u.Close()
	}
	u := open(t, Config{Addrs: []string{plain.addr}, TLS: ca.trust(t, "client")})
	require.EqualError(t, u.Start(t.Context()), plain.addr+": no TLS handshake in time: its port may be one without TLS")
	u = open(t, Config{Addrs: []string{addr}})
	require.ErrorContains(t, u.Start(t.Context()), "before HELLO was answered: its port may be one for TLS (rediss://)")
}

// TestANewCertificate takes effect at run time.
func TestANewCertificate(t *testing.T) {
	ca := newAuthority(t)
	ca.issue(t, "server", &x509.Certificate{})
	ca.issue(t, "client", &x509.Certificate{})
	port := freePort(t)
	startRedis(t, "--tls-port", strconv.Itoa(port), "--tls-cert-file", ca.path("server.crt"), "--tls-key-file", ca.path("server.key"),
		"--tls-ca-cert-file", ca.path("ca.crt"))
	cfg := Config{Addrs: []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, TLS: newAuthority(t).trust(t, "")}
	u := open(t, cfg)
	require.Error(t, u.Start(t.Context()))
	cfg.TLS = ca.trust(t, "client")
	cfg.Timeout = 10 * time.Second
	u.SetConfig(cfg)
	eventually(t, "it is used", func() bool { return do(t, u, "PING").reply == "+PONG\r\n" })
}
