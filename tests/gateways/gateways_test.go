// Package gateways runs real gateways against headgate: each with its configuration of deploy/gateways, which the documentation leads to, and with real
// requests. A gateway that is not installed is skipped; `make gateways` installs those that Debian has, and builds Traefik.
package gateways

import (
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	limit   = 100 // requests that pass, within an hour
	clients = 50
	each    = 10
)

// waitLimit is how long a gateway may take to start or to end.
const waitLimit = 20 * time.Second

var all = flag.Bool("gateways.all", false, "also run the gateways that take seconds to start")

// slow skips a test that is for `make gateways`.
func slow(t *testing.T) {
	if !*all {
		t.Skip("this gateway takes seconds to start: see `make gateways`")
	}
}

// program returns the path of a program, or skips the test. files are what it needs beside itself.
func program(t *testing.T, name string, files ...string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: `make gateways` brings it", name)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("%s is not installed: `make gateways` brings it", file)
		}
	}
	return path
}

// configuration returns a file of deploy/gateways, with the addresses that it has replaced by those of this run.
func configuration(t *testing.T, name string, replace ...string) string {
	text, err := os.ReadFile(filepath.Join(harness.Root(t), "deploy", "gateways", name))
	require.NoError(t, err)
	content := string(text)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, content, replace[i], name)
		content = strings.ReplaceAll(content, replace[i], replace[i+1])
	}
	return content
}

// write writes a file for a gateway, which may run as another user, and returns its path.
func write(t *testing.T, dir, name, content string) string {
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// address is an address of this machine that nobody listens on.
func address(t *testing.T) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(harness.FreePort(t)))
}

// split parts an address.
func split(t *testing.T, addr string) (host, port string) {
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return host, port
}

// upstream counts what reaches the service behind the gateway.
func upstream(t *testing.T) (addr string, reached *atomic.Int64) {
	reached = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		w.Header().Set("Cache-Control", "no-store") // for gateways that cache
		_, _ = io.WriteString(w, "hello\n")
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), reached
}

// server runs headgate with the policy user, so many requests an hour. It answers checks at another address than Redis's protocol.
func server(t *testing.T, limit int) (started *harness.Server, checks string) {
	checks = address(t)
	_, port := split(t, checks)
	return harness.Start(t, "--http-port", port, "--policy", "user", "FIXED", strconv.Itoa(limit), "1h"), checks
}

// run starts a gateway and returns once it listens. It is ended with the test.
func run(t *testing.T, listens string, name string, args ...string) {
	cmd := exec.Command(name, args...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(waitLimit):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Log(output.String())
		}
	})
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", listens)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s has ended: %v\n%s", name, err, output.String())
		default:
		}
		require.False(t, time.Now().After(deadline), "%s does not listen", name)
	}
}

// drive sends requests of many clients through a gateway, or through several that share a limit, and demands that exactly as many pass as it allows.
func drive(t *testing.T, reached *atomic.Int64, urls ...string) {
	before := reached.Load()
	var statuses [600]atomic.Int64
	var retry atomic.Int64
	var group sync.WaitGroup
	for i := range clients {
		url := urls[i%len(urls)]
		group.Go(func() {
			client := http.Client{Timeout: waitLimit, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for range each {
				answer, err := client.Get(url)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				statuses[answer.StatusCode].Add(1)
				if answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") != "" {
					retry.Add(1)
				}
			}
		})
	}
	group.Wait()
	require.EqualValues(t, limit, statuses[http.StatusOK].Load(), "requests that pass")
	require.EqualValues(t, clients*each-limit, statuses[http.StatusTooManyRequests].Load(), "requests that are limited")
	require.EqualValues(t, limit, reached.Load()-before, "requests that reach the service")
	require.EqualValues(t, clients*each-limit, retry.Load(), "limited requests are told when to come again")
}
