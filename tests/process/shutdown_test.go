package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

// started is a headgate that a test ends by itself.
type started struct {
	*exec.Cmd
	t    *testing.T
	addr string
	log  *lockedBuffer
}

// lockedBuffer is what a process has written so far.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startIn starts headgate on a free port with dir as its data directory.
func startIn(t *testing.T, dir string, args ...string) *started {
	t.Helper()
	return startConfigured(t, "", append([]string{"--dir", dir}, args...)...)
}

// ends wants the process to end by itself with an exit code, -1 for a signal, and returns how long it took.
func (s *started) ends(code int) time.Duration {
	s.t.Helper()
	begin := time.Now()
	done := make(chan error, 1)
	go func() { done <- s.Wait() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		require.FailNow(s.t, "the server does not end", "%s", s.log)
	}
	require.Equal(s.t, code, s.ProcessState.ExitCode(), "%s", s.log)
	return time.Since(begin)
}

// writer counts one key up until its connection ends, and knows up to where that was acknowledged.
type writer struct {
	key   string
	acked int
}

// write runs on a connection. Whole replies only may come, in order.
func (w *writer) write(conn net.Conn, running func()) error {
	defer conn.Close()
	defer running()
	go func() {
		for {
			if _, err := fmt.Fprintf(conn, "INCR %s\r\n", w.key); err != nil {
				return
			}
		}
	}()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			if line != "" {
				return fmt.Errorf("%s: half a reply %q", w.key, line)
			}
			if !errors.Is(err, io.EOF) && !harness.IsClosed(err) {
				return err
			}
			return nil
		}
		if line != fmt.Sprintf(":%d\r\n", w.acked+1) {
			return fmt.Errorf("%s: %q follows %d", w.key, line, w.acked)
		}
		w.acked++
		running()
	}
}

// TestAcknowledgedIsOnDisk: a server that is told to end while clients write over TCP and a Unix socket ends with 0, accepts nobody any
// more, and a start on its directory knows all that was acknowledged.
func TestAcknowledgedIsOnDisk(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags []string
		end   func(s *started)
	}{
		{"SIGTERM, append-only file", []string{"--appendonly", "yes", "--save", ""}, func(s *started) { s.Process.Signal(syscall.SIGTERM) }},
		{"SIGINT, snapshot", nil, func(s *started) { s.Process.Signal(syscall.SIGINT) }},
		{"SHUTDOWN, snapshot", nil, func(s *started) { _ = dialSoon(t, s.addr).Send([]byte("SHUTDOWN\r\n")) }},
		{"SHUTDOWN SAVE, no save points", []string{"--save", ""}, func(s *started) { _ = dialSoon(t, s.addr).Send([]byte("SHUTDOWN SAVE\r\n")) }},
		{"SHUTDOWN NOSAVE, append-only file", []string{"--appendonly", "yes"}, func(s *started) { _ = dialSoon(t, s.addr).Send([]byte("SHUTDOWN NOSAVE\r\n")) }},
		{"SIGTERM with shutdown-on-sigterm save", []string{"--save", "", "--shutdown-on-sigterm", "save now"}, func(s *started) { s.Process.Signal(syscall.SIGTERM) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			sock := filepath.Join(dir, "sock")
			s := startIn(t, dir, append([]string{"--unixsocket", sock}, tt.flags...)...)
			dialSoon(t, s.addr)
			writers := make([]*writer, 8)
			var running, ended sync.WaitGroup
			for i := range writers {
				network, addr := "tcp", s.addr
				if i%2 == 1 {
					network, addr = "unix", sock
				}
				conn, err := net.Dial(network, addr)
				require.NoError(t, err)
				w := &writer{key: fmt.Sprintf("counter:%d", i)}
				writers[i] = w
				running.Add(1)
				ended.Go(func() {
					if err := w.write(conn, sync.OnceFunc(running.Done)); err != nil {
						t.Error(err)
					}
				})
			}
			running.Wait()
			tt.end(s)
			took := s.ends(0)
			ended.Wait()
			_, err := net.Dial("tcp", s.addr)
			require.Error(t, err)
			_, err = net.Dial("unix", sock)
			require.Error(t, err)

			again := startIn(t, dir, tt.flags...)
			c := dialSoon(t, again.addr)
			total := 0
			for _, w := range writers {
				total += w.acked
				require.Equal(t, fmt.Sprintf("$%d\r\n%d\r\n", len(strconv.Itoa(w.acked)), w.acked), string(c.Do("GET", w.key)), "what was answered, no less and no more")
			}
			t.Logf("%d increments acknowledged; ended after %v", total, took.Round(time.Millisecond))
		})
	}
}

