package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"headgate/tests/internal/harness"
)

// unwritable is a directory in which nobody can make a file, not even root. Each run of the tests has its own.
func unwritable() string { return fmt.Sprintf("/proc/%d", os.Getpid()) }

// TestUnwritableDirectoryIsNoticed at the start, and not by the first snapshot that fails, or after a log has been loaded.
func TestUnwritableDirectoryIsNoticed(t *testing.T) {
	const warning = "the data directory cannot be written"
	s := startIn(t, unwritable())
	c := dialSoon(t, s.addr)
	require.Contains(t, s.log.String(), warning)
	require.Equal(t, "+OK\r\n", string(c.Do("SET", "k", "v")))
	require.NoError(t, s.Process.Kill())
	s.Wait()

	_, stderr, exit := run(t, nil, "--port", fmt.Sprint(harness.FreePort(t)), "--dir", unwritable(), "--appendonly", "yes")
	require.Equal(t, 1, exit)
	require.Contains(t, stderr, warning)
	require.Contains(t, stderr, "--dir")
	require.NotContains(t, stderr, "ready")

	s = startIn(t, unwritable(), "--save", "")
	dialSoon(t, s.addr)
	require.NotContains(t, s.log.String(), warning, "nothing is going to be written")
}

// fifo makes a file that blocks whoever opens it, as a disk does that does not answer.
func fifo(t *testing.T, path ...string) {
	require.NoError(t, syscall.Mkfifo(filepath.Join(path...), 0o600))
}

// withhold makes a file that blocks whoever opens it, by a lease that is not given back (fcntl(2)).
func withhold(t *testing.T, path ...string) {
	f, err := os.OpenFile(filepath.Join(path...), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	const setLease = 1024 // F_SETLEASE of Linux
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), setLease, syscall.F_WRLCK)
	if errno != 0 {
		t.Skipf("files cannot be leased here: %v", errno)
	}
}

// logs returns when the server has logged a text.
func (s *started) logs(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return strings.Contains(s.log.String(), text) }, 10*time.Second, time.Millisecond, "%s", s.log)
}

// TestTwoInterruptsEnd the server whatever it is doing.
func TestTwoInterruptsEnd(t *testing.T) {
	t.Parallel()
	insist := func(s *started) {
		require.NoError(t, s.Process.Signal(syscall.SIGINT))
		s.logs("shutting down")
		s.interruptUntilItEnds()
	}
	script := func(t *testing.T, s *started) {
		require.NoError(t, dialSoon(t, s.addr).Send(harness.Command("EVAL", "while true do end", "0")))
		time.Sleep(20 * time.Millisecond) // for it to begin; it holds everybody up, so that nobody can be asked
	}
	for _, tt := range []struct {
		name  string
		flags []string
		dir   string
		setUp func(t *testing.T, dir string)
		state func(t *testing.T, s *started)
		end   func(s *started)
	}{
		{name: "a snapshot that fails", dir: unwritable(),
			state: func(t *testing.T, s *started) {
				require.Equal(t, "+OK\r\n", string(dialSoon(t, s.addr).Do("SET", "k", "v")))
			},
			end: func(s *started) {
				require.NoError(t, s.Process.Signal(syscall.SIGINT))
				s.logs("the server keeps running")
				s.interruptUntilItEnds()
			}},
		{name: "a snapshot that the disk does not take",
			state: func(t *testing.T, s *started) {
				require.Equal(t, "+OK\r\n", string(dialSoon(t, s.addr).Do("SET", "k", "v")))
				fifo(t, s.Dir, "dump.rdb.tmp")
			}},
		{name: "SAVE that the disk does not take",
			state: func(t *testing.T, s *started) {
				c := dialSoon(t, s.addr)
				fifo(t, s.Dir, "dump.rdb.tmp")
				require.NoError(t, c.Send(harness.Command("SAVE")))
				time.Sleep(20 * time.Millisecond)
			}},
		{name: "loading a snapshot that the disk does not give",
			setUp: func(t *testing.T, dir string) { withhold(t, dir, "dump.rdb") },
			state: func(_ *testing.T, s *started) { s.logs("accepts connections") }},
		{name: "loading a log that the disk does not give", flags: []string{"--appendonly", "yes"},
			setUp: func(t *testing.T, dir string) { withhold(t, dir, "appendonly.aof") },
			state: func(_ *testing.T, s *started) { s.logs("accepts connections") }},
		{name: "a script that lets nobody in", flags: []string{"--busy-reply-threshold", "0"}, state: script},
		{name: "a reload behind a script", flags: []string{"--busy-reply-threshold", "0"}, state: script,
			end: func(s *started) {
				require.NoError(t, s.Process.Signal(syscall.SIGHUP))
				time.Sleep(20 * time.Millisecond)
				insist(s)
			}},
		{name: "two different signals", flags: []string{"--busy-reply-threshold", "0"}, state: script,
			end: func(s *started) {
				require.NoError(t, s.Process.Signal(syscall.SIGTERM))
				s.logs("shutting down")
				s.interruptUntilItEnds()
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // each waits until a second signal counts
			dir := tt.dir
			if dir == "" {
				dir = t.TempDir()
			}
			if tt.setUp != nil {
				tt.setUp(t, dir)
			}
			s := startIn(t, dir, tt.flags...)
			s.Dir = dir
			tt.state(t, s)
			if tt.end == nil {
				tt.end = insist
			}
			tt.end(s)
		})
	}
}

