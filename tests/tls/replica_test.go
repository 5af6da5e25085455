package tls

import (
	"crypto/tls"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestReplicaOverTLS follows a redis-server over TLS that asks for certificates, with one that the same authority has signed, and does not follow
// one whose certificate another authority has signed.
func TestReplicaOverTLS(t *testing.T) {
	ours, other := newAuthority(t, "ours"), newAuthority(t, "other")
	primary := func(a *authority) (*harness.Client, int) {
		dir := t.TempDir()
		a.files(dir, a.valid())
		port := harness.FreePort(t)
		s := harness.StartReferenceIn(t, dir, "--tls-port", strconv.Itoa(port), "--tls-cert-file", "tls.crt", "--tls-key-file", "tls.key", "--tls-ca-cert-file", "ca.crt",
			"--repl-diskless-sync-delay", "0")
		return harness.Dial(t, s.Addr), port
	}
	p, port := primary(ours)
	p.Ask("SET", "k", "v")
	dir := t.TempDir()
	ours.files(dir, ours.valid())
	replica := harness.StartIn(t, dir, "--tls-replication", "yes", "--tls-cert-file", "tls.crt", "--tls-key-file", "tls.key", "--tls-ca-cert-file", "ca.crt",
		"--replicaof", "127.0.0.1 "+strconv.Itoa(port))
	r := harness.Dial(t, replica.Addr)
	harness.AwaitSame(t, p, r)
	require.Equal(t, "$1\r\nv\r\n", string(r.Do("GET", "k")))

	_, stranger := primary(other)
	require.Equal(t, "+OK\r\n", string(r.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(stranger))))
	require.Eventually(t, func() bool { return strings.Contains(replica.Log(), "certificate signed by unknown authority") }, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, "$1\r\nv\r\n", string(r.Do("GET", "k")))

	// Who confuses the port with TLS and the one without read of a connection that was closed, or of a deadline.
	fails := func(port, why string) {
		t.Helper()
		require.Equal(t, "+OK\r\n", string(r.Do("REPLICAOF", "127.0.0.1", port)))
		require.Eventually(t, func() bool { return strings.Contains(string(r.Do("INFO", "replication")), why+"\r\n") }, 20*time.Second, 10*time.Millisecond, "%s", replica.Log())
	}
	require.Equal(t, "+OK\r\n", string(r.Do("CONFIG", "SET", "repl-timeout", "1")))
	_, plain, err := net.SplitHostPort(harness.StartReference(t).Addr)
	require.NoError(t, err)
	fails(plain, ": its port may be one without TLS, see tls-replication")
	require.Equal(t, "+OK\r\n", string(r.Do("CONFIG", "SET", "tls-replication", "no")))
	fails(strconv.Itoa(port), ": its port may be one for TLS, see tls-replication")
}

// TestEndingPrimaryOverTLS: a replica that is behind, and goes on acknowledging while the primary ends, still gets all that there is.
func TestEndingPrimaryOverTLS(t *testing.T) {
	ours := newAuthority(t, "ours")
	dir := t.TempDir()
	ours.files(dir, ours.valid())
	port := harness.FreePort(t)
	primary := harness.StartIn(t, dir, "--tls-port", strconv.Itoa(port), "--tls-cert-file", "tls.crt", "--tls-key-file", "tls.key", "--tls-ca-cert-file", "ca.crt",
		"--tls-auth-clients", "no", "--repl-diskless-sync", "no")
	replica, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	harness.RequireReadToItsEnd(t, primary, replica)
}
