package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/config"
	"headgate/server/netpoll"
)

// pipeServer serves connections that are pairs of pipes, as every connection is served that has no descriptor.
type pipeServer struct {
	t     *testing.T
	srv   *Server
	conns sync.WaitGroup
}

func newPipeServer(t *testing.T) *pipeServer {
	p := &pipeServer{t: t, srv: New(config.NewLive(unsaved()), Options{})}
	stop := make(chan struct{})
	var background sync.WaitGroup
	background.Go(func() { // what a loop does between batches
		w := p.srv.NewWorker()
		for {
			select {
			case <-stop:
				return
			case <-time.After(min(w.Tick(), 5*time.Millisecond)):
			}
		}
	})
	t.Cleanup(func() {
		p.conns.Wait()
		close(stop)
		background.Wait()
		require.Empty(t, p.srv.clients.list, "every client is forgotten when it is gone")
		p.srv.keys.Close()
	})
	return p
}

// dial returns the client's end of a new connection; the test closes it.
func (p *pipeServer) dial() (net.Conn, *bufio.Reader) {
	client, server := net.Pipe()
	p.conns.Go(func() { netpoll.ServeConn(p.srv, server) })
	p.t.Cleanup(func() { client.Close() })
	require.NoError(p.t, client.SetDeadline(time.Now().Add(20*time.Second)))
	return client, bufio.NewReader(client)
}

func readLines(t *testing.T, r *bufio.Reader, n int) string {
	t.Helper()
	var all strings.Builder
	for range n {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		all.WriteString(line)
	}
	return all.String()
}

func TestPipeCommandsAndQuit(t *testing.T) {
	p := newPipeServer(t)
	conn, r := p.dial()
	_, err := conn.Write([]byte("PING\r\nSET k 1\r\nINCR k\r\n*2\r\n$3\r\nGE"))
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n+OK\r\n:2\r\n", readLines(t, r, 3))
	_, err = conn.Write([]byte("T\r\n$1\r\nk\r\nQUIT\r\nPING\r\n"))
	require.NoError(t, err)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "$1\r\n2\r\n+OK\r\n", string(rest))
}

func TestPipeProtocolErrorCloses(t *testing.T) {
	p := newPipeServer(t)
	conn, r := p.dial()
	_, err := conn.Write([]byte("PING\r\n*1\r\n!\r\n"))
	require.NoError(t, err)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n", string(rest))
}

// TestPipePauseHoldsBack: what a pause holds back runs when it ends, without a further byte from the client.
func TestPipePauseHoldsBack(t *testing.T) {
	p := newPipeServer(t)
	first, fr := p.dial()
	second, sr := p.dial()
	_, err := first.Write([]byte("CLIENT PAUSE 60000 WRITE\r\n"))
	require.NoError(t, err)
	readLines(t, fr, 1)
	_, err = second.Write([]byte("PING\r\nINCR n\r\nINCR n\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", readLines(t, sr, 1))
	_, err = first.Write([]byte("GET n\r\nCLIENT UNPAUSE\r\n"))
	require.NoError(t, err)
	require.Equal(t, "$-1\r\n+OK\r\n", readLines(t, fr, 2))
	require.Equal(t, ":1\r\n:2\r\n", readLines(t, sr, 2))
}

// TestPipeKill: one connection closes another that waits in a read.
func TestPipeKill(t *testing.T) {
	p := newPipeServer(t)
	victim, vr := p.dial()
	_, err := victim.Write([]byte("CLIENT ID\r\n"))
	require.NoError(t, err)
	id := strings.Trim(readLines(t, vr, 1), ":\r\n")
	killer, kr := p.dial()
	_, err = fmt.Fprintf(killer, "CLIENT KILL ID %s\r\n", id)
	require.NoError(t, err)
	require.Equal(t, ":1\r\n", readLines(t, kr, 1))
	_, err = vr.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

// TestPipesShareOneExecutor: increments of many connections at once are all counted, each once.
func TestPipesShareOneExecutor(t *testing.T) {
	const conns, each = 20, 200
	p := newPipeServer(t)
	var group sync.WaitGroup
	for range conns {
		conn, r := p.dial()
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
	conn, r := p.dial()
	_, err := conn.Write([]byte("GET shared\r\n"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("$4\r\n%d\r\n", conns*each), readLines(t, r, 2))
}
