// Package process tests the headgate program as a person or a supervisor meets it: how it starts, what it says when it cannot, how
// it ends.
package process

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// run runs headgate with arguments until it ends by itself.
func run(t *testing.T, env []string, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, harness.Binary(t), args...)
	cmd.Env = append(harness.Environment(), env...)
	cmd.Dir = t.TempDir()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	require.NoError(t, ctx.Err(), "headgate did not end by itself")
	if err != nil {
		var failed *exec.ExitError
		require.ErrorAs(t, err, &failed)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// command returns a headgate to be started, in an environment without directives and a directory of its own, where it leaves a
// snapshot when it ends.
func command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.Command(harness.Binary(t), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = harness.Environment()
	return cmd
}

// TestStartUpErrors: one line that says what is wrong and what to do about it.
func TestStartUpErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	takenPort := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.conf")
	require.NoError(t, os.WriteFile(bad, []byte("# comment\nmaxclient 10\n"), 0o644))

	for _, tc := range []struct {
		name string
		args []string
		says []string
	}{
		{"port in use", []string{"--port", takenPort}, []string{takenPort, "in use", "--port"}},
		{"unknown flag", []string{"--prot", "7000"}, []string{"prot", "port"}},
		{"bad value", []string{"--port", "700000"}, []string{"port", "65535"}},
		{"missing file", []string{filepath.Join(dir, "none.conf")}, []string{"none.conf", "no such file"}},
		{"unreadable file", []string{dir}, []string{dir}},
		{"unknown directive in a file", []string{bad}, []string{"bad.conf", "2", "maxclient", "maxclients"}},
		{"no such address", []string{"--bind", "192.0.2.77", "--port", "0"}, []string{"nothing to listen on"}},
		{"foreign address", []string{"--bind", "192.0.2.77", "--port", strconv.Itoa(harness.FreePort(t))}, []string{"192.0.2.77", "--bind"}},
		{"socket in a missing directory", []string{"--port", "0", "--unixsocket", filepath.Join(dir, "no", "sock")}, []string{"unixsocket"}},
		{"a directory name that is a path", []string{"--appenddirname", "a/b", "--port", "0"}, []string{"appenddirname", "path"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, stderr, exit := run(t, nil, tc.args...)
			require.Equal(t, 1, exit, stderr)
			require.Equal(t, 1, strings.Count(strings.TrimSpace(stderr), "\n")+1, "one line, not:\n%s", stderr)
			for _, part := range tc.says {
				require.Contains(t, stderr, part)
			}
		})
	}
}

func TestHelpVersionAndCheck(t *testing.T) {
	out, _, exit := run(t, nil, "--help")
	require.Zero(t, exit)
	require.Contains(t, out, "--maxclients")
	require.Contains(t, out, "headgate ping")
	out, _, exit = run(t, nil, "version")
	require.Zero(t, exit)
	require.Contains(t, out, "headgate")
	_, _, exit = run(t, nil, "--check-config", "--port", "7000")
	require.Zero(t, exit)
	_, _, exit = run(t, nil, "--check-config", "--port", "7000", "--check-config")
	require.Zero(t, exit, "once or twice is the same")
	_, _, exit = run(t, nil, "--check-config", "--port", "x")
	require.Equal(t, 1, exit)
}

func TestPing(t *testing.T) {
	s := harness.Start(t)
	_, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	nobody := strconv.Itoa(harness.FreePort(t))
	for _, words := range [][]string{{"--bind", "127.0.0.1", "--port"}, {"-h", "127.0.0.1", "-p"}} {
		_, _, exit := run(t, nil, append(append([]string{"ping"}, words...), port)...)
		require.Zero(t, exit, words)
		_, stderr, exit := run(t, nil, append(append([]string{"ping"}, words...), nobody)...)
		require.Equal(t, 1, exit, words)
		require.NotEmpty(t, stderr)
	}
}

// TestEnvironment: flags win over the environment, the environment over the file.
func TestEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headgate.conf")
	require.NoError(t, os.WriteFile(file, []byte("timeout 11\nmaxclients 101\ntcp-keepalive 61\n"), 0o644))
	port := strconv.Itoa(harness.FreePort(t))
	cmd := command(t, file, "--timeout", "13", "--port", port)
	cmd.Env = append(cmd.Env, "HEADGATE_TIMEOUT=12", "HEADGATE_MAXCLIENTS=102")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	c := dialSoon(t, "127.0.0.1:"+port)
	for name, want := range map[string]string{"timeout": "13", "maxclients": "102", "tcp-keepalive": "61"} {
		require.Contains(t, string(c.Do("CONFIG", "GET", name)), "\r\n"+want+"\r\n", name)
	}
}

// dialSoon connects to a server that is starting, and returns when it has loaded its data.
func dialSoon(t *testing.T, addr string) *harness.Client {
	t.Helper()
	const attempts, pause = 200, 20 * time.Millisecond
	var c *harness.Client
	var err error
	for range attempts {
		if c == nil {
			c, err = harness.TryDial(t, addr)
		}
		if c != nil && !bytes.HasPrefix(c.Do("PING"), []byte("-LOADING")) {
			return c
		}
		time.Sleep(pause)
	}
	require.NoError(t, err)
	require.FailNow(t, "it is still loading", addr)
	return nil
}

