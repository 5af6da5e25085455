package servertest

import (
	"testing"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/netpoll"
	"headgate/server/resp"

	"github.com/stretchr/testify/require"
)

// Unsaved is the usual configuration without save points, so that nothing is written to the working directory.
func Unsaved() *config.Config {
	cfg := config.Default()
	cfg.Save = nil
	return cfg
}

// WorkerClient is a client without a socket on a server of its own: it drives a worker as a front does, by one call after the other.
type WorkerClient struct {
	T      testing.TB
	Srv    *server.Server
	Worker netpoll.Worker
	Conn   *netpoll.Conn
	Ready  []*netpoll.Conn
	Pool   resp.Pool
}

// NewWorkerClient returns a client of a server with the usual configuration and the system's clock. Both end with the test.
func NewWorkerClient(t testing.TB) *WorkerClient {
	return NewWorkerClientOf(t, server.New(config.NewLive(Unsaved()), server.Options{}))
}

// NewWorkerClientOf returns a client of a server that the test has made. The server's keys go with the test.
func NewWorkerClientOf(t testing.TB, s *server.Server) *WorkerClient {
	conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", false)
	w := &WorkerClient{T: t, Srv: s, Worker: s.NewWorker(), Conn: conn, Ready: []*netpoll.Conn{conn}}
	w.Worker.Opened(conn)
	t.Cleanup(func() {
		w.Worker.Closed(conn)
		s.Keys.Close()
	})
	return w
}

// NewUserClients returns two clients of one server: an administrator, and a user called u with these rules.
func NewUserClients(t testing.TB, rules ...string) (admin, user *WorkerClient) {
	s := server.New(config.NewLive(Unsaved()), server.Options{})
	admin, user = NewWorkerClientOf(t, s), NewWorkerClientOf(t, s)
	require.Equal(t, "+OK\r\n", admin.Ask(append([]string{"ACL", "SETUSER", "u", "on", "nopass"}, rules...)...))
	require.Equal(t, "+OK\r\n", user.Ask("AUTH", "u", "x"))
	return admin, user
}

// Run has the worker execute the input's commands and returns the replies, which are valid until the next call.
func (w *WorkerClient) Run(input []byte) []byte {
	w.Conn.Out.Reset()
	n := copy(w.Conn.In.Space(&w.Pool), input)
	if n < len(input) {
		w.T.Fatalf("room for %d of %d bytes", n, len(input)) // what package require does would count as allocations
	}
	w.Conn.In.Received(n)
	for more := true; more; more = w.Conn.TakePostponed() {
		w.Worker.Batch(w.Ready)
	}
	w.Conn.In.Compact(&w.Pool)
	return w.Conn.Out.Bytes()
}

// Ask runs one command and returns its reply as it is sent.
func (w *WorkerClient) Ask(words ...string) string { return string(w.Run(EncodeCommand(words...))) }

// Turn gives the worker input of any length and has it run one batch: what a connection gets of one iteration. It tells whether commands
// are left over.
func (w *WorkerClient) Turn(input []byte) (replies []byte, more bool) {
	w.Conn.Out.Reset()
	for len(input) > 0 {
		n := copy(w.Conn.In.Space(&w.Pool), input)
		w.Conn.In.Received(n)
		input = input[n:]
	}
	w.Worker.Batch(w.Ready)
	return w.Conn.Out.Bytes(), w.Conn.TakePostponed()
}

// DrainTurns runs batches until nothing is left over, and returns how many there were, the longest replies of one and all of them.
func (w *WorkerClient) DrainTurns(input []byte) (turns, longest int, all []byte) {
	replies, more := w.Turn(input)
	for {
		turns, longest, all = turns+1, max(longest, len(replies)), append(all, replies...)
		if !more {
			return turns, longest, all
		}
		replies, more = w.Turn(nil)
	}
}

// CarriedConn is a connection that comes after others, with input.
func (w *WorkerClient) CarriedConn(input []byte) *netpoll.Conn {
	conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", true)
	w.Worker.Opened(conn)
	w.T.Cleanup(func() { w.Worker.Closed(conn) })
	conn.In.Received(copy(conn.In.Space(&w.Pool), input))
	return conn
}

// Sweep has background work look at every key once at least, in as many slices as that takes: a slice ends by the system's clock. now is in ns.
func (w *WorkerClient) Sweep(now int64) {
	w.Srv.Lock()
	defer w.Srv.Unlock()
	for done := w.Srv.Keys.Sweeps() + 2; w.Srv.Keys.Sweeps() < done; { // the first of the two may have begun before
		w.Srv.ExpireSlice(now / 1e6)
	}
}
