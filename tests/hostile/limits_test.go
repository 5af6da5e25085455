package hostile

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// both runs the body against redis-server and headgate, started with the same flags. Only what must hold for both may be
// asked in it.
func both(t *testing.T, flags []string, body func(t *testing.T, server *harness.Server)) {
	t.Helper()
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		body(t, harness.StartReference(t, flags...))
	})
	t.Run("headgate", func(t *testing.T) {
		t.Parallel()
		body(t, harness.Start(t, flags...))
	})
}

// deaf connects with a small receive buffer, so that what the server cannot send it must keep.
func deaf(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// pour writes the request again and again, reading nothing, until the server has closed the connection or total bytes
// went out. It reports whether the server closed.
func pour(conn net.Conn, request string, total int) bool {
	block := []byte(strings.Repeat(request, max(1, 64*kib/len(request))))
	for sent := 0; sent < total; sent += len(block) {
		_ = conn.SetWriteDeadline(time.Now().Add(patience))
		if _, err := conn.Write(block); err != nil {
			return harness.IsClosed(err)
		}
	}
	return false
}

// TestNeverReading: a client that asks for more than it reads is cut off at the limit of its output buffer, and nobody
// else notices.
func TestNeverReading(t *testing.T) {
	flags := []string{"--client-output-buffer-limit", "normal", "1mb", "256kb", "60"}
	both(t, flags, func(t *testing.T, server *harness.Server) {
		harness.Dial(t, server.Addr).Do("SET", "big", strings.Repeat("v", 100*kib))
		other := newBystander(t, server.Addr, "")
		resident := server.RSS()
		require.True(t, pour(deaf(t, server.Addr), "GET big\r\n", 8<<20), "the client was not cut off")
		growth := server.RSS() - resident
		line := other.finish(t, row{})
		t.Logf("resident memory grew by %d KiB; another client's PING: median %v, max %v", growth>>10, line.pingMedian, line.pingSlowest)
		require.True(t, server.Alive())
	})
}

// TestNeverReadingSoftLimit: below the hard limit it is cut off when the soft one is passed for its seconds.
func TestNeverReadingSoftLimit(t *testing.T) {
	flags := []string{"--client-output-buffer-limit", "normal", "0", "100kb", "1"}
	both(t, flags, func(t *testing.T, server *harness.Server) {
		harness.Dial(t, server.Addr).Do("SET", "big", strings.Repeat("v", 100*kib))
		conn := deaf(t, server.Addr)
		// More than the kernel's buffers take between the two ends.
		_, err := conn.Write([]byte(strings.Repeat("GET big\r\n", 200)))
		require.NoError(t, err)
		cut := false
		for deadline := time.Now().Add(2 * patience); !cut && time.Now().Before(deadline); {
			time.Sleep(50 * time.Millisecond)
			cut = !strings.Contains(string(harness.Dial(t, server.Addr).Do("CLIENT", "LIST")), conn.LocalAddr().String())
		}
		require.True(t, cut, "the client was not cut off")
	})
}

// TestNeverReadingBeforeAuth: who has not said the password is cut off long before that.
func TestNeverReadingBeforeAuth(t *testing.T) {
	server := harness.Start(t, "--requirepass", "secret")
	other := newBystander(t, server.Addr, "secret")
	resident := server.RSS()
	require.True(t, pour(deaf(t, server.Addr), "PING\r\n", 64<<20), "the client was not cut off")
	growth := server.RSS() - resident
	line := other.finish(t, row{})
	t.Logf("resident memory grew by %d KiB; another client's PING: median %v, max %v", growth>>10, line.pingMedian, line.pingSlowest)
	require.LessOrEqual(t, growth, int64(4*growthLimit))
}

// TestCutOffTransactionIsWhole: a transaction whose replies pass the limit is executed to its end.
func TestCutOffTransactionIsWhole(t *testing.T) {
	flags := []string{"--client-output-buffer-limit", "normal", "100kb", "0", "0"}
	both(t, flags, func(t *testing.T, server *harness.Server) {
		client := harness.Dial(t, server.Addr)
		client.Do("SET", "big", strings.Repeat("v", 100*kib))
		cut := harness.Dial(t, server.Addr)
		require.NoError(t, cut.Send([]byte("MULTI\r\n"+strings.Repeat("GET big\r\n", 100)+"SET done 1\r\nEXEC\r\n")))
		_, closed := cut.Drain(patience)
		require.True(t, closed)
		require.Equal(t, "$1\r\n1\r\n", string(client.Do("GET", "done")))
	})
}

// TestMaxClients: one too many is told so and closed; those that are in stay, and a place that is left can be taken.
func TestMaxClients(t *testing.T) {
	const limit = 5
	both(t, []string{"--maxclients", fmt.Sprint(limit)}, func(t *testing.T, server *harness.Server) {
		time.Sleep(50 * time.Millisecond) // until the connection that waited for the start is gone
		clients := make([]*harness.Client, limit)
		for i := range clients {
			clients[i] = harness.Dial(t, server.Addr)
			require.Equal(t, "+PONG\r\n", string(clients[i].Do("PING")))
		}
		for range 20 {
			surplus := harness.Dial(t, server.Addr)
			got, closed := surplus.Drain(patience)
			require.True(t, closed)
			require.Equal(t, "-ERR max number of clients reached\r\n", string(got))
		}
		for _, client := range clients {
			require.Equal(t, "+PONG\r\n", string(client.Do("PING")))
		}
		clients[0].Close()
		require.True(t, comesIn(t, server.Addr), "the place that was left stayed taken")
	})
}

// comesIn reports whether a new connection is served before long.
func comesIn(t *testing.T, addr string) bool {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		client := harness.Dial(t, addr)
		err := client.Send(harness.Command("PING"))
		if err != nil {
			continue
		}
		if v, err := client.Read(patience); err == nil && v.Text == "PONG" {
			return true
		}
	}
	return false
}