// TestTerminateUnderLoad: what was read is answered, whole replies only, and the exit code is 0.
func TestTerminateUnderLoad(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			port := strconv.Itoa(harness.FreePort(t))
			cmd := command(t, "--port", port)
			var log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &log, &log
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { cmd.Process.Kill() })
			dialSoon(t, "127.0.0.1:"+port)

			replies := make(chan []byte, 20)
			var served sync.WaitGroup
			served.Add(cap(replies))
			for i := range cap(replies) {
				conn, err := net.Dial("tcp", "127.0.0.1:"+port)
				require.NoError(t, err)
				go func() {
					defer conn.Close()
					go func() {
						for {
							if _, err := fmt.Fprintf(conn, "INCR counter:%d\r\n", i); err != nil {
								return
							}
						}
					}()
					r := bufio.NewReader(conn)
					_, err := r.Peek(1)
					served.Done()
					got, _ := io.ReadAll(r)
					if err == nil {
						replies <- got
					} else {
						replies <- nil
					}
				}()
			}
			served.Wait()
			time.Sleep(50 * time.Millisecond)
			begin := time.Now()
			require.NoError(t, cmd.Process.Signal(sig))
			require.NoError(t, cmd.Wait(), "exit code must be 0; log:\n%s", log.String())
			t.Logf("exited after %v", time.Since(begin).Round(time.Millisecond))
			for range cap(replies) {
				got := <-replies
				require.NotEmpty(t, got)
				n := 0
				for line := range bytes.Lines(got) {
					n++
					require.Equal(t, fmt.Sprintf(":%d\r\n", n), string(line))
				}
			}
		})
	}
}

// TestReload: SIGHUP re-reads the file's settable directives; a file with a mistake changes nothing.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headgate.conf")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o644)) }
	write("timeout 100\n")
	port := strconv.Itoa(harness.FreePort(t))
	cmd := command(t, file, "--port", port)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	c := dialSoon(t, "127.0.0.1:"+port)
	timeout := func() string { return string(c.Do("CONFIG", "GET", "timeout")) }
	require.Contains(t, timeout(), "\r\n100\r\n")

	write("timeout 200\n")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool { return strings.Contains(timeout(), "\r\n200\r\n") }, 5*time.Second, 10*time.Millisecond)

	write("timeout nonsense\n")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	time.Sleep(200 * time.Millisecond)
	require.Contains(t, timeout(), "\r\n200\r\n")
}

// TestReloadBeforeTheStart: a SIGHUP while the configuration was being read ended the process, without a word.
func TestReloadBeforeTheStart(t *testing.T) {
	dir, port := t.TempDir(), strconv.Itoa(harness.FreePort(t))
	fifo(t, dir, "headgate.conf")
	path := filepath.Join(dir, "headgate.conf")
	cmd := command(t, path, "--port", port)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // until the server reads it
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	_, err = f.WriteString("timeout 100\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Contains(t, string(dialSoon(t, "127.0.0.1:"+port).Do("CONFIG", "GET", "timeout")), "\r\n100\r\n")
}

// TestUnusedLog: a start without its append-only file says what it loads in its place.
func TestUnusedLog(t *testing.T) {
	dir := t.TempDir()
	s := startIn(t, dir, "--appendonly", "yes", "--save", "")
	require.Equal(t, "+OK\r\n", string(dialSoon(t, s.addr).Do("SET", "k", "v")))
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	s.ends(0)
	for _, loaded := range []string{"nothing", "dump.rdb"} {
		s = startIn(t, dir, "--save", "")
		c := dialSoon(t, s.addr)
		require.Contains(t, s.log.String(), `"loaded":"`+loaded+`"`)
		require.Equal(t, "+OK\r\n", string(c.Do("SAVE")))
		require.NoError(t, s.Process.Signal(syscall.SIGTERM))
		s.ends(0)
	}
}

// TestSockets: IPv4, IPv6 and a Unix socket at once, on one keyspace.
func TestSockets(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "headgate.sock")
	port := strconv.Itoa(harness.FreePort(t))
	cmd := command(t, "--port", port, "--bind", "127.0.0.1", "-::1", "--unixsocket", sock, "--unixsocketperm", "700")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	require.Equal(t, "+OK\r\n", string(dialSoon(t, "127.0.0.1:"+port).Do("SET", "shared", "yes")))
	addrs := []string{sock}
	if ln, err := net.Listen("tcp6", "[::1]:0"); err == nil { // a machine without IPv6 has one address less to test
		ln.Close()
		addrs = append(addrs, "[::1]:"+port)
	}
	for _, addr := range addrs {
		require.Equal(t, "$3\r\nyes\r\n", string(dialSoon(t, addr).Do("GET", "shared")), addr)
	}
	info, err := os.Stat(sock)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