// TestSnapshotFails: a server whose last snapshot cannot be saved goes on, unless it is forced to end.
func TestSnapshotFails(t *testing.T) {
	dir := t.TempDir()
	s := startIn(t, dir, "--dbfilename", "dump.rdb")
	c := dialSoon(t, s.addr)
	require.Equal(t, "+OK\r\n", string(c.Do("SET", "k", "v")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dump.rdb"), 0o700)) // nothing can take its place
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dump.rdb", "x"), nil, 0o600))
	require.Equal(t, "-ERR Errors trying to SHUTDOWN. Check logs.\r\n", string(c.Do("SHUTDOWN")))
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), "the server keeps running") }, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, "$1\r\nv\r\n", string(c.Do("GET", "k")))
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "shutdown-on-sigterm", "force")))
	time.Sleep(repeatGrace)
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	s.ends(0)
}

// repeatGrace is longer than a server takes a second signal for a repetition of the first.
const repeatGrace = 1100 * time.Millisecond

// TestShutdownWaitsForScript: a signal waits for a script that overruns, and cuts it off when shutdown-timeout is over; what it has
// written is not kept by half.
func TestShutdownWaitsForScript(t *testing.T) {
	for _, tt := range []struct {
		name, script, timeout string
		kept                  bool
	}{
		{"it ends", "redis.call('INCR', 'a') for i = 1, 3e7 do local x = i end redis.call('INCR', 'b')", "60", true},
		{"it does not", "redis.call('INCR', 'a') while true do end", "1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			flags := []string{"--appendonly", "yes", "--busy-reply-threshold", "10", "--shutdown-timeout", tt.timeout}
			s := startIn(t, dir, flags...)
			c := dialSoon(t, s.addr)
			require.Equal(t, "+OK\r\n", string(c.Do("SET", "before", "1")))
			require.NoError(t, c.Send(harness.Command("EVAL", tt.script, "0")))
			other := dialSoon(t, s.addr)
			for !bytes.HasPrefix(other.Do("PING"), []byte("-BUSY")) {
				time.Sleep(time.Millisecond)
			}
			require.NoError(t, s.Process.Signal(syscall.SIGTERM))
			t.Logf("ended after %v", s.ends(0).Round(time.Millisecond))
			c = dialSoon(t, startIn(t, dir, flags...).addr)
			require.Equal(t, "$1\r\n1\r\n", string(c.Do("GET", "before")))
			a, b := string(c.Do("GET", "a")), string(c.Do("GET", "b"))
			require.Equal(t, a, b, "both or none")
			require.Equal(t, tt.kept, a == "$1\r\n1\r\n", a)
		})
	}
}

// TestShutdownTimeoutBeginsWithTheSignal, whenever other clients would be told that a script runs, or if they never were. Until it has passed, and while
// they are told, the server is not ready.
func TestShutdownTimeoutBeginsWithTheSignal(t *testing.T) {
	for threshold, before := range map[string]string{"0": "ready", "50": "BUSY: a script has been running for longer than busy-reply-threshold"} {
		t.Run(threshold, func(t *testing.T) {
			t.Parallel()
			port := fmt.Sprint(harness.FreePort(t))
			s := startIn(t, t.TempDir(), "--busy-reply-threshold", threshold, "--shutdown-timeout", "2", "--metrics-port", port)
			says := func(want string) {
				require.Eventually(t, func() bool {
					response, err := http.Get("http://127.0.0.1:" + port + "/readyz")
					if err != nil {
						return false
					}
					defer response.Body.Close()
					text, err := io.ReadAll(response.Body)
					return err == nil && strings.TrimSpace(string(text)) == want
				}, 10*time.Second, time.Millisecond, want)
			}
			says("ready")
			require.NoError(t, dialSoon(t, s.addr).Send(harness.Command("EVAL", "while true do end", "0")))
			time.Sleep(20 * time.Millisecond) // for it to begin
			says(before)
			require.NoError(t, s.Process.Signal(syscall.SIGTERM))
			says("shutting down")
			s.ends(0)
			require.Contains(t, s.log.String(), "shutdown-timeout has passed: the running script is aborted")
		})
	}
}

