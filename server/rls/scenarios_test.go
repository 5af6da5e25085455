package rls_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"

	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/servertest"
)

// What the integration tests of envoyproxy/ratelimit go through, told anew. What they look at beside that is not here for a reason:
//
//   - Redis of each kind (alone, cluster, sentinel, TLS, a second one for limits by the second), memcached and the cache in memory before them: state is
//     kept here. Redis as a cluster and behind sentinels are what `upstream` has tests of.
//   - the counters that statsd is sent, and tags for them: headgate_policy_calls_total counts each limit.
//   - rules that a management server sends by xDS: rules are files here.

// scenarioFiles are rules as envoyproxy/ratelimit's tests have them, a file for each domain.
var scenarioFiles = map[string]string{
	"plain.yaml": `
domain: plain
descriptors:
  - key: fast
    rate_limit: {unit: second, requests_per_unit: 50}
`,
	"mixed.yaml": `
domain: mixed
descriptors:
  - key: minutely
    rate_limit: {unit: minute, requests_per_unit: 20}
  - key: hourly
    rate_limit: {unit: hour, requests_per_unit: 10}
  - key: daily
    rate_limit: {unit: day, requests_per_unit: 20}
`,
	"shared.yaml": `
domain: shared
descriptors:
  - key: together
    value: docs/*
    share_threshold: true
    rate_limit: {unit: hour, requests_per_unit: 10}
  - key: apart
    value: docs/*
    rate_limit: {unit: hour, requests_per_unit: 10}
`,
}

// openScenario starts a server with these rules in a directory. For its limits the time stands still.
func openScenario(t *testing.T) (srv *server.Server, client rls.RateLimitServiceClient, dir string) {
	dir = t.TempDir()
	for name, text := range scenarioFiles {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	now := time.Now().UnixNano()
	still := server.Options{Clock: command.NewClock(func() (wall, mono int64) { return now, now })}
	srv, client, _, _ = openWith(t, still, func(cfg *config.Config) { cfg.RLSConfig = dir })
	return srv, client, dir
}

// in is a request of a domain.
func in(domain string, words ...string) *rls.RateLimitRequest {
	r := request(words...)
	r.Domain = domain
	return r
}

// said is what a descriptor is answered, but for when its limit is back.
func said(t *testing.T, each *rls.RateLimitResponse_DescriptorStatus) string {
	t.Helper()
	if each.CurrentLimit == nil {
		require.Nil(t, each.DurationUntilReset)
		return each.Code.String()
	}
	require.Positive(t, each.DurationUntilReset.GetSeconds())
	return fmt.Sprintf("%s of %d per %s, %d remain", each.Code, each.CurrentLimit.RequestsPerUnit, each.CurrentLimit.Unit, each.LimitRemaining)
}

// TestScenarioLimits: a domain and a descriptor without rules, a limit by the second, one that is reached and goes on being reached, and the counts of both.
func TestScenarioLimits(t *testing.T) {
	srv, client, _ := openScenario(t)
	a := ask(t, client, in("nowhere", "fast", "x"))
	require.Equal(t, rls.RateLimitResponse_OK, a.OverallCode)
	require.Equal(t, "OK", said(t, a.Statuses[0]))
	require.Zero(t, a.Statuses[0].LimitRemaining)

	a = ask(t, client, in("plain", "fast", "x"))
	require.Equal(t, rls.RateLimitResponse_OK, a.OverallCode)
	require.Equal(t, "OK of 50 per SECOND, 49 remain", said(t, a.Statuses[0]))

	for i := range 25 {
		a = ask(t, client, in("mixed", "minutely", "x"))
		want, code := fmt.Sprintf("OK of 20 per MINUTE, %d remain", 20-1-i), rls.RateLimitResponse_OK
		if i >= 20 {
			want, code = "OVER_LIMIT of 20 per MINUTE, 0 remain", rls.RateLimitResponse_OVER_LIMIT
		}
		require.Equal(t, code, a.OverallCode)
		require.Equal(t, want, said(t, a.Statuses[0]))
		series := servertest.Scrape(t, srv)
		require.EqualValues(t, min(i+1, 20), series[`headgate_policy_calls_total{policy="mixed.minutely",result="allowed"}`])
		require.EqualValues(t, max(0, i-19), series[`headgate_policy_calls_total{policy="mixed.minutely",result="limited"}`])
	}
}

// TestScenarioTwoLimits: when one of two limits is reached, the other one is charged nothing any more. That is what envoyproxy/ratelimit does with
// STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT; without, it goes on counting refused requests in both, which would let a client that does not stop asking use up
// what others may.
func TestScenarioTwoLimits(t *testing.T) {
	_, client, _ := openScenario(t)
	for i := range 15 {
		a := ask(t, client, in("mixed", "minutely", "y", "hourly", "y"))
		passed := min(i+1, 10)
		want, code := fmt.Sprintf("OK of 10 per HOUR, %d remain", 10-passed), rls.RateLimitResponse_OK
		if i >= 10 {
			want, code = "OVER_LIMIT of 10 per HOUR, 0 remain", rls.RateLimitResponse_OVER_LIMIT
		}
		require.Equal(t, code, a.OverallCode)
		require.Equal(t, fmt.Sprintf("OK of 20 per MINUTE, %d remain", 20-passed), said(t, a.Statuses[0]))
		require.Equal(t, want, said(t, a.Statuses[1]))
	}
}

// TestScenarioReset: when a limit is back comes nearer.
func TestScenarioReset(t *testing.T) {
	_, client, _ := openScenario(t)
	reset := func() int64 { return ask(t, client, in("mixed", "daily", "z")).Statuses[0].DurationUntilReset.Seconds }
	first := reset()
	require.LessOrEqual(t, first, int64(24*3600))
	require.Eventually(t, func() bool {
		next := reset()
		nearer := next < first
		first = next // also that of another day
		return nearer
	}, 20*time.Second, 50*time.Millisecond)
}

// TestScenarioSharedThreshold: values that a wildcard matches have one limit together if it says so, and else each its own.
func TestScenarioSharedThreshold(t *testing.T) {
	_, client, _ := openScenario(t)
	for i := range 10 {
		a := ask(t, client, in("shared", "together", "docs/a"+strconv.Itoa(i%2)))
		require.Equal(t, fmt.Sprintf("OK of 10 per HOUR, %d remain", 9-i), said(t, a.Statuses[0]))
	}
	a := ask(t, client, in("shared", "together", "docs/b"))
	require.Equal(t, rls.RateLimitResponse_OVER_LIMIT, a.OverallCode)
	require.Equal(t, "OVER_LIMIT of 10 per HOUR, 0 remain", said(t, a.Statuses[0]))
	for i := range 10 {
		a := ask(t, client, in("shared", "apart", "docs/"+strconv.Itoa(i)))
		require.Equal(t, "OK of 10 per HOUR, 9 remain", said(t, a.Statuses[0]))
	}
}

// TestScenarioFilesComeAndGo: a file that is added to the directory is read, and what it says holds until it is removed.
func TestScenarioFilesComeAndGo(t *testing.T) {
	srv, client, dir := openScenario(t)
	require.Equal(t, "OK", said(t, ask(t, client, in("added", "shut", "x")).Statuses[0]))
	text := "domain: added\ndescriptors:\n- {key: fast, rate_limit: {unit: second, requests_per_unit: 50}}\n- {key: shut, rate_limit: {unit: second, requests_per_unit: 0}}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), []byte(text), 0o600))
	require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "added.yaml")))
	require.Eventually(t, func() bool { return srv.Envoy.Counts().Reloads.Load() == 1 }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, "OK of 50 per SECOND, 49 remain", said(t, ask(t, client, in("added", "fast", "x")).Statuses[0]))
	require.Equal(t, "OVER_LIMIT of 0 per SECOND, 0 remain", said(t, ask(t, client, in("added", "shut", "x")).Statuses[0]))
	require.NoError(t, os.Remove(filepath.Join(dir, "added.yaml")))
	require.Eventually(t, func() bool { return srv.Envoy.Counts().Reloads.Load() == 2 }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, "OK", said(t, ask(t, client, in("added", "shut", "x")).Statuses[0]))
}