// TestTimeout: a connection that says nothing, or half a command and then nothing, is closed after its time.
func TestTimeout(t *testing.T) {
	both(t, []string{"--timeout", "1"}, func(t *testing.T, server *harness.Server) {
		halves := []string{"", "*", "*3\r\n$3\r\nSET\r\n$1\r\n", "PIN", "*1\r\n$4\r\nPI", "MULTI\r\nSET k 1\r\n"}
		var clients []*harness.Client
		begin := time.Now()
		for _, half := range halves {
			client := harness.Dial(t, server.Addr)
			require.NoError(t, client.Send([]byte(half)))
			clients = append(clients, client)
		}
		for i, client := range clients {
			_, closed := client.Drain(2 * patience)
			require.True(t, closed, "%q", halves[i])
		}
		require.GreaterOrEqual(t, time.Since(begin), 900*time.Millisecond, "closed before its time")
		require.Equal(t, "$-1\r\n", string(harness.Dial(t, server.Addr).Do("GET", "k")))
	})
}

// TestQueryBufferLimit: a command larger than the limit closes its connection.
func TestQueryBufferLimit(t *testing.T) {
	both(t, []string{"--client-query-buffer-limit", "1mb"}, func(t *testing.T, server *harness.Server) {
		client := harness.Dial(t, server.Addr)
		_ = client.Send(harness.Command("SET", "k", strings.Repeat("v", 3<<20)))
		_, closed := client.Drain(patience)
		require.True(t, closed)
		other := harness.Dial(t, server.Addr)
		require.Equal(t, "$-1\r\n", string(other.Do("GET", "k")))
		require.Equal(t, "+OK\r\n", string(other.Do("SET", "k", strings.Repeat("v", 900*kib))))
	})
}

// TestQueueCountsAsQuery: what a transaction has queued counts towards the limit, so MULTI is no way around it.
func TestQueueCountsAsQuery(t *testing.T) {
	server := harness.Start(t, "--client-query-buffer-limit", "1mb")
	other := newBystander(t, server.Addr, "")
	conn, err := net.Dial("tcp", server.Addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte("MULTI\r\n"))
	require.NoError(t, err)
	go drain(conn)
	resident := server.RSS()
	require.True(t, pour(conn, command("SET", "k", strings.Repeat("v", kib)), 64<<20), "64 MiB could be queued")
	growth := server.RSS() - resident
	line := other.finish(t, row{})
	t.Logf("resident memory grew by %d KiB; another client's PING: median %v, max %v", growth>>10, line.pingMedian, line.pingSlowest)
	require.LessOrEqual(t, growth, int64(32<<20))
	require.Equal(t, "$-1\r\n", string(harness.Dial(t, server.Addr).Do("GET", "k")))
}

// drain reads and forgets until the connection ends.
func drain(conn net.Conn) {
	buf := make([]byte, 64*kib)
	for {
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}

// TestLargeTransaction: 100,000 commands in one transaction are executed, and every one is answered.
func TestLargeTransaction(t *testing.T) {
	const count = 100_000
	both(t, nil, func(t *testing.T, server *harness.Server) {
		other := newBystander(t, server.Addr, "")
		conn, err := net.Dial("tcp", server.Addr)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(6 * patience))
		go func() { _, _ = conn.Write([]byte("MULTI\r\n" + strings.Repeat("INCR n\r\n", count) + "EXEC\r\n")) }()
		var want strings.Builder
		want.WriteString("+OK\r\n" + strings.Repeat("+QUEUED\r\n", count))
		fmt.Fprintf(&want, "*%d\r\n", count)
		for i := range count {
			fmt.Fprintf(&want, ":%d\r\n", i+1)
		}
		got, _ := readSome(conn, want.Len())
		require.True(t, want.String() == got, "a reply is missing or wrong")
		line := other.finish(t, row{})
		t.Logf("another client's PING: median %v, max %v", line.pingMedian, line.pingSlowest)
	})
}

