package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTrackingTableIsBounded: keys beyond tracking-table-max-keys are forgotten, and the client that has read them is told.
func TestTrackingTableIsBounded(t *testing.T) {
	const most, read = 10, 100
	p := newPipeServer(t)
	conn, r := p.dial()
	_, err := fmt.Fprintf(conn, "CONFIG SET tracking-table-max-keys %d\r\nHELLO 3\r\nCLIENT TRACKING ON\r\n", most)
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", readLines(t, r, 1))
	for readLines(t, r, 1) != "*0\r\n" { // the end of HELLO's reply
	}
	require.Equal(t, "+OK\r\n", readLines(t, r, 1))
	for i := range read {
		_, err := fmt.Fprintf(conn, "GET key%d\r\n", i)
		require.NoError(t, err)
		require.Equal(t, "_\r\n", readLines(t, r, 1))
		if i >= most {
			require.Equal(t, ">2\r\n$10\r\ninvalidate\r\n*1\r\n", readLines(t, r, 4))
			readLines(t, r, 2)
		}
	}
	p.srv.Lock()
	require.Len(t, p.srv.tracking.readers, most)
	require.Equal(t, most, p.srv.tracking.items)
	p.srv.Unlock()
	_, err = fmt.Fprint(conn, "CLIENT TRACKING OFF\r\n")
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", readLines(t, r, 1))
	p.srv.Lock()
	require.Empty(t, p.srv.tracking.readers)
	require.False(t, p.srv.attentive)
	p.srv.Unlock()
}

// TestTrackingEndsWithTheConnection: nothing is kept of a client that is gone.
func TestTrackingEndsWithTheConnection(t *testing.T) {
	p := newPipeServer(t)
	conn, r := p.dial()
	_, err := fmt.Fprint(conn, "CLIENT TRACKING ON BCAST PREFIX a PREFIX b\r\nSUBSCRIBE x\r\nQUIT\r\n")
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", readLines(t, r, 1))
	readLines(t, r, 7)
	p.conns.Wait()
	p.srv.Lock()
	defer p.srv.Unlock()
	require.Zero(t, p.srv.tracking.clients)
	require.Empty(t, p.srv.tracking.prefixes)
	require.Empty(t, p.srv.hub.topics[kindChannel])
	require.False(t, p.srv.attentive)
}
