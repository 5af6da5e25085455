package web

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// connected returns a connection that Conns have accepted, and its peer.
func connected(t *testing.T, all *Conns) (accepted net.Conn, peer *net.TCPConn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer inner.Close()
	dialed, err := net.Dial("tcp", inner.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { dialed.Close() })
	accepted, err = all.Listener(inner).Accept()
	require.NoError(t, err)
	t.Cleanup(func() { accepted.Close() })
	return accepted, dialed.(*net.TCPConn)
}

// TestWhatArrivesWaitsForItsTurn: what has been read of one connection is not gone on with while it is another one's turn, nor is its end.
func TestWhatArrivesWaitsForItsTurn(t *testing.T) {
	for what, do := range map[string]func(peer *net.TCPConn) (sent int, err error){
		"bytes":  func(peer *net.TCPConn) (int, error) { return peer.Write([]byte("abc")) },
		"an end": func(peer *net.TCPConn) (int, error) { return 0, peer.Close() },
	} {
		t.Run(what, func(t *testing.T) {
			all := NewConns(2, 1, RequestBytes)
			accepted, peer := connected(t, all)
			all.turns.mu.Lock()
			read := make(chan int)
			go func() {
				n, _ := accepted.Read(make([]byte, 10))
				read <- n
			}()
			sent, err := do(peer)
			require.NoError(t, err)
			select {
			case <-read:
				require.Fail(t, "it did not wait")
			case <-time.After(50 * time.Millisecond):
			}
			all.turns.mu.Unlock()
			require.Equal(t, sent, <-read)
		})
	}
}

// TestTurnsAreWaitedForByFew: while as many wait for their turn as may, which have been closed since, nobody else is let in.
func TestTurnsAreWaitedForByFew(t *testing.T) {
	const most = 3
	all := NewConns(most, 1, RequestBytes)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer inner.Close()
	listener := all.Listener(inner)
	all.turns.mu.Lock()
	let := make(chan net.Conn)
	go func() {
		defer close(let)
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, err := accepted.Read(make([]byte, 10))
				assert.Error(t, err)
			}()
			let <- accepted
		}
	}()
	dialAndLeave := func() {
		dialed, err := net.Dial("tcp", inner.Addr().String())
		require.NoError(t, err)
		require.NoError(t, dialed.Close())
	}
	for i := range waitingShare * most {
		dialAndLeave()
		<-let
		require.Eventually(t, func() bool { return all.turns.waiting.Load() == int64(i+1) }, time.Minute, time.Millisecond)
	}
	require.Equal(t, most, all.open())
	dialAndLeave()
	select {
	case <-let:
		require.Fail(t, "one more was let in")
	case <-time.After(50 * time.Millisecond):
	}
	all.turns.mu.Unlock()
	<-let
	require.NoError(t, inner.Close())
	for range let {
	}
}

// TestDeadlinesHaveNoTurn: a read that a deadline ends does not wait while it is another one's turn.
func TestDeadlinesHaveNoTurn(t *testing.T) {
	all := NewConns(2, 1, RequestBytes)
	accepted, _ := connected(t, all)
	all.turns.mu.Lock()
	defer all.turns.mu.Unlock()
	require.NoError(t, accepted.SetReadDeadline(time.Now().Add(-time.Second)))
	_, err := accepted.Read(make([]byte, 10))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// TestTurnsAreShort: no more is read at once than makes a turn, and all of it is read in the end.
func TestTurnsAreShort(t *testing.T) {
	accepted, peer := connected(t, NewConns(2, 1, RequestBytes))
	const sent = 5*RequestBytes + 1
	_, err := peer.Write(make([]byte, sent))
	require.NoError(t, err)
	require.NoError(t, peer.CloseWrite())
	got := 0
	for buf := make([]byte, 2*RequestBytes); err == nil; {
		var n int
		n, err = accepted.Read(buf)
		require.LessOrEqual(t, n, RequestBytes)
		got += n
	}
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, sent, got)
}

// TestNobodyReadsForThePeerThatHasGone: what a peer has sent is not dealt with any more once no answer can reach it.
func TestNobodyReadsForThePeerThatHasGone(t *testing.T) {
	all := NewConns(2, 1, RequestBytes)
	accepted, peer := connected(t, all)
	_, err := peer.Write(make([]byte, 5*RequestBytes))
	require.NoError(t, err)
	require.NoError(t, peer.CloseRead())
	require.NoError(t, peer.SetLinger(0))
	require.NoError(t, peer.Close())
	require.Eventually(t, func() bool {
		_, err := accepted.Write([]byte("x"))
		return err != nil
	}, time.Minute, time.Millisecond)
	_, err = accepted.Read(make([]byte, 10))
	require.ErrorIs(t, err, net.ErrClosed)
	require.Zero(t, all.open())
}
