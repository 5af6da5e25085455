// Package reference runs the real redis-server for tests of packages whose functions must answer as it does. The suites under tests/,
// which drive the whole program, have a harness of their own.
package reference

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

const (
	startLimit = 20 * time.Second
	replyLimit = 10 * time.Second // how long a command may take
	replyMax   = 64 << 20         // bytes of one reply
	readSize   = 64 << 10
)

// Server is a redis-server of a test's own, and one connection to it. It is not safe for concurrent use.
type Server struct {
	Flags []string // all that it was started with

	conn net.Conn
}

// Start runs redis-server on a Unix socket, in a directory of its own and without save points, until the test ends.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	require.NoError(t, err, "redis-server is missing, and this test compares with it: make deps installs it")
	dir, err := os.MkdirTemp("", "headgate") // short enough for a socket's path
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	// Bound to all addresses, a port that a test has found free may be taken by a connection of another test's from an address of its own.
	s := &Server{Flags: append([]string{"--port", "0", "--bind", "127.0.0.1", "--unixsocket", socket, "--save", "", "--dir", dir}, flags...)}
	cmd := exec.Command(binary, s.Flags...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(startLimit); s.conn == nil; time.Sleep(10 * time.Millisecond) {
		s.conn, err = net.Dial("unix", socket)
		require.True(t, err == nil || time.Now().Before(deadline), "redis-server does not come up: %v", err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	return s
}

// Error is an error that redis-server has answered with, its first word included.
type Error string

func (e Error) Error() string { return string(e) }

// Do sends a command and returns the texts of its reply: one for a string or a number, an empty one for a null, and all of an array in
// their order, whatever their depth. The error is an Error where that is the answer.
func (s *Server) Do(args ...string) ([]string, error) {
	request := redcon.AppendArray(nil, len(args))
	for _, arg := range args {
		request = redcon.AppendBulkString(request, arg)
	}
	if err := s.conn.SetDeadline(time.Now().Add(replyLimit)); err != nil {
		return nil, err
	}
	if _, err := s.conn.Write(request); err != nil {
		return nil, err
	}
	reply, err := s.read()
	if err != nil {
		return nil, fmt.Errorf("reading the reply of %q: %w", args, err)
	}
	if reply.Type == redcon.Error {
		return nil, Error(reply.Data)
	}
	return appendTexts(nil, reply), nil
}

// Text is Do for a reply that is one string or number.
func (s *Server) Text(args ...string) (string, error) {
	texts, err := s.Do(args...)
	if err != nil {
		return "", err
	}
	if len(texts) != 1 {
		return "", fmt.Errorf("the reply of %q is %q, not one text", args, texts)
	}
	return texts[0], nil
}

// Map is Do for a reply of names, each with its value behind it.
func (s *Server) Map(args ...string) (map[string]string, error) {
	texts, err := s.Do(args...)
	if err != nil {
		return nil, err
	}
	if len(texts)%2 != 0 {
		return nil, fmt.Errorf("the reply of %q is %q, not pairs", args, texts)
	}
	values := make(map[string]string, len(texts)/2)
	for i := 0; i < len(texts); i += 2 {
		values[texts[i]] = texts[i+1]
	}
	return values, nil
}

// read returns the next reply. Nothing can follow it, since commands are sent one at a time.
func (s *Server) read() (redcon.RESP, error) {
	var input []byte
	chunk := make([]byte, readSize)
	for len(input) <= replyMax {
		n, err := s.conn.Read(chunk)
		input = append(input, chunk[:n]...)
		if size, reply := redcon.ReadNextRESP(input); size > 0 {
			return reply, nil
		}
		if err != nil {
			return redcon.RESP{}, err
		}
	}
	return redcon.RESP{}, errors.New("it is too long")
}

func appendTexts(texts []string, reply redcon.RESP) []string {
	if reply.Type != redcon.Array {
		return append(texts, reply.String())
	}
	reply.ForEach(func(element redcon.RESP) bool {
		texts = appendTexts(texts, element)
		return true
	})
	return texts
}
