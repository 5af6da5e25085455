package front

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHandshakesHaveTheirTime: where as many handshakes are under way as there may be, the oldest makes room, but not before it has had its
// time; until then nobody else is accepted.
func TestHandshakesHaveTheirTime(t *testing.T) {
	f := &tlsFront{Room: 2}
	begin := func() (peer net.Conn, began time.Time) {
		conn, peer := net.Pipe()
		t.Cleanup(func() { peer.Close(); conn.Close() })
		f.begin(&handshake{Conn: conn})
		return peer, time.Now()
	}
	first, began := begin()
	require.NoError(t, first.SetDeadline(began.Add(time.Minute)))
	second, _ := begin()
	_, third := begin()
	require.GreaterOrEqual(t, third.Sub(began), leastHandshake)
	_, err := first.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it was cut off")
	require.NoError(t, second.SetDeadline(time.Now().Add(time.Millisecond)))
	_, err = second.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "this one was not")
	require.Equal(t, 2, f.pending.Len())
}
