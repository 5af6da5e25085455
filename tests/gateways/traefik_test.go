package gateways

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// traefikPath returns the program that `make traefik` builds, since Debian has none, or skips the test.
func traefikPath(t *testing.T) string {
	path := filepath.Join(harness.Root(t), "bin", "traefik")
	if _, err := os.Stat(path); err != nil {
		t.Skip("Traefik is not built: `make traefik` builds it")
	}
	return path
}

// startTraefik runs Traefik with a dynamic configuration, and returns once it routes requests by it.
func startTraefik(t *testing.T, traefik, listen, dynamic string) {
	dir := t.TempDir()
	path := write(t, dir, "dynamic.yaml", dynamic)
	run(t, listen, traefik, "--entryPoints.web.address="+listen, "--providers.file.filename="+path, "--log.level=ERROR",
		"--global.checkNewVersion=false", "--global.sendAnonymousUsage=false")
	for deadline := time.Now().Add(waitLimit); send(t, other, listen, nil).StatusCode == http.StatusNotFound; time.Sleep(20 * time.Millisecond) {
		require.False(t, time.Now().After(deadline), "Traefik knows no route")
	}
}

// Addresses of clients, of which each has a limit of its own.
const (
	one   = "127.0.0.1"
	other = "127.0.0.2"
)

// send sends one request from an address, with further fields, and returns the answer without its body.
func send(t *testing.T, from, to string, fields http.Header) *http.Response {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := http.Client{Timeout: 3 * waitLimit, Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	request, err := http.NewRequest(http.MethodPost, "http://"+to+"/hello?cost=0", strings.NewReader("body"))
	require.NoError(t, err)
	for name, values := range fields {
		request.Header[name] = values
	}
	answer, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer
}

// TestTraefik: forwardAuth asks the HTTP check, and what that answers a limited request reaches the client. Whose request it is no client can choose.
func TestTraefik(t *testing.T) {
	traefik := traefikPath(t)
	behind, reached := upstream(t)
	headgate, checks := server(t, limit)
	listen := address(t)
	startTraefik(t, traefik, listen, configuration(t, "traefik.yaml", "127.0.0.1:9122", checks, "127.0.0.1:8000", behind))
	drive(t, reached, "http://"+listen+"/hello")

	limited := send(t, one, listen, http.Header{"X-Forwarded-For": {"192.0.2.1"}, "X-Real-Ip": {"192.0.2.1"}})
	require.Equal(t, http.StatusTooManyRequests, limited.StatusCode)
	require.Equal(t, `"user";q=100;w=3600`, limited.Header.Get("RateLimit-Policy"))
	require.Contains(t, limited.Header.Get("RateLimit"), `"user";r=0;`)
	passed := send(t, other, listen, nil)
	require.Equal(t, http.StatusOK, passed.StatusCode)
	require.Empty(t, passed.Header.Get("RateLimit"))

	if *all { // it takes half a minute
		require.NoError(t, headgate.Stall())
		began := time.Now()
		require.Equal(t, http.StatusInternalServerError, send(t, other, listen, nil).StatusCode, "while headgate hangs")
		t.Logf("while headgate hangs, the answer takes %v", time.Since(began).Round(time.Second))
	}
	headgate.Kill()
	require.Equal(t, http.StatusInternalServerError, send(t, other, listen, nil).StatusCode, "when headgate is gone")
}

// TestTraefikKeys: with the key that docs/gateways.md shows, a client has the limit of the key that it sends, whatever that is, and without one that of
// its address.
func TestTraefikKeys(t *testing.T) {
	traefik := traefikPath(t)
	for name, fields := range map[string]string{"all fields": "", "listed fields": "\n        authRequestHeaders: [X-Api-Key]"} {
		t.Run(name, func(t *testing.T) {
			behind, _ := upstream(t)
			_, checks := server(t, 2)
			listen := address(t)
			startTraefik(t, traefik, listen, configuration(t, "traefik.yaml", `key={client}"`, `key={header:X-Api-Key|client}"`+fields,
				"127.0.0.1:9122", checks, "127.0.0.1:8000", behind))
			for _, key := range []string{"", "evil&cost=0", "&cost=-20", "x#", "a b%26c"} {
				for n, status := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
					sent := http.Header{"X-Forwarded-For": {"192.0.2.1"}}
					if key != "" {
						sent.Set("X-Api-Key", key)
					}
					require.Equal(t, status, send(t, one, listen, sent).StatusCode, "%q, request %d", key, n)
				}
			}
		})
	}
}

// TestTraefikRedis: Traefik's rateLimit keeps its buckets in headgate by its own script.
func TestTraefikRedis(t *testing.T) {
	traefik := traefikPath(t)
	try(t, false, func(t *testing.T, at place) { startTraefikRedis(t, traefik, at) }, "/hello")
}

// TestTraefiksShareBuckets: what two Traefiks let pass at the same time is one limit's.
func TestTraefiksShareBuckets(t *testing.T) {
	traefik := traefikPath(t)
	behind, reached := upstream(t)
	at := place{behind: behind, redis: harness.Start(t).Addr, patience: patience}
	var urls []string
	for range 2 {
		at.listen = address(t)
		startTraefikRedis(t, traefik, at)
		urls = append(urls, "http://"+at.listen+"/hello")
	}
	drive(t, reached, urls...)
}

// startTraefikRedis runs a Traefik whose buckets get nothing back within the time of a test.
func startTraefikRedis(t *testing.T, traefik string, at place) {
	startTraefik(t, traefik, at.listen, at.patient(configuration(t, "traefik-redis.yaml", "average: 100", "average: 1", "period: 1s", "period: 1h",
		"127.0.0.1:6379", at.redis, "127.0.0.1:8000", at.behind)))
}
