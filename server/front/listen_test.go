package front

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestListenMistakes: the error names what is to be corrected.
func TestListenMistakes(t *testing.T) {
	for flag, bind := range map[string]string{"--port": "--bind", "--tls-port": "--bind", "--http-port": "--http-bind", "--rls-port": "--rls-bind"} {
		_, err := ListenOn([]string{"256.0.0.1"}, 1, flag) // no address, and no name that anybody could have
		require.ErrorContains(t, err, "; correct "+bind+" or "+flag)
	}
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("kept"), 0o600))
	_, err := ListenUnix(path, 0, "http-unixsocket")
	require.EqualError(t, err, path+" exists and is not a socket: remove it, or choose another path with --http-unixsocket")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))
}

// TestASocketFileInUseStays, also when its server has no place for one more connection; one that nobody listens on is replaced.
func TestASocketFileInUseStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	ln, err := ListenUnix(path, 0, "unixsocket")
	require.NoError(t, err)
	raw, err := ln.(*net.UnixListener).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) }))
	require.NoError(t, err)
	inUse := "unix socket " + path + " is in use: stop what listens there, or choose another with --unixsocket"
	for range 3 { // the queue is full with one or two
		_, err = ListenUnix(path, 0, "unixsocket")
		require.EqualError(t, err, inUse)
		conn, err := net.DialTimeout("unix", path, time.Millisecond)
		if err == nil {
			defer conn.Close()
		}
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, ln.Close())
	ln, err = ListenUnix(path, 0, "unixsocket")
	require.NoError(t, err, "nobody listens there")
	require.NoError(t, ln.Close())
}

// TestAddressFamily: an address is one of its own family, whatever the machine has; a name may be of either.
func TestAddressFamily(t *testing.T) {
	for bind, want := range map[string][2]string{
		"*": {"tcp4", ""}, "0.0.0.0": {"tcp4", "0.0.0.0"}, "127.0.0.1": {"tcp4", "127.0.0.1"}, "::ffff:0.0.0.0": {"tcp4", "0.0.0.0"},
		"::*": {"tcp6", ""}, "::": {"tcp6", "::"}, "::1": {"tcp6", "::1"}, "fe80::1%eth0": {"tcp6", "fe80::1%eth0"}, "localhost": {"tcp", "localhost"},
	} {
		network, host := addressFamily(bind)
		require.Equal(t, want, [2]string{network, host}, bind)
	}
}

// TestAllAddressesOfOneFamily: 0.0.0.0 and :: stand beside each other, on the same port, and neither listens for the other's.
func TestAllAddressesOfOneFamily(t *testing.T) {
	if ln, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		t.Skip("this machine has no IPv6:", err)
	} else {
		ln.Close()
	}
	for _, bind := range [][]string{{"0.0.0.0", "::"}, {"0.0.0.0", "-::*"}, {"*", "::"}, {"*", "-::*"}, {"::ffff:0.0.0.0", "::"}} {
		first, err := ListenOn(bind[:1], 0, "--port")
		require.NoError(t, err)
		defer closeAll(first)
		port := first[0].Addr().(*net.TCPAddr).Port
		_, err = net.Dial("tcp6", net.JoinHostPort("::1", strconv.Itoa(port)))
		require.Error(t, err, "%s is IPv4's alone", bind[0])
		second, err := ListenOn(bind[1:], port, "--port")
		require.NoError(t, err, "%v", bind)
		defer closeAll(second)
		require.Len(t, second, 1, "%v", bind)
		conn, err := net.Dial("tcp6", net.JoinHostPort("::1", strconv.Itoa(port)))
		require.NoError(t, err)
		conn.Close()
	}
}

// TestOptionalAddresses: only one that this machine does not have may be missing.
func TestOptionalAddresses(t *testing.T) {
	for err, absent := range map[error]bool{
		syscall.EADDRNOTAVAIL: true, syscall.EAFNOSUPPORT: true, syscall.EACCES: false, syscall.EADDRINUSE: false, syscall.EMFILE: false,
		&net.DNSError{IsNotFound: true}: true, &net.DNSError{IsTimeout: true}: false,
	} {
		require.Equal(t, absent, isAbsent(&net.OpError{Op: "listen", Err: err}), "%v", err)
	}
	ln, err := listenTCP("-192.0.2.1", 0, "--port") // of a range for documents
	require.NoError(t, err)
	require.Nil(t, ln)
}
