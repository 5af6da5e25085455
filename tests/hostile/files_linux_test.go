package hostile

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"headgate/tests/internal/harness"
)

// TestOutOfFiles: without a file descriptor left the server goes on serving those it has, spends next to nothing on
// those it cannot take, and takes them as soon as it can.
func TestOutOfFiles(t *testing.T) {
	const starved = 2 * time.Second
	server := harness.Start(t)
	client := harness.Dial(t, server.Addr)
	require.Equal(t, "+OK\r\n", string(client.Do("SET", "k", "v")))

	var before unix.Rlimit
	require.NoError(t, unix.Prlimit(server.PID(), unix.RLIMIT_NOFILE, nil, &before))
	none := unix.Rlimit{Cur: uint64(server.OpenFiles()), Max: before.Max}
	require.NoError(t, unix.Prlimit(server.PID(), unix.RLIMIT_NOFILE, &none, nil))
	waiting := make([]net.Conn, 20)
	for i := range waiting {
		conn, err := net.Dial("tcp", server.Addr) // the kernel completes it, the server cannot accept it
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_, _ = conn.Write([]byte("PING\r\n"))
		waiting[i] = conn
	}

	used := server.CPU()
	time.Sleep(starved)
	used = server.CPU() - used
	for range 100 {
		require.Equal(t, "$1\r\nv\r\n", string(client.Do("GET", "k")))
	}

	require.NoError(t, unix.Prlimit(server.PID(), unix.RLIMIT_NOFILE, &before, nil))
	freed := time.Now()
	answered := 0
	for _, conn := range waiting {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if got, _ := readSome(conn, len("+PONG\r\n")); got == "+PONG\r\n" {
			answered++
		}
	}
	took := time.Since(freed)
	t.Logf("%.1f %% of a processor while out of files; after it %d of %d were answered within %v",
		100*used.Seconds()/starved.Seconds(), answered, len(waiting), took.Round(time.Millisecond))
	require.Equal(t, "+PONG\r\n", string(harness.Dial(t, server.Addr).Do("PING")))
	require.LessOrEqual(t, used, starved/5, "it spins")
}

// TestFewFiles: started with a low limit of files, the server lowers maxclients to what it can hold, and refuses the
// rest with the usual text.
func TestFewFiles(t *testing.T) {
	server := harness.StartLimited(t, 96)
	var refused bool
	for range 120 {
		client, err := harness.TryDial(t, server.Addr)
		require.NoError(t, err)
		require.NoError(t, client.Send([]byte("PING\r\n")))
		v, err := client.Read(patience)
		require.NoError(t, err)
		if v.Kind == '-' {
			require.Equal(t, "-ERR max number of clients reached\r\n", v.Wire())
			refused = true
			break
		}
		require.Equal(t, "+PONG\r\n", v.Wire())
	}
	require.True(t, refused, "more clients than files")
	require.True(t, server.Alive())
}
