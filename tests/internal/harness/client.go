package harness

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ReplyTimeout is how long a client waits for a reply that must come, on a machine that is slow and busy with other tests.
const ReplyTimeout = 30 * time.Second

// Client is one raw connection. It is not safe for concurrent use, except that one goroutine may send while another
// reads. Do and Reply end the test on an I/O error and so belong to the test's own goroutine; Send and Read return it.
type Client struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

// Dial connects to host:port, or to a Unix socket when addr is a path, and closes the connection when the test ends.
func Dial(t testing.TB, addr string) *Client {
	t.Helper()
	c, err := TryDial(t, addr)
	require.NoError(t, err)
	return c
}

// TryDial is Dial for callers that expect it to fail.
func TryDial(t testing.TB, addr string) (*Client, error) {
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	conn, err := net.DialTimeout(network, addr, ReplyTimeout)
	if err != nil {
		return nil, err
	}
	return NewClient(t, conn), nil
}

// NewClient is a client on a connection that was made otherwise, such as one over TLS. It is closed when the test ends.
func NewClient(t testing.TB, conn net.Conn) *Client {
	c := &Client{t: t, conn: conn, r: bufio.NewReader(conn)}
	t.Cleanup(c.Close)
	return c
}

// Conn is the connection itself, for tests that shut down one side or set its buffers.
func (c *Client) Conn() net.Conn { return c.conn }

// Close closes the connection; closing twice is harmless.
func (c *Client) Close() { _ = c.conn.Close() }

// Send writes raw bytes.
func (c *Client) Send(raw []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(ReplyTimeout)); err != nil {
		return err
	}
	_, err := c.conn.Write(raw)
	return err
}

// Read returns the next reply, or why there was none within the time given.
func (c *Client) Read(within time.Duration) (Value, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return Value{}, err
	}
	return Parse(c.r)
}

// Raw sends bytes as they are and returns the bytes of one reply.
func (c *Client) Raw(raw []byte) []byte {
	c.t.Helper()
	require.NoError(c.t, c.Send(raw))
	return c.Reply()
}

// Do sends one command and returns its reply's bytes.
func (c *Client) Do(args ...string) []byte {
	c.t.Helper()
	return c.Raw(Command(args...))
}

// Reply returns the bytes of the next reply.
func (c *Client) Reply() []byte {
	c.t.Helper()
	return c.Value().Append(nil)
}

// Value returns the next reply, parsed.
func (c *Client) Value() Value {
	c.t.Helper()
	v, err := c.Read(ReplyTimeout)
	require.NoError(c.t, err)
	return v
}

// Ask sends one command and returns its reply, parsed.
func (c *Client) Ask(args ...string) Value {
	c.t.Helper()
	require.NoError(c.t, c.Send(Command(args...)))
	return c.Value()
}

// pipelined is how many commands AskAll sends before it reads their replies: few enough that neither side waits for the other to read.
const pipelined = 128

// AskAll sends commands in a pipeline and returns their replies, parsed.
func (c *Client) AskAll(commands ...[]string) []Value {
	c.t.Helper()
	replies := make([]Value, 0, len(commands))
	for some := range slices.Chunk(commands, pipelined) {
		var raw []byte
		for _, args := range some {
			raw = append(raw, Command(args...)...)
		}
		require.NoError(c.t, c.Send(raw))
		for range some {
			replies = append(replies, c.Value())
		}
	}
	return replies
}

// Drain reads whatever comes until the server closes the connection or the time is over, and says which it was.
func (c *Client) Drain(within time.Duration) (received []byte, closed bool) {
	_ = c.conn.SetReadDeadline(time.Now().Add(within))
	received, err := io.ReadAll(c.r)
	return received, err == nil || IsClosed(err)
}

// IsClosed reports whether err says that the other side closed or reset the connection.
func IsClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
