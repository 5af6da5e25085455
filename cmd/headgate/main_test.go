package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// TestMain lets the scripts run the program as `headgate`.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"headgate": main})
}

// TestScripts runs testdata/script: what an operator types, and what comes back. $PORT is a free port.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			env.Setenv("PORT", strconv.Itoa(ln.Addr().(*net.TCPAddr).Port))
			return ln.Close()
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serving": serving,
			"send":    send,
			"has":     has,
			"signal":  signalServer,
			"busy":    busy,
		},
	})
}

// startLimit is how long a server may take until it answers, or a file to say something.
const startLimit = 10 * time.Second

// until tries again until it works or takes too long.
func until(ts *testscript.TestScript, what string, try func() bool) {
	for deadline := time.Now().Add(startLimit); !try(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("%s: not within %v", what, startLimit)
		}
	}
}

// serving waits until something accepts connections: serving tcp 127.0.0.1:$PORT, or serving unix path.
func serving(ts *testscript.TestScript, _ bool, args []string) {
	if args[0] == "unix" {
		args[1] = ts.MkAbs(args[1])
	}
	until(ts, "serving "+args[1], func() bool {
		conn, err := net.Dial(args[0], args[1])
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// send sends a line to the server on $PORT and leaves the first line of the reply in the file reply.
func send(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, "send "+args[0], func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+ts.Getenv("PORT"))
		ts.Check(err)
		defer conn.Close()
		_, err = conn.Write([]byte(args[0] + "\r\n"))
		ts.Check(err)
		ts.Check(conn.SetReadDeadline(time.Now().Add(startLimit)))
		buf := make([]byte, 4096)
		n, err := conn.Read(buf)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs("reply"), buf[:n], 0o644))
		return !bytes.HasPrefix(buf[:n], []byte("-LOADING")) // or what a start does would not be over
	})
}

// busy waits until the server on $PORT has answered a hundred commands more than when it was first asked.
func busy(ts *testscript.TestScript, _ bool, _ []string) {
	const enough = 100
	processed := func() int {
		send(ts, false, []string{"INFO stats"})
		_, rest, _ := strings.Cut(ts.ReadFile("reply"), "total_commands_processed:")
		n, _ := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
		return n
	}
	first := processed()
	until(ts, "busy", func() bool { return processed() > first+enough })
}

// signalServer sends a signal to the process whose number a file holds: signal HUP pid.
func signalServer(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{"HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM}
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[1])))
	ts.Check(err)
	process, err := os.FindProcess(pid)
	ts.Check(err)
	ts.Check(process.Signal(signals[args[0]]))
}

// has waits until a file contains a text: has file text.
func has(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, args[0]+" has "+args[1], func() bool {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && strings.Contains(string(data), args[1])
	})
}

// TestAnswerIsPrintable: what a stranger's server answers went to the terminal as it was.
func TestAnswerIsPrintable(t *testing.T) {
	require.Equal(t, `-ERR unknown "x" \x1b[2J\a\x9b`, printable("-ERR unknown \"x\" \x1b[2J\a\x9b"))
}

// TestLastWordsOfAServer: what a server had said before it closed the connection was lost when the write failed.
func TestLastWordsOfAServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer ln.Close()
	for said, want := range map[string]string{"-ERR max number of clients reached\r\n": "-ERR max number of clients reached", "": "", "+OK\r\n": ""} {
		conn, err := net.Dial("unix", path)
		require.NoError(t, err)
		server, err := ln.Accept()
		require.NoError(t, err)
		_, err = server.Write([]byte(said))
		require.NoError(t, err)
		require.NoError(t, server.Close())
		answer, err := converse(conn, [][]string{{"PING"}})
		require.Equal(t, want, answer)
		require.Equal(t, want == "", errors.Is(err, syscall.EPIPE))
		require.NoError(t, conn.Close())
	}
}

// TestPingWithoutAnswer: a server that took the password and answered nothing more counted as one that answers.
func TestPingWithoutAnswer(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	go func() {
		_, _ = server.Read(make([]byte, 100))
		_, _ = server.Write([]byte("+OK\r\n"))
		_, _ = server.Read(make([]byte, 100))
		_ = server.Close()
	}()
	answer, err := converse(client, [][]string{{"AUTH", "x"}, {"PING"}})
	require.Equal(t, io.EOF, err)
	require.Empty(t, answer)
}
