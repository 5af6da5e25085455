package tls

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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs certificates.
type authority struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
	next int64 // serial number
}

// pair is a certificate and its key, in PEM.
type pair struct{ cert, key []byte }

func newAuthority(t testing.TB, name string) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{t: t, key: key, cert: cert, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), next: 2}
}

// sign issues a certificate, for a server on this machine or a client, that ends at a time.
func (a *authority) sign(ends time.Time) pair {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: ends,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	a.next++
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(a.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	return pair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// valid issues a certificate for a month.
func (a *authority) valid() pair { return a.sign(time.Now().Add(30 * 24 * time.Hour)) }

// pool holds the authority alone.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// serial is a certificate's number.
func (p pair) serial(t testing.TB) int64 {
	block, _ := pem.Decode(p.cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert.SerialNumber.Int64()
}

// client returns a client's certificate for crypto/tls.
func (p pair) client(t testing.TB) []tls.Certificate {
	cert, err := tls.X509KeyPair(p.cert, p.key)
	require.NoError(t, err)
	return []tls.Certificate{cert}
}

// files writes the pair as tls.crt and tls.key, beside the authority's ca.crt.
func (a *authority) files(dir string, p pair) {
	write(a.t, filepath.Join(dir, "ca.crt"), a.pem)
	write(a.t, filepath.Join(dir, "tls.crt"), p.cert)
	write(a.t, filepath.Join(dir, "tls.key"), p.key)
}

func write(t testing.TB, name string, data []byte) {
	require.NoError(t, os.WriteFile(name, data, 0o600))
}