// TestTwoInterruptsEndTheFirstProcess of a container, for which the kernel drops signals that it does not handle.
func TestTwoInterruptsEndTheFirstProcess(t *testing.T) {
	t.Parallel()
	port := fmt.Sprint(harness.FreePort(t))
	cmd := command(t, "--port", port)
	s := &started{Cmd: cmd, t: t, log: &lockedBuffer{}}
	s.Stdout, s.Stderr = s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if err := s.Start(); err != nil {
		t.Skipf("no user may make namespaces on this machine: %v", err)
	}
	t.Cleanup(func() { s.Process.Kill(); s.Wait() })
	require.Equal(t, "+OK\r\n", string(dialSoon(t, "127.0.0.1:"+port).Do("SET", "k", "v")))
	fifo(t, cmd.Dir, "dump.rdb.tmp")
	require.NoError(t, s.Process.Signal(syscall.SIGINT))
	s.logs("shutting down")
	s.interruptUntilItEnds()
}

// TestTwoInterruptsEndWhenNobodyReadsTheLog: a log that goes to a full pipe keeps whoever writes to it waiting.
func TestTwoInterruptsEndWhenNobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { read.Close() })
	port := fmt.Sprint(harness.FreePort(t))
	cmd := command(t, "--port", port)
	cmd.Stderr = write
	require.NoError(t, cmd.Start())
	s := &started{Cmd: cmd, t: t, log: &lockedBuffer{}}
	t.Cleanup(func() { s.Process.Kill(); s.Wait() })
	require.Equal(t, "+PONG\r\n", string(dialSoon(t, "127.0.0.1:"+port).Do("PING")))
	go write.Write(make([]byte, 1<<20)) // which never ends: the pipe is full before
	const line = 1 << 10
	before := 0
	require.Eventually(t, func() bool {
		waiting, err := unix.IoctlGetInt(int(read.Fd()), unix.TIOCINQ)
		full := err == nil && waiting == before && waiting > line
		before = waiting
		return full
	}, 10*time.Second, 50*time.Millisecond)
	require.NoError(t, s.Process.Signal(syscall.SIGINT))
	time.Sleep(50 * time.Millisecond)
	s.interruptUntilItEnds()
}

// TestTwoTerminationsSaveTheData: timeout(1) sends SIGTERM to the process and to its group, and the second is no reason to lose the snapshot.
func TestTwoTerminationsSaveTheData(t *testing.T) {
	dir := t.TempDir()
	s := startIn(t, dir)
	require.Equal(t, "+OK\r\n", string(dialSoon(t, s.addr).Do("SET", "k", "v")))
	snapshot := filepath.Join(dir, "dump.rdb.tmp")
	fifo(t, snapshot) // so that the shutdown is under way when the second signal comes
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	s.logs("shutting down")
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	time.Sleep(20 * time.Millisecond) // for a process that ends to end
	reader, err := os.OpenFile(snapshot, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() { reader.Close() })
	s.logs("the server keeps running") // a snapshot cannot be synced to a pipe
	require.Equal(t, "+OK\r\n", string(dialSoon(t, s.addr).Do("SAVE")))
}

// interruptUntilItEnds sends SIGINT again and again, as somebody at a keyboard does, and wants the process to end, in whatever way. Those that follow
// the first signal closely are without effect.
func (s *started) interruptUntilItEnds() {
	s.t.Helper()
	done := make(chan struct{})
	go func() { s.Wait(); close(done) }()
	for range 100 {
		select {
		case <-done:
			return
		case <-time.After(100 * time.Millisecond):
			_ = s.Process.Signal(syscall.SIGINT) // the process may have ended
		}
	}
	require.FailNow(s.t, "the server does not end", "%s", s.log)
}
