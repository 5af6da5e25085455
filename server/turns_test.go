package server

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/netpoll"
)

// carriedConn is a connection that comes after others, with input.
func (w *workerClient) carriedConn(input []byte) *netpoll.Conn {
	conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", true)
	w.worker.Opened(conn)
	w.t.Cleanup(func() { w.worker.Closed(conn) })
	conn.In.Received(copy(conn.In.Space(&w.pool), input))
	return conn
}

// TestLeftOverConnectionIsServedAfterALongWait: one that comes after others is served also when the executor's lock is busy for longer than
// such connections have in an iteration, since that may be so in each of them.
func TestLeftOverConnectionIsServedAfterALongWait(t *testing.T) {
	w := newWorkerClient(t)
	conn := w.carriedConn([]byte("PING\r\n"))
	w.srv.Lock()
	time.AfterFunc(3*carriedTime, w.srv.Unlock)
	w.worker.Batch([]*netpoll.Conn{conn})
	require.Equal(t, "+PONG\r\n", string(conn.Out.Bytes()))
}

// TestBrokenOffTurnIsATurn: a connection that an iteration's time ends for in the middle of its turn has had it, and comes after those that
// have had none.
func TestBrokenOffTurnIsATurn(t *testing.T) {
	w := newWorkerClient(t)
	w.drainTurns(bytes.Repeat([]byte("PUBLISH c m\r\n"), 2*alwaysTimed)) // so that those below are hardly ever timed
	for range 1000 {
		w.worker.Batch([]*netpoll.Conn{w.carriedConn([]byte("SUBSCRIBE c\r\n"))})
	}
	long := w.carriedConn(bytes.Repeat([]byte("PUBLISH c m\r\n"), 5*batchCommands))
	other := w.carriedConn([]byte("PING\r\n"))
	served := w.worker.Batch([]*netpoll.Conn{long, other})
	require.Positive(t, long.Out.Len())
	require.Equal(t, 1, served)
	require.True(t, long.TakePostponed())
	require.Zero(t, other.Out.Len())
}