// TestManyArguments: a command with 100,000 pairs is executed as a whole.
func TestManyArguments(t *testing.T) {
	const pairs = 100_000
	both(t, nil, func(t *testing.T, server *harness.Server) {
		mset, hset, zadd := []string{"MSET"}, []string{"HSET", "h"}, []string{"ZADD", "z"}
		for i := range pairs {
			n := fmt.Sprint(i)
			mset, hset, zadd = append(mset, "k"+n, n), append(hset, "f"+n, n), append(zadd, n, "m"+n)
		}
		other := newBystander(t, server.Addr, "")
		client := harness.Dial(t, server.Addr)
		require.Equal(t, "+OK\r\n", string(client.Do(mset...)))
		require.Equal(t, fmt.Sprintf(":%d\r\n", pairs), string(client.Do(hset...)))
		require.Equal(t, fmt.Sprintf(":%d\r\n", pairs), string(client.Do(zadd...)))
		require.Equal(t, fmt.Sprintf(":%d\r\n", pairs+2), string(client.Do("DBSIZE")))
		line := other.finish(t, row{})
		t.Logf("another client's PING: median %v, max %v", line.pingMedian, line.pingSlowest)
	})
}

// TestBrokenConnections: connections that end in every wrong way leave nothing behind.
func TestBrokenConnections(t *testing.T) {
	both(t, nil, func(t *testing.T, server *harness.Server) {
		client := harness.Dial(t, server.Addr)
		client.Do("PING")
		open := server.OpenFiles()
		other := newBystander(t, server.Addr, "")
		for i := range 600 {
			conn, err := net.Dial("tcp", server.Addr)
			require.NoError(t, err)
			switch i % 4 {
			case 1: // in the middle of a command
				_, _ = conn.Write([]byte("*2\r\n$4\r\nECHO\r\n$10\r\nabc"))
			case 2: // reset, with replies on their way
				_, _ = conn.Write([]byte(strings.Repeat("PING\r\n", 100)))
				_ = conn.(*net.TCPConn).SetLinger(0)
			case 3: // in a transaction that watches
				_, _ = conn.Write([]byte("WATCH k\r\nMULTI\r\nSET k 1\r\n"))
			}
			_ = conn.Close()
		}
		other.finish(t, row{})
		require.Eventually(t, func() bool { return server.OpenFiles() <= open }, 2*patience, 20*time.Millisecond)
		require.Equal(t, "$-1\r\n", string(client.Do("GET", "k")))
	})
}

// TestHalfClosed: a client that has said all it will say still gets its answers.
func TestHalfClosed(t *testing.T) {
	both(t, nil, func(t *testing.T, server *harness.Server) {
		client := harness.Dial(t, server.Addr)
		require.NoError(t, client.Send([]byte(strings.Repeat("PING\r\n", 100))))
		require.NoError(t, client.Conn().(*net.TCPConn).CloseWrite())
		got, closed := client.Drain(patience)
		require.True(t, closed)
		require.Equal(t, strings.Repeat("+PONG\r\n", 100), string(got))
	})
}

// TestByteByByte: a command that comes a byte at a time is the same command.
func TestByteByByte(t *testing.T) {
	both(t, nil, func(t *testing.T, server *harness.Server) {
		client := harness.Dial(t, server.Addr)
		for _, b := range []byte(command("SET", "k", "a\r\nb") + "GET k\r\n") {
			require.NoError(t, client.Send([]byte{b}))
			time.Sleep(100 * time.Microsecond)
		}
		require.Equal(t, "+OK\r\n", string(client.Reply()))
		require.Equal(t, "$4\r\na\r\nb\r\n", string(client.Reply()))
	})
}

// TestProtectedMode: without a password, who comes from elsewhere is told why it is not served, and closed.
func TestProtectedMode(t *testing.T) {
	local := otherAddress()
	if local == "" {
		t.Log("this machine has no address but the loopback's: nobody can come from elsewhere")
		return
	}
	both(t, []string{"--bind", "127.0.0.1", local}, func(t *testing.T, server *harness.Server) {
		addr := net.JoinHostPort(local, fmt.Sprint(server.Port))
		got, closed := harness.Dial(t, addr).Drain(patience)
		require.True(t, closed)
		require.Regexp(t, `^-DENIED .*[Rr]unning in protected mode because protected mode is enabled`, string(got))
		client := harness.Dial(t, server.Addr)
		require.Equal(t, "+PONG\r\n", string(client.Do("PING")))
		for _, opens := range [][]string{
			{"CONFIG", "SET", "requirepass", "secret"}, {"ACL", "SETUSER", "default", "resetpass", ">secret"}, {"ACL", "SETUSER", "default", "resetpass"},
		} {
			require.Equal(t, "+OK\r\n", string(client.Do(opens...)))
			require.Equal(t, "-NOAUTH Authentication required.\r\n", string(harness.Dial(t, addr).Do("PING")))
			require.Equal(t, "+OK\r\n", string(client.Do("ACL", "SETUSER", "default", "nopass")))
			_, closed = harness.Dial(t, addr).Drain(patience)
			require.True(t, closed, "%q is undone", opens)
		}
	})
}

// otherAddress is an IPv4 address of this machine that is not the loopback's, if there is one.
func otherAddress() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	return ""
}