// TestScenarioCertificateChanges: a certificate that is replaced while the server runs is shown to those who connect from then on; one that does not fit its
// key is not.
func TestScenarioCertificateChanges(t *testing.T) {
	dir := t.TempDir()
	cert, key, before := pair(t, dir, "server")
	nextCert, nextKey, after := pair(t, dir, "next")
	port := 0
	log := &lines{Handler: slog.DiscardHandler}
	openServer(t, func(cfg *config.Config) {
		cfg.RLSTLS, cfg.TLSCertFile, cfg.TLSKeyFile, cfg.TLSAuthClients = true, cert, key, config.TLSAuthNo
		port = cfg.RLSPort
	}, slog.New(log))
	shows := func(wanted *x509.Certificate) bool {
		pool := x509.NewCertPool()
		pool.AddCert(wanted)
		conn, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}})
		if err != nil {
			return false
		}
		defer conn.Close()
		require.Equal(t, "h2", conn.ConnectionState().NegotiatedProtocol)
		return conn.ConnectionState().PeerCertificates[0].Equal(wanted)
	}
	require.True(t, shows(before))
	require.False(t, shows(after))
	require.NoError(t, os.Rename(nextCert, cert))
	require.Eventually(t, func() bool { return len(log.with("cannot be used by the rate limit service")) > 0 }, 20*time.Second, 20*time.Millisecond)
	require.True(t, shows(before), "the key is not there yet")
	require.NoError(t, os.Rename(nextKey, key))
	require.Eventually(t, func() bool { return shows(after) }, 20*time.Second, 50*time.Millisecond)
	require.False(t, shows(before))
	require.Len(t, log.with("cannot be used by the rate limit service"), 1)
}
