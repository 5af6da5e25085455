package cli

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/reply"
)

func TestOptions(t *testing.T) {
	o, err := ParseOptions([]string{"-h", "::1", "-p", "7000", "-n", "3", "-3", "--raw", "-e", "GET", "-n"}, []string{"REDISCLI_AUTH=x"})
	require.NoError(t, err)
	require.Equal(t, "[::1]:7000", o.Address)
	require.Equal(t, []string{"GET", "-n"}, o.Command)
	require.True(t, o.RESP3 && *o.Raw && o.FailOnError && o.Pass == "x" && o.DB == 3 && o.TLS == nil)

	o, err = ParseOptions([]string{"-s", "/a", "--sni", "name", "--insecure"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"unix", "/a", "name"}, []string{o.Network, o.Address, o.TLS.ServerName})

	for _, line := range []string{"-p", "-p x", "-p 70000", "-n -1", "-n x", "--ports 1", "--port x", "--user u", "--cacert /nowhere", "--cert /nowhere"} {
		_, err := ParseOptions(strings.Fields(line), nil)
		require.Error(t, err, line)
	}
}

func TestHelpNamesAllOptions(t *testing.T) {
	for _, option := range []string{"-h, --host", "-p, --port", "-s", "--user", "-a", "-n", "-2", "-3", "--tls", "--sni", "--cacert", "--cert", "--key", "--insecure", "--raw", "--no-raw", "-e"} {
		require.Contains(t, Help, "\n  "+option)
	}
}

func TestCompletion(t *testing.T) {
	c := newCatalogue()
	for _, each := range []struct{ typed, line, shown string }{
		{"rl.gc", "RL.GCRA ", ""},
		{"cl", "CL.THROTTLE ", ""},
		{"RL.RE", "RL.RE", "RL.RESERVE numpairs "},
		{"rl.pol", "RL.POLICY ", ""},
		{"rl.policy se", "RL.POLICY SET ", ""},
		{"rl.gcra ", "rl.gcra ", "RL.GCRA key capacity count period [COST n] [PEEK] [WAIT duration]\n"},
		{"rl.policy set x", "rl.policy set x", "RL.POLICY SET name <GCRA "},
		{"nosuch", "nosuch", ""},
	} {
		var shown bytes.Buffer
		line, at, ok := c.complete(&shown, each.typed, len(each.typed), '\t')
		require.True(t, ok, each.typed)
		require.Equal(t, each.line, line, each.typed)
		require.Equal(t, len(line), at, each.typed)
		require.Contains(t, shown.String(), each.shown, each.typed)
		require.Equal(t, each.shown == "", shown.Len() == 0, each.typed)
	}
	_, _, ok := c.complete(nil, "rl.gc", 5, 'r')
	require.False(t, ok, "only TAB completes")
}

func TestHelpOfCommands(t *testing.T) {
	c := newCatalogue()
	text := c.help([]string{"rl.fixed"})
	for _, part := range []string{"RL.FIXED key limit <window", "window: the length of a window, from 1ms", "TZ zone: the time zone", "PEEK: ", "Returns:\n  limited: "} {
		require.Contains(t, text, part)
	}
	require.Contains(t, c.help([]string{"rl.policy"}), "RL.POLICY SET name <GCRA")
	require.Contains(t, c.help([]string{"rl.upstream"}), "RL.UPSTREAM LEASES [key]")
	require.NotContains(t, c.help([]string{"info"}), "Describe the server")
	require.Contains(t, c.help(nil), "help RL.GCRA")
	unknown := c.help([]string{"rl.gcar"})
	require.Contains(t, unknown, `no command "rl.gcar" is explained here; did you mean RL.GCRA?`)
	require.Contains(t, unknown, "help COMMAND")
	require.NotContains(t, c.help([]string{"nosuchcommand"}), "did you mean")
}

// TestHelpWithoutTerminal: help was a command for the server, unless it was typed at a prompt.
func TestHelpWithoutTerminal(t *testing.T) {
	nowhere := func(words ...string) *Options {
		return &Options{Network: "unix", Address: "/nonexistent", Command: words}
	}
	var asked, piped bytes.Buffer
	require.NoError(t, (&Client{Options: nowhere("help", "RL.GCRA"), Out: &asked}).Run())
	require.Contains(t, asked.String(), "RL.GCRA key capacity")
	require.NoError(t, (&Client{Options: nowhere(), In: strings.NewReader("HELP rl.gcra\n"), Out: &piped}).Run())
	require.Equal(t, asked.String(), piped.String())
}

// TestFailedHandshakes: why there is no TLS is said in words that help.
func TestFailedHandshakes(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	s := session{o: &Options{Network: "tcp", Address: server.Listener.Addr().String(), TLS: &tls.Config{ServerName: "127.0.0.1"}}}
	err := s.connect()
	require.ErrorContains(t, err, "the certificate of "+s.o.Address+" cannot be verified: ")
	require.ErrorContains(t, err, "--cacert")
	require.Nil(t, s.conn)

	require.EqualError(t, s.noHandshake(os.ErrDeadlineExceeded), "no TLS handshake with "+s.o.Address+" in time: its port may be one without TLS")
	require.EqualError(t, s.noHandshake(io.EOF), "no TLS handshake with "+s.o.Address+": EOF: its port may be one without TLS")
	require.EqualError(t, s.noHandshake(errors.New("no")), "no TLS handshake with "+s.o.Address+": no")
}

