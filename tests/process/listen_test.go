package process

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestAddressesChange has CONFIG SET move both servers to other ports and addresses. Connections that are open go on, and what cannot
// be had changes nothing.
func TestAddressesChange(t *testing.T) {
	subject, reference := harness.StartPair(t)
	for name, s := range map[string]*harness.Server{"subject": subject, "reference": reference} {
		t.Run(name, func(t *testing.T) {
			c := harness.Dial(t, s.Addr)
			set := func(words ...string) string { return string(c.Do(append([]string{"CONFIG", "SET"}, words...)...)) }
			answers := func(host string, port int) bool {
				other, err := harness.TryDial(t, net.JoinHostPort(host, strconv.Itoa(port)))
				if err != nil {
					return false
				}
				defer other.Close()
				return string(other.Do("PING")) == "+PONG\r\n"
			}
			refused := func(name, why string) string {
				return "-ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why + "\r\n"
			}
			_, text, err := net.SplitHostPort(s.Addr)
			require.NoError(t, err)
			first, err := strconv.Atoi(text)
			require.NoError(t, err)
			taken, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer taken.Close()

			port := harness.FreePort(t)
			require.Equal(t, "+OK\r\n", set("port", strconv.Itoa(port)))
			require.True(t, answers("127.0.0.1", port))
			require.False(t, answers("127.0.0.1", first))
			require.Contains(t, string(c.Do("INFO", "server")), fmt.Sprintf("tcp_port:%d\r\n", port))
			require.Equal(t, refused("port", "Unable to listen on this port. Check server logs."), set("port", strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)))
			require.True(t, answers("127.0.0.1", port))
			require.Equal(t, []string{"port", strconv.Itoa(port)}, c.Ask("CONFIG", "GET", "port").Strings())
			c.Ask("ACL", "SETUSER", "default", "resetpass", ">acl")
			users := c.Ask("ACL", "LIST").Strings()
			require.Equal(t, refused("port", "Unable to listen on this port. Check server logs."),
				string(c.Do("CONFIG", "SET", "requirepass", "x", "port", strconv.Itoa(taken.Addr().(*net.TCPAddr).Port))))
			if s == subject { // the reference lets everybody in
				require.Equal(t, users, c.Ask("ACL", "LIST").Strings(), "a change that is refused leaves passwords alone")
			}
			c.Ask("ACL", "SETUSER", "default", "nopass")

			require.Equal(t, "+OK\r\n", set("bind", "127.0.0.2 -203.0.113.7"))
			require.True(t, answers("127.0.0.2", port))
			require.False(t, answers("127.0.0.1", port))
			require.Equal(t, refused("bind", "Failed to bind to specified addresses."), set("bind", "127.0.0.3 203.0.113.7"))
			require.Equal(t, []string{"bind", "127.0.0.2 -203.0.113.7"}, c.Ask("CONFIG", "GET", "bind").Strings())
			require.True(t, answers("127.0.0.2", port), "it stays where it was")
			require.False(t, answers("127.0.0.3", port))
			require.Equal(t, "+OK\r\n", set("bind", "127.0.0.1 127.0.0.2"))
			require.True(t, answers("127.0.0.1", port))
			require.True(t, answers("127.0.0.2", port))

			require.Equal(t, "+OK\r\n", set("port", "0"))
			require.False(t, answers("127.0.0.1", port))
			require.Equal(t, "+OK\r\n", set("port", strconv.Itoa(first), "bind", "127.0.0.1"))
			require.True(t, answers("127.0.0.1", first))
			require.False(t, answers("127.0.0.2", first))
		})
	}
}

// TestAddressesChangeUnderLoad changes the port again and again while others connect and work: whoever is in stays in, and descriptors
// do not pile up.
func TestAddressesChangeUnderLoad(t *testing.T) {
	const changes, workers = 40, 4
	s := harness.Start(t, "--io-threads", "2")
	c := harness.Dial(t, s.Addr)
	ports := [2]string{strconv.Itoa(harness.FreePort(t)), strconv.Itoa(harness.FreePort(t))}
	require.Equal(t, "+PONG\r\n", string(c.Do("PING"))) // it has been accepted, and counts
	before := s.OpenFiles()
	stop := make(chan struct{})
	var work sync.WaitGroup
	for w := range workers {
		lasting := harness.Dial(t, s.Addr)
		work.Go(func() {
			defer lasting.Close()
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if got, want := string(lasting.Do("INCR", fmt.Sprint("k", w))), fmt.Sprintf(":%d\r\n", n); got != want {
					t.Errorf("%q and not %q", got, want)
					return
				}
				if passing, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", ports[n%2])); err == nil {
					passing.Close()
				}
			}
		})
	}
	for n := range changes {
		require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "port", ports[n%2])))
		other := harness.Dial(t, net.JoinHostPort("127.0.0.1", ports[n%2]))
		require.Equal(t, "+PONG\r\n", string(other.Do("PING")))
		other.Close()
	}
	close(stop)
	work.Wait()
	require.Eventually(t, func() bool { return s.OpenFiles() <= before }, 10*time.Second, 10*time.Millisecond)
}
