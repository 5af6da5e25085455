// Package gateways runs real gateways against headgate: each with the configuration that the documentation shows, and with real HTTP requests. A
// gateway that is not installed is skipped; `make gateways` installs those that Debian has.
package gateways

import (
	"fmt"
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

// program returns the path of a program, or skips the test.
func program(t *testing.T, name, packages string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: scripts/deps.sh %s:%s brings it", name, name, packages)
	}
	return path
}

// example returns the first block of a section of docs/http.md, with the addresses that it has replaced by those of this run.
func example(t *testing.T, section string, replace ...string) string {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "http.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	require.True(t, found, "docs/http.md has no section %s", section)
	_, rest, _ = strings.Cut(rest, "```\n")
	block, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, block, replace[i], "docs/http.md, section %s", section)
		block = strings.ReplaceAll(block, replace[i], replace[i+1])
	}
	return block
}

// upstream counts what reaches the service behind the gateway.
func upstream(t *testing.T) (addr string, reached *atomic.Int64) {
	reached = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		_, _ = io.WriteString(w, "hello\n")
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), reached
}

// server runs headgate with the policy user and an HTTP check at addr.
func server(t *testing.T) (addr string) {
	port := harness.FreePort(t)
	harness.Start(t, "--http-port", strconv.Itoa(port), "--policy", "user", "FIXED", strconv.Itoa(limit), "1h")
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
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

// drive sends requests of many clients through a gateway, and demands that exactly as many pass as the limit allows.
func drive(t *testing.T, addr string, reached *atomic.Int64) {
	var statuses [600]atomic.Int64
	var retry atomic.Int64
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			client := http.Client{Timeout: waitLimit, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for range each {
				answer, err := client.Get("http://" + addr + "/hello")
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
	require.EqualValues(t, limit, reached.Load(), "requests that reach the service")
	require.EqualValues(t, clients*each-limit, retry.Load(), "limited requests are told when to come again")
}

func TestNginx(t *testing.T) {
	nginx := program(t, "nginx", "nginx-light")
	behind, reached := upstream(t)
	listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(harness.FreePort(t)))
	dir := t.TempDir()
	locations := example(t, "nginx", "127.0.0.1:9122", server(t), "127.0.0.1:8000", behind)
	config := fmt.Sprintf(`
pid %[1]s/pid;
error_log stderr warn;
events {}
http {
    access_log off;
    client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
    server {
        listen %[2]s;
        %[3]s
    }
}`, dir, listen, locations)
	path := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	run(t, listen, nginx, "-p", dir, "-c", path, "-e", "stderr", "-g", "daemon off;")
	drive(t, listen, reached)
}

func TestCaddy(t *testing.T) {
	caddy := program(t, "caddy", "caddy")
	behind, reached := upstream(t)
	listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(harness.FreePort(t)))
	site := example(t, "Caddy", ":8080", "http://"+listen, "127.0.0.1:9122", server(t), "127.0.0.1:8000", behind)
	path := filepath.Join(t.TempDir(), "Caddyfile")
	require.NoError(t, os.WriteFile(path, []byte("{\n\tadmin off\n}\n"+site), 0o600))
	run(t, listen, caddy, "run", "--adapter", "caddyfile", "--config", path)
	drive(t, listen, reached)
}
