package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestServiceManager starts the server as systemd does: with a TCP and a Unix socket that are open already, and a socket that
// wants to be told when it is ready and when it ends. The ports and paths of the configuration are not opened then.
func TestServiceManager(t *testing.T) {
	dir, err := os.MkdirTemp("", "hg") // the path of a socket has to be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer told.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	unix, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	defer unix.Close()
	var files []*os.File
	for _, ln := range []net.Listener{tcp, unix} {
		f, err := ln.(interface{ File() (*os.File, error) }).File()
		require.NoError(t, err)
		defer f.Close()
		files = append(files, f)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	link := filepath.Join(dir, "headgate") // by which name the test's binary runs the program
	require.NoError(t, os.Symlink(self, link))
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" --port 1 --unixsocket /nowhere/s --save ""`, link)
	cmd.Env = append(os.Environ(), "LISTEN_FDS=2", "NOTIFY_SOCKET="+told.LocalAddr().String())
	cmd.ExtraFiles, cmd.Dir = files, dir
	var log strings.Builder
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill()
	message := func() string {
		b := make([]byte, 100)
		require.NoError(t, told.SetReadDeadline(time.Now().Add(startLimit)))
		n, err := told.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	require.Equal(t, "READY=1", message())
	for _, ln := range []net.Listener{tcp, unix} {
		conn, err := net.Dial(ln.Addr().Network(), ln.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("PING\r\n"))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(startLimit)))
		reply, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "+PONG\r\n", reply)
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Equal(t, "STOPPING=1", message())
	require.NoError(t, cmd.Wait(), log.String())
	require.FileExists(t, filepath.Join(dir, "s"), "the socket is the manager's")
}

func TestInheritedListenersAreChecked(t *testing.T) {
	none, err := inheritedListeners([]string{"LISTEN_PID=1", "LISTEN_FDS=2"})
	require.NoError(t, err)
	require.Empty(t, none, "meant for another process")
}

func TestWatchdogPeriod(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	for _, tt := range []struct {
		micros, pid string
		want        time.Duration
	}{
		{"", "", 0}, {"x", "", 0}, {"-1", "", 0}, {"0", pid, 0}, {"3000000", "", 3 * time.Second}, {"3000000", pid, 3 * time.Second}, {"3000000", "1", 0},
	} {
		require.Equal(t, tt.want, watchdogPeriod([]string{"WATCHDOG_USEC=" + tt.micros, "WATCHDOG_PID=" + tt.pid}))
	}
}

// TestReloadsBeforeReady: a reload while the data are loaded told the service manager that they were.
func TestReloadsBeforeReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer told.Close()
	m := newManager([]string{"NOTIFY_SOCKET=" + path}, nil)
	m.tellChange("RELOADING=1")
	m.tellChange(readyState)
	m.tellReady()
	m.tellChange("RELOADING=1")
	require.NoError(t, told.SetReadDeadline(time.Now().Add(startLimit)))
	for _, want := range []string{"READY=1", "RELOADING=1"} {
		b := make([]byte, 100)
		n, err := told.Read(b)
		require.NoError(t, err)
		require.Equal(t, want, string(b[:n]))
	}
}
