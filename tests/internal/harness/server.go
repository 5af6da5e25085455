package harness

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Limits of the harness itself.
const (
	startTimeout  = 30 * time.Second // until a started server must answer
	stopTimeout   = 30 * time.Second // until a server that was asked to stop is killed
	startAttempts = 5                // ports may be taken between finding and binding them
	logTailBytes  = 4096             // of a server's log, shown when a test fails
)

// Server is one running server process. Its methods may be called from several goroutines.
type Server struct {
	Name string // "headgate" or "redis-server"
	Addr string // host:port of the TCP listener
	Port int
	Dir  string // its working directory, removed after the test

	t       testing.TB
	cmd     *exec.Cmd
	log     string
	foreign bool          // it does not speak Redis's protocol: it is ready when it takes connections
	done    chan struct{} // closed when the process has ended
	err     error         // how it ended; read it after done
}

// Start runs the program under test on a free loopback port, with the given flags after the usual ones, waits until it
// answers and stops it when the test ends.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	return start(t, "headgate", Binary(t), flags)
}

// StartIn is Start in a directory that is there already, such as that of a server that was killed.
func StartIn(t testing.TB, dir string, flags ...string) *Server {
	t.Helper()
	return startIn(t, "headgate", Binary(t), dir, flags)
}

// StartReferenceIn is StartReference under the terms of StartIn.
func StartReferenceIn(t testing.TB, dir string, flags ...string) *Server {
	t.Helper()
	return startIn(t, "redis-server", Reference(t), dir, flags)
}

// StartBinary is Start for a headgate that was built in another way.
func StartBinary(t testing.TB, path string, flags ...string) *Server {
	t.Helper()
	return start(t, "headgate", path, flags)
}

// StartBinaryIn is StartBinary under the terms of StartIn.
func StartBinaryIn(t testing.TB, path, dir string, flags ...string) *Server {
	t.Helper()
	return startIn(t, "headgate", path, dir, flags)
}

// StartConfigured is Start with a configuration file, whose directory is the server's.
func StartConfigured(t testing.TB, path string, flags ...string) *Server {
	t.Helper()
	return startIn(t, "headgate", Binary(t), filepath.Dir(path), flags, path)
}

// StartReferenceConfigured is StartReference under the terms of StartConfigured.
func StartReferenceConfigured(t testing.TB, path string, flags ...string) *Server {
	t.Helper()
	return startIn(t, "redis-server", Reference(t), filepath.Dir(path), flags, path)
}

// StartLimited is Start under a limit of open files, soft and hard.
func StartLimited(t testing.TB, files int, flags ...string) *Server {
	t.Helper()
	shell := []string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), Binary(t)}
	return start(t, "headgate", "/bin/sh", flags, shell...)
}

// StartUnder is Start behind a command of the shell, such as one that sets a limit.
func StartUnder(t testing.TB, command string, flags ...string) *Server {
	t.Helper()
	return start(t, "headgate", "/bin/sh", flags, "-c", command+` && exec "$0" "$@"`, Binary(t))
}

// StartReferenceUnder runs redis-server under the terms of StartUnder.
func StartReferenceUnder(t testing.TB, command string, flags ...string) *Server {
	t.Helper()
	return start(t, "redis-server", "/bin/sh", flags, "-c", command+` && exec "$0" "$@"`, Reference(t))
}

// Pinned is a command of the shell for StartUnder that keeps the program on one processor, if there are so many and a tool for it.
func Pinned(cpu int) string {
	return "{ taskset -cp " + strconv.Itoa(cpu) + " $$ || true; } >/dev/null 2>&1"
}

// StartReference runs redis-server under the same terms as Start.
func StartReference(t testing.TB, flags ...string) *Server {
	t.Helper()
	return start(t, "redis-server", Reference(t), flags)
}

// StartOther runs a program that is no server of Redis's protocol, in an environment that is told a free port to listen on.
func StartOther(t testing.TB, path string, environment func(port int) []string, args ...string) *Server {
	t.Helper()
	return onFreePort(t, func(port int) (*Server, error) {
		s := newServerAt(t, port, t.TempDir())
		s.Name, s.foreign = filepath.Base(path), true
		if err := s.launch(path, args, environment(port)...); err != nil {
			return nil, err
		}
		t.Cleanup(s.kill)
		return s, nil
	})
}

// StartPair runs one of each with the same flags.
func StartPair(t testing.TB, flags ...string) (subject, reference *Server) {
	t.Helper()
	return Start(t, flags...), StartReference(t, flags...)
}

// FreePort returns a loopback TCP port that nothing listens on, and that no other test is given until this one ends. It is none that the system gives
// to connections by itself, or one of them might have it before whoever is going to listen.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := lowPort + rand.IntN(highPort-lowPort)
		if claim(t, port) {
			return port
		}
	}
	require.FailNow(t, "no free port")
	return 0
}

// claim takes a port for a test until it ends, unless another test has it, in this process or in another, or somebody listens there. The UDP socket
// of the same number is what tests tell each other by.
func claim(t testing.TB, port int) bool {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	mark, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		_ = mark.Close()
		return false
	}
	_ = listener.Close()
	t.Cleanup(func() { _ = mark.Close() })
	return true
}

func start(t testing.TB, name, binary string, flags []string, first ...string) *Server {
	t.Helper()
	return startIn(t, name, binary, "", flags, first...)
}

