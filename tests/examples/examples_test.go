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
	startTimeout = 20 * time.Second // for a program to take connections, and to ask its limiter
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
			require.LessOrEqual(t, strings.Count(block[2], "\n"), 12, "%s is to be read standing: %s is long", document, block[1])
		}
	}
}

// TestNetHTTP, TestWSGI, TestExpress and TestFastify: ten requests pass, and the eleventh is told when to come back. Without an answer of the limiter all pass.
func TestNetHTTP(t *testing.T) {
	t.Parallel() // each waits a second, after which a limiter is asked again
	path := filepath.Join(t.TempDir(), "nethttp")
	out, err := exec.Command("go", "build", "-o", path, "./nethttp").CombinedOutput()
	require.NoError(t, err, string(out))
	requireLimited(t, exec.Command(path))
}

func TestWSGI(t *testing.T) {
	t.Parallel()
	python := "/usr/bin/python3" // for which Debian's python3-redis is installed
	if err := exec.Command(python, "-c", "import redis").Run(); err != nil {
		t.Skip("redis-py is not installed: make clients installs it")
	}
	requireLimited(t, exec.Command(python, "wsgi.py"))
}

func TestExpress(t *testing.T) {
	t.Parallel()
	requireLimited(t, nodeProgram(t, "express"))
}

func TestFastify(t *testing.T) {
	t.Parallel()
	requireLimited(t, nodeProgram(t, "fastify"))
}

// nodeProgram is the example that uses a framework of this name. Imports are looked for beside a program: it is copied to where its packages are.
func nodeProgram(t *testing.T, framework string) *exec.Cmd {
	t.Helper()
	installed := filepath.Join(harness.Root(t), "tests", "clients", "foreign", "node_modules")
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "node_modules"), 0o755))
	for name, from := range map[string]string{framework: framework, "redis": "redis6"} {
		if _, err := os.Stat(filepath.Join(installed, from)); err != nil {
			t.Skip("the packages of npm are not installed: make clients installs them")
		}
		require.NoError(t, os.Symlink(filepath.Join(installed, from), filepath.Join(dir, "node_modules", name)))
	}
	for _, file := range []string{framework + ".mjs", "limiter.mjs"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o644))
	}
	cmd := exec.Command("node", framework+".mjs")
	cmd.Dir = dir
	return cmd
}

// requireLimited starts an example before its limiter is there: requests pass. With the limiter they are limited, and they pass again when it
// is there but does not answer, and when it is gone.
func requireLimited(t *testing.T, program *exec.Cmd) {
	t.Helper()
	server := harness.Start(t)
	server.Kill()
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
		if t.Failed() {
			t.Log(printed.String())
		}
	})
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	awaitListener(t, addr, ended)

	client := &http.Client{Timeout: harness.ReplyTimeout}
	// ask sends requests until one is refused, which it returns, and n at most.
	ask := func(n int) (passed int, refused *http.Response) {
		for range n {
			response, err := client.Get("http://" + addr + "/")
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			if response.StatusCode != http.StatusOK {
				return passed, response
			}
			require.Equal(t, "hello\n", string(body))
			passed++
		}
		return passed, nil
	}
	requireAllPass := func(when string) {
		_, refused := ask(2 * burst)
		require.Nil(t, refused, when)
	}
	requireAllPass("without a limiter")

	server = harness.Again(t, server)
	var refused *http.Response
	for passed, deadline := 0, time.Now().Add(startTimeout); refused == nil; time.Sleep(pollEvery) {
		var n int
		n, refused = ask(2 * burst)
		passed += n
		require.True(t, refused == nil || passed >= burst, "limited too early")
		require.True(t, time.Now().Before(deadline), "nothing was limited")
	}
	require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	require.Equal(t, "1", refused.Header.Get("Retry-After"), "the next unit comes after 200 ms, and the header counts seconds")

	require.NoError(t, server.Stall())
	requireAllPass("while the limiter does not answer")
	server.Kill()
	requireAllPass("when the limiter is gone")
}

// awaitListener waits until a program takes connections.
func awaitListener(t *testing.T, addr string, ended <-chan struct{}) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(pollEvery) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			require.NoError(t, conn.Close())
			return
		}
		select {
		case <-ended:
			require.FailNow(t, "the example ended")
		default:
		}
		require.True(t, time.Now().Before(deadline), "the example does not listen")
	}
}
