package front_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

func TestPipeCommandsAndQuit(t *testing.T) {
	p := servertest.NewPipeServer(t)
	conn, r := p.Dial()
	_, err := conn.Write([]byte("PING\r\nSET k 1\r\nINCR k\r\n*2\r\n$3\r\nGE"))
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n+OK\r\n:2\r\n", servertest.ReadLines(t, r, 3))
	_, err = conn.Write([]byte("T\r\n$1\r\nk\r\nQUIT\r\nPING\r\n"))
	require.NoError(t, err)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "$1\r\n2\r\n+OK\r\n", string(rest))
}

func TestPipeProtocolErrorCloses(t *testing.T) {
	p := servertest.NewPipeServer(t)
	conn, r := p.Dial()
	_, err := conn.Write([]byte("PING\r\n*1\r\n!\r\n"))
	require.NoError(t, err)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n", string(rest))
}

// TestPipePauseHoldsBack: what a pause holds back runs when it ends, without a further byte from the client.
func TestPipePauseHoldsBack(t *testing.T) {
	p := servertest.NewPipeServer(t)
	first, fr := p.Dial()
	second, sr := p.Dial()
	_, err := first.Write([]byte("CLIENT PAUSE 60000 WRITE\r\n"))
	require.NoError(t, err)
	servertest.ReadLines(t, fr, 1)
	_, err = second.Write([]byte("PING\r\nINCR n\r\nINCR n\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", servertest.ReadLines(t, sr, 1))
	_, err = first.Write([]byte("GET n\r\nCLIENT UNPAUSE\r\n"))
	require.NoError(t, err)
	require.Equal(t, "$-1\r\n+OK\r\n", servertest.ReadLines(t, fr, 2))
	require.Equal(t, ":1\r\n:2\r\n", servertest.ReadLines(t, sr, 2))
}

// TestPipeKill: one connection closes another that waits in a read.
func TestPipeKill(t *testing.T) {
	p := servertest.NewPipeServer(t)
	victim, vr := p.Dial()
	_, err := victim.Write([]byte("CLIENT ID\r\n"))
	require.NoError(t, err)
	id := strings.Trim(servertest.ReadLines(t, vr, 1), ":\r\n")
	killer, kr := p.Dial()
	_, err = fmt.Fprintf(killer, "CLIENT KILL ID %s\r\n", id)
	require.NoError(t, err)
	require.Equal(t, ":1\r\n", servertest.ReadLines(t, kr, 1))
	_, err = vr.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

// TestPipesShareOneExecutor: increments of many connections at once are all counted, each once.
func TestPipesShareOneExecutor(t *testing.T) {
	const conns, each = 20, 200
	p := servertest.NewPipeServer(t)
	var group sync.WaitGroup
	for range conns {
		conn, r := p.Dial()
		group.Go(func() {
			for range each {
				if _, err := conn.Write([]byte("INCR shared\r\n")); err != nil {
					t.Error(err)
					return
				}
				if _, err := r.ReadString('\n'); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	conn, r := p.Dial()
	_, err := conn.Write([]byte("GET shared\r\n"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("$4\r\n%d\r\n", conns*each), servertest.ReadLines(t, r, 2))
}

// TestPipeTellsHowMuchIsUnsent: while the peer takes a long reply, so that it is not one that does nothing, and its output shrinks.
func TestPipeTellsHowMuchIsUnsent(t *testing.T) {
	const size = 4 << 20
	p := servertest.NewPipeServer(t)
	conn, r := p.Dial()
	_, err := conn.Write([]byte(fmt.Sprintf("SETRANGE k %d x\r\n", size-1)))
	require.NoError(t, err)
	servertest.ReadLines(t, r, 1)
	_, err = conn.Write([]byte("GET k\r\n"))
	require.NoError(t, err)
	servertest.ReadLines(t, r, 1)
	for left := size; left > 0; left -= size / 4 {
		_, err = io.CopyN(io.Discard, r, size/4)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			p.Srv.Lock()
			defer p.Srv.Unlock()
			return p.Srv.Clients.List[0].Conn.Unsent() <= left
		}, 10*time.Second, time.Millisecond)
	}
	servertest.ReadLines(t, r, 1)
}