// startIn is start in a directory; "" is a new one each time.
func startIn(t testing.TB, name, binary, dir string, flags []string, first ...string) *Server {
	t.Helper()
	return onFreePort(t, func(port int) (*Server, error) {
		s := newServerAt(t, port, dir)
		if dir == "" {
			s.Dir = t.TempDir()
		}
		return s, s.runAs(name, binary, slices.Concat(first, s.usualFlags(), flags))
	})
}

// onFreePort has a server be launched on a free port, and on another one if somebody has taken that one meanwhile.
func onFreePort(t testing.TB, launch func(port int) (*Server, error)) *Server {
	t.Helper()
	var last error
	for range startAttempts {
		s, err := launch(FreePort(t))
		if err == nil {
			return s
		}
		if last = err; !portTaken(err) {
			break
		}
	}
	require.NoError(t, last)
	return nil
}

// portTaken reports whether a server has not started since somebody else listens on its port: the error has its log.
func portTaken(err error) bool { return strings.Contains(strings.ToLower(err.Error()), "in use") }

// newServerAt is a server to be launched on a port that was chosen.
func newServerAt(t testing.TB, port int, dir string) *Server {
	return &Server{Port: port, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Dir: dir, t: t, done: make(chan struct{})}
}

// runAs launches a server that is to be looked at when the test ends.
func (s *Server) runAs(name, binary string, args []string) error {
	s.Name = name
	if err := s.launch(binary, args); err != nil {
		return err
	}
	s.t.Cleanup(s.finish)
	return nil
}

// usualFlags are those of every server: it listens on its port alone, and keeps nothing.
func (s *Server) usualFlags() []string {
	return []string{"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"}
}

// launch runs binary, with more variables in its environment if there are any, and returns when it answers.
func (s *Server) launch(binary string, args []string, more ...string) error {
	s.log = filepath.Join(s.Dir, "server.log")
	out, err := os.Create(s.log)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	s.cmd = exec.Command(binary, args...)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = s.Dir, append(Environment(), more...), out, out
	if wantsOwnSession() {
		startOwnSession(s.cmd)
	}
	started := make(chan error)
	go s.run(started)
	if err := <-started; err != nil {
		return err
	}
	if err := s.waitReady(); err != nil {
		s.kill()
		return fmt.Errorf("%s %s: %w\n%s", s.Name, strings.Join(args, " "), err, s.Log())
	}
	return nil
}

// run starts the process, tells whether it could, and waits for its end. The thread is its own for so long: see startOwnSession.
func (s *Server) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := s.cmd.Start()
	started <- err
	if err == nil {
		s.err = s.cmd.Wait()
		close(s.done)
	}
}

// Environment is this process's without headgate's directives, so that a test means the same everywhere.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "HEADGATE_") })
}

// waitReady returns when the server answers a PING with anything, an error included.
func (s *Server) waitReady() error {
	deadline := time.Now().Add(startTimeout)
	for time.Now().Before(deadline) {
		select {
		case <-s.done:
			return fmt.Errorf("ended before it answered: %v", s.err)
		default:
		}
		if conn, err := net.DialTimeout("tcp", s.Addr, time.Second); err == nil && s.foreign {
			return conn.Close()
		} else if err == nil {
			_ = conn.SetDeadline(time.Now().Add(time.Second))
			_, _ = conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
			var first [4]byte
			n, _ := io.ReadFull(conn, first[:])
			_ = conn.Close()
			if n == len(first) && (first[0] == '+' || first[0] == '-') && string(first[:]) != "-LOA" && s.listens() { // it is not loading any more
				return nil
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("no answer on %s within %v", s.Addr, startTimeout)
}

// PID is the process's id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log is what the server has written to its standard output and error so far.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Alive reports whether the process runs.
func (s *Server) Alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// Terminate sends SIGTERM and returns how the process ended; a process that does not end is killed and reported.
func (s *Server) Terminate() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
		return s.err
	case <-time.After(stopTimeout):
		s.kill()
		return fmt.Errorf("%s did not end within %v of SIGTERM", s.Name, stopTimeout)
	}
}

// Kill ends the process at once, as a crash would.
func (s *Server) Kill() { s.kill() }

// Stall stops the process where it is until Resume: its sockets stay open, and nothing is answered. When it returns, each thread has stopped.
func (s *Server) Stall() error {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(ReplyTimeout); !s.stopped(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not stop", s.Name)
		}
	}
	return nil
}

// stopped reports whether all threads of the process stand still, as proc(5) says.
func (s *Server) stopped() bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.cmd.Process.Pid))
	for _, path := range stats {
		text, readErr := os.ReadFile(path)
		if _, state, found := bytes.Cut(text, []byte(") ")); readErr == nil && found && state[0] != 'T' && state[0] != 't' {
			return false
		}
	}
	return err == nil
}

// Resume has a stalled process go on.
func (s *Server) Resume() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

func (s *Server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// finish stops the server and turns a crash, at any time since its start, into a failure of the test.
func (s *Server) finish() {
	select {
	case <-s.done:
	default:
		if err := s.Terminate(); err != nil {
			s.t.Errorf("%s ended badly: %v", s.Name, err)
		}
	}
	log := []byte(s.Log())
	for _, mark := range []string{"panic: ", "fatal error: ", "goroutine "} {
		if at := bytes.Index(log, []byte(mark)); at >= 0 {
			s.t.Errorf("%s crashed:\n%s", s.Name, log[at:min(len(log), at+logTailBytes)])
			return
		}
	}
	if s.t.Failed() && len(log) > 0 {
		s.t.Logf("the end of %s's log:\n%s", s.Name, log[max(0, len(log)-logTailBytes):])
	}
}
