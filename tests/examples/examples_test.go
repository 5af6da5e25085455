// Package examples runs the programs that README.md shows parts of, and asks them by HTTP.
package examples

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	burst        = 10               // requests that the examples allow at once
	startTimeout = 20 * time.Second // for a program to take connections
	pollEvery    = 20 * time.Millisecond
)

// shown is a part of an example in README.md: the file's name in a comment, then a block.
var shown = regexp.MustCompile("(?s)<!-- tests/examples/([a-z./]+) -->\n```[a-z]+\n(.*?)```\n")

// TestREADME: what README.md shows of an example stands in its file, word by word.
func TestREADME(t *testing.T) {
	for _, document := range []string{"README.md", "README.zh-CN.md"} {
		text, err := os.ReadFile(filepath.Join(harness.Root(t), document))
		require.NoError(t, err)
		blocks := shown.FindAllStringSubmatch(string(text), -1)
		require.Len(t, blocks, 3, document)
		for _, block := range blocks {
			file, err := os.ReadFile(filepath.FromSlash(block[1]))
			require.NoError(t, err)
			require.Contains(t, string(file), block[2], "%s shows something else than %s", document, block[1])
		}
	}
}

// TestNetHTTP, TestWSGI and TestExpress: ten requests pass, and the eleventh is told when to come back.
func TestNetHTTP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nethttp")
	out, err := exec.Command("go", "build", "-o", path, "./nethttp").CombinedOutput()
	require.NoError(t, err, string(out))
	requireLimited(t, exec.Command(path))
}

func TestWSGI(t *testing.T) {
	python := "/usr/bin/python3" // for which Debian's python3-redis is installed
	if err := exec.Command(python, "-c", "import redis").Run(); err != nil {
		t.Skip("redis-py is not installed: make clients installs it")
	}
	requireLimited(t, exec.Command(python, "wsgi.py"))
}

func TestExpress(t *testing.T) {
	installed := filepath.Join(harness.Root(t), "tests", "clients", "foreign", "node_modules")
	// Imports are looked for beside the program: it is copied to where its packages are.
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "node_modules"), 0o755))
	for name, from := range map[string]string{"express": "express", "redis": "redis6"} {
		if _, err := os.Stat(filepath.Join(installed, from)); err != nil {
			t.Skip("the packages of npm are not installed: make clients installs them")
		}
		require.NoError(t, os.Symlink(filepath.Join(installed, from), filepath.Join(dir, "node_modules", name)))
	}
	text, err := os.ReadFile("express.mjs")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "express.mjs"), text, 0o644))
	cmd := exec.Command("node", "express.mjs")
	cmd.Dir = dir
	requireLimited(t, cmd)
}

// requireLimited starts an example against a server of its own.
func requireLimited(t *testing.T, program *exec.Cmd) {
	t.Helper()
	server := harness.Start(t)
	port := harness.FreePort(t)
	program.Env = append(os.Environ(), "REDIS_URL=redis://"+server.Addr, "PORT="+strconv.Itoa(port))
	var printed strings.Builder
	program.Stdout, program.Stderr = &printed, &printed
	require.NoError(t, program.Start())
	ended := make(chan struct{})
	go func() {
		_ = program.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = program.Process.Kill()
		<-ended
	})
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	awaitListener(t, addr, ended, &printed)

	client := &http.Client{Timeout: harness.ReplyTimeout}
	var refused *http.Response
	for asked := 0; refused == nil; asked++ {
		require.Less(t, asked, 50*burst, "nothing was limited")
		response, err := client.Get("http://" + addr + "/")
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		if response.StatusCode == http.StatusOK {
			require.Equal(t, "hello\n", string(body))
			continue
		}
		require.GreaterOrEqual(t, asked, burst, "limited too early")
		refused = response
	}
	require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	require.Equal(t, "1", refused.Header.Get("Retry-After"), "the next unit comes after 200 ms, and the header counts seconds")
}

// awaitListener waits until a program takes connections.
func awaitListener(t *testing.T, addr string, ended <-chan struct{}, printed *strings.Builder) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(pollEvery) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			require.NoError(t, conn.Close())
			return
		}
		select {
		case <-ended:
			require.FailNow(t, "the example ended", printed.String())
		default:
		}
		require.True(t, time.Now().Before(deadline), "the example does not listen")
	}
}