// TestSnapshotBesideScript: a script that only read, and did not end, had a shutdown save nothing of what others had written.
func TestSnapshotBesideScript(t *testing.T) {
	for script, want := range map[string]string{
		"while true do end":                         "$1\r\n1\r\n",
		"redis.call('INCR', 'a') while true do end": "$-1\r\n", // a snapshot would hold half of what it has written
	} {
		dir := t.TempDir()
		s := startIn(t, dir, "--save", "3600 1", "--busy-reply-threshold", "10", "--shutdown-timeout", "1")
		c := dialSoon(t, s.addr)
		require.Equal(t, "+OK\r\n", string(c.Do("SET", "before", "1")))
		require.NoError(t, c.Send(harness.Command("EVAL", script, "0")))
		other := dialSoon(t, s.addr)
		for !bytes.HasPrefix(other.Do("PING"), []byte("-BUSY")) {
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, s.Process.Signal(syscall.SIGTERM))
		s.ends(0)
		c = dialSoon(t, startIn(t, dir).addr)
		require.Equal(t, want, string(c.Do("GET", "before")), script)
		require.Equal(t, "$-1\r\n", string(c.Do("GET", "a")))
	}
}

// TestSecondSignal: while the server waits for a script, another SIGTERM changes nothing, and SIGINT ends the process at once.
func TestSecondSignal(t *testing.T) {
	s := startIn(t, t.TempDir(), "--busy-reply-threshold", "10", "--shutdown-timeout", "60")
	c := dialSoon(t, s.addr)
	require.NoError(t, c.Send(harness.Command("EVAL", "redis.call('INCR', 'a') while true do end", "0")))
	other := dialSoon(t, s.addr)
	for !bytes.HasPrefix(other.Do("PING"), []byte("-BUSY")) {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), "shutting down") }, 10*time.Second, time.Millisecond)
	time.Sleep(repeatGrace)
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	require.True(t, bytes.HasPrefix(other.Do("PING"), []byte("-BUSY")))
	require.NoError(t, s.Process.Signal(syscall.SIGINT))
	t.Logf("ended after %v", s.ends(-1).Round(time.Millisecond))
}

// startConfigured starts headgate with a file, if one is named, on a free port.
func startConfigured(t *testing.T, file string, args ...string) *started {
	t.Helper()
	port := strconv.Itoa(harness.FreePort(t))
	args = append([]string{"--port", port}, args...)
	if file != "" {
		args = append([]string{file}, args...)
	}
	s := &started{Cmd: command(t, args...), t: t, addr: "127.0.0.1:" + port, log: &lockedBuffer{}}
	s.Stdout, s.Stderr = s.log, s.log
	require.NoError(t, s.Start())
	t.Cleanup(func() { s.Process.Kill(); s.Wait() })
	return s
}

// TestGatewaySavesNothing: a gateway that ends leaves the snapshot alone that lies where it was started, which is another server's.
func TestGatewaySavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dump.rdb"), []byte("another server's"), 0o600))
	for _, end := range []func(s *started){
		func(s *started) { _ = dialSoon(t, s.addr).Send([]byte("SHUTDOWN SAVE\r\nSHUTDOWN\r\n")) },
		func(s *started) { s.Process.Signal(syscall.SIGTERM) },
	} {
		s := startIn(t, dir, "--upstream", "redis://127.0.0.1:1", "--upstream-failure", "open")
		dialSoon(t, s.addr)
		end(s)
		s.Wait()
		kept, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
		require.NoError(t, err)
		require.Equal(t, "another server's", string(kept))
	}
}