// TestPlainClientAtAPortForTLS: that such a server closes the connection was all that was said.
func TestPlainClientAtAPortForTLS(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	answers := []string{"", "", "+OK\r\n"}
	go func() {
		for _, answer := range answers {
			if conn, err := ln.Accept(); err == nil {
				_, _ = conn.Read(make([]byte, 512))
				_, _ = io.WriteString(conn, answer)
				conn.Close()
			}
		}
	}()
	const advice = ": its port may be one for TLS, see --tls"
	for i, pass := range []string{"", "secret", "secret"} {
		o := &Options{Network: "tcp", Address: ln.Addr().String(), Pass: pass, Command: []string{"PING"}}
		err := (&Client{Options: o, Out: io.Discard}).Run()
		require.Error(t, err)
		require.Equal(t, answers[i] == "", strings.HasSuffix(err.Error(), advice), "%v", err)
	}
}

// TestLastWordsOfAServer: what a server had said before it closed the connection was lost when the write failed.
func TestLastWordsOfAServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer ln.Close()
	for _, tt := range []struct{ said, err string }{{"-ERR max number of clients reached\r\n", ""}, {"", "pipe"}, {"-ERR cut", "pipe"}, {"+OK\r\n", "pipe"}} {
		s := session{o: &Options{Network: "unix", Address: path}}
		require.NoError(t, s.connect())
		conn, err := ln.Accept()
		require.NoError(t, err)
		_, err = io.WriteString(conn, tt.said)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		v, err := s.ask([]string{"PING"})
		require.Nil(t, s.conn)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "ERR max number of clients reached", v.Text)
	}
}

// TestReplies: a command that names channels to leave is answered once for each, by pushes in RESP3.
func TestReplies(t *testing.T) {
	for words, want := range map[string]int{"GET k": 1, "MONITOR": -1, "psubscribe a": -1, "UNSUBSCRIBE": 1, "unsubscribe a": 1, "SUNSUBSCRIBE a b c": 3} {
		require.Equal(t, want, (&session{}).replies(strings.Fields(words)), words)
		require.Equal(t, 1, (&session{queuing: true}).replies(strings.Fields(words)), words)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 512))
		_, _ = io.WriteString(conn, ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n>3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n")
		_, _ = conn.Read(make([]byte, 512)) // until the client leaves
	}()
	var out strings.Builder
	require.NoError(t, (&Client{Options: &Options{Network: "tcp", Address: ln.Addr().String(), Command: []string{"UNSUBSCRIBE", "a", "b"}}, Out: &out}).Run())
	require.Equal(t, 2, strings.Count(out.String(), "unsubscribe"), out.String())
}

// TestSessionsFollow what changes the database and the transaction that the prompt shows.
func TestSessionsFollow(t *testing.T) {
	s := session{o: &Options{Address: "a"}, conn: &net.TCPConn{}}
	ok, queued, failed := reply.Value{Kind: '+', Text: "OK"}, reply.Value{Kind: '+', Text: "QUEUED"}, reply.Value{Kind: '-', Text: "ERR DB index is out of range"}
	for _, step := range []struct {
		words  string
		v      reply.Value
		prompt string
	}{
		{"SELECT 3", ok, "a[3]> "},
		{"MULTI", ok, "a[3](TX)> "},
		{"SELECT 5", queued, "a[3](TX)> "},
		{"DISCARD", ok, "a[3]> "},
		{"GET k", reply.Value{Kind: '$', Text: "QUEUED"}, "a[3]> "}, // a value, and no answer of a transaction
		{"MULTI", ok, "a[3](TX)> "},
		{"GET k", queued, "a[3](TX)> "},
		{"select 5", queued, "a[3](TX)> "},
		{"SELECT 99", queued, "a[3](TX)> "},
		{"EXEC", reply.Value{Kind: '*', Items: []reply.Value{{Kind: '$', Text: "v"}, ok, failed}}, "a[5]> "},
		{"MULTI", ok, "a[5](TX)> "},
		{"SELECT 6", queued, "a[5](TX)> "},
		{"EXEC", reply.Value{Kind: '*', Null: true}, "a[5]> "},
		{"MULTI", ok, "a[5](TX)> "},
		{"EXEC", reply.Value{Kind: '-', Text: "EXECABORT …"}, "a[5]> "},
		{"MULTI", ok, "a[5](TX)> "},
		{"RESET", reply.Value{Kind: '+', Text: "RESET"}, "a> "},
		{"SELECT 99", failed, "a> "},
	} {
		s.follow(strings.Fields(step.words), &step.v)
		require.Equal(t, step.prompt, s.prompt(), step.words)
	}
}
